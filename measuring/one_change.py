"""Times stages as they are and with one thing changed, in turn with cuBLAS, and writes a row for each.

python -m measuring.one_change data/h200/one_change.csv
python -m measuring.one_change data/h200/one_change.csv "rows of tiles"
python -m measuring.one_change --count data/h200/one_change_counted.csv "rows of tiles"

Each question is a group of kernels that are launched twice per round, in one order and in the other. If
questions are named, the rows of others stay. With --count, nothing is timed. Then Nsight Compute counts what
the kernels do, in one launch each (alpha 1, beta 0).
"""

from __future__ import annotations

import csv
import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from gemm_course.bench.measure import Candidate
from gemm_course.bench.options import command_line
from gemm_course.bench.problem import Problem
from gemm_course.bench.profile.metrics import METRICS
from gemm_course.bench.profile.ncu import find_ncu, refuse_if_forbidden
from gemm_course.device import gpu_facts, time_alternating
from gemm_course.kernels import (
    LADDER,
    Stage,
    a05_thread_tiled_1d,
    a06_thread_tiled_2d,
    a12_async_copy,
    a13_read_ahead,
    a14_grouped_blocks,
    b02_mma_swizzled,
    c06_overlapped_store,
    c07_stream_k_fp16,
)
from gemm_course.kernels.parts.base import MAX_REGISTERS
from gemm_course.kernels.variants.fewer_blocks import with_spare
from gemm_course.kernels.variants.kernel5_spread import STAGE as SPREAD
from gemm_course.kernels.variants.vectorized_apart import STAGE as APART
from gemm_course.records import origin
from gemm_course.records.columns import ONE_CHANGE, ONE_CHANGE_COUNTED, ONE_CHANGE_COUNTS
from gemm_course.records.tables import Table
from measuring.changed_stage import changed

_LEFT_TO_RIGHT = {"j = s if i % 2 == 0 else TN - 1 - s": "j = s"}
_WALK = {
    "                    for j in unroll(range(TN)):\n                        acc[i, j] +=": (
        "                    for s in unroll(range(TN)):\n"
        "                        j = s if i % 2 == 0 else TN - 1 - s\n"
        "                        acc[i, j] +="
    )
}
_XOR_A, _XOR_B = "return (piece ^ (row // A_REPEAT % A_SPAN)) * 8", "return (piece ^ (row % 8)) * 8"
_MOVED_ON = {
    _XOR_A: "return (piece + row // A_REPEAT) % A_SPAN * 8",
    _XOR_B: "return (piece // 8 * 8 + (piece + row) % 8) * 8",
}


# The square of notebook 05, in which all kernels from there to warp tiles can be compared.
_SQUARE = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}
_PLAIN_LOOPS = {"in unroll(range(": "in (range("}
_PLAIN = {**_PLAIN_LOOPS, "u32(cuda.": "(cuda."}


# In the tiles of notebook 04 all steps along k of a tile this deep are too many to be written out.
_DEEP = {"BK": 16}


def _written_out(steps: int) -> dict[str, str]:
    """Return what to replace in a kernel, so that it writes out this many steps along k at a time."""
    loop = "            for p in unroll(range(BK)):\n"
    outer = f"            for p0 in range(0, BK, {steps}):\n"
    inner = f"              for step in unroll(range({steps})):\n                p = p0 + step\n"
    return {loop: outer + inner}


def _padded(by: int) -> dict[str, str]:
    rows = f"    A_TILE, B_TILE = (BM, BK + {by}), (BK, BN + {by})\n\n"
    before = "    @cuda.jit(device=True)\n    def in_a"
    return {
        _XOR_A: "return piece * 8",
        _XOR_B: "return piece * 8",
        before: rows + before,
        "cuda.shared.array((BM, BK), float16, 128)": "cuda.shared.array(A_TILE, float16, 128)",
        "cuda.shared.array((BK, BN), float16, 128)": "cuda.shared.array(B_TILE, float16, 128)",
    }


