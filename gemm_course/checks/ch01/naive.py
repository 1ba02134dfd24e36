"""Notebook 01: the naive kernel, its loads and sectors, and the float64 that sneaks in."""

import functools

import numpy as np

from gemm_course.checks.core import (
    NothingYet,
    Refused,
    exercise,
    function_of,
    kernel_of,
    line_at,
    whole_number,
)
from gemm_course.checks.engines.float64 import why_float64
from gemm_course.checks.engines.gemm import GEMM, GemmTrial, hold_to_numbers
from gemm_course.checks.engines.problem import Geometry
from gemm_course.checks.engines.tables import Slip, hold_to_table
from gemm_course.emulator import emulate
from gemm_course.kernels import LADDER

GEOMETRY = Geometry((32, 4), "rows")

# ---- 01.1 ------------------------------------------------------------------------------------------------


@exercise(
    "01.1",
    start="the kernel does nothing yet. Begin with the guard, `if row < m and col < n:`, and in it a sum "
    "that starts at `float32(0)`.",
    hints=(
        "A thread computes one element of C: row `row` of A times column `col` of B.",
        "Sum in a variable of the thread's own: `acc += A[row, p] * B[p, col]` for `p` from 0 to k - 1. "
        "Touch C once, after the loop.",
        "Two cases at the end: with `beta == 0` store `alpha * acc` and leave the old C alone; otherwise add "
        "`beta * C[row, col]`.",
    ),
)
def naive(naive):
    trials = hold_to_numbers(naive, GEOMETRY)
    for trial in trials:
        _hold_to_naive_counts(trial)
    shown = trials[-3].problem
    return (
        f"{len(trials)} problems right, from whole blocks to a single element. Exactly 2·m·n·k loads from A "
        f"and B, one store an element, and with beta = 0 not a single load from C. (m, n, k = {shown.m}, "
        f"{shown.n}, {shown.k}: {trials[-3].lanes('load', 'A', 'B'):,} loads.)"
    )


def _hold_to_naive_counts(trial: GemmTrial) -> None:
    """2mnk loads from A and B, mn stores, and mn loads from C where beta is not 0."""
    q = trial.problem
    elements, about = q.m * q.n, f"In the problem {q}."
    from_c, stores = trial.lanes("load", "C"), trial.lanes("store", "C")
    if stores > elements:
        raise Refused(
            f"Right, but `C` is stored {stores:,} times for {elements:,} elements. Every store goes out to "
            "memory: sum in a variable of the thread's own, and store once, after the loop.",
            about,
        )
    if q.beta == 0 and from_c:
        raise Refused(
            "`C` is loaded although `beta` is 0. The numbers come out right, since nothing is done with what "
            "was loaded, but the loads are made all the same: put them where `beta` is not 0.",
            about,
        )
    if from_c > elements:
        raise Refused(
            f"Right, but `C` is loaded {from_c:,} times for {elements:,} elements: once will do.", about
        )
    for name in ("A", "B"):
        loads, wanted = trial.lanes("load", name), elements * q.k
        if loads > wanted:
            raise Refused(
                f"Right, but `{name}` is loaded {loads:,} times where m·n·k = {wanted:,} are enough: once a "
                "thread and step.",
                about,
            )
        if loads < wanted:
            raise Refused(
                f"Right, and with only {loads:,} loads from `{name}` instead of m·n·k = {wanted:,}. That is "
                "for later notebooks; here every thread loads what it needs itself.",
                about,
            )


# ---- 01.2 ------------------------------------------------------------------------------------------------

SIZES = ((1, 1, 1), (2, 3, 5), (32, 32, 32), (70, 60, 50), (1024, 512, 256), (33, 1, 7))

LOAD_SLIPS = (
    Slip("That is what one thread loads. How many threads are there?", lambda m, n, k: 2 * k),
    Slip("That is A alone (or B alone). Every product needs an element of each.", lambda m, n, k: m * n * k),
    Slip(
        "That counts C in. With `beta = 0` C is only stored, and the question is about A and B.",
        lambda m, n, k: 2 * m * n * k + m * n,
    ),
    Slip(
        "Those are bytes: 4 for each element. The question asks for elements.", lambda m, n, k: 8 * m * n * k
    ),
    Slip(
        "That would be each element of A and B once. But threads do not share what they load: every thread "
        "fetches its whole row and its whole column.",
        lambda m, n, k: m * k + k * n,
    ),
    Slip("The loop has k steps, and every one of them loads.", lambda m, n, k: 2 * m * n),
    Slip(
        "Those are warps' requests, 32 lanes each. Elements are wanted.", lambda m, n, k: 2 * m * n * k // 32
    ),
    Slip(
        "Those are the multiplications and additions counted with the loads. Loads only: two a step.",
        lambda m, n, k: 4 * m * n * k,
    ),
)


@exercise(
    "01.2",
    start="`loads` returns None. Ask first what a single thread loads: it walks along a row of A and down a "
    "column of B, k elements each.",
    hints=(
        "How many elements does one thread load in one step of the loop, and how many steps are there?",
        "And how many threads are there that compute something? One for every element of C.",
        "(threads) × (steps) × (loads a step): m·n, k, and 2.",
    ),
)
def naive_loads(loads):
    loads = function_of(loads, ("m", "n", "k"))
    hold_to_table(
        loads,
        SIZES,
        lambda m, n, k: 2 * m * n * k,
        LOAD_SLIPS,
        read=lambda answer: whole_number(answer, "the number of loads"),
    )
    return "2·m·n·k: every thread loads its k elements of A and its k elements of B, and shares none."


# ---- 01.3 ------------------------------------------------------------------------------------------------


