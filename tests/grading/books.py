"""Submissions to try: an assignment, answered right or not at all, and what learners do to a notebook."""

import copy
from functools import cache

import nbformat

from gemm_course.grading.assignments import answer_and_question, assignment_of, check_at_the_end
from gemm_course.grading.restoring import grade_id
from tests.notebooks.builder import builder

NAME = "shared_memory_tiles"


@cache
def _read(path) -> nbformat.NotebookNode:
    return nbformat.read(path, 4)


def learners(name=NAME) -> nbformat.NotebookNode:
    return copy.deepcopy(_read(builder.target(name, "learner")))


def solved(name=NAME) -> dict[str, str]:
    """The solutions' cells, by the ids of the exercises' cells, with their checks."""
    book = _read(builder.target(name, "solutions"))
    tagged = [cell for cell in book.cells if "solution" in cell.metadata.get("tags", [])]
    return {c.id.removesuffix("-solution"): c.source for c in tagged if c.cell_type == "code"}


def solutions(name=NAME) -> dict[str, str]:
    """The right answers by the ids of their cells, without the checks."""
    asked = {each: (source, check_at_the_end(source)) for each, source in solved(name).items()}
    return {each: answer_and_question(source, call)[0] for each, (source, call) in asked.items() if call}


def assignment(name=NAME) -> nbformat.NotebookNode:
    return assignment_of(learners(name))


def right(name=NAME) -> nbformat.NotebookNode:
    book, answers = assignment(name), solutions(name)
    for cell in answers_of(book):
        cell.source = answers[cell.id]
    return book


def answers_of(book) -> list:
    return [cell for cell in book.cells if cell.metadata.get("nbgrader", {}).get("solution")]


def checks_of(book) -> list:
    return [cell for cell in book.cells if cell.metadata.get("nbgrader", {}).get("grade")]


def with_code(book, source, at=1) -> nbformat.NotebookNode:
    book.cells.insert(at, nbformat.v4.new_code_cell(source))
    return book


# ---- what learners do, by mistake or not ----


def split(book):
    """Splits the first answer, as JupyterLab does: both halves have the metadata."""
    first = answers_of(book)[0]
    half = copy.deepcopy(first)
    half.id, half.source = "half-of-it", "a_note = 1"
    book.cells.insert(book.cells.index(first), half)


def pasted(book):
    book.cells.append(copy.deepcopy(answers_of(book)[1]))


def moved(book):
    answers = answers_of(book)
    book.cells = [cell for cell in book.cells if cell not in answers] + answers


def stripped(book):
    for cell in book.cells:
        cell.metadata = nbformat.NotebookNode()


def without_checks(book):
    book.cells = [cell for cell in book.cells if cell not in checks_of(book)]


def changed_checks(book):
    for cell in checks_of(book):
        cell.source, cell.metadata["tags"] = "pass", ["skip-execution"]


def without_imports(book):
    book.cells.remove(_imports(book))


def flipped(book):
    for cell in checks_of(book):
        cell.metadata["nbgrader"] |= {"grade": False, "solution": True, "locked": False}


def tagged(book):
    for cell in book.cells:
        cell.metadata["tags"] = ["skip-execution", "raises-exception"]


def odd_metadata(book):
    for number, cell in enumerate(book.cells):
        cell.metadata["nbgrader"] = "mine" if number % 2 else {"grade_id": None}


def stale_copies(book):
    """Pastes a stub and a wrong attempt at the end, with their metadata."""
    stub, wrong = (copy.deepcopy(cell) for cell in answers_of(book)[:2])
    stub.source, wrong.source = answers_of(assignment())[0].source, "def make_reverse(T):\n    return None"
    book.cells += [stub, wrong]


def imports_at_the_end(book):
    book.cells.append(book.cells.pop(book.cells.index(_imports(book))))


def other_imports(book):
    _imports(book).source = "import numpy"
    with_code(book, _imports(assignment()).source, at=len(book.cells))


def _imports(book):
    return next(cell for cell in book.cells if cell.cell_type == "code")


def odd_cells(book):
    """Leaves cells as other tools write them."""
    for number, cell in enumerate(book.cells):
        if cell.cell_type == "markdown":
            cell["source"] = None if number % 2 else ["a", "b"]
            cell["cell_type"] = "heading"
        cell["id"] = "not an id #" if number % 3 else cell["id"]
        cell["attachments"] = {}
        if cell.cell_type == "code":
            cell["outputs"] = [{"output_type": "pyout"}]


CHANGES = (
    stale_copies,
    imports_at_the_end,
    other_imports,
    odd_cells,
    split,
    pasted,
    moved,
    stripped,
    without_checks,
    changed_checks,
    without_imports,
    flipped,
    tagged,
    odd_metadata,
)


def from_the_course():
    """The course's own notebook, filled in: no metadata, and the checks at the ends of the answers."""
    book = learners()
    for cell in book.cells:
        cell.source = solved().get(cell.id, cell.source)
    return book


def names(cells) -> list:
    return [grade_id(cell) for cell in cells]
