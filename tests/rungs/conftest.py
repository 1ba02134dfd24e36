"""A learner's notebook, so far as this process goes, with a ladder in a folder of its own."""

import pytest

from gemm_course import progress
from gemm_course.rungs import noting, store


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of the learner's ladder, which does not exist yet."""
    monkeypatch.setenv(progress.VARIABLE, str(tmp_path / ".course" / "progress"))
    for module in (progress, store):
        monkeypatch.setattr(module, "in_a_learners_notebook", lambda: True)
    monkeypatch.setattr(noting, "_passed", {})
    return tmp_path / ".course" / "ladder"
