"""Checks ``stencil``: weighted sums of 3 × 3 neighbours, through a shared tile with a halo."""

from __future__ import annotations

import numpy as np

from gemm_course.checks.core import Refused, call, check_begun, exercise, factory_of, kernel_of
from gemm_course.checks.engines.lessons import no_float64, no_number_beside
from gemm_course.checks.engines.one_tile import (
    refuse_one_for_all,
    refuse_other_types,
    refuse_races,
    refuse_repeated_stores,
    refuse_written_input,
    refuse_written_out_size,
)
from gemm_course.checks.engines.trial import Trial, try_kernel
from gemm_course.checks.notebooks.warp_tiles.stencil_slips import mix_ups, sums
from lockstep import Finding, Watch

SIZES = (4, 8, 16, 32)
NAMES = ("A", "w", "out")


def _shapes(T: int) -> tuple[tuple[int, int], ...]:
    """Return the shapes of A. In the first all blocks are whole, and the one in the middle has neighbours."""
    return (3 * T, 3 * T), (T + 3, 2 * T + 5), (2 * T + 1, T), (2, 2 * T + 3), (1, 1)


@exercise(
    start="a block's T × T results need a tile with a row and a column more on each side. Declare it.",
    hints=(
        "The tile has S × S elements, S = T + 2: `tile[r, c]` is the element of A in row `row0 - 1 + r`, "
        "column `col0 - 1 + c`, or 0 where A has none.",
        "There are more elements than threads. Walk as in [[tile_walk]]: thread `ty * T + tx` fetches "
        "elements `e` from `range(ty * T + tx, S * S, T * T)`, in row `e // S`, column `e % S`.",
        "A negative index counts from the end, in Numba as in Python, and nobody warns you. So four "
        "comparisons guard the load: `0 <= r`, `r < m`, `0 <= c`, `c < n`.",
        "After the barrier the sum is that of `w[i, j] * tile[ty + i, tx + j]`, i and j from 0 to 2. Only "
        "the store has a guard then.",
    ),
)
def stencil(make_stencil):
    """A factory of kernels (A, w, out): out[i, j] is the sum of w[a, b] * A[i + a - 1, j + b - 1]."""
    make = factory_of(make_stencil, ("T",))
    kernels = {T: kernel_of(call(make, T), NAMES) for T in SIZES}
    trials = {T: [_try_on(kernel, T, shape) for shape in _shapes(T)] for T, kernel in kernels.items()}
    all_trials = [trial for of_T in trials.values() for trial in of_T]
    small, whole = trials[SIZES[0]][0], trials[SIZES[-1]][0]
    check_begun(whole.kernel, *(trial.report for trial in all_trials))
    _check_tile(trials, small)
    for trial in all_trials:
        refuse_races(trial)
    for trial in all_trials:
        _check_numbers(trial)
    for trial in all_trials:
        refuse_repeated_stores(trial)
        _check_loads(trial)
    refuse_one_for_all(whole)
    no_float64(whole)
    no_number_beside(whole)
    m, n = whole.after["out"].shape
    return (
        f"Right for {len(all_trials)} shapes, with T from {SIZES[0]} to {SIZES[-1]}. With T = 32 and {m} × "
        f"{n}: {whole.lanes('load', 'A'):,} loads from A instead of {_naive_loads(m, n):,}. For each of its "
        f"multiply-adds a warp asks for {_wavefronts(whole):.3g} wavefronts, of the tile and of w."
    )


