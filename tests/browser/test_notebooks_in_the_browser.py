"""The notebooks in a real JupyterLab, as a learner uses them."""

from pathlib import Path

import pytest

from gemm_course import road
from tests.browser.lab import Explorer, Notebook, Range
from tests.checks.test_wrong_solutions import WRONG
from tests.wrong_solutions.altering import solution

pytestmark = pytest.mark.browser

NAMES = [notebook.name for notebook in road.NOTEBOOKS]
WITHOUT = [road.notebook("kernels_on_trial").name]  # This one has no explorer.
ARTEFACTS = Path(__file__).parent / "artefacts"
IN_VIEW = 650  # pixels of a notebook that a window of 1366 by 768 shows


@pytest.mark.many(one_in=13, with_all=13)
@pytest.mark.parametrize("name", NAMES)
def test_explorers_work_from_the_first_opening_and_answers_are_judged(
    name, lab, lab_without_kernels, sample, request
):
    with lab.open(f"{name}.ipynb") as notebook:
        explorers = notebook.explorers()
        assert explorers or name in WITHOUT
        for explorer in sample(explorers, one_in=3, with_all=2):  # nothing was run; all move on the site
            _try(explorer)
        notebook.run_all()
        assert notebook.errors() == []
        for explorer in notebook.explorers()[::-1][:1] + notebook.explorers()[:1]:
            _try(explorer)
        assert notebook.errors() == []
        if request.config.getoption("--screenshots"):
            _shots(notebook, name)
        notebook.command("docmanager:save")
        pictures = len(notebook.pictures())
        _answer(notebook, name)
    with lab_without_kernels.open(f"{name}.ipynb") as reopened:
        _all_are_drawn(reopened, pictures)
        for explorer in reopened.explorers()[:1]:
            _try(explorer)


def _try(explorer: Explorer) -> None:
    sliders = explorer.ranges()
    moved = [_move(slider) for slider in sliders]  # one of them may not matter, as for a whole block
    assert any(moved) or not sliders, f"no slider changes anything: {[each.name for each in sliders]}"
    _choose(explorer)
    _fits(explorer)


def _move(slider: Range) -> bool:
    """Move a slider by keyboard and mouse, and put it back where it was; return whether the picture followed.

    Where there is no picture, words say why. Sliders that offer less for its other values may have moved.
    """
    assert slider.name, "the slider has no name for a screen reader"
    place, low, high = (slider.position(end) for end in ("value", "min", "max"))
    if low == high:
        assert slider.locator.is_disabled()
        return False
    before, text, height = slider.explorer.seen(), slider.text, slider.explorer.height()
    texts = [each.text for each in slider.explorer.ranges()]
    for key, position in (("Home", low), ("ArrowRight", low + 1), ("ArrowLeft", low), ("End", high)):
        slider.touch(key)
        assert slider.position() == position, f"{slider.name}: {key} does not move it there"
    away = "End" if place < high else "Home"
    slider.press(away)
    assert slider.text != text, f"{slider.name}: a screen reader is told nothing new"
    followed, words = slider.explorer.seen()["alt"] != before["alt"], slider.explorer.said()
    assert not words or "not among the stored pictures" in words or "cell" in words, words
    slider.click_at(0.02 if away == "End" else 0.98)
    assert slider.position() == (low if away == "End" else high), f"{slider.name}: the mouse does not move it"
    slider.put(place)
    if [each.text for each in slider.explorer.ranges()] == texts:
        assert slider.explorer.seen() == before
        assert slider.explorer.height() >= height  # it may grow once, for a picture that Python draws
    return followed or bool(words)


def _choose(explorer: Explorer) -> None:
    """Arrow keys go from button to button; JupyterLab leaves them alone."""
    for group in explorer.groups():
        buttons = group.locator("input[type=radio]")
        if (number := buttons.count()) < 2:
            continue
        place = next(at for at in range(number) if buttons.nth(at).is_checked())
        buttons.nth(place).focus()
        explorer.page.keyboard.press("ArrowRight")
        assert buttons.nth((place + 1) % number).is_checked()
        explorer.page.keyboard.press("ArrowLeft")
        assert buttons.nth(place).is_checked()
        explorer.settle()


def _fits(explorer: Explorer) -> None:
    """Controls and picture are in view together on a small laptop."""
    assert explorer.height() <= IN_VIEW


def _shots(notebook: Notebook, name: str) -> None:
    notebook.screenshot(ARTEFACTS / f"{name}-1200.png", 1200)
    notebook.screenshot(ARTEFACTS / f"{name}-600.png", 600)
    notebook.command("apputils:change-theme", {"theme": "JupyterLab Dark"})
    notebook.screenshot(ARTEFACTS / f"{name}-dark.png", 1200)
    notebook.command("apputils:change-theme", {"theme": "JupyterLab Light"})


def _all_are_drawn(notebook: Notebook, pictures: int) -> None:
    notebook.wait_for_pictures(pictures)
    found = notebook.pictures()
    assert len(found) == pictures > 0
    assert all(picture["drawn"] and picture["alt"] for picture in found)


def _answer(notebook: Notebook, name: str) -> None:
    """A wrong solution of the first exercise is refused and the right one passes."""
    exercises = road.notebook(name.partition("_")[2]).exercises
    for exercise in exercises[:1]:
        wrong = next(iter(WRONG[exercise].values()))
        refused = notebook.replace_cell(f"ex-{exercise}", wrong.cell)
        passed = notebook.replace_cell(f"ex-{exercise}", solution(exercise))
        assert "not yet" in refused.lower()
        assert "passed" in passed.lower()
    assert notebook.errors() == []
