"""Checks ``ring_and_swizzle``: a warp multiplies swizzled tiles out of a ring that is filled by copies."""

from dataclasses import dataclass

import numpy as np

from gemm_course.checks.core import Refused, call, exercise, factory_of, kernel_of, nothing_yet
from gemm_course.checks.engines.rings import TileLoop, check_constants
from gemm_course.checks.engines.trial import Trial, try_kernel
from gemm_course.checks.kits.swizzled_tiles import COLUMNS, DEPTH, ROWS
from lockstep import Finding

ARGUMENTS = ("k", "A", "B", "C")
STEP = 16  # of k in one product
# Each case is SLOTS and (m, n, k).
CASES = ((2, (16, 64, 192)), (3, (32, 128, 200)), (4, (16, 64, 64)))


@exercise(
    start="wait for the tile, join the warp, ask for the tile that comes SLOTS - 1 later, and then read.",
    hints=(
        "An iteration: `cp_async_wait(IN_FLIGHT)`, `cuda.syncwarp()`, `fetch_swizzled` into slot `(t + SLOTS "
        "- 1) % SLOTS`, then the four steps of 16.",
        "`ldmatrix_x4(a, As, (slot, row, column))`: lane l names row `l % 16` and piece `p // 8 + l // 16`, "
        "which lies at column `place(row, piece) * 8`.",
        "For B the row is `p + l % 16`, and the piece counts columns: `2 * j + l // 16`. `b[0:4]` is the "
        "left half, columns 16 j to 16 j + 7, and belongs to `acc[2 * j]`; `b[4:8]` to `acc[2 * j + 1]`.",
    ),
)
def ring_and_swizzle(make_ring):
    """A factory (SLOTS) of kernels (k, A, B, C): a warp computes 16 by 64 results from a swizzled ring."""
    make = factory_of(make_ring, ("SLOTS",))
    kernels = {slots: kernel_of(call(make, slots), ARGUMENTS) for slots, _ in CASES}
    trials = [_try(kernels[slots], slots, *shape) for slots, shape in CASES]
    if not len(trials[0].accesses("load")):
        raise nothing_yet()
    for trial in trials:
        _check_findings(trial)
        _check_numbers(trial)
        _check_wavefronts(trial)
        _check_loads(trial)
        _check_fetches(trial)
        _check_in_flight(trial)
        _check_end(trial)
    check_constants(trials[-1])
    return (
        "Right with 2, 3 and 4 slots: eight rows take one wavefront without any padding, and SLOTS - 1 tiles "
        "are under way while one is multiplied."
    )


