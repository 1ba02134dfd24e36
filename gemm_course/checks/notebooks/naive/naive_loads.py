"""Checks ``naive_loads``: how many elements the naive kernel loads."""

from gemm_course.checks.engines.tables import Slip, a_whole_number, names_without_effect, table_exercise

SIZES = (
    (1, 1, 1),
    (2, 3, 5),
    (4, 3, 5),
    (2, 6, 5),
    (2, 3, 7),
    (32, 32, 32),
    (70, 60, 50),
    (1024, 512, 256),
    (33, 1, 7),
)

SLIPS = (
    Slip("That is what one thread loads. How many threads are there?", lambda m, n, k: 2 * k),
    Slip("That is A alone (or B alone). Every product needs an element of each.", lambda m, n, k: m * n * k),
    Slip(
        "That counts C too. With `beta = 0` C is only stored, and the question is about A and B.",
        lambda m, n, k: 2 * m * n * k + m * n,
    ),
    Slip(
        "Those are bytes: 4 for each element. The question asks for elements.", lambda m, n, k: 8 * m * n * k
    ),
    Slip(
        "That would be each element of A and B once. But each thread issues its own loads, a whole row and a "
        "whole column. What a warp shares are the sectors of one request, not the loads.",
        lambda m, n, k: m * k + k * n,
    ),
    Slip("The loop has k steps, and every one of them loads.", lambda m, n, k: 2 * m * n),
    Slip(
        "Those are warps' requests, 32 lanes each. The question asks for elements.",
        lambda m, n, k: 2 * m * n * k // 32,
    ),
    Slip(
        "Those are sectors, 33 for a warp's step. The question asks for elements, two per thread and step.",
        lambda m, n, k: 33 * m * n * k // 32,
    ),
    Slip(
        "That counts the multiplications and additions as well. Count the loads only: two per step.",
        lambda m, n, k: 4 * m * n * k,
    ),
)


@table_exercise(
    start="`loads` returns None. Ask first what a single thread loads: it walks along a row of A and down a "
    "column of B, k elements each.",
    hints=(
        "How many elements does one thread load in one step of the loop, and how many steps are there?",
        "And how many threads compute something? One for every element of C.",
        "(threads) × (steps) × (loads per step): m·n, k, and 2.",
    ),
    cases=SIZES,
    slips=SLIPS,
    otherwise=names_without_effect("m", "n", "k"),
    read=a_whole_number("the number of loads", floats=True),
    passed="2·m·n·k: each thread issues 2·k loads of its own. Lanes share sectors within a "
    "request; that does not change the number of loads.",
)
def naive_loads(m, n, k):
    """loads(m, n, k) -> the elements of A and B that the naive kernel loads, all threads together."""
    return 2 * m * n * k
