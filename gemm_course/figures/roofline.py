"""Draws the roofline: TFLOPS over arithmetic intensity, under a roof for every memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from gemm_course.figures import colours, plots
from gemm_course.figures.picture import Picture
from gemm_course.figures.placing import Box, Shape, Spot, apart, faults, first_free, meet
from gemm_course.figures.svg import LARGE, PAGE, SMALL, Drawing, text_width, wrap


@dataclass(frozen=True)
class Span:
    """The ends of the axes: ``left`` and ``right`` in FLOP per byte, ``low`` and ``high`` in TFLOPS."""

    left: float
    right: float
    low: float
    high: float


_AXIS = "FLOP per byte that warps ask of L1"
# Pictures have these axes unless they ask for others, so that they can be compared.
_FP32 = Span(0.04, 1500, 0.1, 200)
_FP16 = Span(0.04, 1500, 0.1, 2000)
# The axis ends at this many FLOP per byte if a point lies too far to the right for the usual axes.
_FAR = 6000
# The axes run from _LEFT to _RIGHT, and the labels of flat roofs stand to their right.
_LEFT, _RIGHT = 52.0, 398.0
# The axes are _HEIGHT high, the letters beside them have the size _COLUMN, and _NOTE lines are reserved for
# the note.
_HEIGHT, _COLUMN, _NOTE = 262.0, 13, 6
_DOT, _RING, _SMALL_DOT = 7.0, 10.0, 5.0
# A decade has these ticks where there is room for all three.
_TICKS = (1, 2, 5)
# The ticks of a decade are more than _NEAR units apart, and labels stay _CLEAR units away from the frame.
_NEAR, _CLEAR = 28.0, 4.0
# A label is tried in these 16 directions from its mark.
_TURNS = [math.radians(45 * (place // 2 * 3) + 22.5 * (place % 2)) for place in range(16)]
# A label costs _COVERED for each shape that it covers. Its line costs _CUT for each label that it crosses,
# _PASSED for each mark, and _CROSSED for each roof.
_COVERED, _CUT, _PASSED, _CROSSED = 100, 10, 3, 1


@dataclass(frozen=True)
class Roof:
    """A slanted roof, which is a memory with its bandwidth.

    ``bounds`` is False if the memory would bound a kernel only if all bytes came from there.
    """

    label: str
    terabytes_per_second: float
    bounds: bool = True


@dataclass(frozen=True)
class Point:
    """A kernel on the roofline.

    ``intensity`` is in FLOP per byte. ``tflops`` is the measured speed, or None if only the roof is known.
    """

    label: str
    intensity: float
    tflops: float | None
    now: bool = False


@dataclass(frozen=True)
class Lines:
    """The roofs of a picture: memories, the peaks of FP32 and Tensor Cores, and further ceilings in TFLOPS.

    ``lowest`` is the label of the lowest roof above the picture's kernel, and this roof stands out.
    """

    memories: Sequence[Roof]
    peak: float
    tensor_peak: float | None = None
    ceilings: Sequence[tuple[str, float]] = ()
    lowest: str = ""

    @property
    def highest(self) -> float:
        return self.tensor_peak or self.peak

    @property
    def flat(self) -> list[tuple[str, float]]:
        """All flat roofs as (label, TFLOPS), from the highest down."""
        fp16 = [("FP16 Tensor Core peak", self.tensor_peak)] if self.tensor_peak else []
        return sorted([*fp16, ("FP32 peak", self.peak), *self.ceilings], key=lambda flat: -flat[1])

    def in_words(self) -> str:
        """Return the roofs in words, for the alt text."""
        names = ", ".join(f"{roof.label} {roof.terabytes_per_second:.3g} TB/s" for roof in self.memories)
        fp16 = f", FP16 peak on Tensor Cores {self.tensor_peak:.3g} TFLOPS" if self.tensor_peak else ""
        limits = "".join(f" {label}: {value:.3g} TFLOPS." for label, value in self.ceilings)
        return f"Roofs: {names}, peak {self.peak:.3g} TFLOPS{fp16}.{limits}"


def span_of(points: Sequence[Point], lines: Lines) -> Span:
    """Return axes that show these points large, together with the end of the slanted roofs."""
    known = [point.tflops for point in points if point.tflops]
    ridge = lines.highest / min(roof.terabytes_per_second for roof in lines.memories)
    farthest = max(max(point.intensity for point in points) * 8, ridge * 1.5)
    nearest = min(min(point.intensity for point in points) / 2.5, ridge / 6)
    return Span(nearest, farthest, min(known, default=lines.peak / 10) / 2.2, lines.highest * 1.6)


def roofline(
    lines: Lines,
    points: Sequence[Point],
    title: str,
    note: str,
    *,
    axis: str = _AXIS,
    span: Span | None = None,
    under_title: str = "",
    glide: bool = False,
) -> Picture:
    """Draw TFLOPS over arithmetic intensity, with roofs and kernels by name.

    The point that is ``now`` is a disc. With ``glide``, the disc comes from the place of the measured point
    before it. Other points are rings, and one that was not measured is a vertical line. ``axis`` says which
    bytes the intensity counts. All pictures are equally high.
    """
    drawing = Drawing(title, title_lines=2)
    under = 8 + (LARGE + 4) * len(wrap(title, LARGE, PAGE - 16, bold=True)) + 16
    drawing.text(8, under, under_title, fill=colours.QUIET)
    sheet = _Sheet(drawing, lines, points, span or _usual(lines, points), axis)
    measured = [point for point in points if point.tflops]
    previous = measured[-2] if glide and len(measured) > 1 else None
    for point in points:
        sheet.mark(point, previous if point.now else None)
    # The chosen kernel is the last point, so its name chooses its place first.
    for point in reversed(points):
        sheet.name(point, [point.label, _reached(point)])
    sheet.name_memories()
    _write_note(drawing, note, sheet.bottom + 44)
    told = f"{under_title.rstrip('.')}. {lines.in_words()}" if under_title else lines.in_words()
    return drawing.picture(f"{told} Points: {'; '.join(map(_spoken, points))}. {note}")


def all_on_one(lines: Lines, points: Sequence[Point], title: str, note: str) -> Picture:
    """Draw many kernels on one roofline as numbered dots, with a key below of their names and TFLOPS.

    A kernel that was not measured is in the key only.
    """
    drawing = Drawing(title, title_lines=2)
    sheet = _Sheet(drawing, lines, points, _usual(lines, points), _AXIS, _SMALL_DOT)
    measured = [(number, point) for number, point in enumerate(points, 1) if point.tflops]
    for _, point in measured:
        sheet.dot(point)
    for number, point in measured:
        sheet.name(point, [str(number)])
    sheet.name_memories()
    below = _key(drawing, points, sheet.bottom + 44)
    _write_note(drawing, note, below + 4)
    spoken = "; ".join(f"{number} {_spoken(point)}" for number, point in enumerate(points, 1))
    return drawing.picture(f"{lines.in_words()} Points: {spoken}. {note}")


def _usual(lines: Lines, points: Sequence[Point]) -> Span:
    """Return the same axes for all pictures of a kind, so that they can be compared."""
    span = _FP16 if lines.tensor_peak else _FP32
    return span if all(point.intensity < 250 for point in points) else replace(span, right=_FAR)


def _spoken(point: Point) -> str:
    return f"{point.label}: {point.intensity:.3g} FLOP per byte, {_reached(point)}"


def _reached(point: Point) -> str:
    return f"{plots.three_digits(point.tflops)} TFLOPS" if point.tflops is not None else "not measured"


@dataclass
class _Sheet:
    """The axes with their roofs, and everything that has been drawn on them.

    ``radius`` is the radius of a mark. ``places`` says where each point is on the page, and ``marks`` has a
    shape for each point. ``named`` has the labels, and the lines from labels to marks. ``crossed`` has the
    lines that no label may cover.
    """

    drawing: Drawing
    lines: Lines
    points: Sequence[Point]
    span: Span
    axis: str
    radius: float = _RING
    places: dict[Point, Spot] = field(init=False)
    marks: list[Shape] = field(init=False)
    named: list[Shape] = field(init=False, default_factory=list)
    crossed: list[Shape] = field(init=False)

    def __post_init__(self):
        self.top = self.drawing.top + 38
        self.bottom = self.top + _HEIGHT
        middle, inner = (_LEFT + _RIGHT) / 2, _RIGHT - _LEFT - 2 * _CLEAR
        self.inner = Box(middle, self.top + _HEIGHT / 2, inner, _HEIGHT - 2 * _CLEAR)
        self.drawing.text(_LEFT - 40, self.top - 9, "TFLOPS")
        with plots.axes(self.drawing, _LEFT, self.top, _RIGHT - _LEFT, _HEIGHT) as axes:
            self._scales(axes)
            self.slants = [self._on_page(axes, self._slant(roof)) for roof in self.lines.memories]
            self.levels = [self._on_page(axes, self._level(value)) for _, value in self.lines.flat]
            for roof in self.lines.memories:
                dashed = "-" if roof.bounds else plots.DASHES
                self._draw_roof(axes, self._slant(roof), roof.label == self.lines.lowest, dashed)
            for label, value in self.lines.flat:
                self._draw_roof(axes, self._level(value), label == self.lines.lowest)
            self.places = {
                point: plots.on_page(axes, point.intensity, point.tflops or self.span.low)
                for point in self.points
            }
        self.marks = [self._mark_of(point) for point in self.points]
        self.crossed = [*self.slants, *self.levels]
        self._name_flat_roofs()

    def _scales(self, axes) -> None:
        axes.set(xscale="log", yscale="log", xlabel=self.axis)
        axes.set_xlim(self.span.left, self.span.right)
        axes.set_ylim(self.span.low, self.span.high)
        axes.set_xticks(_ticks(self.span.left, self.span.right, _RIGHT - _LEFT))
        axes.set_yticks(_ticks(self.span.low, self.span.high, _HEIGHT))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.minorticks_off()
        axes.grid()
        axes.tick_params(length=0)
        axes.spines[:].set_visible(True)

    # ---- roofs ---------------------------------------------------------------------------------------------

    def _on_page(self, axes, ends: Shape) -> Shape:
        return [plots.on_page(axes, *end) for end in ends]

    def _slant(self, roof: Roof) -> Shape:
        """Return the visible part of a memory's roof, from below up to the highest peak.

        Both ends are equal if no part is visible.
        """
        speed, span = roof.terabytes_per_second, self.span
        begin, end = max(span.left, span.low / speed), min(span.right, self.lines.highest / speed)
        begin = min(begin, end) if end > span.left else span.left
        return [(each, max(each * speed, span.low)) for each in (begin, max(begin, end))]

    def _level(self, value: float) -> Shape:
        """Return a flat roof, which runs from the fastest memory's roof to the right."""
        fastest = max(roof.terabytes_per_second for roof in self.lines.memories)
        begin = min(max(self.span.left, value / fastest), self.span.right)
        return [(begin, max(value, self.span.low)), (self.span.right, max(value, self.span.low))]

    def _draw_roof(self, axes, ends: Shape, lowest: bool, style="-") -> None:
        if lowest:
            axes.plot(*zip(*ends), color=colours.LIMIT, linewidth=8, zorder=2)
        stroke, line = (colours.INK, 2.4) if lowest else (colours.QUIET, 1.4)
        axes.plot(*zip(*ends), color=stroke, linewidth=line, linestyle=style, zorder=2)

    def _name_flat_roofs(self) -> None:
        """Write the names of flat roofs to the right of the axes, one below the other."""
        left, wide = _RIGHT + 16, PAGE - _RIGHT - 22
        flat = self.lines.flat
        bold = [label == self.lines.lowest for label, _ in flat]
        words = [
            wrap(f"{label}: {value:.3g}", _COLUMN, wide, bold=strong)
            for (label, value), strong in zip(flat, bold, strict=True)
        ]
        heights = [16.0 * len(each) + 4 for each in words]
        ends = [level[1][1] for level in self.levels]
        edges = apart([y - 11 for y in ends], heights, self.bottom + 20)
        for lines, edge, end, strong in zip(words, edges, ends, bold, strict=True):
            self.drawing.line(_RIGHT, end, left - 3, edge + 9, stroke=colours.QUIET)
            for place, line in enumerate(lines):
                self.drawing.text(left, edge + 14 + 16 * place, line, size=_COLUMN, bold=strong)

    def name_memories(self) -> None:
        """Write the memories' names along their roofs, where the kernels' names leave room."""
        for roof, slant in zip(self.lines.memories, self.slants, strict=True):
            self._name_memory(roof, slant)

    def _name_memory(self, roof: Roof, slant: Shape) -> None:
        """Write a memory's name along its roof, where there is room for it."""
        (x1, y1), (x2, y2) = slant
        length = math.hypot(x2 - x1, y2 - y1)
        if length < 40:
            return
        strong, turned = roof.label == self.lines.lowest, math.degrees(math.atan2(y2 - y1, x2 - x1))
        name = roof.label if roof.bounds else f"all from {roof.label}"
        for words in (f"{name}, {roof.terabytes_per_second:.3g} TB/s", name, roof.label):
            wide = text_width(words, _COLUMN, bold=strong) + 2
            spots = [
                _beside((x1, y1), (x2, y2), part / 40, side * 9.5, wide, turned)
                for side in (-1, 1)
                for part in range(38, 1, -1)
                if wide / 2 < length * part / 40 < length - wide / 2
            ]
            if not spots:
                continue
            box = first_free(spots, self._cost)
            if not self._cost(box) or words == roof.label:
                break
        else:
            return
        self.named.append(box.corners)
        along = math.radians(turned)
        x, y = box.x - _COLUMN * 0.35 * math.sin(along), box.y + _COLUMN * 0.35 * math.cos(along)
        self.drawing.text(x, y, words, size=_COLUMN, anchor="middle", bold=strong, turned=turned)

    # ---- kernels -------------------------------------------------------------------------------------------

    def mark(self, point: Point, since: Point | None) -> None:
        """Draw a kernel: a disc for the chosen one, a ring for another, a line if it was not measured."""
        x, y = self.places[point]
        if point.tflops is None:
            self.drawing.path(self._mark_of(point), stroke=colours.INK, line=1.6, dash="5 4")
        elif point.now:
            came = self.places[since] if since else None
            if came and math.dist(came, (x, y)) > 30:
                self.drawing.path([came, (x, y)], stroke=colours.QUIET, line=1.4, dash="2 4")
                self.crossed.append([came, (x, y)])
            self.drawing.circle(x, y, _DOT, colours.NOW, stroke=colours.INK, line=1.6, since=came)
        else:
            self.drawing.circle(x, y, _RING, "none", stroke=colours.INK, line=1.6)

    def dot(self, point: Point) -> None:
        """Draw a kernel among many as a dot."""
        fill = colours.NOW if point.now else colours.EDGE
        self.drawing.circle(*self.places[point], _SMALL_DOT, fill, stroke=colours.INK, line=1.2)

    def name(self, point: Point, words: Sequence[str]) -> None:
        """Write a kernel's name near its mark, with a line between them where they are not side by side."""
        x, y = self.places[point]
        wide = max(text_width(line, SMALL, bold=point.now) for line in words) + 2
        high = 17.0 * len(words)
        if point.tflops is None:
            spots = [
                Box(x + side * (wide / 2 + 5), down, wide, high) for down, side in _beside_a_line(self.bottom)
            ]
            box = first_free(spots, self._cost)
        else:
            spots = _around_a_mark(x, y, wide, high, self.radius)
            box = first_free(spots, self._cost, lambda box: self._crossings(box, point))
            if leader := self._leader(box, point):
                self.drawing.path(leader, stroke=colours.QUIET)
                self.named.append(leader)
        self.named.append(box.corners)
        for place, line in enumerate(words):
            self.drawing.text(
                box.x, box.y - high / 2 + 17 * place + 13, line, anchor="middle", bold=point.now
            )

    def _cost(self, box: Box) -> int:
        return _COVERED * faults(box, self.inner, [*self.marks, *self.crossed, *self.named])

    def _crossings(self, box: Box, point: Point) -> int:
        """Return the cost of all that the line from a label to its mark crosses."""
        leader = self._leader(box, point)
        if not leader:
            return 0
        own = self._mark_of(point)
        marks = [mark for mark in self.marks if mark != own]
        kinds = ((_CUT, self.named), (_PASSED, marks), (_CROSSED, self.crossed))
        return sum(cost * sum(meet(leader, each) for each in shapes) for cost, shapes in kinds)

    def _leader(self, box: Box, point: Point) -> Shape:
        """Return the line from a label to the edge of its mark, or nothing where they are side by side."""
        x, y = self.places[point]
        near_x = min(max(x, box.x - box.width / 2), box.x + box.width / 2)
        near_y = min(max(y, box.y - box.height / 2), box.y + box.height / 2)
        far = math.dist((near_x, near_y), (x, y))
        if far <= self.radius + 8:
            return []
        part = (self.radius + 1) / far
        return [(near_x, near_y), (x + (near_x - x) * part, y + (near_y - y) * part)]

    def _mark_of(self, point: Point) -> Shape:
        x, y = self.places[point]
        if point.tflops is None:
            return [(x, self.top), (x, self.bottom)]
        return Box(x, y, 2 * self.radius, 2 * self.radius).corners


