"""Checks ``slices``: a whole kernel whose own loops fill its tiles, of any depth."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gemm_course.checks.core import Refused, Written, call, exercise, kernel_of
from gemm_course.checks.engines.coverage import Coverage, Fetched, situations
from gemm_course.checks.engines.coverage_in_kernels import filled, hold_tiles
from gemm_course.checks.engines.gemm import GEMM, GemmTrial, try_on
from gemm_course.checks.engines.lessons import four_bytes, no_number_beside
from gemm_course.checks.engines.problem import Problem
from gemm_course.checks.engines.slips_in_source import refuse_swapped_axes
from gemm_course.checks.engines.tiles import Tiles, tile_choices
from gemm_course.checks.kits import make_fetch
from gemm_course.checks.notebooks.thread_tiles_2d import outer_product
from gemm_course.checks.notebooks.thread_tiles_2d.slice_slips import AXES_SWAPPED, SLIPS
from lockstep import Finding

# Blocks have from 4 × 4 to 8 × 8 threads (x, y), and BK is above, at and below these numbers. With
# 10, which no number of threads divides, a loop that is rounded down leaves other holes than the draft.
SHAPES = tile_choices(
    "BM BN BK TM TN",
    (16, 16, 8, 4, 4),
    (16, 16, 10, 4, 4),
    (16, 32, 16, 2, 4),
    (16, 16, 4, 4, 4),
    (16, 32, 16, 4, 4),
    (32, 16, 12, 4, 4),
    (16, 16, 2, 4, 4),
    (16, 32, 4, 4, 8),
    # The 80 elements of As are no multiple of the 24 threads.
    (8, 24, 10, 2, 4),
)
# With so many of them all launches of `situations` are tried, else only the last.
FULLY = 2
TILES = outer_product.TILES
DOCUMENT = Tiles(BM=128, BN=128, BK=16, TM=8, TN=8)
# A request of 32 neighbours moves this many sectors.
FEWEST = 4
# A thread may store this many times its share of a pair of tiles: half of the block may fill each.
SHARES = 2


@exercise(
    start="copy what stands in your `make_outer` into `make_kernel`, take the call of `fetch` out, and "
    "fill As in its place: a loop over this thread's columns `c`, and in it one over its TM rows.",
    hints=(
        "Thread `(tx, ty)` fetches rows `ty * TM` to `ty * TM + TM - 1` of As, as many as it computes. Its "
        "columns are `tx`, and then as far on as there are threads along x.",
        "`for c in range(tx, BK, BN // TN):` runs over this thread's columns of As; "
        "`for r in range(ty, BK, BM // TM):` over its rows of Bs.",
        "`As[ty * TM + i, c]` takes `A[row0 + ty * TM + i, k0 + c]`, and a zero where that is past m or past "
        "k.",
    ),
)
def slices(make_kernel):
    """A factory (BM, BN, BK, TM, TN) of GEMM kernels that fill As and Bs by loops of their own."""
    proof = replace(FACTORY, before_numbers=partial(_tiles_first, make_kernel)).prove(make_kernel)
    _check_shared_out(make_kernel)
    return (
        f"Right on {proof.problems} problems, and {len(SHAPES)} pairs of tiles, BK from 2 to 16 with 4 to 8 "
        "threads along each side: every element of As and Bs is stored exactly once, with zeros where the "
        f"matrices have ended. {_cost(make_kernel(*DOCUMENT))} {proof.registers}"
    )


def _cost(kernel: Any) -> str:
    """Return in a sentence what the loads cost with the document's tiles."""
    geometry, whole = outer_product.geometry(DOCUMENT), Problem(*DOCUMENT.block_tile)
    trial = try_on(kernel, geometry, whole, tiles=DOCUMENT)
    of_a, of_b = (trial.sectors("load", each) / trial.total("requests", "load", each) for each in "AB")
    counted = (
        f"With 128 × 128 × 16 tiles a load of A moves {of_a:g} sectors per request, a load of B {of_b:g}"
    )
    apart = [matrix for matrix, sectors in (("A", of_a), ("B", of_b)) if sectors > FEWEST]
    if not apart:
        return f"{counted}: the fewest there can be."
    mended = " A side trip mends that." * (apart == ["B"])
    return (
        f"{counted}. {FEWEST} are enough: neighbours fetch elements of {' and of '.join(apart)} that lie "
        f"apart.{mended}"
    )


# ---- whose loops they are ----------------------------------------------------------------------------------


def _refuse_the_kit(trial: GemmTrial) -> None:
    called = _calls_the_kit(trial.kernel, set())
    if called:
        raise Refused(
            f"The tiles are still filled by the kit: the kernel calls `{called}`. Take the call out, and "
            "write two loops of your own in its place, one that fills As and one that fills Bs.",
            next((call.where for call in trial.written.calls(called)), ""),
        )


