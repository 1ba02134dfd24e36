"""Draws the ladder so far: every stage as published and as measured, and how many loads it makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial

import pandas as pd

from gemm_course import records
from gemm_course.device import gpu_available, gpu_facts
from gemm_course.figures import ladder as figure
from gemm_course.figures.ladder import Rung, Speed
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER, Stage
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets import _gpus
from gemm_course.widgets._costs import WIDE, cost_of_squares
from gemm_course.widgets._explorer import Explorer

# TFLOPS were measured on square matrices of this size.
SIZE = 4096
H200 = SHIPPED.short
PUBLISHED_ON = ("RTX 3090", "RTX A6000")
BESIDE = "beside the H200"
_SHORT = {"float32": "fp32", "float16": "fp16"}


@_gpus.of_gpus
def ladder(until: str | None = None, *, on: str | None = None) -> Explorer | Picture:
    """Draw the stages up to ``until``, or all: TFLOPS and share of cuBLAS on several GPUs, loads per FMA.

    ``on`` is the GPU that is shown beside the H200 and the published figures, such as "rtx_3060". Without it,
    it is the other GPU that was measured, and where there are several, it can be chosen. Raise KeyError for
    an unknown stage, and ValueError for an unknown GPU.
    """
    stages = up_to(until)
    if on is not None:
        return draw(stages, _gpus.named(on))
    others = _gpus.control(None).get(_gpus.CONTROL, ("", [], SHIPPED))[1][1:]
    if len(others) < 2:
        return draw(stages, others[0][1] if others else SHIPPED)
    here = gpu_facts().slug if gpu_available() else ""
    first = next((other for _, other in others if other.name == here), others[0][1])
    return Explorer(partial(draw, stages), {_gpus.CONTROL: (BESIDE, others, first)})


def draw(stages: list[Stage], on: Place = SHIPPED) -> Picture:
    """Draw stages on the H200, as published, and on another GPU that was measured."""
    gpus = _measured_on(on)
    rungs = [_rung(stage, gpus) for stage in stages]
    kinds = {_group(stage): _kind(stage) for stage in stages}
    cublas = {
        (group, gpu): value
        for group, kind in kinds.items()
        for gpu, place in gpus.items()
        if (value := _cublas(kind, gpu, place))
    }
    how = {name: "measured" if place else "published" for name, place in gpus.items()}
    return figure.ladder(rungs, how, cublas, _answer(rungs), _note(stages, on))


def up_to(until: str | None) -> list[Stage]:
    """Return the stages of the ladder in order, up to and including ``until``, or all without it."""
    stages = list(LADDER)
    return stages if until is None else stages[: stages.index(LADDER[until]) + 1]


def precision(stage: Stage) -> str:
    """Return the stage's dtype as the records write it, "fp32" or "fp16"."""
    return _SHORT[stage.dtype]


def _kind(stage: Stage) -> tuple[str, str]:
    """Return the dtypes of the matrices and of the accumulators, as in the records."""
    return _SHORT[stage.dtype], _SHORT[stage.accumulate]


def _group(stage: Stage) -> str:
    dtype, acc = (name.upper() for name in _kind(stage))
    return dtype if acc == "FP32" else f"{dtype}, {acc} accumulation"


def speed_of(stage: Stage, on: Place = SHIPPED) -> float | None:
    """Return the TFLOPS measured for a stage with its default tiles, or None if there are none yet."""
    speed = _speed(stage, on.short, on)
    return speed.tflops if speed else None


def cublas_of(stage: Stage, on: Place = SHIPPED) -> float | None:
    """Return the TFLOPS measured for cuBLAS with a stage's dtypes, or None if there are none yet."""
    return _cublas(_kind(stage), on.short, on)


def provenance(stages: Iterable[Stage], *others: pd.DataFrame, on: Place = SHIPPED) -> str:
    """Return in one line where a GPU's figures of some stages come from, and those of ``others``."""
    rows = [_recorded(on, *kind) for kind in sorted({_kind(stage) for stage in stages})]
    return records.provenance(pd.concat([*rows, *others]))


def _measured_on(on: Place) -> dict[str, Place | None]:
    """Return the GPUs of the figure by name, with the place of those that were measured."""
    published = dict.fromkeys(PUBLISHED_ON)
    if on == SHIPPED:
        return {H200: SHIPPED, **published}
    name = records.short_of(on)
    return {H200: SHIPPED, **published, f"{name} ({on.name})" if name in published else name: on}


def _rung(stage: Stage, gpus: Mapping[str, Place | None]) -> Rung:
    speeds = {gpu: speed for gpu, place in gpus.items() if (speed := _speed(stage, gpu, place))}
    cost = cost_of_squares(stage)
    return Rung(stage.name, _group(stage), speeds, cost.loads, cost.shared_loads, stage.after, stage.side)


def _speed(stage: Stage, gpu: str, place: Place | None) -> Speed | None:
    if place:
        rows = _recorded(place, *_kind(stage))
        rows = rows[rows["stage"] == stage.name]
        share = rows["ratio_to_cublas"].iloc[-1] if len(rows) else None
        return Speed(float(rows["tflops"].iloc[-1]), float(share)) if len(rows) else None
    rows = _published(gpu, precision(stage))
    rows = rows[rows["stage"] == stage.name]
    if rows.empty:
        return None
    reached, cublas = float(rows["tflops"].max()), _cublas(_kind(stage), gpu, None)
    return Speed(reached, reached / cublas if cublas else None)


def _cublas(kind: tuple[str, str], gpu: str, place: Place | None) -> float | None:
    if place:
        known = _recorded(place, *kind)["cublas_tflops"].dropna()
        return float(known.median()) if len(known) else None
    if kind[0] != kind[1]:
        # Published kernels accumulate in the dtype of their matrices.
        return None
    rows = _published(gpu, kind[0])
    rows = rows[rows["stage"] == "cublas"]
    return float(rows["tflops"].max()) if len(rows) else None


@_gpus.remembered
def _recorded(place: Place, dtype: str, acc: str):
    rows = records.ladder(place)
    same = (rows["m"] == SIZE) & (rows["n"] == SIZE) & (rows["k"] == SIZE)
    return rows[same & (rows["dtype"] == dtype) & (rows["accumulate"] == acc) & rows["tflops"].notna()]


@lru_cache
def _published(gpu: str, dtype: str):
    rows = records.published()
    return rows[(rows["gpu"] == gpu) & (rows["dtype"] == dtype)]


def _answer(rungs: list[Rung]) -> str:
    known = [rung for rung in rungs if H200 in rung.speeds]
    if not known:
        return "None of these stages has been measured yet"
    last = known[-1]
    return f"{last.name}: {100 * last.speeds[H200].share:.0f} % of cuBLAS on an {H200}"


def _note(stages: Sequence[Stage], on: Place) -> str:
    measured = "; ".join(
        filter(None, (provenance(LADDER, on=place) for place in dict.fromkeys((SHIPPED, on))))
    )
    missing = [stage for stage in stages if not speed_of(stage, on)]
    sources = sorted({source for gpu in PUBLISHED_ON for source in _published(gpu, "fp32")["source"]})
    return (
        f"Measured: {SIZE}³, each stage in turn with cuBLAS, so each share is of cuBLAS in the same run; "
        f"{measured}. Published: {'; '.join(sources)}, by their authors. "
        f"Loads: elements that the kernel asks for, {WIDE}³, counted by the emulator."
        + (f" {words}" if (words := _gpus.left_out(missing, on, "bench")) else "")
    )
