"""What a teacher hands out: no solution slips through, and points are what they should be."""

import ast
import functools
import json
import re

import pytest

import gemm_course
from gemm_course import check, checks, places, road
from gemm_course.checks import Exercise, Verdict
from gemm_course.checks.core import grading
from gemm_course.checks.core.grading import graded, replaced_functions
from gemm_course.commands.errors import CourseError
from gemm_course.commands.release import CONFIG, release_assignments, release_course
from gemm_course.grading.assignments import CHECK, assignment_of
from tests.grading.books import learners, solutions
from tests.notebooks.builder import ROOT, builder

NAMES = builder.names()


def of_nbgrader(cell, key: str):
    return cell.metadata.get("nbgrader", {}).get(key)


def test_every_exercise_is_graded_once_in_a_locked_cell():
    asked = []
    for name in NAMES:
        book = assignment_of(learners(name))
        ids = [of_nbgrader(cell, "grade_id") for cell in book.cells if of_nbgrader(cell, "grade_id")]
        assert len(ids) == len(set(ids))
        for cell in book.cells:
            if of_nbgrader(cell, "grade"):
                assert of_nbgrader(cell, "locked") and of_nbgrader(cell, "points") == 1
                call = ast.parse(cell.source).body[-1].value.args[0]
                assert "reload(grading).graded(" in cell.source
                asked.append(call.func.attr)
                given = [*call.args, *(keyword.value for keyword in call.keywords)]
                assert all(isinstance(each, ast.Name) for each in given), "the learner's, by name"
    assert sorted(asked) == sorted(checks.exercises())


@pytest.mark.parametrize("name", NAMES)
def test_no_solution_is_in_an_assignment(name):
    """Nor in a course that is released without: by the lines that the stub leaves out."""
    text = json.dumps(assignment_of(learners(name)), ensure_ascii=False)
    assert "Solution</summary>" not in text and "_solutions.ipynb" not in text
    for source in solutions(name).values():
        assert json.dumps(source, ensure_ascii=False)[1:-1] not in text


def test_what_lists_a_kernel_that_was_asked_for_shows_nothing_until_it_is_run():
    book = assignment_of(learners("shared_memory_tiles"))
    listings = [cell for cell in book.cells if "listing" in cell.metadata.get("tags", [])]
    assert listings and not any(cell.outputs for cell in listings)
    assert any('see.source("penny_xu_tile")' in cell.source for cell in listings)


def test_a_course_without_solutions_has_none_and_works(tmp_path):
    release_course(tmp_path / "out", solutions=False)
    assert not (tmp_path / "out" / "notebooks" / "solutions").exists()
    for folder in ("tests", "tools", "notebooks/source", "notebooks/kept"):
        assert not (tmp_path / "out" / folder).exists()
    assert {"course.py", "gemm_course", "data", "README.md", "uv.lock"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }
    for path in (tmp_path / "out" / "notebooks").glob("*.ipynb"):
        assert "Solution</summary>" not in path.read_text("utf-8")


def test_a_course_with_solutions_has_the_notebooks_as_they_are(tmp_path):
    release_course(tmp_path / "out", solutions=True)
    for name in ("notebooks/03_shared_memory_tiles.ipynb", "notebooks/solutions/00_welcome_solutions.ipynb"):
        assert (tmp_path / "out" / name).read_bytes() == (ROOT / name).read_bytes()


def test_assignments_are_a_course_of_nbgrader(tmp_path):
    made = release_assignments(tmp_path / "ng")
    assert (
        made == [road.notebook(name).name for name in NAMES if road.notebook(name).exercises]
        and (tmp_path / "ng" / "nbgrader_config.py").read_text() == CONFIG
    )
    assert (tmp_path / "ng" / "source" / "00_welcome" / "00_welcome.ipynb").is_file()
    assert (tmp_path / "ng" / "source" / "00_welcome" / "glossary.md").is_file()


def test_what_is_there_already_is_not_written_over(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    for release in (release_assignments, lambda folder: release_course(folder, True)):
        with pytest.raises(CourseError, match="not empty"):
            release(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


# ---- a check's verdict ----


def test_nothing_is_replaced_here():
    assert list(replaced_functions()) == []


def test_a_replaced_function_is_named(monkeypatch):
    code = compile("lambda self, *answer: None", "/tmp/ipykernel_1/1.py", "eval")
    for target, name in ((Exercise, "__call__"), (Verdict, "__bool__"), (checks, "where")):
        with monkeypatch.context() as changed:
            changed.setattr(target, name, eval(code))
            assert any(name in each for each in replaced_functions())
            with pytest.raises(AssertionError, match="has replaced it"):
                graded(Verdict("00.1", "where", True, "mine"))


def test_a_partial_method_and_another_object_for_check_are_named(monkeypatch):
    code = compile("lambda self, *answer: None", "/tmp/ipykernel_1/1.py", "eval")
    with monkeypatch.context() as changed:
        changed.setattr(Exercise, "__call__", functools.partialmethod(eval(code)))
        assert any("__call__" in each for each in replaced_functions())
    with monkeypatch.context() as changed:
        changed.setattr(gemm_course, "check", object(), raising=False)
        assert "gemm_course.check" in list(replaced_functions())


def test_a_locked_cell_grades_with_the_courses_own_function(monkeypatch):
    monkeypatch.setattr(grading, "graded", lambda verdict: None)
    with pytest.raises(AssertionError, match=re.escape(road.number_of("best_block"))):
        exec(CHECK.format(call="check.best_block(None)"), {})


def test_only_a_right_answer_is_no_error(capsys):
    with pytest.raises(AssertionError, match=re.escape(road.number_of("best_block"))):
        graded(check.best_block(None))
    with pytest.raises(AssertionError, match="not with True"):
        graded(True)
    graded(Verdict("00.1", "where", True, "right"))


def test_a_wheel_has_what_a_release_needs():
    assert places.BROUGHT.is_dir()
