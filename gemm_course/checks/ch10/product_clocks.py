"""Exercise 10.6: what mma.sync alone allows, from a profile's counts."""

from gemm_course.checks.core import Refused, exercise, nothing_yet
from gemm_course.checks.engines.tables import numbers
from gemm_course.profiles import recorded

NAMES = ("clocks", "busy", "at_most")
CLOCKS_PER_PRODUCT, CORES = 6, 132 * 4


@exercise(
    "10.6",
    start="divide the products among the Tensor Cores, 6 clocks for each.",
    hints=(
        "132 SMs have 4 Tensor Cores each: 528. Each does its share of the products, one after the other.",
        "`busy` is that time, in percent of the clocks that the kernel took.",
        "If the Tensor Cores never paused, the kernel would take `clocks` instead of all its clocks: its "
        "share "
        "of cuBLAS would be larger by that factor. Divide 63.0 by the part of the time that they are busy.",
    ),
)
def product_clocks(answer):
    """(clocks, busy in percent, percent of cuBLAS at most) for mma_sync's recorded profile."""
    if isinstance(answer, (tuple, list)) and any(part is None or part is Ellipsis for part in answer):
        raise nothing_yet()
    given, right = numbers(*NAMES)(answer), _right()
    for place, name in enumerate(NAMES):
        if not _near(given[place], right[place]):
            message = next((words for words, wrong in _slips()[place] if _near(given[place], wrong)), None)
            raise Refused(message or OTHERWISE[place], f"`{name}` is {given[place]:,.5g}.")
    return (
        f"{right[0]:,.0f} clocks of {_counted()[1]:,.0f} are {right[1]:.0f} %, as the profile says. And with "
        f"Tensor Cores that never pause it would be {right[2]:.0f} % of cuBLAS: the rest no better loop can "
        "bring."
    )


SHARE = 63.0  # percent of cuBLAS: mma_sync at 4096³ in the ladder's file


def _counted() -> tuple[float, float]:
    """The products of mma_sync, and the clocks in which an SM had work, in its profile."""
    measured = recorded("mma_sync").measured
    return measured["mma_instructions"], measured["active_clocks"]


def _right() -> tuple[float, float, float]:
    products, clocks = _counted()
    least = products / CORES * CLOCKS_PER_PRODUCT
    return least, 100 * least / clocks, SHARE * clocks / least


def _near(given: float, right: float) -> bool:
    return abs(given - right) <= 0.006 * right


OTHERWISE = (
    "The clocks are not right: products, divided among 528 Tensor Cores, times 6.",
    "The share is not right: your clocks, in percent of the kernel's.",
    "The last one is not right: cuBLAS's share now, divided by the part of the time that the cores are busy.",
)


def _slips() -> tuple[tuple[tuple[str, float], ...], ...]:
    least, busy, most = _right()
    return (
        (
            ("That divides by the SMs. Each has four Tensor Cores, which work at the same time.", 4 * least),
            ("That is with 4 clocks per product, as the data sheet has it. 6 were measured.", least * 4 / 6),
            ("That is one clock per product: each keeps its Tensor Core busy for 6.", least / 6),
            ("That is as if one Tensor Core did all products. There are 132 · 4.", least * CORES),
            ("That divides by four Tensor Cores. Each of the 132 SMs has four.", least * 132),
        ),
        (
            ("The share: write percent, not a fraction.", busy / 100),
            ("That is the part of the time that they are *not* busy.", 100 - busy),
            ("The other way round: the products' clocks, divided by the kernel's.", 1e4 / busy),
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
