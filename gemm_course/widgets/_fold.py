"""Folds what a cell shows behind one line, so that no answer is in sight when the cell is run.

    see.fold(lambda: see.block())
    see.fold(see.source("block_tiled"), first="Write the exercise first, then open this.")

The fold is a ``<details>`` in the output's HTML, with one ``<div class="gemm-part">`` for each thing that is
shown. Every browser opens it by a click or by Enter. It is closed again when the cell is run again. The still
pictures of explorers are parts like any other; `_lab_output.py` and `_widget_output.py` say how the controls
come to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from inspect import isroutine
from typing import Any

from IPython.display import display
from IPython.utils.capture import RichOutput, capture_output

from gemm_course.widgets import _showing
from gemm_course.widgets._lab_output import FOLD, MIME

FIRST = "Choose your answer first, then open this."
PART = '<div class="gemm-part">'
# Without the attribute, JupyterLab would take keys that are typed on the line as its own.
_LINE = '<summary style="cursor: pointer" data-lm-suppress-shortcuts="true">{}</summary>'
_IMAGES = ("image/png", "image/jpeg")


@dataclass(frozen=True)
class _Part:
    """One thing that a fold holds. ``explorer`` is the spec of an explorer, and None for anything else."""

    html: str
    plain: str
    explorer: dict[str, Any] | None = None


def fold(*contents: Any, first: str = FIRST) -> None:
    """Show ``contents`` behind the line ``first``, which opens with a click or Enter.

    Each of them is a value, or a function without arguments. What such a function prints and displays is
    folded, and so is the value that it returns. What displays itself, such as an explorer, must be in a
    function. A text is shown without quotes. What is printed comes first. An error of such a function stays
    as it is. Raise ValueError if there is nothing to show.
    """
    parts = [part for content in contents for part in _parts(content)]
    if not parts:
        raise ValueError(
            "there is nothing to fold: pass a value, or a function if something displays itself, as in "
            "see.fold(lambda: see.block())"
        )
    _showing.show_bundle(_bundle(parts, first))


def _parts(content: Any) -> list[_Part]:
    with _showing.in_a_fold(), capture_output(stderr=False) as captured:
        value = content() if isroutine(content) else content
        if isinstance(value, str):
            print(value)
        elif value is not None:
            display(value)
    printed = [_Part(_preformatted(captured.stdout), captured.stdout)] if captured.stdout else []
    shown = [output.data for output in _last_of_each(captured.outputs) if any(output.data.values())]
    return printed + [_part(data) for data in shown]


def _last_of_each(outputs: list[RichOutput]) -> list[RichOutput]:
    """Return the outputs without those that an update replaced, such as earlier states of a progress bar."""
    last: dict[Any, RichOutput] = {}
    for place, output in enumerate(outputs):
        last[output.transient.get("display_id", place)] = output
    return list(last.values())


def _part(data: dict[str, Any]) -> _Part:
    plain = data.get("text/plain", "")
    return _Part(_html(data), plain, data.get(MIME))


def _html(data: dict[str, Any]) -> str:
    """Return an output as HTML, from the best of its MIME types that a page can show by itself."""
    for mime in ("text/html", "image/svg+xml"):
        if mime in data:
            return data[mime]
    plain = data.get("text/plain", "")
    for mime in _IMAGES:
        if mime in data:
            return f'<img alt="{escape(plain)}" src="data:{mime};base64,{data[mime].strip()}">'
    return _preformatted(data.get("text/markdown", plain))


def _preformatted(text: str) -> str:
    return f'<pre style="white-space: pre-wrap">{escape(text)}</pre>'


def _bundle(parts: list[_Part], first: str) -> dict[str, Any]:
    """Return the output of a cell that shows a fold, by MIME type."""
    inside = "".join(f"{PART}{part.html}</div>" for part in parts)
    bundle: dict[str, Any] = {
        "text/html": f"<details>{_LINE.format(escape(first))}{inside}</details>",
        "text/plain": "\n\n".join([first, *(part.plain for part in parts)]),
    }
    if any(part.explorer for part in parts):
        bundle[FOLD] = {"first": first, "explorers": [part.explorer for part in parts]}
    return bundle
