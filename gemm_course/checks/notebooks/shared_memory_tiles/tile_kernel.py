"""Checks ``tile_kernel``: a GEMM kernel with tiles in shared memory, for any width T."""

import inspect
from collections.abc import Sequence
from functools import cache

from gemm_course.checks.core import Refused, Written, check_begun, exercise
from gemm_course.checks.engines.gemm import GemmTrial, Likely, try_on
from gemm_course.checks.engines.gemm_factory import GemmFactory
from gemm_course.checks.engines.lessons import barriers, no_float64, no_number_beside, stored_once
from gemm_course.checks.engines.problem import Geometry
from gemm_course.checks.engines.slips_in_source import refuse_swapped_axes
from gemm_course.checks.engines.tiles import Tiles, tile_choices
from gemm_course.checks.notebooks.shared_memory_tiles.tile_mix_ups import mix_ups
from gemm_course.kernels import LADDER
from lockstep import Finding

TILES = tile_choices("T", (4,), (2,), (8,), (16,), (32,))
WARP_WIDE = TILES[-1]


@exercise(
    start="declare two tiles of T by T with `cuda.shared.array`, then loop over k in steps of T.",
    hints=(
        "In every iteration of the loop over `k0`: fetch one element of A and one of B into the tiles, wait, "
        "add up T products from the tiles, wait.",
        "All threads must reach both barriers, also those outside C. So no `return` and no `if` around them: "
        "a thread outside the matrix stores a zero into the tile instead.",
        "`As[ty, tx]` takes `A[row, k0 + tx]` and `Bs[ty, tx]` takes `B[k0 + ty, col]`, each with a zero "
        "where one of its two indices is past the end. The products are `As[ty, p] * Bs[p, tx]`.",
        "`for k0 in range(0, k, T):` two stores, `cuda.syncthreads()`, `for p in range(T):` one "
        "multiply-add, `cuda.syncthreads()`. After the loop, inside the guard, the store of C as in "
        "notebook [[coalesced.ipynb]].",
    ),
)
def tile_kernel(make_tiled):
    """A factory of GEMM kernels with tiles of T by T in shared memory."""
    _check_slices(make_tiled)
    proof = FACTORY.prove(make_tiled)
    trial = proof.trials[WARP_WIDE]
    q = trial.problem
    return (
        f"Right on {proof.problems} problems, T from 2 to 32. With T = 32: {trial.lanes('load', 'A', 'B'):,} "
        f"loads from A and B instead of {2 * q.m * q.n * q.k:,}, {trial.barriers_per_block} barriers per "
        f"block for its {q.k // 32} tiles, no race and no bank conflict." + _taking_turns(trial)
    )


def _taking_turns(trial: GemmTrial) -> str:
    """Return a remark on two pairs of tiles with one barrier per tile, or ""."""
    if trial.barriers_per_block > trial.problem.k // trial.tiles.T + 1:
        return ""
    return (
        " One barrier per tile is enough here: the next tiles go where nobody reads. The price is "
        f"{trial.report.shared_bytes:,} bytes of shared memory instead of {8 * trial.tiles.T**2:,}."
    )


def _check_slices(make_tiled) -> None:
    """Refuse a slice of a matrix, and say what it means, before its shape fails at an edge."""
    if not inspect.isfunction(make_tiled):
        return
    for _, value in Written(make_tiled).assignments:
        for row in (element for element in value.elements() if element.is_slice):
            raise Refused(
                f"`{row.text}` is a row of many elements, and every thread would move all of them. Each "
                "thread must fetch one element of each tile: `As[ty, tx] = ...`.",
                row.where,
            )


def _geometry(tiles: Tiles) -> Geometry:
    return Geometry((tiles.T, tiles.T), "columns")


def _begun(*trials: GemmTrial) -> None:
    check_begun(trials[0].kernel, *(trial.report for trial in trials))


# ---- shared memory -----------------------------------------------------------------------------------------


def _before_numbers(trials: Sequence[GemmTrial]) -> None:
    _check_shared_memory(trials)
    refuse_swapped_axes(trials[0], right=trials[0].right)


