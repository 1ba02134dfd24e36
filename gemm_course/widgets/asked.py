"""Draws a state of an explorer in the one function that the browser calls.

The course's JupyterLab extension calls `answer` in a notebook's kernel, in trusted notebooks only, and hands
it one JSON text. No cell has to have been run. For an output from before a GPU was measured, the picture
shows the H200.
"""

from __future__ import annotations

import json
from typing import Any

from IPython.display import JSON

from gemm_course.widgets import _calls
from gemm_course.widgets._gpus import with_gpu

GONE = "This picture is drawn from what its cell defined. Run the cells up to this one again, then move."
CHANGED = "The course has changed since this cell was run. Run the cell again, then move."


def answer(asked: str) -> JSON:
    """Return {"picture": [source, alt]} for a state, or {"words": why it cannot be drawn}.

    ``asked`` is JSON with "call", a name and its arguments, or "own", the name of an explorer that this
    kernel holds. "at" has the texts of the options that are chosen. "action", if present, is the button that
    was pressed.
    """
    return JSON(_answer(**json.loads(asked)))


def _answer(
    at: list[str], call: list | None = None, own: str | None = None, action: str | None = None
) -> dict[str, Any]:
    try:
        explorer = _calls.kept(own) if call is None else _calls.Call(call[0], json.dumps(call[1])).explorer()
    except _calls.Gone:
        return {"words": GONE if call is None else CHANGED}
    try:
        state = explorer.controls.of_texts(with_gpu(at, explorer.controls))
    except ValueError:
        return {"words": CHANGED}
    said = {"words": explorer.act(action, state)} if action in explorer.actions else {}
    picture = explorer.picture(state)
    return {"picture": [picture.data, picture.alt], **said}
