"""Folds what answers a question, so that nobody reads it below that.

Cells are tagged ``answer`` (to a choice), ``thought`` (to a question without options) or ``listing``.

Text is folded in the cell itself. Of a code cell the outputs are, as they ship; a learner who runs the cell
sees them at once.
"""

from __future__ import annotations

import html

import nbformat

FIRST = {
    "answer": "Choose your answer first, then open this.",
    "thought": "Answer first, then open this.",  # where no options are offered
    "listing": "Write the exercise first, then open this.",
}
EXPLORER = "application/vnd.gemm-course.explorer+json"


def fold_text(cell: nbformat.NotebookNode) -> None:
    """Fold a cell of text that carries a tag."""
    first = _what_comes_first(cell)
    if first and cell.cell_type == "markdown":
        cell.source = folded(f"\n\n{cell.source}\n\n", first)


def fold_outputs(cell: nbformat.NotebookNode) -> None:
    """Fold what stands below a code cell that carries a tag; in explorers the browser does it."""
    first = _what_comes_first(cell)
    if not first or cell.cell_type != "code":
        return
    cell.outputs = _printed_as_one(cell.outputs)
    for output in cell.outputs:
        data = output.get("data", {})
        if data:
            shown = data.get("text/html") or f"<pre>{html.escape(data['text/plain'])}</pre>"
            data["text/html"] = folded(shown, first)
        if EXPLORER in data:
            data[EXPLORER]["folded"] = first


def _printed_as_one(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Outputs with all that was printed as one, which can be folded as a stream cannot."""
    printed = "".join(output.text for output in outputs if output.output_type == "stream")
    others = [output for output in outputs if output.output_type != "stream"]
    if not printed:
        return others
    return [nbformat.v4.new_output("display_data", data={"text/plain": printed}), *others]


def folded(content: str, first: str) -> str:
    """Put content behind a line that opens it and says what comes first."""
    return f"<details><summary>{first}</summary>{content}</details>"


def _what_comes_first(cell: nbformat.NotebookNode) -> str:
    """What the learner does before opening the cell, "" if it stands open."""
    return next((FIRST[tag] for tag in cell.metadata.get("tags", []) if tag in FIRST), "")
