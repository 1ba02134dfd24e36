"""Exercise 06.1: a block copies a tile, every thread four neighbouring floats in one request."""

from gemm_course.checks.core import Refused, call, check_begun, factory_of
from gemm_course.checks.engines.float4 import (
    Move,
    Sizes,
    check_errors,
    check_once,
    check_width,
    misaligned,
    move,
)
from gemm_course.emulator import Finding

NAMES = ("BM", "BK", "THREADS")
TILES = (Sizes(32, 16, 64), Sizes(64, 8, 32), Sizes(16, 32, 128))  # two rounds, four, one


def prove_four_at_once(make_copy) -> str:
    """What was proved of the learner's factory; raises Refused with the first thing wrong."""
    make = factory_of(make_copy, NAMES)
    runs = [move(call(make, sizes.BM, sizes.BK, sizes.threads), sizes) for sizes in TILES]
    check_begun(runs[0].kernel, *(run.report for run in runs))
    for run in runs:
        check_errors(run, FINDINGS)
        _check_numbers(run)
    for run in runs:
        for op, position, what, done in (
            ("load", 0, "A is read", "loaded"),
            ("store", 1, "out is written", "stored"),
        ):
            check_width(run, op, position, what)
            check_once(run, op, position, done)
    first = runs[0]
    requests = int(first.of("load", 0)["requests"].sum())
    return (
        f"Right for three tiles. The {first.sizes.BM} × {first.sizes.BK} one takes {requests} requests to "
        f"load, where floats one by one take {4 * requests}, and uses every byte of the sectors it moves."
    )


def _check_numbers(run: Move) -> None:
    if not run.wrong.any():
        return
    rounds = run.sizes.threads // (run.sizes.BK // 4)
    if not run.wrong[:rounds].any() and run.wrong[rounds:].all():
        raise Refused(
            "Only the first round is moved. The block covers THREADS // (BK // 4) rows at a time, and the "
            "tile has more: loop over them.",
            run.first_wrong,
        )
    raise Refused("Not every float arrives at its place.", run.first_wrong)


def _out_of_bounds(finding: Finding, run: Move) -> str | None:
    if finding.element[0] < run.sizes.BM:
        return (
            "A thread's column lies outside the tile. A row of BK floats is BK // 4 fours, so only that many "
            f"threads share a row: divide by `BK // 4`, not by `BK`. {finding.message}"
        )
    return (
        "A thread's row lies below the tile. In a round the block covers THREADS // (BK // 4) rows; the last "
        f"round must end at BM. {finding.message}"
    )


def _race(finding: Finding, run: Move) -> str:
    return (
        "Two threads write the same four floats. The rounds overlap: the next one begins THREADS // (BK // "
        f"4) rows further down. {finding.message}"
    )


FINDINGS = {"misaligned_access": misaligned, "out_of_bounds": _out_of_bounds, "global_race": _race}
