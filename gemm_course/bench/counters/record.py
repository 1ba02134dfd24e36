"""Runs Nsight Compute on a list of cases and writes what it counted."""

import csv
import datetime
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gemm_course.bench.counters.metrics import DATA_STAGE, METRICS, TENSOR_METRICS
from gemm_course.bench.counters.patterns import instructions
from gemm_course.bench.counters.sources import Source
from gemm_course.device import gpu_facts, require_gpu
from gemm_course.records import origin
from gemm_course.records.columns import COUNTERS, WAVEFRONTS


class NoProfiler(RuntimeError):
    """Nsight Compute is missing, or may not read the counters; the message is one sentence."""


def record_counters(source: Source, path: Path, command: str) -> tuple[int, list[str]]:
    """Count every case of a source; rows of the same cases in the file are replaced, others stay.

    -> (rows counted, the failures, one line each)
    """
    launched, failed, counted = profile(source, METRICS, TENSOR_METRICS)
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


def record_wavefronts(path: Path, seed: int = 1) -> tuple[int, list[str]]:
    """Measure single instructions, including those of the file, and rewrite the file.

    -> (rows written, the failures, one line each)
    """
    source = Source("wavefronts", module=str(path) if path.exists() else "", seed=seed)
    measured = instructions(seed, path if path.exists() else None)
    addresses = {"load": METRICS["shared_load_wavefronts"], "store": METRICS["shared_store_wavefronts"]}
    # One run for each kind of counter: together they take several times as long.
    launched, failed, computed = profile(source, addresses)
    _, _, counted = profile(source, DATA_STAGE)
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
    source: Source, metrics: Mapping[str, str], optional: Mapping[str, str] | None = None
) -> tuple[list[dict], list[str], list[dict]]:
    """Count metrics, keyed by column name -> (what was launched, the failures, the counts of each launch).

    optional: metrics that not every GPU and version has; without them their counts are None. Raises NoGpu or
    NoProfiler, or RuntimeError if launches and counts do not match.
    """
    require_gpu()
    ncu = find_ncu()
    done, tried, text = _watched(ncu, source, {**metrics, **(optional or {})})
    if optional and (done.returncode or not parse(text.splitlines(), {})):  # one unknown metric fails all
        done, tried, text = _watched(ncu, source, metrics)
    if "ERR_NVGPUCTRPERM" in text + done.stdout + done.stderr:
        raise NoProfiler("Nsight Compute may not read the counters here: the driver allows only root to.")
    if done.returncode or tried is None:
        raise RuntimeError(f"the profiled process failed: {(done.stderr + done.stdout + text)[-2000:]}")
    launched = [about for about in tried if "error" not in about]
    failed = [f"{about['case']}: {about['error']}" for about in tried if "error" in about]
    return launched, failed, pair(launched, parse(text.splitlines(), metrics, optional))


def _watched(
    ncu: str, source: Source, metrics: Mapping[str, str]
) -> tuple[subprocess.CompletedProcess, list[dict] | None, str]:
    """Run the cases under Nsight Compute -> (the process, its report or None, what was printed)."""
    with tempfile.TemporaryDirectory() as folder:
        log, report = Path(folder) / "counters.csv", Path(folder) / "cases.jsonl"
        watch = [ncu, "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base"]
        watch += ["--metrics", ",".join(metrics.values()), "--log-file", str(log)]
        child = [sys.executable, "-m", "gemm_course.bench.counters.child", source.as_text(), str(report)]
        done = subprocess.run([*watch, *child], capture_output=True, text=True)
        text = log.read_text(encoding="utf-8") if log.exists() else ""
        lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else None
    return done, None if lines is None else [json.loads(line) for line in lines], text


def pair(launched: Sequence[dict], counted: Sequence[dict]) -> list[dict]:
    """The counts of each launch, without the geometry by which they are matched."""
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
    """Rows of Nsight Compute's raw CSV page: grid and block as "1x2x3", and the metrics by column.

    Raises NoProfiler if a metric is missing; a missing optional one is None.
    """
    rows = list(csv.reader(line for line in lines if line.startswith('"')))
    if not rows:
        return []
    names, _units, *launches = rows
    place = {name: i for i, name in enumerate(names)}
    missing = [metric for metric in metrics.values() if metric not in place]
    if missing:
        raise NoProfiler(f"this GPU or version of Nsight Compute lacks the metrics {', '.join(missing)}.")
    return [
        {
            "grid": _size(row[place["Grid Size"]]),
            "block": _size(row[place["Block Size"]]),
            **{
                name: _whole(row[place[metric]]) if metric in place else None
                for name, metric in {**metrics, **(optional or {})}.items()
            },
        }
        for row in launches
    ]


def find_ncu() -> str:
    """The path of Nsight Compute's command line. Raises NoProfiler."""
    found = shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin")
    if found is None:
        raise NoProfiler("Nsight Compute (`ncu`) is not installed here; it comes with the CUDA toolkit.")
    return found


def ncu_version() -> str:
    answer = subprocess.run([find_ncu(), "--version"], capture_output=True, text=True).stdout
    found = re.search(r"Version ([\d.]+)", answer)
    return found.group(1) if found else ""


def _size(text: str) -> str:
    return "x".join(re.findall(r"\d+", text))


def _whole(text: str) -> int | None:
    digits = text.replace(",", "")
    return round(float(digits)) if digits not in ("", "n/a", "nan") else None
