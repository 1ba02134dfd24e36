"""TFLOPS, rooflines and counts, from the records and the emulator; every figure names its source."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from gemm_course import records
from gemm_course.emulator import emulate
from gemm_course.figures import charts
from gemm_course.figures import roofline as drawn
from gemm_course.figures.counts import side_by_side
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER, Stage, tiles_text
from gemm_course.model import shared_memory_ceiling
from gemm_course.widgets import _ladder as ladder
from gemm_course.widgets._costs import cost_of_squares
from gemm_course.widgets._explorer import Explorer
from gemm_course.widgets._roofs import (
    Ceiling,
    fp32_peak,
    memories,
    model_of_the_h200,
    roofs_of,
    tensor_peak,
)

SIZE = 4096  # of the matrices that TFLOPS are measured on
COUNTED = 1024  # of those that accesses are counted on


def tflops(*stages: str, on: str = "NVIDIA H200", highlight: str | None = None) -> Picture:
    """Draw the TFLOPS of some stages.

    ``on`` is "NVIDIA H200" for what was measured there, or the GPU of a published figure, such as "RTX
    3090"; a stage without a published figure is left out. Raises ValueError if nothing is recorded.
    """
    dtypes = sorted({ladder.precision(LADDER[name]) for name in stages if name in LADDER}, reverse=True)
    rows, marks, note = _measured(dtypes) if on == "NVIDIA H200" else _published(on, dtypes)
    best = {name: rows[rows["stage"] == name]["tflops"].max() for name in stages}
    known = {name: float(value) if value == value else None for name, value in best.items()}
    if on != "NVIDIA H200":
        known = {name: value for name, value in known.items() if value is not None}
    if not known or any(name not in LADDER for name in known):
        raise ValueError(f"nothing is recorded on {on} for {', '.join(stages)}")
    bars = [charts.Bar(name, value, name == (highlight or stages[-1])) for name, value in known.items()]
    return charts.tflops(bars, _answer(known), note, lines=marks)


def _answer(best: Mapping[str, float | None]) -> str:
    known = {name: value for name, value in best.items() if value is not None}
    if not known:
        return f"{', '.join(best)}: not measured yet"
    names, values = list(known), list(known.values())
    if len(names) == 1:
        return f"{names[0]}: {values[0]:.3g} TFLOPS"
    return f"{names[-1]} is {values[-1] / values[0]:.3g} times as fast as {names[0]}"


def _measured(dtypes: Sequence[str]):
    rows = records.ladder()
    same = (rows["m"] == SIZE) & (rows["n"] == SIZE) & (rows["k"] == SIZE)
    rows = rows[same & rows["dtype"].isin(dtypes)]
    cublas = rows.groupby("dtype")["cublas_tflops"].median().dropna()
    marks = [(_of("cuBLAS", dtype, dtypes), float(cublas[dtype])) for dtype in dtypes if dtype in cublas]
    return rows, marks, f"{SIZE}³, {_in_capitals(dtypes)}; {records.provenance(rows) or 'not measured yet'}"


def _published(gpu: str, dtypes: Sequence[str]):
    rows = records.published()
    rows = rows[(rows["gpu"] == gpu) & rows["dtype"].isin(dtypes)]
    marks = [
        (_of(label, dtype, dtypes), float(tflops))
        for name, label in (("cublas", "cuBLAS"), ("peak", "peak"))
        for dtype, tflops in rows[rows["stage"] == name].groupby("dtype")["tflops"].max().items()
    ]
    sources = ", ".join(sorted(set(rows["source"])))
    return rows, marks, f"{gpu}, {_in_capitals(dtypes)}, as published: {sources}"


def _of(label: str, dtype: str, dtypes: Sequence[str]) -> str:
    """Name a reference line, with its dtype if there are several."""
    return label if len(dtypes) == 1 else f"{label} {dtype.upper()}"


def _in_capitals(dtypes: Sequence[str]) -> str:
    return " and ".join(dtypes).upper().replace("AND", "and")


def roofline(
    *stages: str, shared: str | None = None, limits: str | None = None, until: str | None = None
) -> Picture | None:
    """Draw stages on the H200's roofline, by the bytes that their warps ask of L1 and the TFLOPS measured.

    ``shared`` names a stage whose shared-memory ceilings are drawn: by the source, and by the hardware's
    counter. ``limits`` names a stage of which only the roofs are drawn that it cannot rise above: those of
    the memories that all its bytes pass, its issue slots, its Tensor Core instruction alone, shared memory
    with all that the hardware counted. ``until`` draws all stages of the ladder up to that one on one
    roofline. Without a stage, show a slider for the size of a matrix product in which every element moves
    only once. Raises KeyError for an unknown stage, ValueError for `until` beside anything else, and for
    `shared` beside `limits` or without stages.
    """
    if until and (stages or shared or limits):
        raise ValueError("until draws all stages up to one: leave out the stages, shared and limits.")
    if until:
        return _all_on_one(ladder.up_to(until))
    if shared and (limits or not stages):
        raise ValueError("shared draws ceilings above stages: name the stages, and leave out limits.")
    if limits:
        return _under_its_roofs(LADDER[limits], [LADDER[name] for name in stages])
    if not stages:
        sizes = [64 * 2**step for step in range(9)]
        Explorer(_ideal, {"n": ("n × n matrices, n", sizes, 256)}).show()
        return None
    chosen = [LADDER[name] for name in stages]
    points = [_point(stage, stage is chosen[-1]) for stage in chosen]
    ceilings = _shared_ceilings(shared, (COUNTED,) * 3) if shared else []
    title = f"{stages[-1]}: {points[-1].intensity:.2g} FLOP per byte that its warps ask for"
    known = {"ceilings": ceilings, "tensor_peak": tensor_peak(chosen)}
    return drawn.roofline(memories(chosen), fp32_peak(), points, title, _source(chosen), **known)


def _under_its_roofs(stage: Stage, others: Sequence[Stage]) -> Picture:
    """Draw a stage under its own roofs, and others beside it."""
    chosen = [*others, *([] if stage in others else [stage])]
    own, point = roofs_of(stage), _point(stage, True)
    name, lowest = own.lowest(point.intensity)
    known = point.tflops
    reached = (
        f"{known:.3g} TFLOPS, {100 * known / lowest:.0f} % of its lowest roof"
        if known
        else "its speed was not measured"
    )
    return drawn.roofline(
        own.memories,
        fp32_peak(),
        [_point(each, each is stage) for each in chosen],
        f"{stage.name}: {reached}",
        _source(chosen, own.ceilings),
        ceilings=[(ceiling.label, ceiling.tflops) for ceiling in own.ceilings],
        under_title=f"The lowest roof: {name}, {lowest:.3g} TFLOPS",
        tensor_peak=tensor_peak(chosen),
    )


def _all_on_one(stages: Sequence[Stage]) -> Picture:
    """Draw stages on one roofline, with the last one marked."""
    points = [_point(stage, stage is stages[-1]) for stage in stages]
    known = [point for point in points if point.tflops]
    title = f"From {points[0].label} to {points[-1].label}"
    if len(known) > 1:
        ratio = known[-1].tflops / known[0].tflops
        times = f"{ratio:.3g}" if ratio < 1000 else f"{ratio:.0f}"
        title = f"The last is {times} times as fast as {known[0].label}"
    known = {"tensor_peak": tensor_peak(stages)}
    return drawn.all_on_one(memories(stages), fp32_peak(), points, title, _source(stages), **known)


def _point(stage: Stage, now: bool) -> drawn.Point:
    """Return a stage's point for its default tiles: what its warps ask of L1, and what was measured."""
    intensity = cost_of_squares(stage).intensity_with_stores
    return drawn.Point(stage.name, intensity, ladder.speed_on_the_h200(stage), now)


