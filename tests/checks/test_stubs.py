"""What the notebooks ship: each stub is answered with "Not tried yet", each solution passes."""

import pytest

from gemm_course import check
from tests.checks.cells import KINDS, checked_cells, checked_in, verdict_of
from tests.notebooks.builder import builder

STUBS, SOLUTIONS = checked_cells("stub"), checked_cells("solution")


def test_every_exercise_is_in_a_notebook():
    assert set(check.exercises()) == set(STUBS) == set(SOLUTIONS)


@pytest.mark.parametrize("tag", KINDS)
def test_the_cells_tested_are_those_of_the_notebooks(tag):
    found = {}
    for name in builder.names():
        source = builder.source_of(name).read_text("utf-8")
        cells = builder.assemble(source, KINDS[tag]).cells
        tagged = [
            cell.source for cell in cells if cell.cell_type == "code" and tag in cell.metadata.get("tags", [])
        ]
        found |= {exercise: each for each in tagged if (exercise := checked_in(each))}
    assert found == checked_cells(tag)


@pytest.mark.many(one_in=4)
@pytest.mark.parametrize("name", STUBS)
def test_the_stub_is_answered_with_not_tried_yet(name):
    verdict = verdict_of(STUBS[name])
    assert not verdict.passed
    assert verdict.message.startswith("Not yet")
    assert len(verdict.message) > 40, "it should say where to start"
    assert str(verdict).startswith("Not tried yet") and "Not tried yet" in verdict._repr_html_()


@pytest.mark.many(one_in=6)
@pytest.mark.parametrize("name", SOLUTIONS)
def test_the_solution_passes(name):
    verdict = verdict_of(SOLUTIONS[name])
    assert verdict.passed, str(verdict)
    assert "Passed" in str(verdict) and "Passed" in verdict._repr_html_()
