"""Draws what each warp of a ring did in the last ticks, and each copy from its order to its landing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from gemm_course.figures import colours
from gemm_course.figures.svg import PAGE, Drawing, text_width
from gemm_course.model import phases as model
from gemm_course.model.phases import PARTS, Moment, Op

# A strip is this many units high.
HIGH = 18.0
# At most this many ticks are shown.
_TICKS = 10
# A tick is this wide, so that there is room for a word to the right of the last tick.
_WIDE = (PAGE - 16) / (_TICKS + 1)
_MISSING = "no arrive"
# Even in DejaVu Sans, the widest font, a bar's words take only this share of their estimated width.
_ROOM = 0.95
# A copy on its way is drawn this many units high.
_THIN = 3.0


class _Bar(NamedTuple):
    """A stretch of a warp's time, from ``begin`` to ``end`` in ticks, which is drawn as one bar."""

    begin: int
    end: int
    op: Op
    passed: bool
    arrival_left_out: bool


class _Flight(NamedTuple):
    """A copy that is on its way from ``begin`` to ``end`` in ticks."""

    begin: int
    end: int
    part: str
    tile: int
    slot: int
    landed: bool


def axis(drawing: Drawing, now: Moment, top: float) -> float:
    """Number the ticks, and mark the last. Return the lower edge."""
    first = _before(now) + 1
    for tick in range(first, now.tick + 1):
        x = _x(tick - 1, now)
        if tick == now.tick:
            drawing.rect(x, top, _WIDE, 17, colours.NOW_PALE, stroke=colours.INK, line=1.5)
            drawing.text(x + _WIDE + 4, top + 13, "now", bold=True)
        words = f"tick {tick}" if tick == first else tick
        drawing.text(x + _WIDE / 2, top + 13, words, anchor="middle", bold=tick == now.tick)
    return top + 18


def _before(now: Moment) -> int:
    """Return the last tick that is no longer shown."""
    return max(now.tick - _TICKS, 0)


def _x(tick: float, now: Moment) -> float:
    return 8 + max(tick - _before(now), 0) * _WIDE


def _ground(drawing: Drawing, now: Moment, top: float) -> None:
    drawing.rect(8, top, PAGE - 16, HIGH, colours.IDLE)
    if now.tick:
        drawing.rect(_x(now.tick - 1, now), top, _WIDE, HIGH, colours.NOW_PALE)


# ---- warps -------------------------------------------------------------------------------------------------


def of_warp(drawing: Drawing, name: str, moments: Sequence[Moment], top: float) -> None:
    """Draw what a warp did, with a bar for equal ticks in a row, and outline what it does now."""
    now = moments[-1]
    _ground(drawing, now, top)
    for bar in _bars_of(name, moments):
        x = _x(bar.begin, now) + 0.5
        wide = _x(bar.end, now) - x - 0.5
        _bar(drawing, bar, x, top, wide)
        if bar.end == now.tick:
            wrong = now.wrong is not None and now.wrong.warp == name
            wrong |= now.outcome == model.UNDEFINED and bar.op.kind == model.EXPECT
            stroke = colours.WARN if wrong else colours.INK
            drawing.rect(x, top, wide, HIGH, "none", stroke=stroke, line=3 if wrong else 1.5)


def _bars_of(name: str, moments: Sequence[Moment]) -> Iterator[_Bar]:
    did = [(moment.tick, warp) for moment in moments for warp in moment.warps if warp.name == name]
    did = [each for each in did if each[0] > _before(moments[-1]) and each[1].op.kind != model.DONE]
    groups = [
        (op, passed, [tick for tick, _ in group])
        for (op, passed), group in groupby(did, key=lambda each: (each[1].op, each[1].passed))
    ]
    following = [op.kind for op, _, _ in groups[1:]]
    for place, (op, passed, ticks) in enumerate(groups):
        left_out = op.kind == model.READ and place < len(following) and following[place] != model.ARRIVE
        yield _Bar(ticks[0] - 1, ticks[-1], op, passed, left_out)