def _check_shared_memory(trials: Sequence[GemmTrial]) -> None:
    sizes = {trial.report.shared_bytes for trial in trials}
    if not any(sizes):
        raise Refused(
            "There is no shared memory in this kernel: every thread loads all it needs from A and B by "
            "itself, 2·m·n·k elements in all. Fetch tiles with `cuda.shared.array` and share them."
        )
    if len(sizes) == 1:
        raise Refused(
            f"The tiles take {sizes.pop():,} bytes whatever T is: their size is written out. T is what the "
            "factory was called with; use it for the shapes, for the steps along k and for the inner loop."
        )
    for trial in trials:
        wide = trial.report.accesses.query("space == 'shared' and bits == 64")
        if len(wide):
            raise Refused(
                "The tiles hold float64, 8 bytes per element: twice the shared memory, and two wavefronts "
                "where one is enough. `cuda.shared.array(..., float32)`.",
                trial.line(wide["line"].iloc[0]),
            )


def _one_element_each(trial: GemmTrial) -> None:
    """Refuse at once what is slow with a wide T: every thread stores to all elements of a tile."""
    race, T = trial.error("shared_race"), trial.tiles.T
    stores = trial.report.accesses.query("space == 'shared' and op == 'store'")
    most = stores[stores["lanes"] >= trial.threads * T * T]
    if race is None or most.empty:
        return
    line, array = most["line"].iloc[0], most["array"].iloc[0]
    fetched = not trial.report.accesses.query("space == 'global' and op == 'load' and line == @line").empty
    raise Refused(
        f"Every thread fills the whole tile `{array}`. Each must fetch one element: `{array}[ty, tx] = ...`."
        if fetched
        else f"Every thread clears the whole tile `{array}`, {T * T} elements each, and all store to "
        "the same places: a race. The tile needs no clearing: in every iteration each thread stores its own "
        "element, or a zero where the matrix has ended.",
        f"{trial.about}. {trial.line(line)}",
    )


def _same_in_every_block(finding: Finding, trial: GemmTrial) -> str | None:
    if finding.array != trial.own_name("C") or trial.stored.sum() >= trial.problem.m * trial.problem.n:
        return None
    return (
        "Several blocks store to the same elements of C: the block index is missing. `tx` and `ty` begin "
        f"anew in every block; `cuda.grid(2)` counts on. {finding.message}"
    )


def _past_the_tile(finding: Finding, trial: GemmTrial) -> str | None:
    """Return the message for an inner loop past the tile because its length is written out, or None."""
    T = trial.tiles.T
    reads = trial.report.accesses.query("site == @finding.site and op == 'load' and space == 'shared'")
    if reads.empty or max(finding.element) != T:
        return None
    return (
        f"The inner loop goes past the tile, which has {T} columns and rows here: it must run to T, "
        f"`range(T)`. {finding.message}"
    )


# ---- lessons: counts on whole tiles ------------------------------------------------------------------------


def _loads(trial: GemmTrial) -> None:
    """Refuse a block that loads one of its tiles more than once."""
    q = trial.problem
    naive, needed = q.m * q.n * q.k, q.m * q.n * q.k // trial.tiles.T
    a, b = trial.lanes("load", "A"), trial.lanes("load", "B")
    if a <= needed and b <= needed:
        return
    counted = f"{a + b:,} loads from A and B where 2·m·n·k / T = {2 * needed:,} are enough"
    where = f"{trial.about}, in the problem {q}."
    if a > naive and b > naive:
        raise Refused(
            f"Tiles are filled, but the inner loop goes past the tiles to A and B itself: {counted}. "
            "Multiply `As` and `Bs`.",
            where,
        )
    if (a <= needed) != (b <= needed):
        shared, direct = ("A", "B") if a <= needed else ("B", "A")
        raise Refused(
            f"There is a tile of only {shared}; {direct} is still loaded by every thread by itself: "
            f"{counted}.",
            where,
        )
    raise Refused(
        f"More is loaded than tiles need: {counted}. Each thread must fetch one element of each tile.", where
    )


def _all_fetch(trial: GemmTrial) -> None:
    """Refuse a thread that fetches a whole tile for the others."""
    for name in "AB":
        if trial.tiles.T > 2 and trial.total("requests", "load", name) == trial.lanes("load", name):
            raise Refused(
                f"One thread fetches the tile of {name} element by element, and the others fetch nothing. "
                "Every thread must fetch one element of each tile.",
                f"{trial.about}, in the problem {trial.problem}.",
            )


