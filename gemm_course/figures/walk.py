"""Draws a walk through a tiled kernel, step by step, from the emulator's trace of one block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import Drawing

Element = tuple[int, ...]
# The no-break space keeps an element on one line.
_COMMA = ",\u00a0"


@dataclass
class Scene:
    """A step of a block, in which its threads execute one line of the kernel once.

    ``touched`` maps an array's name to {thread: elements}. ``did`` says what each thread did. ``shared`` maps
    an array's name to {element: its contents}, which are such as "A[0, 3]". ``loads`` and ``reads`` count
    each thread's global loads and shared reads so far.
    """

    line: int
    barrier: bool = False
    touched: dict[str, dict[int, list[Element]]] = field(default_factory=dict)
    did: dict[int, list[str]] = field(default_factory=dict)
    shared: dict[str, dict[Element, str]] = field(default_factory=dict)
    loads: dict[int, int] = field(default_factory=dict)
    reads: dict[int, int] = field(default_factory=dict)


def name_of(array: str, element: Sequence[int]) -> str:
    """Return an element as the kernel writes it, "A[0, 3]"."""
    return f"{array}[{_COMMA.join(map(str, element))}]"


def scenes(trace) -> list[Scene]:
    """Cut ``report.trace`` of one block into scenes.

    A barrier, another line or a repeated access starts a new scene.
    """
    story: list[Scene] = []
    seen: set[tuple[str, str]] = set()
    loads: dict[int, int] = {}
    reads: dict[int, int] = {}
    # ``held`` says what each thread fetched last, because a thread stores next what it fetched last.
    held: dict[int, str] = {}
    shared: dict[str, dict[Element, str]] = {}
    for _, rows in trace.groupby("step", sort=True):
        first = rows.iloc[0]
        access = (first["op"], first["array"])
        barrier = first["op"] == "barrier"
        if not story or barrier or story[-1].barrier or first["line"] != story[-1].line or access in seen:
            story.append(Scene(int(first["line"]), barrier))
            seen, held = set(), {}
        seen.add(access)
        scene = story[-1]
        for thread, element in zip(rows["thread"], rows["element"], strict=True):
            if not barrier:
                _record(scene, first, int(thread), tuple(element), loads, reads, held, shared)
        scene.loads, scene.reads = dict(loads), dict(reads)
        scene.shared = {array: dict(cells) for array, cells in shared.items()}
    return story


def _record(scene: Scene, access, thread: int, element: Element, loads, reads, held, shared) -> None:
    array, op, space = access["array"], access["op"], access["space"]
    name = name_of(array, element)
    scene.touched.setdefault(array, {}).setdefault(thread, []).append(element)
    did = scene.did.setdefault(thread, [])
    if space == "global" and op == "load":
        loads[thread] = loads.get(thread, 0) + 1
        held[thread] = name
    elif space == "shared" and op == "store":
        shared.setdefault(array, {})[element] = held.get(thread, "0")
        did.append(f"{name} = {held.get(thread, '0')}")
    elif space == "shared":
        reads[thread] = reads.get(thread, 0) + 1
        did.append(name)
    elif op == "store":
        did.append(f"{name} = acc")


def sentence(scene: Scene, thread: int) -> str:
    """Return what ``thread`` does in ``scene``, with its own numbers."""
    if scene.barrier:
        return "waits at the barrier until the whole block has arrived"
    did = scene.did.get(thread)
    if not did:
        return "does nothing here"
    if "=" in did[0]:
        return did[0]
    return "acc += " + " × ".join(did)


@dataclass(frozen=True)
class Plan:
    """The facts that all scenes share: the matrices' shapes, the tile's width, the block, and the lines."""

    shapes: dict[str, tuple[int, int]]
    tile: int
    block: tuple[int, int]
    lines: dict[int, str]
    naive_loads: int = 8
    tiled_loads: int = 4


_CELL, _GAP, _LEFT = 27.0, 26.0, 12.0


def draw(story: list[Scene], number: int, thread: int, plan: Plan) -> Picture:
    """Draw scene ``number`` (from 0) as ``thread`` (its linear id in the block) sees it."""
    scene, tile = story[number], plan.tile
    who = f"thread ({thread % tile}, {thread // tile})"
    drawing = Drawing(f"Step {number + 1} of {len(story)}, {who}: {sentence(scene, thread)}", title_lines=2)
    places = _layout(drawing.top + 22, plan)
    for array in "ABC":
        _matrix(drawing, scene, array, thread, places[array], plan)
    _outline_of_tiles(drawing, places, plan)
    for array in ("As", "Bs"):
        _shared_tile(drawing, scene, array, thread, places[array], plan)
    for matrix in ("A", "B"):
        _copy_arrow(drawing, scene, matrix, thread, places, plan)
    _accumulator(drawing, story[: number + 1], thread, places["acc"])
    if scene.barrier:
        _barrier(drawing, places, tile)
    bottom = places["C"][1] + plan.shapes["C"][0] * _CELL
    bottom = _code(drawing, scene, plan, bottom + 24)
    _counters(drawing, scene, thread, plan, bottom)
    return drawing.picture(_description(scene, thread, plan))


def _layout(top: float, plan: Plan) -> dict[str, tuple[float, float]]:
    """Return where each part begins: A at the left, B on top, C where they meet, tiles beside matrices."""
    wide, high = plan.shapes["A"][1] * _CELL, plan.shapes["B"][0] * _CELL
    corner = _LEFT + wide + _GAP, top + high + _GAP
    right = corner[0] + plan.shapes["C"][1] * _CELL + 40
    middle = (wide - plan.tile * _CELL) / 2, (high - plan.tile * _CELL) / 2
    return {
        "A": (_LEFT, corner[1]),
        "B": (corner[0], top),
        "C": corner,
        "As": (_LEFT + middle[0], top + middle[1]),
        "Bs": (right, top + middle[1]),
        "acc": (right, corner[1] - 4),
    }


def _barrier(drawing: Drawing, places, tile: int) -> None:
    """Draw a fence around the tiles, and write that the whole block waits."""
    for array in ("As", "Bs"):
        x, y = places[array]
        side = tile * _CELL
        drawing.rect(x - 6, y - 6, side + 10, side + 10, "none", stroke=colours.INK, line=2, dash="7 4")
    x, y = places["Bs"]
    drawing.text(x, y + tile * _CELL + 24, "The whole block waits here.", bold=True)


def _outline_of_tiles(drawing: Drawing, places, plan: Plan) -> None:
    """Outline the block's tile of C, and the rows of A and the columns of B that the tile needs."""
    size = plan.tile * _CELL
    (bx, by), (columns, depth) = plan.block, (plan.shapes["A"][1], plan.shapes["B"][0])
    for array, x, y, wide, high in (
        ("A", 0, by * size, columns * _CELL, size),
        ("B", bx * size, 0, size, depth * _CELL),
        ("C", bx * size, by * size, size, size),
    ):
        left, top = places[array]
        hue = colours.of_array(array)
        drawing.rect(left + x - 2, top + y - 2, wide + 2, high + 2, "none", stroke=hue, line=1.5)


