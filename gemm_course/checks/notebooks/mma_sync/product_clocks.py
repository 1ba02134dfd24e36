"""Checks ``product_clocks``: the speed that mma.sync alone would allow, from the counts of a profile."""

from gemm_course.checks.core import Refused, exercise
from gemm_course.checks.engines.tables import numbers
from gemm_course.profiles import recorded

NAMES = ("clocks", "pauses", "at_most")
CLOCKS_PER_PRODUCT, CORES = 6, 132 * 4


@exercise(
    start="divide the products among the Tensor Cores, 6 clocks for each.",
    hints=(
        "132 SMs have 4 Tensor Cores each: 528. Each does its share of the products, one after the other.",
        "`pauses` are the clocks that are left of the kernel's.",
        "If the Tensor Cores never paused, the kernel would take `clocks` instead of all its clocks: its "
        "share "
        "of cuBLAS would be larger by that factor. Divide 63.0 by the part of the time that they are busy.",
    ),
)
def product_clocks(answer):
    """(clocks of products, of pauses, percent of cuBLAS at most) for mma_sync's recorded profile."""
    given, right = numbers(*NAMES)(answer), _right()
    for place, name in enumerate(NAMES):
        # The pauses are also right if they fit the clocks of products that the learner has given.
        fits = name == "pauses" and _near(given[0] + given[1], _counted()[1], 1e-4)
        if not fits and not _near(given[place], right[place], NEAR[place]):
            message = next((words for words, wrong in _slips()[place] if _near(given[place], wrong)), None)
            raise Refused(message or OTHERWISE[place], f"`{name}` is {_shown(given[place])}.")
    return (
        f"Right. They pause {100 * right[1] / _counted()[1]:.0f} % of the clocks: the profile's "
        f"{100 * right[0] / _counted()[1]:.0f} % busy was counted in another way, and agrees. Without pauses "
        f"it would be {right[2]:.0f} % of cuBLAS, at the same clock frequency, with the same start and end."
    )


# In the ladder's file mma_sync reaches this percentage of cuBLAS at 4096³.
SHARE = 63.0


def _counted() -> tuple[float, float]:
    """Return the products of mma_sync, and the clocks in which an SM had work, in its profile."""
    measured = recorded("mma_sync").measured
    return measured["mma_instructions"], measured["active_clocks"]


def _right() -> tuple[float, float, float]:
    products, clocks = _counted()
    least = products / CORES * CLOCKS_PER_PRODUCT
    return least, clocks - least, SHARE * clocks / least


# Two ways to count the products differ by 0.4 % in their clocks, and so by 2 % in the pauses that are left.
NEAR = (0.006, 0.02, 0.006)


def _near(given: float, right: float, share: float = 0.006) -> bool:
    return abs(given - right) <= share * right


def _shown(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.5g}"


OTHERWISE = (
    "The clocks are not right: products, divided among 528 Tensor Cores, times 6.",
    "The pauses are not right: the kernel's clocks, without those of its products.",
    "The last one is not right: cuBLAS's share now, divided by the part of the time that the cores are busy.",
)


def _slips() -> tuple[tuple[tuple[str, float], ...], ...]:
    least, pauses, most = _right()
    clocks = _counted()[1]
    busy = 100 * least / clocks
    return (
        (
            ("That divides by the SMs. Each has four Tensor Cores, which work at the same time.", 4 * least),
            ("That is with 4 clocks per product, as the data sheet has it. 6 were measured.", least * 4 / 6),
            ("That is one clock per product: each keeps its Tensor Core busy for 6.", least / 6),
            ("That is as if one Tensor Core did all products. There are 132 · 4.", least * CORES),
            ("That divides by four Tensor Cores. Each of the 132 SMs has four.", least * 132),
        ),
        (
            ("The pauses: count clocks, not percent.", 100 - busy),
            ("That is the clocks in which they work. Pauses are the others.", least),
            ("That adds the pauses of all Tensor Cores. Each pauses a 528th of it.", pauses * CORES),
            ("That is a fraction. Count clocks.", 1 - busy / 100),
        ),
        (
            (
                "That multiplies. Busy all the time, the kernel would be faster, so its share larger.",
                SHARE * busy / 100,
            ),
            (
                "That is the time they are busy. How fast would it be, compared with cuBLAS, if that "
                "were 100 %?",
                busy,
            ),
            ("cuBLAS is not at the limit of `mma.sync`: it has another instruction. Scale the 63.0 %.", 100),
            ("The last one: write percent, not a fraction.", most / 100),
            ("That adds what is missing to 63.0. Shares of time multiply speed: divide.", SHARE + 100 - busy),
        ),
    )
