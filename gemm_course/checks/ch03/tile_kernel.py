"""Exercise 03.3: a GEMM kernel with tiles in shared memory, for any width T."""

from functools import cache

from gemm_course.checks.ch03.tile_mix_ups import mix_ups
from gemm_course.checks.core import Refused, call, check_begun, factory_of, kernel_of, line_at
from gemm_course.checks.engines.findings import FINDINGS
from gemm_course.checks.engines.float64 import why_float64
from gemm_course.checks.engines.gemm import GEMM, GemmTrial, hold_to_numbers, try_on
from gemm_course.checks.engines.problem import Geometry, Problem
from gemm_course.kernels import LADDER

WIDTHS = (4, 2, 8, 16, 32)  # the first is tried on every kind of problem


def prove_tiled(make_tiled) -> str:
    """What was proved of the learner's factory; raises Refused with the first thing wrong."""
    make = factory_of(make_tiled)
    kernels = {T: kernel_of(call(make, T), GEMM) for T in WIDTHS}
    whole = {T: try_on(kernels[T], geometry(T), whole_tiles(T)) for T in WIDTHS}
    check_begun(kernels[WIDTHS[0]], *(trial.report for trial in whole.values()))
    _check_shared_memory(whole)
    problems = 0
    for T, kernel in kernels.items():
        only = None if T == WIDTHS[0] else [whole_tiles(T), _ragged(T)]
        problems += len(
            hold_to_numbers(
                kernel, geometry(T), depth=T, mistakes=mix_ups(T), on_finding=FINDINGS, problems=only
            )
        )
    for T, trial in whole.items():
        for check in (_check_float64, _check_loads, _check_barriers, _check_sectors):
            check(T, trial)
    trial, q = whole[32], whole_tiles(32)
    _check_banks(32, trial)
    return (
        f"Right on {problems} problems, T from 2 to 32. With T = 32: {trial.lanes('load', 'A', 'B'):,} loads "
        f"from A and B instead of {2 * q.m * q.n * q.k:,}, {trial.report.barriers // _blocks(trial)} "
        f"barriers a block for its {q.k // 32} tiles, no race and no bank conflict."
    )


def geometry(T: int) -> Geometry:
    return Geometry((T, T), "columns")


def whole_tiles(T: int) -> Problem:
    """One row of two blocks, three tiles along k; from T = 8 on all rows start at sectors."""
    return Problem(T, 2 * T, 3 * T)


def _ragged(T: int) -> Problem:
    m, n = geometry(T).ragged()
    return Problem(m, n, T + 1, alpha=1.5, beta=-0.5, padding=3)


def _blocks(trial: GemmTrial) -> int:
    x, y = trial.geometry.grid(trial.problem.m, trial.problem.n)
    return x * y


# ---- shared memory -----------------------------------------------------------------------------------------


def _check_shared_memory(whole: dict[int, GemmTrial]):
    sizes = {T: trial.report.shared_bytes for T, trial in whole.items()}
    if not any(sizes.values()):
        raise Refused(
            "There is no shared memory in this kernel: every thread loads all it needs from A and B by "
            "itself, 2·m·n·k elements in all. Fetch tiles with `cuda.shared.array` and share them."
        )
    if len(set(sizes.values())) == 1:
        raise Refused(
            f"The tiles take {sizes[4]:,} bytes whatever T is: their size is written out. T is what the "
            "factory was called with; use it for the shapes, for the steps along k and for the inner loop."
        )
    for trial in whole.values():
        shared = trial.report.accesses.query("space == 'shared'")
        wide = shared[shared["bits"] == 64]
        if len(wide):
            raise Refused(
                "The tiles hold float64, 8 bytes an element: twice the shared memory, and two wavefronts "
                "where one is enough. `cuda.shared.array(..., float32)`.",
                line_at(trial.kernel, int(wide["line"].iloc[0])),
            )


# ---- the lesson: counts on whole tiles ---------------------------------------------------------------------


def _check_float64(T: int, trial: GemmTrial):
    doubles = trial.report.arithmetic.query("dtype == 'float64'")
    if len(doubles):
        lines = sorted(doubles["line"].unique())
        raise Refused(
            f"The result is right, but {doubles['lanes'].sum():,} operations are in float64. "
            + why_float64(trial.kernel, lines),
            line_at(trial.kernel, int(lines[0])),
        )


def _check_loads(T: int, trial: GemmTrial):
    q = trial.problem
    naive, needed = q.m * q.n * q.k, q.m * q.n * q.k // T
    a, b = trial.lanes("load", "A"), trial.lanes("load", "B")
    if a <= needed and b <= needed:
        return
    counted = f"{a + b:,} loads from A and B where 2·m·n·k / T = {2 * needed:,} are enough"
    where = f"With T = {T}, in the problem {q}."
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
        f"More is loaded than tiles need: {counted}. Each thread is to fetch one element of each tile.", where
    )


def _check_barriers(T: int, trial: GemmTrial):
    tiles = -(-trial.problem.k // T)
    executed = trial.report.barriers // _blocks(trial)
    if executed <= 2 * tiles:
        return
    where = f"With T = {T}: {executed} barriers a block for {tiles} tiles; {2 * tiles} are enough."
    if executed == (T + 1) * tiles and T > 2:
        raise Refused(
            "T + 1 barriers a tile, as in document 002: the second one stands inside the inner loop.", where
        )
    if executed == 3 * tiles:
        raise Refused(
            "There is one barrier more than necessary in every tile. Both tiles can be filled before a "
            "single one.",
            where,
        )
    raise Refused("More than two barriers a tile. Each of them keeps all threads waiting.", where)


@cache
def _reference_sectors(T: int) -> tuple[int, int]:
    """Of A and B, on whole tiles, by the course's own kernel."""
    kernel = LADDER["penny_xu_tile"].kernel({"BM": T, "BN": T, "BK": T})
    trial = try_on(kernel, geometry(T), whole_tiles(T))
    return trial.sectors("load", "A"), trial.sectors("load", "B")


def _check_sectors(T: int, trial: GemmTrial):
    for name, least in zip("AB", _reference_sectors(T)):
        sectors = trial.sectors("load", name)
        if sectors > least:
            raise Refused(
                f"The tile of {name} is not fetched coalesced: neighbours in x fetch elements of different "
                f"rows, {sectors:,} sectors where {least:,} are enough. In both tiles the column goes with "
                "`tx`.",
                f"With T = {T}, in the problem {trial.problem}.",
            )


def _check_banks(T: int, trial: GemmTrial):
    shared = trial.report.accesses.query("space == 'shared' and wavefronts > ideal_wavefronts")
    if shared.empty:
        return
    worst = shared.sort_values(["op", "wavefronts"], ascending=[True, False]).iloc[0]
    requests, wavefronts, ideal = (worst[name] for name in ("requests", "wavefronts", "ideal_wavefronts"))
    ways = f"{wavefronts / requests:g} wavefronts a request instead of {ideal / requests:g}"
    where = f"With T = {T}. {line_at(trial.kernel, int(worst['line']))}"
    if worst["op"] == "load":
        raise Refused(
            f"The result is right, but reading `{worst['array']}` has a bank conflict: {ways}. Neighbours in "
            "x walk down a column of the tile; let them read along a row, or all the same element.",
            where,
        )
    raise Refused(
        f"The result is right, but `{worst['array']}` has a bank conflict when it is stored: {ways}. "
        "Neighbours in x store down a column of the tile; `tx` is to be the last index.",
        where,
    )
