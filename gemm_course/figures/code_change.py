"""Draws what a change did to the machine code of the main loop, by kind of instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gemm_course.compiler import KINDS
from gemm_course.compiler.kinds import MULTIPLY_ADD, TENSOR_CORE
from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.rows import LEFT, LINE, RIGHT, paragraph
from gemm_course.figures.svg import SMALL, Drawing, capital, wrap

# Kinds that are at most this share of the instructions of both kernels get no bars and share one line.
_SMALL = 0.02
# The bars begin at _BARS, and the longest is _LONGEST units long.
_BARS, _LONGEST = 184.0, 190.0
_FILLS = (colours.OTHER, colours.NOW)
_SIDES = ("before", "after")
WORK = (MULTIPLY_ADD, TENSOR_CORE)


@dataclass(frozen=True)
class Side:
    """One of the two kernels that are compared.

    ``instructions`` counts the instructions of its loop by kind, per unit of work. ``facts`` says what
    resources the kernel takes.
    """

    label: str
    tiles: str
    instructions: Mapping[str, float]
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def all(self) -> float:
        """The number of instructions of all kinds, per unit of work."""
        return sum(self.instructions.values())


def number(value: float) -> str:
    """Return a number as the picture writes it, such as "1,377", "23.4", "0.391", "0.0078" or "0"."""
    return f"{value:,.0f}" if value >= 100 or not value else f"{value:.{3 if value >= 0.1 else 2}g}"


def change(before: float, after: float) -> str:
    """Return the difference of two numbers as they are shown, with its sign: "−215", "+5", "same"."""
    old, new = (float(number(value).replace(",", "")) for value in (before, after))
    return "same" if old == new else f"{'+' if new > old else '−'}{number(abs(new - old))}"


def changes(before: Side, after: Side) -> dict[str, float]:
    """Return how many more instructions of each kind there are after the change, the largest change first.

    A kind whose two counts agree to three digits is left out.
    """
    pairs = {kind: (before.instructions.get(kind, 0), after.instructions.get(kind, 0)) for kind in KINDS}
    found = {kind: new - old for kind, (old, new) in pairs.items() if number(old) != number(new)}
    return dict(sorted(found.items(), key=lambda one: -abs(one[1])))


def rows(before: Side, after: Side) -> tuple[list[str], list[str]]:
    """Return the kinds that get bars, and the rare ones that share a line.

    Kinds in WORK come first, then the others with the largest change first. Kinds that did not change come
    last, the most frequent first.
    """

    def order(kind: str) -> tuple:
        most = max(side.instructions.get(kind, 0) for side in (before, after))
        return kind not in WORK, -abs(changed.get(kind, 0)), -most

    changed = changes(before, after)
    found = sorted((kind for kind in KINDS if _some(before, after, kind)), key=order)
    large = [kind for kind in found if _some(before, after, kind, _SMALL)]
    return large, [kind for kind in found if kind not in large]


def _some(before: Side, after: Side, kind: str, least: float = 0.0) -> bool:
    return any(side.instructions.get(kind, 0) > least * side.all for side in (before, after))


def draw(
    before: Side,
    after: Side,
    per: str,
    title: str,
    remarks: Sequence[str],
    note: str,
    meanings: Mapping[str, str] = KINDS,
) -> Picture:
    """Draw two bars for each kind of instruction, and a table of what the kernels take.

    ``per`` is the work that instructions are counted for, such as "1,000 multiply-adds". ``remarks`` are
    sentences below the bars. ``meanings`` says what each kind is.
    """
    drawing = Drawing(title)
    large, small = rows(before, after)
    y = _legend(drawing, (before, after), drawing.top)
    y = _heading(drawing, f"instructions in the loop, per {per}", y)
    longest = max(before.all, after.all)
    y = _pair(drawing, "all kinds", (before.all, after.all), longest, y) + 6
    for kind in large:
        y = _pair(drawing, kind, _both(before, after, kind), longest, y)
        y = _paragraphs(drawing, [meanings[kind].split(";")[0]], y, colours.QUIET) + 4
    few = _few(before, after, small)
    y = _paragraphs(drawing, [few] if few else [], y, colours.INK)
    y = _table(drawing, before, after, y + 4)
    y = _paragraphs(drawing, remarks, y + 4, colours.INK)
    _paragraphs(drawing, [note], y + 2, colours.QUIET)
    own = [f"{capital(kind)}: {meanings[kind]}." for kind in large if meanings[kind] != KINDS[kind]]
    return drawing.picture(_in_words(before, after, per, [*own, *remarks, note])).plain


def _both(before: Side, after: Side, kind: str) -> tuple[float, float]:
    return before.instructions.get(kind, 0), after.instructions.get(kind, 0)


def _legend(drawing: Drawing, sides: Sequence[Side], y: float) -> float:
    for word, side, fill in zip(_SIDES, sides, _FILLS, strict=True):
        drawing.rect(LEFT, y + 2, 14, 14, fill, stroke=colours.INK, line=0.8)
        drawing.text(LEFT + 22, y + 14, f"{word}:", fill=colours.QUIET)
        drawing.text(LEFT + 78, y + 14, side.label, bold=True)
        y += LINE
        for line in wrap(side.tiles, SMALL, RIGHT - LEFT - 78) if side.tiles else ():
            drawing.text(LEFT + 78, y + 14, line, fill=colours.QUIET)
            y += LINE
        y += 3
    return y + 4


def _heading(drawing: Drawing, words: str, y: float) -> float:
    drawing.rect(LEFT, y, RIGHT - LEFT, 22, colours.BAND)
    drawing.text(LEFT + 6, y + 16, words, bold=True)
    return y + 28


def _pair(drawing: Drawing, kind: str, values: tuple[float, float], longest: float, y: float) -> float:
    """Draw a kind, its two numbers as bars, and the change at the right. Return the lower edge."""
    drawing.text(LEFT, y + 14, kind, bold=True)
    drawing.text(RIGHT, y + 14, change(*values), anchor="end", bold=True)
    for value, fill in zip(values, _FILLS, strict=True):
        width = max(_LONGEST * value / longest, 1.5) if value else 0
        if value:
            drawing.rect(_BARS, y + 2, width, 14, fill, stroke=colours.INK, line=0.8)
        drawing.text(_BARS + width + 6, y + 14, number(value) if value else "none")
        y += 17
    return y


def _few(before: Side, after: Side, kinds: Sequence[str]) -> str:
    """Name the rare kinds with their counts, or with both counts where they differ."""
    told = []
    for kind in kinds:
        old, new = (number(value) for value in _both(before, after, kind))
        told.append(f"{kind} {old}" if old == new else f"{kind} {old} → {new}")
    return f"Few: {', '.join(told)}." if told else ""


def _table(drawing: Drawing, before: Side, after: Side, y: float) -> float:
    drawing.rect(LEFT, y, RIGHT - LEFT, 22, colours.BAND)
    drawing.text(LEFT + 6, y + 16, "the kernels", bold=True)
    drawing.text(RIGHT - 130, y + 16, _SIDES[0], anchor="end", bold=True)
    drawing.text(RIGHT - 6, y + 16, _SIDES[1], anchor="end", bold=True)
    y += 26
    for name, value in before.facts.items():
        drawing.text(LEFT + 6, y + 14, name)
        drawing.text(RIGHT - 130, y + 14, value, anchor="end")
        drawing.text(RIGHT - 6, y + 14, after.facts[name], anchor="end", bold=after.facts[name] != value)
        y += 21
    return y


def _paragraphs(drawing: Drawing, paragraphs: Sequence[str], y: float, fill: str) -> float:
    for words in paragraphs:
        y = paragraph(drawing, words, y, fill) + 4
    return y


def _in_words(before: Side, after: Side, per: str, sentences: Sequence[str]) -> str:
    def pair(kind: str) -> str:
        return " → ".join(number(value) for value in _both(before, after, kind))

    large, small = rows(before, after)
    told = [
        f"Before: {_called(before)}; after: {_called(after)}. Instructions in the main loop, per "
        f"{per}: all {number(before.all)} → {number(after.all)}",
        *(f"{kind} {pair(kind)}" for kind in large),
    ]
    facts = [f"{name}: {value} → {after.facts[name]}." for name, value in before.facts.items()]
    return " ".join(filter(None, [", ".join(told) + ".", _few(before, after, small), *facts, *sentences]))


def _called(side: Side) -> str:
    return f"{side.label} ({side.tiles})" if side.tiles else side.label
