"""Draws one multiplication in corner layout, for an element, a thread, a warp or a block of C."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gemm_course.figures import colours
from gemm_course.figures.block_story import WARP, Moment, Story
from gemm_course.figures.corner import Corner, Element, bounds, fills_a_rectangle, patches
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import LARGE, PAGE, SMALL, Drawing, text_width, wrap
from gemm_course.model.requests import SECTOR

_SIDE, _LEFT = 284.0, 30.0
_BESIDE = _LEFT + _SIDE + 24
# A number fits into a cell whose side is at least this long.
_NUMBERS = 15.0
# The numbers of rows and columns take this much room.
_INDICES = 14.0
# The panel lists at most this many products.
_LINES = 8


@dataclass(frozen=True)
class Scene:
    """A moment of a story, seen from one element of C at a level of block_story.LEVELS.

    ``A`` and ``B`` are the contents of the matrices. ``says`` is the notebook's idea in a sentence or two.
    With ``counts_sectors``, the title says in how many sectors of global memory the numbers lie.
    """

    story: Story
    number: int
    element: Element
    level: str
    A: np.ndarray
    B: np.ndarray
    says: str = ""
    counts_sectors: bool = True

    @property
    def moment(self) -> Moment:
        return self.story.moments[self.number]

    @property
    def threads(self) -> list[int]:
        level = "block" if self.level == "element" and self.moment.copies else self.level
        return self.story.threads(level, self.element)

    @property
    def made(self) -> set[Element]:
        return self.story.made(self.level, self.element)

    def read(self, array: str) -> set[Element]:
        """Return the elements of A or B that are read in this moment."""
        level = "block" if self.level == "element" and self.moment.copies else self.level
        return self.story.read(self.moment, array, level, self.element)

    def sums(self) -> np.ndarray:
        """Return C with all products that have been added by the end of this moment."""
        last = self.moment.p[0] - 1 if self.moment.copies else self.moment.p[1]
        return self.A[:, : last + 1] @ self.B[: last + 1]

    @property
    def who(self) -> str:
        thread = self.story.owner[self.element]
        names = {
            "element": f"C[{self.element[0]}, {self.element[1]}]",
            "thread": f"Thread {thread}",
            "warp": f"Warp {thread // WARP}",
            "block": f"Block {self.story.block}",
        }
        return names[self.level]


def draw(scene: Scene) -> Picture:
    """Draw a scene. All scenes of a story are equally high."""
    drawing = Drawing(_title(scene), title_lines=2)
    corner = _corner(scene.story.shape, drawing.top)
    for array in "ABC":
        _matrix(drawing, corner, scene, array)
    _marks(drawing, corner, scene)
    _panel(drawing, scene, corner)
    _legend(drawing, scene, corner.top + _SIDE + 26)
    return drawing.picture(_in_words(scene))


def place_of_c(shape: tuple[int, int, int]) -> tuple[float, ...]:
    """Return C's place in pictures of this shape: left, top, width, height as shares of the page's width."""
    corner = _corner(shape, Drawing("", title_lines=2).top)
    return tuple(part / PAGE for part in corner.box("C"))


def _corner(shape: tuple[int, int, int], top: float) -> Corner:
    corner = Corner(*shape, _LEFT, top + 18, _SIDE)
    if not _indexed(corner):
        return corner
    return replace(corner, left=_LEFT + _INDICES, top=corner.top + _INDICES, side=_SIDE - _INDICES)


def _indexed(corner: Corner) -> bool:
    """Tell whether cells hold numbers. If they do, rows and columns are numbered as well."""
    return corner.cell >= _NUMBERS


# ---- words -------------------------------------------------------------------------------------------------


def _title(scene: Scene) -> str:
    if scene.moment.copies:
        return _copied(scene)
    row, column = scene.element
    if scene.level == "element":
        return f"{scene.who}, row {row} of A times column {column} of B: {_progress(scene)}"
    if _together(scene):
        loads = scene.moment.lane_reads(scene.threads)
        return f"{scene.who} cannot multiply alone: it loads {loads} numbers for its warp"
    products = _count(_products(scene), "product")
    return f"{scene.who} makes {_size(scene.made)} of C: {products} now, from {_needed(scene)}"


def _copied(scene: Scene) -> str:
    a, b = scene.read("A"), scene.read("B")
    if scene.level != "thread":
        who = scene.who if scene.level == "warp" else f"Block {scene.story.block}"
        return f"{who} copies {_size(a)} of A and {_size(b)} of B into shared memory"
    loads = sum(scene.moment.requests[array].get(t, 0) for array in "AB" for t in scene.threads)
    numbers = f"{len(a)} of A and {len(b)} of B"
    return f"{scene.who} copies {numbers} into shared memory, with {_count(loads, 'load')}"


def _progress(scene: Scene) -> str:
    last, k = scene.moment.p[1], scene.story.shape[2]
    return f"{scene.sums()[scene.element]} so far, after {last + 1} of {k} products"


def _needed(scene: Scene) -> str:
    different = _count(len(scene.read("A")) + len(scene.read("B")), "number")
    if scene.story.slab or scene.level == "thread" or not scene.counts_sectors:
        return different
    return f"{different} in {_count(_sectors(scene), 'sector')}"


def _sectors(scene: Scene) -> int:
    """Count the sectors of global memory that hold what is read now. A and B lie there row by row."""
    _, n, k = scene.story.shape
    width = {"A": k, "B": n}
    return len({(m, (row * width[m] + c) * 4 // SECTOR) for m in "AB" for row, c in scene.read(m)})


def _together(scene: Scene) -> bool:
    """Tell whether a warp multiplies as a whole, and the scene shows one of its threads."""
    return scene.level == "thread" and scene.story.at_once > 1


def _products(scene: Scene) -> int:
    first, last = scene.moment.p
    return len(scene.made) * (last - first + 1)


def _size(elements: set[Element]) -> str:
    rows, columns = bounds(elements)[1]
    if len(elements) == 1:
        return "one element"
    return f"{rows} × {columns}" if fills_a_rectangle(elements) else f"{len(elements)} elements"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _who_exactly(scene: Scene) -> str:
    thread, threads = scene.threads[0], scene.threads
    if scene.level == "thread":
        return f"{scene.who}: warp {thread // WARP}, lane {thread % WARP}"
    if scene.level == "warp":
        return f"{scene.who}: threads {threads[0]} to {threads[-1]}"
    return f"Block {scene.story.block}: {len(threads)} threads"


def _in_words(scene: Scene) -> str:
    m, n, k = scene.story.shape
    words = [f"A is {m} × {k}, B is {k} × {n}, C is {m} × {n}."]
    if scene.level == "element" and not scene.moment.copies:
        words += [f"{_formula(scene.element)}.", *(f"{line}." for line in _product_lines(scene))]
    else:
        words.append(f"{_who_exactly(scene)}.")
        words += [f"{label}: {sum(size for size, _ in parts)}." for label, parts in _bars(scene)]
        if each := _each_thread(scene):
            words.append(f"One thread: {each}.")
    for array in "ABC":
        at, (rows, columns) = bounds(scene.made if array == "C" else scene.read(array))
        ranges = f"rows {at[0]} to {at[0] + rows - 1}, columns {at[1]} to {at[1] + columns - 1}"
        words.append(f"Lit in {array}: {ranges}.")
    return " ".join([*words, _source(scene), scene.says]).strip()


def _source(scene: Scene) -> str:
    if scene.moment.copies:
        return "Global → shared memory."
    return f"Read from {'shared' if scene.story.slab else 'global'} memory."


def _formula(element: Element) -> str:
    row, column = element
    return f"C[{row}, {column}] = Σ A[{row}, p] · B[p, {column}]"


def _product_lines(scene: Scene) -> list[str]:
    """Return the products so far, or the last ones if there are many."""
    (row, column), (first, last) = scene.element, scene.moment.p
    if first < last:
        return [f"p = {first} to {last}: {last - first + 1} products"]
    a, b = scene.A[row], scene.B[:, column]
    return [f"p = {p}:  {a[p]} · {b[p]} = {a[p] * b[p]}" for p in range(max(0, last + 1 - _LINES), last + 1)]


def _bars(scene: Scene) -> list[tuple[str, list[tuple[int, str]]]]:
    """Return the bars that the panel compares, each as a label and parts (how many, colour)."""
    asked = [(scene.moment.lane_reads(scene.threads, m), colours.of_array(m)) for m in "AB"]
    if scene.moment.copies:
        loads = [
            (sum(scene.moment.requests[m].get(t, 0) for t in scene.threads), colours.of_array(m))
            for m in "AB"
        ]
        return [
            ("numbers copied", asked),
            ("loads" if len(scene.threads) == 1 else "loads by all threads", loads),
        ]
    different = [(len(scene.read(m)), colours.of_array(m)) for m in "AB"]
    products = ("products added", [(_products(scene), colours.C)])
    if _together(scene):
        return [("numbers loaded", asked), ("results stored", [(len(scene.made), colours.C)])]
    if asked == different:
        return [("numbers read", asked), products]
    return [("read by all threads", asked), ("different numbers", different), products]


# ---- shapes ------------------------------------------------------------------------------------------------


def _matrix(drawing: Drawing, corner: Corner, scene: Scene, array: str) -> None:
    hue = colours.of_array(array)
    drawing.rect(*corner.box(array), colours.IDLE, stroke=colours.EDGE)
    if array == "C":
        corner.light(drawing, "C", scene.story.owner, colours.PALE[hue])
        now = scene.made
    else:
        ever = scene.story.ever_read(array, scene.level, scene.element)
        corner.light(drawing, array, ever, colours.PALE[hue])
        now = scene.read(array)
    corner.light(drawing, array, now, hue)
    corner.rule(drawing, array)
    if _indexed(corner):
        _numbers(drawing, corner, scene, array, now)


def _numbers(drawing: Drawing, corner: Corner, scene: Scene, array: str, now: set[Element]) -> None:
    """Write the contents of the cells. Of C, write only the elements that the level computes."""
    held = {"A": scene.A, "B": scene.B, "C": scene.sums()}[array]
    hue = colours.of_array(array)
    for at in now if array == "C" else np.ndindex(held.shape):
        x, y = corner.middle(array, at)
        ink = colours.text_on(hue) if at in now else colours.INK
        drawing.text(x, y + 4.5, held[at], size=12, anchor="middle", fill=ink)


def _marks(drawing: Drawing, corner: Corner, scene: Scene) -> None:
    """Outline the blocks of C, the level's part of C, and the tiles in shared memory. Name the matrices."""
    rows, columns = bounds(scene.story.owner)[1]
    for row in range(0, scene.story.shape[0], rows):
        for column in range(0, scene.story.shape[1], columns):
            drawing.rect(*corner.box("C", (row, column), (rows, columns)), "none", stroke=colours.QUIET)
    if fills_a_rectangle(scene.made):
        corner.outline(drawing, "C", scene.made)
    for patch in patches(_one_thread(scene)):
        corner.outline(drawing, "C", patch, stroke=colours.PAPER, line=1.5)
    if scene.story.slab:
        for array in "AB":
            corner.outline(drawing, array, _slab(scene, array), dash="4 3", line=1.5)
    _names(drawing, corner)
    _p_marks(drawing, corner, scene)


