"""Exercise 07.6: the heart of the warp-tiled kernel, between notebook 06's fetching and storing."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gemm_course.checks.core import Refused, call, factory_of, kernel_of, line_at, nothing_yet
from gemm_course.checks.engines.common_mistakes import Mistake
from gemm_course.checks.engines.findings import FINDINGS
from gemm_course.checks.engines.gemm import GEMM, GemmTrial, hold_to_numbers, try_on
from gemm_course.checks.engines.lessons import barriers, in_registers, no_float64
from gemm_course.checks.engines.mistakes import along_k, result
from gemm_course.checks.engines.problem import Geometry, Problem, adversarial
from gemm_course.emulator import Finding, Watch
from gemm_course.figures.owners import NOBODY, SEVERAL, stored_elements
from gemm_course.model.formulas import document_003 as document

SIZES = ("BM", "BN", "BK", "WM", "WN", "TN", "WNITER")


@dataclass(frozen=True)
class Tiles:
    """One choice of tiles, with TM = 1."""

    BM: int
    BN: int
    BK: int
    WM: int
    WN: int
    TN: int
    WNITER: int

    def __str__(self) -> str:
        return ", ".join(f"{name} = {getattr(self, name)}" for name in SIZES)

    @property
    def values(self) -> tuple[int, ...]:
        return tuple(getattr(self, name) for name in SIZES)

    @property
    def threads(self) -> int:
        return self.BM * self.BN // (self.WM * self.WN) * 32

    @cached_property
    def down(self) -> int:
        """WMITER."""
        return document.wmiter(self.WM, self.WN, 1, self.TN, self.WNITER)

    @cached_property
    def sub(self) -> tuple[int, int]:
        """WSUBM, WSUBN."""
        return document.wsub(self.WM, self.WN, 1, self.TN, self.WNITER)

    def first(self, warp: tuple[int, int], lane: tuple[int, int]) -> tuple[int, int]:
        """y0 and x0 of a lane (row, column) of a warp (row, column)."""
        return warp[0] * self.WM + lane[0], warp[1] * self.WN + lane[1] * self.TN


TILES = (
    Tiles(32, 64, 8, 16, 32, 4, 1),  # tried on every kind of problem
    Tiles(64, 24, 4, 32, 24, 4, 3),
    Tiles(32, 32, 8, 32, 32, 8, 1),
)


class WarpGeometry(Geometry):
    """Blocks of threads in one row that cover BM by BN of C, as document 003 numbers them."""

    def __init__(self, tiles: Tiles):
        super().__init__((tiles.threads, 1), "columns")
        object.__setattr__(self, "tiles", tiles)

    @property
    def rows_and_columns(self) -> tuple[int, int]:
        return self.tiles.BM, self.tiles.BN

    def owner(self, row: int, col: int) -> str:
        t = self.tiles
        (block_y, y), (block_x, x) = divmod(row, t.BM), divmod(col, t.BN)
        warp = y // t.WM * (t.BN // t.WN) + x // t.WN
        lane = y % t.WM % t.sub[0] * (t.sub[1] // t.TN) + x % t.WN % t.sub[1] // t.TN
        return f"thread {32 * warp + lane} (warp {warp}, lane {lane}) of block ({block_x}, {block_y})"


def prove_heart(make_warp_tiled) -> str:
    """What was proved of the learner's factory; raises Refused with the first thing wrong."""
    make = factory_of(make_warp_tiled, SIZES)
    kernels = {tiles: kernel_of(call(make, *tiles.values), GEMM) for tiles in TILES}
    whole, problems = [], 0
    for tiles, kernel in kernels.items():
        trial = try_on(kernel, WarpGeometry(tiles), whole_tiles(tiles))
        _check_begun(trial)
        if not trial.right:
            _check_owners(kernel, tiles)
            _hold_numbers(kernel, tiles, [whole_tiles(tiles)])
        others = _all_kinds(tiles) if tiles == TILES[0] else [_ragged(tiles)]
        problems += 1 + len(_hold_numbers(kernel, tiles, others))
        whole.append(trial)
    for tiles, trial in zip(TILES, whole):
        _hold_to_lesson(tiles, trial)
    t = TILES[0]
    reads, products = t.down + t.WNITER * t.TN, t.down * t.WNITER * t.TN
    return (
        f"Right on {problems} problems, with {len(TILES)} choices of tiles. With {t} a thread reads "
        f"{reads} elements of shared memory for {products} multiply-adds; no race, no bank conflict in "
        "reading."
    )


