"""Draws what limits each kernel: how busy each part of the GPU is, with the limit and the next one marked.

Readers tend to take the second busiest part for a limit as well. They expect from improving it a gain that
only the busiest part can give. So the two have different frames, and the picture says what gain is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.rows import LEFT, LINE, RIGHT, heading, name_width, paragraph
from gemm_course.figures.svg import PAGE, SMALL, Drawing, text_width, unbroken, wrap
from gemm_course.figures.waits import percent
from gemm_course.profiles import Verdict
from gemm_course.profiles.verdict import LIMIT, PARTS
from gemm_course.profiles.words import three_digits

# If there are more kernels than this, each takes one line.
DETAILED = 6
# A column's heading has several lines where there is room, and a short form elsewhere.
HEADS = {
    "issue slots": (("issue", "slots"), "issue"),
    "multiply-add units": (("multiply-", "add units"), "FMA"),
    "integer units": (("integer", "units"), "int"),
    "Tensor Cores": (("Tensor", "Cores"), "TC"),
    "L1 and shared memory": (("L1 and", "shared", "memory"), "L1"),
    "L2": (("L2",), "L2"),
    "DRAM": (("DRAM",), "DRAM"),
}
_GAP = 4.0
# In a line, the name ends at _NAMES, the speed ends at _SPEED, and the cells run from _CELLS to _CELLS_END.
_NAMES, _SPEED, _CELLS, _CELLS_END = 164.0, 206.0, 214.0, 508.0


@dataclass(frozen=True)
class Row:
    """One kernel's launch. ``tflops`` is None if the kernel's work is not known."""

    label: str
    tiles: str
    tflops: float | None
    verdict: Verdict

    @property
    def speed(self) -> str:
        """The speed in TFLOPS, in words without the unit."""
        return "–" if self.tflops is None else three_digits(self.tflops)


def limits(rows: Sequence[Row], title: str, note: str) -> Picture:
    """Draw a row per kernel, and say what the figures mean.

    If there are more than `DETAILED` rows, each takes one line, and a second one where waiting is the limit.
    Otherwise each has its sentences below it. ``title`` is the picture's answer. ``note`` says where the
    figures come from.
    """
    drawing = Drawing(title)
    detailed = len(rows) <= DETAILED
    y = drawing.top
    for words in (_FIGURES, *(() if detailed else (_SHORT,))):
        y = paragraph(drawing, words, y) + 3
    y = _marks(drawing, rows, y) + 3
    for words in _doubts(rows):
        y = paragraph(drawing, words, y) + 3
    y = (_in_detail if detailed else _in_lines)(drawing, rows, y + 6)
    paragraph(drawing, note, y)
    return drawing.picture(_in_words(rows, detailed, note)).plain


_FIGURES = (
    "How busy each part of the GPU is, in percent of the clocks: while one warp waits, others keep it busy."
)
_SHORT = f"{', '.join(f'{short} = {part}' for part, (_, short) in HEADS.items() if short != part)}."
_GAIN = (
    "At most: if the busiest part took no time, and all others still needed their clocks. Whether it is the "
    "limit, only taking its work away shows."
)
_THE_LIMIT = f"the busiest, if {percent(LIMIT)} or more"
_THE_NEXT = "what would be next"
_NO_LIMIT = "Without a thick frame no part is busy enough: warps wait too much."
_NO_WAITING = "At most, there: if they never waited, until the busiest part is full."


def _doubts(rows: Sequence[Row]) -> Iterator[str]:
    """Yield sentences on what "at most" means here, and what a missing frame means."""
    waiting = [row for row in rows if row.verdict.waiting]
    if waiting and len(waiting) < len(rows):
        yield _NO_LIMIT
    if waiting and len(rows) > DETAILED:
        yield _NO_WAITING
    if any(not row.verdict.working for row in rows if row not in waiting):
        yield _GAIN
    for work in dict.fromkeys(row.verdict.work for row in rows if row.verdict.working):
        yield f"Where {work} are the busiest, the figure is: if they were always busy."


def _marks(drawing: Drawing, rows: Sequence[Row], y: float) -> float:
    """Explain the frames that occur. Return the lower edge."""
    x, limited = LEFT, any(not row.verdict.waiting for row in rows)
    for words, mark in (*([(_THE_LIMIT, "limit")] if limited else []), (_THE_NEXT, "next")):
        _frame(drawing, mark, x, y + 2, 26, 15)
        drawing.text(x + 33, y + 14, words)
        x += 33 + text_width(words) + 12
    return y + 21


# --- few: wide cells, with sentences below -----------------------------------------------------------------


def _in_detail(drawing: Drawing, rows: Sequence[Row], y: float) -> float:
    high = max(len(lines) for lines, _ in HEADS.values())
    wide = (RIGHT - LEFT + _GAP) / len(HEADS)
    for place, (lines, _) in enumerate(HEADS.values()):
        for line, words in enumerate(lines, high - len(lines)):
            centre = LEFT + wide * place + (wide - _GAP) / 2
            drawing.text(centre, y + 14 + 16 * line, words, anchor="middle", fill=colours.QUIET)
    y += 16 * high + 8
    for row in rows:
        speed = "" if row.tflops is None else f"{row.speed} TFLOPS"
        y = heading(drawing, row.label, row.tiles, speed, y)
        _cells(drawing, row.verdict, LEFT, y, wide, 24)
        y += 28
        for sentence in row.verdict.sentences:
            y = paragraph(drawing, unbroken(sentence), y, fill=colours.INK)
        y += 16
    return y - 6


# --- many: one line each ------------------------------------------------------------------------------------


def _in_lines(drawing: Drawing, rows: Sequence[Row], y: float) -> float:
    wide = (_CELLS_END - _CELLS + _GAP) / len(HEADS)
    drawing.text(_SPEED, y + 28, "TFLOPS", anchor="end", fill=colours.QUIET)
    for place, (_, short) in enumerate(HEADS.values()):
        centre = _CELLS + wide * place + (wide - _GAP) / 2
        drawing.text(centre, y + 28, short, anchor="middle", fill=colours.QUIET)
    for line, words in enumerate(("at", "most")):
        drawing.text(RIGHT, y + 14 + 14 * line, words, anchor="end", fill=colours.QUIET)
    y += 36
    for place, row in enumerate(rows):
        y = _line(drawing, row, y, wide, shaded=place % 2 == 1)
    return y + 4


def _line(drawing: Drawing, row: Row, y: float, wide: float, *, shaded: bool) -> float:
    """Draw a kernel's line, with a long label above the figures and with tiles and waits below them.

    Return the lower edge.
    """
    above = name_width(row.label) > _NAMES - LEFT
    below = wrap(row.tiles, SMALL, RIGHT - LEFT) if row.tiles else []
    below += wrap(_waited(row.verdict), SMALL, PAGE - LEFT) if row.verdict.waiting else []
    high = 26 + LINE * (above + len(below))
    if shaded:
        drawing.rect(0, y - 3, PAGE, high, colours.BAND)
    drawing.text(LEFT, y + 15, row.label, bold=True)
    figures = y + LINE * above
    drawing.text(_SPEED, figures + 15, row.speed, anchor="end")
    _cells(drawing, row.verdict, _CELLS, figures, wide, 20)
    drawing.text(RIGHT, figures + 15, three_digits(row.verdict.at_most), anchor="end")
    for place, words in enumerate(below):
        drawing.text(LEFT, figures + 35 + LINE * place, words, fill=colours.INK)
    return y + high


def _waited(verdict: Verdict) -> str:
    return f"waits {percent(verdict.waited)} of its time {verdict.wait_in_words}"


# --- a cell for each part -----------------------------------------------------------------------------------


def _cells(drawing: Drawing, verdict: Verdict, x: float, y: float, wide: float, high: float) -> None:
    """Draw a bar from 0 to 100 % per part with its figure. A part that was not measured has a dash."""
    for place, part in enumerate(PARTS):
        left = x + wide * place
        mark = _mark(verdict, part)
        share = verdict.busy.get(part)
        fill = colours.LIMIT if mark == "limit" else colours.BUSY
        drawing.rect(left, y, (wide - _GAP) * min(share or 0, 1), high, fill, title=_tip(part, share))
        _frame(drawing, mark, left, y, wide - _GAP, high)
        words = "–" if share is None else percent(share).removesuffix("\u00a0%")
        centre = left + (wide - _GAP) / 2
        drawing.text(centre, y + high / 2 + 5, words, anchor="middle", bold=mark == "limit")


def _mark(verdict: Verdict, part: str) -> str:
    if part == verdict.limiter and not verdict.waiting:
        return "limit"
    return "next" if part == verdict.next else ""


def _frame(drawing: Drawing, mark: str, x: float, y: float, wide: float, high: float) -> None:
    line, dash = {"limit": (2.6, ""), "next": (1.6, "4 3"), "": (0.8, "")}[mark]
    stroke = colours.INK if mark else colours.EDGE
    drawing.rect(x, y, wide, high, "none", stroke=stroke, line=line, dash=dash)


def _tip(part: str, share: float | None) -> str:
    return "" if share is None else f"{part} {percent(share)}"


# --- the same in words --------------------------------------------------------------------------------------


def _in_words(rows: Sequence[Row], detailed: bool, note: str) -> str:
    told = [_row_in_words(row, detailed) for row in rows]
    return " ".join([_FIGURES, *told, *_doubts(rows), note])


def _row_in_words(row: Row, detailed: bool) -> str:
    tiles = f" ({row.tiles})" if row.tiles else ""
    speed = "" if row.tflops is None else f", {row.speed} TFLOPS"
    busy = ", ".join(f"{part} {percent(share)}" for part, share in row.verdict.busy.items())
    return f"{row.label}{tiles}{speed}: {busy}. {row.verdict if detailed else _in_short(row.verdict)}"


def _in_short(verdict: Verdict) -> str:
    faster = f"at most {three_digits(verdict.at_most)} times as fast"
    limit = verdict.limit_in_words if verdict.waiting else verdict.limiter
    return f"{verdict.heading}: {limit}; next {verdict.next}; {faster}."