# What raises the roof of issue slots in the exercise on a kernel of one's own.
_BEGUN = {"BM": 128, "BN": 128, "BK": 32, "TM": 16, "TN": 4}
_TALL = {"BM": 128, "BN": 128, "BK": 16, "TM": 16, "TN": 8}
_FOURS_OF_B = {
    "import u32, unroll": "import load4, store4, u32, unroll",
    "THREADS // BK, THREADS // BN  #": "THREADS // BK, THREADS // (BN // 4)  #",
    "        tid = u32(": (
        "        zeros = (float32(0), float32(0), float32(0), float32(0))\n        tid = u32("
    ),
    "r, c = i + tid // BN, tid % BN\n": "r, c = i + tid // (BN // 4), tid % (BN // 4) * 4\n",
    "Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)": (
        "store4(Bs, (r, c), load4(B, (k0 + r, col0 + c)) if k0 + r < k and col0 + c < n else zeros)"
    ),
    "blocks=columns_by_rows,\n": "blocks=columns_by_rows,\n    alignment=16,\n",
}


Case = tuple[Stage, str, dict[str, int]]  # the stage, what is different in it, tiles


def questions() -> Iterator[tuple[str, int, list[Case]]]:
    """Yield each question with its size and the cases that answer it."""
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
    walking = changed(a12_async_copy, "async_copy", _WALK)
    yield (
        "a walk without reading ahead",
        4096,
        [(LADDER["async_copy"], "none", {}), (walking, "neighbours share an operand", {})],
    )
    yield (
        "rows of tiles",
        4096,
        [
            (LADDER["wmma"], "none", {}),
            (LADDER["mma_swizzled"], "none", {}),
            (
                changed(b02_mma_swizzled, "mma_swizzled", _MOVED_ON),
                "pieces moved on, not xored",
                {},
            ),
            (changed(b02_mma_swizzled, "mma_swizzled", _padded(8)), "rows padded by 8, not swizzled", {}),
            (changed(b02_mma_swizzled, "mma_swizzled", _padded(16)), "rows padded by 16, not swizzled", {}),
        ],
    )
    plain = changed(a06_thread_tiled_2d, "thread_tiled_2d", _PLAIN)
    uncapped = dataclasses.replace(plain, registers=lambda t: MAX_REGISTERS)
    yield (
        "what the compiler is told",
        4096,
        [
            (LADDER["thread_tiled_2d"], "none", _SQUARE),
            (
                changed(a06_thread_tiled_2d, "thread_tiled_2d", _PLAIN_LOOPS),
                "no loop asks to be written out",
                _SQUARE,
            ),
            (plain, "as before, and indices of 64 bits", _SQUARE),
            (uncapped, "as before, and no cap on registers", _SQUARE),
        ],
    )
    fours = changed(a06_thread_tiled_2d, "thread_tiled_2d", _FOURS_OF_B)
    yield (
        "raise the roof",
        4096,
        [
            (LADDER["thread_tiled_2d"], "none", _BEGUN),
            (LADDER["thread_tiled_2d"], "16 × 8 results", _TALL),
            (fours, "fours of B", _BEGUN),
            (fours, "16 × 8 results, and fours of B", _TALL),
        ],
    )
    yield (
        "steps written out",
        4096,
        [
            (
                changed(a05_thread_tiled_1d, "thread_tiled_1d", _written_out(steps)),
                f"{steps} of 16 at a time",
                _DEEP,
            )
            for steps in (1, 2, 4, 8, 16)
        ],
    )
    yield (
        "blocks per multiprocessor",
        4096,
        [
            (LADDER["thread_tiled_2d"], "none", _SQUARE),
            (with_spare(LADDER["thread_tiled_2d"]), "one block instead of two", _SQUARE | {"SPARE": 150}),
        ],
    )
    yield (
        "fours and a transposed tile",
        4096,
        [
            (APART, f"FOURS {fours}, TRANSPOSED {turned}", _SQUARE | {"FOURS": fours, "TRANSPOSED": turned})
            for fours in (0, 1)
            for turned in (0, 1)
        ],
    )
    yield (
        "padding beside spread columns",
        4096,
        [
            (LADDER["kernel5"], "neither", _SQUARE),
            *(
                (SPREAD, f"PAD {pad}, SPREAD {apart}", _SQUARE | {"PAD": pad, "SPREAD": apart})
                for apart in (0, 1)
                for pad in (0, 1)
            ),
        ],
    )
    yield from _of_overlapped_store()


