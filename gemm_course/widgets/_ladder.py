"""The ladder so far: every stage as published and as measured, and how many loads it makes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import pandas as pd

from gemm_course import records
from gemm_course.device import gpu_available, gpu_facts
from gemm_course.figures import ladder as figure
from gemm_course.figures.ladder import Rung, Speed
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER, Stage
from gemm_course.widgets._costs import WIDE, cost_of_squares

SIZE = 4096  # of the matrices that TFLOPS were measured on
MEASURED_ON = {"h200": "H200"}  # the folder that ships with the course, and its name in the figure
PUBLISHED_ON = ("RTX 3090", "RTX A6000")
HERE = "this machine"
_SHORT = {"float32": "fp32", "float16": "fp16"}


def ladder(until: str | None = None) -> Picture:
    """Draw the stages up to ``until``, or all: TFLOPS and share of cuBLAS on every known GPU, loads per FMA.

    Raises KeyError for an unknown stage.
    """
    stages = up_to(until)
    gpus = _gpus()
    rungs = [_rung(stage, gpus) for stage in stages]
    kinds = {_group(stage): _kind(stage) for stage in stages}
    cublas = {
        (group, gpu): value for group, kind in kinds.items() for gpu in gpus if (value := _cublas(kind, gpu))
    }
    return figure.ladder(rungs, gpus, cublas, _answer(rungs), _note())


def up_to(until: str | None) -> list[Stage]:
    """Return the stages of the ladder in order, up to and including the one named."""
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


def speed_on_the_h200(stage: Stage) -> float | None:
    """Return the TFLOPS measured for a stage with its default tiles, None if there are none yet."""
    speed = _speed(stage, MEASURED_ON["h200"])
    return speed.tflops if speed else None


def cublas_on_the_h200(stage: Stage) -> float | None:
    """Return the TFLOPS measured for cuBLAS with a stage's dtypes, None if there are none yet."""
    return _cublas(_kind(stage), MEASURED_ON["h200"])


def provenance(stages: Iterable[Stage], *others: pd.DataFrame) -> str:
    """Return where the H200's figures of some stages, and ``others`` beside them, come from, in one line."""
    rows = [_recorded("h200", *kind) for kind in sorted({_kind(stage) for stage in stages})]
    return records.provenance(pd.concat([*rows, *others]))


def _gpus() -> dict[str, str]:
    """Return, for each GPU of the figure, where its figures come from."""
    known = dict.fromkeys(MEASURED_ON.values(), "measured") | dict.fromkeys(PUBLISHED_ON, "published")
    return known | ({HERE: "measured"} if _folder(HERE) else {})


@lru_cache
def _folder(gpu: str) -> str | None:
    """Return the folder of records that holds a GPU's figures, None if nothing was measured on it."""
    if gpu != HERE:
        return next((folder for folder, name in MEASURED_ON.items() if name == gpu), None)
    here = gpu_facts().slug if gpu_available() else None
    return here if here in records.gpus() and here not in MEASURED_ON else None


def _rung(stage: Stage, gpus) -> Rung:
    speeds = {gpu: speed for gpu in gpus if (speed := _speed(stage, gpu))}
    cost = cost_of_squares(stage)
    return Rung(stage.name, _group(stage), speeds, cost.loads, cost.shared_loads, stage.after, stage.side)


def _speed(stage: Stage, gpu: str) -> Speed | None:
    if _folder(gpu):
        rows = _recorded(_folder(gpu), *_kind(stage))
        rows = rows[rows["stage"] == stage.name]
        share = rows["ratio_to_cublas"].iloc[-1] if len(rows) else None
        return Speed(float(rows["tflops"].iloc[-1]), float(share)) if len(rows) else None
    rows = _published(gpu, precision(stage))
    rows = rows[rows["stage"] == stage.name]
    if rows.empty:
        return None
    reached, cublas = float(rows["tflops"].max()), _cublas(_kind(stage), gpu)
    return Speed(reached, reached / cublas if cublas else None)


def _cublas(kind: tuple[str, str], gpu: str) -> float | None:
    if _folder(gpu):
        known = _recorded(_folder(gpu), *kind)["cublas_tflops"].dropna()
        return float(known.median()) if len(known) else None
    if kind[0] != kind[1]:  # published kernels accumulate in the dtype of their matrices
        return None
    rows = _published(gpu, kind[0])
    rows = rows[rows["stage"] == "cublas"]
    return float(rows["tflops"].max()) if len(rows) else None


@lru_cache
def _recorded(folder: str, dtype: str, acc: str):
    rows = records.ladder(folder)
    same = (rows["m"] == SIZE) & (rows["n"] == SIZE) & (rows["k"] == SIZE)
    return rows[same & (rows["dtype"] == dtype) & (rows["accumulate"] == acc) & rows["tflops"].notna()]


@lru_cache
def _published(gpu: str, dtype: str):
    rows = records.published()
    return rows[(rows["gpu"] == gpu) & (rows["dtype"] == dtype)]


def _answer(rungs: list[Rung]) -> str:
    on = MEASURED_ON["h200"]
    known = [rung for rung in rungs if on in rung.speeds]
    if not known:
        return "None of these stages has been measured yet"
    last = known[-1]
    return f"{last.name}: {100 * last.speeds[on].share:.0f} % of cuBLAS on an {on}"


def _note() -> str:
    measured = provenance(LADDER)
    sources = sorted({source for gpu in PUBLISHED_ON for source in _published(gpu, "fp32")["source"]})
    return (
        f"Measured: {SIZE}³, each stage in turn with cuBLAS, so each share is of cuBLAS in the same run; "
        f"{measured}. Published: {'; '.join(sources)}, by their authors. "
        f"Loads: elements that the kernel asks for, {WIDE}³, counted by the emulator."
    )
