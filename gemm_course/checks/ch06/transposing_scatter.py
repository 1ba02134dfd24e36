"""Exercise 06.2: four floats at a time out of A, one by one into transposed As, four at a time out of it."""

import ast

import numpy as np

from gemm_course.checks.core import Refused, call, check_begun, factory_of, line_at, source_tree
from gemm_course.checks.engines.float4 import (
    Move,
    Sizes,
    check_errors,
    check_once,
    check_width,
    misaligned,
    move,
)
from gemm_course.emulator import Finding, wavefronts

NAMES = ("BM", "BK", "PAD", "THREADS")
TILES = (Sizes(32, 16, 64, 4), Sizes(64, 8, 128, 4), Sizes(32, 32, 64, 4), Sizes(32, 16, 32, 0))

POWERS = {
    2**power for power in range(4, 11)
}  # bytes that a shared array may be told to begin at a multiple of


def prove_transposing(make_transpose) -> str:
    """What was proved of the learner's factory; raises Refused with the first thing wrong."""
    make = factory_of(make_transpose, NAMES)
    runs = [move(call(make, s.BM, s.BK, s.pad, s.threads), s, transposed=True) for s in TILES]
    check_begun(runs[0].kernel, *(run.report for run in runs))
    for run in runs:
        if not run.report.shared_bytes:
            raise Refused(
                "There is no shared memory in this kernel. A's tile goes into `As`, transposed, and from "
                "there to `out`: that is the way a GEMM kernel takes it."
            )
        check_errors(run, FINDINGS)
        _check_numbers(run)
    _check_declaration(runs[0].kernel)
    for run in runs:
        check_width(run, "load", 0, "A is read")
        check_once(run, "load", 0, "loaded")
        check_width(run, "load", None, "As is read")
        check_width(run, "store", 1, "out is written")
        _check_scatter(run)
    first = runs[0]
    stores = first.of("store")
    each = int(stores["wavefronts"].sum()) // int(stores["requests"].sum())
    return (
        "Right for four tiles: A, As and out are read and written 128 bits at a time, and with BK = 16 the "
        f"stores into As take {each} wavefronts a request, thanks to 4 floats of padding; without, 4."
    )


# ---- the numbers -------------------------------------------------------------------------------------------


def _check_numbers(run: Move) -> None:
    if not run.wrong.any():
        return
    out, BM = run.out, run.sizes.BM
    tile = run.expected.T
    if np.array_equal(out.reshape(-1), tile.reshape(-1)):
        raise Refused(
            "Nothing is transposed: As holds A's elements in A's own order. Element `e` of the four from row "
            "`r`, column `c` belongs into row `c + e`, column `r`.",
            run.first_wrong,
        )
    fours = np.arange(run.sizes.BK) // 4 * 4
    if np.array_equal(out, run.expected[fours]):
        raise Refused(
            "All four elements that a thread stores are its first, `v[0]`. They are `v[e]`, e from 0 to 3.",
            run.first_wrong,
        )
    if np.array_equal(out, run.expected[fours + 3 - np.arange(run.sizes.BK) % 4]):
        raise Refused("The four elements of each thread arrive in reverse order.", run.first_wrong)
    missing = np.isnan(out)
    if missing.any() and not (run.wrong & ~missing).any():
        row, col = map(int, np.argwhere(missing)[0])
        rows = run.sizes.threads // (BM // 4)
        raise Refused(
            f"A part of out is never written, from row {row}, column {col} on. A row of out is BM // 4 "
            f"fours, so the block writes THREADS // (BM // 4) rows in a round, {rows} here: loop over them.",
            f"{run.sizes}.",
        )
    raise Refused("Not every float arrives at its place.", run.first_wrong)


# ---- what the emulator found -------------------------------------------------------------------------------


