"""The first kernels, in notebook 00: adding two vectors, and broadcasting."""

import numpy as np

from gemm_course.checks.core import Refused, exercise, kernel_of, nothing_happens, number_shown
from gemm_course.checks.engines.trial import Trial, try_kernel

# ---- 00.5 ------------------------------------------------------------------------------------------------

VECTOR_BLOCK = 128
VECTOR_LENGTHS = (128, 1000, 129, 127, 1)
VECTORS = ("a", "b", "out")


@exercise(
    "00.5",
    start="the kernel does nothing. Each thread is to add one element: first ask which one, with "
    "`i = cuda.grid(1)`.",
    hints=(
        "`cuda.grid(1)` is the number of this thread among all threads of the launch.",
        "The last block has more threads than there are elements left. Those must do nothing.",
        "`if i < out.size:`, then `out[i] = a[i] + b[i]`. No loop: every thread does one element.",
    ),
)
def vector_add(vector_add):
    kernel = kernel_of(vector_add, VECTORS)
    trials = [_vector_trial(kernel, n) for n in VECTOR_LENGTHS]
    if all(trial.report.accesses.empty and not trial.report.errors for trial in trials):
        raise nothing_happens(kernel)
    for trial in trials:
        _hold_vector(trial)
    lengths = ", ".join(map(str, sorted(VECTOR_LENGTHS)))
    return (
        f"Vectors of {lengths} elements: each sum right, each stored exactly once, nothing outside touched."
    )


