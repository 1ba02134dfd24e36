"""Whatever a learner did to a notebook: each answer is followed by its own check, as the course wrote it."""

import copy
import subprocess

import nbformat
import pytest

from gemm_course.grading.assignments import assignment_of, is_listing
from gemm_course.grading.restoring import restored
from tests.grading import books
from tests.notebooks.builder import ROOT


def check_form(made, assignment, answers=True):
    """Each answer that is there is followed by its check; all checks are there, as they were."""
    nbformat.validate(made)
    assert len({cell.id for cell in made.cells}) == len(made.cells)
    expected = {cell.metadata.nbgrader.grade_id: cell for cell in books.checks_of(assignment)}
    found = {cell.metadata.nbgrader.grade_id: cell for cell in books.checks_of(made)}
    assert found.keys() == expected.keys() and len(books.checks_of(made)) == len(expected)
    for name, cell in found.items():
        assert cell.source == expected[name].source and cell.metadata == expected[name].metadata
    for answer in books.answers_of(made) if answers else ():
        below = made.cells[made.cells.index(answer) + 1 :]
        known = next(cell.metadata.nbgrader.grade_id for cell in below if "nbgrader" in cell.metadata)
        assert known == f"{answer.metadata.nbgrader.grade_id}-check"
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
    first = next(cell for cell in made.cells if cell.cell_type == "code" and "gemm_course" in cell.source)
    assert first.source == next(c.source for c in books.assignment().cells if c.cell_type == "code")


def check_follows(book, source):
    """In the restored notebook, the check of `first_loads` comes right after the cell with this source."""
    made = restored(book, books.assignment())
    check_form(made, books.assignment(), answers=False)
    place = [cell.source for cell in made.cells].index(source)
    assert made.cells[place + 1].source == books.checks_of(books.assignment())[0].source


def test_an_answer_in_a_new_cell_above_the_check_counts():
    book = books.assignment()
    place = book.cells.index(books.checks_of(book)[0])
    books.with_code(book, "loads = 1", at=place)
    check_follows(book, "loads = 1")


def test_an_answer_in_the_checks_own_cell_counts():
    book = books.assignment()
    check = books.checks_of(book)[0]
    check.source = f"loads = 1\n{check.source}"
    check_follows(book, "loads = 1")


def test_a_check_is_found_by_its_text_where_everything_else_is_lost():
    book = books.right()
    books.stripped(book)
    for cell in book.cells:
        cell["id"] = None
    books.with_code(book, "loads = 7", at=len(book.cells))
    check_follows(book, next(iter(books.solutions().values())))


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
    kept = [cell for cell in assignment.cells if not is_listing(cell)]
    assert [cell.source for cell in made.cells] == [cell.source for cell in kept]
    assert books.names(made.cells) == books.names(kept)


def test_what_lists_the_courses_kernels_is_left_out():
    """Grading would run it, and feedback would show the kernel that an exercise asks for."""
    listings = [cell for cell in books.assignment().cells if is_listing(cell)]
    graded = {cell.source for cell in restored(books.right(), books.assignment()).cells}
    assert listings and not any(cell.source in graded for cell in listings)


def test_an_empty_notebook_gets_all_checks():
    made = restored(nbformat.v4.new_notebook(), books.assignment())
    assert books.names(books.checks_of(made)) == books.names(books.checks_of(books.assignment()))


# ---- notebooks of the second edition, whose cells had the numbers of then ----

LAST_OF_THE_SECOND_EDITION = "7c58535"


def earlier(name: str) -> nbformat.NotebookNode:
    """A learner's notebook as the second edition had it."""
    place = f"{LAST_OF_THE_SECOND_EDITION}:notebooks/{name}.ipynb"
    done = subprocess.run(["git", "-C", ROOT, "show", place], capture_output=True, text=True)
    if done.returncode:
        pytest.skip("the history of the second edition is not here")
    return nbformat.reads(done.stdout, 4)


@pytest.mark.parametrize("handed_out", [lambda book: book, assignment_of], ids=["notebook", "assignment"])
def test_answers_in_a_notebook_of_the_second_edition_are_recognised(handed_out):
    book = handed_out(earlier("05_thread_tiles_2d"))
    answers = {"ex-05-4": "ex-outer_product", "ex-05-1": "ex-draft_is_right", "ex-05-2": "ex-slices"}
    for cell in book.cells:
        if cell.id in answers:
            cell.source = f"# mine: {cell.id}\n{cell.source}"
    made = restored(book, books.assignment("thread_tiles_2d"))
    check_form(made, books.assignment("thread_tiles_2d"))
    found = _by_name(made)
    assert found.keys() == set(answers.values())
    assert all(found[new].startswith(f"# mine: {old}") for old, new in answers.items())


def test_what_went_into_a_side_trip_is_graded_there():
    """The same notebook of then answers both assignments of now."""
    book = earlier("05_thread_tiles_2d")
    for cell in book.cells:
        if cell.id == "ex-05-3":
            cell.source = f"# mine\n{cell.source}"
    made = restored(book, books.assignment("kernel5"))
    assert _by_name(made)["ex-coalesced_b"].startswith("# mine")