def _each_thread(scene: Scene) -> str:
    """Say what one of several threads does: its reads of A and of B, and its products."""
    made = _one_thread(scene)
    if not made or scene.moment.copies:
        return ""
    steps = scene.moment.p[1] - scene.moment.p[0] + 1
    mine = scene.story.threads("thread", scene.element)
    a, b = (scene.moment.lane_reads(mine, array) for array in "AB")
    return f"{a} + {b} reads, {_count(len(made) * steps, 'product')}"


def _one_thread(scene: Scene) -> set[Element]:
    """Return the elements that the chosen element's thread computes.

    The set is empty unless the scene shows a warp or a block of threads that multiply each for itself.
    """
    if scene.level not in ("warp", "block") or scene.story.at_once > 1:
        return set()
    return scene.story.made("thread", scene.element)


def _names(drawing: Drawing, corner: Corner) -> None:
    """Name the matrices: A at its left, B on top, C below.

    Number rows and columns where cells hold numbers.
    """
    indexed = _indexed(corner)
    for array in "ABC":
        x, y, wide, high = corner.box(array)
        left, top = (x - 24, y - 19) if indexed else (x - 14, y - 5)
        sides = {"A": (left, y + high / 2), "B": (x + wide / 2, top), "C": (x + wide / 2, y + high + 17)}
        hue = colours.of_array(array)
        drawing.text(*sides[array], array, size=LARGE, bold=True, anchor="middle", fill=hue)
    if indexed:
        _indices(drawing, corner)


