"""The same kernel on the same matrices with longer and longer rows: its speed, and where a warp reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import SMALL, Drawing, wrap
from gemm_course.model.requests import LINE

PLACES = LINE // 4  # floats of a line
_LEFT, _WIDTH = 60.0, 490.0
_BARS, _TOWERS = 140.0, 120.0  # heights of the two panels


def draw(
    kernel: str,
    n: int,
    extra: int,
    measured: Mapping[int, float],
    words: Sequence[int],
    note: str,
    only_this: bool = False,
) -> Picture:
    """Draw one length of the rows, n floats and ``extra`` more.

    measured: TFLOPS by extra floats, with 0 among them. words: the different floats of A that a warp reads in
    one request, counted from the first byte of A. note: what was measured where. only_this: draw no bars but
    that of this length and that of 0.
    """
    shown = {more: value for more, value in measured.items() if not only_this or more in (0, extra)}
    drawing = Drawing(f"{kernel}, {_answer(n, extra, measured)}", title_lines=2)
    top = drawing.top + 18
    _speeds(drawing, top, extra, measured, shown)
    towers = Counter(word % PLACES for word in words)
    top += _BARS + 76
    _places(drawing, top, towers)
    for place, line in enumerate(wrap(note, SMALL, drawing.width - 16)):
        drawing.text(8, top + _TOWERS + 62 + 18 * place, line, fill=colours.QUIET)
    spoken = ", ".join(f"{more} more {value:.3g}" for more, value in sorted(shown.items()))
    return drawing.picture(f"TFLOPS by the length of a row, {n} floats and: {spoken}. {_told(towers)} {note}")


def _answer(n: int, extra: int, measured: Mapping[int, float]) -> str:
    here, plain = measured[extra], measured[0]
    told = f"rows of {n + extra} floats: {here:.3g}\u00a0TFLOPS"
    return f"{told}, {here / plain:.2f} times that of {n}" if extra else told


def _speeds(drawing: Drawing, top: float, extra: int, measured: Mapping[int, float], shown) -> None:
    """Bars from zero, with room for each length that was measured."""
    floor, most = top + _BARS, _round_above(max(measured.values()))
    step = _WIDTH / len(measured)
    drawing.text(8, top - 4, "TFLOPS", fill=colours.QUIET)
    drawing.line(_LEFT, floor - _BARS + 18, _LEFT + _WIDTH, floor - _BARS + 18, stroke=colours.EDGE)
    drawing.text(_LEFT - 6, floor - _BARS + 23, most, anchor="end")
    drawing.text(_LEFT - 6, floor + 5, "0", anchor="end")
    for place, (more, value) in enumerate(sorted(measured.items())):
        x, high = _LEFT + place * step, (_BARS - 18) * value / most
        mine = more == extra
        if more not in shown:
            drawing.text(x + step / 2, floor + 16, more, anchor="middle")
            continue
        drawing.rect(
            x + 2,
            floor - high,
            step - 4,
            high,
            colours.NOW if mine else colours.OTHER,
            stroke=colours.INK,
            line=2 if mine else 0.8,
        )
        drawing.text(x + step / 2, floor + 16, more, anchor="middle", bold=mine)
    drawing.line(_LEFT, floor, _LEFT + _WIDTH, floor)
    drawing.text(_LEFT, floor + 34, "floats of padding at the end of each row", fill=colours.QUIET)


def _round_above(most: float) -> int:
    """The axis's end: a whole number, which does not tell the highest bar's height before it is shown."""
    return next(end for end in (1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100) if end >= most)


def _places(drawing: Drawing, top: float, towers: Mapping[int, int]) -> None:
    """The words of one request, each in the place that it has in its line."""
    floor, pitch = top + _TOWERS, _WIDTH / PLACES
    high = (_TOWERS - 6) / PLACES
    drawing.text(8, top - 10, _told(towers), bold=True)
    for place in range(PLACES):
        x = _LEFT + place * pitch
        for level in range(towers.get(place, 0)):
            drawing.rect(
                x + 1, floor - (level + 1) * high, pitch - 2, high, colours.A, stroke=colours.PAPER, line=0.5
            )
        drawing.line(x, floor, x, floor + 4, stroke=colours.QUIET)
        if place % 8 == 0:
            drawing.text(x + pitch / 2, floor + 18, place, anchor="middle")
    drawing.line(_LEFT, floor, _LEFT + _WIDTH, floor)
    caption = f"place in its line of {PLACES} floats"
    drawing.text(_LEFT, floor + 36, caption, fill=colours.QUIET)


def _told(towers: Mapping[int, int]) -> str:
    words, tallest = sum(towers.values()), max(towers.values())
    if words == 1:
        return "One request for A: one float, for all lanes."
    if len(towers) == 1:
        return f"One request for A: {words} floats, all at the same place in their lines."
    if tallest == 1:
        return f"One request for A: {words} floats, each at a place of its own."
    return f"One request for A: {words} floats, {words // len(towers)} at each of {len(towers)} places."
