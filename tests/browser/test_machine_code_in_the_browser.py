"""Machine code by lines in a real JupyterLab: keyboard and mouse choose a line, also on the second day."""

from pathlib import Path

import nbformat
import pytest
from nbformat import v4

from tests.browser.lab import Notebook

pytestmark = [pytest.mark.browser, pytest.mark.full(reason="JupyterLab in Chromium for one widget")]
NAME = "machine_code.ipynb"
ARTEFACTS = Path(__file__).parent / "artefacts"
CELLS = (
    "# cells above and below, which arrow keys could move to",
    "from gemm_course import widgets as see\n"
    "from gemm_course.compiler import recorded\n"
    'see.machine_code(recorded("vectorized", (9, 0)))',
    "from tests.widgets.small_profile import small_profile\nsee.machine_code(small_profile())",
    "# the end",
)
# What can be seen of one of the pictures.
_STATE = """root => {
    const list = root.querySelector('.gemm-lines'), side = root.querySelector('.gemm-instructions');
    const lines = [...root.querySelectorAll('.gemm-line')];
    const chosen = lines.filter(line => line.getAttribute('aria-selected') === 'true');
    const top = list.scrollTop + list.querySelector('.gemm-columns').offsetHeight;
    return {lines: lines.length, place: lines.indexOf(chosen[0]), chosen: chosen.length,
            label: chosen[0]?.getAttribute('aria-label'), told: side.getAttribute('aria-label'),
            active: chosen[0]?.id === list.getAttribute('aria-activedescendant'), text: side.innerText,
            visible: chosen[0]?.offsetTop >= top - 1
                     && chosen[0].offsetTop + chosen[0].offsetHeight <= list.scrollTop + list.clientHeight,
            cells: course.cells.length, size: [root.offsetWidth, root.offsetHeight],
            cell: course.panel.content.activeCellIndex, mode: course.panel.content.mode}; }"""


class Shown:
    """One picture in the page."""

    def __init__(self, notebook: Notebook, place: int):
        self.notebook, self.page = notebook, notebook.page
        self.root = self.page.locator(".gemm-machine-code").nth(place)
        self.list = self.root.locator(".gemm-lines")

    def ready(self) -> "Shown":
        """Wait until its lines can be chosen."""
        self.root.locator("xpath=self::*[parent::*[@data-ready]]").wait_for(state="attached")
        return self

    def activate_its_cell(self) -> None:
        """Make its cell the notebook's active one, in command mode, where arrow keys would leave it."""
        self.root.evaluate(
            """root => { const notebook = course.panel.content;
                         const mine = cell => cell.node.contains(root);
                         notebook.activeCellIndex = notebook.widgets.findIndex(mine);
                         notebook.mode = 'command'; }"""
        )

    def state(self) -> dict:
        state = self.root.evaluate(_STATE)
        assert state["chosen"] == 1 and state["active"]
        number = state["label"].split(":")[0].split(";")[0]
        assert state["told"] == f"Instructions of {number}"
        assert state["text"].lower().startswith(number)
        return state

    def press(self, key: str) -> dict:
        self.page.keyboard.press(key)
        return self.state()


def write(path: Path) -> None:
    """Write the notebook."""
    cells = [v4.new_code_cell(source) for source in CELLS]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(v4.new_notebook(cells=cells, metadata=kernel), path)


@pytest.fixture
def saved(folder) -> None:
    write(folder / NAME)


def test_lines_are_chosen_by_keyboard_and_mouse_now_and_later(lab, lab_without_kernels, saved, request):
    with lab.open(NAME) as notebook:
        notebook.run_all()
        assert notebook.errors() == []
        large, small = (Shown(notebook, place).ready() for place in range(2))
        _walk_by_keyboard(large)
        _walk_by_mouse(large)
        _open_a_run(small)
        _fits(notebook, (large, small))
        if request.config.getoption("--screenshots"):
            _shots(notebook)
        notebook.command("docmanager:save")
    with lab.open(NAME) as later:  # the same person, another day: nothing is run
        _walk_by_keyboard(Shown(later, 0).ready())
        assert later.errors() == []
    with lab_without_kernels.open(NAME) as untrusted:
        _first_state_is_there(Shown(untrusted, 1))


