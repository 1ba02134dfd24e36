"""Draws the phases of an mbarrier as a strip of two colours, and below it what a thread that waits would do.

The colours are called dark and light. Each stretch also has its number, and the light ones are hatched.
"""

from __future__ import annotations

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import PAGE, Drawing

COLOURS = ("dark", "light")
# A stretch ends with this many arrivals, and the strip has so many stretches.
ARRIVALS, STRETCHES = 2, 6
_LEFT, _GAP = 84.0, 4.0
_WIDE = (PAGE - 8 - _LEFT) / STRETCHES
_HIGH, _ROW, _DOT = 40.0, 30.0, 7.0
_DARK, _LIGHT = colours.SCALE[5], colours.SCALE[1]


def two_colours(arrived: int, waits_for: str) -> Picture:
    """Draw a barrier that has had ``arrived`` arrivals, and a thread that waits for dark or light."""
    running = arrived // ARRIVALS
    drawing = Drawing(_title(arrived, waits_for))
    top = drawing.top + 20
    drawing.text(8, top + 25, "stretch")
    drawing.text(8, top + _HIGH + 22, "arrivals")
    drawing.text(8, top + _HIGH + _ROW + 22, "the thread")
    for stretch in range(STRETCHES):
        _stretch(drawing, stretch, running, top)
        if stretch <= running:
            _arrivals(drawing, stretch, min(arrived - stretch * ARRIVALS, ARRIVALS), top + _HIGH)
            _thread(drawing, stretch, running, waits_for, top + _HIGH + _ROW)
    drawing.text(8, top + _HIGH + 2 * _ROW + 24, "Hatched: light. Dashed: not begun.", fill=colours.QUIET)
    return drawing.picture(_in_words(arrived, waits_for))


def passes(stretch: int, waits_for: str) -> bool:
    """Tell whether a wait for a colour returns while this stretch runs."""
    return COLOURS[stretch % 2] != waits_for


def _title(arrived: int, waits_for: str) -> str:
    running = arrived // ARRIVALS
    does = "goes on" if passes(running, waits_for) else "stands"
    return f"Stretch {running}, {COLOURS[running % 2]}: who waits for {waits_for} {does}"


def _x(stretch: int) -> float:
    return _LEFT + stretch * _WIDE


def _stretch(drawing: Drawing, stretch: int, running: int, top: float) -> None:
    box = _x(stretch), top, _WIDE - _GAP, _HIGH
    middle = _x(stretch) + (_WIDE - _GAP) / 2
    if stretch > running:
        drawing.rect(*box, colours.PAPER, stroke=colours.EDGE, dash="4 3")
        drawing.text(middle, top + 25, stretch, anchor="middle", fill=colours.QUIET)
        return
    light = stretch % 2
    drawing.rect(*box, _LIGHT if light else _DARK)
    if light:
        drawing.hatch(*box)
        drawing.rect(middle - 12, top + 9, 24, 22, _LIGHT)
    ink = colours.INK if light else colours.PAPER
    drawing.text(middle, top + 25, stretch, anchor="middle", bold=True, fill=ink)
    if stretch == running:
        drawing.rect(*box, "none", stroke=colours.INK, line=3)
        drawing.text(middle, top - 6, "now", anchor="middle", bold=True)


def _arrivals(drawing: Drawing, stretch: int, came: int, top: float) -> None:
    middle = _x(stretch) + (_WIDE - _GAP) / 2
    for place in range(ARRIVALS):
        x = middle + (place - (ARRIVALS - 1) / 2) * 3 * _DOT
        fill = colours.INK if place < came else colours.PAPER
        drawing.circle(x, top + 17, _DOT, fill, stroke=colours.INK)


def _thread(drawing: Drawing, stretch: int, running: int, waits_for: str, top: float) -> None:
    middle = _x(stretch) + (_WIDE - _GAP) / 2
    words = "goes on" if passes(stretch, waits_for) else "stands"
    drawing.text(middle, top + 22, words, anchor="middle", bold=stretch == running)


def _in_words(arrived: int, waits_for: str) -> str:
    running = arrived // ARRIVALS
    does = [
        f"{stretch}, {COLOURS[stretch % 2]}: {'goes on' if passes(stretch, waits_for) else 'stands'}"
        for stretch in range(running + 1)
    ]
    return (
        f"{arrived} arrivals so far, {arrived % ARRIVALS} of {ARRIVALS} in the stretch that runs. In each "
        f"stretch, what a thread does that waits for {waits_for}: {'; '.join(does)}."
    )
