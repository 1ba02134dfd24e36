"""Checks ``several_warps``: a block whose warps compute a tile each, by Tensor Cores, for any legal sizes."""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gemm_course.checks.core import (
    Branch,
    Refused,
    Written,
    call,
    exercise,
    factory_of,
    kernel_of,
    nothing_yet,
)
from gemm_course.checks.engines.trial import try_kernel
from gemm_course.checks.engines.wmma import (
    SIDE,
    UNTOUCHED,
    WarpTrial,
    calls_of,
    check_findings,
    check_orders,
    on_tensor_cores,
)

ARGUMENTS = ("m", "n", "k", "A", "B", "C")
SIZES = ("BM", "BN", "BK", "WM", "WN", "PAD")
# The tiles, and (m, n, k). Warps lie below each other, side by side, in two rows of three, and two by two.
CASES = (
    ((64, 32, 32, 32, 32, 8), (64, 32, 64)),
    ((32, 64, 16, 32, 16, 8), (56, 90, 40)),
    ((32, 96, 32, 16, 32, 0), (32, 96, 32)),
    ((64, 64, 64, 32, 32, 8), (70, 33, 72)),
)
FRAGMENT = 128  # bits that a lane takes of each fragment; no other access to shared memory is as wide


@exercise(
    start="where in the block's tile does a warp's part begin? Number the warps, row by row for example: "
    "`y0` and `x0` from `warp`.",
    hints=(
        "A block has `BN // WN` warps side by side: `y0 = warp // (BN // WN) * WM`, `x0 = warp % (BN // WN) "
        "* WN`.",
        "For each tile: `fetch`, `cuda.syncthreads()`, then all steps of 16 along k in the tile, then "
        "another `cuda.syncthreads()` before the next `fetch`.",
        "In a step load WM / 16 fragments of A from `(y0 + i * 16, p)` and WN / 16 of B from `(p, x0 + j "
        "* 16)`, and after that multiply each with each.",
    ),
)
def several_warps(make_wmma):
    """A factory (BM, BN, BK, WM, WN, PAD) of kernels (m, n, k, A, B, C): a warp computes WM by WN results."""
    make = factory_of(make_wmma, SIZES)
    kernels = [kernel_of(call(make, *tiles), ARGUMENTS) for tiles, _ in CASES]
    for part in _written_by_the_learner(kernels[0]):
        check_orders(part)
    trials = []
    for kernel, (tiles, shape) in zip(kernels, CASES, strict=True):
        trials.append(trial := _try(kernel, dict(zip(SIZES, tiles, strict=True)), *shape))
        if trial.is_empty and not calls_of(kernel, "wmma_"):
            raise nothing_yet()
        _check_findings(trial)
        _check_numbers(trial)
        _check_work(trial)
        _check_loads(trial)
    m, n, _ = trials[0].shape
    times = trials[0].lanes("store", "C") / (m * n)
    again = " But C is stored once per tile along k: `put` after the loop." if times > 1 else ""
    padded, plain = (_wavefronts(trial) for trial in (trials[0], trials[2]))
    return (
        f"Right for {len(CASES)} choices of tiles: WM / 16 + WN / 16 loads of fragments per warp and step. "
        f"Eight rows of a fragment take {padded:g} wavefront with PAD 8, and {plain:g} without.{again}"
    )