def _source(stages: Sequence[Stage], ceilings: Sequence[Ceiling] = ()) -> str:
    used = sorted({ladder.precision(stage) for stage in stages}, reverse=True)
    measured = [ceiling.measured for ceiling in ceilings if ceiling.measured is not None]
    compilers = [f". Loop: {ceiling.compiler}" for ceiling in ceilings if ceiling.compiler]
    return f"{SIZE}³, {_in_capitals(used)}; {ladder.provenance(stages, *measured)}{''.join(compilers)}"


def _shared_ceilings(stage: str, shape: tuple[int, int, int]) -> list[tuple[str, float]]:
    """Return shared memory's ceilings for a stage: as written in the source, and as the hardware counted."""
    written = _counted(stage, shape).total("wavefronts", space="shared", op="load")
    compiled = _recorded(stage, shape).get("shared_load_wavefronts")
    named = {"shared memory, as written": written, "shared memory, as compiled": compiled}
    return [
        (label, shared_memory_ceiling(count, math.prod(shape))) for label, count in named.items() if count
    ]


def _ideal(n: int) -> Picture:
    """Draw an n × n product that moves each element of A, B and C once, under the roof of DRAM."""
    model = model_of_the_h200()
    intensity = 2 * n**3 / (3 * 4 * n**2)
    reached = model.attainable(intensity)
    limit = "memory" if intensity < model.ridge() else "arithmetic"
    title = f"n = {n}: at most {reached:.3g} TFLOPS, {limit} is the limit"
    point = drawn.Point(f"n = {n}: at most", intensity, reached, True)
    roof = drawn.Roof("DRAM", model.bandwidths["DRAM"])
    note = f"{model.gpu.name} by its data sheet, FP32, every element moved once"
    return drawn.roofline([roof], model.peak_tflops, [point], title, note, axis="FLOP per byte moved")


