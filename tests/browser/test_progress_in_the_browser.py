"""A real JupyterLab tells a learner's notebook from a solution, and only the first makes progress."""

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.lab import Notebook, copy_of_notebooks, jupyterlab

pytestmark = pytest.mark.browser
NOTE = "from gemm_course.progress import note_pass, passed\nprint(repr(note_pass({!r})), list(passed()))"


def test_only_a_learners_notebook_makes_progress(chromium, tmp_path):
    folder = copy_of_notebooks(tmp_path / "notebooks")
    with jupyterlab(folder) as base, sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=chromium).new_page()
        learner = _opened(page, base, "00_welcome.ipynb")
        assert "'' ['00.3']" in learner.replace_cell("ex-00-3", NOTE.format("00.3"))
        solution = _opened(page, base, "solutions/00_welcome.ipynb")
        assert "'' ['00.3']" in solution.replace_cell("ex-00-3-solution", NOTE.format("00.5"))


def _opened(page, base: str, name: str) -> Notebook:
    notebook = Notebook(page, base, name)
    notebook.command("notebook:clear-all-cell-outputs")  # with the numbers of an earlier run
    return notebook
