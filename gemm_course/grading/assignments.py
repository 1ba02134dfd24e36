"""Makes assignments of nbgrader from the course's notebooks."""

import ast
import inspect
from collections.abc import Iterator

import nbformat

from gemm_course import checks

# These are tags of the notebooks' cells.
FOLDED, STUB, LISTING = "folded", "stub", "listing"
SOLUTIONS_LINK = "Every solution with what it shows when it runs"
# The check loads the module of `graded` again, because a notebook may have replaced the function.
CHECK = """\
from importlib import reload

from gemm_course import check
from gemm_course.checks.core import grading

reload(grading).graded({call})"""


def assignment_of(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Turn a learner's notebook into an assignment of nbgrader, without solutions, and return it."""
    notebook = without_solutions(notebook)
    notebook.cells = [made for cell in notebook.cells for made in _graded(cell)]
    nbformat.validate(notebook)
    return notebook


def without_solutions(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Remove the solutions below the notebook's exercises, and links to the other solutions. Return it.

    A cell that lists a kernel which solves an exercise stays without its outputs, and a learner may run it.
    """
    notebook.cells = [cell for cell in notebook.cells if FOLDED not in cell.metadata.get("tags", [])]
    for cell in notebook.cells:
        if SOLUTIONS_LINK in cell.source:
            cell.source = cell.source.split(SOLUTIONS_LINK)[0].rstrip()
        if is_listing(cell):
            cell.outputs = []
    return notebook


def is_listing(cell: nbformat.NotebookNode) -> bool:
    """Tell whether a cell lists a kernel that solves an exercise."""
    return cell.cell_type == "code" and LISTING in cell.metadata.get("tags", [])


def _graded(cell: nbformat.NotebookNode) -> Iterator[nbformat.NotebookNode]:
    """Split an exercise's cell into what the learner writes and the check. Yield any other cell as it is."""
    is_stub = cell.cell_type == "code" and STUB in cell.metadata.get("tags", [])
    call = check_at_the_end(cell.source) if is_stub else None
    if call is None:
        yield cell
        return
    written, asked = answer_and_question(cell.source, call)
    answer = nbformat.from_dict(cell)
    answer.source, answer.outputs = written, []
    answer.metadata.nbgrader = _for_nbgrader(cell.id, solution=True)
    yield answer
    check = nbformat.v4.new_code_cell(CHECK.format(call=asked), id=f"{cell.id}-check")
    check.metadata.nbgrader = _for_nbgrader(check.id, grade=True, locked=True, points=1)
    yield check


def answer_and_question(source: str, call: str) -> tuple[str, str]:
    """Split the source of an exercise into what the learner writes and the call that checks it.

    An answer that is written into the call, as in `check.best_block(None)`, gets a name above it.
    """
    lines = [source[: source.rindex(call)].rstrip()]
    node = ast.parse(call).body[0].value
    parameters = list(inspect.signature(getattr(checks, node.func.attr)).parameters)
    for place, given in enumerate(node.args):
        if not isinstance(given, ast.Name):
            lines.append(f"{parameters[place]} = {ast.get_source_segment(call, given)}")
            node.args[place] = ast.Name(parameters[place])
    for keyword in node.keywords:
        if not isinstance(keyword.value, ast.Name):
            lines.append(f"{keyword.arg} = {ast.get_source_segment(call, keyword.value)}")
            keyword.value = ast.Name(keyword.arg)
    return "\n".join(filter(None, lines)), ast.unparse(node)


def check_at_the_end(source: str) -> str | None:
    """Return the call of a checker at the end of a cell, as text, or None if there is none."""
    last = (ast.parse(source).body or [None])[-1]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        call = ast.get_source_segment(source, last)
        return call if call.startswith("check.") else None
    return None


def _for_nbgrader(name: str, *, solution=False, grade=False, locked=False, points=None) -> dict:
    given = {"grade_id": name, "solution": solution, "grade": grade, "locked": locked, "task": False}
    return given | {"schema_version": 3} | ({} if points is None else {"points": points})