def _try_on(kernel, T: int, shape: tuple[int, int], **options) -> Trial:
    m, n = shape
    rng = np.random.default_rng((T, m, n))
    A, w = (rng.uniform(1, 2, size).astype(np.float32) for size in (shape, (3, 3)))
    # These bits are a NaN that no unfilled place of a tile holds, so that a store is seen whatever it stores.
    out = np.full(shape, 0x7FC0BEEF, np.uint32).view(np.float32)
    about = f"With T = {T}, and A of {m} × {n}"
    return try_kernel(kernel, NAMES, (-(-n // T), -(-m // T)), (T, T), A, w, out, about=about, **options)


def _naive_loads(m: int, n: int) -> int:
    """Return the loads of A if each thread loads its result's neighbours by itself, as far as they exist."""
    return (3 * m - 2) * (3 * n - 2)


def _wavefronts(whole: Trial) -> float:
    """Return a warp's wavefronts for reads of the tile and of w, per multiply-add.

    All lanes read the same element of w, so that a request for it is one wavefront.
    """
    reads = whole.accesses("load")["wavefronts"].sum() + whole.total("requests", "load", "w")
    return reads / (9 * whole.threads / 32)


# ---- the tile ----------------------------------------------------------------------------------------------


def _check_tile(trials: dict[int, list[Trial]], small: Trial) -> None:
    refuse_written_input(small)
    if not small.report.shared_bytes:
        m, n = small.after["out"].shape
        raise Refused(
            f"There is no shared tile: A is loaded {small.lanes('load', 'A'):,} times for its {m * n:,} "
            "elements, up to nine times each. Fetch a tile with `cuda.shared.array` and read it instead.",
            f"{small.about}.",
        )
    refuse_written_out_size([of_T[0] for of_T in trials.values()])
    refuse_other_types(small)
    T, words = small.block[0], small.report.shared_bytes // 4
    if words < (T + 2) ** 2:
        raise Refused(
            f"The tile has {words} elements with T = {T}, and there is no room for the whole halo: the "
            f"block's results need the elements around them too, (T + 2) × (T + 2) = {(T + 2) ** 2}.",
            f"{small.about}.",
        )


# ---- numbers, holes and guards -----------------------------------------------------------------------------


def _check_numbers(trial: Trial) -> None:
    A, w, out = trial.before["A"], trial.before["w"], trial.after["out"]
    expected = sums(A, w)
    wrong = ~np.isclose(out, expected, rtol=1e-4)
    if not wrong.any() and not trial.report.errors:
        return
    where = trial.first_wrong("out", wrong, expected) if wrong.any() else f"{trial.about}."
    _check_holes(trial)
    _check_outside(trial)
    if trial.grid[0] > 2 and min(trial.grid) > 2:
        for message, made in mix_ups(A, w, trial.block[0]):
            if np.allclose(out, made, rtol=1e-4):
                raise Refused(message, where)
    trial.refuse_errors(where)
    _check_stored(trial, where)
    raise Refused("The numbers are wrong.", where)


def _check_stored(trial: Trial, where: str) -> None:
    touched = trial.touched("out")
    if touched.all():
        return
    inner = np.zeros_like(touched)
    inner[1:-1, 1:-1] = True
    if (touched == inner).all():
        raise Refused(
            "The results at the edges of A are never stored. They have fewer neighbours, and the missing "
            "ones count as 0.",
            where,
        )
    raise Refused("Some results are never stored.", where)


def _check_holes(trial: Trial) -> None:
    """Refuse a tile of which a part is read that nobody filled."""
    finding = trial.error("uninitialised_read")
    if finding is None:
        return
    missing = _never_filled(trial)
    raise Refused(f"{missing} {finding.message}", f"{trial.line(finding)}. {trial.about}.")


def _never_filled(trial: Trial) -> str:
    """Return which part of the tile nobody fills, judged by a block that has neighbours on all sides."""
    T = trial.block[0]
    S, array = T + 2, trial.error("uninitialised_read").array
    watched = _try_on(trial.kernel, T, _shapes(T)[0], watch=Watch(block=(1, 1, 0))).report.trace
    stores = watched[(watched["array"] == array) & (watched["op"] == "store")]
    filled = set(stores["element"])
    if not filled:
        return f"Nothing is ever stored into `{array}`."
    if not all(len(place) == 2 for place in filled):
        return f"A part of `{array}` is read that nobody filled."
    holes = {(r, c) for r in range(S) for c in range(S)} - filled
    corners = {(r, c) for r in (0, S - 1) for c in (0, S - 1)}
    halo = {(r, c) for r, c in holes if r in (0, S - 1) or c in (0, S - 1)}
    if not holes and any(size % T for size in trial.after["out"].shape):
        # Where all blocks are whole the tile has no holes. So those here come from threads without a result.
        left = "has left with `return`" if trial.written.returns else "is kept from the load by a guard"
        return (
            f"A thread without a result {left}, and its part of the tile is missing. Such a thread has "
            "nothing to store, but elements to fetch."
        )
    if not holes:
        return (
            "Where A has ended nothing is stored into the tile, so anything may be in it. What is outside A "
            "counts as 0: store a zero there."
        )
    if holes == corners:
        return (
            "The halo's four corners are never filled. A result in a corner of the block has a neighbour "
            "diagonally across, in a fourth block."
        )
    if len(stores) <= T * T and len(filled) == T * T:
        return (
            f"The tile has {S * S} elements and the block {T * T} threads, and each thread fetches only one. "
            "Some must fetch a second: the walk needs a loop."
        )
    if halo == holes:
        return f"A part of the halo is never filled: {_sides(halo, S)}."
    return f"{len(holes)} of the tile's {S * S} elements are never filled, {min(holes)} for one."


def _sides(holes: set[tuple[int, int]], S: int) -> str:
    """Return the sides of the tile that these places cover, in words."""
    along = range(1, S - 1)
    sides = {
        "its top row": {(0, c) for c in along},
        "its bottom row": {(S - 1, c) for c in along},
        "its left column": {(r, 0) for r in along},
        "its right column": {(r, S - 1) for r in along},
    }
    whole = [name for name, places in sides.items() if places <= holes]
    return " and ".join(filter(None, (", ".join(whole[:-1]), *whole[-1:]))) or f"{min(holes)} for one"


def _check_outside(trial: Trial) -> None:
    """Refuse loads and stores past the end of A, of `out` or of the tile."""
    arguments = {trial.own_name(name): name for name in NAMES}
    for finding in trial.report.errors:
        if finding.kind != "out_of_bounds":
            continue
        where = f"{trial.line(finding)}. {trial.about}."
        raise Refused(
            f"{_said_outside(trial, finding, arguments.get(finding.array))} {finding.message}", where
        )


def _said_outside(trial: Trial, finding: Finding, name: str | None) -> str:
    T = trial.block[0]
    if name == "A":
        return "Threads load outside A. Where A has ended the tile gets a zero, without a load."
    if name == "out":
        if not trial.touched("out").all():
            return (
                "The guard of the store lets threads out of `out` and keeps others from their result: it has "
                "rows and columns swapped."
            )
        guards = [each.test for each in trial.written.branches if each.body.stores(finding.array)]
        if any(each.sign == "<=" for guard in guards for each in guard.comparisons):
            return "Threads past the last row or column store a result: the guard must be `<`, not `<=`."
        return "Threads without a result store outside `out`: the store needs a guard."
    if name == "w":
        return "`w` has three rows and three columns, with indices from 0 to 2."
    return (
        f"An index is past the end of `{finding.array}`, which has places from 0 to {T + 1} both ways. The "
        "result of thread (tx, ty) lies at `tile[ty + 1, tx + 1]`, its neighbours from `[ty, tx]` to `[ty + "
        "2, tx + 2]`."
    )


# ---- the lesson --------------------------------------------------------------------------------------------


def _check_loads(trial: Trial) -> None:
    """Refuse more loads of A than every block's elements and its halo, as far as A reaches."""
    (m, n), (across, down) = trial.after["out"].shape, trial.grid
    loads, least = trial.lanes("load", "A"), (m + 2 * (down - 1)) * (n + 2 * (across - 1))
    if loads <= least:
        return
    counted = f"{loads:,} loads from A where {least:,} are enough, the block's elements and a halo"
    if loads >= _naive_loads(m, n):
        raise Refused(
            f"The result is right, but the tile is filled and not used: the sum reads A itself. {counted}.",
            f"{trial.about}.",
        )
    raise Refused(
        f"The result is right, but some elements are loaded more than once by a block: {counted}. Let the "
        "whole halo go into the tile, each element by one thread.",
        f"{trial.about}.",
    )