def _matrix(drawing: Drawing, scene: Scene, array: str, thread: int, place, plan: Plan) -> None:
    (left, top), hue = place, colours.of_array(array)
    rows, columns = plan.shapes[array]
    at = (left, top + rows * _CELL + 14) if array == "A" else (left, top - 8)
    drawing.text(*at, f"{array} (global)", bold=True, fill=hue)
    now = {e for elements in scene.touched.get(array, {}).values() for e in elements}
    mine = set(scene.touched.get(array, {}).get(thread, []))
    for row in range(rows):
        for column in range(columns):
            e, x, y = (row, column), left + column * _CELL, top + row * _CELL
            fill = hue if e in now else colours.IDLE
            if array == "C" and e not in now and _in_tile(row, column, plan):
                fill = colours.PALE[colours.C]
            _cell(drawing, x, y, fill, f"{row},{column}", e in mine)


def _in_tile(row: int, column: int, plan: Plan) -> bool:
    return row // plan.tile == plan.block[1] and column // plan.tile == plan.block[0]


def _cell(drawing: Drawing, x, y, fill, words, outlined) -> None:
    drawing.rect(x, y, _CELL - 2, _CELL - 2, fill)
    ink = colours.QUIET if fill == colours.IDLE else colours.text_on(fill)
    drawing.text(x + _CELL / 2 - 1, y + _CELL / 2 + 4, words, size=13, anchor="middle", fill=ink)
    if outlined:
        drawing.rect(x - 1, y - 1, _CELL, _CELL, "none", stroke=colours.INK, line=3)


