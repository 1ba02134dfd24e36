"""Draws TFLOPS and counts from the records and the emulator. Every figure names its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from numbers import Real

import numpy as np

from gemm_course import records
from gemm_course.compiler.work import LANES
from gemm_course.figures import charts
from gemm_course.figures.counts import side_by_side
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER, tiles_text
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets import _ladder as ladder
from gemm_course.widgets._errors_in_words import NotShown, asked, shown
from gemm_course.widgets._explorer import Explorer
from gemm_course.widgets._gpus import left_out, of_gpus, to_measure
from gemm_course.widgets._gpus import shown as shown_on
from lockstep import Report, emulate

# TFLOPS are measured on square matrices of this size.
SIZE = 4096


@of_gpus
def tflops(*stages: str, on: str | None = None, highlight: str | None = None) -> Explorer | Picture:
    """Draw the TFLOPS of some stages.

    ``on`` is a GPU that was measured, such as "NVIDIA H200" or "rtx_3060", or the GPU of a published figure,
    such as "RTX 3090". A stage without a published figure is left out. Without ``on``, the H200's figures are
    drawn, and the GPU can be chosen where several were measured. Raise ValueError if nothing is recorded.
    """
    if on in set(records.published()["gpu"]):
        return draw_tflops(stages, on, highlight)
    return shown_on(lambda on: draw_tflops(stages, on, highlight), on)


def draw_tflops(stages: Sequence[str], on: Place | str, highlight: str | None = None) -> Picture:
    """Draw the TFLOPS of some stages as measured on a GPU, or as published for a GPU of that name."""
    dtypes = sorted({ladder.precision(LADDER[name]) for name in stages if name in LADDER}, reverse=True)
    published = isinstance(on, str)
    rows, marks, note = _published(on, dtypes) if published else _measured(dtypes, on)
    best = {name: rows[rows["stage"] == name]["tflops"].max() for name in stages}
    known = {name: float(value) if value == value else None for name, value in best.items()}
    if published:
        known = {name: value for name, value in known.items() if value is not None}
    if not known or any(name not in LADDER for name in known):
        gpu = on if published else on.gpu
        raise ValueError(f"nothing is recorded on {gpu} for {', '.join(stages) or 'no stage at all'}")
    if not published:
        missing = [LADDER[name] for name, value in known.items() if value is None]
        if words := left_out(missing, on, "bench"):
            note = f"{note}. {words}"
    now = highlight or stages[-1]
    bars = [charts.Bar(name, value, name == now) for name, value in known.items()]
    # One bar alone says little, so the marks become bars beside it.
    if len(bars) == 1 and bars[0].tflops:
        bars += [charts.Bar(label, value) for label, value in marks]
        return charts.tflops(bars, _beside(bars), note)
    return charts.tflops(bars, _answer(known), note, lines=marks)


def _beside(bars: Sequence[charts.Bar]) -> str:
    stage, *others = bars
    said = f"{stage.label}: {charts.three_digits(stage.tflops)} TFLOPS"
    if not others:
        return said
    return f"{said}, {_percent(stage.tflops / others[0].tflops)} of {others[0].label}"


def _answer(best: Mapping[str, float | None]) -> str:
    """Say what the last stage gains over the stage that it changes, or else over the first one shown."""
    known = {name: value for name, value in best.items() if value is not None}
    if not known:
        return f"{', '.join(best)}: not measured yet"
    *before, last = known
    if not before:
        return f"{last}: {known[last]:.3g} TFLOPS"
    step = LADDER[last].after if LADDER[last].after in before else before[0]
    ratio = known[last] / known[step]
    if ratio < 1:
        return f"{last} is {_percent(1 - ratio)} slower than {step}"
    times = f"{ratio:.0f}" if ratio >= 50 else f"{ratio:.3g}"
    return f"{last} is {times} times as fast as {step}"


def _percent(part: float) -> str:
    return f"{100 * part:.2g}\u00a0%"


def _measured(dtypes: Sequence[str], on: Place):
    rows = records.ladder(on)
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


@of_gpus
def counts(
    stage: str, shape: tuple[int, int, int], *, on: str | None = None, **formula: Callable | int | None
) -> Explorer | Picture:
    """Draw counts three ways: your formula, the emulator, the hardware's counter where it is recorded.

    ``shape`` is (m, n, k), with the stage's default tiles and beta = 0. Each further keyword names what is
    counted, such as global_load_sectors. Its value is what your formula says: a number, a function of m, n,
    k, or None if you have no formula yet. ``on`` is the GPU that counted, such as "rtx_3060", and the H200
    without it. Where several GPUs counted, it can be chosen.
    """
    if not isinstance(shape, Sequence) or len(shape) != 3:
        raise ValueError(f"shape must be three numbers, (m, n, k), not {shape}")
    for name in formula.keys() - _SITES.keys():
        raise ValueError(f"there is no count called {name}; there are {', '.join(_SITES)}")
    return shown_on(lambda on: _draw_counts(stage, shape, formula, on), on, having=_counters)


def _counters(on: Place):
    return records.counters("ladder", on)


def _draw_counts(stage: str, shape: tuple[int, int, int], formula: Mapping, on: Place) -> Picture:
    report, hardware = _counted(stage, shape), _recorded(stage, shape, on)
    rows, others = [], []
    for name, said in formula.items():
        value = asked(said, m=shape[0], n=shape[1], k=shape[2]) if callable(said) else said
        if value is not None and not isinstance(value, Real):
            raise NotShown(f"The formula for {name} must give one number, not {shown(value)}.")
        rows.append((name.replace("_", " "), _ways(value, report.total(**_SITES[name]), hardware.get(name))))
        others.append(_other_count(report, name, value))
    told = _mistakes(rows, others) or _agreement([ways for _, ways in rows])
    title = f"{told} ({stage}, {' × '.join(map(str, shape))})"
    return side_by_side(rows, title, hardware.get("from", _no_counters(stage, shape, on)))


def _ways(said: int | str | None, emulated: int, hardware: int | None) -> dict[str, int | str]:
    """Return the counts found in the three ways. Without a formula the other counts stay hidden."""
    if said is None:
        return {"formula": "your turn", "emulator": _LATER, "hardware": _LATER}
    said = int(said) if isinstance(said, float) and said.is_integer() else said
    return {"formula": said, "emulator": emulated, "hardware": _told(hardware, emulated)}


def _told(hardware: int | None, emulated: int) -> int | str:
    """Return the hardware's count, or words if it has no count."""
    if hardware is None:
        return "not recorded"
    return hardware if hardware or not emulated else "has no counter for this"


