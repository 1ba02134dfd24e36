"""Prepares cells' outputs for a page, where a script draws the explorers and there is no kernel."""

from __future__ import annotations

import html
import json

import nbformat

from gemm_course.widgets._fold import PART
from gemm_course.widgets._lab_output import FOLD
from gemm_course.widgets._lab_output import MIME as EXPLORER

NEEDS_A_KERNEL = "application/vnd.jupyter.widget-view+json"


def for_a_page(cell: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return ``cell`` with outputs for a page."""
    if cell.cell_type != "code":
        return cell
    outputs = [_drawn(output) for output in cell.outputs if NEEDS_A_KERNEL not in output.get("data", {})]
    return nbformat.from_dict({**cell, "outputs": outputs})


def _drawn(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return explorers as the HTML elements that the script looks for, with their still pictures.

    Return any other output as it is.
    """
    data = output.get("data", {})
    if EXPLORER in data:
        markup = f"{_element(data[EXPLORER])}{data['text/html']}</div>"
    elif FOLD in data:
        line, *parts = data["text/html"].split(PART)
        specs = data[FOLD]["explorers"]
        opened = (_element(spec) if spec else PART for spec in specs)
        markup = line + "".join(tag + part for tag, part in zip(opened, parts, strict=True))
    else:
        return output
    others = {mime: value for mime, value in data.items() if mime not in (EXPLORER, FOLD)}
    return nbformat.from_dict({**output, "data": {**others, "text/html": markup}})


def _element(spec: dict) -> str:
    """Return the opening tag of an explorer's element."""
    return f'<div data-gemm-explorer="{html.escape(json.dumps(spec, ensure_ascii=False))}">'