def _calls_the_kit(function: Any, seen: set) -> str:
    """Return by which name a kernel, or a device function that it calls, uses the kit's function, or ""."""
    for name, value in Written(function).outside.items():
        if not hasattr(value, "py_func") or value in seen:
            continue
        if value.py_func.__code__.co_filename == make_fetch.__code__.co_filename:
            return name
        seen.add(value)
        if deeper := _calls_the_kit(value, seen):
            return deeper
    return ""


# ---- the tiles ---------------------------------------------------------------------------------------------


def _tiles_first(make_kernel: Callable, trials: Sequence[GemmTrial]) -> None:
    """Refuse tiles with holes or wrong elements before the numbers that follow from them mislead."""
    refuse_swapped_axes(trials[0], right=trials[0].right)
    for number, tiles in enumerate(SHAPES):
        kernel = kernel_of(call(make_kernel, *tiles), GEMM)
        hold_tiles(COVERAGE, kernel, outer_product.geometry(tiles), tiles, fully=number < FULLY)
    outer_product.check_the_guard(trials[0])


def _stored_once(trial: GemmTrial) -> None:
    """Refuse more or fewer stores into shared memory than the tiles have elements, in any layout."""
    q, (BM, BN, BK) = trial.problem, trial.tiles.block_tile
    stored = trial.accesses("store")["lanes"].sum()
    needed = int(np.prod(trial.grid)) * -(-q.k // BK) * BK * (BM + BN)
    if stored != needed:
        raise Refused(
            f"The result is right, but the tiles take {stored:,} stores, where they have {needed:,} "
            "elements. Store each exactly once.",
            f"{trial.about}, in the problem {q}.",
        )


def _check_shared_out(make_kernel: Callable) -> None:
    """Refuse tiles that few of the threads fetch while the others wait."""
    tiles = SHAPES[0]
    problem, at, k0 = situations(tiles)[0]
    one_pair = problem.but(k=tiles.BK)
    done = filled(make_kernel(*tiles), outer_product.geometry(tiles), tiles, one_pair, at, k0)
    each, threads = done.shared("store")["thread"].value_counts(), int(np.prod(tiles.threads))
    if each.iloc[0] <= SHARES * each.sum() / threads:
        return
    who = f"only {len(each)} of the block's {threads} threads store them"
    if len(each) == threads:
        busiest = done.thread(int(each.index[0]))
        who = f"{busiest} alone stores {each.iloc[0]} of the {each.sum()} that {threads} threads share"
    raise Refused(
        f"Every element is right, but {who} while the other threads wait. Share the elements of both tiles "
        "among all of them.",
        done.about,
    )


def _on_values(done: Fetched, array: str) -> str | None:
    """Return the message for elements that come from other places of the matrix."""
    held, wanted, t = done.values(array), done.wanted(array), done.tiles
    if held.shape[0] == held.shape[1] and (held.T == wanted).all():
        return f"`{array}` holds its tile transposed: the two indices are swapped."
    if array == "As" and (held == wanted[np.arange(t.BM) % t.TM]).all():
        return (
            "All threads load the same TM rows of A, from `row0 + i`. Here `row0` is the block's first row; "
            "a thread's own rows begin `ty * TM` further down, in A as in As: `row0 + ty * TM + i`."
        )
    if array == "Bs" and (held == wanted[:, np.arange(t.BN) % t.TN]).all():
        return (
            "All threads load the same TN columns of B, from `col0 + j`. Here `col0` is the block's first "
            "column; a thread's own begin `tx * TN` further on, in B as in Bs: `col0 + tx * TN + j`."
        )
    return None


def _beside(done: Fetched, finding: Finding) -> str | None:
    """Return the message for swapped x and y, or for a last pass along k that goes past BK."""
    array, t, (x, y, _) = finding.array, done.tiles, finding.threads[0]
    of_a = array == done.own_tiles["As"]
    if len(finding.element) != 2:
        return None
    along_k, place = finding.element[of_a], finding.element[not of_a]
    other, each = (x, t.TM) if of_a else (y, t.TN)
    if along_k < t.BK and place // each == other != (y if of_a else x):
        return f"{AXES_SWAPPED['As' if of_a else 'Bs']} {finding.message}"
    if along_k < t.BK:
        return None
    many, index = ("columns", "c") if of_a else ("rows", "r")
    return (
        f"`{array}` has BK {many}, and in the last pass more threads store than there are {many} left. Stop "
        f"at BK: `{index} < BK`. {finding.message}"
    )


# ---- what is tried -----------------------------------------------------------------------------------------

COVERAGE = Coverage(
    tiles=SHAPES, arrays=("As", "Bs"), slips=SLIPS, on_values=_on_values, on_stores_beside=_beside
)
FACTORY = replace(
    outer_product.FACTORY,
    at_first=_refuse_the_kit,
    lessons=(*outer_product.LESSONS, four_bytes, no_number_beside, _stored_once),
)
