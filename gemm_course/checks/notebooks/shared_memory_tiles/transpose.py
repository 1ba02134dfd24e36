"""Checks ``transpose``: a transpose through shared memory, whole sectors both ways and no conflict."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gemm_course.checks.core import Refused, call, check_begun, exercise, factory_of, kernel_of
from gemm_course.checks.engines.lessons import no_float64
from gemm_course.checks.engines.one_tile import (
    refuse_one_for_all,
    refuse_other_types,
    refuse_races,
    refuse_repeated_stores,
    refuse_written_input,
    refuse_written_out_size,
)
from gemm_course.checks.engines.trial import Trial, try_kernel
from lockstep import Finding

SIZES = (4, 8, 16, 32)
NAMES = ("A", "out")
# A warp of a block this wide has one row of the tile. Sectors and banks are counted there.
WARP_WIDE = 32


def _shapes(T: int) -> tuple[tuple[int, int], ...]:
    """Return the shapes of A. In the first all blocks are whole, in the last lengths are multiples of 8."""
    return (2 * T, 2 * T), (T + 3, 2 * T + 5), (2 * T + 5, T + 3), (3, 2 * T), (1, 1), (T + 8, 2 * T + 24)


@exercise(
    start="declare the tile with `cuda.shared.array`. Which element of A does a thread put there?",
    hints=(
        "Read along a row of A, wait, and store along a row of `out`. Only the tile is read down a column, "
        "where no sector is wasted.",
        "The block at row `row0`, column `col0` of A writes the block at row `col0`, column `row0` of `out`.",
        "Fill `tile[ty, tx]`; after the barrier store `tile[tx, ty]` to `out[col0 + ty, row0 + tx]`. Its "
        "guard is not that of the load: the thread stores another element than it loaded.",
        "A column of a 32 × 32 tile lies in one bank. With `P = T + 1` in the factory and `(T, P)` as the "
        "tile's shape, it lies in 32 banks.",
    ),
)
def transpose(make_transpose):
    """A factory of kernels (A, out) that store A transposed, through a shared tile, in T x T threads."""
    make = factory_of(make_transpose, ("T",))
    kernels = {T: kernel_of(call(make, T), NAMES) for T in SIZES}
    trials = {T: [_try_on(kernel, T, shape) for shape in _shapes(T)] for T, kernel in kernels.items()}
    all_trials = [trial for of_T in trials.values() for trial in of_T]
    whole, *_, in_eights = trials[WARP_WIDE]
    check_begun(whole.kernel, *(trial.report for trial in all_trials))
    _check_tile(trials, whole)
    for trial in all_trials:
        refuse_races(trial)
    for trial in all_trials:
        _check_numbers(trial)
    for trial in all_trials:
        _check_work(trial)
    refuse_one_for_all(whole)
    _check_sectors(in_eights)
    _check_banks(whole)
    no_float64(whole)
    loads, stores = (in_eights.sectors(op, name) for op, name in (("load", "A"), ("store", "out")))
    m, n = in_eights.before["A"].shape
    return (
        f"Right for {len(all_trials)} shapes, with T from {SIZES[0]} to {SIZES[-1]}. With T = 32 and {m} × "
        f"{n}: {loads:,} sectors in and {stores:,} out, none of them in vain, and no bank conflict."
    )


def _try_on(kernel, T: int, shape: tuple[int, int]) -> Trial:
    m, n = shape
    A = np.random.default_rng((T, m, n)).uniform(1, 9, shape).astype(np.float32)
    # These bits are a NaN that no unfilled place of a tile holds, so that a store is seen whatever it stores.
    out = np.full((n, m), 0x7FC0BEEF, np.uint32).view(np.float32)
    about = f"With T = {T}, and A of {m} × {n}"
    return try_kernel(kernel, NAMES, (-(-n // T), -(-m // T)), (T, T), A, out, about=about)


# ---- the tile ----------------------------------------------------------------------------------------------


def _check_tile(trials: dict[int, list[Trial]], whole: Trial) -> None:
    refuse_written_input(whole)
    firsts = [of_T[0] for of_T in trials.values()]
    if not whole.report.shared_bytes:
        raise Refused(*_without_a_tile(whole))
    refuse_written_out_size(firsts)
    refuse_other_types(whole)


def _without_a_tile(whole: Trial) -> tuple[str, str]:
    """Return what a kernel without shared memory pays, and where."""
    right = (whole.after["out"] == whole.before["A"].T).all()
    for op, name, done in (("store", "out", "Storing"), ("load", "A", "Reading")):
        rows = whole.accesses(op, name)
        if len(rows) and (each := rows["sectors"].sum() / rows["requests"].sum()) > 4:
            return (
                f"There is no shared tile. {done} goes down a column of `{whole.own_name(name)}`: {each:g} "
                "sectors per request of a warp, where 4 would do. Without a tile one side always does; the "
                "tile is there to turn the block.",
                f"{whole.line(rows['line'].iloc[0])}. {whole.about}.",
            )
    said = "" if right else " And the numbers are wrong."
    return f"There is no shared tile: declare one with `cuda.shared.array`.{said}", f"{whole.about}."


# ---- numbers and guards ------------------------------------------------------------------------------------


def _check_numbers(trial: Trial) -> None:
    expected = trial.before["A"].T
    wrong = trial.after["out"] != expected
    if not wrong.any() and not trial.report.errors:
        return
    where = trial.first_wrong("out", wrong, expected) if wrong.any() else f"{trial.about}."
    for message, made in _mix_ups(trial):
        if np.array_equal(trial.after["out"], made, equal_nan=True):
            raise Refused(message, where)
    _check_places_in_tile(trial)
    _check_guard_of_store(trial, where)
    _check_guard_of_load(trial)
    trial.refuse_errors(where)
    if not trial.touched("out").all():
        raise Refused("Some elements of `out` are never stored.", where)
    raise Refused("The numbers are wrong.", where)


def _mix_ups(trial: Trial) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what kernels compute that turn only the tile, or only the blocks; for whole blocks alone."""
    A, T = trial.before["A"], trial.block[0]
    m, n = A.shape
    if m != n or m % T or m == T:
        return
    yield (
        "`out` is a copy of A: the tile is filled and read in the same order, and each block goes where it "
        "came from. Two things must be swapped: the indices of the tile, and those of the block.",
        A,
    )
    blocks = A.reshape(m // T, T, n // T, T)
    yield (
        "Every block is transposed, but it stays in its place: the output block is not swapped. The block at "
        "row `row0`, column `col0` of A belongs at row `col0`, column `row0` of `out`.",
        blocks.transpose(0, 3, 2, 1).reshape(m, n),
    )
    yield (
        "The blocks go to the right places, but within them nothing is transposed: the tile is read in the "
        "order in which it was filled. Fill `tile[ty, tx]` and read `tile[tx, ty]`.",
        blocks.transpose(2, 1, 0, 3).reshape(m, n),
    )


def _check_places_in_tile(trial: Trial) -> None:
    T, arguments = trial.block[0], {trial.own_name(name) for name in NAMES}
    for finding in trial.report.errors:
        if finding.kind != "out_of_bounds" or finding.array in arguments:
            continue
        raise Refused(
            f"An index is past the end of `{finding.array}`. Every block has a tile of its own, with places "
            f"from 0 to {T - 1} both ways: index it with `threadIdx`, not with the place in A. "
            f"{finding.message}",
            f"{trial.line(finding)}. {trial.about}.",
        )


def _check_guard_of_store(trial: Trial, where: str) -> None:
    """Refuse a guard of the store that keeps out, or lets through, the wrong threads."""
    touched = trial.touched("out")
    if not touched.all():
        for message, passes in _guards(trial):
            if (touched == _stored_by(trial, passes)).all():
                raise Refused(message, where)
        return
    finding = _outside(trial, "out")
    if finding:
        raise Refused(
            f"Threads that have no element store outside `{finding.array}`, which has as many rows as A has "
            f"columns: the store needs a guard of its own. {finding.message}",
            f"{trial.line(finding)}. {trial.about}.",
        )


def _guards(trial: Trial) -> Iterator[tuple[str, np.ndarray]]:
    """Yield wrong guards of the store, each with the threads that pass it."""
    m, n = trial.before["A"].shape
    (from_row, from_col), (row, col) = _places(trial)
    yield _guard_of_load(trial), (from_row < m) & (from_col < n)
    yield (
        "The guard of the store has rows and columns swapped: `out` has as many rows as A has columns, and "
        "as many columns as A has rows.",
        (row < m) & (col < n),
    )
    yield (
        "The last row and the last column of `out` are never stored: the guard is one too strict.",
        (row < n - 1) & (col < m - 1),
    )
    yield "The last row of `out` is never stored: the guard is one too strict.", (row < n - 1) & (col < m)
    yield "The last column of `out` is never stored: the guard is one too strict.", (row < n) & (col < m - 1)


def _guard_of_load(trial: Trial) -> str:
    """Return what is wrong if the threads that store are those that have loaded."""
    if trial.written.returns:
        return (
            "A thread that has nothing to load has left with `return`, and what it should store is missing. "
            "Let it go on: it stores another element than it loads."
        )
    if _outside(trial, "out"):
        return (
            "The store has the guard of the load. But the thread stores another element than it loaded: to "
            "row `col0 + ty` of `out`, which has as many rows as A has columns, and column `row0 + tx`."
        )
    return (
        "Only threads store that also loaded: both guards stand around the store. A thread that had nothing "
        "to load may have something to store."
    )


def _places(trial: Trial) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return the (row, column) of A that each thread of the launch loads, and that of `out` it stores."""
    (across, down), T = trial.grid, trial.block[0]
    by, bx, ty, tx = np.ogrid[:down, :across, :T, :T]
    by, bx, ty, tx = np.broadcast_arrays(by, bx, ty, tx)
    return (by * T + ty, bx * T + tx), (bx * T + ty, by * T + tx)


def _stored_by(trial: Trial, passes: np.ndarray) -> np.ndarray:
    """Return which elements of `out` are stored if these threads pass its guard."""
    _, (row, col) = _places(trial)
    stored = np.zeros(trial.after["out"].shape, bool)
    n, m = stored.shape
    passes = passes & (row < n) & (col < m)
    stored[row[passes], col[passes]] = True
    return stored


def _outside(trial: Trial, name: str) -> Finding | None:
    """Return the first access past the end of this argument, or None."""
    own = trial.own_name(name)
    errors = (each for each in trial.report.errors if each.kind == "out_of_bounds")
    return next((each for each in errors if each.array == own), None)


def _check_guard_of_load(trial: Trial) -> None:
    """Refuse a guard of the load that lets threads out of A, or leaves holes in the tile."""
    outside, hole = _outside(trial, "A"), trial.error("uninitialised_read")
    finding = outside or hole
    if finding is None:
        return
    if outside and hole:
        message = (
            "The guard of the load lets threads out of A and keeps others from their element: it has rows "
            "and columns swapped. A row ends at `A.shape[0]`, a column at `A.shape[1]`."
        )
    elif outside:
        message = "Threads load outside A: at its edges the load needs a guard, for rows and for columns."
    else:
        message = (
            f"A part of `{finding.array}` is read that nobody filled: the guard of the load keeps threads "
            "from elements that A has."
        )
    raise Refused(f"{message} {finding.message}", f"{trial.line(finding)}. {trial.about}.")


# ---- the lesson --------------------------------------------------------------------------------------------


def _check_work(trial: Trial) -> None:
    """Refuse elements that are loaded or stored more than once."""
    refuse_repeated_stores(trial)
    elements, loads = trial.after["out"].size, trial.lanes("load", "A")
    if loads > elements:
        raise Refused(
            f"The result is right, but A is loaded {loads:,} times for its {elements:,} elements. The tile "
            "is there to be read instead.",
            f"{trial.about}.",
        )


def _check_sectors(trial: Trial) -> None:
    """Refuse requests that touch more sectors than their floats fill, where lengths are multiples of 8."""
    least = trial.after["out"].size // 8
    if (sectors := trial.sectors("load", "A")) > least:
        raise Refused(
            f"The result is right, but A is read down a column: {sectors:,} sectors where {least:,} are "
            "enough. Neighbours in x must read neighbours of a row; the tile is what turns the block.",
            f"{trial.about}.",
        )
    if (sectors := trial.sectors("store", "out")) > least:
        raise Refused(
            f"The result is right, but `out` is stored down a column: {sectors:,} sectors where {least:,} "
            "are enough. Neighbours in x must store neighbours of a row, so each thread takes from the tile "
            "what another has put there.",
            f"{trial.about}.",
        )


def _check_banks(trial: Trial) -> None:
    """Refuse accesses of the tile with more wavefronts than needed."""
    slow = trial.report.accesses.query("space == 'shared' and wavefronts > ideal_wavefronts")
    if slow.empty:
        return
    worst = slow.sort_values("wavefronts", ascending=False).iloc[0]
    each = worst["wavefronts"] / worst["requests"]
    tile, words = worst["array"], trial.report.shared_bytes // 4
    done = f"reading `{tile}`" if worst["op"] == "load" else f"filling `{tile}`"
    raise Refused(
        f"The result is right, but {done} takes {each:g} wavefronts per request instead of 1. "
        f"{_about_padding(words, each)}",
        f"{trial.line(worst['line'])}. {trial.about}.",
    )


def _about_padding(words: int, wavefronts: float) -> str:
    T = WARP_WIDE
    if words == T * T:
        return "A column of a tile of 32 × 32 lies in one bank. Let each row begin in another bank."
    if wavefronts == T and words == T * (T + 1):
        return (
            "There is room for a word more per row, but rows still are 32 words long: that is one row more. "
            "The padding belongs at the end of each row, `(T, P)` with `P = T + 1`."
        )
    if words % T == 0 and words > T * T:
        pad = words // T - T
        return (
            f"A padding of {pad} words does not help enough: each row begins {pad % T} banks after the one "
            "before, and some rows begin in the same bank again."
        )
    return "Lanes of a warp want different words of one bank."