def _shared_tile(drawing: Drawing, scene: Scene, array: str, thread: int, place, plan: Plan) -> None:
    (left, top), hue = place, colours.of_array(array)
    drawing.text(left, top - 12, f"{array} (shared)", bold=True, fill=hue)
    held = scene.shared.get(array, {})
    now = {e for elements in scene.touched.get(array, {}).values() for e in elements}
    mine = set(scene.touched.get(array, {}).get(thread, []))
    for row in range(plan.tile):
        for column in range(plan.tile):
            content = held.get((row, column))
            fill = hue if (row, column) in now else colours.PALE[hue] if content else colours.IDLE
            words = "?" if content is None else _tidy(content[2:-1]) if "[" in content else content
            x, y = left + column * _CELL, top + row * _CELL
            _cell(drawing, x, y, fill, words, (row, column) in mine)


def _copy_arrow(drawing: Drawing, scene: Scene, matrix: str, thread: int, places, plan: Plan) -> None:
    """Draw an arrow that covers no cell from a matrix to its tile, in line with what the thread copies."""
    array, columns = f"{matrix}s", plan.shapes["B"][1]
    source = scene.touched.get(matrix, {}).get(thread)
    target = scene.touched.get(array, {}).get(thread)
    if not source or not target:
        return
    (left, top), (tile_left, tile_top) = places[matrix], places[array]
    (row, column), (to_row, to_column) = source[-1], target[-1]
    if matrix == "A":
        x1, x2 = (x + (at + 0.5) * _CELL for x, at in ((left, column), (tile_left, to_column)))
        drawing.line(x1, top - 4, x2, tile_top + plan.tile * _CELL + 3, width=2, arrow=True)
    else:
        y1, y2 = (y + (at + 0.5) * _CELL for y, at in ((top, row), (tile_top, to_row)))
        drawing.line(places["C"][0] + columns * _CELL + 3, y1, tile_left - 4, y2, width=2, arrow=True)


def _accumulator(drawing: Drawing, past: list[Scene], thread: int, place) -> None:
    """Write the thread's accumulator as the sum of its products so far, by their elements of A and B."""
    left, top = place
    drawing.text(left, top + 8, "acc (register)", bold=True, fill=colours.C)
    terms = []
    for scene in past:
        reads = [
            (a, scene.touched[a][thread][-1]) for a in ("As", "Bs") if thread in scene.touched.get(a, {})
        ]
        if len(reads) == 2 and "=" not in scene.did[thread][0]:
            terms.append("·".join(_tidy(scene.shared[a].get(e, "?")) for a, e in reads))
    words = terms or ["0"]
    for place, term in enumerate(words):
        drawing.text(left, top + 30 + 18 * place, ("+ " if place else "") + term, size=14, mono=True)


def _tidy(name: str) -> str:
    return name.replace(_COMMA, ",")


def _code(drawing: Drawing, scene: Scene, plan: Plan, top: float) -> float:
    return drawing.code(top, "", plan.lines.get(scene.line, "").split("  #")[0].strip())


def _counters(drawing: Drawing, scene: Scene, thread: int, plan: Plan, top: float) -> None:
    loads, reads = scene.loads.get(thread, 0), scene.reads.get(thread, 0)
    rows = (
        ("with tiles", loads, plan.tiled_loads, colours.NOW),
        ("without", min(reads, plan.naive_loads), plan.naive_loads, colours.QUIET),
    )
    drawing.text(8, top + 22, "global loads of this thread so far", fill=colours.QUIET)
    for place, (label, count, total, fill) in enumerate(rows):
        y = top + 32 + 22 * place
        drawing.text(8, y + 13, label)
        for i in range(total):
            drawing.rect(96 + i * 24, y, 20, 16, fill if i < count else colours.PAPER, stroke=colours.QUIET)
        drawing.text(96 + total * 24 + 8, y + 13, f"{count} of {total}")


def _description(scene: Scene, thread: int, plan: Plan) -> str:
    tiles = "; ".join(
        f"{array} holds " + ", ".join(f"{cells[e]} at {list(e)}" for e in sorted(cells))
        for array, cells in scene.shared.items()
    )
    loads, reads = scene.loads.get(thread, 0), scene.reads.get(thread, 0)
    return (
        f"Block ({plan.block[0]}, {plan.block[1]}). {tiles or 'The shared tiles are still empty'}."
        f" Global loads of this thread so far: {loads} of {plan.tiled_loads};"
        f" without tiles {min(reads, plan.naive_loads)} of {plan.naive_loads}."
    )
