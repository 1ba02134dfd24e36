"""Puts a submission back into the form of its assignment: the learner's answers, and the course's own checks.

nbgrader finds cells by what their metadata say. A learner who splits a cell, pastes one, moves one or takes
the course's own notebook changes the metadata, mostly without knowing. So the cells are found here by their
metadata or their ids, and get the metadata of the assignment. The checks are the assignment's own, each below
the last cell of its answer.
"""

import copy
from collections.abc import Iterator

from nbformat import NotebookNode
from nbformat.corpus.words import generate_corpus_id

from .assignments import answer_and_question, check_at_the_end

Cells = list[NotebookNode]


def restored(submission: NotebookNode, assignment: NotebookNode) -> NotebookNode:
    """Return the submission in the assignment's form. Neither is changed.

    Every cell of the learner's stays, in the learner's order. Tags and other metadata are dropped, because
    some of them make graders skip a cell. Cells before the first answer that the learner deleted, such as the
    imports, come back at the top.
    """
    answers = {grade_id(cell): cell for cell in assignment.cells if _is(cell, "solution")}
    checks = _checks(assignment)
    given = [cell for cell in submission.cells if _key(cell) not in _ids(checks)]
    names = [_answer_of(cell, answers, checks) for cell in given]
    own = [_plain(cell) for cell in given]
    last = {name: place for place, name in enumerate(names) if name is not None}
    cells: Cells = [copy.deepcopy(cell) for cell in _deleted_beginnings(assignment, own)]
    due = [name for name in answers if name not in last]
    for place, (cell, name) in enumerate(zip(own, names)):
        if name is None:
            cells.append(cell)
            continue
        if last[name] == place:
            cells += [_as_answer(cell, answers[name]), *checks[name]]
        else:
            cells.append(cell)
    cells += [cell for name in due for cell in checks[name]]
    made = copy.deepcopy(submission)
    made.cells = list(_with_own_ids(cells))
    made.metadata, made.nbformat, made.nbformat_minor = copy.deepcopy(assignment.metadata), 4, 5
    return made


def grade_id(cell: NotebookNode) -> str | None:
    """Return the name that nbgrader knows a cell by, or None."""
    return _of_nbgrader(cell).get("grade_id")


def _is(cell: NotebookNode, what: str) -> bool:
    return bool(_of_nbgrader(cell).get(what))


def _of_nbgrader(cell: NotebookNode) -> dict:
    found = cell.metadata.get("nbgrader")
    return found if isinstance(found, dict) else {}


def _checks(assignment: NotebookNode) -> dict[str, Cells]:
    """Return for each answer's name the check that follows it."""
    found: dict[str, Cells] = {}
    name = None
    for cell in assignment.cells:
        if _is(cell, "solution"):
            name = grade_id(cell)
            found[name] = []
        elif _is(cell, "grade") and name is not None:
            found[name].append(copy.deepcopy(cell))
    return found


def _ids(checks: dict[str, Cells]) -> set[str | None]:
    return {grade_id(cell) for cells in checks.values() for cell in cells}


def _key(cell: NotebookNode) -> str | None:
    """Return the name of a cell: nbgrader's or, as in the course's own notebook, the cell's id."""
    return grade_id(cell) or cell.get("id")


def _answer_of(cell: NotebookNode, answers: dict, checks: dict[str, Cells]) -> str | None:
    """Return the name of the answer that a cell is or ends, or None.

    Where metadata and ids are lost, the check in the cell's last line tells which.
    """
    if _key(cell) in answers:
        return _key(cell)
    call = _call(cell)
    return next(
        (name for name, cells in checks.items() if call and any(call in each.source for each in cells)), None
    )


def _call(cell: NotebookNode) -> str | None:
    """Return the beginning of the check in a cell's last line, such as ``check.where(``, or None."""
    try:
        call = check_at_the_end(cell.source) if cell.cell_type == "code" else None
    except SyntaxError:
        return None
    return call and f"{call.partition('(')[0]}("


def _plain(cell: NotebookNode) -> NotebookNode:
    """Return a copy of a cell without tags and other metadata."""
    cell = copy.deepcopy(cell)
    cell.metadata = NotebookNode()
    return cell


def _as_answer(cell: NotebookNode, answer: NotebookNode) -> NotebookNode:
    """Return the learner's cell with the metadata of the answer, and without a check of its own.

    In the course's own notebook the last line of an answer checks it, perhaps with the answer in the call.
    """
    cell.metadata = copy.deepcopy(answer.metadata)
    if cell.cell_type != "code":
        cell.cell_type, cell.outputs, cell.execution_count = "code", [], None
    if _call(cell) is not None:
        cell.source = answer_and_question(cell.source, check_at_the_end(cell.source))[0]
    return cell


def _with_own_ids(cells: Cells) -> Iterator[NotebookNode]:
    """Yield the cells, with a new id where a cell has another one's, as after pasting."""
    known: set[str] = set()
    for cell in cells:
        if cell.get("id") in known or not cell.get("id"):
            cell["id"] = generate_corpus_id()
        known.add(cell["id"])
        yield cell


def _deleted_beginnings(assignment: NotebookNode, own: Cells) -> Cells:
    """Return the code cells above the assignment's first answer that the submission lacks."""
    there = {cell.get("id") for cell in own} | {cell.source for cell in own}
    missing = []
    for cell in assignment.cells:
        if _is(cell, "solution"):
            break
        if cell.cell_type == "code" and cell.id not in there and cell.source not in there:
            missing.append(cell)
    return missing