def _slab(scene: Scene, array: str) -> set[Element]:
    """Return the tile of A or B that is in shared memory now."""
    depth = scene.story.slab
    first = scene.moment.p[0] // depth * depth
    steps = range(first, first + depth)
    rows = {row for row, _ in scene.story.owner}
    columns = {column for _, column in scene.story.owner}
    return {(r, p) for r in rows for p in steps} if array == "A" else {(p, c) for c in columns for p in steps}


def _indices(drawing: Drawing, corner: Corner) -> None:
    """Number the rows at the left of A and the columns above B."""
    style = {"size": 12, "fill": colours.QUIET}
    for row in range(corner.m):
        x, y = corner.middle("A", (row, 0))
        drawing.text(x - corner.cell / 2 - 4, y + 4.5, row, anchor="end", **style)
    for column in range(corner.n):
        x, y = corner.middle("B", (0, column))
        drawing.text(x, y - corner.cell / 2 - 4, column, anchor="middle", **style)


def _p_marks(drawing: Drawing, corner: Corner, scene: Scene) -> None:
    """Write p below A's column and beside B's row."""
    first, last = scene.moment.p
    name = f"p = {first}" if first == last else f"p = {first}…{last}"
    middle = (corner.middle("A", (0, first))[0] + corner.middle("A", (0, last))[0]) / 2
    level = (corner.middle("B", (first, 0))[1] + corner.middle("B", (last, 0))[1]) / 2
    half = text_width(name, bold=True) / 2
    drawing.text(max(middle, 8 + half), corner.bottom + 16, name, bold=True, anchor="middle")
    drawing.text(corner.box("B")[0] - 5, level + 4, name, bold=True, anchor="end")


