"""Makes the mark of each kind of machine instruction: two letters on a colour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from gemm_course.compiler.kinds import KINDS
from gemm_course.compiler.result import PLURALS
from gemm_course.figures import colours
from gemm_course.figures.svg import MONO

_LETTERS = {
    "multiply-add": "MA",
    "Tensor Core product": "TC",
    "other arithmetic": "FP",
    "global load": "GL",
    "global store": "GS",
    "asynchronous copy": "AC",
    "shared load": "SL",
    "shared store": "SS",
    "atomic": "AT",
    "local memory": "LM",
    "integer arithmetic": "IN",
    "compare and select": "CS",
    "branch": "BR",
    "barrier and fence": "BF",
    "move": "MV",
    "other": "OT",
}
MARKS = {kind: (letters, colours.OF_KIND[kind]) for kind, letters in _LETTERS.items()}
# A bar is this many pixels wide.
_BAR = 40


def counted(count: int, kind: str) -> str:
    """Return a number with the name of a kind, such as "2,048 multiply-adds"."""
    return f"{count:,} {kind if count == 1 else PLURALS[kind]}"


def all_counted(counts: Mapping[str, int]) -> str:
    """Return the kinds that occur and their counts, most frequent first: "128 shared loads, 2 branches"."""
    most = sorted((kind for kind in counts if counts[kind]), key=lambda kind: -counts[kind])
    return ", ".join(counted(counts[kind], kind) for kind in most)


def mark(kind: str) -> str:
    """Return the two letters of a kind on its colour, as HTML, in the surrounding font."""
    letters, fill = MARKS[kind]
    return f'<span style="background:{fill};color:{colours.text_on(fill)};padding:0 2px">{letters}</span>'


def mark_in_words(kind: str) -> str:
    """Return the mark of a kind, for a place among words."""
    return f'<span style="font-family:{MONO};font-size:12px">{mark(kind)}</span>'


def bar(counts: Mapping[str, int]) -> str:
    """Return a strip, as HTML, with a part for each kind that shows the share of its instructions."""
    parts = "".join(_part(kind, counts[kind]) for kind in MARKS if counts.get(kind))
    return f'<span style="display:flex;flex:0 0 {_BAR}px;width:{_BAR}px;height:11px">{parts}</span>'


def _part(kind: str, count: int) -> str:
    return (
        f'<span title="{counted(count, kind)}" style="flex:{count} 1 0;min-width:3px;height:11px;'
        f'background:{MARKS[kind][1]};border-right:1px solid {colours.PAPER};box-sizing:border-box"></span>'
    )


def legend(kinds: Iterable[str]) -> str:
    """Return the marks of these kinds with their names, as HTML. A part that opens says what each is."""
    there = set(kinds)
    shown = [kind for kind in MARKS if kind in there]
    names = "".join(f'<span style="white-space:nowrap">{mark_in_words(kind)} {kind}</span>' for kind in shown)
    rows = "".join(f"<div><b>{kind}</b>: {escape(KINDS[kind])}</div>" for kind in shown)
    wide = "<div>In the name of a load or store, 64 or 128 are bits per thread: LDS.128 loads 4 FP32.</div>"
    return (
        f'<div style="display:flex;flex-wrap:wrap;column-gap:12px;font-size:12px">{names}</div>'
        '<details style="font-size:12px"><summary data-lm-suppress-shortcuts="true" style="cursor:pointer">'
        f"what each kind is</summary>{rows}{wide}</details>"
    )
