"""Checks that a tile goes from A by fours, into transposed As one by one, to out by fours."""

import numpy as np

from gemm_course.checks.core import Refused, call, check_begun, exercise, factory_of
from gemm_course.checks.engines.float4 import (
    Move,
    check_declared_alignment,
    check_errors,
    check_once,
    check_width,
    misaligned,
    move,
)
from gemm_course.checks.engines.tiles import Tiles, tile_choices
from lockstep import Finding, wavefronts

TILES = tile_choices("BM BK PAD THREADS", (32, 16, 4, 64), (64, 8, 4, 128), (32, 32, 4, 64), (32, 16, 0, 32))


@exercise(
    start="fetch as in [[four_at_once]] into a tuple `v`, then store `v[0]` to `v[3]` into a shared array.",
    hints=(
        "`As` has BK rows of WIDTH floats: `cuda.shared.array((BK, WIDTH), float32, 16)`, with `WIDTH = BM + "
        "PAD` beside the kernel, as Numba takes only plain names and numbers in the shape. The 16 is its "
        "alignment in bytes.",
        "`v = load4(A, (r, c))` holds row r, columns c to c + 3. Element `e` goes to `As[c + e, r]`.",
        "After a barrier, out: a row of it is `BM // 4` groups of four floats, so thread `tid` has row `tid "
        "// (BM // 4)` and column `tid % (BM // 4) * 4`, and the block covers `THREADS // (BM // 4)` rows in "
        "one pass.",
        "The last line is `store4(out, (p, i), load4(As, (p, i)))`, in a loop over `range(0, BK, ...)`.",
    ),
)
def transposing_scatter(make_transpose):
    """A factory (BM, BK, PAD, THREADS) of kernels (A, out): A's tile through As, transposed, by float4."""
    make = factory_of(make_transpose, TILES[0].names)
    runs = [move(call(make, *tiles), tiles, transposed=True) for tiles in TILES]
    check_begun(runs[0].kernel, *(run.report for run in runs))
    for run in runs:
        if not run.report.shared_bytes:
            raise Refused(
                "There is no shared memory in this kernel. A's tile goes into `As`, transposed, and from "
                "there to `out`: that is how the whole kernel takes it."
            )
        if run.wrong.any() or run.report.errors:
            _check_no_four_goes_into_as(run)
        check_errors(run, FINDINGS)
        _check_numbers(run)
    if runs[0].accesses("load", None).empty:
        raise Refused(
            "The tile never goes through shared memory: what is loaded from A is stored into `out` at once. "
            "Store it into `As`, transposed; after a barrier read `As` by `load4`."
        )
    _check_precision(runs[0])
    check_declared_alignment(runs[0].written)
    for run in runs:
        check_width(run, "load", "A", "A is read")
        check_once(run, "load", "A", "loaded")
        check_width(run, "load", None, "As is read")
        check_width(run, "store", "out", "out is written")
        check_once(run, "store", "out", "stored", "BM")
        _check_scatter(run)
        _check_size(run)
    return (
        "Right for four tiles: A and As are read by fours, and out is written by fours. Only the stores into "
        f"As move one float at a time.{_of_barriers(runs[0])}"
    )


def _of_barriers(run: Move) -> str:
    """Return a remark on what a barrier in a loop costs, which is no mistake."""
    if run.barriers_per_block == 1:
        return ""
    return (
        f" But the threads wait {run.barriers_per_block} times, and once is enough: a single barrier after "
        "the loop that fills As."
    )


def _check_no_four_goes_into_as(run: Move) -> None:
    """Raise Refused where a four of A is stored into As by one `store4`, which cannot transpose it."""
    for store in run.written.calls("store4"):
        if store.at(0) != run.own_name("out"):
            raise Refused(
                "`store4` puts four floats side by side, into one row. Those of a load belong into four "
                "rows of As, one below the other: store them singly, `v[e]` into `As[c + e, r]`.",
                f"{store.where}. {run.about}.",
            )