def _walk_by_keyboard(shown: Shown) -> None:
    """Every line in turn, down and up; the notebook stays at its cell, and nothing changes its size."""
    shown.activate_its_cell()
    shown.list.focus()
    first = shown.state()
    assert first["visible"]
    last = first["lines"] - 1
    assert shown.press("Home")["place"] == 0
    assert shown.press("ArrowUp")["place"] == 0
    texts = set()
    for place in range(1, last + 1):
        state = shown.press("ArrowDown")
        assert state["place"] == place and state["visible"]
        assert (state["size"], state["cell"], state["mode"]) == (first["size"], first["cell"], "command")
        texts.add(state["text"])
    assert len(texts) == last > 20
    assert shown.press("ArrowDown")["place"] == last
    for key, place in (("ArrowUp", last - 1), ("PageUp", last - 11)):
        state = shown.press(key)
        assert (state["place"], state["cell"], state["mode"]) == (place, first["cell"], "command")
    assert shown.press("End")["place"] == last
    assert shown.press("b")["cells"] == first["cells"], "JupyterLab has inserted a cell"
    outline = shown.list.evaluate("list => parseFloat(getComputedStyle(list).outlineWidth)")
    assert outline >= 2, "it cannot be seen that the list has the focus"


def _walk_by_mouse(shown: Shown) -> None:
    lines = shown.root.locator(".gemm-line")
    for place in (3, 17, 0):
        lines.nth(place).click()
        assert shown.state()["place"] == place
    assert shown.press("ArrowDown")["place"] == 1, "after a click the keys go on from there"


def _open_a_run(shown: Shown) -> None:
    """The keyboard opens a run of like instructions, and JupyterLab leaves the key alone."""
    run = shown.root.locator("summary").first
    assert not run.evaluate("summary => summary.parentElement.open")
    shown.activate_its_cell()
    run.focus()
    before = shown.state()
    shown.page.keyboard.press("Enter")
    assert run.evaluate("summary => summary.parentElement.open")
    assert "FFMA R1, R5, R2, R1" in shown.root.locator(".gemm-instructions").inner_text()
    for key in ("ArrowDown", "ArrowUp", "ArrowUp"):
        state = shown.press(key)
        assert all(state[each] == before[each] for each in ("size", "mode", "cell", "place"))


def _fits(notebook: Notebook, pictures: tuple[Shown, ...]) -> None:
    """Side by side where there is room, else one below the other; nothing sticks out."""
    for width, beside in ((1200, True), (600, False)):
        notebook.page.set_viewport_size({"width": width, "height": 1000})
        notebook.draw()
        for shown in pictures:
            sizes = shown.root.evaluate(
                """root => { const [a, b] = ['.gemm-lines', '.gemm-instructions']
                                .map(name => root.querySelector(name).getBoundingClientRect());
                             return {beside: b.left >= a.right, below: b.top >= a.bottom,
                                     out: root.scrollWidth > root.clientWidth,
                                     cut: root.getBoundingClientRect().right > innerWidth}; }"""
            )
            assert sizes == {"beside": beside, "below": not beside, "out": False, "cut": False}
    notebook.page.set_viewport_size({"width": 1280, "height": 1000})


def _shots(notebook: Notebook) -> None:
    for theme in ("Dark", "Light"):
        notebook.command("apputils:change-theme", {"theme": f"JupyterLab {theme}"})
        for width in (1200, 600):
            notebook.screenshot(ARTEFACTS / f"machine_code-{theme.lower()}-{width}.png", width)


def _first_state_is_there(shown: Shown) -> None:
    """Where no script runs: the picture as it was first, and how to get more of it."""
    shown.root.wait_for()
    text = shown.root.inner_text()
    assert "Run this cell to choose another line." in text
    assert "warps wait longest at line 13" in text and "acc += A[p] * A[p]" in text
    assert "LDG.E R2, desc[UR4][R4.64]" in text and "FFMA × 6" in text
    assert shown.root.evaluate("root => !root.parentElement.querySelector('script, style')")
    heights = shown.root.locator(".gemm-lines, .gemm-instructions").evaluate_all(
        "all => all.map(one => one.offsetHeight)"
    )
    assert len(heights) == 2 and max(heights) < 500