def counts(stage: str, shape: tuple[int, int, int], **formula: Callable | int | None) -> Picture:
    """Draw counts three ways: your formula, the emulator, the hardware's counter where it is recorded.

    ``shape`` is (m, n, k), with the stage's default tiles and beta = 0; each keyword names what is counted,
    such as global_load_sectors, and gives what your formula says: a number, a function of m, n, k, or None
    if you have no formula yet.
    """
    report, hardware = _counted(stage, shape), _recorded(stage, shape)
    rows = []
    for name, said in formula.items():
        value = said(*shape) if callable(said) else said
        ways = {
            "formula": "your turn" if value is None else value,
            "emulator": report.total(**_SITES[name]),
            "hardware": _told(hardware.get(name), report.total(**_SITES[name])),
        }
        rows.append((name.replace("_", " "), ways))
    title = f"{_agreement([ways for _, ways in rows])} ({stage}, {' × '.join(map(str, shape))})"
    return side_by_side(rows, title, hardware.get("from", _NO_COUNTERS))


def _told(hardware: int | None, emulated: int) -> int | str:
    """Return the hardware's count, or words if there is no count."""
    if hardware is None:
        return "not recorded"
    return hardware if hardware or not emulated else "has no counter for this"


def _agreement(counted: Sequence[Mapping[str, int | str]]) -> str:
    if any(isinstance(ways["formula"], str) for ways in counted):
        return "What does your formula say?"
    if any(ways["formula"] != ways["emulator"] for ways in counted):
        return "Formula and emulator differ"
    if any(isinstance(ways["hardware"], str) for ways in counted):
        return "Formula and emulator agree"
    if any(ways["hardware"] > ways["emulator"] for ways in counted):
        return "The hardware counts more"
    if any(ways["hardware"] != ways["emulator"] for ways in counted):
        return "The hardware counts less: the compiler merged accesses"
    return "All three counts agree"


_NO_COUNTERS = (
    "The hardware's counters have not been recorded for this stage with its default tiles at this size."
)
_SITES = {
    f"{space}_{op}_{column}": {"space": space, "op": op, "column": column}
    for space, columns in (("global", ("requests", "sectors")), ("shared", ("requests", "wavefronts")))
    for op in ("load", "store")
    for column in columns
}
# ldmatrix and cp.async have hardware counters of their own; the emulator counts them with other loads and
# stores. (The hardware's requests for global memory include those of cp.async.)
_APART = {
    "global_load_sectors": "async_copy_sectors",
    "shared_load_requests": "matrix_load_requests",
    "shared_load_wavefronts": "matrix_load_wavefronts",
    "shared_store_requests": "async_copy_requests",
    "shared_store_wavefronts": "async_copy_wavefronts",
}


@lru_cache(64)
def _counted(stage_name: str, shape: tuple[int, int, int], tiles: tuple | None = None):
    """Count a stage's accesses for any size, without computing anything."""
    stage, (m, n, k) = LADDER[stage_name], shape
    chosen = dict(tiles) if tiles else None
    zero = np.dtype(stage.dtype).type(0)
    A, B, C = (np.broadcast_to(zero, size) for size in ((m, k), (k, n), (m, n)))
    problem = stage.arguments(m, n, k, np.float32(1), A, B, np.float32(0), C, tiles=chosen)
    launch = (stage.kernel(chosen), stage.grid(m, n, chosen), stage.block(chosen))
    return emulate(*launch, *problem, shared_bytes=stage.shared_bytes(chosen), counts_only=True)


def _recorded(stage: str, shape: tuple[int, int, int]) -> dict:
    """Return the recorded counters of a stage with its default tiles by name, empty if there are none."""
    rows = records.counters("ladder")
    tiles = tiles_text(LADDER[stage].tiles)
    rows = rows[(rows["case"] == f"{stage} {shape[0]}x{shape[1]}x{shape[2]}") & (rows["tiles"] == tiles)]
    if rows.empty:
        return {}
    known = rows.iloc[0].fillna(0)
    counts = {name: int(known[name]) + int(known.get(_APART.get(name), 0)) for name in _SITES}
    return counts | {"from": f"Hardware: {records.provenance(rows)}"}