def whole_tiles(tiles: Tiles) -> Problem:
    """One row of two blocks, three tiles along k."""
    return Problem(tiles.BM, 2 * tiles.BN, 3 * tiles.BK)


def _ragged(tiles: Tiles) -> Problem:
    m, n = WarpGeometry(tiles).ragged()
    return Problem(m, n, tiles.BK + 1, alpha=1.5, beta=-0.5, padding=3, row_multiple=4)


def _all_kinds(tiles: Tiles) -> list[Problem]:
    return [problem.but(row_multiple=4) for problem in adversarial(WarpGeometry(tiles), tiles.BK)]


def _check_begun(trial: GemmTrial) -> None:
    """The stub fetches and stores, but nobody reads the tiles."""
    q = trial.problem
    tiles_alone = q.m * q.n * q.k // trial.geometry.tiles.BM + q.m * q.n * q.k // trial.geometry.tiles.BN
    if trial.report.total("lanes", space="shared", op="load"):
        return
    if _loaded(trial) <= tiles_alone:
        raise nothing_yet()
    raise Refused(
        "The tiles are fetched and then not used: A and B are read again from global memory. Take a and b "
        "from `As` and `Bs`."
    )


def _loaded(trial: GemmTrial) -> int:
    """Elements of A and B that are loaded from global memory."""
    arrays = trial.own_name("A"), trial.own_name("B")
    return sum(trial.report.total("bytes", space="global", op="load", array=array) for array in arrays) // 4


def _hold_numbers(kernel, tiles: Tiles, problems: list[Problem]) -> list[GemmTrial]:
    return hold_to_numbers(
        kernel,
        WarpGeometry(tiles),
        depth=tiles.BK,
        mistakes=(*_mistakes(tiles), *along_k(tiles.BK, "BK")),
        on_finding={**FINDINGS, "out_of_bounds": _out_of_bounds, "uninitialised_read": _uninitialised},
        problems=problems,
    )


# ---- who stores what ---------------------------------------------------------------------------------------


def _check_owners(kernel, tiles: Tiles) -> None:
    """Each element of a whole tile is stored by one thread; which, follows from y0 and x0."""
    problem = whole_tiles(tiles)
    trial = try_on(kernel, WarpGeometry(tiles), problem, watch=Watch(local=False))
    owner, _ = stored_elements(trial.report.trace, (problem.m, problem.n))
    inside = owner[:, : tiles.BN]
    if (inside >= 0).all() and (owner[:, tiles.BN :] == NOBODY).all():
        return
    found = _stores(trial.report.trace, tiles)
    for message, first in WRONG_STARTS:
        if all(found[tid] == _places(tiles, *first(tiles, tid), problem) for tid in range(tiles.threads)):
            raise Refused(message, f"With {tiles}.")
    raise Refused(
        f"`y0` or `x0` is not this thread's first row or column. {_astray(owner, tiles)}", f"With {tiles}."
    )


def _stores(trace, tiles: Tiles) -> dict[int, list]:
    stores = trace[(trace["space"] == "global") & (trace["op"] == "store")]
    found: dict[int, list] = {tid: [] for tid in range(tiles.threads)}
    for tid, element in zip(stores["thread"], stores["element"]):
        found[tid].append(tuple(element))
    return found


