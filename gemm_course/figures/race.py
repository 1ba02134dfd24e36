"""Draws a race: four threads over time, barriers as gates, and the sum that a late thread spoils."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import NORMAL, PAGE, SMALL, Drawing, wrap

# The tracks run from _LEFT to _RIGHT.
_LEFT, _RIGHT = 104.0, 474.0
# Tracks are _TRACK units apart, and what is drawn on a track is _HIGH units high.
_TRACK, _HIGH = 46.0, 34.0
# The products on a track have letters of the size _FACTORS, each _LETTER units wide.
_FACTORS, _LETTER = 12.5, 7.6
# This many units of time fit on a track.
_LONGEST = 6.9
# This many lines are reserved for the sentences below the tracks.
_LINES = 5


@dataclass(frozen=True)
class Factor:
    """A number that a thread reads from a shared tile of ``matrix``, "A" or "B".

    ``right`` is what the number would be with all barriers. If the number is wrong, ``culprit`` is the thread
    whose store comes too late or too early for this read, and the time when that store ends.
    """

    array: str
    element: tuple[int, ...]
    value: int
    right: int
    matrix: str
    culprit: tuple[int, float] | None = None

    @property
    def wrong(self) -> bool:
        return self.value != self.right


@dataclass(frozen=True)
class Part:
    """A stretch of a thread's time, from ``begin`` to ``end``.

    ``kind`` is "load" (the thread stores ``numbers``), "add" (the thread adds ``products``, which are pairs
    of factors), or "held" (the thread is late).
    """

    kind: str
    begin: float
    end: float
    numbers: Sequence[tuple[str, int]] = ()
    products: Sequence[tuple[Factor, Factor]] = ()


@dataclass(frozen=True)
class Track:
    """A thread (x, y) with its parts in order, its sum, and the sum that would be right."""

    thread: tuple[int, int]
    parts: Sequence[Part]
    total: int
    right: int

    @property
    def wrong(self) -> list[Factor]:
        """The factors whose value is wrong."""
        factors = [factor for part in self.parts for product in part.products for factor in product]
        return [factor for factor in factors if factor.wrong]

    @property
    def name(self) -> str:
        return f"thread\u00a0({self.thread[0]},\u00a0{self.thread[1]})"


@dataclass(frozen=True)
class Gate:
    """A barrier at the time when all threads have reached it, or where it would be if it is ``missing``."""

    time: float
    missing: bool = False


def race(tracks: Sequence[Track], gates: Sequence[Gate], title: str, sentences: Sequence[str]) -> Picture:
    """Draw the tracks one below the other, with gates across them and sentences below."""
    drawing = Drawing(title, title_lines=2)
    top = drawing.top + 42
    bottom = top + _TRACK * len(tracks)
    for gate in gates:
        _gate(drawing, gate, top - 4, bottom)
    for place, track in enumerate(tracks):
        _track(drawing, track, max(gate.time for gate in gates), top + place * _TRACK)
    for place, track in enumerate(tracks):
        _blame(drawing, track, place, top)
    drawing.text(8, top - 12, "thread (x, y)", fill=colours.QUIET)
    drawing.text(_RIGHT + 8, top - 12, "its sum", fill=colours.QUIET)
    drawing.line(_LEFT, bottom + 12, _RIGHT, bottom + 12, stroke=colours.QUIET, arrow=True)
    drawing.text(_RIGHT + 8, bottom + 17, "time", fill=colours.QUIET)
    _legend(drawing, bottom + 26, _arrows(tracks))
    _write(drawing, sentences, bottom + 72)
    drawing.rect(0, bottom + 72 + _LINES * 19, 1, 1, colours.PAPER)
    return drawing.picture(_in_words(tracks, gates, sentences))


def _arrows(tracks: Sequence[Track]) -> str:
    """Say what the arrows mean. In one picture all point to later stores, or all point to sums."""
    for track in tracks:
        for part in track.parts:
            for factor in (each for product in part.products for each in product if each.wrong):
                late = factor.culprit[1] > part.end
                return "should have waited for this store" if late else "overwrote what this sum still needed"
    return ""


def _x(time: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * time / _LONGEST


def _gate(drawing: Drawing, gate: Gate, top: float, bottom: float) -> None:
    x = _x(gate.time)
    if gate.missing:
        drawing.line(x, top, x, bottom, stroke=colours.WARN, width=2, dash="3 5")
        drawing.line(x, top - 18, x, top, stroke=colours.WARN, width=2, dash="3 5")
        drawing.text(x, top - 24, "no barrier", size=13, anchor="middle", fill=colours.WARN, bold=True)
    else:
        drawing.rect(x - 3, top, 6, bottom - top, colours.INK)
        drawing.text(x, top - 8, "barrier", size=13, anchor="middle")


def _track(drawing: Drawing, track: Track, end: float, top: float) -> None:
    drawing.text(8, top + 22, track.name)
    drawing.line(_LEFT, top + _HIGH / 2, _x(end), top + _HIGH / 2, stroke=colours.QUIET)
    for part in track.parts:
        _part(drawing, part, top)
    wrong = track.total != track.right
    fill = colours.WARN if wrong else colours.INK
    drawing.text(
        _RIGHT + 8, top + 15, f"{'✗' if wrong else '✓'} {track.total}", size=NORMAL, fill=fill, bold=True
    )
    if wrong:
        drawing.text(_RIGHT + 8, top + 32, f"not {track.right}", size=13, fill=fill)


def _blame(drawing: Drawing, track: Track, place: int, top: float) -> None:
    """Draw an arrow between each spoilt sum and the store that spoils it, from the earlier to the later."""
    for part in track.parts:
        for factor in (factor for product in part.products for factor in product if factor.wrong):
            thread, end = factor.culprit
            down = thread < place
            store = (
                _x(end) - (_x(1) - _x(0)) * (0.75 if factor.matrix == "A" else 0.25),
                top + thread * _TRACK + (_HIGH if down else 0),
            )
            adding = _x(part.end) - 10, top + place * _TRACK + (0 if down else _HIGH)
            first, last = sorted((store, adding))
            drawing.line(*first, *last, stroke=colours.WARN, width=2, arrow=True)


def _part(drawing: Drawing, part: Part, top: float) -> None:
    x, wide = _x(part.begin) + 3.5, _x(part.end) - _x(part.begin) - 7
    if part.kind == "held":
        drawing.rect(x, top + 4, wide, _HIGH - 8, colours.PAPER)
        drawing.hatch(x, top + 4, wide, _HIGH - 8)
        drawing.rect(x + wide / 2 - 38, top + 8, 76, 18, colours.PAPER)
        drawing.text(x + wide / 2, top + 22, "held back", anchor="middle")
    elif part.kind == "load":
        for place, (array, number) in enumerate(part.numbers):
            left, half = x + place * wide / 2, wide / 2
            drawing.rect(left, top, half - 1, _HIGH, colours.PALE[colours.of_array(array)])
            drawing.text(left + half / 2, top + 14, array, size=12, anchor="middle")
            drawing.text(left + half / 2, top + 29, number, anchor="middle", bold=True)
    else:
        wrong = any(factor.wrong for product in part.products for factor in product)
        drawing.rect(x, top, wide, _HIGH, colours.PALE[colours.C])
        if wrong:
            drawing.rect(x, top, wide, _HIGH, "none", stroke=colours.WARN, line=2.5)
        for place, product in enumerate(part.products):
            _product(drawing, product, x + wide / 2, top + 14 + 15 * place)


def _product(drawing: Drawing, product: tuple[Factor, Factor], middle: float, y: float) -> None:
    """Write a product, such as "+ 3·4", around ``middle``. Factors that are wrong are red."""
    one, other = product
    signs = [("+", False), (one.value, one.wrong), ("·", False), (other.value, other.wrong)]
    for number, (sign, wrong) in enumerate(signs):
        fill = colours.WARN if wrong else colours.INK
        x = middle + (number - 1.5) * (_LETTER + 2)
        drawing.text(x, y, sign, size=_FACTORS, anchor="middle", mono=True, fill=fill, bold=wrong)


def _legend(drawing: Drawing, top: float, arrows: str) -> None:
    """Explain the colours, and ``arrows`` if there are any."""
    if arrows:
        drawing.line(8, top + 28, 34, top + 28, stroke=colours.WARN, width=2, arrow=True)
        drawing.text(42, top + 32, arrows, size=13, fill=colours.WARN)
    for place, (fill, words) in enumerate(
        (
            (colours.PALE[colours.A], "stores a number of A"),
            (colours.PALE[colours.B], "and one of B"),
            (colours.PALE[colours.C], "reads four and adds"),
        )
    ):
        x = 8 + (0, 190, 328)[place]
        drawing.rect(x, top, 14, 14, fill)
        drawing.text(x + 20, top + 12, words, size=13, fill=colours.QUIET)


def _write(drawing: Drawing, sentences: Sequence[str], top: float) -> None:
    lines = [line for words in sentences for line in wrap(words, SMALL, PAGE - 16)]
    for place, line in enumerate(lines):
        drawing.text(8, top + 14 + 19 * place, line)


def _in_words(tracks: Sequence[Track], gates: Sequence[Gate], sentences: Sequence[str]) -> str:
    missing = sum(gate.missing for gate in gates)
    told = [f"Barriers: {len(gates) - missing} kept, {missing} missing."]
    for track in tracks:
        done = ", ".join(_done(part) for part in track.parts)
        wrong = f", but it should be {track.right}" if track.total != track.right else ", which is right"
        told.append(f"{track.name.capitalize()}: {done}; its sum is {track.total}{wrong}.")
    return " ".join([*told, *sentences]).replace("\u00a0", " ")


def _done(part: Part) -> str:
    if part.kind == "held":
        return "is held back"
    if part.kind == "load":
        return "stores " + " and ".join(f"{number} of {array}" for array, number in part.numbers)
    return "adds " + " + ".join(f"{one.value}·{other.value}" for one, other in part.products)
