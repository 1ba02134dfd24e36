"""Checks ``fused_epilogue``: a kernel that adds a bias to each column and applies ReLU before it stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gemm_course.checks.core import Refused, call, exercise, factory_of, kernel_of, nothing_yet
from gemm_course.checks.engines.trial import Trial, try_kernel

NAMES = ("m", "n", "k", "A", "B", "bias", "C")
# The tiles are (BM, BN, TM).
TILES = ((8, 32, 4), (4, 8, 2), (16, 16, 16))
# The shapes (m, n, k) have whole blocks, ragged blocks, and a single element.
SHAPES = ((16, 64, 5), (19, 37, 7), (1, 1, 1))
PADDING = 3


@exercise(
    start="guard the column with `if col < n:`, and read its bias once: `bias[col]`.",
    hints=(
        "A thread's TM results lie in one column. So it needs one element of `bias`, whatever TM is.",
        "ReLU comes last: what is stored is the larger one of `acc[i] + b` and zero.",
        "`C[row0 + i, col] = max(acc[i] + b, float32(0))`, for each row below m.",
    ),
)
def fused_epilogue(make_fused):
    """A factory (BM, BN, TM) of kernels (m, n, k, A, B, bias, C) that compute C = max(A @ B + bias, 0)."""
    make = factory_of(make_fused, ("BM", "BN", "TM"))
    kernels = {tiles: kernel_of(call(make, *tiles), NAMES) for tiles in TILES}
    trials = [_try_on(kernel, tiles, shape) for tiles, kernel in kernels.items() for shape in SHAPES]
    _check_begun(trials[0])
    for trial in trials:
        _check_numbers(trial)
        trial.refuse_errors()
    for trial in trials:
        _check_fused(trial)
    return (
        f"Right on {len(trials)} problems. Bias and ReLU cost one read per thread, and C moves once: stored, "
        "never read. A kernel of its own for them would read all of C and store it again."
    )


def _check_begun(trial: Trial) -> None:
    """Raise NothingYet for the stub: it computes the product and never names C."""
    if trial.own_name("C") not in trial.written.names:
        raise nothing_yet()


def _try_on(kernel, tiles: tuple[int, int, int], shape: tuple[int, int, int]) -> Trial:
    (BM, BN, TM), (m, n, k) = tiles, shape
    random = np.random.default_rng([m, n, k])
    A, B = (_padded(random.standard_normal(size)) for size in ((m, k), (k, n)))
    bias = random.standard_normal(n).astype(np.float32)
    C = np.full((m, n + PADDING), np.nan, np.float32)
    grid = (-(-n // BN), -(-m // BM))
    about = f"With m, n, k = {m}, {n}, {k} and blocks of {BM} × {BN}, TM = {TM}"
    return try_kernel(kernel, NAMES, grid, (BN, BM // TM), m, n, k, A, B, bias, C, about=about)


def _padded(matrix: np.ndarray) -> np.ndarray:
    whole = np.full((matrix.shape[0], matrix.shape[1] + PADDING), np.nan, np.float32)
    whole[:, :-PADDING] = matrix
    return whole


# ---- numbers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Likely:
    """A likely mistake in the epilogue, which ``words`` names.

    made: (product, bias, k, BN) -> the C that the mistake leaves.
    """

    words: str
    made: Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]


def _relu(values: np.ndarray) -> np.ndarray:
    return np.maximum(values, 0)


_LIKELY = (
    _Likely("Neither bias nor ReLU is applied: C holds the product.", lambda P, b, k, BN: P),
    _Likely(
        "ReLU comes too early: it is applied to the sum, and the bias is added after it. So negative results "
        "are left. First the bias, then ReLU.",
        lambda P, b, k, BN: _relu(P) + b,
    ),
    _Likely("The bias is added, but ReLU is missing: negative results are left.", lambda P, b, k, BN: P + b),
    _Likely("ReLU is applied, but no bias is added.", lambda P, b, k, BN: _relu(P)),
    _Likely(
        "This keeps the negative results and clears the positive ones: ReLU is the larger one of the result "
        "and zero, `max`.",
        lambda P, b, k, BN: np.minimum(P + b, 0),
    ),
    _Likely(
        "Negative results lose their sign: that is `abs`. ReLU makes them zero.",
        lambda P, b, k, BN: np.abs(P + b),
    ),
    _Likely("The bias is subtracted, not added.", lambda P, b, k, BN: _relu(P - b)),
    _Likely("The bias is multiplied, not added.", lambda P, b, k, BN: _relu(P * b)),
    _Likely(
        "The bias is added in each step along k, k times in all. It belongs after the loop.",
        lambda P, b, k, BN: _relu(P + k * b),
    ),
    _Likely(
        "All columns get the bias of column 0. A thread's own is `bias[col]`.",
        lambda P, b, k, BN: _relu(P + b[0]),
    ),
    _Likely(
        "Every block takes the bias of the first block's columns: `threadIdx.x` counts from 0 in each block, "
        "`col` goes on.",
        lambda P, b, k, BN: _relu(P + b[np.arange(len(b)) % BN]),
    ),
    _Likely(
        "`bias` is indexed by the row. It has an element for each column of C, `bias[col]`.",
        lambda P, b, k, BN: _relu(P + _by_row(P, b)),
    ),
)


def _by_row(product: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return bias[np.minimum(np.arange(len(product)), len(bias) - 1), None]


def _check_numbers(trial: Trial) -> None:
    m, n, k = (trial.before[name] for name in ("m", "n", "k"))
    product = trial.before["A"][:, :k].astype(np.float64) @ trial.before["B"][:, :n].astype(np.float64)
    bias = trial.before["bias"].astype(np.float64)
    C = trial.after["C"]
    if trial.touched("C")[:, n:].any():
        raise Refused(
            "Columns from n on are stored as well, which are not C's: guard the column with `col < n`.",
            f"{trial.about}.",
        )
    expected, found = _relu(product + bias), C[:, :n]
    wrong = ~np.isclose(found, expected, rtol=1e-4, atol=1e-5)
    if not wrong.any():
        return
    where = trial.first_wrong("C", wrong, expected)
    if m * n > 1:
        for likely in _LIKELY:
            if np.allclose(found, likely.made(product, bias, k, trial.block[0]), rtol=1e-4, atol=1e-5):
                raise Refused(likely.words, where)
    never = np.isnan(found)
    if not (wrong & ~never).any() and (never == (product + bias <= 0)).all() and not never.all():
        raise Refused(
            "Only positive results are stored. Where the result is zero, zero must be stored as well: C may "
            "hold anything before.",
            where,
        )
    # Threads that store one result each make this many stores.
    one_each = trial.grid[1] * trial.block[1] * n
    if never.all(axis=1).any() and trial.lanes("store", "C") > one_each:
        raise Refused(
            "Some rows of C are never stored, others by several threads. A thread's results lie one below "
            "the "
            "other: `acc[i]` belongs in row `row0 + i`.",
            where,
        )
    if never.all(axis=1).any() and not never.all():
        raise Refused(
            "Some rows of C are never stored. A thread has TM results: the store needs a loop over `i`, as "
            "the products have.",
            where,
        )
    trial.refuse_errors(where)
    if never.any():
        raise Refused("Some elements of C are never stored, or come from padding.", where)
    raise Refused("The numbers are wrong.", where)


# ---- the lesson --------------------------------------------------------------------------------------------


def _check_fused(trial: Trial) -> None:
    """Refuse a C that is read or stored twice, a bias that a thread reads again, and float64."""
    m, n = trial.before["m"], trial.before["n"]
    if trial.lanes("load", "C"):
        raise Refused(
            "The result is right, but C is stored and read again. That is what fusing saves: finish each "
            "result in its register, `acc[i]`, and store it once.",
            f"{trial.about}: {trial.lanes('load', 'C')} elements of C are read.",
        )
    if trial.lanes("store", "C") > m * n:
        raise Refused(
            "The result is right, but elements of C are stored more than once: compute first, then store.",
            f"{trial.about}: {trial.lanes('store', 'C')} stores for {m * n} elements.",
        )
    if trial.lanes("load", "bias") > trial.threads:
        raise Refused(
            "The result is right, but a thread reads the same bias again and again. All its results lie in "
            "one column: read `bias[col]` once, outside of the loop.",
            f"{trial.about}: {trial.lanes('load', 'bias')} reads of bias by {trial.threads} threads.",
        )
    if len(trial.float64):
        raise Refused(
            "The result is right, but it is computed in float64, which is slow on most GPUs: write the zero "
            "as `float32(0)`.",
            f"{trial.line(int(trial.float64['line'].iloc[0]))}",
        )
