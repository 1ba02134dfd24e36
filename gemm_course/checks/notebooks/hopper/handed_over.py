"""Checks how many registers consumers can have if the producer gives most of its own back."""

from gemm_course.checks.engines.tables import Slip, names_without_effect, table_exercise, whole_numbers

# An SM has 65,536 registers, and a warpgroup 128 threads. Registers are given in multiples of 8.
REGISTERS, WARPGROUP, STEP = 65_536, 128, 8
# The cases are (consumers, registers that the producer keeps per thread).
CASES = ((2, 56), (3, 56), (2, 24), (3, 24), (2, 48), (3, 40), (2, 120))


def _down(number):
    return number // STEP * STEP


def _start(consumers):
    return _down(REGISTERS // (WARPGROUP * (consumers + 1)))


def _after(consumers, kept):
    start = _start(consumers)
    return _down(start + (start - kept) // consumers)


SLIPS = (
    Slip(
        "At the start the producer's warpgroup counts as well: a launch gives all threads the same.",
        lambda c, kept: (_down(REGISTERS // (WARPGROUP * c)), _after(c, kept)),
    ),
    Slip(
        "The producer's 128 threads get registers at the launch as well: divide among one warpgroup more.",
        lambda c, kept: (
            _down(REGISTERS // (WARPGROUP * c)),
            _down(_down(REGISTERS // (WARPGROUP * c)) + (_down(REGISTERS // (WARPGROUP * c)) - kept) // c),
        ),
    ),
    Slip(
        "The launch is without the producer here. Its warpgroup is there from the start and has its share.",
        lambda c, kept: (
            _down(REGISTERS // (WARPGROUP * c)),
            _down(REGISTERS // (WARPGROUP * c) + (REGISTERS // (WARPGROUP * c) - kept) // c),
        ),
    ),
    Slip(
        "Nothing is rounded here. Registers are given in multiples of 8, at the launch and afterwards.",
        lambda c, kept: (
            REGISTERS // (WARPGROUP * (c + 1)),
            REGISTERS // (WARPGROUP * (c + 1)) + (REGISTERS // (WARPGROUP * (c + 1)) - kept) // c,
        ),
    ),
    Slip(
        "Registers are given in multiples of 8: round down.",
        lambda c, kept: (
            REGISTERS // (WARPGROUP * (c + 1)),
            (REGISTERS // WARPGROUP - kept) // c,
        ),
    ),
    Slip(
        "The first number is right. What the consumers get must be a multiple of 8 as well: round down.",
        lambda c, kept: (_start(c), _start(c) + (_start(c) - kept) // c),
    ),
    Slip(
        "What the producer gives back is shared among the consumers: divide it by their number.",
        lambda c, kept: (_start(c), _down(2 * _start(c) - kept)),
    ),
    Slip(
        "The producer gives back what it does not keep: its share at the start less `kept`.",
        lambda c, kept: (_start(c), _down(_start(c) + kept // c)),
    ),
    Slip(
        "The consumers share all that the producer had, but it keeps some.",
        lambda c, kept: (_start(c), _down(_start(c) + _start(c) // c)),
    ),
    Slip(
        "That shares out registers which rounding down at the start has left to nobody. Only what a "
        "warpgroup has can be handed over: `start - kept`.",
        lambda c, kept: (_start(c), _down((REGISTERS // WARPGROUP - kept) // c)),
    ),
    Slip(
        "The second number is what the consumers have already. Add their part of what is given back.",
        lambda c, kept: (_start(c), _start(c)),
    ),
    Slip(
        "The second number is only what a consumer gains. Add it to what it has.",
        lambda c, kept: (_start(c), _down((_start(c) - kept) // c)),
    ),
)


def _otherwise(cases, answers):
    if any(start != _start(consumers) for (consumers, _), (start, _) in zip(cases, answers)):
        return "The first number is not right. How many threads has the block, the producer's among them?"
    return names_without_effect("consumers", "kept")(cases, answers)


@table_exercise(
    start="how many threads has the block, and how many of 65,536 registers does each get at the launch?",
    hints=(
        "A block of C consumers and a producer has 128 · (C + 1) threads. Divide, and round down to a "
        "multiple of 8.",
        "The producer gives back `start - kept` per thread; C consumers share it.",
        "So `start + (start - kept) // C`, rounded down to a multiple of 8 again.",
    ),
    cases=CASES,
    slips=SLIPS,
    read=whole_numbers("at the start", "handed over"),
    otherwise=_otherwise,
    passed=f"Right. With two consumers {_start(2)} become {_after(2, 56)}, with three {_start(3)} become "
    f"{_after(3, 56)}: these are the numbers in the kernels.",
)
def handed_over(consumers, kept):
    """handed_over(consumers, kept) -> registers per thread (at the start, of a consumer afterwards)."""
    return _start(consumers), _after(consumers, kept)