def _too_many_barriers(trial: GemmTrial, executed: int, tiles: int) -> str:
    T, stored = trial.tiles.T, trial.report.total("lanes", space="shared", op="store")
    if executed == 2 * (tiles + 1) and stored == 2 * (tiles + 1) * trial.threads:
        return (
            f"There is one tile too many: k = {trial.problem.k} is {tiles} tiles of {T}, and the loop takes "
            f"{tiles + 1}. `k // T + 1` is one too many where T divides k; `range(0, k, T)` is right for all."
        )
    if executed == (T + 1) * tiles and T > 2:
        return "T + 1 barriers per tile, as in document 002: the second one stands inside the inner loop."
    if executed == 3 * tiles:
        return (
            "There is one barrier more than necessary in every tile. Both tiles can be filled before a "
            "single one."
        )
    if 0 < (outside := executed - 2 * tiles) < tiles:
        stand = "One barrier stands" if outside == 1 else f"{outside} barriers stand"
        return (
            f"{stand} outside the loop over k, and the two inside it are enough: before the loop nothing is "
            "filled, and after it nobody fills the tiles again."
        )
    return "More than two barriers per tile. Each of them keeps all threads waiting."


@cache
def _least_sectors(tiles: Tiles) -> tuple[int, int]:
    """Return the sectors of A and of B that the course's own kernel moves on whole tiles."""
    kernel = LADDER["penny_xu_tile"].kernel(dict(zip(("BM", "BN", "BK"), tiles.block_tile)))
    trial = try_on(kernel, _geometry(tiles), FACTORY.whole_problem(tiles))
    return trial.sectors("load", "A"), trial.sectors("load", "B")


def _coalesced(trial: GemmTrial) -> None:
    """Refuse tiles in which neighbours in x do not fetch neighbours of a row."""
    for name, least in zip("AB", _least_sectors(trial.tiles)):
        sectors = trial.sectors("load", name)
        if sectors > least:
            raise Refused(
                f"The tile of {name} is not fetched coalesced: neighbours in x fetch elements of different "
                f"rows, {sectors:,} sectors where {least:,} are enough. In both tiles the column goes with "
                f"`cuda.threadIdx.x`{_tx_of_y(trial)}.",
                f"{trial.about}, in the problem {trial.problem}.",
            )


def _tx_of_y(trial: GemmTrial) -> str:
    """Return a remark on a `tx` that holds a thread's y, or ""."""
    named = {(target.text, value.text) for target, value in trial.written.assignments}
    return ", and your `tx` holds `cuda.threadIdx.y`" if ("tx", "cuda.threadIdx.y") in named else ""


def _no_bank_conflict(trial: GemmTrial) -> None:
    """Refuse accesses of shared memory with more wavefronts than needed, in tiles as wide as a warp."""
    slow = trial.report.accesses.query("space == 'shared' and wavefronts > ideal_wavefronts")
    if trial.tiles != WARP_WIDE or slow.empty:
        return
    worst = slow.sort_values(["op", "wavefronts"], ascending=[True, False]).iloc[0]
    requests, wavefronts, ideal = (worst[name] for name in ("requests", "wavefronts", "ideal_wavefronts"))
    ways = f"{wavefronts / requests:g} wavefronts per request instead of {ideal / requests:g}"
    where = f"{trial.about}. {trial.line(worst['line'])}"
    if worst["op"] == "load":
        raise Refused(
            f"The result is right, but reading `{worst['array']}` has a bank conflict: {ways}. Neighbours in "
            "x walk down a column of the tile; let them read along a row, or all the same element.",
            where,
        )
    raise Refused(
        f"The result is right, but `{worst['array']}` has a bank conflict when it is stored: {ways}. "
        "Neighbours in x store down a column of the tile; `cuda.threadIdx.x` must be the last index.",
        where,
    )


FACTORY = GemmFactory(
    tiles=TILES,
    geometry=_geometry,
    likely=lambda tiles: Likely(
        mix_ups(tiles.T), findings={"global_race": _same_in_every_block, "out_of_bounds": _past_the_tile}
    ),
    lessons=(
        no_float64,
        no_number_beside,
        stored_once,
        _loads,
        barriers(2, _too_many_barriers),
        _all_fetch,
        _coalesced,
        _no_bank_conflict,
    ),
    begun=_begun,
    at_first=_one_element_each,
    before_numbers=_before_numbers,
)
