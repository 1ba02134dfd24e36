"""A kernel's own source, shown and compared: read with inspect, so that it is always the code that runs."""

from __future__ import annotations

import difflib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from gemm_course.figures import colours

_BOX = (
    f"background:{colours.PAPER};color:{colours.INK};border:1px solid {colours.EDGE};padding:8px"
    f" 12px;overflow-x:auto;"
    "line-height:1.4;margin:0"
)
_ADDED, _GONE = "#DDF4E4", "#FBE3DF"


@dataclass(frozen=True)
class Listing:
    """Source text that displays itself: with colours in a notebook, plain elsewhere."""

    text: str
    markup: str

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.markup, "text/plain": self.text}


def source_of(kernel: Callable) -> str:
    """Return the source of a kernel, a ``cuda.jit`` dispatcher or a plain function, unindented."""
    return textwrap.dedent(inspect.getsource(getattr(kernel, "py_func", kernel))).rstrip() + "\n"


def listing(kernel: Callable) -> Listing:
    """Show a kernel's source with the line numbers that findings name."""
    text = source_of(kernel)
    formatter = HtmlFormatter(noclasses=True, nowrap=True, style="default")
    first = inspect.getsourcelines(getattr(kernel, "py_func", kernel))[1]
    coloured = highlight(text, PythonLexer(), formatter).splitlines()
    rows = "\n".join(f"{_numbered(first + place)}{line}" for place, line in enumerate(coloured))
    return Listing(text, f'<pre style="{_BOX}">{rows}</pre>')


def _numbered(line: int) -> str:
    """The line's number in its file or cell, which is what findings and errors name."""
    return f'<span style="color:{colours.QUIET};user-select:none">{line:4d}  </span>'


def difference(before: Callable, after: Callable) -> Listing:
    """Show what changed from one kernel to the next: removed lines with a minus, new ones with a plus.

    A line whose indentation changed, because a loop around it was added or removed, counts as unchanged.
    """
    lines = list(_compared(source_of(before).splitlines(), source_of(after).splitlines()))
    markup = "".join(_marked(line) for line in lines)
    return Listing("\n".join(lines), f'<pre style="{_BOX}">{markup}</pre>')


def _compared(old: list[str], new: list[str]) -> Iterator[str]:
    words = [[line.strip() for line in text] for text in (old, new)]
    for kind, a, b, c, d in difflib.SequenceMatcher(None, *words, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (f"  {line}" for line in new[c:d])
        else:
            yield from (f"- {line}" for line in old[a:b])
            yield from (f"+ {line}" for line in new[c:d])


def _marked(line: str) -> str:
    fill = {"+": _ADDED, "-": _GONE}.get(line[0], colours.PAPER)
    tag = {"+": "ins", "-": "del"}.get(line[0], "span")
    decoration = "text-decoration:none;" if tag != "span" else ""
    style = f"display:block;background:{fill};color:{colours.INK};{decoration}"
    return f'<{tag} style="{style}">{escape(line) or " "}</{tag}>'
