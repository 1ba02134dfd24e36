"""Draws the parts that pictures with a row per kernel share: a row's heading, and paragraphs."""

from __future__ import annotations

from gemm_course.figures import colours
from gemm_course.figures.svg import PAGE, SMALL, Drawing, text_width, wrap

LEFT, RIGHT, LINE = 8.0, PAGE - 8.0, 18.0
# A bold name with underscores may be wider than estimated by this factor.
_BOLD = 1.1
# The letters m and w may be wider than estimated by this share of the font's size.
_WIDE = 0.45


def paragraph(drawing: Drawing, words: str, y: float, fill: str = colours.QUIET) -> float:
    """Write words below y in as many lines as they take. Return where the next line begins."""
    for line in wrap(words, SMALL, RIGHT - LEFT):
        drawing.text(LEFT, y + 14, line, fill=fill)
        y += LINE
    return y


def name_width(name: str) -> float:
    """Return an upper estimate of the width of a kernel's name in bold, which holds for short names, too."""
    return _BOLD * text_width(name, bold=True) + _WIDE * SMALL * sum(letter in "mw" for letter in name)


def heading(drawing: Drawing, label: str, tiles: str, at_the_right: str, y: float) -> float:
    """Write a kernel's label, its tiles beside it or below, and a figure at the right.

    Return the lower edge.
    """
    drawing.text(LEFT, y + 14, label, bold=True)
    if at_the_right:
        drawing.text(RIGHT, y + 14, at_the_right, anchor="end")
    if not tiles:
        return y + 20
    beside = LEFT + name_width(label) + 8
    if beside + text_width(tiles) < RIGHT - text_width(at_the_right) - 10:
        drawing.text(beside, y + 14, tiles, fill=colours.QUIET)
        return y + 20
    return paragraph(drawing, tiles, y + LINE) + 2
