"""Checks ``last_wave``: how many tiles and waves a product has, and how full the last wave is."""

from gemm_course.checks.engines.tables import Part, Slip, names_without_effect, table_exercise, whole_numbers

SMS = 132
SIZES = (
    (4096, 4096),
    (5120, 5120),
    (8192, 1024),
    (1000, 500),
    (2500, 3500),
    (1408, 3072),
    (128, 64),
    (33, 7),
    (896, 1216),
)
TILES = (128, 256), (128, 64), (256, 128)
CASES = tuple((*size, *tile) for size in SIZES for tile in TILES)


def _up(a: int, b: int) -> int:
    return -(-a // b)


def _tiles(m, n, BM, BN):
    return _up(m, BM) * _up(n, BN)


PARTS = (
    Part(
        "tiles",
        0,
        (
            Slip(
                "A tile that C fills in part is a tile as well, and takes as long as any: round up.",
                lambda m, n, BM, BN: (m // BM) * (n // BN),
            ),
            Slip(
                "BM and BN are swapped: a tile has BM rows, so m is divided by BM.",
                lambda m, n, BM, BN: _tiles(m, n, BN, BM),
            ),
            Slip(
                "You round up the whole quotient. Rows and columns of tiles are rounded up each by "
                "themselves.",
                lambda m, n, BM, BN: _up(m * n, BM * BN),
            ),
            Slip(
                "These are not tiles but results: divide m by BM and n by BN.",
                lambda m, n, BM, BN: m * n,
            ),
        ),
    ),
    Part(
        "waves",
        1,
        (
            Slip(
                "The last wave is a wave, however few tiles it has: round up.",
                lambda *case: _tiles(*case) // SMS,
            ),
            Slip(
                "One wave too many where the last one is full: 132 tiles are one wave.",
                lambda *case: _tiles(*case) // SMS + 1,
            ),
        ),
    ),
    Part(
        "tiles in the last wave",
        2,
        (
            Slip(
                "Where the last wave is full, it has 132 tiles, not 0.",
                lambda *case: _tiles(*case) % SMS,
            ),
            Slip(
                "Those are the places that stay empty. The question is how many tiles the last wave has.",
                lambda *case: -_tiles(*case) % SMS,
            ),
            Slip(
                "You shared all tiles out evenly. A wave is full before the next one begins.",
                lambda *case: _tiles(*case) // _up(_tiles(*case), SMS),
            ),
        ),
    ),
)


@table_exercise(
    start="how many rows of tiles are there, and how many columns? Round up.",
    hints=(
        "`-(-a // b)` is a / b rounded up.",
        "Waves: the tiles divided by 132, rounded up. All but the last are full.",
        "The last wave has what is left: `tiles - (waves - 1) * 132`.",
    ),
    cases=CASES,
    parts=PARTS,
    read=whole_numbers("tiles", "waves", "last"),
    otherwise=names_without_effect("m", "n", "BM", "BN"),
    passed=f"Right for {len(CASES)} shapes and tiles. In tiles of 128 × 256, 5120³ needs a seventh "
    f"wave for 8 "
    "tiles: 124 SMs watch.",
)
def last_wave(m, n, BM, BN):
    """last_wave(m, n, BM, BN) -> (tiles, waves, tiles in the last wave) on 132 multiprocessors."""
    tiles = _tiles(m, n, BM, BN)
    waves = _up(tiles, SMS)
    return tiles, waves, tiles - (waves - 1) * SMS