@dataclass(kw_only=True)
class SwizzleTrial(Trial):
    """A product C = A @ B by blocks of one warp. shape: (m, n, k)."""

    SLOTS: int
    shape: tuple[int, int, int]

    def product(self, kept=slice(None)) -> np.ndarray:
        """Return A @ B, computed from these steps along k."""
        return self.before["A"][:, kept].astype(float) @ self.before["B"][kept].astype(float)

    def equals(self, prediction: np.ndarray) -> bool:
        return np.allclose(self.after["C"], prediction, rtol=1e-3, atol=1e-2)

    @property
    def warp_tiles(self) -> int:
        """How many tiles all warps multiply together."""
        return self.grid[0] * self.grid[1] * -(-self.shape[2] // DEPTH)


def _try(kernel, SLOTS: int, m: int, n: int, k: int) -> SwizzleTrial:
    rng = np.random.default_rng((m, n, k))
    A, B = (rng.uniform(-2, 2, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    C = np.full((m, n), np.nan, np.float32)
    about = f"With SLOTS = {SLOTS}, m = {m}, n = {n}, k = {k}"
    done = try_kernel(kernel, ARGUMENTS, (n // COLUMNS, m // ROWS), 32, k, A, B, C, about=about)
    return SwizzleTrial(**vars(done), SLOTS=SLOTS, shape=(m, n, k))


# ---- what the emulator found -------------------------------------------------------------------------------


def _check_findings(trial: SwizzleTrial) -> None:
    if not trial.report.errors:
        return
    finding = trial.report.errors[0]
    raise Refused(
        f"{_said(trial, finding)} {finding.message}".strip(), f"{trial.line(finding)}. {trial.about}."
    )


def _said(trial: SwizzleTrial, finding: Finding) -> str:
    loop = TileLoop(trial)
    waits, joins, asks = loop.lines("cp_async_wait"), loop.lines("syncwarp"), loop.lines("fetch_swizzled")
    if finding.kind in ("async_read_too_early", "shared_race", "uninitialised_read"):
        if not waits:
            return "Nobody waits in the loop: a tile is read before it has come."
        if not joins:
            return (
                "`cp_async_wait` waits for a lane's own copies, and the tile is made of all lanes': "
                "`cuda.syncwarp()` after the wait. It also says that all have read the slot that is filled "
                "next."
            )
        if joins[0] < waits[0]:
            return "The lanes join before they wait, which proves nothing: first wait, then `syncwarp`."
        pending = [given for given in loop.pending if given is not None]
        if pending and max(pending) > trial.SLOTS - 2:
            return "`cp_async_wait` lets too many groups go on: with the wait before the copies, SLOTS - 2."
        if asks and asks[0] < joins[0]:
            return "The slot is filled before all lanes have read it: ask after `cuda.syncwarp()`."
        return "A slot is filled too early, or the wrong one is read: tile t lies in slot `t % SLOTS`."
    if finding.kind == "out_of_bounds":
        return (
            "A place is one of 8 in its row, and column `place * 8`. For B the row is `p + lane % 16`, of "
            "64; for A it is `lane % 16`, of 16."
        )
    return ""


# ---- what came out -----------------------------------------------------------------------------------------


def _check_numbers(trial: SwizzleTrial) -> None:
    exact = trial.product()
    wrong = ~np.isclose(trial.after["C"], exact, rtol=1e-3, atol=1e-2)
    if not wrong.any():
        return
    where = trial.first_wrong("C", wrong, exact)
    k = trial.shape[2]
    steps, tiles = np.arange(k), -(-k // DEPTH)
    if not trial.written.calls("place"):
        raise Refused(
            "The pieces were stored swizzled, and are read as if they were not. A row's piece lies at "
            "`place(row, piece) * 8`.",
            where,
        )
    for message, kept in (
        ("Nothing is added.", steps < 0),
        ("Only the first 16 steps of each tile are multiplied: p goes on to 64.", steps % DEPTH < STEP),
        ("Only the first tile is multiplied.", steps < DEPTH),
        ("The last tile is missing.", steps < (tiles - 1) * DEPTH),
    ):
        if trial.equals(trial.product(kept)):
            raise Refused(message, where)
    if trial.equals(_halves_exchanged(exact)):
        raise Refused(
            "The two halves of `b` are exchanged: `b[0:4]` has the left 8 columns and belongs to `acc[2 * "
            "j]`, `b[4:8]` the right ones.",
            where,
        )
    for_a, for_b = (trial.written.calls(name) for name in ("ldmatrix_x4", "ldmatrix_x4_trans"))
    if not for_b:
        raise Refused("B's fragments need the transposing form, `ldmatrix_x4_trans`.", where)
    if any("p" not in each.argument(2, "index").names for each in for_a if each not in for_b):
        raise Refused(
            "Every step reads the first 16 columns of A's tile. In step p they begin at piece `p // 8`.",
            where,
        )
    raise Refused(
        "The numbers are wrong. Lane l names row `l % 16` and piece `l // 16` of 16 × 16 values; of A's tile "
        "they begin at piece `p // 8`, of B's at row p and piece `2 * j`. And each piece lies at its "
        "`place`.",
        where,
    )


def _halves_exchanged(exact: np.ndarray) -> np.ndarray:
    """Return C with the left and the right 8 columns of each 16 exchanged."""
    m, n = exact.shape
    return exact.reshape(m, n // 16, 2, 8)[:, :, ::-1].reshape(m, n)


# ---- right numbers, but ------------------------------------------------------------------------------------


def _fragments(trial: SwizzleTrial):
    rows = trial.accesses("load")
    return rows[rows["bits"] == 128]


def _check_wavefronts(trial: SwizzleTrial) -> None:
    """Refuse bank conflicts, which a right swizzle has not, and a learner's own place may have."""
    rows = _fragments(trial)
    if rows["wavefronts"].sum() > rows["ideal_wavefronts"].sum():
        raise Refused(
            "The numbers are right, but eight rows take "
            f"{rows['wavefronts'].sum() / rows['requests'].sum() / 4:g} wavefronts and not one.",
            f"{trial.about}.",
        )


def _check_loads(trial: SwizzleTrial) -> None:
    loads, enough = _fragments(trial)["requests"].sum(), trial.warp_tiles * (DEPTH // STEP) * 5
    if loads > enough:
        raise Refused(
            f"The numbers are right, but a warp loads {loads / trial.warp_tiles / 4:g} times per 16 steps "
            "along k, where five are enough: A's fragment once, and one of B for each 16 columns.",
            f"{trial.about}.",
        )


def _check_fetches(trial: SwizzleTrial) -> None:
    pieces = trial.grid[0] * trial.grid[1] * trial.shape[2] // 8 * ROWS
    if trial.lanes("load", "A") > pieces:
        raise Refused(
            "The numbers are right, but tiles are fetched more than once. Before the loop SLOTS - 1 are "
            "asked for, then in each iteration one that nobody has asked for.",
            f"{trial.about}.",
        )


def _check_in_flight(trial: SwizzleTrial) -> None:
    pending = [given for given in TileLoop(trial).pending if given is not None]
    if pending and max(pending) < trial.SLOTS - 2:
        raise Refused(
            f"The numbers are right, but with {trial.SLOTS} slots SLOTS - 2 groups may be under way when a "
            "tile is needed, and yours waits for more.",
            f"{trial.about}.",
        )


def _check_end(trial: SwizzleTrial) -> None:
    if not any(wait.at(0) == "0" for wait in trial.written.calls("cp_async_wait")):
        raise Refused(
            "The numbers are right, but no `cp_async_wait(0)` comes after the loop: the block may end while "
            "its last copies are under way.",
            f"{trial.about}.",
        )
