"""Exercise 00.3: how many lanes of a warp stay idle in blocks of 4 threads."""

from gemm_course.checks.core import exercise
from gemm_course.checks.engines.tables import hold_to_number

LANES, THREADS = 32, 4  # of a warp, of a block

KNOWN = {
    0: "No: blocks do not share warps to fill them up. Every block of 4 gets a warp of its own.",
    4: "4 is how many lanes are busy. The question is how many are idle.",
    124: "A warp has 32 lanes, not 128. (A line has 128 bytes.)",
    7: "7 more blocks would fit into the warp, but blocks do not share warps: their lanes stay empty. Count "
    "lanes, not blocks.",
    8: "8 is how many blocks of 4 would fit into 32. Blocks do not share warps, though.",
    32: "If all 32 were idle, nobody would work: 4 lanes have a thread.",
}


@exercise(
    "00.3",
    start="put your number in place of None: `check.idle_lanes(...)`. A warp has 32 lanes, and the whole "
    "warp belongs to one block.",
    hints=(
        "A warp never has threads of two blocks.",
        "So every block of 4 threads takes a warp of its own. How many of its 32 lanes are left over?",
    ),
)
def idle_lanes(answer):
    """The number of idle lanes in each warp, with blocks of 4 threads."""
    hold_to_number(
        answer,
        LANES - THREADS,
        KNOWN,
        "Not that number. A warp has 32 lanes, and only one block's threads are in it.",
    )
    return (
        "28 of 32 lanes are idle: seven eighths of the machine, because warps are not shared between blocks."
    )
