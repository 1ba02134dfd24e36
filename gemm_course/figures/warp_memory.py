"""Draws one request of a warp: its lanes on C, what they ask for, and the sectors that they touch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gemm_course.figures import colours
from gemm_course.figures.corner import Corner, Element, fills_a_rectangle
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import NORMAL, Drawing
from gemm_course.model.requests import SECTOR, Request

# Each step of the story adds this many lanes.
AT_ONCE = 4
_HOW_TOLD = f"Shown {AT_ONCE} lanes at a time; the hardware takes all 32 at once."
# The picture shows this many rows and columns of C, and this many steps along k.
WINDOW = 32, 32, 8
_SIDE, _LEFT = 176.0, 12.0
# The picture shows _RIBBON sectors, with _ROWS of them in a column.
_RIBBON, _ROWS = 32, 16
_PITCH, _WORD = 17.0, 9.0
_WORDS = SECTOR // 4
# A column has room for an address, a sector, and the lanes that ask for the sector.
_COLUMN = 44.0 + _WORDS * _WORD + 54.0
# The longest bar stands for the most bytes that a request can touch.
_BAR = _SIDE
_MOST = 32 * SECTOR


@dataclass(frozen=True)
class View:
    """A request, of which the first ``heard`` lanes have asked so far.

    ``kernel`` is the kernel's name. ``places`` are the elements of C that each lane computes. ``facts`` are
    further sentences below the picture.
    """

    kernel: str
    request: Request
    places: Mapping[int, Iterable[Element]]
    heard: int
    facts: Sequence[str]

    @property
    def now(self) -> Request:
        """The part of the request that has been made so far."""
        return self._of(range(self.heard))

    @property
    def latest(self) -> Request:
        """The part of the request that was added last."""
        return self._of(range(self.heard - AT_ONCE, self.heard))

    def _of(self, lanes: range) -> Request:
        r = self.request
        chosen = tuple(each for each in r.lanes if each[0] in lanes)
        return Request(r.array, r.op, r.space, r.line, r.bits, chosen)


def draw(view: View) -> Picture:
    """Draw a view. All views are equally high."""
    drawing = Drawing(_title(view), title_lines=2)
    top = drawing.top + 18
    corner = Corner(*WINDOW, _LEFT, top, _SIDE)
    for array in "ABC":
        _matrix(drawing, corner, view, array)
    _bars(drawing, view, corner.bottom + 30)
    _ribbon(drawing, view, top)
    below = top + _ROWS * _PITCH + 8
    for fact in (*view.facts, _HOW_TOLD):
        drawing.text(_LEFT, below + 14, fact)
        below += 19
    _legend(drawing, view, below + 6)
    return drawing.picture(_in_words(view))


def nothing(kernel: str, op: str, array: str) -> Picture:
    """Say that a kernel makes no such request."""
    drawing = Drawing(f"{kernel}: its first warp makes no {op} of {array}", title_lines=2)
    return drawing.picture("There is no request to draw.")


# ---- words -------------------------------------------------------------------------------------------------


def _title(view: View) -> str:
    now = view.now
    sectors = _count(len(now.sectors), "sector")
    used = f"{now.moved_bytes} bytes touched for {now.useful_bytes} used"
    what = f"{view.kernel}, {view.request.op} of {view.request.array}"
    if view.heard < 32:
        return f"{what}: lanes 0 to {view.heard - 1} need {sectors}, {used}"
    return f"{what}: the warp needs {sectors}, {used}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _in_words(view: View) -> str:
    request, latest = view.request, view.latest
    asked = "; ".join(
        f"lane {lane}: {request.array}[{', '.join(map(str, element))}] at byte {address}"
        for lane, element, address in latest.lanes
    )
    sectors = sorted(view.now.sectors)
    where = ", ".join(str(sector * SECTOR) for sector in sectors)
    return (
        f"One request for {request.bits // 8} bytes per lane. {_HOW_TOLD} Heard last: {asked or 'no lane'}."
        f" Sectors touched so far begin at byte {where}. {' '.join(view.facts)}"
    )


# ---- shapes ------------------------------------------------------------------------------------------------


def _matrix(drawing: Drawing, corner: Corner, view: View, array: str) -> None:
    """Draw a matrix, and mark the elements of lanes that ask now, that asked before, and that ask later."""
    hue = colours.of_array(array)
    x, y, wide, high = corner.box(array)
    drawing.rect(x, y, wide, high, colours.IDLE, stroke=colours.EDGE)
    lanes_now = {lane for lane, _, _ in view.latest.lanes}
    places = view.places if array == "C" else {}
    by_lane = _asked(view.request) if array == view.request.array else places
    for chosen, fill in (
        (lambda lane: lane >= view.heard, colours.PALE[hue]),
        (lambda lane: lane < view.heard, hue),
        (lambda lane: lane in lanes_now, colours.NOW),
    ):
        elements = {e for lane, places in by_lane.items() if chosen(lane) for e in places}
        corner.light(drawing, array, (e for e in elements if _inside(e, array, corner)), fill)
    corner.rule(drawing, array)
    latest = [set(by_lane[lane]) for lane in lanes_now if lane in by_lane]
    together = set().union(*latest)
    for part in [together] if fills_a_rectangle(together) else latest:
        corner.outline(drawing, array, (e for e in part if _inside(e, array, corner)), line=1.2)
    at = (x + wide / 2, y - 5) if array == "B" else (x + wide / 2, y + high + 18)
    name = "C: the 32 lanes" if array == "C" else array
    drawing.text(*at, name, size=NORMAL, bold=True, anchor="middle", fill=hue)


def _asked(request: Request) -> dict[int, list[Element]]:
    """Return the elements that each lane asks for."""
    width = request.bits // 32
    return {lane: [(row, column + i) for i in range(width)] for lane, (row, column), _ in request.lanes}


def _inside(element: Element, array: str, corner: Corner) -> bool:
    rows, columns = corner.shape(array)
    return element[0] < rows and element[1] < columns


def _ribbon(drawing: Drawing, view: View, top: float) -> None:
    left = drawing.width - 8 - 2 * _COLUMN - 4
    for column in range(2):
        x = left + column * (_COLUMN + 12)
        drawing.text(x + 36, top - 5, "byte", anchor="end", fill=colours.QUIET)
        drawing.text(x + 44 + _WORDS * _WORD / 2, top - 5, "sector", anchor="middle", fill=colours.QUIET)
        drawing.text(x + 48 + _WORDS * _WORD, top - 5, "lanes", fill=colours.QUIET)
    shown = _shown(view.request)
    for place, sector in enumerate(shown):
        x = left + place // _ROWS * (_COLUMN + 12)
        touches = sector + 1 in shown and place % _ROWS < _ROWS - 1
        _sector(drawing, view, sector, x, top + place % _ROWS * _PITCH, _PITCH - (0 if touches else 3))


def _shown(request: Request) -> list[int]:
    """Return the sectors that the whole request needs and, while there is room, those behind them."""
    shown = sorted(request.sectors)
    following = shown[-1] + 1
    return shown[:_RIBBON] + list(range(following, following + _RIBBON - len(shown)))


def _sector(drawing: Drawing, view: View, sector: int, x: float, y: float, high: float) -> None:
    now, latest = view.now, view.latest
    left = x + 44
    moved = sector in now.sectors
    ink = colours.INK if moved else colours.QUIET
    drawing.text(x + 40, y + 12, sector * SECTOR, size=12, anchor="end", fill=ink)
    fill, edge = (colours.MOVED, colours.QUIET) if moved else (colours.IDLE, colours.EDGE)
    drawing.rect(left, y, _WORDS * _WORD, high, fill, stroke=edge)
    hue = colours.of_array(view.request.array)
    for part, word_fill, edge in ((now, hue, "none"), (latest, colours.NOW, colours.INK)):
        for word in _words(part, sector):
            drawing.rect(left + word * _WORD + 0.5, y + 1, _WORD - 1, high - 2, word_fill, stroke=edge)
    lanes = [lane for lane, _, address in now.lanes if address // SECTOR == sector]
    drawing.text(left + _WORDS * _WORD + 6, y + 12, _ranges(lanes), size=12)


def _words(request: Request, sector: int) -> list[int]:
    """Return the words of a sector that a request asks for, counted from the sector's start."""
    wide = request.bits // 32
    words = {address // 4 + i for _, _, address in request.lanes for i in range(wide)}
    return sorted(word % _WORDS for word in words if word // _WORDS == sector)


def _ranges(lanes: list[int]) -> str:
    """Return lanes briefly, such as "0–7" or "0, 16", or their number where that is too long."""
    runs: list[list[int]] = []
    for lane in lanes:
        if runs and runs[-1][-1] + 1 == lane:
            runs[-1].append(lane)
        else:
            runs.append([lane])
    words = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
    return words if len(words) <= 6 else f"{len(lanes)} lanes"


def _bars(drawing: Drawing, view: View, y: float) -> None:
    now, hue = view.now, colours.of_array(view.request.array)
    percent = f" ({now.percent_used:.3g} %)" if now.lanes else ""
    for words, size, fill in (
        (f"touched: {now.moved_bytes} bytes", now.moved_bytes, colours.MOVED),
        (f"used: {now.useful_bytes} bytes{percent}", now.useful_bytes, hue),
    ):
        drawing.text(_LEFT, y + 11, words)
        drawing.rect(_LEFT, y + 16, _BAR, 12, colours.IDLE, stroke=colours.EDGE)
        drawing.rect(_LEFT, y + 16, size / _MOST * _BAR, 12, fill, stroke=colours.QUIET)
        y += 34


def _legend(drawing: Drawing, view: View, y: float) -> None:
    hue = colours.of_array(view.request.array)
    x = _LEFT
    for fill, edge, words, wide in (
        (colours.NOW, colours.INK, "asked now", 106),
        (hue, colours.EDGE, "before", 82),
        (colours.PALE[hue], colours.EDGE, "later", 72),
        (colours.MOVED, colours.QUIET, "touched, not asked for", 180),
        (colours.IDLE, colours.EDGE, "not yet", 80),
    ):
        drawing.rect(x, y, 12, 12, fill, stroke=edge)
        drawing.text(x + 17, y + 11, words, fill=colours.QUIET)
        x += wide
