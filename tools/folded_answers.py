"""Folds texts that answer a question, so that nobody reads the answer too early.

Such cells of text are tagged ``answer`` (to a choice), ``thought`` (to a question without options) or
``listing``. Code folds what it shows itself, with ``see.fold``.
"""

from __future__ import annotations

import nbformat

from gemm_course.widgets._fold import FIRST as CHOOSE_FIRST

FIRST = {
    "answer": CHOOSE_FIRST,
    "thought": "Answer first, then open this.",  # the question offers no options
    "listing": "Write the exercise first, then open this.",
}


def fold_text(cell: nbformat.NotebookNode) -> None:
    """Fold a cell of text that has one of the tags."""
    first = next((FIRST[tag] for tag in cell.metadata.get("tags", []) if tag in FIRST), "")
    if first and cell.cell_type == "markdown":
        cell.source = f"<details><summary>{first}</summary>\n\n{cell.source}\n\n</details>"
