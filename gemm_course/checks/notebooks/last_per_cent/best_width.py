"""Checks ``best_width``: the width of tile with which a product takes the least time."""

from collections.abc import Callable

from gemm_course.checks.core import Refused
from gemm_course.checks.engines.tables import Slip, table_exercise
from gemm_course.kernels.c07_stream_k_fp16 import STEP

SMS, BM = 132, 128
SQUARES = (1024, 1536, 2048, 3072, 4096, 5120, 6144, 8192)
CASES = (
    *((n, n) for n in SQUARES),
    (8192, 1024),
    (4096, 14336),
    (2500, 3500),
    (128, 16384),
    (512, 300),
    (128, 16896),
    (8512, 1024),
    (832, 1216),
    (3000, 3100),
)


def _tiles(m, n, BN):
    return -(-m // BM) * -(-n // BN)


def _waves(m, n, BN):
    return -(-_tiles(m, n, BN) // SMS)


def _least(cost: Callable) -> Callable:
    """Return the width with the least cost(m, n, BN), of equals the first that Python's min finds."""
    return lambda m, n: min(STEP, key=lambda BN: cost(m, n, BN))


def _read(answer) -> int:
    if isinstance(answer, bool) or answer not in STEP:
        raise Refused(f"The answer must be one of the widths, {', '.join(map(str, STEP))}, not `{answer!r}`.")
    return int(answer)


SLIPS = (
    Slip(
        "That is the fewest waves, whatever a wave takes. One of wide tiles takes longer than one of narrow "
        "tiles: multiply the waves by `STEP`.",
        _least(_waves),
    ),
    Slip(
        "That is the fullest last wave. It wastes least of its places, but how long do all waves take?",
        _least(lambda m, n, BN: -_tiles(m, n, BN) / (_waves(m, n, BN) * SMS)),
    ),
    Slip(
        "That counts tiles, not waves. 132 tiles run at once, and a last wave of a few takes as long "
        "as a full "
        "one: divide by 132 and round up.",
        _least(lambda m, n, BN: _tiles(m, n, BN) * STEP[BN]),
    ),
    Slip(
        "The number of waves is rounded down: the last one is missing.",
        _least(lambda m, n, BN: _tiles(m, n, BN) // SMS * STEP[BN]),
    ),
    Slip(
        "One wave too many where the last one is full: 132 tiles are one wave, and `tiles // 132 + 1` "
        "makes two.",
        _least(lambda m, n, BN: (_tiles(m, n, BN) // SMS + 1) * STEP[BN]),
    ),
    Slip(
        "`m / 128` is rounded down: rows that do not fill a tile need one as well. Round up.",
        _least(lambda m, n, BN: -(-(m // BM) * -(-n // BN) // SMS) * STEP[BN]),
    ),
    Slip(
        "`n / BN` is rounded down: columns that do not fill a tile need one as well. Round up.",
        _least(lambda m, n, BN: -(-(-(-m // BM) * (n // BN)) // SMS) * STEP[BN]),
    ),
    Slip(
        "The elements of C, divided by those of a tile, are too few tiles: one that is not full is a tile as "
        "well. Round `m / 128` and `n / BN` up one by one, then multiply.",
        _least(lambda m, n, BN: -(-m * n // (BM * BN) // SMS) * STEP[BN]),
    ),
    Slip(
        "m and n are swapped: tiles are 128 rows high and BN columns wide, so m is divided by 128, n by BN.",
        _least(lambda m, n, BN: _waves(n, m, BN) * STEP[BN]),
    ),
    Slip(
        "Tiles are 128 rows high, whatever their width: `m / 128` of them, rounded up, one below the other.",
        _least(lambda m, n, BN: -(-(-(-m // BN) * -(-n // BN)) // SMS) * STEP[BN]),
    ),
    Slip(
        "That is always 64, the tile whose step is shortest. How many waves of it are there, and how long "
        "does each take? (A step of 64 columns takes 0.44 of one of 256, not a quarter.)",
        lambda m, n: 64,
    ),
    Slip(
        "That is always the widest. Where it leaves half of the SMs idle, narrower ones are faster.",
        lambda m, n: 256,
    ),
    Slip(
        "That is the longest time, not the shortest: `min`, not `max`.",
        lambda m, n: max(STEP, key=lambda BN: _waves(m, n, BN) * STEP[BN]),
    ),
)


def _difference(case: tuple, answer, right) -> str:
    m, n = case
    told = "; ".join(
        f"{BN}: waves {_waves(m, n, BN)}, each {STEP[BN]}, together {_waves(m, n, BN) * STEP[BN]:.2f}"
        for BN in (answer, right)
    )
    return f"First wrong case: `best_width({m}, {n})` gives {answer}, right is {right}. {told}."


@table_exercise(
    start="compute the waves of each width, with 132 tiles of 128 × BN in each.",
    hints=(
        "The waves of a width: the tiles, divided by 132, rounded up.",
        "Time is waves · `STEP[BN]`; k is the same for all.",
        "`min(STEP, key=lambda BN: time(m, n, BN))` returns the width with the least time.",
    ),
    cases=CASES,
    slips=SLIPS,
    read=_read,
    difference=_difference,
    passed=f"Right for {len(CASES)} shapes. Below, what was measured with these widths.",
)
def best_width(m, n):
    """best_width(m, n) -> BN of 64, 128, 192, 256: tiles of 128 by BN take the least time on 132 SMs."""
    return min(STEP, key=lambda BN: _waves(m, n, BN) * STEP[BN])
