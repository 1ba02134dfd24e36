"""Folded answers: closed when a notebook is run, opened by a click or a key, closed after another run."""

import nbformat
import pytest
from nbformat import v4

from gemm_course import road
from tests.browser.lab import Lab, jupyterlab
from tests.notebooks.builder import builder

pytestmark = [pytest.mark.browser, pytest.mark.full(reason="other JupyterLabs in Chromium")]
TOPIC = "thread_tiles_2d"
NAME = road.notebook(TOPIC).name
CELLS = (
    "from gemm_course import widgets as see\nsee.fold({'answer': 42})",
    "see.fold('Look at the warps.', lambda: see.block(), first='Think first.')",
)
FOLDS = ".jp-OutputArea details:has(> .gemm-part), .jp-OutputArea details:has(.gemm-explorer)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The notebooks from their sources, which nobody has run, and a small one."""
    folder = tmp_path_factory.mktemp("folds")
    for notebook in road.NOTEBOOKS:
        nbformat.write(builder.whole(notebook.topic, "learner"), folder / f"{notebook.name}.ipynb")
    small = v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in CELLS], metadata=builder.METADATA)
    nbformat.write(small, folder / "small.ipynb")
    return folder


@pytest.fixture(scope="module")
def lab_elsewhere(folder, browser):
    """A JupyterLab without the course's extension."""
    with jupyterlab(folder, course=False) as base:
        yield Lab(browser, base)


def folds(notebook, number: int) -> list:
    """The notebook's folds, of which none stands open."""
    found = notebook.page.locator(FOLDS).all()
    states = notebook.page.locator(FOLDS).evaluate_all("all => all.map(fold => fold.open)")
    assert states == [False] * number
    assert not any(content(fold).is_visible() for fold in found)
    return found


def content(fold):
    return fold.locator(":scope > :not(summary)").last


def run_again(notebook, fold) -> None:
    """Run the cell of a fold once more."""
    notebook.page.evaluate(
        """fold => { const {content} = course.panel, holds = cell => cell.node.contains(fold);
                     content.activeCellIndex = content.widgets.findIndex(holds); }""",
        fold.element_handle(),
    )
    notebook.command("notebook:run-cell")
    notebook.settle()


def written_folds(topic: str) -> int:
    """How many cells of a notebook are a fold."""
    return sum("see.fold(" in cell.source for cell in builder.whole(topic, "learner").cells)


@pytest.mark.parametrize("topic", [notebook.topic for notebook in road.NOTEBOOKS])
def test_no_answer_is_in_sight_when_the_whole_notebook_is_run(lab, topic):
    with lab.open(f"{road.notebook(topic).name}.ipynb") as notebook:
        notebook.run_all()
        assert notebook.errors() == []
        folds(notebook, written_folds(topic))
        answers = notebook.page.locator(".jp-Notebook details")
        assert answers.count() > 0
        assert answers.evaluate_all("all => all.filter(fold => fold.open).length") == 0


def test_a_fold_opens_by_a_click_or_a_key_and_is_closed_by_another_run(lab):
    number = written_folds(TOPIC)
    assert number >= 4
    with lab.open(f"{NAME}.ipynb") as notebook:
        notebook.run_all()
        found = folds(notebook, number)
        for fold in found:
            fold.locator("summary").first.click()
            assert content(fold).is_visible()
            fold.locator("summary").first.press("Enter")
            assert not content(fold).is_visible()
        found[0].locator("summary").first.press("Enter")
        assert content(found[0]).is_visible()
        run_again(notebook, found[0])
        folds(notebook, number)


def _opens_moves_and_closes(notebook) -> None:
    value, explorer = folds(notebook, 2)
    value.locator("summary").press("Enter")
    assert "'answer': 42" in content(value).inner_text()
    explorer.locator("summary").press("Space")
    assert explorer.get_by_text("Look at the warps.").is_visible()
    (moved,) = notebook.explorers()
    before = moved.seen()
    moved.ranges()[0].press("End")
    assert moved.seen() != before and moved.said() == ""
    run_again(notebook, explorer)
    notebook.page.wait_for_function(
        f"() => [...document.querySelectorAll('{FOLDS}')].every((f, n) => n ? !f.open : f.open)"
    )
    assert value.evaluate("fold => fold.open"), "another cell's fold stays as it is"


def test_words_and_an_explorer_are_behind_one_line(lab):
    with lab.open("small.ipynb") as notebook:
        notebook.run_all()
        _opens_moves_and_closes(notebook)
        assert notebook.errors() == []


def test_so_they_are_without_the_courses_extension(lab_elsewhere):
    with lab_elsewhere.open("small.ipynb") as notebook:
        notebook.run_all()
        notebook.page.wait_for_function("() => document.querySelectorAll('.gemm-explorer').length === 1")
        stills = notebook.page.locator("[id^=gemm-still]")
        assert stills.count() == 1 and not stills.first.is_visible()
        notebook.page.evaluate(
            "() => document.querySelectorAll('[id^=gemm-still]').forEach(still => still.remove())"
        )
        _opens_moves_and_closes(notebook)
        assert notebook.errors() == []
