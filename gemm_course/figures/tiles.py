"""Draws a choice of tiles: what a block reads of A and B for its tile of C, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import Drawing, wrap

# A plan is at most this wide and high.
_PLAN = 200.0


def choice(
    tiles: Mapping[str, int], title: str, facts: Sequence[tuple[str, str]], broken: Sequence[str]
) -> Picture:
    """Draw one block's tiles to scale beside ``facts``, which are (what, how much) pairs.

    ``broken`` are the rules that the tiles break, in words. If there are any, the plan is hatched.
    """
    drawing = Drawing(title)
    left = _plan(drawing, tiles, bool(broken))
    y = drawing.top + 4
    for name, value in facts:
        drawing.text(left, y + 14, name, fill=colours.QUIET)
        for line in wrap(value, 14, 552 - left - 8, bold=True):
            y += 18
            drawing.text(left + 8, y + 14, line, bold=True)
        y += 24
    for rule in broken:
        for place, line in enumerate(wrap(rule, 14, 552 - left - 22)):
            drawing.text(left, y + 14, "✗" if place == 0 else "", fill=colours.WARN, bold=True)
            drawing.text(left + 20, y + 14, line, fill=colours.WARN)
            y += 18
        y += 8
    spoken = "; ".join(f"{name} {value}" for name, value in facts)
    sizes = ", ".join(f"{name} {value}" for name, value in tiles.items())
    rules = "".join(f" Broken: {rule}." for rule in broken)
    return drawing.picture(f"Tiles {sizes}. {spoken}.{rules}")


def _plan(drawing: Drawing, tiles: Mapping[str, int], illegal: bool) -> float:
    """Draw A's tile at the left, B's tile at the top, and C's tile right of A's and below B's.

    Return the x at which the text beside the plan may begin.
    """
    BM, BN, BK = tiles["BM"], tiles["BN"], tiles.get("BK", 1)
    unit = _PLAN / max(BM + BK, BN + BK)
    gap, left, top = 6.0, 40.0, drawing.top + 26
    corner = left + BK * unit + gap, top + BK * unit + gap
    parts = (
        ("As", colours.A, left, corner[1], BK, BM),
        ("Bs", colours.B, corner[0], top, BN, BK),
        ("C", colours.C, *corner, BN, BM),
    )
    for name, hue, x, y, wide, high in parts:
        width, height = max(wide * unit, 3), max(high * unit, 3)
        drawing.rect(x, y, width, height, colours.PALE[hue], stroke=hue, line=2)
        if illegal:
            drawing.hatch(x, y, width, height, colours.WARN)
        if name == "C":
            _warps(drawing, tiles, corner, unit)
        if width > 24 and height > 18:
            drawing.rect(x + width / 2 - 12, y + height / 2 - 10, 24, 20, colours.PALE[hue])
            drawing.text(
                x + width / 2, y + height / 2 + 5, name, anchor="middle", bold=True, fill=colours.INK
            )
    right, bottom = corner[0] + max(BN * unit, 3), corner[1] + max(BM * unit, 3)
    drawing.text(corner[0] + BN * unit / 2, top - 8, f"BN = {BN}", anchor="middle", fill=colours.QUIET)
    drawing.text(left - 32, corner[1] + BM * unit / 2 + 5, f"{BM}", fill=colours.QUIET)
    drawing.text(left + BK * unit / 2, bottom + 18, f"BK = {BK}", anchor="middle", fill=colours.QUIET)
    drawing.text(left - 32, corner[1] + BM * unit / 2 - 12, "BM", fill=colours.QUIET)
    return max(right + 28, 270.0)


def _warps(drawing: Drawing, tiles: Mapping[str, int], corner: tuple[float, float], unit: float) -> None:
    """Divide the block's tile of C into warp tiles, if the stage has any."""
    BM, BN = tiles["BM"], tiles["BN"]
    WM, WN = tiles.get("WM", BM), tiles.get("WN", BN)
    x, y = corner
    for row in range(WM, BM, WM):
        drawing.line(
            x, y + row * unit, x + BN * unit, y + row * unit, stroke=colours.C, width=1.5, dash="4 3"
        )
    for column in range(WN, BN, WN):
        drawing.line(
            x + column * unit, y, x + column * unit, y + BM * unit, stroke=colours.C, width=1.5, dash="4 3"
        )