def _of_overlapped_store() -> Iterator[tuple[str, int, list[Case]]]:
    """Yield what tiles cost by their width, and a tile's results by their parts."""
    stage = LADDER["overlapped_store"]
    for size in (1024, 2048, 3072, 4096, 8192):
        yield (
            "width of a tile",
            size,
            [(stage, f"BN {tiles['BN']}", tiles) for tiles in c07_stream_k_fp16.CHOICES],
        )
    later = changed(c06_overlapped_store, "overlapped_store", {"step == 2 * part": "step == 8 * part"})
    yield (
        "parts of a tile's results",
        4096,
        [
            *((stage, f"{parts} parts", {"SLOTS": 3, "PARTS": parts}) for parts in (1, 2, 4)),
            (later, "2 parts, in steps 0 and 8", {"SLOTS": 3, "PARTS": 2}),
            (later, "4 parts, in steps 0, 8, 16 and 24", {"SLOTS": 3, "PARTS": 4}),
        ],
    )


def measured(question: str, size: int, cases: list[Case]) -> Iterator[dict[str, object]]:
    """Yield a row per case, without its origin."""
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


def launch(chosen: str) -> None:
    """Launch each kernel of a question, for a profiler."""
    for size, cases in (group[1:] for group in questions() if group[0] == chosen):
        problem = Problem(size, size, size, dtype=cases[0][0].dtype)
        for stage, _, tiles in cases:
            Candidate(stage, tiles, problem).check(scalings=[(1.0, 0.0)])


def counted(question: str, size: int, cases: list[Case]) -> Iterator[dict[str, object]]:
    """Yield a row per case with what its launch moved, by Nsight Compute, without its origin."""
    names = "|".join({stage.name for stage, _, _ in cases})
    metrics = ",".join(METRICS[name] for name in ONE_CHANGE_COUNTS)
    options = ["--csv", "--page", "raw", "-k", f"regex:^({names})", "--metrics", metrics]
    command = [
        find_ncu(),
        "--clock-control",
        "none",
        *options,
        sys.executable,
        "-m",
        "measuring.one_change",
        "--launch",
        question,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    refuse_if_forbidden(done.stdout)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    launches = list(csv.DictReader(lines))[1:]  # The first row holds the units.
    if len(launches) != len(cases):
        raise RuntimeError(f"{len(launches)} launches were counted of {len(cases)}:\n{done.stdout[-2000:]}")
    for (stage, change, _), found in zip(cases, launches, strict=True):
        figures = {name: float(found[METRICS[name]].replace(",", "")) for name in ONE_CHANGE_COUNTS}
        yield {"question": question, "stage": stage.name, "change": change, "size": size} | figures


def main(path: Path, *chosen: str, measure=measured, table: Table = ONE_CHANGE) -> None:
    """Measure the chosen questions, all by default, and write their rows."""
    kept = [row for row in table.rows(path) if row["question"] not in chosen] if chosen else []
    asked = [question for question in questions() if not chosen or question[0] in chosen]
    rows = [row for question in asked for row in measure(*question)]
    gpu = gpu_facts()
    beside = origin(gpu.name, gpu.driver, gpu.cuda, command_line("python -m measuring.one_change"))
    table.write(path, kept + [row | beside for row in rows])


if __name__ == "__main__":
    if sys.argv[1] == "--launch":
        launch(sys.argv[2])
    elif sys.argv[1] == "--count":
        main(Path(sys.argv[2]), *sys.argv[3:], measure=counted, table=ONE_CHANGE_COUNTED)
    else:
        main(Path(sys.argv[1]), *sys.argv[2:])
