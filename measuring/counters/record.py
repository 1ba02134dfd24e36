"""Runs Nsight Compute on a list of cases and writes what it counted."""

import datetime
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gemm_course.bench.profile.metrics import METRICS, TENSOR_METRICS
from gemm_course.bench.profile.ncu import NoProfiler, find_ncu, ncu_version, refuse_if_forbidden, watched
from gemm_course.bench.profile.pages import launches, size, whole
from gemm_course.device import gpu_facts, require_gpu
from gemm_course.records import origin
from gemm_course.records.columns import COUNTERS, WAVEFRONTS
from measuring.counters import child
from measuring.counters.patterns import instructions

# These are the data stage's own counters. They are exact if one warp is alone, because then it never loses
# arbitration.
DATA_STAGE = {
    "load": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "store": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
}


def record_counters(program: Sequence[str], path: Path, command: str) -> tuple[int, list[str]]:
    """Count every case that a program launches. Its rows replace those of the same cases in the file.

    ``program`` is from `Source.program` of the course, or from `child.of_module`. Return the number of rows
    counted, and the failures, one line each.
    """
    launched, failed, counted = profile(program, METRICS, TENSOR_METRICS)
    gpu = gpu_facts()
    beside = {**origin(gpu.name, gpu.driver, gpu.cuda, command), "ncu": ncu_version()}
    rows = [
        {**dict.fromkeys(COUNTERS.columns), **about, **counts, **beside}
        for about, counts in zip(launched, counted, strict=True)
    ]
    counted_now = {row["case"] for row in rows}
    others = [row for row in COUNTERS.rows(path) if row["case"] not in counted_now]
    COUNTERS.write(path, others + rows)
    return len(rows), failed


def record_wavefronts(path: Path) -> tuple[int, list[str]]:
    """Measure single instructions, also those that the file has, and write the file anew.

    Return the number of rows written, and the failures, one line each.
    """
    program, measured = child.of_wavefronts(path), instructions(path)
    addresses = {"load": METRICS["shared_load_wavefronts"], "store": METRICS["shared_store_wavefronts"]}
    # There is a run for each kind of counter, because one run with both takes several times as long.
    launched, failed, computed = profile(program, addresses)
    _, _, counted = profile(program, DATA_STAGE)
    gpu = gpu_facts()
    beside = f"{gpu.name}, driver {gpu.driver}, ncu {ncu_version()}, {datetime.date.today().isoformat()}"
    names = [about["case"] for about in launched]
    by_address = dict(zip(names, computed, strict=True))
    by_data_stage = dict(zip(names, counted, strict=True))
    rows = [
        {
            "pattern": one.pattern,
            "op": one.op,
            "bits": one.bits,
            "lane_word_index": " ".join(str(word) for word in one.word_index),
            "wavefronts": by_address[one.name][one.op],
            "data_stage_wavefronts": by_data_stage[one.name][one.op],
            "source": beside,
        }
        for one in measured
        if one.name in by_address
    ]
    WAVEFRONTS.write(path, rows)
    return len(rows), failed


def profile(
    program: Sequence[str], metrics: Mapping[str, str], optional: Mapping[str, str] | None = None
) -> tuple[list[dict], list[str], list[dict]]:
    """Count metrics, keyed by column name.

    Return what was launched, the failures, and the counts of each launch. ``optional`` are metrics that not
    every GPU and version has, and without them their counts are None. Raise NoGpu or NoProfiler, or
    RuntimeError if launches and counts do not match.
    """
    require_gpu()
    ncu = find_ncu()
    done, tried, text = _watched(ncu, program, {**metrics, **(optional or {})})
    if optional and (done.returncode or not parse(text.splitlines(), {})):  # One unknown metric fails all.
        done, tried, text = _watched(ncu, program, metrics)
    refuse_if_forbidden(text + done.stdout + done.stderr)
    if done.returncode or tried is None:
        raise RuntimeError(f"the profiled process failed: {(done.stderr + done.stdout + text)[-2000:]}")
    launched = [about for about in tried if "error" not in about]
    failed = [f"{about['case']}: {about['error']}" for about in tried if "error" in about]
    return launched, failed, pair(launched, parse(text.splitlines(), metrics, optional))


def _watched(
    ncu: str, program: Sequence[str], metrics: Mapping[str, str]
) -> tuple[subprocess.CompletedProcess, list[dict] | None, str]:
    """Run the cases under Nsight Compute. Return the process, its report or None, and what was printed."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "counters.csv"
        options = ["--csv", "--page", "raw", "--print-units", "base"]
        options += ["--metrics", ",".join(metrics.values()), "--log-file", str(log)]
        done, tried = watched(ncu, options, program, Path(folder))
        text = log.read_text(encoding="utf-8") if log.exists() else ""
    return done, tried, text


def pair(launched: Sequence[dict], counted: Sequence[dict]) -> list[dict]:
    """Return the counts of each launch, without the geometry by which they are matched.

    Raise RuntimeError if launches and counts do not match.
    """
    if len(launched) != len(counted):
        raise RuntimeError(f"{len(launched)} kernels were launched, {len(counted)} were counted")
    for about, counts in zip(launched, counted, strict=True):
        if (about["grid"], about["block"]) != (counts["grid"], counts["block"]):
            raise RuntimeError(f"the counts after {about['case']} belong to another launch: {counts}")
    return [
        {name: value for name, value in counts.items() if name not in ("grid", "block")} for counts in counted
    ]


def parse(
    lines: Iterable[str], metrics: Mapping[str, str], optional: Mapping[str, str] | None = None
) -> list[dict]:
    """Return the rows of Nsight Compute's raw CSV page: grid and block as "1x2x3", and metrics by column.

    Raise NoProfiler if a metric is missing. A missing optional one is None.
    """
    found = launches(lines)
    missing = [metric for metric in metrics.values() if found and metric not in found[0]]
    if missing:
        raise NoProfiler(f"this GPU or version of Nsight Compute lacks the metrics {', '.join(missing)}.")
    wanted = {**metrics, **(optional or {})}
    return [
        {
            "grid": size(values["Grid Size"]),
            "block": size(values["Block Size"]),
            **{name: whole(values.get(metric)) for name, metric in wanted.items()},
        }
        for values in found
    ]
