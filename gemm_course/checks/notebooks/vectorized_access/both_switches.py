"""Checks ``both_switches``: a GEMM kernel with two switches, copies by fours and a transposed tile of A."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gemm_course.checks.core import Refused, exercise
from gemm_course.checks.engines.common_mistakes import Mistake
from gemm_course.checks.engines.float4 import check_declared_alignment
from gemm_course.checks.engines.gemm import GemmTrial, Likely, try_on
from gemm_course.checks.engines.gemm_factory import GemmFactory
from gemm_course.checks.engines.lessons import STANDARD, four_bytes, reads
from gemm_course.checks.engines.mistakes import result, taken_from
from gemm_course.checks.engines.problem import Geometry, Problem
from gemm_course.checks.engines.registers import CAPABILITY
from gemm_course.checks.engines.tiles import Tiles, tile_choices
from gemm_course.compiler import compiled
from gemm_course.compiler.nvidia import why_no_compiler
from lockstep import Finding, Watch, active

if TYPE_CHECKING:
    import pandas as pd

# All four forms. No BK is BM, BN or TM, so that a transposed tile never fits where a plain one belongs. Where
# nothing moves by fours, BK is no multiple of four. The block covers whole tiles in whole passes, so that the
# learner's `fetch` of ragged_fours may stand in for the kit's.
TILES = tile_choices(
    "BM BN BK TM TN FOURS TRANSPOSED",
    (16, 32, 8, 2, 8, True, True),
    (16, 24, 6, 2, 4, False, False),
    (32, 64, 16, 4, 8, True, False),
    (24, 16, 6, 4, 2, False, True),
    (64, 64, 8, 8, 8, True, True),
)
# The kit's functions, and what the learner's kernel calls them with.
FETCHES = {
    "fetch_a": ("m", "k", "A", "row0", "k0", "As", "tid"),
    "fetch_b": ("k", "n", "B", "k0", "col0", "Bs", "tid"),
}
WIDE = 128
# A block of these small problems makes no more accesses.
ROWS = 200_000


@exercise(
    start="begin with As' shape: how many rows and columns has it, with TRANSPOSED and without?",
    hints=(
        "With TRANSPOSED `fetch_a` stores element (r, c) of A's tile into `As[c, r]`. So As has BK rows of "
        "BM floats then, and BM rows of BK otherwise. Choose beside the kernel: `SHAPE = (BK, BM) if "
        "TRANSPOSED else (BM, BK)`.",
        "Both tiles must begin at a multiple of 16 bytes: `cuda.shared.array(SHAPE, float32, 16)`.",
        "The calls: `fetch_a(m, k, A, row0, k0, As, tid)` and `fetch_b(k, n, B, k0, col0, Bs, tid)`.",
        "The read: `a[i] = As[p, y0 + i] if TRANSPOSED else As[y0 + i, p]`.",
    ),
)
def both_switches(make_vectorized):
    """A factory (BM, BN, BK, TM, TN, FOURS, TRANSPOSED) of GEMM kernels whose copies have two switches."""
    proof = FACTORY.prove(make_vectorized)
    *sizes, _, transposed = last = TILES[-1]
    single = FACTORY.try_on_whole_tiles(make_vectorized(*sizes, False, transposed), last)
    by_one, by_four = (int(_of_matrices(each)["requests"].sum()) for each in (single, proof.trials[last]))
    BM, BN, BK = last.block_tile
    return (
        f"Right in all four forms, on {proof.problems} problems. With tiles of {BM} × {BN} × {BK}, A and B "
        f"take {by_one} requests without FOURS, and {by_four} with it. {_read_singly(proof.trials[last])}"
        f"{proof.registers}"
    )


def _read_singly(trial: GemmTrial) -> str:
    """Return a remark on tiles that the compiler reads one float at a time, or "" if it makes fours of all.

    Without a compiler the source decides. trial: one with neighbours in both tiles.
    """
    if why_no_compiler() is not None or active() is not None:
        singly = not trial.written.calls("u32", "uint32")
    else:
        code = compiled(trial.kernel, *trial.before.values(), compute_capability=CAPABILITY)
        singly = any(row.opcode.startswith("LDS") and row.opcode != "LDS.128" for row in code.rows)
    return SINGLY if singly else ""


SINGLY = (
    "But the compiler does not make fours of all reads of As and Bs. It does where `tx` and `ty` are `u32`, "
    "and what a thread reads in a step lies side by side. "
)


# ---- what goes wrong ---------------------------------------------------------------------------------------


def _calls_first(trials: Sequence[GemmTrial]) -> None:
    """Refuse a wrong kernel that hands the kit's functions the right names in other places."""
    trial = next((each for each in trials if not each.right), None)
    if trial is None:
        return
    known = {*FETCHES["fetch_a"], *FETCHES["fetch_b"], "tx", "ty", "x0", "y0"}
    for name, wanted in FETCHES.items():
        for called in trial.written.calls(name):
            given = tuple(each.text for each in called.args)
            if given != wanted and known.issuperset(given):
                raise Refused(f"The call is `{name}({', '.join(wanted)})`, in this order.", called.where)


