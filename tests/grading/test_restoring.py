"""Whatever a learner did to a notebook: each answer is followed by its own check, as the course wrote it."""

import copy

import nbformat
import pytest

from gemm_course.grading.restoring import restored
from tests.grading import books


def check_form(made, assignment):
    """Each answer that is there is followed by its check; all checks are there, as they were."""
    nbformat.validate(made)
    assert len({cell.id for cell in made.cells}) == len(made.cells)
    expected = {cell.metadata.nbgrader.grade_id: cell for cell in books.checks_of(assignment)}
    found = {cell.metadata.nbgrader.grade_id: cell for cell in books.checks_of(made)}
    assert found.keys() == expected.keys() and len(books.checks_of(made)) == len(expected)
    for name, cell in found.items():
        assert cell.source == expected[name].source and cell.metadata == expected[name].metadata
    for answer in books.answers_of(made):
        below = made.cells[made.cells.index(answer) + 1]
        assert below.metadata.nbgrader.grade_id == f"{answer.metadata.nbgrader.grade_id}-check"
    assert not any("tags" in cell.metadata for cell in made.cells if cell not in books.answers_of(made))


def _by_name(book):
    return {cell.metadata.nbgrader.grade_id: cell.source for cell in books.answers_of(book)}


@pytest.mark.parametrize("change", books.CHANGES, ids=lambda change: change.__name__)
def test_a_right_answer_is_found_again(change):
    assignment, book = books.assignment(), books.right()
    change(book)
    before = copy.deepcopy(book)
    made = restored(book, assignment)
    assert book == before
    check_form(made, assignment)
    assert _by_name(made) == _by_name(books.right())
    code = [cell.source for cell in made.cells if cell.cell_type == "code"]
    assert set(code) >= {cell.source for cell in books.right().cells if cell.cell_type == "code"}


def test_the_courses_own_notebook_is_an_answer_too():
    made = restored(books.from_the_course(), books.assignment())
    check_form(made, books.assignment())
    assert [cell.source for cell in books.answers_of(made)] == list(books.solutions().values())


def test_a_split_cell_of_the_courses_own_notebook_is_checked_after_its_last_half():
    book = books.from_the_course()
    first = next(cell for cell in book.cells if cell.id in books.solved())
    lines = first.source.splitlines()
    second = nbformat.v4.new_code_cell(lines[-1])
    first.source = "\n".join(lines[:-1])
    book.cells.insert(book.cells.index(first) + 1, second)
    made = restored(book, books.assignment())
    check_form(made, books.assignment())
    sources = [cell.source for cell in made.cells]
    check = next(cell.source for cell in books.checks_of(made))
    assert sources.index(first.source) < sources.index(check)


def test_an_assignment_is_its_own_form():
    assignment = books.assignment()
    made = restored(assignment, assignment)
    assert [cell.source for cell in made.cells] == [cell.source for cell in assignment.cells]
    assert books.names(made.cells) == books.names(assignment.cells)


def test_an_empty_notebook_gets_all_checks():
    made = restored(nbformat.v4.new_notebook(), books.assignment())
    assert books.names(books.checks_of(made)) == books.names(books.checks_of(books.assignment()))
