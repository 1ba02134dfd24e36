"""Times one kernel with eight layouts of a warp's lanes in turn with cuBLAS, and writes a row for each.

python -m measuring.lane_layouts data/h200/lane_layouts.csv

The kernel is `warp_tiled`. A layout "side by side" differs from it only in which rows and columns a thread
has.
"""

from __future__ import annotations

import sys
from pathlib import Path

from gemm_course.bench.measure import Candidate
from gemm_course.bench.options import command_line
from gemm_course.bench.problem import Problem
from gemm_course.device import gpu_facts, time_alternating
from gemm_course.kernels import LADDER, Stage, a10_warp_tiled
from gemm_course.records import origin
from gemm_course.records.columns import LANE_LAYOUTS
from measuring.changed_stage import changed

SIZE = 4096
LANES = ((2, 16), (4, 8), (8, 4), (16, 2))
SIDE_BY_SIDE = {  # in the source of warp_tiled
    "lane // LANE_COLS * 4": "lane // LANE_COLS * TM",
    "lane % LANE_COLS * 4": "lane % LANE_COLS * TN",
    "y0 + i // 4 * (4 * LANE_ROWS) + i % 4": "y0 + i",
    "x0 + j // 4 * (4 * LANE_COLS) + j % 4": "x0 + j",
    "x0 + j * LANE_COLS": "x0 + j",
}


def side_by_side() -> Stage:
    """Return `warp_tiled`, but with a thread's rows, and its columns, side by side."""
    return changed(a10_warp_tiled, "side_by_side", SIDE_BY_SIDE)


def main(path: Path) -> None:
    """Write a row per layout. Each kernel is launched twice per round, in one order and in the other."""
    problem = Problem(SIZE, SIZE, SIZE)
    stages = {"side by side": side_by_side(), "runs of four": LADDER["warp_tiled"]}
    cases = [(lanes, elements, stage) for elements, stage in stages.items() for lanes in LANES]
    candidates = [
        Candidate(stage, {"WM": 8 * rows, "WN": 8 * columns}, problem) for (rows, columns), _, stage in cases
    ]
    errors = [candidate.check() for candidate in candidates]
    launchers = [*(candidate.ready() for candidate in candidates), problem.cublas("float32")]
    timings = time_alternating([*launchers, *reversed(launchers)], budget_ms=3000, most=60)
    milliseconds = [
        (one.median_ms + other.median_ms) / 2
        for one, other in zip(timings[: len(launchers)], reversed(timings[len(launchers) :]), strict=True)
    ]
    tflops = [2e-9 * SIZE**3 / each for each in milliseconds]
    gpu = gpu_facts()
    beside = origin(gpu.name, gpu.driver, gpu.cuda, command_line("python -m measuring.lane_layouts"))
    rows = [
        {
            "lane_rows": rows,
            "lane_columns": columns,
            "elements": elements,
            "size": SIZE,
            "registers": candidate.resources.registers,
            "local_bytes": candidate.resources.local_bytes,
            "relative_error": error,
            "repetitions": 2 * timings[0].repetitions,
            "milliseconds": time,
            "tflops": speed,
            "cublas_tflops": tflops[-1],
            "sm_clock_mhz": timings[0].sm_clock_mhz,
        }
        for ((rows, columns), elements, _), candidate, error, time, speed in zip(
            cases, candidates, errors, milliseconds, tflops
        )
    ]
    LANE_LAYOUTS.write(path, [row | beside for row in rows])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