def _places(t: Tiles, y0: int, x0: int, q: Problem) -> list[tuple[int, int]]:
    """Where a thread that begins at y0, x0 stores, as far as C has it."""
    rows = [y0 + i * t.sub[0] for i in range(t.down)]
    columns = [x0 + j * t.sub[1] + e for j in range(t.WNITER) for e in range(t.TN)]
    return [(row, col) for row in rows for col in columns if row < q.m and col < q.n]


def _astray(owner: np.ndarray, tiles: Tiles) -> str:
    inside = owner[:, : tiles.BN]
    for what, words in ((SEVERAL, "is stored by several threads"), (NOBODY, "is stored by nobody")):
        if (inside == what).any():
            row, col = map(int, np.argwhere(inside == what)[0])
            return f"First: `C[{row}, {col}]` of the block's tile {words}."
    row, col = map(int, np.argwhere(owner[:, tiles.BN :] != NOBODY)[0])
    return f"Block (0, 0) stores `C[{row}, {col + tiles.BN}]`, which belongs to the next block."


def _warp(t: Tiles, tid: int) -> tuple[int, int]:
    return document.warp(tid, t.BN, t.WN)


def _lane(t: Tiles, tid: int) -> tuple[int, int]:
    return document.lane(tid, t.TN, t.sub[1])


def _lane_without_warp(t: Tiles, tid: int) -> tuple[int, int]:
    across = t.sub[1] // t.TN
    return tid // across, tid % across


def _count_of_threads(t: Tiles, tid: int) -> tuple[int, int]:
    y0, _ = t.first(_warp(t, tid), _lane(t, tid))
    return y0, _warp(t, tid)[1] * t.WN + _lane(t, tid)[1]


WRONG_STARTS: tuple[tuple[str, Callable], ...] = (
    (
        "`//` and `%` are exchanged for the lane. Lanes lie side by side first: the row of a lane is "
        "`lane // (WSUBN // TN)`, its column the remainder.",
        lambda t, tid: t.first(_warp(t, tid), _lane(t, tid)[::-1]),
    ),
    (
        "`//` and `%` are exchanged for the warp. Warps lie side by side first: the row of a warp is "
        "`warp // (BN // WN)`, its column the remainder.",
        lambda t, tid: t.first(_warp(t, tid)[::-1], _lane(t, tid)),
    ),
    (
        "The thread's number in the block stands where its lane is meant, `threadIdx.x % 32`.",
        lambda t, tid: t.first(_warp(t, tid), _lane_without_warp(t, tid)),
    ),
    (
        "The warp is left out: all warps store the same part of the tile. A warp's tile begins at row "
        "`warp // (BN // WN) * WM` and column `warp % (BN // WN) * WN`.",
        lambda t, tid: t.first((0, 0), _lane(t, tid)),
    ),
    (
        "`x0` counts threads where it should count elements: a lane has TN columns side by side, so its "
        "column among the lanes is multiplied by TN.",
        _count_of_threads,
    ),
    (
        "All threads begin at row 0 and column 0. Work out `y0` and `x0` from warp and lane.",
        lambda t, tid: (0, 0),
    ),
    (
        "`y0` and `x0` are exchanged: y0 is a row, x0 a column.",
        lambda t, tid: t.first(_warp(t, tid), _lane(t, tid))[::-1],
    ),
)


# ---- wrong numbers -----------------------------------------------------------------------------------------


def _taken_from(t: Tiles, row: Callable | None = None, column: Callable | None = None) -> Callable:
    """C where a thread reads row(y0, i) of the tile for its row i, and column(x0, j, e) for its column."""
    rows, columns = np.arange(t.BM), np.arange(t.BN)
    if row:
        rows = np.array([row(*_split(r, t.WM, t.sub[0])) for r in rows])
    if column:
        columns = np.array([column(*_split_column(c, t)) for c in columns])
    if rows.max() >= t.BM or columns.max() >= t.BN:
        return lambda q: None
    return _mixed(t, np.eye(t.BM)[rows], np.eye(t.BN)[:, columns])