def _race(finding: Finding, run: Move) -> str:
    earlier = run.report.accesses.query("line == @finding.other_line and array == @finding.array")
    if "load" in set(run.report.accesses.query("site == @finding.site")["op"]) | set(earlier["op"]):
        return (
            "The barrier between filling As and reading it is missing: a thread reads what another brings. "
            f"{finding.message}"
        )
    return (
        "Two threads store at the same place of As. A row of As is BM + PAD floats long, one for every row "
        f"of A; BK is the length of A's rows. {finding.message}"
    )


def _uninitialised(finding: Finding, run: Move) -> str:
    return (
        "Something is read from As that nobody stored there. Are its rows BM + PAD floats long both where "
        f"you store and where you read? {finding.message}"
    )


def _out_of_bounds(finding: Finding, run: Move) -> str | None:
    if finding.array == run.name(0):
        return (
            "A thread reads A outside its tile. A row of A's tile is BK // 4 fours, so the row is `tid // "
            f"(BK // 4)` and the column `tid % (BK // 4) * 4`. {finding.message}"
        )
    if finding.array == run.name(1):
        return (
            "A thread writes outside out. A row of out is BM // 4 fours: its row is `tid // (BM // 4)`, its "
            f"column `tid % (BM // 4) * 4`. {finding.message}"
        )
    return (
        "A thread leaves As. It has BK rows of BM + PAD floats; A's column becomes the row, A's row the "
        f"column. {finding.message}"
    )


FINDINGS = {
    "misaligned_access": misaligned,
    "shared_race": _race,
    "uninitialised_read": _uninitialised,
    "out_of_bounds": _out_of_bounds,
    "global_race": lambda finding, run: (
        "Two threads write the same floats of out. The rounds overlap: the block writes THREADS // (BM // 4) "
        f"rows at a time. {finding.message}"
    ),
}


# ---- the lesson --------------------------------------------------------------------------------------------


def _check_declaration(kernel) -> None:
    """Where the shared array begins: nothing but its declaration can promise that."""
    for node in ast.walk(source_tree(kernel.py_func)):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("shared.array")):
            continue
        alignment = next((word.value for word in node.keywords if word.arg == "alignment"), None)
        if len(node.args) < 3 and alignment is None:
            raise Refused(
                "The numbers are right, but nobody says that the shared array begins at a multiple of 16 "
                "bytes, as 128-bit accesses need it. On a GPU it may begin at any multiple of 4. Say it in "
                "the third argument: `cuda.shared.array(shape, float32, 16)`.",
                line_at(kernel, node.lineno),
            )
        said = node.args[2] if len(node.args) > 2 else alignment
        if isinstance(said, ast.Constant) and said.value not in POWERS:
            raise Refused(
                f"An alignment is a power of two, in bytes, and 128-bit accesses need 16; this is "
                f"`{said.value}`.",
                line_at(kernel, node.lineno),
            )


def _check_scatter(run: Move) -> None:
    """The stores into As take no more wavefronts than document 003's formulas with this padding."""
    stores = run.of("store")
    counted, enough = int(stores["wavefronts"].sum()), _wavefronts_of_the_scatter(run.sizes)
    if counted <= enough:
        return
    line, requests = int(stores["line"].iloc[0]), int(stores["requests"].sum())
    told = f"{counted / requests:g} wavefronts a request where {enough / requests:g} do"
    unpadded = 4 * run.sizes.BK * (run.sizes.BM + run.sizes.pad) > run.report.shared_bytes
    why = (
        "The rows of As are BM floats long, without the PAD behind them."
        if unpadded
        else "Is it padding behind each row, `BM + PAD`, that lies between two elements of a four?"
    )
    raise Refused(
        f"The numbers are right, but the stores into As have bank conflicts: {told}. {why}",
        f"{line_at(run.kernel, line)}. {run.sizes}.",
    )


def _wavefronts_of_the_scatter(sizes: Sizes) -> int:
    fours, width = sizes.BK // 4, sizes.BM + sizes.pad
    total = 0
    for start in range(0, sizes.BM * fours, 32):
        row, column = divmod(np.arange(start, start + 32), fours)
        total += sum(wavefronts((4 * column + e) * width + row, 32, "store") for e in range(4))
    return total
