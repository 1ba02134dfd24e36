"""The notebooks in a real JupyterLab, as a learner uses them."""

from pathlib import Path

import pytest

from tests.browser.exercises import TYPED
from tests.browser.lab import Notebook, Slider

pytestmark = pytest.mark.browser

NAMES = [
    "00_welcome",
    "01_naive",
    "02_coalesced",
    "03_shared_memory_tiles",
    "04_thread_tiles_1d",
    "05_thread_tiles_2d",
    "06_vectorized_access",
    "07_warp_tiles",
    "08_tensor_cores",
]
ARTEFACTS = Path(__file__).parent / "artefacts"


@pytest.mark.many(one_in=9)
@pytest.mark.parametrize("name", NAMES)
def test_it_runs_its_sliders_move_pictures_and_answers_are_judged(
    name, lab, lab_without_kernels, sample, request
):
    with lab.open(f"{name}.ipynb") as notebook:
        notebook.run_all()
        assert notebook.errors() == []
        for slider in sample(notebook.sliders(), one_in=5):
            _move(slider)
        assert notebook.errors() == []
        if request.config.getoption("--screenshots"):
            _shots(notebook, name)
        notebook.command("docmanager:save")
        pictures = len(notebook.pictures())
        _answer(notebook, name)
    with lab_without_kernels.open(f"{name}.ipynb") as reopened:
        _all_are_drawn(reopened, pictures)


def _move(slider: Slider) -> None:
    """Move a slider by keyboard and mouse, and put it back where it was."""
    assert slider.name, "the slider's handle has no name for a screen reader"
    place, low, high = (slider.position(end) for end in ("now", "min", "max"))
    assert low < high, f"{slider.name}: there is nothing to move"
    before = slider.seen()
    for key, position in (("End", high), ("Home", low), ("ArrowRight", low + 1), ("ArrowLeft", low)):
        slider.press(key)
        assert slider.position() == position, f"{slider.name}: {key} does not move it there"
    away = "End" if place < high else "Home"
    slider.press(away)
    after = slider.seen()
    assert all(now["source"] != then["source"] for now, then in zip(after, before, strict=True)), slider.name
    assert all(now["alt"] != then["alt"] for now, then in zip(after, before, strict=True)), slider.name
    slider.drag(0.02 if away == "End" else 0.98)
    assert slider.seen() != after, f"{slider.name}: the mouse changes nothing"
    slider.press("Home", *["ArrowRight"] * round(place - low))


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
    """A wrong solution is refused and a right one passes."""
    exercise, wrong, right = TYPED[name]
    refused = notebook.replace_cell(exercise, wrong)
    passed = notebook.replace_cell(exercise, right)
    assert "not yet" in refused.lower()
    assert "passed" in passed.lower()
    assert notebook.errors() == []