def _bar(drawing: Drawing, bar: _Bar, x: float, top: float, wide: float) -> None:
    blocked = bar.op.kind == model.WAIT and not bar.passed
    paper = bar.op.kind == model.WAIT
    fill = colours.PAPER if paper else colours.PALE[colours.C] if bar.op.kind == model.READ else colours.BUSY
    drawing.rect(x, top, wide, HIGH, fill, stroke=colours.EDGE if bar.passed else "none")
    if bar.arrival_left_out:
        wide -= _left_out(drawing, x + wide, top, wide)
    label = next(words for words in _labels(bar) if _ROOM * text_width(words) <= wide)
    if blocked:
        drawing.hatch(x, top, wide, HIGH, colours.OTHER)
        clear = min(_ROOM * text_width(label), wide)
        drawing.rect(x + (wide - clear) / 2, top + 1, clear, HIGH - 2, colours.PAPER)
    drawing.text(x + wide / 2, top + 14, label, anchor="middle")


def _left_out(drawing: Drawing, right: float, top: float, room: float) -> float:
    """Mark the arrival that should follow a read, if there is room. Return the width that the mark takes."""
    wide = text_width(_MISSING) + 4
    if wide > room:
        return 0
    drawing.rect(
        right - wide, top, wide, HIGH, colours.PAPER, stroke=colours.WARN, line=1.5, dash="4 3", round_=2
    )
    drawing.text(right - wide / 2, top + 14, _MISSING, anchor="middle", fill=colours.WARN)
    return wide


def _labels(bar: _Bar) -> Iterator[str]:
    """Yield the words for a bar, from long to short."""
    if bar.passed:
        yield "passes"
    elif bar.op.kind == model.WAIT:
        yield from (f"waits at {bar.op.barrier}[{bar.op.slot}]", "waits")
    elif bar.op.kind == model.READ:
        yield from (f"reads {bar.op.tile}", "reads")
    else:
        yield bar.op.kind
    yield ""


# ---- copies ------------------------------------------------------------------------------------------------


def of_copies(drawing: Drawing, moments: Sequence[Moment], top: float) -> float:
    """Draw a strip for each part, with a thin line for a copy on its way and a high box for its landing.

    Return the lower edge.
    """
    now = moments[-1]
    flights = list(_flights(moments))
    for part in PARTS:
        _ground(drawing, now, top)
        mine = [each for each in flights if each.part == part]
        for each in mine:
            _flight(drawing, each, now, top)
        for each in mine:
            if each.landed and each.end >= _before(now):
                _landing(drawing, each, now, top)
        top += HIGH + 1
    return top


def _flights(moments: Sequence[Moment]) -> Iterator[_Flight]:
    """Yield each copy's ticks, from its order to the tick before its landing, or until now."""
    lands = {(each.part, each.tile): moment.tick for moment in moments for each in moment.landed}
    for moment in moments:
        for op in (warp.op for warp in moment.warps if warp.op.kind == model.COPY):
            for part in PARTS:
                lands_in = lands.get((part, op.tile))
                end = moments[-1].tick if lands_in is None else lands_in - 1
                yield _Flight(moment.tick - 1, end, part, op.tile, op.slot, lands_in is not None)


def _flight(drawing: Drawing, flight: _Flight, now: Moment, top: float) -> None:
    """Draw a copy on its way at the height of its slot, since copies to several slots may overlap in time."""
    x, right = _x(flight.begin, now), _x(flight.end, now)
    if right > x:
        y = top + (flight.slot + 0.5) * HIGH / len(now.slots) - _THIN / 2
        drawing.rect(x, y, right - x, _THIN, colours.of_array(flight.part))


def _landing(drawing: Drawing, flight: _Flight, now: Moment, top: float) -> None:
    wrong = now.outcome == model.NEWER and (now.wrong.part, now.wrong.found) == (flight.part, flight.tile)
    current = flight.end == now.tick - 1 and not now.broken
    stroke = colours.WARN if wrong else colours.INK if current else "none"
    x, fill = _x(flight.end, now), colours.PALE[colours.of_array(flight.part)]
    drawing.rect(x + 0.5, top, _WIDE - 1, HIGH, fill, stroke=stroke, line=3 if wrong else 1.5)
    drawing.text(x + _WIDE / 2, top + 14, f"{flight.part}{flight.tile}", anchor="middle")