def _other_count(report: Report, name: str, said: object) -> str:
    """Say what a formula counts instead of sectors, if that is one of the report's other counts.

    Otherwise return "".
    """
    site = _SITES[name]
    if site["column"] != "sectors" or said in (None, report.total(**site)):
        return ""
    op, what = site["op"], {"lanes": "lanes' elements", "requests": "requests"}
    for column, words in what.items():
        if said == report.total(**{**site, "column": column}):
            return f"The formula for {op}s counts {words}, not sectors"
    return ""


def _mistakes(rows: Sequence[tuple[str, Mapping[str, int | str]]], others: Sequence[str]) -> str:
    """Say what each wrong formula does, or return "" if none of them is known to count something else."""
    if not any(others):
        return ""
    told = []
    for (name, ways), other in zip(rows, others, strict=True):
        said, right = ways["formula"], ways["emulator"]
        if other or isinstance(said, str) or said == right:
            told.append(other)
        else:
            told.append(f"{name}: {LANES} times too many" if said == LANES * right else f"{name}: wrong, too")
    return "; ".join(filter(None, told))


def _agreement(counted: Sequence[Mapping[str, int | str]]) -> str:
    if any(isinstance(ways["formula"], str) for ways in counted):
        return "What does your formula say?"
    wrong = [ways for ways in counted if ways["formula"] != ways["emulator"]]
    if wrong and all(ways["formula"] == LANES * ways["emulator"] for ways in wrong):
        return f"The formula says {LANES} times as many as the emulator: a request is a whole warp's"
    if wrong and all(ways["formula"] == ways["hardware"] for ways in counted):
        return "The formula counts what the hardware does; the emulator counts the source"
    times = {ways["formula"] / ways["emulator"] for ways in wrong if ways["emulator"]}
    if len(times) == 1 and (factor := times.pop()) in range(2, 65):
        return f"The formula says {factor:.0f} times as many as the emulator"
    if wrong:
        return "Formula and emulator differ"
    if any(isinstance(ways["hardware"], str) for ways in counted):
        return "Formula and emulator agree"
    if any(ways["hardware"] > ways["emulator"] for ways in counted):
        return "The hardware counts more"
    if any(ways["hardware"] != ways["emulator"] for ways in counted):
        return "The hardware counts less: the compiler merged accesses"
    return "All three counts agree"


