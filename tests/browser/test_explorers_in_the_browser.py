"""Explorers on every day: run, saved and opened again, after a restart, without a kernel, without trust."""

import json
from pathlib import Path

import nbformat
import pytest
from nbformat import v4

from gemm_course.figures.multiply import place_of_c
from gemm_course.widgets import _quiz
from tests.browser.lab import Explorer, Notebook

pytestmark = [pytest.mark.browser, pytest.mark.full(reason="JupyterLab in Chromium for a few explorers")]
NAME, UNTRUSTED = "explorers.ipynb", "untrusted.ipynb"
CELLS = (
    "from gemm_course import widgets as see\nsee.banks()",
    "see.walk()",
    'see.occupancy("thread_tiled_2d")',
    "def elements(tid, BN, WM, WN, TN, WNITER):\n    return [(tid // 8, tid % 8)]\nsee.owners(elements)",
    'see.predict("welcome.branches")',
)
NO_KERNEL, NO_TRUST = "no Python is running", "the notebook is not trusted"


@pytest.fixture(scope="module")
def saved(folder, lab) -> Path:
    """A notebook that was run and saved."""
    cells = [v4.new_code_cell(source) for source in CELLS]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(v4.new_notebook(cells=cells, metadata=kernel), folder / NAME)
    with lab.open(NAME) as notebook:
        notebook.run_all()
        assert notebook.errors() == []
        _all_move(notebook)
        assert _own(notebook) == ""
        notebook.command("docmanager:save")
    return folder / NAME


def _four(notebook: Notebook) -> tuple[Explorer, ...]:
    return tuple(notebook.wait_for_explorers(4))


def _moves(explorer: Explorer, label: str, key: str = "End") -> str:
    """Move a slider there and back, and return what was said where there was no other picture."""
    before = explorer.seen()
    slider = explorer.control(label)
    place = slider.position()
    slider.press(key)
    assert slider.position() != place
    words = explorer.said()
    assert bool(words) == (explorer.seen() == before)
    slider.press("Home", *["ArrowRight"] * round(place))
    assert explorer.seen() == before and explorer.said() == ""
    return words


def _all_move(notebook: Notebook) -> None:
    """What is stored, and what Python draws."""
    banks, walk, occupancy, _ = _four(notebook)
    assert (
        _moves(banks, "padding, in words") == ""
        and _moves(walk, "step") == ""
        and _moves(occupancy, "BK", "Home") == ""
    )


def _own(notebook: Notebook, key: str = "Home") -> str:
    return _moves(_four(notebook)[3], "lane", key)


def _nothing_is_wrong(notebook: Notebook) -> None:
    assert notebook.errors() == []
    text = notebook.page.locator(".jp-Notebook").inner_text()
    for words in ("Error", "model not found", "Loading widget"):
        assert words not in text


def test_opened_again_with_nothing_run(saved, lab):
    with lab.open(NAME) as notebook:
        _all_move(notebook)
        assert "Run the cells up to this one again" in _own(notebook)
        _nothing_is_wrong(notebook)


def test_after_a_restart(saved, lab):
    with lab.open(NAME) as notebook:
        notebook.run_all()
        assert _own(notebook) == ""
        notebook.restart()
        _all_move(notebook)
        assert _own(notebook) == "", "what was drawn before is still there"
        assert "Run the cells up to this one again" in _own(notebook, "End")
        _nothing_is_wrong(notebook)


def test_without_a_kernel(saved, lab_without_kernels):
    with lab_without_kernels.open(NAME) as notebook:
        banks, walk, occupancy, own = _four(notebook)
        assert _moves(banks, "padding, in words") == "" and _moves(walk, "step") == ""
        assert NO_KERNEL in _moves(occupancy, "BK", "Home")
        assert NO_KERNEL in _moves(own, "lane", "Home")
        walk.press("next ▶")
        assert "Step 2" in walk.seen()["alt"]
        _predict(notebook)
        _nothing_is_wrong(notebook)


