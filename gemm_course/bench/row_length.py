"""Runs `gemm-course bench --rows`: measures the naive kernels with longer and longer rows.

The matrices stay as they are. Only the leading dimension of A, B and C grows, by some floats of padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gemm_course.bench.measure import Candidate, row_of
from gemm_course.bench.problem import Problem
from gemm_course.kernels import LADDER
from gemm_course.records.columns import ROW_LENGTHS

SIZES = (2048, 4096)
# These numbers of floats are added to each row. The steps are 1 up to a sector (8 floats), so that rows begin
# at every place in a sector. They are 4 up to a line (32) and 8 up to two lines (64).
EXTRA = (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64)
STAGES = ("naive_uncoalesced", "naive_coalesced")
BLOCKS = ({"BM": 32, "BN": 32}, {"BM": 16, "BN": 16}, {"BM": 4, "BN": 64}, {"BM": 2, "BN": 128})
BUDGET_MS = 300
# The only scaling is alpha = 1 with beta = 0.
PLAIN = ((1.0, 0.0),)


def measure_row_lengths(
    path: Path, command: str, progress: Callable[[Mapping[str, Any]], None] = lambda row: None
) -> int:
    """Check every case against float64, then measure it and write its row at once.

    Return the number of rows.
    """
    count = 0
    for row in _measured(command):
        ROW_LENGTHS.append(path, [row])
        progress(row)
        count += 1
    return count


def cases() -> int:
    """Return the number of rows that will be measured."""
    return len(SIZES) * len(EXTRA) * len(STAGES) * len(BLOCKS)


def _measured(command: str) -> Iterator[dict[str, Any]]:
    for size in SIZES:
        for extra in EXTRA:
            problem = Problem(size, size, size, extra=extra)
            for name in STAGES:
                for tiles in BLOCKS:
                    yield _row(name, tiles, problem, command)


def _row(name: str, tiles: Mapping[str, int], problem: Problem, command: str) -> dict[str, Any]:
    candidate = Candidate(LADDER[name], tiles, problem)
    known = row_of(LADDER[name], tiles, problem.shape, command) | candidate.resource_columns()
    found = known | candidate.measure(candidate.check(PLAIN), BUDGET_MS)
    found["leading_dimension"] = problem.A.shape[1]
    return {column: found[column] for column in ROW_LENGTHS.columns}
