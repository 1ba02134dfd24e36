"""Draws the contents of each slot of a ring, and its two mbarriers with what changed in the last tick."""

from __future__ import annotations

from collections.abc import Sequence

from gemm_course.figures import colours
from gemm_course.figures.svg import PAGE, Drawing, text_width
from gemm_course.model import phases as model
from gemm_course.model.phases import EMPTY, FULL, PARTS, Barrier, Moment

# The slots lie side by side between these two edges.
_LEFT, _RIGHT = 124.0, PAGE - 8
_ROW = 19.0
_ROWS = {
    FULL: ("full: phase", "arrived", "bytes expected", "bytes came"),
    EMPTY: ("empty: phase", "arrived"),
}


def draw(drawing: Drawing, moments: Sequence[Moment], top: float) -> float:
    """Draw the slots of the last moment. Return the lower edge."""
    now = moments[-1]
    wide = (_RIGHT - _LEFT) / len(now.slots)
    tops = {FULL: top + 52, EMPTY: top + 52 + 4 * _ROW + 9}
    drawing.text(8, top + 38, "holds tile")
    for kind, rows in _ROWS.items():
        for place, words in enumerate(rows):
            drawing.text(8, tops[kind] + 15 + place * _ROW, words, bold=not place)
    for slot in range(len(now.slots)):
        x = _LEFT + slot * wide
        drawing.text(x + wide / 2, top + 15, f"slot {slot}", anchor="middle", bold=True)
        for place, part in enumerate(PARTS):
            _part(drawing, now, slot, part, x + 3 + place * (wide - 6) / 2, top + 20, (wide - 6) / 2)
        for kind in _ROWS:
            _barrier(drawing, moments, (kind, slot), x + 3, tops[kind], wide - 6)
    return tops[EMPTY] + 2 * _ROW + 2


def _part(drawing: Drawing, now: Moment, slot: int, part: str, x: float, top: float, wide: float) -> None:
    tile = now.slots[slot][part]
    fill = colours.IDLE if tile is None else colours.PALE[colours.of_array(part)]
    wrong = now.wrong and (now.wrong.slot, now.wrong.part) == (slot, part)
    landed = any((each.slot, each.part) == (slot, part) for each in now.landed) and not now.broken
    stroke = colours.WARN if wrong else colours.INK if landed else "none"
    drawing.rect(x + 1, top, wide - 2, 26, fill, stroke=stroke, line=3 if wrong else 1.5)
    words = f"{part} {'–' if tile is None else tile}"
    drawing.text(x + wide / 2, top + 18, words, anchor="middle", bold=bool(wrong))


# ---- barriers ----------------------------------------------------------------------------------------------


def _barrier(drawing, moments: Sequence[Moment], key: tuple[str, int], x: float, top: float, wide: float):
    now = moments[-1]
    rows = list(_rows(moments, key))
    changed = ["→" in forms[-1] for forms in rows]
    completed, wanted = key in now.completed and not now.broken, _wanted(now, key)
    fill = colours.NOW_PALE if completed else colours.BAND
    drawing.rect(x, top, wide, len(rows) * _ROW + 2, fill)
    for place, forms in enumerate(rows):
        if changed[place]:
            drawing.rect(x, top + 1 + place * _ROW, wide, _ROW, colours.NOW_PALE)
        words = next((each for each in forms if text_width(each) <= wide), forms[-1])
        drawing.text(x + wide / 2, top + 15 + place * _ROW, words, anchor="middle", bold=not place)
    stroke = colours.WARN if wanted else colours.INK if any(changed) else colours.EDGE
    thick = 2.5 if wanted else 1.5 if any(changed) else 1
    drawing.rect(x, top, wide, len(rows) * _ROW + 2, "none", stroke=stroke, line=thick)


def _wanted(now: Moment, key: tuple[str, int]) -> bool:
    """Tell whether the run ended because a warp could not go on at this barrier."""
    kind = {model.STANDSTILL: model.WAIT, model.UNDEFINED: model.EXPECT}.get(now.outcome)
    return any((warp.op.kind, warp.op.barrier, warp.op.slot) == (kind, *key) for warp in now.warps)


def _rows(moments: Sequence[Moment], key: tuple[str, int]):
    """Yield, for each row of a barrier, its text in several lengths, the longest first.

    The caller draws the first text that fits. A value that changed in the last tick is written as
    "old → new". In the tick that completes a phase, the rows show that phase's final counts. The next phase's
    counts follow one tick later.
    """
    now = moments[-1]
    after = now.barriers[key]
    before = after if now.broken or len(moments) == 1 else moments[-2].barriers[key]
    if before.phase == after.phase:
        yield f"{after.phase} in progress, parity {after.parity}", f"{after.phase}, parity {after.parity}"
    else:
        yield (
            f"{before.phase} complete: now {after.phase}, parity {after.parity}",
            f"{before.phase} → {after.phase}, parity {after.parity}",
            f"{before.phase}→{after.phase}, parity {after.parity}",
            f"→{after.phase}, parity {after.parity}",
        )
        before, after = _end(now, key, before)
    yield _change(before.arrived, after.arrived, f" of {after.arrivals}")
    if key[0] == FULL:
        yield _change(before.expected, after.expected)
        yield _change(before.came, after.came)


def _end(now: Moment, key: tuple[str, int], before: Barrier) -> tuple[Barrier, Barrier]:
    """Return the counts of the phase that ended, a tick before its end and at its end."""
    landed = sum(each.slot == key[1] for each in now.landed) if key[0] == FULL else 0
    came = before.came + landed * model.PART_BYTES
    return before, Barrier(before.arrivals, 0, before.phase, came, came)


def _change(before: int, after: int, of: str = "") -> tuple[str, ...]:
    if before == after:
        return (f"{after:,}{of}",)
    return f"{before:,} → {after:,}{of}", f"{before:,}→{after:,}{of}"
