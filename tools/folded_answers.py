"""Folds cells that answer a question, so that nobody reads the answer too early.

Such cells are tagged ``answer`` (to a choice), ``thought`` (to a question without options) or ``listing``.

Text is folded in the cell itself. In a code cell the shipped outputs are folded; a learner who runs the cell
sees the new ones at once.
"""

from __future__ import annotations

import html

import nbformat

FIRST = {
    "answer": "Choose your answer first, then open this.",
    "thought": "Answer first, then open this.",  # the question offers no options
    "listing": "Write the exercise first, then open this.",
}
EXPLORER = "application/vnd.gemm-course.explorer+json"


def fold_text(cell: nbformat.NotebookNode) -> None:
    """Fold a cell of text that has one of the tags."""
    first = _what_comes_first(cell)
    if first and cell.cell_type == "markdown":
        cell.source = folded(f"\n\n{cell.source}\n\n", first)


def fold_outputs(cell: nbformat.NotebookNode) -> None:
    """Fold the outputs of a code cell that has one of the tags. Explorers are folded by the browser."""
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
    """The outputs, with everything printed as one output that can be folded; a stream cannot."""
    printed = "".join(output.text for output in outputs if output.output_type == "stream")
    others = [output for output in outputs if output.output_type != "stream"]
    if not printed:
        return others
    return [nbformat.v4.new_output("display_data", data={"text/plain": printed}), *others]


def folded(content: str, first: str) -> str:
    """Put content behind a line that opens it and says what to do first."""
    return f"<details><summary>{first}</summary>{content}</details>"


def _what_comes_first(cell: nbformat.NotebookNode) -> str:
    """What the learner does before opening the cell; "" if it is not folded."""
    return next((FIRST[tag] for tag in cell.metadata.get("tags", []) if tag in FIRST), "")