def _beside(one, other, part: float, aside: float, wide: float, turned: float) -> Box:
    """Return a box beside a line, at the fraction ``part`` of its length and at a distance of ``aside``.

    ``turned`` is the angle of the box in degrees.
    """
    (x1, y1), (x2, y2) = one, other
    along = math.radians(turned)
    x = x1 + (x2 - x1) * part - aside * math.sin(along)
    y = y1 + (y2 - y1) * part + aside * math.cos(along)
    return Box(x, y, wide, 15, turned)


def _around_a_mark(x: float, y: float, wide: float, high: float, radius: float) -> Iterator[Box]:
    """Yield places for a label around a mark, the nearest first."""
    for aside in (3, 9, 16, 24, 34, 46, 60, 76, 94, 114, 140):
        for turn in _TURNS:
            right, down = math.cos(turn), math.sin(turn)
            middle = x + right * (radius + aside) + _lean(right) * wide / 2
            yield Box(middle, y + down * (radius + aside) + _lean(down) * high / 2, wide, high)


def _lean(part: float) -> float:
    """Return how far a label's middle moves away from its mark, -1 to 1, in halves of the label's size."""
    return max(-1.0, min(1.0, 1.6 * part))


def _beside_a_line(bottom: float) -> list[tuple[float, int]]:
    return [(bottom - down, side) for down in range(14, int(_HEIGHT), 12) for side in (-1, 1)]


