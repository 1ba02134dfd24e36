"""Draws which warp, which lane and which thread stores each element of a block's tile of C."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import SMALL, Drawing, text_width, wrap
from gemm_course.model.owner_maps import NOBODY, SEVERAL, WARP, OwnerMap

LEVELS = ("block", "warp", "sub-tile", "thread")
COLOURS = ("warp", "lane", "owner")
# The part that is drawn is at most this wide and high.
_SIDE = 416.0
# Neighbouring warps differ in tint.
_TINTS = (colours.PALE[colours.C], colours.mixed(colours.PALE[colours.C], 0.4))
# Dark text can be read on at most this share of C's hue.
_DARKEST = 0.7
_HATCHING = {NOBODY: colours.QUIET, SEVERAL: colours.WARN}
_LABEL = 12


def draw(owners: OwnerMap, level: str, colour: str, warp: int, lane: int) -> Picture:
    """Draw the tile at a level of LEVELS, coloured by one of COLOURS, with one thread marked."""
    thread = warp * WARP + lane
    mine = owners.elements(thread)
    drawing = Drawing(_title(owners, level, warp, thread, mine))
    if level == "thread":
        bottom = _own_elements(drawing, owners, thread, mine)
    else:
        bottom = _region(drawing, owners, level, colour, thread)
        bottom = _legend(drawing, owners, colour, thread, bottom + 12)
    facts = _facts(owners, warp, lane, mine)
    for place, line in enumerate(line for fact in facts for line in wrap(fact, SMALL, 544)):
        drawing.text(8, bottom + 24 + 20 * place, line)
    return drawing.picture(f"Level {level}, coloured by {colour}. {' '.join(facts)}")


# ---- words -------------------------------------------------------------------------------------------------


def _title(owners: OwnerMap, level: str, warp: int, thread: int, mine: np.ndarray) -> str:
    (rows, columns), (WM, WN), (down, across) = owners.shape, owners.warp_tile, owners.sub_tile
    if level == "thread":
        return f"Thread {thread} keeps {_plural(len(mine), 'result')}, numbered in order"
    if owners.described:
        return _verdict(owners, level, warp)
    if level == "block":
        return f"Thread {thread} owns {len(mine)} of the block's {rows} × {columns} elements"
    if level == "warp":
        return (
            f"Warp {warp} covers {WM} × {WN} in {WM // down} × {WN // across} sub-tiles of {down} × {across}"
        )
    lanes_down, lanes_across = owners.lanes
    piece = f"{down // lanes_down} × {across // lanes_across}"
    return f"One sub-tile: {lanes_down} × {lanes_across} lanes cover {down} × {across}, {piece} each"


def _verdict(owners: OwnerMap, level: str, warp: int) -> str:
    """Say whether each element that is drawn has exactly one owner, which is in the right warp."""
    part = owners.owner[_part(owners, level, warp)]
    several, nobodys = int((part == SEVERAL).sum()), int((part == NOBODY).sum())
    strangers = int(((part >= 0) & (part // WARP != _warps_there(owners)[_part(owners, level, warp)])).sum())
    counted = ((several, "several owners"), (nobodys, "none"), (strangers, "an owner in another warp"))
    found = [f"{count} {'has' if count == 1 else 'have'} {what}" for count, what in counted if count]
    where = {"block": "the block's", "warp": f"warp {warp}'s", "sub-tile": "one sub-tile's"}[level]
    size = " × ".join(map(str, part.shape))
    if not found:
        return f"Each of {where} {size} elements has one owner"
    return f"Of {where} {size} elements {_listed(found)}"


def _warps_there(owners: OwnerMap) -> np.ndarray:
    """Return the warp whose tile each element lies in, as an array of (rows, columns)."""
    there = np.empty(owners.shape, int)
    for warp in range(owners.warps):
        there[_part(owners, "warp", warp)] = warp
    return there


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _facts(owners: OwnerMap, warp: int, lane: int, mine: np.ndarray) -> list[str]:
    across, thread = owners.lanes[1], warp * WARP + lane
    place = "" if owners.described else f": row {lane // across}, column {lane % across} of the lanes"
    facts = [
        f"Thread {thread} = warp {warp}, lane {lane}{place}.",
        f"Its rows of the tile: {_stretches(mine[:, 0])}.",
        f"Its columns: {_stretches(mine[:, 1])}.",
    ]
    if not owners.described:
        return facts
    shared = sum(int(owners.owner[row, column]) == SEVERAL for row, column in set(map(tuple, mine)))
    facts[0] = f"Thread {thread} = warp {warp}, lane {lane}. It owns {len(mine)}" + (
        f", {shared} of them with others." if shared else "."
    )
    if owners.outside:
        facts.append(f"{_plural(owners.outside, 'result')} of all threads outside the tile: not drawn.")
    if owners.repeated:
        facts.append(f"{_plural(owners.repeated, 'result')} that the same thread has named before.")
    return facts


def _stretches(numbers: np.ndarray) -> str:
    """Return whole numbers in words, such as "4, 8" or "0 to 3, 16 to 19"."""
    if not len(numbers):
        return "none"
    ordered = np.unique(numbers)
    runs = np.split(ordered, np.flatnonzero(np.diff(ordered) != 1) + 1)
    return ", ".join(f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)


# ---- the tile, or a part of it -----------------------------------------------------------------------------


def _part(owners: OwnerMap, level: str, warp: int) -> tuple[slice, slice]:
    """Return the rows and the columns of the tile that are drawn."""
    if level == "block":
        return slice(0, owners.shape[0]), slice(0, owners.shape[1])
    row, column = owners.corner_of_warp(warp)
    down, across = owners.warp_tile if level == "warp" else owners.sub_tile
    return slice(row, row + down), slice(column, column + across)


@dataclass(frozen=True)
class _Frame:
    """The place of the tile's drawn part on the page. An element is ``wide`` by ``high`` units large."""

    rows: slice
    columns: slice
    left: float
    top: float
    wide: float
    high: float

    def box(self, row: int, column: int, down: int, across: int) -> tuple[float, float, float, float]:
        """Return (x, y, width, height) of a rectangle of elements.

        ``row`` and ``column`` are counted from the drawn part's first row and column.
        """
        x, y = self.left + column * self.wide, self.top + row * self.high
        return x, y, across * self.wide, down * self.high


