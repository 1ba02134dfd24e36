"""A ring of slots with their mbarriers, the warps that use it, and what each did in the last ticks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import PAGE, SMALL, Drawing, text_width, wrap
from gemm_course.model import phases as model
from gemm_course.model.phases import EMPTY, FULL, PARTS, Moment

_LEFT, _RIGHT = 130.0, PAGE - 8  # of the slots
_DOES = 108.0  # where the words of what a warp does begin
_ROW, _AGENT, _STRIP = 19.0, 40.0, 18.0
_TICKS = 14  # so many are shown
_LINES = 4  # for the sentences
_ROWS = {
    FULL: ("full: phase", "arrivals to come", "bytes expected", "bytes that came"),
    EMPTY: ("empty: phase", "arrivals to come"),
}
_SHORT = {model.EXPECT: "exp", model.COPY: "copy", model.ARRIVE: "arr"}


class Said(NamedTuple):
    """The words of a picture: its title, the line of the kernel, what each warp does, and sentences below."""

    title: str
    line: str
    mistake: bool
    warps: Sequence[tuple[str, str]]
    copies: str
    sentences: Sequence[str]


class _Bar(NamedTuple):
    begin: float  # in ticks
    end: float
    kind: str
    label: str


def phases(moments: Sequence[Moment], said: Said) -> Picture:
    """Draw the last of the moments, and what happened in those before it."""
    now = moments[-1]
    drawing = Drawing(said.title, title_lines=2)
    top = _line(drawing, said, drawing.top - 4)
    top = _slots(drawing, now, top + 2)
    for name, does in said.warps:
        _agent(drawing, name, does, top)
        _strip(drawing, _bars_of(name, moments), now, top + 18)
        top += _AGENT
    _agent(drawing, "copies", said.copies, top)
    _strip(drawing, _landings(moments), now, top + 18)
    top += _AGENT + 2
    ended = now.outcome not in (model.RUNNING, model.RIGHT)
    lines = [line for words in said.sentences for line in wrap(words, SMALL, PAGE - 16)]
    for place, line in enumerate(lines):
        drawing.text(8, top + 14 + 19 * place, line, fill=colours.WARN if ended else colours.INK)
    drawing.rect(0, top + 19 * _LINES, 1, 1, colours.PAPER)
    return drawing.picture(_in_words(now, said))


def _agent(drawing: Drawing, name: str, does: str, top: float) -> None:
    drawing.text(8, top + 13, name, bold=True)
    drawing.text(_DOES, top + 13, does)


def _line(drawing: Drawing, said: Said, top: float) -> float:
    ground = colours.WARN_PALE if said.mistake else colours.BAND
    drawing.rect(8, top, PAGE - 16, 22, ground)
    drawing.text(14, top + 16, said.line, size=13, mono=True)
    return top + 22


# ---- the ring ----------------------------------------------------------------------------------------------


def _slots(drawing: Drawing, now: Moment, top: float) -> float:
    """Draw what lies in each slot and its two barriers; return the lower edge."""
    wide = (_RIGHT - _LEFT) / len(now.slots)
    tops = {FULL: top + 54, EMPTY: top + 54 + 4 * _ROW + 10}
    drawing.text(8, top + 40, "holds tile")
    for kind, rows in _ROWS.items():
        for place, words in enumerate(rows):
            drawing.text(8, tops[kind] + 15 + place * _ROW, words, bold=not place)
    for slot in range(len(now.slots)):
        x = _LEFT + slot * wide
        drawing.text(x + wide / 2, top + 16, f"slot {slot}", anchor="middle", bold=True)
        for place, part in enumerate(PARTS):
            _part(drawing, now, slot, part, x + 3 + place * (wide - 6) / 2, top + 22, (wide - 6) / 2)
        for kind in _ROWS:
            _barrier(drawing, now, (kind, slot), x + 3, tops[kind], wide - 6)
    return tops[EMPTY] + 2 * _ROW + 10


def _part(drawing: Drawing, now: Moment, slot: int, part: str, x: float, top: float, wide: float) -> None:
    tile = now.slots[slot][part]
    fill = colours.IDLE if tile is None else colours.PALE[colours.of_array(part)]
    wrong = now.wrong and (now.wrong.slot, now.wrong.part) == (slot, part)
    landed = any((each.slot, each.part) == (slot, part) for each in now.landed)
    stroke = colours.WARN if wrong else colours.INK if landed else "none"
    drawing.rect(x + 1, top, wide - 2, 26, fill, stroke=stroke, line=3 if wrong else 1.5)
    words = f"{part} {'–' if tile is None else tile}"
    if coming := [each.tile for each in now.coming if (each.slot, each.part) == (slot, part)]:
        words += f"←{coming[0]}"
    drawing.text(x + wide / 2, top + 18, words, anchor="middle", bold=bool(wrong))


def _barrier(drawing: Drawing, now: Moment, key: tuple[str, int], x: float, top: float, wide: float) -> None:
    barrier, completed = now.barriers[key], key in now.completed
    rows = [f"{barrier.phase}, bit {barrier.parity}", f"{barrier.pending} of {barrier.arrivals}"]
    if key[0] == FULL:
        rows += [f"{barrier.expected:,}", f"{barrier.came:,}"]
    wanted = now.outcome == model.STANDSTILL and any(
        (warp.op.barrier, warp.op.slot) == key for warp in now.warps if warp.op.kind == model.WAIT
    )
    stroke = colours.WARN if wanted else colours.INK if completed else colours.EDGE
    fill = colours.NOW_PALE if completed else colours.BAND
    thick = 2.5 if wanted else 1.5 if completed else 1
    drawing.rect(x, top, wide, len(rows) * _ROW + 2, fill, stroke=stroke, line=thick)
    for place, words in enumerate(rows):
        drawing.text(x + wide / 2, top + 15 + place * _ROW, words, anchor="middle", bold=not place)


# ---- the last ticks ----------------------------------------------------------------------------------------


def _bars_of(name: str, moments: Sequence[Moment]) -> Iterator[_Bar]:
    """What a warp did, equal things in a row as one bar."""
    did = [(moment.tick, warp) for moment in moments for warp in moment.warps if warp.name == name]
    did = [each for each in did if each[0] > _before(moments[-1]) and each[1].op.kind != model.DONE]
    for op, group in groupby(did, key=lambda each: each[1].op):
        ticks = [tick for tick, _ in group]
        wide = _tick_width() * len(ticks) - 6
        label = next(words for words in _labels(op) if text_width(words) <= wide)
        yield _Bar(ticks[0] - 1, ticks[-1], op.kind, label)


def _labels(op) -> Iterator[str]:
    """From long to short."""
    if op.kind == model.WAIT:
        yield from (f"waits at {op.barrier}[{op.slot}]", f"{op.barrier}[{op.slot}]", "")
    elif op.kind == model.READ:
        yield from (f"reads {op.tile}", f"{op.tile}")
    else:
        yield _SHORT[op.kind]


def _landings(moments: Sequence[Moment]) -> Iterator[_Bar]:
    """What landed in which tick; two parts that land at once share the tick."""
    for moment in moments:
        if moment.landed and moment.tick > _before(moments[-1]):
            share = 1 / len(moment.landed)
            for place, each in enumerate(moment.landed):
                begin = moment.tick - 1 + place * share
                yield _Bar(begin, begin + share, each.part, f"{each.part}{each.tile}")


def _before(now: Moment) -> int:
    """The last tick that is no longer shown."""
    return max(now.tick - _TICKS, 0)


def _tick_width() -> float:
    return (PAGE - 16) / _TICKS


def _strip(drawing: Drawing, bars: Iterator[_Bar], now: Moment, top: float) -> None:
    wide = _tick_width()
    drawing.rect(8, top, PAGE - 16, _STRIP, colours.IDLE)
    for bar in bars:
        x, length = 8 + (bar.begin - _before(now)) * wide, (bar.end - bar.begin) * wide
        _bar(drawing, bar, x + 0.5, top, length - 1)
    if now.tick:
        x = 8 + (now.tick - 1 - _before(now)) * wide
        drawing.rect(x, top - 1, wide, _STRIP + 2, "none", stroke=colours.INK, line=1.5)


def _bar(drawing: Drawing, bar: _Bar, x: float, top: float, wide: float) -> None:
    if bar.kind == model.WAIT:
        drawing.rect(x, top, wide, _STRIP, colours.PAPER)
        drawing.hatch(x, top, wide, _STRIP, colours.OTHER)
        if bar.label:
            clear = text_width(bar.label) + 2
            drawing.rect(x + (wide - clear) / 2, top + 1, clear, _STRIP - 2, colours.PAPER)
    else:
        hue = colours.C if bar.kind == model.READ else colours.of_array(bar.kind)
        fill = colours.PALE.get(hue if bar.kind in (*PARTS, model.READ) else "", colours.BUSY)
        drawing.rect(x, top, wide, _STRIP, fill)
    drawing.text(x + wide / 2, top + 14, bar.label, size=13, anchor="middle")


# ---- the same in words -------------------------------------------------------------------------------------


def _in_words(now: Moment, said: Said) -> str:
    told = [f"The line: {said.line}."]
    for slot, parts in enumerate(now.slots):
        holds = ", ".join(f"{part} of {_tile(tile)}" for part, tile in parts.items())
        told.append(f"Slot {slot} holds {holds}.")
        for kind in _ROWS:
            told.append(f"{kind}[{slot}]: {_of_barrier(now.barriers[kind, slot], kind)}.")
    told += [f"{name[0].upper()}{name[1:]} {does}." for name, does in said.warps]
    told.append(f"Copies: {said.copies}.")
    return " ".join([*told, *said.sentences]).replace("..", ".")


def _tile(tile: int | None) -> str:
    return "no tile yet" if tile is None else f"tile {tile}"


def _of_barrier(barrier: model.Barrier, kind: str) -> str:
    words = f"phase {barrier.phase}, bit {barrier.parity}, "
    words += f"{barrier.pending} of {barrier.arrivals} arrivals to come"
    if kind == FULL:
        words += f", {barrier.came:,} of {barrier.expected:,} expected bytes came"
    return words