def _ticks(low: float, high: float, length: float) -> list[float]:
    """Return the ticks of an axis: 1, 2 and 5 of every decade, or 1 alone where they would be too close."""
    decade = length / math.log10(high / low)
    many = _TICKS if decade * math.log10(2) > _NEAR else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = (tick * 10.0**power for power in powers for tick in many)
    return [tick for tick in ticks if low <= tick <= high]


def _write_note(drawing: Drawing, note: str, top: float) -> None:
    lines = wrap(note, SMALL, PAGE - 16)
    for place, line in enumerate(lines):
        drawing.text(8, top + 14 + 18 * place, line, fill=colours.QUIET)
    bottom = top + 18 * max(_NOTE, len(lines))
    drawing.rect(0, bottom - 1, 1, 1, colours.PAPER)


def _key(drawing: Drawing, points: Sequence[Point], top: float) -> float:
    """Write what the numbers mean, in two columns. Return the lower edge."""
    lines = -(-len(points) // 2)
    for place, point in enumerate(points):
        reached = plots.three_digits(point.tflops) if point.tflops else "not measured yet"
        words = f"{place + 1}  {point.label}: {reached}"
        drawing.text(8 + 272 * (place // lines), top + 14 + 18 * (place % lines), words, bold=point.now)
    return top + 18 * lines
