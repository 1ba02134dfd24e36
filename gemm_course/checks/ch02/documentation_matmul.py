"""Exercise 02.2: the kernel matmul(A, B, C) of Numba's manual, and what is still wrong with it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gemm_course.checks.core import Refused, check_begun, emulate_kernel, kernel_of, line_at, parameter_names
from gemm_course.checks.engines.first_warp import (
    ALONG_A_ROW,
    DOWN_A_COLUMN,
    SAME,
    WATCH,
    FirstWarp,
    direction,
)
from gemm_course.checks.engines.float64 import why_float64
from gemm_course.checks.engines.gemm import FINDING_WORDS
from gemm_course.emulator import Report

BLOCK = (32, 4)
SHAPES = (  # m, n, k, all different: whole blocks, then sizes around a block's, then thin ones
    (4, 64, 12), (8, 32, 5), (5, 33, 7), (3, 31, 6), (37, 5, 9), (9, 40, 3), (1, 1, 1), (1, 34, 2), (6, 1, 4),
)  # fmt: skip


@dataclass
class Run:
    """One product computed by the learner's kernel, C full of NaN before it."""

    kernel: Any
    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    report: Report

    @property
    def expected(self) -> np.ndarray:
        return self.A.astype(np.float64) @ self.B

    @property
    def wrong(self) -> np.ndarray:
        return ~_close(self.C, self.expected, self.A, self.B)

    @property
    def sizes(self) -> str:
        (m, k), n = self.A.shape, self.B.shape[1]
        return f"A is {m} x {k}, B {k} x {n}, C {m} x {n}"

    def sectors(self, position: int, op: str) -> int:
        name = parameter_names(self.kernel)[position]
        return self.report.total("sectors", space="global", op=op, array=name)


def prove_repaired(matmul) -> str:
    """What was proved of the learner's matmul; raises Refused with the first thing wrong."""
    kernel = kernel_of(matmul, ("A", "B", "C"))
    traced = _run(kernel, 32, 32, 32, watch=WATCH)
    check_begun(kernel, traced.report)
    doubles = traced.report.arithmetic.query("dtype == 'float64'")
    _check_lanes(traced, bool(len(doubles)))
    for shape in SHAPES:
        _check_numbers(_run(kernel, *shape))
    if len(doubles):
        lines = sorted(doubles["line"].unique())
        raise Refused(
            f"The sectors are mended, and float64 is left. {why_float64(kernel, lines)}",
            f"The first of {doubles['lanes'].sum():,} operations: {line_at(kernel, int(lines[0]))}",
        )
    a, b, c = (
        traced.sectors(i, op) / per for i, op, per in ((0, "load", 1024), (1, "load", 1024), (2, "store", 32))
    )
    if a + b > 5 or c > 4:
        raise Refused(
            f"The numbers are right, but a warp's k step takes {a + b:g} sectors (A {a:g}, B {b:g}) and the "
            f"store of C {c:g}; 1 + 4 and 4 are enough. Neighbours in x are to be neighbours in a row of C."
        )
    return (
        f"Right on {len(SHAPES) + 1} shapes; a warp's k step takes {a:g} + {b:g} sectors instead of 33, and "
        "not one operation is in float64."
    )


def _run(kernel, m, n, k, **options) -> Run:
    rng = np.random.default_rng((m, n, k))
    A, B = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    C = np.full((m, n), np.nan, np.float32)
    grid = -(-n // BLOCK[0]), -(-m // BLOCK[1])
    return Run(kernel, A, B, C, emulate_kernel(kernel, grid, BLOCK, A, B, C, **options))


def _close(C, expected, A, B) -> np.ndarray:
    tolerance = (A.shape[1] + 4) * np.finfo(np.float32).eps * (abs(A) @ abs(B)) + 1e-30
    return abs(C - expected) <= 4 * tolerance


# ---- which element each lane works on ----------------------------------------------------------------------


def _check_lanes(run: Run, float64: bool):
    """On a square product, where nothing leaves the arrays: what the first warp reads and stores."""
    a, b, c = parameter_names(run.kernel)
    warp = FirstWarp(run.report.trace)
    stored = warp.stored(c)
    loads = [direction(warp.loaded_first(name)) for name in (a, b)]
    if direction(stored) == DOWN_A_COLUMN:
        where = f"Thread (1, 0) stores `{c}{list(stored[1])}`. It is the right neighbour of thread (0, 0)."
        if loads == [SAME, ALONG_A_ROW]:
            raise Refused(
                "The result is transposed: A and B are read for row `i` and column `j`, but the store has "
                "them exchanged.",
                where,
            )
        if float64:
            raise Refused(
                "As it stands in the manual: both faults are still there. Begin with what x counts.", where
            )
        raise Refused(
            "One of the two is mended, no float64 is left. But x still counts the rows of C.", where
        )
    if direction(stored) != ALONG_A_ROW:
        return
    if direction(warp.walk(a)) == DOWN_A_COLUMN:
        raise Refused(
            f"The indices of A are exchanged: `{a}[p, i]` walks down a column of A. C's row i needs row i of "
            "A.",
            _first_wrong(run),
        )
    if direction(warp.walk(b)) == ALONG_A_ROW:
        raise Refused(
            f"The indices of B are exchanged: `{b}[j, p]` walks along a row of B. C's column j needs column "
            "j of B.",
            _first_wrong(run),
        )


# ---- numbers -----------------------------------------------------------------------------------------------


def _check_numbers(run: Run):
    if not run.wrong.any() and run.report.ok:
        return
    (m, k), n = run.A.shape, run.B.shape[1]
    row, col = np.ogrid[:m, :n]
    stored = ~np.isnan(run.C)
    if not stored.all() and (stored == ((row < n) & (col < m))).all():
        raise Refused(
            "The guard was not exchanged along with the indices: the row is held to the number of columns, "
            "and the column to the number of rows.",
            _first_wrong(run),
        )
    for size in (m, n):
        if size < k and _close(run.C, run.A[:, :size].astype(np.float64) @ run.B[:size], run.A, run.B).all():
            raise Refused(
                f"The loop ends after {size} steps, and k is {k}: it is as long as a side of C. The sum runs "
                "over the columns of A, `A.shape[1]`.",
                _first_wrong(run),
            )
    if run.report.errors:
        finding = run.report.errors[0]
        raise Refused(
            FINDING_WORDS.get(finding.kind, "") + finding.message,
            f"{line_at(run.kernel, finding.line)}. {run.sizes}.",
        )
    if not stored.all():
        raise Refused("Some elements of C are never stored.", _first_wrong(run))
    raise Refused("The numbers are wrong.", _first_wrong(run))


def _first_wrong(run: Run) -> str:
    if not run.wrong.any():
        return f"{run.sizes}."
    row, col = map(int, np.argwhere(run.wrong)[0])
    x, y = BLOCK
    return (
        f"First wrong element: `C[{row}, {col}]` is {run.C[row, col]:.5g}, NumPy has "
        f"{run.expected[row, col]:.5g}. It belongs to thread {(col % x, row % y)} of block "
        f"{(col // x, row // y)}. {run.sizes}."
    )
