"""Makes a page of a learner's notebook, which says how to run each exercise and folds its solution."""

from __future__ import annotations

import re

import nbformat
from nbformat.v4 import new_markdown_cell

from gemm_course.commands.site.outputs import for_a_page

# This link leads to how to get the course running.
START = "../README.md#two-commands"
# A page has cells with these tags in another form.
NOT_ON_PAGES = {"navigation", "folded"}
_CHECKER = re.compile(r"^check\.\w+\(", re.MULTILINE)
_HOW_TO_RUN = f"""<div class="course-run">

Solve it in notebook {{number}} [on your own machine]({START}): there the cell above runs, and the checker
says what is wrong, and where.

</div>"""

_RUN_IT = re.compile(r"^\*\*Press Shift\+Enter.*?(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)

Notebook = nbformat.NotebookNode


def page_of(learner: Notebook, solutions: Notebook, number: str) -> Notebook:
    """Return the notebook that Sphinx makes a page of, from the two built notebooks of chapter ``number``.

    Cells that both have stay as they are. A stub of the learner's notebook stays as well, and the cells that
    take its place in the other notebook follow it, folded.
    """
    shared = {cell.id for cell in learner.cells} & {cell.id for cell in solutions.cells}
    solved = {before: own for before, own, _ in _stretches(solutions, shared)}
    cells = []
    for before, own, cell in _stretches(learner, shared):
        cells += _exercise(own, solved.get(before, []), number)
        cells += [cell] if cell else []
    shown = [for_a_page(cell) for cell in cells if not NOT_ON_PAGES & set(cell.metadata.get("tags", []))]
    for cell in shown:
        if cell.cell_type == "markdown":
            cell.source = _RUN_IT.sub("", cell.source)  # No key runs a cell on a page.
    return nbformat.v4.new_notebook(metadata=learner.metadata, cells=shown)


def _stretches(notebook: Notebook, shared: set[str]) -> list[tuple[str, list, Notebook | None]]:
    """Return the runs of cells that ``notebook`` does not share.

    Each is the id of the cell before, the cells, and the next cell.
    """
    found, before, own = [], "", []
    for cell in notebook.cells:
        if cell.id in shared:
            found.append((before, own, cell))
            before, own = cell.id, []
        else:
            own.append(cell)
    return [*found, (before, own, None)]


def _exercise(stub: list, solution: list, number: str) -> list:
    """Return the stub's cells, a sentence on how to run them, and the folded solution."""
    if not solution:
        return stub
    cells = list(stub)
    if any(_CHECKER.search(cell.source) for cell in stub):
        cells.append(new_markdown_cell(_HOW_TO_RUN.format(number=number)))
    opening = f'<details class="course-solution" id="{solution[0].id}">\n<summary>Solution</summary>'
    return [*cells, new_markdown_cell(opening), *solution, new_markdown_cell("</details>")]
