"""Draws a GPU's multiprocessors over time, each as a line with the tiles that it computes."""

from __future__ import annotations

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import PAGE, SMALL, Drawing, wrap
from gemm_course.model.schedule import SMS, STREAM_K, Schedule, Stretch

_LEFT, _RIGHT = 60.0, PAGE - 12
# A multiprocessor's line is this many units high.
_ROW = 2.4
_HEIGHT = SMS * _ROW
_NOTE_LINES = 3
_COLOUR = {"multiplies": colours.NOW, "parts": colours.NOW_PALE, "stores": colours.C}


def draw(run: Schedule, longest: float) -> Picture:
    """Draw what the 132 multiprocessors do.

    ``longest`` is the number of clocks at the right end, which is the same for pictures that are compared.
    """
    drawing = Drawing(_title(run), title_lines=2)
    top = drawing.top + 4
    scale = (_RIGHT - _LEFT) / longest
    drawing.rect(_LEFT, top, run.clocks * scale, _HEIGHT, colours.IDLE, stroke=colours.EDGE)
    for stretch in run.stretches:
        _stretch(drawing, stretch, top, scale)
    drawing.text(8, top + 12, "SM 0")
    drawing.text(8, top + _HEIGHT, f"SM {SMS - 1}")
    end = _LEFT + run.clocks * scale
    drawing.line(end, top - 4, end, top + _HEIGHT + 4, width=2)
    _axis(drawing, longest, top + _HEIGHT, scale)
    shared = any(s.what == "parts" for s in run.stretches)
    _legend(drawing, top + _HEIGHT + 44, shared=shared, empty=_empty(run))
    lines = wrap(_notes(shared), SMALL, PAGE - 16)
    # Every state has the same number of lines, so that the picture does not jump.
    for place in range(_NOTE_LINES):
        line = lines[place] if place < len(lines) else ""
        drawing.text(8, top + _HEIGHT + 112 + 18 * place, line, fill=colours.QUIET)
    return drawing.picture(_in_words(run))


def _stretch(drawing: Drawing, stretch: Stretch, top: float, scale: float) -> None:
    x, wide, high = (
        _LEFT + stretch.begin * scale,
        (stretch.end - stretch.begin) * scale,
        stretch.blocks * _ROW,
    )
    if stretch.what == "waits":
        drawing.hatch(x, top, wide, high)
        return
    outline = colours.INK if stretch.what in ("multiplies", "parts") else "none"
    drawing.rect(x, top, wide, high, _COLOUR[stretch.what], stroke=outline, line=0.7)
    for block, clock in stretch.cuts:
        drawing.rect(_LEFT + clock * scale - 2.5, top + block * _ROW, 5, _ROW, colours.INK)


def _axis(drawing: Drawing, longest: float, y: float, scale: float) -> None:
    each = next(step for step in (10, 50, 100, 500, 1000, 2000) if longest / 1000 / step <= 6)
    for thousands in range(0, int(longest / 1000) + 1, each):
        x = _LEFT + thousands * 1000 * scale
        drawing.line(x, y, x, y + 5)
        drawing.text(x, y + 20, f"{thousands:,}", size=SMALL, anchor="middle")
    drawing.text(8, y + 20, "1,000", size=13)
    drawing.text(8, y + 34, "clocks", size=13)


def _legend(drawing: Drawing, y: float, *, shared: bool, empty: str) -> None:
    drawing.rect(8, y, 22, 13, colours.NOW, stroke=colours.INK)
    drawing.text(36, y + 12, "multiplies a tile", size=13)
    drawing.rect(160, y, 22, 13, colours.C)
    drawing.text(188, y + 12, "stores, multiplies nothing", size=13)
    drawing.hatch(370, y, 22, 13)
    drawing.text(398, y + 12, "waits for operands", size=13)
    drawing.rect(8, y + 22, 22, 13, colours.IDLE, stroke=colours.EDGE)
    drawing.text(36, y + 34, "idle" if shared else f"idle: {empty}", size=13)
    if shared:
        drawing.rect(160, y + 22, 22, 13, colours.NOW_PALE, stroke=colours.INK)
        drawing.rect(168, y + 24, 5, 9, colours.INK)
        drawing.text(188, y + 34, "its share of the tiles that are left; a mark: on to the next", size=13)


def _title(run: Schedule) -> str:
    return (
        f"{run.size}³ in tiles of 128 × {run.BN}: {run.clocks / 1000:,.0f} thousand clocks, "
        f"and SMs multiply {100 * run.multiplying:.0f}\u00a0% of the time"
    )


def _empty(run: Schedule) -> str:
    places = run.waves * SMS
    return f"{100 * (places - run.tiles) / places:.0f}\u00a0% of the places in waves are empty"


def _notes(shared: bool) -> str:
    computed = (
        "Computed from clocks of single steps on an H200, not measured: each SM takes equally long for one."
    )
    launch = " Tiles are shared in a second launch. Its green is writing, counting and adding up."
    return computed + launch * shared


def _in_words(run: Schedule) -> str:
    waves = "1 wave" if run.waves == 1 else f"{run.waves} waves"
    last = (
        f"Full waves, then all SMs share the steps of the {run.last} tiles that are left."
        if run.kind == STREAM_K and run.last < SMS
        else f"{SMS - run.last} SMs are idle in the last wave: {_empty(run)}."
        if run.last < SMS
        else "The last wave is full."
    )
    tiles = "1 tile" if run.tiles == 1 else f"{run.tiles:,} tiles"
    counted = f"{tiles}: {waves} of up to {SMS}, {run.last} tiles in the last."
    notes = _notes(run.kind == STREAM_K and run.last < SMS)
    return f"{_title(run)}. Schedule: {run.kind}. {counted} {last} {notes}"
