"""Checks ``four_at_once``: a block copies a tile, every thread four neighbouring floats in one request."""

from gemm_course.checks.core import Operation, Refused, call, check_begun, exercise, factory_of
from gemm_course.checks.engines.float4 import (
    Move,
    check_errors,
    check_once,
    check_width,
    misaligned,
    move,
)
from gemm_course.checks.engines.tiles import tile_choices
from lockstep import Finding

# The block covers these tiles in two passes, in four, and in one; in the last a warp has a row for each lane
# if the threads go down the columns.
TILES = tile_choices("BM BK THREADS", (32, 16, 64), (64, 8, 32), (16, 32, 128), (64, 16, 256))


@exercise(
    start="how many groups of four floats are in a row of the tile? That many threads share the row.",
    hints=(
        "A row of BK floats is `BK // 4` groups of four. Thread `tid` takes group number `tid` of the tile, "
        "counted row by row.",
        "So its row is `tid // (BK // 4)` and its column `tid % (BK // 4) * 4`.",
        "The block covers `THREADS // (BK // 4)` rows in one pass. Loop: `for i in range(0, BM, ROWS)`, and "
        "the row is `i + tid // (BK // 4)`.",
        "The body of the loop is `store4(out, (r, c), load4(A, (r, c)))`.",
    ),
)
def four_at_once(make_copy):
    """A factory (BM, BK, THREADS) of kernels (A, out) that copy a tile of BM by BK, float4 by float4."""
    make = factory_of(make_copy, TILES[0].names)
    runs = [move(call(make, *tiles), tiles) for tiles in TILES]
    check_begun(runs[0].kernel, *(run.report for run in runs))
    for run in runs:
        check_errors(run, FINDINGS)
        _check_numbers(run)
    for run in runs:
        for op, name, what, done in (
            ("load", "A", "A is read", "loaded"),
            ("store", "out", "out is written", "stored"),
        ):
            check_width(run, op, name, what)
            check_once(run, op, name, done)
    requests = runs[0].total("requests", "load", "A")
    return (
        f"Right for {len(TILES)} tiles. The {TILES[0].BM} × {TILES[0].BK} one takes {requests} requests to "
        f"load, where single floats take {4 * requests}, and uses every byte of the sectors it moves."
    )


# ---- what goes wrong ---------------------------------------------------------------------------------------


def _check_numbers(run: Move) -> None:
    if not run.wrong.any():
        return
    rows = run.rows_per_pass
    if not run.wrong[:rows].any() and run.wrong[rows:].all():
        if step := _too_far(run):
            raise Refused(
                f"Only the first pass is moved. There is a loop, but it goes on by `{step}` rows. The block "
                f"covers THREADS // (BK // 4) rows at a time, {rows} here: go on by so many.",
                run.first_wrong_place,
            )
        raise Refused(
            "Only the first pass is moved. The block covers THREADS // (BK // 4) rows at a time, and the "
            "tile has more: loop over them.",
            run.first_wrong_place,
        )
    raise Refused("Not every float arrives at its place.", run.first_wrong_place)


def _too_far(run: Move) -> str:
    """Return the step of the learner's loop over the tile's rows, as written; "" if there is no such loop."""
    ranges = (call for loop in run.written.loops for call in loop.over.calls("range"))
    return next((each.at(2) for each in ranges if each.at(1) == "BM"), "")


def _out_of_bounds(finding: Finding, run: Move) -> str | None:
    if _swapped(run):
        return (
            "`//` and `%` are swapped: neighbouring threads share a row, so the row is made with `//`, the "
            f"column with `%`. {finding.message}"
        )
    if f"{run.own_name('A')}.shape" in run.written.texts:
        return (
            "The sizes come from `A.shape`, but A's rows are longer than the tile: what lies behind column "
            f"BK is not part of it. Take BM and BK. {finding.message}"
        )
    if finding.element[0] < run.tiles.BM:
        return (
            "A thread's column lies outside the tile. A row of BK floats is BK // 4 groups of four, so only "
            f"that many threads share a row: divide by `BK // 4`, not by `BK`. {finding.message}"
        )
    return (
        "A thread's row lies below the tile. In one pass the block covers THREADS // (BK // 4) rows; the "
        f"last pass must end at BM. {finding.message}"
    )


def _swapped(run: Move) -> bool:
    """Tell whether a quotient is multiplied by four, as only the column should be, beside its remainder."""
    remainders = [_operands(each) for each in run.written.operations("%")]
    times_four = [each for each in run.written.operations("*") if "4" in _operands(each)]
    return any(
        isinstance(side, Operation) and side.sign == "//" and _operands(side) in remainders
        for each in times_four
        for side in each.sides
    )


def _operands(operation: Operation) -> list[str]:
    return [side.text for side in operation.sides]


def _race(finding: Finding, run: Move) -> str:
    return (
        "Two threads write the same four floats. The passes overlap: the next one begins THREADS // (BK // "
        f"4) rows further down. {finding.message}"
    )


FINDINGS = {"misaligned_access": misaligned, "out_of_bounds": _out_of_bounds, "global_race": _race}
