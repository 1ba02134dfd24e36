"""Folds what answers a prediction, so that nobody reads it below the question: cells tagged ``answer``.

Text is folded in the cell itself. Of a code cell the outputs are, as they ship; a learner who runs the cell
sees them at once.
"""

from __future__ import annotations

import nbformat

TAG = "answer"
FIRST = "Choose your answer first, then open this."
EXPLORER = "application/vnd.gemm-course.explorer+json"


def fold_text(cell: nbformat.NotebookNode) -> None:
    """Fold a cell of text that carries the tag."""
    if cell.cell_type == "markdown" and _is_answer(cell):
        cell.source = folded(f"\n\n{cell.source}\n\n")


def fold_outputs(cell: nbformat.NotebookNode) -> None:
    """Fold the pictures below a code cell that carries the tag; in explorers the browser does it."""
    for output in cell.get("outputs", []) if _is_answer(cell) else ():
        data = output.get("data", {})
        if "text/html" in data:
            data["text/html"] = folded(data["text/html"])
        if EXPLORER in data:
            data[EXPLORER]["folded"] = FIRST


def folded(content: str) -> str:
    """Put content behind a line that opens it."""
    return f"<details><summary>{FIRST}</summary>{content}</details>"


def _is_answer(cell: nbformat.NotebookNode) -> bool:
    return TAG in cell.metadata.get("tags", [])
