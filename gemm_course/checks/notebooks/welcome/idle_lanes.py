"""Checks ``idle_lanes``: how many lanes stay idle where blocks of 2 x 2 cover a matrix exactly."""

from gemm_course.checks.core import exercise
from gemm_course.checks.engines.tables import hold_to_number

# A warp has 32 lanes, and a block has 4 threads.
LANES, THREADS = 32, 4
ELEMENTS = 10 * 18
BLOCKS = ELEMENTS // THREADS
IDLE = BLOCKS * (LANES - THREADS)

KNOWN = {
    0: "Each thread has an element. The question is about lanes: some of them have no thread at all.",
    LANES - THREADS: "28 is right for one warp. How many warps are there?",
    THREADS: "4 lanes of each warp are busy. The question is how many are idle, in all warps together.",
    BLOCKS: "45 is the number of blocks, and of warps. How many lanes of each are idle?",
    ELEMENTS: "180 lanes are busy, one for each element. The question is how many are idle.",
    BLOCKS * LANES: "1440 is all lanes. 180 of them have a thread.",
    -ELEMENTS % LANES: "Blocks do not share warps: every block of 4 gets a warp of its own. So there are not "
    "6 warps but more.",
    BLOCKS * (128 - THREADS): "A warp has 32 lanes, not 128. (A line has 128 bytes.)",
    108: "108 is how many threads blocks of 8 × 4 have beyond the edge. Here the blocks are 2 × 2.",
}


@exercise(
    start="put your number in place of None: `check.idle_lanes(...)`. Count blocks, then warps, then lanes.",
    hints=(
        "Each block runs on its own, so a warp never has threads of two blocks. Every block of "
        "4 threads takes a warp of its own.",
        "How many of its 32 lanes are left over? And how many blocks cover 10 × 18 elements?",
    ),
)
def idle_lanes(answer):
    """The number of idle lanes in all warps, with blocks of 2 x 2 threads on 10 x 18 elements."""
    hold_to_number(
        answer,
        IDLE,
        KNOWN,
        "Not that number. Count the blocks; each has one warp, with 32 lanes and only 4 threads.",
    )
    return (
        "45 warps, 28 idle lanes in each: 1260 of 1440. Blocks of 8 × 4 have 108 threads beyond the edge, "
        "and only 9 warps: a few threads without an element are far cheaper."
    )
