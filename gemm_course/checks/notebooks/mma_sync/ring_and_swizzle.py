"""Checks ``ring_and_swizzle``: a warp multiplies swizzled tiles out of a ring that is filled by copies."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gemm_course.checks.core import Refused, call, exercise, factory_of, kernel_of, nothing_yet
from gemm_course.checks.engines.rings import TileLoop, check_constants
from gemm_course.checks.engines.trial import Trial, try_kernel
from gemm_course.checks.kits.swizzled_tiles import COLUMNS, DEPTH, ROWS
from lockstep import Finding, Watch

ARGUMENTS = ("k", "A", "B", "C")
STEP = 16  # of k in one product
# Each case is SLOTS and (m, n, k).
CASES = ((2, (16, 64, 192)), (3, (32, 128, 200)), (4, (16, 64, 64)))


@exercise(
    start="write the loop over tiles. An iteration has four parts: in which order?",
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
        _check_groups(trial)
        _check_ahead(trial)
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
    def tiles(self) -> int:
        """The number of tiles along k."""
        return -(-self.shape[2] // DEPTH)

    @property
    def warp_tiles(self) -> int:
        """How many tiles all warps multiply together."""
        return self.grid[0] * self.grid[1] * self.tiles

    @property
    def asked(self) -> list[int]:
        """The tiles of A that the first warp asks for, in this order, each as often as it is asked for."""
        trace = self.report.trace
        columns = [row[1] for row in trace[trace["array"] == self.own_name("A")]["element"]]
        once = [ROWS * (min(self.shape[2], (t + 1) * DEPTH) - t * DEPTH) // 8 for t in range(self.tiles)]
        found = [column // DEPTH for column in columns]
        return [t for t in dict.fromkeys(found) for _ in range(found.count(t) // once[t])]


def _try(kernel, SLOTS: int, m: int, n: int, k: int) -> SwizzleTrial:
    rng = np.random.default_rng((m, n, k))
    A, B = (rng.uniform(-2, 2, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    C = np.full((m, n), np.nan, np.float32)
    about, watch = f"With SLOTS = {SLOTS}, m = {m}, n = {n}, k = {k}", Watch(warp=0, local=False)
    done = try_kernel(kernel, ARGUMENTS, (n // COLUMNS, m // ROWS), 32, k, A, B, C, about=about, watch=watch)
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
    if finding.kind in ("async_read_too_early", "shared_race", "uninitialised_read"):
        return _of_the_ring(trial)
    if finding.kind == "misaligned_access":
        return (
            "A column counts FP16 values, and a place counts pieces of 8 of them: column = place * 8, for A "
            "and for B."
        )
    if finding.kind == "out_of_bounds":
        if finding.element and len(finding.element) == 3 and finding.element[0] >= trial.SLOTS:
            return f"There are {trial.SLOTS} slots, from 0 on: tile t lies in slot `t % SLOTS`."
        return (
            "A place is one of 8 in its row, and column `place * 8`. For B the row is `p + lane % 16`, of "
            "64; for A it is `lane % 16`, of 16."
        )
    return ""


def _of_the_ring(trial: SwizzleTrial) -> str:
    """Say why a tile may be read before it is there, or a slot be filled before it has been read."""
    loop = TileLoop(trial)
    waits, joins, asks = loop.lines("cp_async_wait"), loop.lines("syncwarp"), loop.lines("fetch_swizzled")
    reads = loop.lines("ldmatrix_x4", "ldmatrix_x4_trans")
    if reads and not asks and max(trial.asked, default=0) < trial.SLOTS - 1:
        return (
            "No tile is asked for in the loop, only SLOTS - 1 before it. In each iteration ask for one more."
        )
    if not waits:
        return "Nobody waits in the loop: a tile is read before it has come."
    if not joins:
        return (
            "`cp_async_wait` waits for a lane's own copies, and the tile is made of all lanes': "
            "`cuda.syncwarp()` after the wait. It also says that all have read the slot that is filled next."
        )
    if joins[0] < waits[0]:
        return "The lanes join before they wait, which proves nothing: first wait, then `syncwarp`."
    if reads and joins[0] > reads[0]:
        return (
            "Between the wait and the first read a `cuda.syncwarp()` is missing. A lane has waited for its "
            "own copies only, and reads what others have copied."
        )
    pending = [given for given in loop.pending if given is not None]
    if pending and max(pending) > trial.SLOTS - 2:
        return "`cp_async_wait` lets too many groups go on: with the wait before the copies, SLOTS - 2."
    guarded = {call for branch in loop.loop.branches for call in branch.calls("fetch_swizzled")}
    if guarded and not loop.lines("cp_async_commit"):
        return (
            "Near the end nothing is asked for any more, so no group is added, and `cp_async_wait` lets the "
            "last tile itself go on. Ask in every iteration: of a tile beyond k come zeros."
        )
    if asks and asks[0] < joins[0]:
        return "The slot is filled before all lanes have read it: ask after `cuda.syncwarp()`."
    if late := _first_iteration(loop):
        return f"The loop begins with `{late}`. It needs an iteration for each tile, from tile 0 on."
    return _of_the_tiles_asked_for(trial) or (
        "A slot is filled too early, or the wrong one is read: tile t lies in slot `t % SLOTS`."
    )


def _first_iteration(loop: TileLoop) -> str:
    """Return where the loop over tiles begins, as it is written, or "" if that is 0 or not known."""
    over = [each.args for each in getattr(loop.loop, "over", loop.loop).calls("range")]
    first = over[0][0] if over and len(over[0]) > 1 else None
    return "" if first is None or first.text == "0" else first.text


def _of_the_tiles_asked_for(trial: SwizzleTrial) -> str:
    """Say which tile is asked for in vain, or not at all; "" if each is asked for once."""
    asked, right = trial.asked, list(range(trial.tiles))
    if asked == right:
        return ""
    rule = "In iteration t it is number `t + SLOTS - 1`."
    if max(asked, default=0) < trial.SLOTS - 1 < trial.tiles:
        return (
            "What the loop asks for lies beyond k, so only zeros come. `fetch_swizzled` takes the tile's "
            "number, `t + SLOTS - 1`, counted in tiles, not in values."
        )
    twice = next((t for t in asked if asked.count(t) > 1), None)
    if twice is not None:
        return f"Tile {twice} is asked for {asked.count(twice)} times, by the lanes of one block. {rule}"
    missing = [t for t in right if t not in asked]
    if missing:
        return f"Tile {missing[0]} is never asked for, of {trial.tiles} tiles. {rule}"
    return f"Tiles are asked for in the order {', '.join(map(str, asked))}. {rule}"


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
    if said := _of_the_tiles_asked_for(trial):
        raise Refused(said, where)
    for message, kept in (
        ("Nothing is added.", steps < 0),
        ("Only the first 16 steps of each tile are multiplied: p goes on to 64.", steps % DEPTH < STEP),
        ("Only the first tile is multiplied.", steps < DEPTH),
        ("The last tile is missing.", steps < (tiles - 1) * DEPTH),
    ):
        if trial.equals(trial.product(kept)):
            raise Refused(message, where)
    for message, expected in _likely(trial, exact):
        if trial.equals(expected):
            raise Refused(message, where)
    if not trial.written.calls("ldmatrix_x4_trans"):
        raise Refused("B's fragments need the transposing form, `ldmatrix_x4_trans`.", where)
    raise Refused(
        "The numbers are wrong, in none of the usual ways. What holds: lane l names row `l % 16` and piece "
        "`l // 16` of 16 × 16 values; of A's tile they begin at piece `p // 8`, of B's at row p and piece `2 "
        "* j`; each piece lies at its `place`; the products go to `acc[2 * j]` and `acc[2 * j + 1]`.",
        where,
    )


def _likely(trial: SwizzleTrial, exact: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what to say of a likely mistake, and the C that comes of it."""
    m, n = exact.shape
    pairs = exact.reshape(m, n // 16, 2, 8)
    yield (
        "The two halves of `b` are exchanged: `b[0:4]` has the left 8 columns and belongs to `acc[2 * j]`, "
        "`b[4:8]` the right ones.",
        pairs[:, :, ::-1].reshape(m, n),
    )
    for half, name, taken in ((0, "right", "b[4:8]"), (1, "left", "b[0:4]")):
        yield (
            f"The {name} 8 of each 16 columns are 0: one load of B serves two products, and that with "
            f"`{taken}` is missing.",
            (pairs * (np.arange(2) == half)[:, None]).reshape(m, n),
        )
    by_block = exact.reshape(m, n // COLUMNS, 4, 2, 8)
    yield (
        "All products are right, and lie in the wrong accumulators: `acc[j]` holds columns 8 j to 8 j + 7, "
        "so a load of 16 columns belongs to `acc[2 * j]` and `acc[2 * j + 1]`.",
        by_block.swapaxes(2, 3).reshape(m, n),
    )
    same, anew = np.arange(DEPTH), np.arange(DEPTH) % STEP
    by_one = np.arange(DEPTH) // STEP + anew
    yield (
        "p counts 0, 1, 2, 3 here. It is where the 16 steps begin: `range(0, DEPTH, 16)`, with 64 for DEPTH.",
        _read_from(trial, anew, by_one),
    )
    yield (
        "Every step reads the first 16 columns of A's tile. Each of the four begins two pieces further on.",
        _read_from(trial, anew, same),
    )
    yield (
        "Every step reads the first 16 rows of B's tile. Each of the four begins 16 rows further on.",
        _read_from(trial, same, anew),
    )
    yield (
        "B's rows begin one row further on in each of the four steps. A step has 16 rows.",
        _read_from(trial, same, by_one),
    )
    piece = np.arange(n) % COLUMNS // 8
    columns = np.arange(n) + (piece // 2 + piece % 2 - piece) * 8
    yield (
        "B's columns begin one piece further on with each j. A load has 16 columns, two pieces: `2 * j`.",
        _read_from(trial, same, same)[:, columns],
    )


def _read_from(trial: SwizzleTrial, of_a: np.ndarray, of_b: np.ndarray) -> np.ndarray:
    """Return C if step p of each tile takes column ``of_a[p]`` of A's tile and row ``of_b[p]`` of B's."""
    A, B = (trial.before[name].astype(float) for name in "AB")
    beyond = trial.tiles * DEPTH - trial.shape[2]
    A, B = np.pad(A, ((0, 0), (0, beyond))), np.pad(B, ((0, beyond), (0, 0)))
    firsts = range(0, trial.tiles * DEPTH, DEPTH)
    return sum(A[:, t + of_a] @ B[t + of_b] for t in firsts)


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
    if loads * trial.tiles == enough * (trial.tiles + 1):
        raise Refused(
            f"The numbers are right, but {trial.tiles + 1} tiles are multiplied, and there are "
            f"{trial.tiles}. The last one is all zeros.",
            f"{trial.about}.",
        )
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


def _check_groups(trial: SwizzleTrial) -> None:
    """Refuse a group of its own in each iteration, which the wait counts in the place of a tile."""
    loop = TileLoop(trial)
    guarded = {call for branch in loop.loop.branches for call in branch.calls("cp_async_commit")}
    more = [call for call in loop.loop.calls("cp_async_commit") if call not in guarded]
    if more:
        raise Refused(
            "The numbers are right, but `fetch_swizzled` commits already. One more `cp_async_commit` adds an "
            "empty group per tile. The wait counts groups, so it waits for tiles that are not needed yet.",
            f"{more[0].where}. {trial.about}.",
        )


def _check_ahead(trial: SwizzleTrial) -> None:
    """Refuse a tile that is asked for when the one before its slot's last is read to the end already."""
    trace = trial.report.trace
    per_tile = DEPTH // STEP * 5  # loads of fragments
    loads = trace[(trace["space"] == "shared") & (trace["op"] == "load")]["step"].unique()
    copies = trace[trace["array"] == trial.own_name("A")]
    for t in range(trial.SLOTS - 1, trial.tiles):
        first = copies[[row[1] // DEPTH == t for row in copies["element"]]]["step"].min()
        read = int((loads < first).sum())
        if read >= (t - trial.SLOTS + 2) * per_tile:
            raise Refused(
                f"The numbers are right, but tile {t} is asked for when tile {t - trial.SLOTS + 1} has been "
                f"multiplied to its end. So only SLOTS - 2 tiles ({trial.SLOTS - 2}) are under way while one "
                "is multiplied. Ask before you read: the slot is free as soon as the lanes have met.",
                f"{trial.about}.",
            )


def _check_end(trial: SwizzleTrial) -> None:
    if not any(wait.at(0) == "0" for wait in trial.written.calls("cp_async_wait")):
        raise Refused(
            "The numbers are right, but no `cp_async_wait(0)` comes after the loop: the block may end while "
            "its last copies are under way.",
            f"{trial.about}.",
        )