def _panel(drawing: Drawing, scene: Scene, corner: Corner) -> None:
    wide = drawing.width - 8 - _BESIDE
    if scene.level == "element" and not scene.moment.copies:
        _sum(drawing, scene, corner.top)
    else:
        _compare(drawing, scene, corner.top, wide)
    y = corner.top + _SIDE + 14
    for line in reversed(wrap(scene.says, SMALL, wide)):
        drawing.text(_BESIDE, y, line, fill=colours.QUIET)
        y -= 19


def _sum(drawing: Drawing, scene: Scene, y: float) -> None:
    """Write the sum, in letters and in numbers."""
    left, right = _formula(scene.element).split(" = ")
    drawing.text(_BESIDE, y + 12, f"{left} =", bold=True, fill=colours.C)
    drawing.text(_BESIDE, y + 32, right, bold=True)
    lines = _product_lines(scene)
    for place, line in enumerate(lines):
        drawing.text(_BESIDE, y + 54 + 17 * place, line, bold=place == len(lines) - 1)
    done, k = scene.moment.p[1] + 1, scene.story.shape[2]
    total = f"sum so far: {scene.sums()[scene.element]}"
    drawing.text(_BESIDE, y + 60 + 17 * len(lines), total, bold=True, fill=colours.C)
    drawing.text(_BESIDE, y + 78 + 17 * len(lines), f"({done} of {k} products)")


def _compare(drawing: Drawing, scene: Scene, y: float, wide: float) -> None:
    """Name the level that is shown, and compare what goes in with what comes out, as bars."""
    drawing.text(_BESIDE, y + 12, _who_exactly(scene), bold=True)
    drawing.text(_BESIDE, y + 31, _source(scene))
    bars = _bars(scene)
    most = max(sum(size for size, _ in parts) for _, parts in bars)
    y += 44
    for label, parts in bars:
        drawing.text(_BESIDE, y + 13, f"{label}: {sum(size for size, _ in parts)}")
        x = _BESIDE
        for size, fill in parts:
            drawing.rect(x, y + 19, size / most * wide, 12, fill)
            x += size / most * wide
        y += 42
    if each := _each_thread(scene):
        frame = "white frame" if fills_a_rectangle(_one_thread(scene)) else "white frames"
        drawing.text(_BESIDE, y + 13, f"one thread ({frame}):")
        drawing.text(_BESIDE, y + 31, each, bold=True)


def _legend(drawing: Drawing, scene: Scene, y: float) -> None:
    x, rest = 8.0, []
    if scene.made != set(scene.story.owner):
        m, n, _ = scene.story.shape
        words = "rest of C" if len(scene.story.owner) == m * n else "rest of the block"
        rest.append(((colours.PALE[colours.C],), words))
    for fills, words in (
        ((colours.A, colours.B), "read now"),
        ((colours.PALE[colours.A], colours.PALE[colours.B]), "in other steps"),
        ((colours.C,), "its results" if scene.moment.copies else "added up"),
        *rest,
    ):
        for fill in fills:
            drawing.rect(x, y, 12, 12, fill, stroke=colours.EDGE)
            x += 16
        drawing.text(x + 2, y + 11, words, fill=colours.QUIET)
        x += 7.6 * len(words) + 20
    if scene.story.slab:
        drawing.rect(8, y + 20, 28, 12, "none", stroke=colours.INK, line=1.5, dash="4 3")
        drawing.text(42, y + 31, "the block's tiles, now in shared memory", fill=colours.QUIET)
