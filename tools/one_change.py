"""Stages beside themselves with one thing changed, timed in turn with cuBLAS: writes a row for each.

python tools/one_change.py data/h200/one_change.csv

Each question is a group of kernels that are launched twice per round, in one order and in the other.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from changed_stage import changed

from gemm_course.bench.measure import Candidate
from gemm_course.bench.problem import Problem
from gemm_course.device import gpu_facts, time_alternating
from gemm_course.kernels import LADDER, Stage, a13_read_ahead, a14_grouped_blocks, b02_mma_swizzled
from gemm_course.records import origin
from gemm_course.records.columns import ONE_CHANGE

_LEFT_TO_RIGHT = {"j = s if i % 2 == 0 else TN - 1 - s": "j = s"}
_PADDED = {
    "return (piece ^ (row // A_REPEAT % A_SPAN)) * 8": "return piece * 8",
    "return (piece ^ (row % 8)) * 8": "return piece * 8",
    "    @cuda.jit(device=True)\n    def in_a": "    A_TILE, B_TILE = (BM, BK + 8), (BK, BN + 8)\n\n"
    "    @cuda.jit(device=True)\n    def in_a",
    "cuda.shared.array((BM, BK), float16, 128)": "cuda.shared.array(A_TILE, float16, 128)",
    "cuda.shared.array((BK, BN), float16, 128)": "cuda.shared.array(B_TILE, float16, 128)",
}

Case = tuple[Stage, str, dict[str, int]]  # the stage, what is different in it, tiles


def questions() -> Iterator[tuple[str, int, list[Case]]]:
    """Each question with its size and the cases that answer it."""
    for size in (4096, 8192):
        yield (
            "order of products",
            size,
            [
                (LADDER["read_ahead"], "none", {}),
                (changed(a13_read_ahead, "read_ahead", _LEFT_TO_RIGHT), "each row left to right", {}),
                (LADDER["grouped_blocks"], "none", {}),
                (changed(a14_grouped_blocks, "grouped_blocks", _LEFT_TO_RIGHT), "each row left to right", {}),
                (LADDER["grouped_blocks"], "GROUP 1", {"GROUP": 1}),
            ],
        )
    yield (
        "rows of tiles",
        4096,
        [
            (LADDER["wmma"], "none", {}),
            (LADDER["mma_swizzled"], "none", {}),
            (changed(b02_mma_swizzled, "mma_swizzled", _PADDED), "rows padded by 8, not swizzled", {}),
        ],
    )


def measured(question: str, size: int, cases: list[Case]) -> Iterator[dict[str, object]]:
    """A row per case, without its origin."""
    problem = Problem(size, size, size, dtype=cases[0][0].dtype)
    candidates = [Candidate(stage, tiles, problem) for stage, _, tiles in cases]
    errors = [candidate.check() for candidate in candidates]
    launchers = [*(candidate.ready() for candidate in candidates), problem.cublas()]
    timings = time_alternating([*launchers, *reversed(launchers)], budget_ms=3000, most=60)
    there, back = timings[: len(launchers)], timings[: len(launchers) - 1 : -1]
    times = [(one.median_ms + other.median_ms) / 2 for one, other in zip(there, back, strict=True)]
    tflops = [2e-9 * size**3 / each for each in times]
    for (stage, change, _), candidate, error, time, speed in zip(cases, candidates, errors, times, tflops):
        yield {
            "question": question,
            "stage": stage.name,
            "change": change,
            "size": size,
            "registers": candidate.resources.registers,
            "local_bytes": candidate.resources.local_bytes,
            "relative_error": error,
            "repetitions": 2 * timings[0].repetitions,
            "milliseconds": time,
            "tflops": speed,
            "cublas_tflops": tflops[-1],
            "sm_clock_mhz": timings[0].sm_clock_mhz,
        }


def main(path: Path) -> None:
    """Measure every question and write the rows."""
    rows = [row for question in questions() for row in measured(*question)]
    gpu = gpu_facts()
    beside = origin(gpu.name, gpu.driver, gpu.cuda, f"python {' '.join(sys.argv)}")
    ONE_CHANGE.write(path, [row | beside for row in rows])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
