"""A real JupyterLab tells a learner's notebook from a solution, and only the first makes progress."""

import pytest

from tests.browser.lab import Notebook

pytestmark = [pytest.mark.browser, pytest.mark.full(reason="JupyterLab in Chromium for two cells")]
NOTE = "from gemm_course.progress import note_pass, passed\nprint(repr(note_pass({!r})), list(passed()))"


def test_only_a_learners_notebook_makes_progress(lab):
    with lab.open("00_welcome.ipynb") as learner:
        assert "'' ['vector_add']" in _answer(learner, "ex-vector_add", note="vector_add")
    with lab.open("solutions/00_welcome_solutions.ipynb") as solution:
        assert "'' ['vector_add']" in _answer(solution, "ex-vector_add-solution", note="where")


def _answer(notebook: Notebook, cell: str, note: str) -> str:
    notebook.command("notebook:clear-all-cell-outputs")  # with the numbers of an earlier run
    return notebook.replace_cell(cell, NOTE.format(note))
