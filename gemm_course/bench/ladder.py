"""Runs `gemm-course bench`: checks every stage at every size, and measures it beside cuBLAS."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gemm_course.bench.measure import Candidate, TooOld, row_of
from gemm_course.bench.problem import Problem, WrongResult
from gemm_course.kernels import Stage, tiles_text
from gemm_course.records import origin
from gemm_course.records.columns import CORRECTNESS, LADDER

BUDGET_MS = 400
# A reason has at most this many characters.
LONGEST_REASON = 300
ODD_SHAPES = (
    (1, 1, 1),
    (1023, 517, 769),
    (1, 4096, 1),
    (4096, 1, 1),
    (1, 1, 4096),
    (1, 4096, 4096),
    (4096, 1, 333),
    (64, 64, 1),
    (100, 200, 3),
    (257, 129, 5),
    (7, 11, 13),
    (131, 137, 139),
    (509, 1021, 251),
    (127, 127, 127),
    (129, 129, 129),
    (255, 257, 31),
    (31, 33, 17),
    (33, 31, 15),
    (63, 65, 9),
    (513, 127, 1025),
    (2048, 96, 48),
    (300, 77, 1030),
)


def measure_ladder(
    stages: Sequence[Stage],
    shapes: Sequence[tuple[int, int, int]],
    tiles: Sequence[Mapping[str, int]],
    path: Path,
    command: str,
    triton: Callable[[Problem, str], Callable[[], None]] | None = None,
    say: Callable[[str], None] = print,
    progress: Callable[[Mapping[str, Any]], None] = lambda row: None,
) -> list[dict[str, Any]]:
    """Measure every stage with every choice of tiles at every shape, and write each row at once.

    Return the rows. ``tiles`` are what to change from a stage's default, and an empty mapping is the default
    itself. ``triton`` makes Triton's kernel for a problem and a dtype of accumulators, to be timed as well. A
    kernel that is wrong or cannot run is reported through `say` and not timed.
    """
    rows = []
    for shape in shapes:
        problem_of = _problems(*shape)
        peer_of = _peers(problem_of, triton) if triton else lambda stage: None
        for stage in stages:
            problem = problem_of(stage.dtype)
            for change in tiles:
                try:
                    candidate = Candidate(stage, change, problem)
                    error = candidate.check()
                except Exception as problem_found:  # One stage that fails must not stop the others.
                    say(f"{stage.name} {tiles_text(change)} is not timed: {_one_line(problem_found)}")
                    continue
                row = row_of(stage, change, shape, command) | candidate.resource_columns()
                row |= candidate.measure(error, BUDGET_MS, triton=peer_of(stage))
                LADDER.append(path, [row])
                rows.append(row)
                progress(row)
    return rows


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    kind = "" if isinstance(error, (WrongResult, ValueError)) else f"{type(error).__name__}: "
    return f"{kind}{text[:LONGEST_REASON]}"


def _problems(m: int, n: int, k: int, spare: int = 0) -> Callable[[str], Problem]:
    """Return a function from a dtype to the problem of this shape, which is created on first use."""
    return functools.cache(lambda dtype: Problem(m, n, k, spare=spare, dtype=dtype))


def _peers(
    problem_of: Callable[[str], Problem], make: Callable[[Problem, str], Callable[[], None]]
) -> Callable[[Stage], Callable[[], None]]:
    """Return a function from a stage to Triton's kernel for its dtypes, made once per pair of dtypes."""
    peers = functools.cache(lambda dtype, accumulate: make(problem_of(dtype), accumulate))
    return lambda stage: peers(stage.dtype, stage.accumulate)


def check_odd_shapes(
    stages: Sequence[Stage],
    tiles: Sequence[Mapping[str, int]],
    path: Path,
    command: str,
    say: Callable[[str], None] = print,
) -> int:
    """Check every stage at shapes that no tile divides, with alpha = 1.25, beta = -0.5 and with beta = 0.

    C and the padding are poisoned with NaN. A row is written per check, with cuBLAS's own error. Return how
    many checks found a wrong result.
    """
    from gemm_course.device import gpu_facts

    gpu = gpu_facts()
    wrong, too_old = 0, set()
    for shape in ODD_SHAPES:
        problem_of = _problems(*shape, spare=1)
        for stage in stages:
            problem = problem_of(stage.dtype)
            for change in tiles:
                try:
                    error, verdict = Candidate(stage, change, problem).check(), "right"
                except TooOld as reason:
                    too_old.add(str(reason))
                    continue
                except Exception as found:
                    error, verdict = None, _one_line(found)
                    wrong += 1
                    say(f"{stage.name} is wrong at {shape}: {verdict}")
                row = dict(zip("mnk", shape, strict=True)) | {
                    "stage": stage.name,
                    "tiles": tiles_text(stage.tiles_for(*shape, change)),
                    "relative_error": error,
                    "cublas_error": problem.cublas_error(stage.accumulate),
                    "verdict": verdict,
                    **origin(gpu.name, gpu.driver, gpu.cuda, command),
                }
                CORRECTNESS.append(path, [row])
    for reason in sorted(too_old):
        say(f"not checked: {reason}")
    return wrong
