"""The owner map: which warp, which lane, which thread stores each element of a block's tile of C."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from gemm_course.emulator import Watch, emulate
from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import SMALL, Drawing, wrap
from gemm_course.kernels import LADDER

WARP = 32
LEVELS = ("block", "warp", "sub-tile", "thread")
COLOURS = ("warp", "lane", "owner")
NOBODY, SEVERAL = -1, -2
_SIDE = 416.0  # the most units for the drawn part in either direction
_SAME_WARP = "#CFE8F7"  # a paler NOW: threads of the same warp
_TINTS = (colours.PALE[colours.C], "#EAF6F2")  # neighbouring warps, both of C's hue
_HATCHING = {NOBODY: colours.QUIET, SEVERAL: colours.WARN}
_LABEL = 12


@dataclass(frozen=True, eq=False)
class OwnerMap:
    """A block's tile of C and who stores what in it.

    owner: (BM, BN) thread of the block that stores the element, NOBODY or SEVERAL. place: (BM, BN) the
    element's number among its thread's results, from 0, in the order of storing. warp_tile: rows and columns
    of a warp. sub_tile: rows and columns that a warp covers at once. lanes: rows and columns of its lanes.
    """

    owner: np.ndarray
    place: np.ndarray
    warp_tile: tuple[int, int]
    sub_tile: tuple[int, int]
    lanes: tuple[int, int]

    @property
    def warps(self) -> int:
        return self.owner.size // (self.warp_tile[0] * self.warp_tile[1])

    def elements(self, thread: int) -> np.ndarray:
        """(row, column) of a thread's elements in the order of its results."""
        found = np.argwhere(self.owner == thread)
        return found[np.argsort(self.place[tuple(found.T)], kind="stable")]

    def corner_of_warp(self, warp: int) -> tuple[int, int]:
        across = self.owner.shape[1] // self.warp_tile[1]
        return warp // across * self.warp_tile[0], warp % across * self.warp_tile[1]


