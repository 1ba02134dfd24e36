"""Draws how a block fills its shared tiles: which thread stores which element, and which no thread stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import Drawing, wrap

Element = tuple[int, int]
# Both tiles side by side are at most _WIDEST wide, and a cell is at most _CELL wide.
_WIDEST, _CELL = 456.0, 16.0


@dataclass(frozen=True)
class Moment:
    """One store into a tile by all threads that take part.

    ``stores`` maps a thread's linear id to the element that the thread stores.
    """

    line: int
    array: str
    stores: Mapping[int, Element]


@dataclass(frozen=True)
class Plan:
    """The tiles and the block that fills them.

    ``tiles`` maps each tile's name to its size. ``block`` is the block's threads (x, y). ``lines`` holds the
    kernel's lines by number. ``outside`` holds the emulator's messages about stores outside the tiles.
    """

    tiles: Mapping[str, int]
    block: tuple[int, int]
    lines: Mapping[int, str] = field(default_factory=dict)
    outside: Sequence[str] = ()

    @property
    def shapes(self) -> dict[str, Element]:
        t = self.tiles
        return {"As": (t["BM"], t["BK"]), "Bs": (t["BK"], t["BN"])}


def moments(trace) -> list[Moment]:
    """Return the stores into shared tiles in ``report.trace`` of one block, in order."""
    stores = trace[(trace["space"] == "shared") & (trace["op"] == "store")]
    story: dict[int, Moment] = {}
    columns = (stores[name].tolist() for name in ("step", "line", "array", "thread", "element"))
    for step, line, array, thread, element in zip(*columns, strict=True):
        story.setdefault(step, Moment(line, array, {})).stores[thread] = element
    return list(story.values())


def holes(story: Sequence[Moment], plan: Plan) -> dict[str, int]:
    """Count the elements of each tile that no thread has stored."""
    stored = {(m.array, element) for m in story for element in m.stores.values()}
    return {
        array: sum((array, (row, column)) not in stored for row in range(rows) for column in range(columns))
        for array, (rows, columns) in plan.shapes.items()
    }


def covered(story: Sequence[Moment], thread: tuple[int, int], plan: Plan) -> Picture:
    """Draw the tiles after all stores.

    The elements of ``thread`` (x, y) are marked, and holes are hatched.
    """
    missing = holes(story, plan)
    return _draw(story, None, thread, plan, _verdict(missing, plan))


def filling(story: Sequence[Moment], step: int, thread: tuple[int, int], plan: Plan) -> Picture:
    """Draw store ``step`` (from 0) of the story. After the last store, draw the result."""
    if step >= len(story):
        return covered(story, thread, plan)
    now = story[step]
    element = now.stores.get(_linear(thread, plan))
    did = f"stores {now.array}{list(element)}" if element else f"has no element of {now.array} to store"
    title = f"Store {step + 1} of {len(story)}, thread ({thread[0]}, {thread[1]}): {did}"
    return _draw(story[: step + 1], now, thread, plan, title)


def _linear(thread: tuple[int, int], plan: Plan) -> int:
    return thread[1] * plan.block[0] + thread[0]


def _verdict(missing: Mapping[str, int], plan: Plan) -> str:
    begin = f"BK = {plan.tiles['BK']}, {plan.block[0]} × {plan.block[1]} threads:"
    left = [
        f"{count} of {rows * columns} elements of {array}"
        for (array, count), (rows, columns) in zip(missing.items(), plan.shapes.values(), strict=True)
        if count
    ]
    if left:
        return f"{begin} no thread writes {' and '.join(left)}"
    return f"{begin} threads write outside the tiles" if plan.outside else f"{begin} both tiles are complete"


def _draw(past: Sequence[Moment], now: Moment | None, thread, plan: Plan, title: str) -> Picture:
    drawing = Drawing(title, title_lines=2)
    t = plan.tiles
    cell = min(_CELL, _WIDEST / (t["BK"] + t["BN"]))
    left, top = 54.0, drawing.top + 22
    corner = left + t["BK"] * cell + 16, top + t["BK"] * cell + 16
    places = {"As": (left, corner[1]), "Bs": (corner[0], top)}
    for array, (x, y) in places.items():
        _tile(drawing, array, x, y, cell, past, now, thread, plan)
    _results(drawing, *corner, cell, thread, plan)
    hues = {array: colours.of_array(array) for array in places}
    drawing.text(corner[0], top - 6, f"Bs, {t['BK']} × {t['BN']}", bold=True, fill=hues["Bs"])
    drawing.text(8, corner[1] - 6, f"As, {t['BM']} × {t['BK']}", bold=True, fill=hues["As"])
    bottom = _legend(drawing, corner[1] + t["BM"] * cell + 12, complete=now is None)
    if now is not None:
        code = plan.lines.get(now.line, "").split(" if ")[0].split("  #")[0].strip()
        drawing.code(bottom + 6, now.line, code)
    else:
        _warnings(drawing, bottom, plan)
    return drawing.picture(_in_words(past, thread, plan))


def _tile(drawing: Drawing, array: str, left, top, cell, past, now, thread, plan: Plan) -> None:
    hue, me = colours.of_array(array), _linear(thread, plan)
    times = Counter(e for m in past if m.array == array for e in m.stores.values())
    mine = {m.stores[me] for m in past if m.array == array and me in m.stores}
    current = set(now.stores.values()) if now is not None and now.array == array else set()
    here = {now.stores.get(me)} if current else set()
    rows, columns = plan.shapes[array]
    for row in range(rows):
        for column in range(columns):
            e, x, y = (row, column), left + column * cell, top + row * cell
            fill = hue if e in mine else colours.PALE[hue] if e in times else colours.IDLE
            if e in current:
                drawing.rect(x, y, cell - 1, cell - 1, colours.NOW, stroke=colours.INK, line=0.8)
            else:
                drawing.rect(x, y, cell - 1, cell - 1, fill)
            if now is None and e not in times:
                drawing.hatch(x, y, cell - 1, cell - 1, colours.WARN)
            elif times[e] > 1:
                drawing.rect(x, y, cell - 1, cell - 1, "none", stroke=colours.WARN, line=1.5)
            if e in here:
                drawing.rect(x - 1, y - 1, cell + 1, cell + 1, "none", stroke=colours.INK, line=2.5)


def _results(drawing: Drawing, left, top, cell, thread, plan: Plan) -> None:
    """Draw the tile of C with the part that ``thread`` computes, in line with its slices of the tiles."""
    t = plan.tiles
    drawing.rect(left, top, t["BN"] * cell - 1, t["BM"] * cell - 1, colours.IDLE, stroke=colours.EDGE)
    x, y = left + thread[0] * t["TN"] * cell, top + thread[1] * t["TM"] * cell
    drawing.rect(x, y, t["TN"] * cell - 1, t["TM"] * cell - 1, colours.C)
    drawing.text(left + t["BN"] * cell - 10, top + 20, "C", bold=True, anchor="end")


def _legend(drawing: Drawing, y: float, complete: bool) -> float:
    x = 8.0
    entries = [
        ((colours.A, colours.B), "stored by me"),
        ((colours.PALE[colours.A], colours.PALE[colours.B]), "by others"),
    ]
    if not complete:
        entries += [((colours.NOW,), "now"), ((colours.IDLE,), "not yet")]
    for fills, words in entries:
        for fill in fills:
            drawing.rect(x, y, 12, 12, fill, stroke=colours.INK if fill == colours.NOW else colours.EDGE)
            x += 16
        drawing.text(x + 2, y + 11, words, fill=colours.QUIET)
        x += 8.4 * len(words) + 22
    if complete:
        drawing.rect(x, y, 12, 12, colours.IDLE)
        drawing.hatch(x, y, 12, 12, colours.WARN)
        drawing.text(x + 18, y + 11, "by nobody", fill=colours.QUIET)
        x += 112
    drawing.rect(x, y, 12, 12, colours.C)
    drawing.text(x + 18, y + 11, "my results", fill=colours.QUIET)
    return y + 16


def _warnings(drawing: Drawing, y: float, plan: Plan) -> None:
    for message in plan.outside:
        for line in wrap(message, 14, drawing.width - 16):
            y += 18
            drawing.text(8, y, line, fill=colours.WARN)
        y += 4


def _in_words(past: Sequence[Moment], thread, plan: Plan) -> str:
    me = _linear(thread, plan)
    parts = []
    for array, (rows, columns) in plan.shapes.items():
        mine = list(dict.fromkeys(m.stores[me] for m in past if m.array == array and me in m.stores))
        stored = {e for m in past if m.array == array for e in m.stores.values()}
        shown = ", ".join(str(list(e)) for e in mine) or "none"
        parts.append(f"{len(stored)} of {rows * columns} elements of {array} are stored, {shown} by me")
    outside = " ".join(plan.outside)
    return f"I am thread ({thread[0]}, {thread[1]}). {'; '.join(parts)}. {outside}".strip()
