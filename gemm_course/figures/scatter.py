"""Draws how each thread moves four floats at a time from A, and stores them one by one into transposed As."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import Drawing
from gemm_course.model.requests import Request

Place = tuple[int, int]
_CELL, _HIGH = 13.0, 16.0
_LEFT_A, _LEFT_AS = 30.0, 288.0


@dataclass(frozen=True)
class Tile:
    """The copied tile: BM rows and BK columns of A, with ``pad`` floats at the end of each row of As."""

    BM: int
    BK: int
    pad: int
    threads: int

    @property
    def width(self) -> int:
        """The number of floats in a row of As."""
        return self.BM + self.pad


@dataclass
class Step:
    """One request of the warp.

    ``sources`` maps a thread to the element of A that it carries, or to the first one that it loads.
    ``places`` maps a thread to the (row, column) of As that it stores to. ``costs`` says what the request
    moves. What a store takes is the learner's to find out, in an exercise.
    """

    op: str
    sources: dict[int, Place]
    places: dict[int, Place] = field(default_factory=dict)
    wide: int = 1
    costs: str = ""


def steps(requests: Sequence[Request], values: Sequence[dict[int, float]], tile: Tile) -> list[Step]:
    """Return the steps of a warp in order, which are its loads of A and its stores to As.

    ``values`` holds what each request stored, by lane. A[r, c] must hold r * BK + c.
    """
    story = []
    for request, stored in zip(requests, values, strict=True):
        at = {lane: _two_dimensional(element, tile.width) for lane, element, _ in request.lanes}
        if request.op == "load":
            wide = request.bits // 32
            costs = f"one request of the warp: {len(request.sectors)} sectors, {request.useful_bytes} bytes"
            story.append(Step("load", at, wide=wide, costs=costs))
        else:
            rows = len({row for row, _ in at.values()})
            costs = f"one request of the warp: {len(at)} floats, into {rows} row{'s' * (rows > 1)} of As"
            carried = {lane: divmod(int(value), tile.BK) for lane, value in stored.items()}
            story.append(Step("store", carried, at, costs=costs))
    return story


def _two_dimensional(element: tuple[int, ...], width: int) -> Place:
    """Return an element as (row, column), also if As is one-dimensional."""
    return divmod(element[0], width) if len(element) == 1 else element


def draw(story: Sequence[Step], number: int, thread: int, tile: Tile) -> Picture:
    """Draw step ``number`` (from 0) as ``thread`` sees it."""
    step = story[number]
    drawing = Drawing(f"Step {number + 1} of {len(story)}: {_sentence(step, thread)}", title_lines=2)
    top = drawing.top + 24
    _draw_a(drawing, story, number, thread, tile, top)
    _draw_as(drawing, story, number, thread, tile, top)
    _arrow(drawing, step, thread, tile, top)
    y = top + _HIGH * max(tile.BM, tile.BK) + 22
    for line in _formulas(thread, tile):
        drawing.text(8, y, line, mono=True)
        y += 19
    drawing.text(8, y + 3, step.costs[:1].upper() + step.costs[1:], bold=True)
    return drawing.picture(_in_words(story, number, tile))


def _sentence(step: Step, thread: int) -> str:
    if thread not in step.sources:
        return f"thread {thread} does nothing here"
    row, column = step.sources[thread]
    if step.op == "load":
        until = f" to A[{row},\u00a0{column + step.wide - 1}] at once" if step.wide > 1 else ""
        return f"thread {thread} loads A[{row},\u00a0{column}]{until}"
    p, i = step.places[thread]
    return f"thread {thread} stores A[{row},\u00a0{column}] at As[{p},\u00a0{i}]"


def _formulas(thread: int, tile: Tile) -> list[str]:
    fours = tile.BK // 4
    return [
        f"innerRowA  = {thread} // (BK // 4) = {thread // fours}",
        f"innerColA  = {thread} %  (BK // 4) = {thread % fours}",
        f"rowStrideA = {tile.threads} // (BK // 4) = {tile.threads // fours}",
    ]


def _draw_a(drawing: Drawing, story: Sequence[Step], number: int, thread: int, tile: Tile, top: float):
    """Draw A's tile with the threads' numbers. What is loaded now is dark, and earlier loads are pale."""
    hue = colours.A
    drawing.text(_LEFT_A, top - 8, "A (global), thread by thread", bold=True, fill=hue)
    for row in range(tile.BM):
        if row % 4 == 0:
            drawing.text(2, top + row * _HIGH + 13, row, size=12, fill=colours.QUIET)
    drawing.rect(*_of_a((0, 0), top), tile.BK * _CELL - 1, tile.BM * _HIGH - 1, colours.IDLE)
    for place, step in enumerate(story):
        for owner, element in step.sources.items() if step.op == "load" else ():
            fill = hue if place == number else colours.PALE[hue] if place < number else colours.IDLE
            x, y = _of_a(element, top)
            drawing.rect(x, y, step.wide * _CELL - 1, _HIGH - 1, fill, stroke=colours.EDGE)
            ink = colours.QUIET if fill == colours.IDLE else colours.text_on(fill)
            middle = x + step.wide * _CELL * _clear(story[number], thread, owner, element)
            drawing.text(middle, y + 12, owner, size=12, anchor="middle", fill=ink, bold=owner == thread)
    step = story[number]
    if thread in step.sources:
        x, y = _of_a(step.sources[thread], top)
        drawing.rect(x - 1, y - 1, step.wide * _CELL + 1, _HIGH + 1, "none", stroke=colours.INK, line=3)


def _clear(step: Step, thread: int, owner: int, first: Place) -> float:
    """Return where on its four floats (0 to 1) a thread's number stands, away from the one that is stored."""
    if (
        step.op == "load"
        or owner != thread
        or thread not in step.sources
        or first[0] != step.sources[thread][0]
    ):
        return 0.5
    return 0.75 if step.sources[thread][1] - first[1] < 2 else 0.25


