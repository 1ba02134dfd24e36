"""Which 32-byte sectors one warp moves when its lanes touch a matrix."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.requests import SECTOR, Request
from gemm_course.figures.svg import Drawing

# A warp that walks down touches 32 rows; one that walks along, unaligned, five sectors.
ROWS, COLUMNS = 32, 40
_HEIGHT = 9.0


def _percent(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".") + " %"


def _summary(request: Request) -> str:
    sectors = len(request.sectors)
    return (
        f"{sectors} sector{'s' * (sectors > 1)}, {request.moved_bytes} bytes moved, {request.useful_bytes}"
        f" used"
        f" ({_percent(request.percent_used)})"
    )


def one_request(request: Request, leading_dimension: int) -> Picture:
    """Draw one warp request over its matrix, large. ``leading_dimension`` in elements."""
    drawing = Drawing(f"1 request → {_summary(request)}")
    drawing.text(
        8,
        drawing.top + 12,
        f"{request.array} in global memory, one row of cells per row of {request.array}",
        fill=colours.QUIET,
    )
    bottom = _panel(drawing, request, leading_dimension, 60, drawing.top + 34, 11.4, _HEIGHT)
    _legend(drawing, bottom + 8, [request])
    return drawing.picture(_in_words(request, leading_dimension))


def warp_requests(chosen: Sequence[Request], leading_dimensions: Sequence[int], title: str) -> Picture:
    """Draw up to three requests of one warp side by side, such as the loads of A and B and the store of C in
    one k step.
    """
    drawing = Drawing(title)
    wide = (drawing.width - 16) / len(chosen)
    left_margin = 46
    cell = (
        min(4.6, (wide - left_margin - 4) / COLUMNS)
        if len(chosen) > 2
        else (wide - left_margin - 6) / COLUMNS
    )
    bottom = 0.0
    for place, (request, leading_dimension) in enumerate(zip(chosen, leading_dimensions, strict=True)):
        left = 8 + place * wide
        hue = colours.of_array(request.array)
        sectors = len(request.sectors)
        drawing.text(left, drawing.top + 12, f"{request.op} {request.array}", bold=True, fill=hue, size=15)
        drawing.text(left, drawing.top + 30, f"{sectors} sector{'s' * (sectors > 1)},")
        drawing.text(left, drawing.top + 47, f"{_percent(request.percent_used)} used")
        bottom = max(
            bottom,
            _panel(drawing, request, leading_dimension, left + left_margin, drawing.top + 66, cell, _HEIGHT),
        )
    _legend(drawing, bottom + 8, chosen)
    return drawing.picture(
        " ".join(_in_words(r, ld) for r, ld in zip(chosen, leading_dimensions, strict=True))
    )


def _in_words(request: Request, leading_dimension: int) -> str:
    lanes = request.lanes
    first, last = lanes[0], lanes[-1]
    return (
        f"{request.op.capitalize()} of {request.array}, leading dimension {leading_dimension}: lane"
        f" {first[0]} touches"
        f" {request.array}{list(first[1])}, lane {last[0]} touches {request.array}{list(last[1])};"
        f" {_summary(request)}."
    )


def _panel(
    drawing: Drawing,
    request: Request,
    leading_dimension: int,
    left: float,
    top: float,
    cell: float,
    height: float,
):
    """Draw ROWS x COLUMNS elements: moved sectors yellow, touched elements in the matrix's hue."""
    touched = defaultdict(list)
    for lane, element, address in request.lanes:
        touched[element].append((lane, address))
    size = request.bits // 8
    first_row = min(row for row, _ in touched)
    any_element, any_lanes = next(iter(touched.items()))
    base = any_lanes[0][1] - (any_element[0] * leading_dimension + any_element[1]) * size
    first_column = _window(touched, base, leading_dimension, size)
    hue = colours.of_array(request.array)
    moved = request.sectors
    per_sector = SECTOR // size
    for r in range(ROWS):
        row, y = first_row + r, top + r * height
        start = (base + (row * leading_dimension + first_column) * size) // size
        for sector in range(start // per_sector, (start + COLUMNS - 1) // per_sector + 1):
            x0 = max(sector * per_sector, start) - start
            x1 = min((sector + 1) * per_sector, start + COLUMNS) - start
            fill = colours.MOVED if sector in moved else colours.IDLE
            drawing.rect(left + x0 * cell, y, (x1 - x0) * cell - 1.2, height - 1, fill)
    for (row, column), lanes in touched.items():
        x, y = left + (column - first_column) * cell, top + (row - first_row) * height
        drawing.rect(
            x + 0.3,
            y + 1,
            max(cell - 1.4, 2.2),
            height - 3,
            hue,
            title=f"lanes {[lane for lane, _ in lanes]}",
        )
    _lane_labels(drawing, touched, first_row, left, top, height)
    corner = f"from {request.array}[{first_row}, {first_column}]"
    drawing.text(left, top + ROWS * height + 12, corner, size=12, fill=colours.QUIET)
    return top + ROWS * height + 14


def _window(touched, base: int, leading_dimension: int, size: int) -> int:
    """Return the first column to show: the start of the leftmost touched sector, if that is in its row."""
    row, column = min(touched, key=lambda element: (element[1], element[0]))
    address = base + (row * leading_dimension + column) * size
    return max(0, column - address % SECTOR // size)


def _lane_labels(drawing: Drawing, touched, first_row: int, left: float, top: float, height: float) -> None:
    """Label rows with the lanes that touch them, where there is room; always the first and the last."""
    rows = defaultdict(list)
    for (row, _), lanes in touched.items():
        rows[row].extend(lane for lane, _ in lanes)
    drawing.text(left - 4, top - 4, "lane", size=12, anchor="end", fill=colours.QUIET)
    last, free = max(rows), float("-inf")
    for row in sorted(rows):
        y = top + (row - first_row + 0.5) * height + 5
        too_close = y < free or (row != last and y + 14 > top + (last - first_row + 0.5) * height + 5)
        if not too_close:
            low, high = min(rows[row]), max(rows[row])
            drawing.text(left - 4, y, low if low == high else f"{low}–{high}", anchor="end")
            free = y + 14


def _legend(drawing: Drawing, y: float, chosen: Sequence[Request]) -> None:
    x = 8.0
    for request in {r.array: r for r in chosen}.values():
        drawing.rect(x, y + 2, 10, 10, colours.of_array(request.array))
        x += 14
    drawing.text(x, y + 12, "touched by a lane", fill=colours.QUIET)
    drawing.rect(x + 148, y + 2, 26, 10, colours.MOVED)
    drawing.text(x + 180, y + 12, "sector moved", fill=colours.QUIET)
    drawing.rect(x + 296, y + 2, 26, 10, colours.IDLE, stroke=colours.EDGE)
    drawing.text(x + 328, y + 12, "sector not moved", fill=colours.QUIET)