def _region(drawing: Drawing, owners: OwnerMap, level: str, colour: str, thread: int) -> float:
    rows, columns = _part(owners, level, thread // WARP)
    owner = owners.owner[rows, columns]
    high, wide = (_SIDE / size for size in owner.shape)
    frame = _Frame(
        rows, columns, 60.0, drawing.top + 22, wide, min(high, 30.0 if level == "sub-tile" else high)
    )
    fills: dict[str, list] = {}
    hatched = []
    for row, column, down, across, who in _patches(_keys(owner, colour, thread)):
        fills.setdefault(_fill(owners, colour, owner[row, column], thread), []).append(
            frame.box(row, column, down, across)
        )
        if who < 0:
            hatched.append((frame.box(row, column, down, across), _HATCHING[who]))
    for fill, rectangles in fills.items():
        drawing.area(rectangles, fill)
    for box, stroke in hatched:
        drawing.hatch(*box, stroke)
    _lines(drawing, owners, frame)
    mine = _mask(owners, thread)[rows, columns]
    _mine(drawing, mine, owner == SEVERAL, frame)
    if level == "block":
        _warp_labels(drawing, owners, frame, mine)
    else:
        _lane_labels(drawing, owners, owner, colour, thread, frame)
    _rulers(drawing, frame)
    return frame.top + owner.shape[0] * frame.high


def _keys(owner: np.ndarray, colour: str, thread: int) -> np.ndarray:
    """Return a key for each element. Elements with equal keys are drawn in the same colour."""
    alike = {"warp": owner // WARP, "lane": owner % WARP, "owner": owner // WARP == thread // WARP}[colour]
    return np.where(owner < 0, owner, alike)


def _patches(keys: np.ndarray):
    """Yield rectangles of equal keys as (first row, first column, rows, columns, key)."""
    row = 0
    while row < len(keys):
        other = np.flatnonzero((keys[row:] != keys[row]).any(axis=1))
        down = int(other[0]) if len(other) else len(keys) - row
        edges = [0, *(np.flatnonzero(np.diff(keys[row])) + 1).tolist(), keys.shape[1]]
        for start, end in pairwise(edges):
            yield row, start, down, end - start, int(keys[row, start])
        row += down


def _fill(owners: OwnerMap, colour: str, who: int, thread: int) -> str:
    if who < 0:
        return colours.PAPER
    if colour == "lane":
        return lane_colour(who % WARP)
    if colour == "owner":
        return colours.NOW_PALE if who // WARP == thread // WARP else colours.IDLE
    across = owners.shape[1] // owners.warp_tile[1]
    warp = who // WARP
    return _TINTS[(warp // across + warp % across) % 2]


def lane_colour(lane: int) -> str:
    """Return C's hue, from nearly white (lane 0) to dark (lane 31)."""
    return colours.mixed(colours.C, 0.05 + (_DARKEST - 0.05) * lane / (WARP - 1))


def _mask(owners: OwnerMap, thread: int) -> np.ndarray:
    """Return a mask, (rows, columns), of the elements that the thread stores, alone or with others."""
    mask = np.zeros(owners.shape, bool)
    mask[tuple(owners.elements(thread).T)] = True
    return mask


def _mine(drawing: Drawing, mine: np.ndarray, shared: np.ndarray, frame: _Frame) -> None:
    """Mark the chosen thread's elements. Those that others store too stay hatched."""
    for row, column, down, across, inside in _patches(np.where(mine, 1 + shared, 0)):
        if inside:
            box = frame.box(row, column, down, across)
            drawing.rect(*box, colours.NOW, stroke=colours.INK, line=1.4)
            if inside > 1:
                drawing.hatch(*box, colours.WARN)


def _lines(drawing: Drawing, owners: OwnerMap, frame: _Frame) -> None:
    """Outline the sub-tiles with thin lines, and the warps' tiles with thick ones."""
    rows, columns = frame.rows, frame.columns
    for (down, across), line in ((owners.sub_tile, 0.6), (owners.warp_tile, 2.0)):
        for row in range(0, rows.stop - rows.start, down):
            for column in range(0, columns.stop - columns.start, across):
                inside = min(down, rows.stop - rows.start), min(across, columns.stop - columns.start)
                drawing.rect(*frame.box(row, column, *inside), "none", stroke=colours.INK, line=line)


def _warp_labels(drawing: Drawing, owners: OwnerMap, frame: _Frame, mine: np.ndarray) -> None:
    """Name each warp in the middle of its tile, or beside it where the chosen thread's elements are."""
    down, across = owners.warp_tile
    for warp in range(owners.warps):
        top, left = owners.corner_of_warp(warp)
        x, y, wide, high = frame.box(top, left, down, across)
        taken = [
            frame.box(top + int(r), left + int(c), 1, 1)
            for r, c in np.argwhere(mine[top : top + down, left : left + across])
        ]
        rows = (0.5, 0.68, 0.32, 0.86, 0.14)
        middles = [(x + wide * i, y + high * j) for i in (0.5, 0.3, 0.7) for j in rows]
        x, y = next((at for at in middles if _is_free(at, taken)), middles[0])
        drawing.rect(x - 32, y - 11, 64, 22, colours.PAPER, round_=4)
        drawing.text(x, y + 5, f"warp {warp}", anchor="middle", bold=True)


def _is_free(at: tuple[float, float], boxes: Iterable[tuple[float, float, float, float]]) -> bool:
    """Tell whether a label with its middle at ``at`` would cover none of the boxes."""
    x, y = at
    return not any(
        left < x + 34 and x - 34 < left + wide and top < y + 13 and y - 13 < top + high
        for left, top, wide, high in boxes
    )


def _lane_labels(
    drawing: Drawing, owners: OwnerMap, owner: np.ndarray, colour: str, thread: int, frame: _Frame
) -> None:
    """Write each lane's number into each of its pieces, and outline the pieces."""
    for row, column, down, across, who in _patches(owner):
        x, y, wide, high = frame.box(row, column, down, across)
        if who < 0:
            continue
        if colour != "lane":
            drawing.rect(x, y, wide, high, "none", stroke=colours.QUIET, line=0.3)
        if high >= _LABEL and wide >= 16:
            fill = colours.NOW if who == thread else _fill(owners, colour, who, thread)
            middle = x + wide / 2, y + high / 2 + 4.5
            words = {"size": _LABEL, "fill": colours.text_on(fill), "bold": who == thread}
            drawing.text(*middle, who % WARP, anchor="middle", **words)


def _rulers(drawing: Drawing, frame: _Frame) -> None:
    """Number the first and the last row and column."""
    rows, columns = frame.rows.stop - frame.rows.start, frame.columns.stop - frame.columns.start
    for column in (0, columns - 1):
        x = frame.left + (column + 0.5) * frame.wide
        words = {"size": _LABEL, "anchor": "middle", "fill": colours.QUIET}
        drawing.text(x, frame.top - 6, frame.columns.start + column, **words)
    middle = frame.left + columns * frame.wide / 2
    drawing.text(middle, frame.top - 6, "column of the tile →", anchor="middle", fill=colours.QUIET)
    for row in (0, rows - 1):
        y = frame.top + (row + 0.5) * frame.high + 5
        words = {"size": _LABEL, "anchor": "end", "fill": colours.QUIET}
        drawing.text(frame.left - 6, y, frame.rows.start + row, **words)
    drawing.text(8, frame.top + rows * frame.high / 2 + 5, "row ↓", fill=colours.QUIET)


def _legend(drawing: Drawing, owners: OwnerMap, colour: str, thread: int, y: float) -> float:
    """Say what the colours mean, and the hatching where there is any. Return the lower edge."""
    faults = Counter(owners.owner[owners.owner < 0].tolist())
    entries = [(colours.NOW, "", f"thread {thread}")]
    if colour == "owner":
        entries += [
            (colours.NOW_PALE, "", f"others of warp {thread // WARP}"),
            (colours.IDLE, "", "other warps"),
        ]
    elif colour == "warp":
        entries += [(_TINTS[0], "", "alternate warps")]
    named = {SEVERAL: "several owners", NOBODY: "no owner"}
    entries += [(colours.PAPER, _HATCHING[kind], words) for kind, words in named.items() if faults[kind]]
    if colour == "lane":
        y = _lane_legend(drawing, thread, y)
    x = 8.0
    for fill, hatching, words in entries if colour != "lane" or faults else ():
        if x + 28 + text_width(words) > drawing.width:
            x, y = 8.0, y + 22
        drawing.rect(x, y, 18, 16, fill, stroke=colours.INK, line=0.6)
        if hatching:
            drawing.hatch(x, y, 18, 16, hatching)
        drawing.text(x + 24, y + 13, words, fill=colours.QUIET)
        x += 42 + text_width(words)
    return y + (16 if colour != "lane" or faults else -6)


def _lane_legend(drawing: Drawing, thread: int, y: float) -> float:
    """Draw the colour of every lane with its number. Return where the next line begins."""
    for lane in range(WARP):
        x, mine = 8 + lane * 17, lane == thread % WARP
        fill = colours.NOW if mine else lane_colour(lane)
        drawing.rect(x, y, 16.4, 18, fill, stroke=colours.INK if mine else "none", line=1.4)
        drawing.text(x + 8.2, y + 13.5, lane, size=_LABEL, anchor="middle", fill=colours.text_on(fill))
    return y + 24


# ---- one thread --------------------------------------------------------------------------------------------


def _own_elements(drawing: Drawing, owners: OwnerMap, thread: int, mine: np.ndarray) -> float:
    """Draw the rows and columns in which the thread has elements, with a gap wherever some are left out."""
    left, top = 92.0, drawing.top + 44
    if not len(mine):
        drawing.text(left, top, "This thread owns nothing.", fill=colours.WARN)
        return top
    rows, columns = (np.unique(mine[:, axis]) for axis in (0, 1))
    wide = min(44.0, (544 - left - 10 * _gaps(columns)) / len(columns))
    high = min(30.0, 330 / len(rows))
    xs = dict(zip(columns.tolist(), _places(columns, wide, left), strict=True))
    ys = dict(zip(rows.tolist(), _places(rows, high, top), strict=True))
    drawing.text(left, top - 26, "column of the tile →", fill=colours.QUIET)
    drawing.text(8, top - 6, "row", fill=colours.QUIET)
    for column, x in xs.items():
        drawing.text(x + wide / 2, top - 6, column, size=_LABEL, anchor="middle", fill=colours.QUIET)
    for row, y in ys.items():
        drawing.text(left - 8, y + high / 2 + 5, row, size=_LABEL, anchor="end", fill=colours.QUIET)
    for (row, column), place in {tuple(each): place for place, each in enumerate(mine.tolist())}.items():
        x, y = xs[column], ys[row]
        drawing.rect(x, y, wide - 1, high - 1, colours.NOW, stroke=colours.INK, line=0.8)
        if owners.owner[row, column] == SEVERAL:
            drawing.hatch(x, y, wide - 1, high - 1, colours.WARN)
            drawing.rect(x + wide / 2 - 10, y + high / 2 - 8, 20, 15, colours.NOW)
        drawing.text(x + wide / 2, y + high / 2 + 4.5, place, size=_LABEL, anchor="middle")
    return max(ys.values()) + high


def _gaps(numbers: np.ndarray) -> int:
    return int(np.count_nonzero(np.diff(numbers) != 1))


def _places(numbers: np.ndarray, size: float, start: float) -> list[float]:
    """Return where to draw each number's cell, with a gap where numbers are left out."""
    gaps = np.concatenate([[0], np.cumsum(np.diff(numbers) != 1)])
    return [start + place * size + 10 * gap for place, gap in enumerate(gaps)]
