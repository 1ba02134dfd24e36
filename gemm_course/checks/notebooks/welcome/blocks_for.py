"""Checks ``blocks_for``: how many blocks cover n elements."""

from gemm_course.checks.engines.tables import Slip, a_whole_number, table_exercise

LENGTHS = (1, 31, 128, 129, 300, 1000, 4096, 999_999, 1_000_000)
CASES = (*((n, threads) for threads in (32, 128, 100) for n in LENGTHS), (0, 32), (0, 128))

SLIPS = (
    Slip(
        "Rounded down: the last, partly filled block is missing, and no thread works on its elements.",
        lambda n, threads: n // threads,
    ),
    Slip(
        "One block too many wherever `n` is a multiple of `threads`: rounding down and adding one is not "
        "rounding up.",
        lambda n, threads: n // threads + 1,
    ),
    Slip(
        "`n % threads` is how many elements are left over. One more block is enough for them all.",
        lambda n, threads: n // threads + n % threads,
    ),
    Slip(
        "`//` comes before `+` and `-`: `1 // threads` is computed first, and is 0. Put the sum in brackets.",
        lambda n, threads: n + threads - 1 // threads,
    ),
    Slip(
        "The arguments are swapped: `n` elements are dealt out in portions of `threads`.",
        lambda n, threads: -(-threads // n) if n else None,
    ),
    Slip(
        "Rounded to the nearest number: where that is down, elements are missing.",
        lambda n, threads: round(n / threads),
    ),
    Slip(
        "That is how many threads are launched, `threads` for each block. The question is how many blocks.",
        lambda n, threads: -(-n // threads) * threads,
    ),
    Slip(
        "128 stands in the formula: right for blocks of 128 alone. The size is the argument `threads`.",
        lambda n, threads: -(-n // 128),
    ),
    Slip(
        "32 stands in the formula: that counts warps. A block has `threads` threads.",
        lambda n, threads: -(-n // 32),
    ),
    Slip(
        "Rounded down, and 1 at least: that helps only where everything fits into one block. The last, "
        "partly "
        "filled block is missing.",
        lambda n, threads: max(1, n // threads),
    ),
    Slip(
        "No elements need no blocks: for `n = 0` the answer is 0. (A launch of 0 blocks is an error, but "
        "that is for whoever launches.)",
        lambda n, threads: max(1, -(-n // threads)),
    ),
)


@table_exercise(
    start="`blocks_for` returns None. Try numbers first: with 128 threads per block, 128 elements take 1 "
    "block, 129 take 2.",
    hints=(
        "It is a division, rounded up. Python's `//` rounds down.",
        "Add something to `n` before you divide, so that every remainder reaches the next multiple and a "
        "multiple stays where it is.",
        "`(n + threads - 1) // threads`, or `-(-n // threads)`.",
    ),
    cases=CASES,
    slips=SLIPS,
    read=a_whole_number("the number of blocks"),
    passed=f"{len(CASES)} cases from n = 0 to 1,000,000: no element left out, no block too many.",
)
def blocks_for(n, threads):
    """blocks_for(n, threads) -> the fewest blocks that have a thread for each of n elements."""
    return -(-n // threads)
