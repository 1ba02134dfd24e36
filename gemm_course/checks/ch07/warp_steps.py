"""Exercise 07.1: WMITER, WSUBM and WSUBN."""

from gemm_course.checks.engines.tables import Slip, table_exercise, whole_numbers
from gemm_course.model.formulas.document_003 import wmiter, wsub

NAMES = ("WMITER", "WSUBM", "WSUBN")
CASES = (
    (64, 32, 1, 8, 1),
    (64, 32, 1, 8, 2),
    (32, 64, 1, 4, 2),
    (128, 64, 1, 16, 1),
    (64, 64, 4, 4, 2),
    (64, 128, 4, 4, 4),
    (96, 64, 1, 8, 1),
    (128, 64, 1, 4, 1),
)


def _with(steps):
    """The three numbers that follow from a wrong WMITER."""

    def answer(WM, WN, TM, TN, WNITER):
        down = steps(WM, WN, TM, TN, WNITER)
        return down, WM // down if down else 0, WN // WNITER

    return answer


def _swapped(WM, WN, TM, TN, WNITER):
    down = wmiter(WM, WN, TM, TN, WNITER)
    return down, WM // WNITER, WN // down


SLIPS = (
    Slip(
        "WNITER is missing: in one step a warp computes 32 · TM · TN elements, and it makes WNITER such "
        "steps side by side before it goes one down. So WMITER = WM·WN / (32·TM·TN·WNITER).",
        _with(lambda WM, WN, TM, TN, WNITER: WM * WN // (32 * TM * TN)),
    ),
    Slip(
        "A warp has 32 threads, and they share its tile: what one thread covers in a step, TM · TN, "
        "counts 32 times.",
        _with(lambda WM, WN, TM, TN, WNITER: WM * WN // (TM * TN * WNITER)),
    ),
    Slip(
        "WSUBM and WSUBN have their divisors swapped: the WMITER steps lie one below the other, so WM is "
        "divided by WMITER and WN by WNITER.",
        _swapped,
    ),
    Slip(
        "WSUBM and WSUBN are what a *warp* covers in a step, not what a thread does: WM / WMITER and WN / "
        "WNITER.",
        lambda WM, WN, TM, TN, WNITER: (wmiter(WM, WN, TM, TN, WNITER), TM, TN),
    ),
    Slip(
        "WSUBM and WSUBN stand the other way round: the order is WMITER, WSUBM, WSUBN.",
        lambda *case: (_sizes(*case)[0], _sizes(*case)[2], _sizes(*case)[1]),
    ),
    Slip(
        "That takes WMITER to be WM / TM / WNITER: the rows of one thread below another. But 32 threads lie "
        "in a step, some below and some beside each other; count elements.",
        _with(lambda WM, WN, TM, TN, WNITER: WM // TM // WNITER),
    ),
)


def _sizes(WM: int, WN: int, TM: int, TN: int, WNITER: int) -> tuple[int, int, int]:
    return wmiter(WM, WN, TM, TN, WNITER), *wsub(WM, WN, TM, TN, WNITER)


def _passed(right) -> str:
    shown = ", ".join(f"{name} = {value}" for name, value in zip(NAMES, right(*CASES[1])))
    return (
        f"Right for {len(CASES)} choices, also with TM = 4. With WM = 64, WN = 32, TN = 8, WNITER = 2: "
        f"{shown}."
    )


@table_exercise(
    "07.1",
    start="how many elements do 32 threads compute in one step, TM by TN each? How often is that WM by WN?",
    hints=(
        "In one step a warp computes 32 · TM · TN elements. WNITER steps lie side by side; WMITER such "
        "rows of steps lie one below the other.",
        "All steps together are the warp's tile: WMITER · WNITER · 32 · TM · TN = WM · WN.",
        "`WMITER = WM * WN // (32 * TM * TN * WNITER)`; a step is `WM // WMITER` rows high and `WN // "
        "WNITER` columns wide.",
    ),
    cases=CASES,
    slips=SLIPS,
    read=whole_numbers(*NAMES),
    passed=_passed,
)
def warp_steps(WM, WN, TM, TN, WNITER):
    """steps(WM, WN, TM, TN, WNITER) -> (WMITER, WSUBM, WSUBN)."""
    return _sizes(WM, WN, TM, TN, WNITER)
