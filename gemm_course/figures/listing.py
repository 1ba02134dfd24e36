"""Shows and compares kernels' sources, which inspect reads, so that they are always the code that runs."""

from __future__ import annotations

import difflib
import inspect
import io
import textwrap
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gemm_course.figures import colours
from gemm_course.figures.svg import MONO
from gemm_course.figures.syntax import coloured

# The styles repeat what notebooks usually set, because other pages lack these settings and JupyterLab breaks
# words.
_BOX = (
    f"background:{colours.PAPER};color:{colours.INK};border:1px solid {colours.EDGE};padding:8px 12px;"
    f"margin:0;overflow-x:auto;font-family:{MONO};font-size:13px;line-height:1.45;"
    "white-space:pre-wrap;overflow-wrap:normal;word-break:normal"
)
# The continuation of a long line is indented by this many more columns.
_FURTHER = 4
# Each sign has its HTML tag, its ground and its edge.
_CHANGED = {
    "+": ("ins", colours.NOW_PALE, colours.NOW),
    "-": ("del", colours.BAND, colours.OTHER),
    " ": ("span", colours.PAPER, colours.PAPER),
}


@dataclass(frozen=True)
class Listing:
    """A source text, which a notebook shows in colours and any other place shows plain."""

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
    first = inspect.getsourcelines(getattr(kernel, "py_func", kernel))[1]
    rows = zip(text.splitlines(), coloured(text), strict=True)
    lines = "".join(
        _line("span", f"{_numbered(first + place)}{markup}", 6 + _indent(line))
        for place, (line, markup) in enumerate(rows)
    )
    return Listing(text, f'<pre style="{_BOX}">{lines}</pre>')


def _numbered(line: int) -> str:
    """Return the line's number in its file or cell, which findings and errors name, as HTML."""
    return f'<span style="color:{colours.QUIET};user-select:none">{line:4d}  </span>'


def _line(tag: str, markup: str, indent: int, style: str = "") -> str:
    """Return one line as HTML. A line that is too long goes on further right than it began."""
    columns = indent + _FURTHER
    hanging = f"display:block;padding-left:{columns}ch;text-indent:-{columns}ch;{style}"
    return f'<{tag} style="{hanging}">{markup}\n</{tag}>'


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


# ---- what changed ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Line:
    """A line of a source. ``code`` is the line without its indentation and its comment."""

    text: str
    markup: str
    code: str


def difference(before: Callable, after: Callable) -> Listing:
    """Show what changed from one kernel to the next: removed lines with a minus, new ones with a plus.

    A line counts as unchanged if only its comment changed, or only its indentation because a loop around it
    was added or removed. A line that is only a comment is never marked, and the new one is shown.
    """
    compared = list(_compared(_lines(source_of(before)), _lines(source_of(after))))
    text = "\n".join(f"{sign} {line.text}" for sign, line in compared)
    return Listing(text, f'<pre style="{_BOX}">{"".join(_marked(*each) for each in compared)}</pre>')


def _lines(source: str) -> list[_Line]:
    comments = {
        token.start[0]: token.start[1]
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    rows = enumerate(zip(source.splitlines(), coloured(source), strict=True), 1)
    return [_Line(text, markup, text[: comments.get(row)].strip()) for row, (text, markup) in rows]


def _compared(old: list[_Line], new: list[_Line]) -> Iterator[tuple[str, _Line]]:
    """Yield each line with its sign: "-", "+", or a space where nothing changed."""
    was, now = ([line.code for line in lines if _counts(line)] for lines in (old, new))
    removed, kept = ([line for line in lines if _counts(line)] for lines in (old, new))
    # This iterator puts the new comments in their places.
    beside = iter(new)
    for kind, a, b, c, d in difflib.SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
        if kind != "equal":
            yield from (("-", line) for line in removed[a:b])
        for line in kept[c:d]:
            for other in beside:
                if other is line:
                    break
                yield " ", other
            yield " " if kind == "equal" else "+", line
    yield from ((" ", line) for line in beside)


def _counts(line: _Line) -> bool:
    """Tell whether a line has code or is empty, and so is not a mere comment."""
    return bool(line.code) or not line.text.strip()


def _marked(sign: str, line: _Line) -> str:
    tag, ground, edge = _CHANGED[sign]
    style = f"background:{ground};border-left:4px solid {edge};color:{colours.INK};text-decoration:none"
    return _line(tag, f"{sign} {line.markup}", 2 + _indent(line.text), style)