@functools.cache
def _sectors_of_naive() -> dict[str, int]:
    """Sectors of one request of the course's kernel for A, B (loads) and C (store), rows at sectors."""
    stage, size, depth = LADDER["naive_uncoalesced"], 64, 8
    tiles = {"BM": 32, "BN": 32}
    a, b = np.ones((size, depth), np.float32), np.ones((depth, size), np.float32)
    c = np.zeros((size, size), np.float32)
    report = emulate(
        stage.kernel(tiles),
        stage.grid(size, size, tiles),
        stage.block(tiles),
        size, size, depth, np.float32(1), a, b, np.float32(0), c,
    )  # fmt: skip
    ops = {"A": "load", "B": "load", "C": "store"}
    return {name: round(report.sectors_per_request(array=name, op=op)) for name, op in ops.items()}


SINGLE_SECTORS = {
    "A": "A is not right. Which elements of A do the 32 lanes want? Their rows are all different, `p` is the "
    "same: they stand one above the other.",
    "B": "B is not right. Which elements of B do the 32 lanes want? `col` and `p` are the same for all of "
    "them: they all want one and the same.",
    "C": "C is not right. Where do the 32 lanes store? In 32 different rows, one above the other, as they "
    "read A.",
}


@exercise(
    "01.3",
    start="put three numbers in place of None. For each array ask where the 32 lanes' elements lie: side by "
    "side, one above the other, or all in one place?",
    hints=(
        "x runs over the rows: the 32 lanes of a warp have 32 different rows, and all the same column.",
        "Elements one above the other lie in different rows, and here each row begins a sector anew.",
        "If all lanes want the same element, its sector is moved once and handed to all: a broadcast.",
    ),
)
def naive_sectors(A=None, B=None, C=None):
    answer = {"A": A, "B": B, "C": C}
    missing = [name for name, value in answer.items() if value is None or value is Ellipsis]
    if missing:
        raise NothingYet(f"{' and '.join(missing)} still missing. All three numbers are needed.")
    answer = {name: whole_number(value, f"`{name}`") for name, value in answer.items()}
    right = _sectors_of_naive()
    if answer == right:
        return "A 32, B 1, C 32: a sector for each lane, one for all of them, and again one for each."
    where = "Yours: " + ", ".join(f"{name} {value}" for name, value in answer.items()) + "."
    raise Refused(_sector_mistake(answer, right), where)


def _sector_mistake(answer: dict[str, int], right: dict[str, int]) -> str:
    numbers = tuple(answer.values())
    if numbers == (right["B"], right["A"], right["C"]):
        return "A and B are exchanged. Lanes differ in `row`, and `row` is an index of A: `A[row, p]`."
    if numbers == (4, 4, 4):
        return (
            "4 is right for 32 neighbours *side by side* in a row. Here the lanes stand one above the other."
        )
    if numbers == (32, 32, 32):
        return (
            "32 for A and C is right. But all lanes want the same element of B, `B[p, col]`: how often is "
            "its sector moved?"
        )
    if numbers == (1, 1, 1):
        return "1 is right for B only, where all lanes want the same element. In A and C each has its own."
    if any(value in (128, 1024) for value in numbers):
        return "Those are bytes: 32 lanes × 4 bytes are used, 32 sectors × 32 bytes moved. Count the sectors."
    if any(value == 8 for value in numbers):
        return "8 is the number of floats in one sector. Count the sectors that the 32 addresses lie in."
    wrong = [name for name in answer if answer[name] != right[name]]
    if len(wrong) == 1:
        return SINGLE_SECTORS[wrong[0]]
    return (
        f"{' and '.join(wrong)} are not right. Write down the addresses of the first two lanes: how far "
        "apart are they?"
    )


# ---- 01.4 ------------------------------------------------------------------------------------------------


@exercise(
    "01.4",
    start="the kernel is still empty. Copy the one above and look for numbers that are written without a "
    "type.",
    hints=(
        "`report.arithmetic` of the kernel above shows which lines compute in float64. Start with the first.",
        "A literal with a point is float64. A whole number together with float32 makes float64 as well.",
        "`float32(0)` makes a float32 zero, and a factor of 1 can go altogether.",
        "`acc = float32(0)`, and at the end `alpha * acc + beta * C[row, col] if beta != 0 else alpha * "
        "acc`.",
    ),
)
def no_float64(lean):
    kernel = kernel_of(lean, GEMM)
    trials = hold_to_numbers(kernel, GEOMETRY, too_coarse=_half_precision)
    for trial in trials:
        _refuse_float64(trial)
    operations = sum(int(trial.report.arithmetic["lanes"].sum()) for trial in trials)
    return (
        f"{len(trials)} problems right, {operations:,} floating-point operations, not one of them in float64."
    )


def _refuse_float64(trial: GemmTrial) -> None:
    arithmetic = trial.report.arithmetic
    lines = set(arithmetic.loc[arithmetic["dtype"] == "float64", "line"])
    lines |= {finding.line for finding in trial.report.findings if finding.kind == "float64_arithmetic"}
    if not lines:
        return
    first = min(lines)
    lanes = arithmetic.loc[arithmetic["dtype"] == "float64", "lanes"].sum()
    raise Refused(
        why_float64(trial.kernel, sorted(lines)),
        f"{line_at(trial.kernel, first)}. {lanes:,} operations in float64 in the problem {trial.problem}.",
    )


def _half_precision(trial: GemmTrial) -> str | None:
    dtypes = set(trial.report.arithmetic["dtype"])
    if "float16" in dtypes:
        return (
            "No float64 any more, but float16 instead: it has 11 binary digits, and the sum loses more than "
            "float32 would. The matrices are float32; compute in that."
        )
    return None