# ---- the numbers -------------------------------------------------------------------------------------------


def _check_numbers(run: Move) -> None:
    if not run.wrong.any():
        return
    out, expected, place = run.out, run.expected, np.arange(run.tiles.BK)
    if np.array_equal(out.reshape(-1), expected.T.reshape(-1)):
        raise Refused(
            "Nothing is transposed: As holds A's elements in A's own order. Element `e` of the four from row "
            "`r`, column `c` belongs into row `c + e`, column `r`.",
            run.first_wrong_place,
        )
    if np.array_equal(out, expected[place // 4 * 4]):
        raise Refused(
            "All four elements that a thread stores are its first, `v[0]`. They are `v[e]`, e from 0 to 3.",
            run.first_wrong_place,
        )
    if np.array_equal(out, expected[place // 4 * 4 + 3 - place % 4]):
        raise Refused("The four elements of each thread arrive in reverse order.", run.first_wrong_place)
    missing = np.isnan(out)
    if missing.any() and not (run.wrong & ~missing).any():
        row, col = map(int, np.argwhere(missing)[0])
        rows = run.tiles.THREADS // (run.tiles.BM // 4)
        raise Refused(
            f"A part of out is never written, from row {row}, column {col} on. A row of out is BM // 4 "
            f"groups of four floats, so the block writes THREADS // (BM // 4) rows in one pass, {rows} here: "
            "loop over them.",
            f"{run.about}.",
        )
    raise Refused("Not every float arrives at its place.", run.first_wrong_place)


# ---- what the emulator found -------------------------------------------------------------------------------


def _race(finding: Finding, run: Move) -> str:
    earlier = run.report.accesses.query("line == @finding.other_line and array == @finding.array")
    if "load" in set(run.report.accesses.query("site == @finding.site")["op"]) | set(earlier["op"]):
        if run.written.calls("syncwarp"):
            return (
                "`syncwarp` holds the threads of one warp only, and what a thread reads another warp may "
                f"bring: wait for the whole block, `cuda.syncthreads()`. {finding.message}"
            )
        return (
            "The barrier between filling As and reading it is missing: a thread reads what another brings. "
            f"{finding.message}"
        )
    if _side_by_side(finding, run):
        return (
            "Two threads store at the same place of As: each puts its four floats side by side, in one row. "
            "They belong one below the other, element `e` into row `c + e`, column `r`. "
            f"{finding.message}"
        )
    return (
        "Two threads store at the same place of As. A row of As is BM + PAD floats long, one for every row "
        f"of A; BK is the length of A's rows. {finding.message}"
    )


def _side_by_side(finding: Finding, run: Move) -> bool:
    """Return whether two threads meet in row c of As because each stores its four along that row."""
    fours, element = run.tiles.BK // 4, finding.element or ()
    (row, column), (other, beside) = (divmod(thread[0], fours) for thread in finding.threads)
    return len(element) == 2 and column == beside == element[0] / 4 and 0 < abs(row - other) < 4


def _uninitialised(finding: Finding, run: Move) -> str:
    row, col = finding.element if len(finding.element) == 2 else (0, 0)
    if row % 4:
        return (
            f"Nothing is stored into row {row} of As. Element `e` of the four floats from row `r`, column "
            f"`c` of A belongs in `As[c + e, r]`, for e from 0 to 3. {finding.message}"
        )
    if col >= run.rows_per_pass:
        return (
            f"Column {col} of As, where row {col} of A belongs, is not filled. In one pass the block fetches "
            f"THREADS // (BK // 4) rows of A, and the tile has BM of them: loop over them. {finding.message}"
        )
    return (
        "Something is read from As that nobody stored there. Are its rows BM + PAD floats long both where "
        f"you store and where you read? {finding.message}"
    )


def _out_of_bounds(finding: Finding, run: Move) -> str | None:
    if finding.array == run.own_name("A"):
        return (
            "A thread reads A outside its tile. A row of A's tile is BK // 4 groups of four floats, so the "
            f"row is `tid // (BK // 4)` and the column `tid % (BK // 4) * 4`. {finding.message}"
        )
    if finding.array == run.own_name("out"):
        return (
            "A thread writes outside out. A row of out is BM // 4 groups of four floats: its row is `tid // "
            f"(BM // 4)`, its column `tid % (BM // 4) * 4`. {finding.message}"
        )
    if finding.element and finding.element[0] == run.tiles.BK:
        return (
            f"Row {run.tiles.BK} of As is one too far: As has BK rows, 0 to {run.tiles.BK - 1}. Element `e` "
            f"of the four from column `c` belongs into row `c + e`, e from 0 to 3. {finding.message}"
        )
    return (
        "A thread reads or writes outside As. It has BK rows of BM + PAD floats; A's column becomes the row, "
        f"A's row the column. {finding.message}"
    )


FINDINGS = {
    "misaligned_access": misaligned,
    "shared_race": _race,
    "uninitialised_read": _uninitialised,
    "out_of_bounds": _out_of_bounds,
    "global_race": lambda finding, run: (
        "Two threads write the same floats of out. The passes overlap: the block writes THREADS // (BM // 4) "
        f"rows at a time. {finding.message}"
    ),
}


# ---- the lesson --------------------------------------------------------------------------------------------


def _check_precision(run: Move) -> None:
    """Refuse arithmetic with a Python float, which is in float64; nothing needs to be computed here."""
    for operation in run.written.operations():
        if any(isinstance(side.number, float) for side in operation.sides):
            raise Refused(
                f"The numbers are right, but `{operation.text}` is computed in float64, and every element is "
                "converted there and back. Store the elements as they are, `v[e]`.",
                operation.where,
            )


def _check_scatter(run: Move) -> None:
    """Refuse stores into As that take more wavefronts than document 003's formulas with this padding."""
    stores, tiles = run.accesses("store"), run.tiles
    counted, enough = int(stores["wavefronts"].sum()), _wavefronts_of_the_scatter(tiles)
    if counted <= enough:
        return
    if stores["bits"].max() > 32:
        raise Refused(
            "The numbers are right, but the elements of As have 8 bytes each, so that rows take twice the "
            "room, and a store twice the wavefronts or more. Declare As with float32.",
            f"{run.line(stores['line'].iloc[0])}. {run.about}.",
        )
    told = f"they take {counted / enough:.2g} times the wavefronts"
    unpadded = 4 * tiles.BK * (tiles.BM + tiles.PAD) > run.report.shared_bytes
    why = (
        "The rows of As are BM floats long, without the PAD behind them."
        if unpadded
        else "Has As BK rows, each BM + PAD floats long?"
    )
    raise Refused(
        f"The numbers are right, but the stores into As have needless bank conflicts: {told}. {why}",
        f"{run.line(stores['line'].iloc[0])}. {run.about}.",
    )


def _check_size(run: Move) -> None:
    """Refuse an As with more room than BK rows of BM + PAD floats."""
    tiles, floats = run.tiles, run.report.shared_bytes // 4
    if floats > (enough := tiles.BK * (tiles.BM + tiles.PAD)):
        raise Refused(
            f"The numbers are right, but As has {floats} floats, and {enough} are enough: BK rows of BM + "
            f"PAD floats. PAD is {tiles.PAD} here. Are rows and columns of the shape in this order, and is "
            "the padding PAD, not a number?",
            f"{run.about}.",
        )


def _wavefronts_of_the_scatter(tiles: Tiles) -> int:
    groups, width = tiles.BK // 4, tiles.BM + tiles.PAD
    total = 0
    for start in range(0, tiles.BM * groups, 32):
        row, column = divmod(np.arange(start, start + 32), groups)
        total += sum(wavefronts((4 * column + e) * width + row, 32, "store") for e in range(4))
    return total
