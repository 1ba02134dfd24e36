"""Draws a sentence in the place of a picture."""

from __future__ import annotations

from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import NORMAL, Drawing, wrap

TITLE = "This cannot be drawn"


def in_words(sentence: str) -> Picture:
    """Draw a sentence where there is no picture to draw."""
    drawing = Drawing(TITLE)
    for place, line in enumerate(wrap(sentence, NORMAL, drawing.width - 24)):
        drawing.text(8, drawing.top + 18 + 22 * place, line, size=NORMAL)
    return drawing.picture(sentence)