def _draw_as(drawing: Drawing, story: Sequence[Step], number: int, thread: int, tile: Tile, top: float):
    """Draw transposed As with its padding hatched. Elements stored now are dark, and earlier ones pale."""
    hue = colours.A
    drawing.text(_LEFT_AS, top - 8, "As (shared), transposed", bold=True, fill=hue)
    held = {place for step in story[:number] for place in step.places.values()}
    now = set(story[number].places.values())
    for row in range(tile.BK):
        if row % 4 == 0:
            drawing.text(_LEFT_AS - 4, top + row * _HIGH + 13, row, size=12, fill=colours.QUIET, anchor="end")
        for column in range(tile.width):
            fill = (
                hue if (row, column) in now else colours.PALE[hue] if (row, column) in held else colours.IDLE
            )
            x, y = _of_as((row, column), top)
            drawing.rect(x, y, _CELL - 1, _HIGH - 1, fill)
    if tile.pad:
        x, y = _of_as((0, tile.BM), top)
        drawing.hatch(x, y, tile.pad * _CELL - 1, tile.BK * _HIGH - 1)
    if thread in story[number].places:
        x, y = _of_as(story[number].places[thread], top)
        drawing.rect(x - 1, y - 1, _CELL + 1, _HIGH + 1, "none", stroke=colours.INK, line=3)


def _arrow(drawing: Drawing, step: Step, thread: int, tile: Tile, top: float) -> None:
    """Draw where a float goes. The arrow starts at the row's end, to cover no other threads' numbers."""
    if thread in step.places:
        row, _ = step.sources[thread]
        (x1, y1), (x2, y2) = _of_a((row, tile.BK), top), _of_as(step.places[thread], top)
        drawing.line(x1 + 2, y1 + _HIGH / 2, x2 - 2, y2 + _HIGH / 2, width=2, arrow=True)


def _of_a(element: Place, top: float) -> tuple[float, float]:
    return _LEFT_A + element[1] * _CELL, top + element[0] * _HIGH


def _of_as(place: Place, top: float) -> tuple[float, float]:
    return _LEFT_AS + place[1] * _CELL, top + place[0] * _HIGH


def _in_words(story: Sequence[Step], number: int, tile: Tile) -> str:
    step = story[number]
    loaded = sum(len(s.sources) * s.wide for s in story[: number + 1] if s.op == "load")
    stored = len({place for s in story[: number + 1] for place in s.places.values()})
    padding = f", {tile.pad} floats of padding at the end of each row" if tile.pad else ""
    return (
        f"A's tile of {tile.BM} by {tile.BK}, As of {tile.BK} by {tile.BM}{padding}. {step.costs}."
        f" So far {loaded} floats of A are loaded and {stored} stored in As."
    )
