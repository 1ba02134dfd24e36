"""Draws a timeline of a block's copies and products, which shows how much copy time a ring of slots hides."""

from __future__ import annotations

from dataclasses import dataclass

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import Drawing

# The timeline is cut off after this many units of time.
CLOCKS = 60
TILES = 60
MOST_SLOTS = 5
_MULTIPLIES = colours.OF_WAIT["issuing"]


@dataclass(frozen=True)
class Tile:
    """A tile with its slot and its times.

    Its copy takes from ``asked`` to ``there``, and its products take from ``begun`` to ``done``.
    """

    slot: int
    asked: int
    there: int
    begun: int
    done: int


def schedule(slots: int, copy: int, multiply: int, tiles: int = TILES) -> list[Tile]:
    """Return each tile's times.

    A tile is asked for once its slot is free. It is multiplied once it has arrived and the previous
    tile is done.
    """
    story: list[Tile] = []
    for t in range(tiles):
        asked = story[t - slots].done if t >= slots else 0
        begun = max(asked + copy, story[-1].done if story else 0)
        story.append(Tile(t % slots, asked, asked + copy, begun, begun + multiply))
    return story


def share(slots: int, copy: int, multiply: int) -> float:
    """Return the share of the time in which a block multiplies, after the start."""
    return min(1.0, slots * multiply / (copy + multiply))


def timeline(slots: int, copy: int, multiply: int) -> Picture:
    """Draw :func:`schedule` for up to MOST_SLOTS slots, and mark when nothing is multiplied."""
    percent = round(100 * share(slots, copy, multiply))
    of = "1 slot" if slots == 1 else f"{slots} slots"
    drawing = Drawing(f"{of}: the block multiplies {percent} % of the time")
    left, cell, high = 84.0, 7.6, 26.0
    top = drawing.top + 6
    story = [tile for tile in schedule(slots, copy, multiply) if tile.asked < CLOCKS]
    for slot in range(slots):
        drawing.text(8, top + slot * high + 16, f"slot {slot}")
    for number, tile in enumerate(story):
        y = top + tile.slot * high
        _copying(drawing, left, y, cell, tile)
        _multiplying(drawing, left, y, cell, tile, str(number))
    y = top + MOST_SLOTS * high + 6
    drawing.text(8, y + 16, "products", bold=True)
    busy = {clock for tile in story for clock in range(tile.begun, tile.done)}
    for clock in range(CLOCKS):
        if clock in busy:
            drawing.rect(left + clock * cell, y, cell - 0.6, 20, _MULTIPLIES)
        else:
            drawing.hatch(left + clock * cell, y, cell - 0.6, 20)
    _key(drawing, y + 36)
    return drawing.picture(
        f"A copy of a tile takes {copy} units of time, its products {multiply}. With {of} the block "
        f"multiplies {percent} % of the time once it is under way."
    )


def _copying(drawing: Drawing, left: float, y: float, cell: float, tile: Tile) -> None:
    end = min(tile.there, CLOCKS)
    drawing.rect(left + tile.asked * cell, y + 9, (end - tile.asked) * cell, 3, colours.QUIET)


def _multiplying(drawing: Drawing, left: float, y: float, cell: float, tile: Tile, number: str) -> None:
    end = min(tile.done, CLOCKS)
    if tile.begun < end:
        drawing.rect(left + tile.begun * cell, y, (end - tile.begun) * cell - 0.6, 21, _MULTIPLIES)
    if tile.done <= CLOCKS:
        drawing.text(
            left + (tile.begun + tile.done) / 2 * cell, y + 15.5, number, anchor="middle", fill=colours.PAPER
        )


def _key(drawing: Drawing, y: float) -> None:
    drawing.rect(8, y + 8, 24, 3, colours.QUIET)
    drawing.text(38, y + 14, "copy under way", fill=colours.QUIET)
    drawing.rect(176, y + 3, 14, 14, _MULTIPLIES)
    drawing.text(196, y + 14, "multiplies the tile of this number", fill=colours.QUIET)
    drawing.hatch(448, y + 3, 20, 14)
    drawing.text(474, y + 14, "nobody", fill=colours.QUIET)
