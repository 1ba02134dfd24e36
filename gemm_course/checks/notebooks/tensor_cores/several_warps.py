"""Checks ``several_warps``: a block whose warps compute a tile each, by Tensor Cores, for any legal sizes."""

from dataclasses import dataclass

import numpy as np

from gemm_course.checks.core import Refused, call, exercise, factory_of, kernel_of, nothing_yet
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
    ((32, 64, 16, 32, 16, 8), (40, 70, 20)),
    ((32, 96, 32, 16, 32, 0), (32, 96, 32)),
    ((64, 64, 64, 32, 32, 8), (70, 33, 72)),
)
FRAGMENT = 128  # bits that a lane takes of each fragment; no other access to shared memory is as wide


@exercise(
    start="where in the block's tile does a warp's part begin? Number the warps row by row: `y0` and `x0` "
    "from `warp`.",
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
    if not calls_of(kernels[0], "wmma_"):
        raise nothing_yet()
    check_orders(kernels[0])
    trials = []
    for kernel, (tiles, shape) in zip(kernels, CASES, strict=True):
        trials.append(trial := _try(kernel, dict(zip(SIZES, tiles, strict=True)), *shape))
        _check_findings(trial)
        _check_numbers(trial)
        _check_work(trial)
        _check_loads(trial)
    padded, plain = (_wavefronts(trial) for trial in (trials[0], trials[2]))
    return (
        f"Right for {len(CASES)} choices of tiles: WM / 16 + WN / 16 loads of fragments per warp and step. "
        f"Eight rows of a fragment take {padded:g} wavefront with PAD 8, and {plain:g} without."
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
    source = trial.written
    barriers = [call.line for loop in source.loops for call in loop.calls("syncthreads")]
    where = f"{trial.line(finding)}. {trial.about}."
    if finding.kind in ("shared_race", "uninitialised_read") and finding.array in ("As", "Bs"):
        if not barriers:
            raise Refused(
                "Several warps fill the tiles, and each reads what others stored: `cuda.syncthreads()` after "
                f"`fetch`, and again before the next one. `syncwarp` joins one warp only. {finding.message}",
                where,
            )
        if len(set(barriers)) < 2:
            raise Refused(
                "One barrier is missing. The first stands between `fetch` and the loads, the second between "
                f"the loads and the next `fetch`, which overwrites the tiles. {finding.message}",
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
            if any(finding.line in made.lines for made in calls_of(trial.kernel, f"wmma_load_{name}")):
                raise Refused(
                    f"A fragment of {name.upper()} begins at `{right}` of its tile: this warp's corner, then "
                    f"16 elements per fragment, and p in steps of 16. {finding.message}",
                    where,
                )
    check_findings(trial)


def _check_numbers(trial: WarpsTrial) -> None:
    if not trial.wrong.any():
        return
    t, C, k = trial.tiles, trial.got, trial.shape[2]
    where = trial.where
    untouched = C.view(np.uint32) == UNTOUCHED.view(np.uint32)
    if untouched.all():
        raise Refused("Nothing is stored: `put(C, Cs, acc[i, j], y0 + i * 16, x0 + j * 16, m, n)`.", where)
    if untouched.any():
        raise Refused(
            "Some elements of C are never stored. Each warp has a corner of its own: `y0 = warp // (BN // "
            "WN) * WM` and `x0 = warp % (BN // WN) * WN`, counted by warps, not by lanes.",
            where,
        )
    steps = np.arange(k)
    for message, kept in (
        (
            "Only the first 16 steps along k of each tile are multiplied: p goes up to BK.",
            steps % t["BK"] < SIDE,
        ),
        ("Only the first tile along k is multiplied, or the sums start anew with each.", steps < t["BK"]),
        (
            "Only the last tile along k counts: the accumulators start anew with each tile.",
            steps >= (k - 1) // t["BK"] * t["BK"],
        ),
    ):
        if not kept.all() and trial.equals(trial.A[:, kept] @ trial.B[kept]):
            raise Refused(message, where)
    raise Refused(
        "The numbers are wrong. Which 16 rows of `As` and columns of `Bs` does `acc[i, j]` of this warp "
        "need, and where does `put` store it?",
        where,
    )


def _check_work(trial: WarpsTrial) -> None:
    """Refuse other arithmetic than the warps' own products."""
    on_tensor_cores(trial, needed=trial.steps * trial.tiles["WM"] * trial.tiles["WN"] * SIDE)


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