@dataclass(kw_only=True)
class WarpsTrial(WarpTrial):
    """A product by blocks of several warps. tiles: BM, BN, BK, WM, WN and PAD by their names."""

    tiles: dict[str, int]

    @property
    def warps(self) -> int:
        """The number of warps of a block."""
        return self.tiles["BM"] // self.tiles["WM"] * (self.tiles["BN"] // self.tiles["WN"])

    @property
    def steps(self) -> int:
        """The number of steps of 16 along k that all warps of the launch take together."""
        BK = self.tiles["BK"]
        return self.grid[0] * self.grid[1] * self.warps * -(-self.shape[2] // BK) * (BK // SIDE)

    @property
    def where(self) -> str:
        return self.first_wrong("C", self.wrong, self.expected)

    @cached_property
    def untouched(self) -> np.ndarray:
        """Which elements of C were never stored."""
        return self.got.view(np.uint32) == UNTOUCHED.view(np.uint32)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was multiplied by Tensor Cores, stored to C, or found."""
        idle = self.report.arithmetic.query("op == 'mma'").empty
        return idle and self.untouched.all() and not self.report.errors

    def calls(self, name: str) -> list:
        """Return the calls of a function in the kernel and in the learner's functions that it calls."""
        return [made for part in _written_by_the_learner(self.kernel) for made in calls_of(part, name)]


def _written_by_the_learner(kernel) -> list:
    """Return a kernel and the functions of the same file that it calls, directly or by others."""
    found = [kernel]
    for each in found:  # grows meanwhile
        written = Written(each)
        for made in written.calls():
            other = written.outside.get(made.name)
            code = getattr(getattr(other, "py_func", None), "__code__", None)
            if code and code.co_filename == kernel.py_func.__code__.co_filename and other not in found:
                found.append(other)
    return found


def _try(kernel, tiles: dict[str, int], m: int, n: int, k: int) -> WarpsTrial:
    rng = np.random.default_rng((m, n, k))
    A, B = (rng.uniform(-2, 2, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    C = np.full((m, n), UNTOUCHED, np.float32)
    told = ", ".join(f"{name} = {size}" for name, size in tiles.items())
    warps = tiles["BM"] // tiles["WM"] * (tiles["BN"] // tiles["WN"])
    grid = -(-n // tiles["BN"]), -(-m // tiles["BM"])
    about = f"With {told}, m = {m}, n = {n}, k = {k}"
    done = try_kernel(kernel, ARGUMENTS, grid, 32 * warps, m, n, k, A, B, C, about=about)
    return WarpsTrial(**vars(done), shape=(m, n, k), tiles=tiles)


# ---- what is wrong with it ---------------------------------------------------------------------------------


def _check_findings(trial: WarpsTrial) -> None:
    finding = next(iter(trial.report.errors), None)
    if finding is None:
        return
    in_loops = [made for loop in trial.written.loops for made in loop.calls("syncthreads")]
    in_others = [
        made for made in trial.calls("syncthreads") if made not in trial.written.calls("syncthreads")
    ]
    barriers = {made.line for made in (*in_loops, *in_others)}
    where = f"{trial.line(finding)}. {trial.about}."
    _check_fetch_by_all(trial, finding.message)
    if finding.kind in ("shared_race", "uninitialised_read") and finding.array in ("As", "Bs"):
        if not barriers:
            raise Refused(
                "Several warps fill the tiles, and each reads what others stored: `cuda.syncthreads()` after "
                f"`fetch`, and again before the next one. `syncwarp` joins one warp only. {finding.message}",
                where,
            )
        if len(barriers) < 2:
            too_little = (
                "`syncwarp` is too little, as it joins one warp only. " if trial.calls("syncwarp") else ""
            )
            raise Refused(
                "One barrier of the block is missing. The first stands between `fetch` and the loads, the "
                f"second between the loads and the next `fetch`, which overwrites the tiles. {too_little}"
                f"{finding.message}",
                where,
            )
    if finding.kind == "global_race":
        raise Refused(
            "Two warps store the same elements of C. Each has a corner of its own, `y0` and `x0`, from which "
            f"its loads and its `put` count. {finding.message}",
            where,
        )
    if finding.kind in ("out_of_bounds", "misaligned_access") and trial.is_own(finding):
        for name, right in (("a", "(y0 + i * 16, p)"), ("b", "(p, x0 + j * 16)")):
            if any(finding.line in made.lines for made in trial.calls(f"wmma_load_{name}")):
                raise Refused(
                    f"A fragment of {name.upper()} begins at `{right}` of its tile: this warp's corner, then "
                    f"16 elements per fragment, and p in steps of 16. {finding.message}",
                    where,
                )
    check_findings(trial)


def _check_fetch_by_all(trial: WarpsTrial, more: str = "") -> None:
    """Refuse a fetch that only some threads call. Callers ask this if something is wrong."""
    for made in trial.calls("fetch"):
        if any(isinstance(part, Branch) for part in made.around):
            raise Refused(
                f"All threads of the block must call `fetch`, here a branch decides. {more}".strip(),
                made.where,
            )
    meets = [made.line for name in ("fetch", "syncthreads") for made in trial.written.calls(name)]
    early = [branch for branch in trial.written.branches if re.search(r"\breturn\b", branch.text)]
    if any(branch.line < max(meets, default=0) for branch in early):
        raise Refused(
            f"Some threads return early, but all threads of the block must call `fetch` and "
            f"`cuda.syncthreads()`. {more}".strip(),
            f"{trial.about}.",
        )


def _check_numbers(trial: WarpsTrial) -> None:
    if not trial.wrong.any():
        return
    _check_fetch_by_all(trial)
    where = trial.where
    if trial.untouched.all():
        raise Refused("Nothing is stored: `put(C, Cs, acc[i, j], y0 + i * 16, x0 + j * 16, m, n)`.", where)
    _check_places(trial)
    if trial.untouched.any():
        raise Refused(
            "Some elements of C are never stored. Each warp has a corner of its own, for example `y0 = warp "
            "// (BN // WN) * WM` and `x0 = warp % (BN // WN) * WN`, counted by warps, not by lanes. And each "
            "`put` begins there: at `y0 + i * 16` and `x0 + j * 16`.",
            where,
        )
    _check_steps(trial)
    for matrix, tile in ("A", "As"), ("B", "Bs"):
        if any("COL_MAJOR" in made.at(3) for made in trial.calls(f"wmma_load_{matrix.lower()}")):
            raise Refused(
                f"`{tile}` is read as `COL_MAJOR`, but `fetch` copies {matrix} as it is: `ROW_MAJOR`.", where
            )
    raise Refused(
        "The numbers are wrong. Which 16 rows of `As` and columns of `Bs` does `acc[i, j]` of this warp "
        "need, and where does `put` store it?",
        where,
    )


def _check_places(trial: WarpsTrial) -> None:
    """Refuse fragments that are right, but put in other places than theirs, or nowhere."""
    t, (m, n, _), where = trial.tiles, trial.shape, trial.where
    rows, columns = np.arange(m)[:, None], np.arange(n)[None, :]
    stored_wrong = trial.wrong & ~trial.untouched
    cut = (rows // SIDE * SIDE + SIDE > m) | (columns // SIDE * SIDE + SIDE > n)
    if trial.untouched.any() and not stored_wrong.any() and not (trial.untouched & ~cut).any():
        raise Refused(
            "The fragments that the edge of C cuts are not stored. Leave out the test: `put` stores what "
            "lies in C, and nothing else.",
            where,
        )
    elsewhere = (rows >= t["BM"]) | (columns >= t["BN"])
    if elsewhere.any() and not trial.wrong[~elsewhere].any() and "blockIdx" in trial.written.text:
        raise Refused(
            "Only the first block's part of C is right. `fetch` and `put` add the block's place themselves: "
            "a `put` counts from the corner of the block's tile, so no `blockIdx`.",
            where,
        )
    first_row, first_column = rows % t["WM"] < SIDE, columns % t["WN"] < SIDE
    for stored, lacks in (
        (first_row & first_column, "`i * 16` and `j * 16`"),
        (first_row & (columns >= 0), "`i * 16`"),
        ((rows >= 0) & first_column, "`j * 16`"),
    ):
        if not stored.all() and (stored == ~trial.untouched).all():
            raise Refused(
                f"Some fragments of a warp are stored over each other: `put`'s place lacks {lacks}. It is "
                "`y0 + i * 16, x0 + j * 16`.",
                where,
            )
    if m % SIDE or n % SIDE or trial.grid[0] * trial.grid[1] > 1:
        return
    _check_diagonals(trial)


def _check_diagonals(trial: WarpsTrial) -> None:
    """Refuse fragments whose row and column are exchanged, in one block of whole fragments."""
    t, (m, n, _), where = trial.tiles, trial.shape, trial.where
    down, across = t["WM"] // SIDE, t["WN"] // SIDE
    in_block, in_warp = [], []
    for y, x in np.ndindex(m // SIDE, n // SIDE):
        got = _fragment(trial.got, y, x)
        if _fragment(trial.untouched, y, x).all():
            in_warp.append(False)
            continue
        if x < m // SIDE and y < n // SIDE:
            in_block.append(np.allclose(got, _fragment(trial.expected, x, y), rtol=2e-2, atol=2e-2))
        if down == across:
            place = y // down * down + x % across, x // across * across + y % down
            in_warp.append(np.allclose(got, _fragment(trial.expected, *place), rtol=2e-2, atol=2e-2))
    if in_warp and all(in_warp):
        raise Refused(
            "In each warp's part the fragments lie across the diagonal. `acc[i, j]` is the product of `a[i]` "
            "and `b[j]`, and its place is `y0 + i * 16, x0 + j * 16`.",
            where,
        )
    if in_block and all(in_block):
        raise Refused(
            "Row and column of `put` are exchanged: first `y0 + i * 16`, then `x0 + j * 16`.", where
        )


def _fragment(matrix: np.ndarray, y: int, x: int) -> np.ndarray:
    return matrix[y * SIDE : (y + 1) * SIDE, x * SIDE : (x + 1) * SIDE]


def _check_steps(trial: WarpsTrial) -> None:
    """Refuse sums over other steps along k than all of them."""
    t, k, where = trial.tiles, trial.shape[2], trial.where
    steps, tiles = np.arange(k), -(-k // t["BK"])
    for message, kept in (
        (
            "Only the first 16 steps along k of each tile are multiplied: p goes up to BK.",
            steps % t["BK"] < SIDE,
        ),
        ("Only the first tile along k is multiplied.", steps < t["BK"]),
        (
            "Only the last tile along k counts: the accumulators start anew with each tile.",
            steps >= (k - 1) // t["BK"] * t["BK"],
        ),
        (
            "The last tile along k, of which k fills only a part, is missing. Multiply it whole: `fetch` "
            "puts zeros behind the end.",
            steps < k // t["BK"] * t["BK"],
        ),
        (
            "The last steps along k, which are fewer than 16, are missing. Multiply the whole tile: `fetch` "
            "puts zeros behind the end.",
            steps < k // SIDE * SIDE,
        ),
        ("The last tile along k is missing.", steps < (tiles - 1) * t["BK"]),
        ("The first tile along k is missing.", steps >= t["BK"]),
        (
            "`fetch` is told the number of the tile. It takes `k0`, the tile's first step along k: `t * BK`.",
            ((steps[:, None] >= np.arange(tiles)) & (steps[:, None] < np.arange(tiles) + t["BK"])).sum(1),
        ),
    ):
        if not (kept == 1).all() and trial.equals((trial.A * kept) @ trial.B):
            raise Refused(message, where)
    if t["BK"] == t["BN"] == trial.shape[1] and k % t["BK"] == 0:
        parts = t["BK"] // SIDE
        B = trial.B.reshape(-1, parts, SIDE, parts, SIDE).transpose(0, 3, 2, 1, 4).reshape(trial.B.shape)
        if trial.equals(trial.A @ B):
            raise Refused(
                "Row and column of B's place are exchanged: its row is p, along k, and its column `x0 + j * "
                "16`.",
                where,
            )


def _check_work(trial: WarpsTrial) -> None:
    """Refuse other arithmetic than the warps' own products."""
    one_tile = trial.tiles["WM"] * trial.tiles["WN"] * trial.tiles["BK"]
    needed = trial.steps * trial.tiles["WM"] * trial.tiles["WN"] * SIDE
    done = trial.report.arithmetic.query("op == 'mma'")["lanes"].sum()
    if done == needed + one_tile * trial.warps * trial.grid[0] * trial.grid[1]:
        raise Refused(
            "Each block multiplies one tile too many: behind the last step along k there are only zeros. "
            "`range(0, k, BK)` ends before k.",
            f"{trial.about}.",
        )
    on_tensor_cores(trial, needed=needed)


def _check_loads(trial: WarpsTrial) -> None:
    per_step = _fragments(trial)["requests"].sum() / trial.steps
    least = (trial.tiles["WM"] + trial.tiles["WN"]) // SIDE
    if per_step > least:
        raise Refused(
            f"The numbers are right, but a warp loads {per_step:g} fragments per step of 16 along k, where "
            f"WM / 16 + WN / 16 = {least} are enough. Load them all before the products: a[i] serves all j, "
            "b[j] all i.",
            f"{trial.about}.",
        )


def _fragments(trial: WarpsTrial):
    """Return the report's rows of loads of fragments."""
    rows = trial.accesses("load")
    return rows[rows["bits"] == FRAGMENT]


def _wavefronts(trial: WarpsTrial) -> float:
    """Return how many wavefronts eight rows of a fragment take; a load has four times eight."""
    rows = _fragments(trial)
    return rows["wavefronts"].sum() / rows["requests"].sum() / 4
