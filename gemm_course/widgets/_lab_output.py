"""Makes the output of an explorer that the browser draws: its parts, and words where nothing can move.

An output has three parts. The course's own MIME type holds a spec: the controls, with tables of what they
offer, and where pictures come from. ``text/html`` is a still picture of the first state with its alt text,
which every other reader shows, and a line that says how to get the controls. ``text/plain`` is the alt text.

The browser takes the still from the output. It takes the other pictures from the stored frames of this call
if there are any, and else from Python. `asked.answer` is the one function that it calls.

A static page uses the same script. It puts the spec and the still into one element,

    <div data-gemm-explorer="SPEC AS JSON">THE OUTPUT'S text/html</div>

and loads ``explorer.js`` from a copy of the extension's folder ``static``, which has ``explorer.css`` and
``frames/`` beside it. The script turns every such element into an explorer, from a server or from disk.

A fold (`_fold.py`) that has explorers is of another MIME type. It holds the line that opens the fold, and for
each part of the fold's ``text/html`` the spec of an explorer, or null. On a static page it needs no type of
its own: the parts' elements get their specs as above.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any

from IPython.display import display

from gemm_course.widgets import _calls, _frames
from gemm_course.widgets._explorer import Pointing
from gemm_course.widgets._states import Control, Controls

MIME = "application/vnd.gemm-course.explorer+json"
FOLD = "application/vnd.gemm-course.fold+json"
HOW = "Run this cell to get controls; in the course's own JupyterLab they are there at once."


def show(output: dict[str, Any]) -> None:
    """Display the output of an explorer or of a fold for the browser to draw."""
    display(output, raw=True)


def bundle(explorer: Any, call: _calls.Call | None) -> dict[str, Any]:
    """Return the output of a cell that shows an explorer, by MIME type."""
    state = explorer.controls.start()
    picture = explorer.picture(state)
    known = _frames.known(call.slug) if call else None
    # The stored frames lack the GPU of a learner who has measured one.
    if known and not _same(known["controls"], explorer.controls):
        known = None
    spec = dict(known) if known else {"controls": described(explorer.controls), "width": picture.width}
    spec["at"] = explorer.controls.texts(state)
    spec["actions"] = list(explorer.actions)
    if explorer.pointing:
        spec["pointing"] = _pointed(explorer.controls, explorer.pointing)
    if call:
        spec |= {"call": [call.name, json.loads(call.arguments)], "frames": call.slug if known else None}
    else:
        spec["own"] = _calls.keep(explorer)
    return {MIME: spec, "text/html": still(explorer.controls, state, picture), "text/plain": picture.alt}


def still(controls: Controls, state: dict[str, Any], picture) -> str:
    """Return HTML with a picture, the values of its controls, and how to get the controls."""
    texts = zip(controls.all, controls.texts(state), strict=True)
    said = " · ".join(f"{control.label}: {text}" for control, text in texts)
    return f"{picture.html()}<p><small>{escape(said)}. {HOW}</small></p>"


def described(controls: Controls) -> list[dict[str, Any]]:
    """Return the controls for a spec: labels, kinds, and tables of options by the places above them."""
    return [_described(controls, control) for control in controls.all]


def _same(stored: list[dict[str, Any]], controls: Controls) -> bool:
    """Tell whether controls are those of stored frames, by their labels and their fixed options.

    Options that depend on other controls are not compared.
    """
    if [each["label"] for each in stored] != [control.label for control in controls.all]:
        return False
    pairs = zip(stored, controls.all, strict=True)
    return all(
        each == _described(controls, control) for each, control in pairs if not callable(control.options)
    )


def _pointed(controls: Controls, pointing: Pointing) -> dict[str, Any]:
    places = list(controls.by_name)
    return {
        "box": [round(part, 4) for part in pointing.box],
        "cells": [pointing.rows, pointing.columns],
        "controls": [places.index(pointing.row), places.index(pointing.column)],
        "words": pointing.words,
    }


def _described(controls: Controls, control: Control) -> dict[str, Any]:
    table = controls.table(control)
    places = {name: place for place, name in enumerate(controls.by_name)}
    return {
        "label": control.label,
        "kind": controls.kind(control),
        "of": [places[name] for name in table.of],
        "rows": {",".join(map(str, place)): _short(texts) for place, texts in table.rows.items()},
    }


def _short(texts: tuple[str, ...]) -> list[str] | dict[str, int]:
    """Shorten whole numbers in equal steps to first, step and count. Return all else as a list."""
    numbers = [int(text) if text.isdecimal() and str(int(text)) == text else None for text in texts]
    if len(numbers) < 3 or None in numbers:
        return list(texts)
    step = numbers[1] - numbers[0]
    if numbers != [numbers[0] + step * place for place in range(len(numbers))]:
        return list(texts)
    return {"from": numbers[0], "step": step, "count": len(numbers)}
