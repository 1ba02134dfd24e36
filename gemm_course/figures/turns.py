"""Draws the turns in which a warp's read of four floats per lane is served, and which lanes want the same."""

from __future__ import annotations

from collections.abc import Sequence

from gemm_course.figures import colours
from gemm_course.figures.banks import WORD
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import SMALL, Drawing, wrap
from gemm_course.figures.wavefronts import Wavefront, agreeing, bank_line, bank_numbers, served
from gemm_course.model.requests import Request

# A row of lanes is what is served together where no turns join.
_ROW, _ROWS = 8, 4
_LEFT, _WIDE, _HIGH, _GAP = 8.0, 68.0, 22.0, 11.0
# This height is reserved for the turns, and this many lines for the words.
_MOST, _LINES = 242.0, 3
_FRONT, _HEADING = 20.0, 18.0

Turn = tuple[range, Sequence[Wavefront]]


def turn(request: Request, now: int, code: str) -> Picture:
    """Draw turn ``now`` (from 0) of a warp's read of four floats per lane, and the turns before it.

    ``code`` says in a few words which read it is. All pictures are equally high.
    """
    turns = served(request)
    so_far = sum(len(fronts) for _, fronts in turns[: now + 1])
    drawing = Drawing(f"Turn {now + 1} of {len(turns)}: {_wavefronts(len(turns[now][1]))}, {so_far} so far")
    top = drawing.top + 18
    drawing.text(_LEFT, top - 6, f"{code}. Lane: the first of its four words", fill=colours.QUIET)
    _lanes(drawing, request, turns[now][0], top)
    below = top + _ROWS * (_HIGH + _GAP) + 24
    y = below
    bank_numbers(drawing, y - 8)
    for place, each in enumerate(turns):
        y = _served(drawing, request, place, each, y, shown=place <= now)
    notes = [_joined(request), _within(turns[now])]
    below += _MOST
    for place, line in enumerate(wrap(" ".join(filter(None, notes)), SMALL, drawing.width - 16)):
        drawing.text(_LEFT, below + 14 + 18 * place, line, fill=colours.QUIET)
    drawing.rect(0, below + 18 * _LINES, 1, 1, colours.PAPER)
    return drawing.picture(f"{_in_words(request, turns, now)} {' '.join(filter(None, notes))}")


# ---- the lanes ---------------------------------------------------------------------------------------------


def _place(lane: int) -> tuple[float, float]:
    """Return where a lane's box begins, from the left edge and from the top of all lanes."""
    return _LEFT + lane % _ROW * _WIDE, lane // _ROW * (_HIGH + _GAP)


def _lanes(drawing: Drawing, request: Request, now: range, top: float) -> None:
    """Draw a box for each lane, dark if it is served now, and link lanes that want the same 16 bytes."""
    hue, starts = colours.of_array(request.array), _starts(request)
    for lane, word in starts.items():
        x, y = _place(lane)
        fill = hue if lane in now else colours.PALE[hue]
        edge = {"stroke": colours.INK, "line": 1.6} if lane in now else {"stroke": colours.EDGE}
        drawing.rect(x, top + y, _WIDE - 6, _HIGH, fill, **edge)
        ink = colours.text_on(fill)
        drawing.text(x + (_WIDE - 6) / 2, top + y + 16, f"{lane}: {word}", anchor="middle", fill=ink)
    apart = agreeing(request)
    if apart:
        for lane in [lane for lane in starts if not lane & apart]:
            _link(drawing, lane, lane ^ apart, top)


def _link(drawing: Drawing, lane: int, other: int, top: float) -> None:
    """Draw a bracket below two lanes that want the same."""
    left, right = (_place(each)[0] + (_WIDE - 6) / 2 for each in (lane, other))
    # Brackets of lanes two apart overlap, so every other one goes deeper.
    deeper = 4 if other - lane > 1 and lane % 2 else 0
    y = top + _place(lane)[1] + _HIGH
    low = y + 4 + deeper
    drawing.path([(left, y), (left, low), (right, low), (right, y)], stroke=colours.INK, line=2)


def _starts(request: Request) -> dict[int, int]:
    return {lane: address // WORD for lane, _, address in request.lanes}


# ---- the turns ---------------------------------------------------------------------------------------------


def _served(drawing: Drawing, request: Request, place: int, turn: Turn, y: float, shown: bool) -> float:
    """Draw the wavefronts of a turn, or one empty line before it comes. Return the lower edge."""
    lanes, fronts = turn
    told = f": {_wavefronts(len(fronts))}" if shown else ""
    drawing.text(_LEFT, y + 14, f"turn {place + 1}, {_named(lanes)}{told}", bold=shown and len(fronts) > 1)
    y += _HEADING
    for front in fronts if shown else [{}]:
        bank_line(drawing, y, front, request)
        y += _FRONT
    return y + 2


# ---- in words ----------------------------------------------------------------------------------------------


def _wavefronts(count: int) -> str:
    return "1 wavefront" if count == 1 else f"{count} wavefronts"


def _named(lanes: range) -> str:
    return f"lanes {lanes[0]} to {lanes[-1]}"


def _joined(request: Request) -> str:
    """Say why there are so many turns."""
    apart = agreeing(request)
    if not apart:
        return (
            "A wavefront brings at most 128 bytes, so a turn serves 8 lanes: not every lane wants the same "
            "as its neighbour."
        )
    whom = "its neighbour" if apart == 1 else "the lane two places away"
    return f"Every lane wants the same 16 bytes as {whom}, so turns join: each serves 16 lanes."


def _within(turn: Turn) -> str:
    """Say why a turn takes more than one wavefront, or whom a box serves."""
    lanes, fronts = turn
    if len(fronts) > 1:
        return f"Lanes of this turn want different words of one bank: {_wavefronts(len(fronts))}."
    alike = len(lanes) > len(set(fronts[0].values()))
    return "Lanes that want the same words get them together, in the first one's box." if alike else ""


def _in_words(request: Request, turns: Sequence[Turn], now: int) -> str:
    lanes, _ = turns[now]
    starts = _starts(request)
    wanted = ", ".join(f"{lane}: {starts[lane]} to {starts[lane] + 3}" for lane in lanes)
    served_so_far = "; ".join(
        f"turn {place + 1}, {_named(each)}: {_wavefronts(len(fronts))}"
        for place, (each, fronts) in enumerate(turns[: now + 1])
    )
    return f"{served_so_far}. The words that the lanes of turn {now + 1} want are {wanted}."
