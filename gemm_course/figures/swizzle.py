"""Draws a tile in shared memory, 128 bytes per line, with the place and the banks of each row's pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import Drawing

# A part is 4 of the 32 banks and as wide as a piece. ROWS is the number of rows that ldmatrix reads at a
# time.
PARTS, ROWS = 8, 8
_LEFT, _WIDE, _HIGH, _LINES = 8.0, 67.0, 19.0, 16


def tile(places: Sequence[Sequence[int]], read: int, wavefronts: int) -> Picture:
    """Draw 8 rows of pieces of 16 bytes as they lie over the banks, and mark piece ``read`` of each row.

    ``places`` lists, for each row, the place of each of its pieces. ``wavefronts`` is the emulator's count
    for the read.
    """
    pieces = len(places[0])
    plural = "wavefront" if wavefronts == 1 else "wavefronts"
    drawing = Drawing(f"Piece {read} of eight rows: {wavefronts} {plural}")
    top = drawing.top + 18
    for part in range(PARTS):
        words = f"{'' if part else 'banks '}{part * 4} to {part * 4 + 3}"
        drawing.text(
            _LEFT + (part + 0.5) * _WIDE, top - 6, words, size=12, anchor="middle", fill=colours.QUIET
        )
    hue, met = colours.of_array("A"), Counter()
    for row in range(ROWS):
        for piece, place in enumerate(places[row]):
            line, part = divmod(row * pieces + place, PARTS)
            mine = piece == read
            met[part] += mine
            x, y = _LEFT + part * _WIDE, top + line * _HIGH
            fill = hue if mine else (colours.STRIPE if row % 2 else colours.IDLE)
            drawing.rect(x, y, _WIDE - 1, _HIGH - 1, fill)
            ink = colours.text_on(hue) if mine else colours.QUIET
            words = f"row {row} · {piece}"
            drawing.text(x + _WIDE / 2, y + 13.5, words, size=12, anchor="middle", fill=ink, bold=mine)
    lines = ROWS * pieces // PARTS
    for part, count in met.items():
        if count > 1:
            x = _LEFT + part * _WIDE
            drawing.rect(x - 1, top - 2, _WIDE + 1, lines * _HIGH + 2, "none", stroke=colours.WARN, line=2.5)
    words = _said(met)
    drawing.text(_LEFT, top + lines * _HIGH + 18, words, fill=colours.QUIET)
    # This point, which has the colour of the page, makes all pictures as high as the one with the most lines.
    drawing.rect(_LEFT, top + _LINES * _HIGH + 22, 1, 1, colours.PAPER)
    starts = ", ".join(str((row * pieces + places[row][read]) % PARTS * 4) for row in range(ROWS))
    return drawing.picture(
        f"Eight rows of {pieces} pieces, 128 bytes per line. Piece {read} of rows 0 to 7 begins in banks "
        f"{starts}. {words}"
    )


def _said(met: Counter) -> str:
    most = max(met.values())
    if most == 1:
        return "All eight lie in different banks."
    return f"{most} of them share the same banks (outlined)."
