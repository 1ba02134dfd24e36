"""Exercise 07.1: WMITER, WSUBM and WSUBN."""

from gemm_course.checks.core import Refused, function_of, whole_number
from gemm_course.checks.engines.tables import Slip, hold_to_table
from gemm_course.model.formulas.document_003 import wmiter, wsub

PARAMETERS = ("WM", "WN", "TM", "TN", "WNITER")
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


def prove_steps(given) -> str:
    """What was proved of the learner's function; raises Refused with the first thing wrong."""
    function = function_of(given, PARAMETERS)
    hold_to_table(function, CASES, sizes, SLIPS, read=_three)
    shown = ", ".join(f"{name} = {value}" for name, value in zip(NAMES, sizes(*CASES[1])))
    return (
        f"Right for {len(CASES)} choices, also with TM = 4. With WM = 64, WN = 32, TN = 8, WNITER = 2: "
        f"{shown}."
    )


def sizes(WM: int, WN: int, TM: int, TN: int, WNITER: int) -> tuple[int, int, int]:
    """(WMITER, WSUBM, WSUBN)."""
    return wmiter(WM, WN, TM, TN, WNITER), *wsub(WM, WN, TM, TN, WNITER)


def _three(answer) -> tuple:
    if not isinstance(answer, (tuple, list)) or len(answer) != 3:
        raise Refused(f"Return three numbers, `(WMITER, WSUBM, WSUBN)`, not `{answer!r}`.")
    return tuple(whole_number(value, name) for name, value in zip(NAMES, answer))


def _with(steps):
    """The three numbers that follow from a wrong WMITER."""

    def answer(WM, WN, TM, TN, WNITER):
        down = steps(WM, WN, TM, TN, WNITER)
        return down, WM // down if down else 0, WN // WNITER

    return answer


def _exchanged(WM, WN, TM, TN, WNITER):
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
        "WSUBM and WSUBN have their divisors exchanged: the WMITER steps lie one below the other, so WM is "
        "divided by WMITER and WN by WNITER.",
        _exchanged,
    ),
    Slip(
        "WSUBM and WSUBN are what a *warp* covers in a step, not what a thread does: WM / WMITER and WN / "
        "WNITER.",
        lambda WM, WN, TM, TN, WNITER: (wmiter(WM, WN, TM, TN, WNITER), TM, TN),
    ),
    Slip(
        "WSUBM and WSUBN stand the other way round: the order is WMITER, WSUBM, WSUBN.",
        lambda *case: (sizes(*case)[0], sizes(*case)[2], sizes(*case)[1]),
    ),
    Slip(
        "That takes WMITER to be WM / TM / WNITER: the rows of one thread below another. But 32 threads lie "
        "in a step, some below and some beside each other; count elements.",
        _with(lambda WM, WN, TM, TN, WNITER: WM // TM // WNITER),
    ),
)
