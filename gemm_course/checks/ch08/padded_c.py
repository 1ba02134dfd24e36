"""Exercise 08.3: the end of document 004's v07, which takes n for the leading dimension of C."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import cuda, float32
from numba.types import float16

from gemm_course.checks.core import (
    Refused,
    emulate_kernel,
    kernel_of,
    line_at,
    nothing_yet,
    number_shown,
    parameter_names,
    same_statements,
)
from gemm_course.emulator import Report

ARGUMENTS = ("m", "n", "ldc", "alpha", "sums", "beta", "C")
BLOCK = (32, 4)
SIZES = ((5, 37, 48), (40, 33, 40), (7, 7, 7), (9, 64, 65), (33, 1, 8))  # m, n, ldc
FACTORS = ((1.5, -0.5), (1.0, 0.0))  # alpha, beta
PADDING = np.array(0x7E55, np.uint16).view(np.float16)  # a NaN with bits of its own


@cuda.jit
def v07_ends(m, n, ldc, alpha, sums, beta, C):
    """How document 004's v07 brings its sums to C, a thread an element here."""
    col, row = cuda.grid(2)
    if row < m and col < n:
        old = float32(C[row * n + col]) if beta != 0 else float32(0)
        C[row * n + col] = float16(alpha * sums[row, col] + beta * old)


@dataclass
class Run:
    """One launch: C as a flat array of m rows, ldc apart, with a NaN in all that is padding."""

    kernel: Any
    m: int
    n: int
    ldc: int
    alpha: float
    beta: float
    sums: np.ndarray
    before: np.ndarray  # (m, ldc)
    after: np.ndarray
    report: Report

    def result(self, with_ldc: int) -> np.ndarray:
        """C as a kernel would leave it that takes rows to be ``with_ldc`` apart, in loads and stores."""
        return self.mixed(with_ldc, with_ldc)

    def mixed(self, load: int, store: int) -> np.ndarray:
        """The same with one distance for the loads and another for the stores."""
        flat = self.before.reshape(-1).copy()
        at = np.arange(self.m)[:, None] * load + np.arange(self.n)
        to = np.arange(self.m)[:, None] * store + np.arange(self.n)
        if max(at.max(), to.max()) >= flat.size:
            return np.full_like(self.before, np.nan)
        old = flat[at].astype(np.float32) if self.beta else np.float32(0)
        flat[to] = np.float32(self.alpha) * self.sums + np.float32(self.beta) * old
        return flat.reshape(self.before.shape)

    def equals(self, C: np.ndarray) -> bool:
        return bool(np.isclose(self.after, C, rtol=2e-3, atol=1e-3, equal_nan=True).all())

    def __str__(self) -> str:
        return f"m = {self.m}, n = {self.n}, ldc = {self.ldc}, alpha = {self.alpha:g}, beta = {self.beta:g}"


def prove_padded_c(given) -> str:
    """What was proved of the learner's kernel; raises Refused with the first thing wrong."""
    kernel = kernel_of(given, ARGUMENTS)
    if same_statements(kernel, v07_ends):
        raise nothing_yet()
    runs = [_run(kernel, *size, *factors) for size in SIZES for factors in FACTORS]
    if not any(len(run.report.accesses) for run in runs):
        raise nothing_yet()
    for run in runs:
        _check(run)
    return (
        f"Right for {len(SIZES)} shapes with alpha and beta, rows longer than C is wide and rows just as "
        "long: every sum is where it belongs, and no element of the padding was touched."
    )


def _run(kernel, m: int, n: int, ldc: int, alpha: float, beta: float) -> Run:
    rng = np.random.default_rng((m, n, ldc))
    sums = rng.uniform(1, 4, (m, n)).astype(np.float32)
    C = np.full((m, ldc), PADDING, np.float16)
    C[:, :n] = rng.uniform(1, 4, (m, n)) if beta else np.float16(np.inf)
    flat = C.reshape(-1).copy()
    grid = -(-n // BLOCK[0]), -(-m // BLOCK[1])
    report = emulate_kernel(kernel, grid, BLOCK, m, n, ldc, np.float32(alpha), sums, np.float32(beta), flat)
    return Run(kernel, m, n, ldc, alpha, beta, sums, C, flat.reshape(m, ldc), report)


def _check(run: Run) -> None:
    if run.report.errors:
        finding = run.report.errors[0]
        likely = _likely(run) or _outside(run, finding)
        raise Refused(f"{likely}{finding.message}", f"{line_at(run.kernel, finding.line)}. With {run}.")
    right = run.result(run.ldc)
    if not run.equals(right):
        unchanged = run.after.view(np.uint16) == run.before.view(np.uint16)
        never = (unchanged[:, : run.n] & ~np.isclose(run.after, right)[:, : run.n]).any()
        otherwise = "Some elements of C are never stored." if never else "Not all elements of C are right."
        raise Refused(_likely(run) or otherwise, _first_wrong(run, right))
    touched = run.after[:, run.n :].view(np.uint16) != PADDING.view(np.uint16)
    if touched.any():
        row, column = map(int, np.argwhere(touched)[0])
        raise Refused(
            "The sums are right, but the padding at the end of the rows is written as well. It is not the "
            "kernel's.",
            f"First: row {row}, column {run.n + column}. With {run}.",
        )
    if run.report.total("lanes", op="store") > run.m * run.n:
        raise Refused("C is stored more than once an element.", f"With {run}.")


def _outside(run: Run, finding) -> str:
    """What it means that an array was left."""
    if finding.kind != "out_of_bounds":
        return ""
    if finding.array == parameter_names(run.kernel)[ARGUMENTS.index("sums")]:
        return "The guard lets threads into the padding. Rows end at n, however far on the next one begins. "
    return "The kernel leaves C. Element (row, col) lies at `row * ldc + col`. "


def _likely(run: Run) -> str | None:
    up = -(-run.n // 8) * 8
    candidates = (
        (
            "Rows are still taken to be n elements apart. C has room of its own between the end of one row "
            "and the start of the next: they are `ldc` apart. ",
            (run.n, run.n),
        ),
        (
            "The load is mended, the store is not: row by row it slips further to the left, over sums that "
            "were right. ",
            (run.ldc, run.n),
        ),
        (
            "The store is mended, the load is not: what is added comes from other elements of C. ",
            (run.n, run.ldc),
        ),
        (
            "n is rounded up to a multiple of 8. That is how long rows often are, but the one who called "
            "knows: `ldc`. ",
            (up, up),
        ),
        ("Rows are taken to be m elements apart. They are `ldc` apart. ", (run.m, run.m)),
    )
    for message, (load, store) in candidates:
        if (load, store) != (run.ldc, run.ldc) and run.equals(run.mixed(load, store)):
            return message
    if not run.beta and np.isnan(run.after[:, : run.n]).any():
        return "C is read although `beta` is 0; there may be anything in it. "
    return None


def _first_wrong(run: Run, right: np.ndarray) -> str:
    wrong = ~np.isclose(run.after, right, rtol=2e-3, atol=1e-3, equal_nan=True)
    row, column = map(int, np.argwhere(wrong)[0])
    name, got = parameter_names(run.kernel)[-1], float(run.after[row, column])
    place = (
        f"`{name}[{row} * ldc + {column}]`"
        if column < run.n
        else f"column {column}, in the padding, of row {row}"
    )
    told = (
        f"is {number_shown(got)}; it should be {float(right[row, column]):.5g}"
        if column < run.n
        else f"was written: {number_shown(got)}"
    )
    return f"First wrong: {place} {told}. With {run}."