def _vector_trial(kernel, n: int) -> Trial:
    rng = np.random.default_rng(n)
    a, b = rng.uniform(1, 2, n).astype(np.float32), rng.uniform(4, 8, n).astype(np.float32)
    out = np.full(n, np.nan, np.float32)
    try:
        return try_kernel(kernel, VECTORS, (-(-n // VECTOR_BLOCK),), (VECTOR_BLOCK,), a, b, out)
    except Refused as refused:
        if "indices are given" not in refused.message:
            raise
        raise Refused(
            "A vector takes one index. `cuda.grid(2)` returns two numbers; in one dimension it is "
            "`i = cuda.grid(1)`.",
            refused.where,
        ) from None


def _hold_vector(trial: Trial) -> None:
    out = trial.after["out"]
    n, launched = out.size, trial.grid[0] * VECTOR_BLOCK
    blocks = "1 block" if trial.grid[0] == 1 else f"{trial.grid[0]} blocks"
    about = f"With n = {n}: {blocks}, {launched} threads."
    for name in ("a", "b"):
        if trial.touched(name).any():
            raise Refused(
                f"The kernel writes into `{trial.own_name(name)}`, which is input. The sums belong into "
                "`out`.",
                about,
            )
    expected = trial.before["a"] + trial.before["b"]
    wrong = np.flatnonzero(~(abs(out - expected) <= 1e-5))
    stores = trial.lanes("store", "out")
    if stores == 0 and not trial.report.errors:
        raise Refused("The kernel runs, but nothing is ever stored into `out`.", about)
    if n > 1 and stores >= n * min(n, launched):
        raise Refused(
            f"Every thread goes through the whole vector: {stores:,} stores for {n:,} elements. There is no "
            "loop; the threads *are* the loop, each does one element.",
            about,
        )
    _refuse_stray_vector_threads(trial, launched - n, about)
    if len(wrong):
        raise _wrong_vector(trial, wrong, expected, about)
    trial.refuse_errors(about)
    if stores != n:
        raise Refused(f"Right, but {stores:,} stores for {n:,} elements: each is to be stored once.", about)


def _refuse_stray_vector_threads(trial: Trial, surplus: int, about: str) -> None:
    finding, strays = trial.error("out_of_bounds"), max(trial.strays(name) for name in VECTORS)
    if finding is None:
        return
    where = f"{trial.line(finding)}. {finding.message} {about}"
    if strays == surplus and surplus != 1:
        raise Refused(
            "There is no guard: the last block has more threads than elements are left, and the surplus ones "
            "work outside the vectors. On a GPU that mostly goes unnoticed, and sometimes not.",
            where,
        )
    if strays == 1:
        raise Refused(
            "One thread too many gets through the guard: `n` elements have the indices 0 to n - 1, so `<`, "
            "not `<=`.",
            where,
        )
    raise Refused("The kernel works outside the vectors.", where)


def _wrong_vector(trial: Trial, wrong: np.ndarray, expected: np.ndarray, about: str) -> Refused:
    a, b, out = (trial.before[name] for name in VECTORS)
    got, first = trial.after["out"], int(wrong[0])
    written = trial.touched("out")
    where = (
        f"First wrong element: `out[{first}]` is {number_shown(got[first])}, NumPy has "
        f"{expected[first]:.5g}. {about}"
    )
    if written.sum() == 1 and out.size > 1:
        index = int(np.flatnonzero(written)[0])
        return Refused(
            f"Only `out[{index}]` is ever stored, by all threads. The launch has one dimension, so `y` is 0 "
            "for everybody and only x tells threads apart: `cuda.grid(1)`.",
            where,
        )
    if out.size > VECTOR_BLOCK and written[:VECTOR_BLOCK].all() and not written[VECTOR_BLOCK:].any():
        return Refused(
            f"Only the first {VECTOR_BLOCK} elements are stored: every block does the same ones. "
            "`cuda.threadIdx.x` starts at 0 again in each block; add what the blocks before have done.",
            where,
        )
    if not written[-1] and written[:-1].all():
        return Refused("The last element is never stored: the guard is one too strict.", where)
    if trial.lanes("load", "out") and np.isnan(got[wrong]).all():
        return Refused(
            "The sum is added to what was in `out` before, and there may be anything in it. Store with `=`.",
            where,
        )
    for values, what in ((a, "only `a`"), (b, "only `b`"), (a * b, "the product"), (a - b, "the difference")):
        if np.allclose(got[written], values[written], rtol=1e-5):
            return Refused(f"`out` holds {what}, not the sum.", where)
    if not written.all():
        return Refused("Some elements are never stored.", where)
    return Refused("The sums are wrong.", where)


# ---- 00.6 ------------------------------------------------------------------------------------------------

BROADCAST_BLOCK = (16, 8)
BROADCAST = ("column", "row", "out")
UNEVEN = (20, 37)  # neither a multiple of the block, so that every kind of guard leaves its own traces
BROADCAST_SHAPES = (UNEVEN, (24, 32), (13, 50), (33, 5), (7, 17), (1, 40), (40, 1), (1, 1))


@exercise(
    "00.6",
    start="the kernel does nothing. First let every thread find its element: `x, y = cuda.grid(2)`, and x "
    "counts the columns.",
    hints=(
        "Two indices: the thread's x is the column of `out`, its y the row.",
        "`column` has an element for every row of `out`, so it is `column[y]`; `row` has one for every "
        "column.",
        "The guard needs both: `x < out.shape[1] and y < out.shape[0]`.",
        "`out[y, x] = column[y] + row[x]`: NumPy writes the row first.",
    ),
)
def broadcast_add(broadcast_add):
    kernel = kernel_of(broadcast_add, BROADCAST)
    trials = [_broadcast_trial(kernel, *shape) for shape in BROADCAST_SHAPES]
    if all(trial.report.accesses.empty and not trial.report.errors for trial in trials):
        raise nothing_happens(kernel)
    for trial in trials:
        _hold_broadcast(trial)
    shapes = ", ".join(f"{m} × {n}" for m, n in BROADCAST_SHAPES)
    return f"{shapes}: each sum right, each stored exactly once, nothing outside touched."


def _broadcast_trial(kernel, m: int, n: int) -> Trial:
    rng = np.random.default_rng((m, n))
    column, row = rng.uniform(1, 2, m).astype(np.float32), rng.uniform(4, 8, n).astype(np.float32)
    x, y = BROADCAST_BLOCK
    out = np.full((m, n), np.nan, np.float32)
    return try_kernel(kernel, BROADCAST, (-(-n // x), -(-m // y)), BROADCAST_BLOCK, column, row, out)


def _hold_broadcast(trial: Trial) -> None:
    out = trial.after["out"]
    m, n = out.shape
    about = f"`out` has {m} rows and {n} columns."
    for name in ("column", "row"):
        if trial.touched(name).any():
            raise Refused(f"The kernel writes into `{trial.own_name(name)}`, which is input.", about)
    expected = trial.before["column"][:, None] + trial.before["row"]
    wrong = np.argwhere(~(abs(out - expected) <= 1e-5))
    stores = trial.lanes("store", "out")
    if stores == 0 and not trial.report.errors:
        raise Refused("The kernel runs, but nothing is ever stored into `out`.", about)
    where = about
    if len(wrong):
        i, j = map(int, wrong[0])
        where = (
            f"First wrong element: `out[{i}, {j}]` is {number_shown(out[i, j])}, NumPy has "
            f"{expected[i, j]:.5g}. It belongs to thread {(j % 16, i % 8)} of block {(j // 16, i // 8)}. "
            f"{about}"
        )
    if m * n > 1 and stores >= m * n * min(m * n, BROADCAST_BLOCK[0] * BROADCAST_BLOCK[1]):
        raise Refused(
            "Every thread fills the whole matrix. There is no loop: each thread does one element.", where
        )
    if len(wrong) or trial.report.errors:
        raise _wrong_broadcast(trial, len(wrong) > 0, where)
    if stores != m * n:
        raise Refused(
            f"Right, but {stores:,} stores for {m * n:,} elements: each is to be stored once.", about
        )


def _wrong_broadcast(trial: Trial, numbers_wrong: bool, where: str) -> Refused:
    refused = _by_strays(trial, where) or (_by_stored(trial, where) if numbers_wrong else None)
    if refused is None and numbers_wrong:
        refused = _by_values(trial, where)
    if refused is None:
        trial.refuse_errors(where)
    return refused or Refused("The sums are wrong.", where)


def _launched(trial: Trial) -> tuple[int, int]:
    """Threads along x and y, in the whole launch."""
    return trial.grid[0] * trial.block[0], trial.grid[1] * trial.block[1]


def _by_strays(trial: Trial, where: str) -> Refused | None:
    """How many threads store outside tells which guard let them through."""
    (m, n), (x, y) = trial.after["out"].shape, _launched(trial)
    strays, inside = trial.strays("out"), m * n
    if not strays or not trial.touched("out").all():
        return None
    known = {
        x * y - inside: "There is no guard: the surplus threads of the last blocks work outside the arrays.",
        m * x
        + n * y
        - 2 * inside: "`or` in the guard lets threads through that are outside in one direction: "
        "a thread must be inside in both, `and`.",
        m * x - inside: "Only the rows are guarded; threads to the right of `out` get through. "
        "`x < out.shape[1]` is missing.",
        n * y
        - inside: "Only the columns are guarded; threads below `out` get through. `y < out.shape[0]` is "
        "missing.",
        (m + 1) * (n + 1) - inside: "The guard lets one row and one column too many through: `<`, not `<=`.",
    }
    if strays not in known:
        return None
    finding = trial.error("out_of_bounds")
    return Refused(known[strays], f"{trial.line(finding)}. {finding.message} {where}")


def _by_stored(trial: Trial, where: str) -> Refused | None:
    """Which elements were stored at all tells which index or guard was used."""
    written, (x, y) = trial.touched("out"), _launched(trial)
    if written.all():
        return None
    (m, n), (i, j) = written.shape, np.ogrid[: written.shape[0], : written.shape[1]]
    known = (
        (
            (i < trial.block[1]) & (j < trial.block[0]),
            "Only one block's worth is stored: `threadIdx` starts at 0 again in every block. Use "
            "`cuda.grid(2)`, or add `blockIdx * blockDim`.",
        ),
        (
            (i < min(m, x)) & (j < min(n, y)),
            "x and y are exchanged: `cuda.grid(2)` returns `(x, y)`, and x counts the columns, y the rows. "
            "The threads run out before the columns do.",
        ),
        (
            (i < n) & (j < m),
            "The guard is exchanged: x ends at the number of columns, `out.shape[1]`, y at `out.shape[0]`.",
        ),
        ((i == j) & (i < m), "Only the diagonal is stored: row and column must come from different indices."),
        ((i == 0) & (j < x), "Only the first row is stored. The launch has two dimensions: `cuda.grid(2)`."),
    )
    for predicted, message in known:
        if (written == predicted).all():
            return Refused(message, where)
    return Refused("Some elements are never stored.", where)


def _by_values(trial: Trial, where: str) -> Refused | None:
    """On a square matrix exchanged indices stay inside, so that they can be told from the values."""
    square = _broadcast_trial(trial.kernel, 16, 16)
    column, row, got = square.before["column"], square.before["row"], square.after["out"]
    known = (
        (
            column[None, :] + row[:, None],
            "`column` and `row` are exchanged: `column` has an element for every *row* of `out`, so its "
            "index is y: `column[y] + row[x]`.",
        ),
        (column[:, None] + 0 * row, "Only `column` has arrived in `out`; `row` is missing."),
        (0 * column[:, None] + row, "Only `row` has arrived in `out`; `column` is missing."),
        (column[:, None] * row, "This is the product. The sum is wanted."),
        (column[:, None] + row[:, None], "`row` is taken at y here, like `column`. Its index is x."),
        (column[None, :] + row[None, :], "`column` is taken at x here, like `row`. Its index is y."),
    )
    for predicted, message in known:
        if np.allclose(got, predicted, rtol=1e-5):
            return Refused(message, where)
    if np.isnan(got).all() and square.lanes("load", "out"):
        return Refused("The sum is added to what was in `out` before. Store with `=`.", where)
    return None