def stored_elements(trace, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Owner and place of every element of C, (rows, columns), from the emulator's trace of one block."""
    owner, place = np.full(shape, NOBODY), np.zeros(shape, int)
    stores = trace[(trace["space"] == "global") & (trace["op"] == "store")]
    count: dict[int, int] = {}
    for thread, (row, column), bits in zip(stores["thread"], stores["element"], stores["bits"], strict=True):
        for c in range(column, column + bits // 32):
            owner[row, c] = thread if owner[row, c] == NOBODY else SEVERAL
            place[row, c] = count[thread] = count.get(thread, -1) + 1
    return owner, place


@cache
def traced(name: str, tiles: tuple[tuple[str, int], ...]) -> OwnerMap:
    """The owner map of a warp-tiled stage with these tiles."""
    return traced_kernel(LADDER[name].kernel(dict(tiles)), name, dict(tiles))


def traced_kernel(kernel, name: str, sizes: dict[str, int]) -> OwnerMap:
    """The owner map of a kernel, launched in place of a warp-tiled stage's with these tiles.

    With k = 0 the block fetches and computes nothing: all it does to global memory is to store C.
    """
    stage, m, n = LADDER[name], sizes["BM"], sizes["BN"]
    A, B, C = np.zeros((m, 4), np.float32), np.zeros((4, n), np.float32), np.zeros((m, n), np.float32)
    launch = (kernel, stage.grid(m, n, sizes), stage.block(sizes))
    report = emulate(*launch, m, n, 0, np.float32(1), A, B, np.float32(0), C, watch=Watch(local=False))
    stored = stored_elements(report.trace, (m, n))
    return OwnerMap(*stored, (sizes["WM"], sizes["WN"]), *_sub_tile_and_lanes(name, sizes))


def _sub_tile_and_lanes(name: str, t: dict[str, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Rows and columns that a warp's lanes cover at a time, and rows and columns of lanes."""
    if name == "warp_tiled":  # runs of four: 4 × 4 elements per lane
        down, across = t["WM"] // t["TM"], t["WN"] // t["TN"]
        return (4 * down, 4 * across), (down, across)
    wmiter = t["WM"] * t["WN"] // (32 * t["TM"] * t["TN"] * t["WNITER"])
    down, across = t["WM"] // wmiter, t["WN"] // t["WNITER"]
    return (down, across), (down // t["TM"], across // t["TN"])


def draw(owners: OwnerMap, level: str, colour: str, warp: int, lane: int) -> Picture:
    """Draw the tile at a level of LEVELS, coloured by one of COLOURS, with one thread marked."""
    thread = warp * WARP + lane
    mine = owners.elements(thread)
    drawing = Drawing(_title(owners, level, warp, thread, mine))
    if level == "thread":
        bottom = _own_elements(drawing, owners, thread, mine)
    else:
        bottom = _region(drawing, owners, level, colour, thread)
        bottom = _legend(drawing, colour, warp, thread, bottom + 12)
    facts = _facts(owners, warp, lane, mine)
    for place, line in enumerate(line for fact in facts for line in wrap(fact, SMALL, 544)):
        drawing.text(8, bottom + 24 + 20 * place, line)
    return drawing.picture(f"Level {level}, coloured by {colour}. {' '.join(facts)}")


# ---- words -------------------------------------------------------------------------------------------------


def _title(owners: OwnerMap, level: str, warp: int, thread: int, mine: np.ndarray) -> str:
    (rows, columns), (WM, WN), (down, across) = owners.owner.shape, owners.warp_tile, owners.sub_tile
    if level == "block":
        return f"Thread {thread} owns {len(mine)} of the block's {rows} × {columns} elements"
    if level == "warp":
        return f"Warp {warp} covers {WM} × {WN} in {WM // down} × {WN // across} steps of {down} × {across}"
    if level == "sub-tile":
        lanes_down, lanes_across = owners.lanes
        piece = f"{down // lanes_down} × {across // lanes_across}"
        return f"One step: {lanes_down} × {lanes_across} lanes cover {down} × {across}, {piece} each"
    return f"Thread {thread} keeps {len(mine)} results, numbered in order"


def _facts(owners: OwnerMap, warp: int, lane: int, mine: np.ndarray) -> list[str]:
    across = owners.lanes[1]
    facts = [
        f"Thread {warp * WARP + lane} = warp {warp}, lane {lane}: row {lane // across}, column "
        f"{lane % across} of the lanes.",
        f"Its rows of the tile: {_stretches(mine[:, 0])}.",
        f"Its columns: {_stretches(mine[:, 1])}.",
    ]
    if several := int((owners.owner == SEVERAL).sum()):
        facts.append(f"Not counted: {several} elements that several threads store (hatched red).")
    if nobodys := int((owners.owner == NOBODY).sum()):
        facts.append(f"No thread stores {nobodys} elements (hatched grey).")
    return facts


def _stretches(numbers: np.ndarray) -> str:
    """Whole numbers in words: "4, 8" or "0 to 3, 16 to 19"."""
    if not len(numbers):
        return "none"
    ordered = np.unique(numbers)
    runs = np.split(ordered, np.flatnonzero(np.diff(ordered) != 1) + 1)
    return ", ".join(f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)


# ---- the tile, or a part of it -----------------------------------------------------------------------------


def _part(owners: OwnerMap, level: str, warp: int) -> tuple[slice, slice]:
    """Rows and columns of the tile that are drawn."""
    if level == "block":
        return slice(0, owners.owner.shape[0]), slice(0, owners.owner.shape[1])
    row, column = owners.corner_of_warp(warp)
    down, across = owners.warp_tile if level == "warp" else owners.sub_tile
    return slice(row, row + down), slice(column, column + across)


@dataclass(frozen=True)
class _Frame:
    """Where the drawn part of the tile lies on the page."""

    rows: slice
    columns: slice
    left: float
    top: float
    wide: float  # of an element
    high: float

    def box(self, row: int, column: int, down: int, across: int) -> tuple[float, float, float, float]:
        """(x, y, width, height) of elements, counted from the part's first row and column."""
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
    if level == "block":
        _warp_labels(drawing, owners, frame)
        _mine(drawing, owner == thread, frame)
    else:
        _mine(drawing, owner == thread, frame)
        _lane_labels(drawing, owners, owner, colour, thread, frame)
    _rulers(drawing, frame)
    return frame.top + owner.shape[0] * frame.high


def _keys(owner: np.ndarray, colour: str, thread: int) -> np.ndarray:
    """Elements with equal keys are drawn in the same colour."""
    alike = {"warp": owner // WARP, "lane": owner % WARP, "owner": owner // WARP == thread // WARP}[colour]
    return np.where(owner < 0, owner, alike)


def _patches(keys: np.ndarray):
    """(first row, first column, rows, columns, key) of rectangles of equal keys."""
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
        return _SAME_WARP if who // WARP == thread // WARP else colours.IDLE
    across = owners.owner.shape[1] // owners.warp_tile[1]
    warp = who // WARP
    return _TINTS[(warp // across + warp % across) % 2]


def lane_colour(lane: int) -> str:
    """C's hue, from nearly white (lane 0) to full (lane 31)."""
    light, full = (0xF2, 0xFA, 0xF7), (0x00, 0x9E, 0x73)
    mixed = (round(a + (b - a) * lane / (WARP - 1)) for a, b in zip(light, full, strict=True))
    return "#" + "".join(f"{value:02X}" for value in mixed)


def _mine(drawing: Drawing, mine: np.ndarray, frame: _Frame) -> None:
    for row, column, down, across, inside in _patches(mine.astype(int)):
        if inside:
            box = frame.box(row, column, down, across)
            drawing.rect(*box, colours.NOW, stroke=colours.INK, line=1.4)


def _lines(drawing: Drawing, owners: OwnerMap, frame: _Frame) -> None:
    """Outline steps thinly and warps strongly."""
    rows, columns = frame.rows, frame.columns
    for (down, across), line in ((owners.sub_tile, 0.6), (owners.warp_tile, 2.0)):
        for row in range(0, rows.stop - rows.start, down):
            for column in range(0, columns.stop - columns.start, across):
                inside = min(down, rows.stop - rows.start), min(across, columns.stop - columns.start)
                drawing.rect(*frame.box(row, column, *inside), "none", stroke=colours.INK, line=line)


def _warp_labels(drawing: Drawing, owners: OwnerMap, frame: _Frame) -> None:
    for warp in range(owners.warps):
        x, y, wide, high = frame.box(*owners.corner_of_warp(warp), *owners.warp_tile)
        x, y = x + wide / 2, y + high / 2
        drawing.rect(x - 32, y - 11, 64, 22, colours.PAPER, round_=4)
        drawing.text(x, y + 5, f"warp {warp}", anchor="middle", bold=True)


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


def _legend(drawing: Drawing, colour: str, warp: int, thread: int, y: float) -> float:
    if colour == "lane":
        for lane in range(WARP):
            x = 8 + lane * 17
            fill = colours.NOW if lane == thread % WARP else lane_colour(lane)
            drawing.rect(x, y, 17, 18, fill, stroke=colours.INK, line=0.4)
            drawing.text(x + 8.5, y + 13, lane, size=_LABEL, anchor="middle", fill=colours.text_on(fill))
        return y + 18
    entries = [(colours.NOW, f"thread {thread}")]
    if colour == "owner":
        entries += [(_SAME_WARP, f"others of warp {warp}"), (colours.IDLE, "other warps")]
    else:
        entries += [(_TINTS[0], "alternate warps")]
    x = 8.0
    for fill, words in entries:
        drawing.rect(x, y, 18, 16, fill, stroke=colours.INK, line=0.6)
        drawing.text(x + 24, y + 13, words, fill=colours.QUIET)
        x += 190
    return y + 16


# ---- one thread --------------------------------------------------------------------------------------------


def _own_elements(drawing: Drawing, owners: OwnerMap, thread: int, mine: np.ndarray) -> float:
    """Draw the rows and columns in which the thread has elements, with gaps where others lie between them."""
    left, top = 92.0, drawing.top + 44
    if not len(mine):
        drawing.text(left, top, "This thread owns nothing.", fill=colours.WARN)
        return top
    rows, columns = (np.unique(mine[:, axis]) for axis in (0, 1))
    wide = min(44.0, (544 - left - 10 * _gaps(columns)) / len(columns))
    high = min(30.0, 330 / len(rows))
    xs, ys = _places(columns, wide, left), _places(rows, high, top)
    drawing.text(left, top - 26, "column of the tile →", fill=colours.QUIET)
    drawing.text(8, top - 6, "row", fill=colours.QUIET)
    for column, x in zip(columns, xs, strict=True):
        drawing.text(x + wide / 2, top - 6, column, size=_LABEL, anchor="middle", fill=colours.QUIET)
    for row, y in zip(rows, ys, strict=True):
        drawing.text(left - 8, y + high / 2 + 5, row, size=_LABEL, anchor="end", fill=colours.QUIET)
        for column, x in zip(columns, xs, strict=True):
            if owners.owner[row, column] != thread:
                continue
            drawing.rect(x, y, wide - 1, high - 1, colours.NOW, stroke=colours.INK, line=0.8)
            number = owners.place[row, column]
            drawing.text(x + wide / 2, y + high / 2 + 4.5, number, size=_LABEL, anchor="middle")
    return ys[-1] + high


def _gaps(numbers: np.ndarray) -> int:
    return int(np.count_nonzero(np.diff(numbers) != 1))


def _places(numbers: np.ndarray, size: float, start: float) -> list[float]:
    """Where to draw each number's cell, with a gap where numbers are left out."""
    gaps = np.concatenate([[0], np.cumsum(np.diff(numbers) != 1)])
    return [start + place * size + 10 * gap for place, gap in enumerate(gaps)]
