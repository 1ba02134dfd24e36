"""Draws a choice of tiles and its neighbours, which differ from it by one step of one slider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import Drawing, wrap

# The bars begin at _LEFT, the longest ends at _RIGHT, and each is _HIGH units high.
_LEFT, _RIGHT, _HIGH = 190.0, 440.0, 18.0


@dataclass(frozen=True)
class Neighbour:
    """A choice of tiles.

    ``label`` says how it differs from the choice that the sliders show, which is marked by ``now``.
    ``tflops`` is None if it was not measured. ``best`` marks the fastest choice of all that were measured.
    """

    label: str
    tflops: float | None
    now: bool = False
    best: bool = False


def neighbours(
    groups: Sequence[tuple[str, Sequence[Neighbour]]],
    title: str,
    *,
    cublas: float | None = None,
    cannot: str = "",
    note: str = "",
) -> Picture:
    """Draw groups of choices, (heading, choices), as bars of TFLOPS from zero.

    ``cublas`` is drawn as a line. ``cannot`` names the neighbours that cannot run. ``note`` says where the
    figures come from.
    """
    drawing = Drawing(title, title_lines=2)
    known = [each.tflops for _, bars in groups for each in bars if each.tflops]
    longest = max([*known, cublas or 0, 1e-9])
    first = drawing.top + (24 if cublas else 0)
    y = first
    if cublas:
        _line(drawing, cublas, longest, first, first + sum(_height(bars) for _, bars in groups))
    for heading, bars in groups:
        drawing.text(8, y + 14, heading, fill=colours.QUIET)
        for place, each in enumerate(bars):
            _bar(drawing, each, longest, y + _height(bars[:place]))
        y += _height(bars)
    for words in filter(None, (cannot, note)):
        for text in wrap(words, 14, 544):
            drawing.text(8, y + 14, text, fill=colours.QUIET)
            y += 18
        y += 4
    return drawing.picture(_in_words(groups, cublas, cannot, note))


def _lines(each: Neighbour) -> list[str]:
    return wrap(each.label, 14, _LEFT - 36, bold=each.now)


def _height(bars: Sequence[Neighbour]) -> float:
    """Return the height of a group's heading and these bars."""
    return 26 + sum(max(_HIGH + 4, 17 * len(_lines(each)) + 4) for each in bars)


def _bar(drawing: Drawing, each: Neighbour, longest: float, top: float) -> None:
    y = top - 4
    for place, line in enumerate(_lines(each)):
        drawing.text(16, y + 14 + 17 * place, line, bold=each.now)
    if each.tflops is None:
        drawing.rect(_LEFT, y + 1, 60, _HIGH - 2, colours.PAPER, stroke=colours.QUIET, dash="3 3")
        drawing.hatch(_LEFT, y + 1, 60, _HIGH - 2)
        drawing.text(_LEFT + 68, y + 14, "not measured", fill=colours.QUIET)
    else:
        width = max((_RIGHT - _LEFT) * each.tflops / longest, 1.5)
        fill = colours.NOW if each.now else colours.OTHER
        drawing.rect(_LEFT, y, width, _HIGH, fill, stroke=colours.INK, line=2 if each.now else 0.8)
        said = f"{each.tflops:.3g}" + (", the best" if each.best else "")
        drawing.rect(_LEFT + width + 4, y, 9 * len(said) + 4, _HIGH, colours.PAPER)
        drawing.text(_LEFT + width + 6, y + 14, said, bold=each.now or each.best)


def _line(drawing: Drawing, cublas: float, longest: float, top: float, bottom: float) -> None:
    x = _LEFT + (_RIGHT - _LEFT) * cublas / longest
    drawing.line(x, top, x, bottom - 4, dash="5 4")
    drawing.text(x, top - 6, f"cuBLAS {cublas:.3g}", anchor="middle")


def _in_words(groups, cublas: float | None, cannot: str, note: str) -> str:
    said = []
    for heading, bars in groups:
        told = ", ".join(
            f"{each.label} {'not measured' if each.tflops is None else f'{each.tflops:.3g}'}"
            f"{' (the best)' if each.best else ''}"
            for each in bars
        )
        said.append(f"{heading}: {told}.")
    said += [f"cuBLAS {cublas:.3g}."] if cublas else []
    return " ".join(filter(None, ["TFLOPS.", *said, cannot, note]))