def _added_to(t: Tiles, row: Callable | None = None, column: Callable | None = None) -> Callable:
    """C where what belongs to a row is added to row(y0, i), or to a column, to column(x0, j, e)."""
    down, right = np.eye(t.BM), np.eye(t.BN)
    if row:
        down = sum(np.outer(down[row(*_split(r, t.WM, t.sub[0]))], down[r]) for r in range(t.BM))
    if column:
        right = sum(np.outer(right[c], right[column(*_split_column(c, t))]) for c in range(t.BN))
    return _mixed(t, down, right)


def _mixed(t: Tiles, down: np.ndarray, right: np.ndarray) -> Callable:
    """C whose every tile is down @ (the tile of A @ B) @ right."""

    def predict(q: Problem):
        blocks_down, blocks_right = -(-q.m // t.BM), -(-q.n // t.BN)
        full = np.zeros((blocks_down * t.BM, blocks_right * t.BN))
        full[: q.m, : q.n] = q.AB
        tiles = full.reshape(blocks_down, t.BM, blocks_right, t.BN)
        mixed = np.einsum("xr,ardc,cy->axdy", down, tiles, right, optimize=True)
        return result(q, mixed.reshape(full.shape)[: q.m, : q.n])

    return predict


def _split(place: int, warp_tile: int, step: int) -> tuple[int, int]:
    """(first place of the thread in its warp's tile, which step) of a row or column of the tile."""
    within = place % warp_tile
    return place - within + within % step, within // step


def _split_column(place: int, t: Tiles) -> tuple[int, int, int]:
    """(first column of the thread, which step, which of its TN columns)."""
    first, j = _split(place, t.WN, t.sub[1])
    return first - first % t.TN, j, first % t.TN


def _steps_of_each_tile(t: Tiles, kept: Callable) -> Callable:
    """C where of each tile along k only some steps count: kept(p) says which."""

    def predict(q: Problem):
        steps = [p for p in range(q.k) if kept(p % t.BK)]
        return result(q, q.A[:, steps] @ q.B[steps]) if len(steps) < q.k else None

    return predict


def _mistakes(t: Tiles) -> tuple[Mistake, ...]:
    return (
        Mistake(
            "As is read at `y0 + i`: the stride is missing. The thread's rows lie WSUBM apart, `y0 + i * "
            "WSUBM`.",
            _taken_from(t, row=lambda y0, i: y0 + i),
        ),
        Mistake(
            "Bs is read at `x0 + j * TN + e`: the stride is missing. The thread's runs of TN columns lie "
            "WSUBN apart, `x0 + j * WSUBN + e`.",
            _taken_from(t, column=lambda x0, j, e: x0 + j * t.TN + e),
        ),
        Mistake(
            "All rows of a thread use the same element of As: it must go on with `i`, `y0 + i * WSUBM`.",
            _taken_from(t, row=lambda y0, i: y0),
        ),
        Mistake(
            "All columns of a step use the same element of Bs: it must go on with `e`.",
            _taken_from(t, column=lambda x0, j, e: x0 + j * t.sub[1]),
        ),
        Mistake(
            "All steps across use the same columns of Bs: they must go on with `j`, `x0 + j * WSUBN + e`.",
            _taken_from(t, column=lambda x0, j, e: x0 + e),
        ),
        Mistake(
            "`acc` has no `i`: what belongs to all rows of a thread is added up in one. `acc[i, j, e]` "
            "has a place for each result.",
            _added_to(t, row=lambda y0, i: y0),
        ),
        Mistake(
            "`acc` has no `e`: what belongs to the TN columns of a step is added up in one. `acc[i, j, "
            "e]` has a place for each result.",
            _added_to(t, column=lambda x0, j, e: x0 + j * t.sub[1]),
        ),
        Mistake(
            "Only the last step of each tile along k counts: the products are added after the loop over "
            "p, or p does not run. They belong into it.",
            _steps_of_each_tile(t, lambda p: p == t.BK - 1),
        ),
        Mistake(
            "Only the first step of each tile along k counts: p has to go from 0 to BK - 1.",
            _steps_of_each_tile(t, lambda p: p == 0),
        ),
        Mistake(
            "The last step of each tile along k is missing: p goes up to BK - 1.",
            _steps_of_each_tile(t, lambda p: p < t.BK - 1),
        ),
    )


def _out_of_bounds(finding: Finding, trial: GemmTrial) -> str | None:
    """As is transposed: (BK, BM)."""
    accesses = trial.report.accesses.query("array == @finding.array")
    if not len(accesses) or set(accesses["space"]) != {"shared"}:
        return None
    return (
        f"`{finding.array}` is read outside its bounds. Both tiles are BK rows high: As is transposed, "
        f"`As[p, row]`, and Bs is `Bs[p, column]`. {finding.message}"
    )


def _uninitialised(finding: Finding, trial: GemmTrial) -> str | None:
    local = trial.report.accesses.query("space == 'local' and array == @finding.array")
    if len(local):
        return (
            f"An element of `{finding.array}` is used before anything was put into it: fill all of it "
            f"first, and clear acc before the loop along k. {finding.message}"
        )
    return FINDINGS["uninitialised_read"](finding, trial)


# ---- the lesson: counts on whole tiles ---------------------------------------------------------------------


def _hold_to_lesson(t: Tiles, trial: GemmTrial) -> None:
    q, where = trial.problem, f"With {t}"
    no_float64(trial)
    in_registers(trial, t.BM, t.BN, t.BK, where)
    needed = q.m * q.n * q.k // t.BM + q.m * q.n * q.k // t.BN
    if _loaded(trial) > needed:
        raise Refused(
            f"The result is right, but {_loaded(trial):,} elements of A and B are loaded where {needed:,} "
            "are enough: a tile is fetched once.",
            f"{where}, in the problem {q}.",
        )
    _check_reads(t, trial)
    barriers(trial, t.BK, where)
    _check_banks(t, trial)


def _check_reads(t: Tiles, trial: GemmTrial) -> None:
    """WMITER + WNITER · TN reads for WMITER · WNITER · TN multiply-adds."""
    products, enough = t.down * t.WNITER * t.TN, t.down + t.WNITER * t.TN
    a_step = reads_per_multiply_add(trial) * products
    if a_step <= enough:
        return
    where = (
        f"With {t}: in a step along k a thread reads {a_step:g} elements of shared memory for its {products} "
        f"multiply-adds; {enough} are enough."
    )
    if a_step == 2 * products:
        raise Refused(
            "The result is right, but As and Bs are read inside all loops, two reads for every "
            "multiply-add. First fill a and b, then multiply.",
            where,
        )
    if a_step in (t.down + products, t.WNITER * t.TN + products):
        once, again = ("As", "Bs") if a_step == t.down + products else ("Bs", "As")
        raise Refused(
            f"The result is right, and {once} is read once for each step. But {again} is read again for "
            "every product; its elements belong into registers as well.",
            where,
        )
    raise Refused(
        "The result is right, but shared memory is read more often than needed: WMITER elements of As and "
        "WNITER · TN of Bs serve all products of a step.",
        where,
    )


def _check_banks(t: Tiles, trial: GemmTrial) -> None:
    loads = trial.report.accesses.query(
        "space == 'shared' and op == 'load' and wavefronts > ideal_wavefronts"
    )
    if loads.empty:
        return
    worst = loads.iloc[0]
    raise Refused(
        f"The result is right, but reading `{worst['array']}` has a bank conflict: {worst['wavefronts']:,} "
        f"wavefronts where {worst['ideal_wavefronts']:,} are enough. Which words do the lanes of a warp "
        "want at one time?",
        f"With {t}. {line_at(trial.kernel, int(worst['line']))}",
    )