_LATER = "shown beside your formula"


def _no_counters(stage: str, shape: tuple[int, int, int], on: Place) -> str:
    words = (
        "The hardware's counters have not been recorded for this stage with its default tiles at this size."
    )
    if on == SHIPPED and _counters(on)["case"].str.startswith(f"{stage} ").any():
        return words
    size = "x".join(map(str, shape))
    return to_measure("What the hardware counts was", on, f"counters {stage} --shapes {size}")


_SITES = {
    f"{space}_{op}_{column}": {"space": space, "op": op, "column": column}
    for space, columns in (("global", ("requests", "sectors")), ("shared", ("requests", "wavefronts")))
    for op in ("load", "store")
    for column in columns
}
# ldmatrix and cp.async have hardware counters of their own. The emulator counts them with other loads and
# stores, and the hardware's requests for global memory include those of cp.async.
_APART = {
    "global_load_sectors": "async_copy_sectors",
    "shared_load_requests": "matrix_load_requests",
    "shared_load_wavefronts": "matrix_load_wavefronts",
    "shared_store_requests": "async_copy_requests",
    "shared_store_wavefronts": "async_copy_wavefronts",
}


@lru_cache(64)
def _counted(stage_name: str, shape: tuple[int, int, int], tiles: tuple | None = None):
    """Count a stage's accesses for any size, without computing the product."""
    stage, (m, n, k) = LADDER[stage_name], shape
    chosen = dict(tiles) if tiles else None
    zero = np.dtype(stage.dtype).type(0)
    A, B, C = (np.broadcast_to(zero, size) for size in ((m, k), (k, n), (m, n)))
    problem = stage.arguments(m, n, k, np.float32(1), A, B, np.float32(0), C, tiles=chosen)
    launch = (stage.kernel(chosen), stage.grid(m, n, chosen), stage.block(chosen))
    return emulate(*launch, *problem, shared_bytes=stage.shared_bytes(chosen), counts_only=True)


def _recorded(stage: str, shape: tuple[int, int, int], on: Place) -> dict:
    """Return the recorded counters of a stage with its default tiles by name, or {} if there are none."""
    rows = _counters(on)
    tiles = tiles_text(LADDER[stage].tiles)
    rows = rows[(rows["case"] == f"{stage} {shape[0]}x{shape[1]}x{shape[2]}") & (rows["tiles"] == tiles)]
    if rows.empty:
        return {}
    known = rows.iloc[0].fillna(0)
    counts = {name: int(known[name]) + int(known.get(_APART.get(name), 0)) for name in _SITES}
    return counts | {"from": f"Hardware: {records.provenance(rows)}"}