def test_without_trust(saved, lab):
    """What somebody else wrote is drawn from stored frames, and runs nothing in the kernel."""
    content = json.loads(saved.read_text())
    content["cells"][0]["source"] = "# another's\n"
    saved.with_name(UNTRUSTED).write_text(json.dumps(content))
    with lab.open(UNTRUSTED) as notebook:
        banks, _, occupancy, _ = _four(notebook)
        assert _moves(banks, "padding, in words") == ""
        assert NO_TRUST in _moves(occupancy, "BK", "Home")
        _nothing_is_wrong(notebook)


def _predict(notebook: Notebook) -> None:
    """A choice opens its reply by keyboard; the others stay closed."""
    options = _quiz.questions("welcome")["branches"]["options"]
    right = next(place for place, option in enumerate(options) if option.get("right"))
    choices = notebook.page.locator(".jp-Cell details")
    assert choices.evaluate_all("all => all.map(one => one.open)") == [False] * len(options)
    choices.nth(right).locator("summary").focus()
    notebook.page.keyboard.press("Enter")
    opened = [place == right for place in range(len(options))]
    assert choices.evaluate_all("all => all.map(one => one.open)") == opened
    assert "Yes." in choices.nth(right).inner_text()


def test_a_sequence_plays_to_its_end_and_stops(saved, lab):
    with lab.open(NAME) as notebook:
        walk = _four(notebook)[1]
        step = walk.control("step")
        step.press("End", "ArrowLeft", "ArrowLeft")
        assert step.text.startswith(f"{int(step.position('max')) - 1} of ")
        walk.press("▶ play")
        notebook.page.wait_for_function(
            "input => input.value === input.max", arg=step.locator.element_handle()
        )
        walk.root.get_by_role("button", name="▶ play").wait_for()
        walk.press("◀ previous")
        assert step.position() == step.position("max") - 1


def test_a_click_on_an_element_of_c_chooses_it(lab_without_kernels):
    """A click into the picture moves both sliders, and one beside C moves none."""
    with lab_without_kernels.open("00_welcome.ipynb") as notebook:
        explorer = notebook.explorers()[0]
        assert "click on an element of C" in explorer.root.locator(".gemm-hint").inner_text()
        row, column = explorer.control("row of C"), explorer.control("column of C")
        for wanted in ((2, 7), (0, 0)):
            _click_on_c(explorer, *wanted)
            assert (row.position(), column.position()) == wanted
            assert explorer.seen()["alt"].startswith(f"C[{wanted[0]}, {wanted[1]}], row ")
        explorer.root.locator("img.gemm-picture").click(position={"x": 5, "y": 5})
        explorer.settle()
        assert (row.position(), column.position()) == (0, 0)


def _click_on_c(explorer: Explorer, row: int, column: int) -> None:
    """Click on the middle of an element of an 8 by 8 matrix C, where the figure says that it lies."""
    left, top, wide, high = place_of_c((8, 8, 8))
    image = explorer.root.locator("img.gemm-picture")
    drawn = image.bounding_box()["width"]
    x, y = left + (column + 0.5) * wide / 8, top + (row + 0.5) * high / 8
    image.click(position={"x": x * drawn, "y": y * drawn})
    explorer.settle()


def test_controls_are_beside_the_picture_where_there_is_room(saved, lab):
    with lab.open(NAME) as notebook:
        for width, beside in ((1366, True), (700, False)):
            notebook.page.set_viewport_size({"width": width, "height": 768})
            notebook.draw()
            for explorer in _four(notebook):
                form, view = (
                    explorer.root.locator(f".gemm-{part}").bounding_box() for part in ("form", "view")
                )
                assert (view["x"] >= form["x"] + form["width"]) == beside
                assert (view["y"] >= form["y"] + form["height"]) == (not beside)
                assert view["x"] + view["width"] <= width
        notebook.page.set_viewport_size({"width": 1280, "height": 1000})
