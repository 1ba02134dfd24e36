"""Draws rooflines of stages: where each stands, which roof is the lowest over it, and how close it comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gemm_course.figures import roofline as figure
from gemm_course.figures.picture import Picture
from gemm_course.figures.roofline import Lines, Point, Roof
from gemm_course.kernels import LADDER, Stage
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets import _ladder as ladder
from gemm_course.widgets._costs import cost_of_squares
from gemm_course.widgets._explorer import Explorer, explorer
from gemm_course.widgets._gpus import left_out, shown
from gemm_course.widgets._roofs import (
    Ceiling,
    fp32_peak,
    memories,
    not_compiled,
    rated,
    roofs_in_words,
    roofs_of,
    tensor_peak,
)

# A stage that no document has gets this mark.
BEYOND = "beyond the documents"
# TFLOPS are measured on square matrices of this size.
SIZE = 4096


@explorer
def roofline(
    *stages: str, limits: str | None = None, until: str | None = None, on: str | None = None
) -> Explorer | Picture:
    """Draw a stage on a GPU's roofline, by the bytes that its warps ask of L1 and the TFLOPS measured.

    Several stages make an explorer that begins with the last of them. Choose one, and the point goes from the
    place of the stage before to its own.

    ``limits`` names a stage of which only the roofs are drawn that it cannot rise above: those of the
    memories that all its bytes pass, its issue slots, its instruction on Tensor Cores alone, loads and stores
    of shared memory as they were counted. The other stages stand beside it.

    ``until`` draws the stages of the documents up to that one on one roofline. Without a stage, show a slider
    for the size of a matrix product in which every element moves only once.

    ``on`` is the GPU, such as "rtx_3060". Without it, it is the H200, or what is chosen where several were
    measured. Raise KeyError for an unknown stage, and ValueError for an unknown GPU and for `until` beside
    stages or `limits`.
    """
    if until and (stages or limits):
        raise ValueError("until draws the stages up to one: leave out the stages and limits.")
    if until:
        told = [stage for stage in ladder.up_to(until) if stage.document != BEYOND]
        return shown(lambda on: _all_on_one(told, on), on)
    if limits:
        stage, others = LADDER[limits], [LADDER[name] for name in stages]
        return shown(lambda on: _under_its_roofs(stage, others, on), on)
    if stages:
        trail = tuple(LADDER[name].name for name in stages)
        choice = {"stage": ("stage", trail, trail[-1])} if len(trail) > 1 else None
        return shown(lambda on, stage=trail[-1]: moved(trail, stage, on), on, choice)
    sizes = [8 * 2**step for step in range(12)]
    return shown(ideal, on, {"n": ("n × n matrices, n", sizes, 256)})


def moved(trail: Sequence[str], name: str, on: Place = SHIPPED) -> Picture:
    """Draw a stage of a trail and the one before it, on axes that show all of them."""
    stages = [LADDER[each] for each in trail]
    stage, place = LADDER[name], list(trail).index(name)
    seen = [_point(each, each is stage, on) for each in stages[max(place - 1, 0) : place + 1]]
    own = roofs_of(stage, on)
    real = {roof.label for roof in own.memories}
    lines = Lines(
        [replace(roof, bounds=roof.label in real) for roof in memories(stages, on)],
        fp32_peak(on),
        tensor_peak(stages, on),
        [(ceiling.label, ceiling.tflops) for ceiling in own.ceilings],
        _as_drawn(own.lowest(seen[-1].intensity)[0]),
    )
    return figure.roofline(
        lines,
        seen,
        _reached(stage, seen[-1], on),
        f"{_in_words(own.ceilings, dashed=True)} {_source(stages, own.ceilings, on)}",
        span=figure.span_of([_point(each, False, on) for each in stages], lines),
        under_title=_against(seen),
        glide=True,
    )


def _reached(stage: Stage, point: Point, on: Place) -> str:
    """Say how close a stage comes to its lowest roof, which is the limit as far as roofs can tell."""
    name, lowest = roofs_of(stage, on).lowest(point.intensity)
    lowest_roof = f"its lowest roof: {name.split(',')[0]}, {lowest:.3g}\u00a0TFLOPS"
    if not point.tflops:
        return f"{stage.name} was not measured; {lowest_roof}"
    return f"{stage.name} reaches {100 * point.tflops / lowest:.0f}\u00a0% of {lowest_roof}"


def _against(seen: Sequence[Point]) -> str:
    """Compare a stage with the one before it by speed and bytes."""
    if len(seen) < 2 or not all(point.tflops for point in seen):
        return f"It does {seen[-1].intensity:.2g} FLOP per byte that its warps ask for."
    before, here = seen
    faster = here.tflops / before.tflops
    told = f"{faster:.3g} times as fast as {before.label}"
    ratio = here.intensity / before.intensity
    if not 0.95 < ratio < 1.05:
        return f"{told}, with {ratio:.2g} times the FLOP per byte."
    return f"{told}, with as many FLOP per byte."


def _as_drawn(name: str) -> str:
    """Return the name of a roof without its article, as the picture writes it."""
    return name.removeprefix("the ")


def _under_its_roofs(stage: Stage, others: Sequence[Stage], on: Place) -> Picture:
    """Draw a stage under its own roofs, and other stages beside it."""
    chosen = [*(each for each in others if each is not stage), stage]
    own, point = roofs_of(stage, on), _point(stage, True, on)
    name, lowest = own.lowest(point.intensity)
    known = point.tflops
    reached = (
        f"{known:.3g} TFLOPS, {100 * known / lowest:.0f} % of its lowest roof"
        if known
        else "its speed was not measured"
    )
    points = [_point(each, each is stage, on) for each in chosen]
    lines = Lines(
        own.memories,
        fp32_peak(on),
        tensor_peak(chosen, on),
        [(ceiling.label, ceiling.tflops) for ceiling in own.ceilings],
        _as_drawn(name),
    )
    return figure.roofline(
        lines,
        points,
        f"{stage.name}: {reached}",
        f"{_in_words(own.ceilings, dashed=False)} {_source(chosen, own.ceilings, on)}",
        span=figure.span_of(points, lines),
        under_title=f"The lowest roof: {name}, {lowest:.3g} TFLOPS",
    )


def _all_on_one(stages: Sequence[Stage], on: Place) -> Picture:
    """Draw stages on one roofline, with the last one marked."""
    points = [_point(stage, stage is stages[-1], on) for stage in stages]
    known = [point for point in points if point.tflops]
    title = f"From {points[0].label} to {points[-1].label}"
    if len(known) > 1:
        ratio = known[-1].tflops / known[0].tflops
        times = f"{ratio:.3g}" if ratio < 1000 else f"{ratio:.0f}"
        title = f"The last is {times} times as fast as {known[0].label}"
    lines = Lines(memories(stages, on), fp32_peak(on), tensor_peak(stages, on))
    return figure.all_on_one(lines, points, title, _source(stages, (), on))


def _point(stage: Stage, now: bool, on: Place = SHIPPED) -> Point:
    """Return a stage's point for its default tiles.

    It lies at the bytes that the stage's warps ask of L1, and at the measured speed.
    """
    intensity = cost_of_squares(stage).intensity_with_stores
    return Point(stage.name, intensity, ladder.speed_of(stage, on), now)


def _source(stages: Sequence[Stage], ceilings: Sequence[Ceiling], on: Place) -> str:
    used = sorted({ladder.precision(stage) for stage in stages}, reverse=True)
    measured = [ceiling.measured for ceiling in ceilings if ceiling.measured is not None]
    compilers = [f". Loop: {ceiling.compiler}" for ceiling in ceilings if ceiling.compiler]
    precisions = " and ".join(used).upper().replace("AND", "and")
    words = f"{SIZE}³, {precisions}; {ladder.provenance(stages, *measured, on=on)}{''.join(compilers)}"
    missing = left_out([stage for stage in stages if not ladder.speed_of(stage, on)], on, "bench")
    missing = " ".join(filter(None, (missing, not_compiled(stages))))
    if on == SHIPPED and not missing:
        return words
    return " ".join(filter(None, (f"{words.rstrip('; ')}.", missing, roofs_in_words(on))))


def _in_words(ceilings: Sequence[Ceiling], *, dashed: bool) -> str:
    """Explain the lines whose names do not tell what they mean."""
    words = "Grey band: the lowest roof."
    if dashed:
        words += " Dashed: a roof only if no cache helped."
    if any(ceiling.label.startswith("issue slots") for ceiling in ceilings):
        words += " Issue slots: the peak, less what the loop's other instructions take of it."
    return words


def ideal(n: int, on: Place = SHIPPED) -> Picture:
    """Draw an n × n product that moves each element of A, B and C once, under the roof of DRAM."""
    model = rated(on)
    intensity = 2 * n**3 / (3 * 4 * n**2)
    reached = model.attainable(intensity)
    memory = intensity < model.ridge()
    limit = "memory" if memory else "arithmetic"
    title = f"n = {n}: at most {reached:.3g} TFLOPS, {limit} is the limit"
    point = Point(f"n = {n}: at most", intensity, reached, True)
    roof = Roof("DRAM", model.bandwidths["DRAM"])
    lines = Lines([roof], model.peak, lowest="DRAM" if memory else "FP32 peak")
    by = f"{model.gpu.name} by its data sheet" if model.gpu else f"{on.gpu} as measured, by no data sheet"
    note = f"{by}, FP32, every element moved once"
    return figure.roofline(lines, [point], title, note, axis="FLOP per byte moved")