def likely(tiles: Tiles) -> Likely:
    """Return what goes wrong with these switches."""
    TM, BK, block = tiles.TM, tiles.BK, (tiles.BM, tiles.BN)

    def by_fours_only(q: Problem) -> np.ndarray | None:
        kept = np.arange(q.k) % BK < BK // 4 * 4
        return None if kept.all() else result(q, q.A[:, kept] @ q.B[kept])

    return Likely(
        results=(
            Mistake(
                "The last steps of each tile are left out. Without FOURS BK may be any number, such as 6. "
                "The inner loop is `range(BK)`.",
                by_fours_only,
            ),
            Mistake(
                "All threads read the same rows of A's tile, from 0 on. A thread's own begin at `y0`.",
                taken_from(block, row=lambda r: r % TM),
            ),
            Mistake(
                "All results of a thread use the same row of A's tile: the row must go on with `i`, "
                "`y0 + i`.",
                taken_from(block, row=lambda r: r // TM * TM),
            ),
            Mistake(
                "Thread `(tx, ty)` reads rows of A's tile from `ty + i` on, which are its neighbours' as "
                "well. Its own begin at `y0`, which is `ty * TM`.",
                taken_from(block, row=lambda r: r // TM + r % TM),
            ),
        ),
        findings={
            "out_of_bounds": _outside,
            "uninitialised_read": _never_filled,
            "misaligned_access": _misaligned,
            "global_race": _same_place,
        },
    )


def _outside(finding: Finding, trial: GemmTrial) -> str | None:
    """Return what an access beside As means; None for other arrays."""
    t = trial.tiles
    wanted = (t.BK, t.BM) if t.TRANSPOSED else (t.BM, t.BK)
    words = "BK rows of BM" if t.TRANSPOSED else "BM rows of BK"
    if finding.function == "fetch_a" and finding.array != trial.own_name("A"):
        return (
            f"`fetch_a` stores beside As. With TRANSPOSED = {t.TRANSPOSED} it fills {words} floats, {wanted} "
            "here. Has As this shape? And does `make_copies` get the switches in this order, FOURS, "
            f"TRANSPOSED? {finding.message}"
        )
    if finding.function == "fetch_b" and finding.array != trial.own_name("B"):
        return (
            f"`fetch_b` stores beside Bs, which has BK rows of BN floats, {(t.BK, t.BN)} here. "
            f"{finding.message}"
        )
    if len(finding.element or ()) != 2 or finding.function in FETCHES:
        return None
    first = finding.threads[0][1] * t.TM
    row, step = finding.element[::-1] if t.TRANSPOSED else finding.element
    if first <= row < first + t.TM and step < t.BK:
        return (
            f"As has the wrong shape. With TRANSPOSED = {t.TRANSPOSED} it is {words} floats, {wanted} here. "
            f"{finding.message}"
        )
    if first <= step < first + t.TM and row < t.BK:
        shown = "`As[p, y0 + i]`" if t.TRANSPOSED else "`As[y0 + i, p]`"
        other = "untransposed" if t.TRANSPOSED else "transposed"
        return (
            f"With TRANSPOSED = {t.TRANSPOSED} As has {words} floats, {wanted} here, and it is read as if it "
            f"were {other}. The element of row `y0 + i` and step `p` is {shown}. {finding.message}"
        )
    return None


def _never_filled(finding: Finding, trial: GemmTrial) -> str | None:
    if trial.report.accesses.query("space == 'shared' and array == @finding.array").empty:
        return None
    called = trial.written.calls("fetch_a", "fetch_b")
    if not called:
        return f"Nobody fills the tiles: call `fetch_a` and `fetch_b` before the barrier. {finding.message}"
    missing = set(FETCHES) - {each.name for each in called}
    if missing:
        return f"`{missing.pop()}` is not called, so nobody fills that tile. {finding.message}"
    t = trial.tiles
    stored = {
        name for each in trial.report.errors if each.kind == "out_of_bounds" for name in (each.function,)
    }
    if "fetch_a" in stored:
        words = "BK rows of BM" if t.TRANSPOSED else "BM rows of BK"
        return (
            f"With TRANSPOSED = {t.TRANSPOSED} As has {words} floats, and is read as such: both its shape "
            f"and your reads must follow the switch. `fetch_a` stores beside yours. {finding.message}"
        )
    return (
        f"A part of `{finding.array}` is never filled. Every thread must call `fetch_a` and `fetch_b`, each "
        f"with its own number in the whole block, `tid`. {finding.message}"
    )


def _same_place(finding: Finding, trial: GemmTrial) -> str:
    return (
        "`put` gets the same place from several threads, or row and column swapped. A thread's own results "
        f"begin at row `row0 + y0` and column `col0 + x0`. {finding.message}"
    )


def _misaligned(finding: Finding, trial: GemmTrial) -> str:
    return (
        "Four floats must begin at a multiple of 16 bytes, in the tiles too. Have As and Bs rows of a "
        "multiple of four floats? And do you read by `load4`, where TM or TN may be 2? Let reads be plain "
        f"loops. {finding.message}"
    )


# ---- the lessons -------------------------------------------------------------------------------------------


def _of_matrices(trial: GemmTrial) -> pd.DataFrame:
    """Return the report's rows of loads from A and B."""
    rows = trial.report.accesses
    own = [trial.own_name(name) for name in "AB"]
    return rows[(rows["space"] == "global") & (rows["op"] == "load") & rows["array"].isin(own)]


def _fours_as_asked(trial: GemmTrial) -> None:
    """Refuse copies that move single floats with FOURS, or fours without."""
    fours = trial.tiles.FOURS
    loads, stores = _of_matrices(trial), trial.accesses("store", "C")
    for rows, what, kit in ((loads, "loaded", "`fetch_a` and `fetch_b`"), (stores, "stored", "`put`")):
        other = rows[(rows["bits"] != WIDE) if fours else (rows["bits"] == WIDE)]
        if other.empty:
            continue
        array = other["array"].iloc[0]
        how = "one float at a time" if fours else "four floats at a time"
        raise Refused(
            f"The result is right, but with FOURS = {fours} elements of `{array}` are {what} {how}. The "
            f"switch goes into `make_copies`, and {kit} obey it.",
            f"{trial.about}.",
        )


def _stored_as_switched(trial: GemmTrial) -> None:
    """Refuse a tile of A that lies in As the same way whatever TRANSPOSED is."""
    one_tile = trial.problem.but(k=trial.tiles.block_tile[2])
    stored = _stores(trial, one_tile)
    one, below, beside = (stored.get(np.float32(one_tile.A[each])) for each in ((0, 0), (1, 0), (0, 1)))
    if None in (one, below, beside):
        return
    neighbours = below if trial.tiles.TRANSPOSED else beside
    if abs(neighbours - one) == 4:
        return
    told, of_a = ("BK rows of BM", "rows") if trial.tiles.TRANSPOSED else ("BM rows of BK", "columns")
    raise Refused(
        f"The result is right, but TRANSPOSED changes nothing. With TRANSPOSED = {trial.tiles.TRANSPOSED} As "
        f"has {told} floats, so that neighbouring {of_a} of A's tile lie side by side.",
        f"{trial.about}: they lie {abs(neighbours - one) // 4} floats apart.",
    )


def _stores(trial: GemmTrial, problem: Problem) -> dict[np.float32, int]:
    """Return at which address of shared memory the first block stores each value of its tiles."""
    watch = Watch((0, 0, 0), local=False, limit=ROWS)
    trace = try_on(trial.kernel, trial.geometry, problem, tiles=trial.tiles, watch=watch).report.trace
    stores = trace[(trace["space"] == "shared") & (trace["op"] == "store")]
    return {
        np.float32(value): each.address + 4 * place
        for each in stores.itertuples()
        for place, value in enumerate(each.value if isinstance(each.value, tuple) else (each.value,))
    }


def _aligned(trial: GemmTrial) -> None:
    """Refuse tiles whose declaration does not promise where they begin."""
    check_declared_alignment(trial.written)


def _geometry(tiles: Tiles) -> Geometry:
    return Geometry(tiles.threads, "columns", (tiles.TM, tiles.TN))


FACTORY = GemmFactory(
    tiles=TILES,
    geometry=_geometry,
    likely=likely,
    lessons=(
        *STANDARD,
        _aligned,
        _fours_as_asked,
        four_bytes,
        _stored_as_switched,
        reads(
            lambda tiles: (tiles.TM + tiles.TN) / (tiles.TM * tiles.TN),
            "In each step read TM elements of As into `a` and TN of Bs into `b`, before the loops over the "
            "products.",
        ),
    ),
    before_numbers=_calls_first,
    row_multiple=8,
    in_registers=True,
)
