"""Prepares cells' outputs for a page, where a script draws the explorers and there is no kernel."""

from __future__ import annotations

import html
import json

import nbformat

from gemm_course.widgets._lab_output import MIME as EXPLORER

NEEDS_A_KERNEL = "application/vnd.jupyter.widget-view+json"


def for_a_page(cell: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return ``cell`` with outputs for a page."""
    if cell.cell_type != "code":
        return cell
    outputs = [_drawn(output) for output in cell.outputs if NEEDS_A_KERNEL not in output.get("data", {})]
    return nbformat.from_dict({**cell, "outputs": outputs})


def _drawn(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return an explorer's output as the HTML element that the script looks for, with its still picture.

    Return any other output as it is.
    """
    data = output.get("data", {})
    if EXPLORER not in data:
        return output
    spec = html.escape(json.dumps(data[EXPLORER], ensure_ascii=False))
    element = f'<div data-gemm-explorer="{spec}">{data["text/html"]}</div>'
    others = {mime: value for mime, value in data.items() if mime != EXPLORER}
    return nbformat.from_dict({**output, "data": {**others, "text/html": element}})
