"""Exercise 05.5: the kernel of exercise 05.4 without bank conflicts in its reads."""

from dataclasses import dataclass

from gemm_course.checks.ch05.outer_product import (
    TILES,
    hold_numbers_of,
    hold_to_lesson,
    ragged,
    taken_from,
    whole_tiles,
)
from gemm_course.checks.core import Refused, call, kernel_of, line_at
from gemm_course.checks.engines.common_mistakes import Mistake
from gemm_course.checks.engines.coverage import Tiles, factory_of
from gemm_course.checks.engines.gemm import GEMM, GemmTrial, try_on
from gemm_course.checks.engines.lessons import check_tiles_used as check_begun
from gemm_course.checks.engines.problem import Geometry, Problem
from gemm_course.emulator import Watch

SMALL = TILES[:2]
DOCUMENT = Tiles(128, 128, 16, 8, 8)  # 16 × 16 threads: a warp has two rows of them
MOST_WAVEFRONTS = 1  # a read


@dataclass(frozen=True)
class AnyColumns(Geometry):
    """Which of a block's elements belong to which of its threads is the learner's choice."""

    def owner(self, row: int, col: int) -> str:
        rows, columns = self.rows_and_columns
        return f"block {(col // columns, row // rows)}"


def prove_no_conflicts(make_mended) -> str:
    """What was proved of the learner's factory; raises Refused with the first thing wrong."""
    make = factory_of(make_mended)
    kernels = {tiles: kernel_of(call(make, *tiles), GEMM) for tiles in (*SMALL, DOCUMENT)}
    check_begun(try_on(kernels[SMALL[0]], _launched(SMALL[0]), whole_tiles(SMALL[0])))
    trials = _right(kernels[SMALL[0]], SMALL[0], None)
    trials += _right(kernels[SMALL[1]], SMALL[1], [whole_tiles(SMALL[1]), ragged(SMALL[1])])
    (trial,) = _right(kernels[DOCUMENT], DOCUMENT, [Problem(DOCUMENT.BM, DOCUMENT.BN, DOCUMENT.BK)])
    hold_to_lesson(trial, DOCUMENT)
    a, b = _wavefronts(trial)
    if max(a, b) > MOST_WAVEFRONTS:
        raise Refused(*_why(trial, _paddings(kernels[SMALL[0]], _names(trial)), a, b))
    return (
        f"Right on {len(trials) + 1} problems. With 128 × 128 × 16 tiles a read of As takes {a:g} wavefront "
        f"instead of 2, a read of Bs {b:g} instead of 4; C is stored in {_sectors_of_c(trial):g} sectors a "
        "request (Kernel 5: 32)."
    )


def _right(kernel, tiles: Tiles, problems) -> list[GemmTrial]:
    return hold_numbers_of(kernel, tiles, problems, launched=_launched(tiles), mistakes=_mistakes(tiles))


def _launched(tiles: Tiles) -> Geometry:
    return AnyColumns(tiles.threads, "columns", (tiles.TM, tiles.TN))


# ---- numbers -----------------------------------------------------------------------------------------------


def _mistakes(tiles: Tiles) -> tuple[Mistake, ...]:
    x, TN = tiles.threads[0], tiles.TN

    def back(thread: int, j: int) -> int:
        """Which column's result lies where `thread`'s j-th one is stored, if only the store has moved."""
        column = thread * TN + j
        return column % x * TN + column // x

    return (
        Mistake(
            "The reads of Bs take the columns `tx + j * (BN // TN)`, but the results are still stored at "
            "`tx * TN + j`. The store of C has to move along.",
            taken_from(tiles, column=lambda thread, j: thread + j * x),
        ),
        Mistake(
            "The results are stored at the columns `tx + j * (BN // TN)`, but Bs is still read at "
            "`tx * TN + j`. Both have to move.",
            taken_from(tiles, column=back),
        ),
    )


# ---- wavefronts --------------------------------------------------------------------------------------------


def _wavefronts(trial: GemmTrial) -> list[float]:
    """Wavefronts a read of the tile that holds A's elements, and of that with B's, by their names."""
    loads = trial.report.accesses.query("space == 'shared' and op == 'load'")
    return [_of(loads[loads["array"] == name]) for name in _names(trial)]


def _of(loads) -> float:
    return loads["wavefronts"].sum() / max(1, loads["requests"].sum())


def _names(trial: GemmTrial) -> list[str]:
    """The learner's names of the tiles of A and of B: each is filled in the line that loads the matrix.

    Both are the same where one array holds the two tiles.
    """
    shared = trial.report.accesses.query("space == 'shared' and op == 'store'")
    names = list(dict.fromkeys(shared["array"]))
    loads = trial.report.accesses.query("space == 'global' and op == 'load'")
    of_a = shared[shared["line"].isin(loads[loads["array"] == trial.own_name("A")]["line"])]["array"]
    if len(of_a) and of_a.iloc[0] != names[0]:
        names.reverse()
    return (names * 2)[:2]


def _sectors_of_c(trial: GemmTrial) -> float:
    return trial.report.sectors_per_request(array=trial.own_name("C"), op="store")


def _why(trial: GemmTrial, paddings: tuple[int, int], a: float, b: float) -> tuple[str, str]:
    """Which tile still has a conflict, what was tried against it, and where."""
    names, widths = _names(trial), (DOCUMENT.BK + paddings[0], DOCUMENT.BN + paddings[1])
    loads = trial.report.accesses.query("space == 'shared' and op == 'load' and wavefronts > requests")
    where = (
        f"With {DOCUMENT}: wavefronts a read are {a:g} for {names[0]} and {b:g} for {names[1]}. "
        + line_at(trial.kernel, int(loads["line"].iloc[0]))
    )
    said = _both if min(a, b) > 1 else _only_b if b > 1 else _only_a
    return said(*names, *widths), where


def _both(name_a: str, name_b: str, wide_a: int, wide_b: int) -> str:
    if wide_a == DOCUMENT.BK and wide_b == DOCUMENT.BN:
        return (
            f"The result is right, and both conflicts are still there. {name_a}: the two rows of a warp are "
            f"128 words apart. {name_b}: neighbours' columns are 8 words apart."
        )
    if wide_a == DOCUMENT.BK:
        return (
            f"The padding is on {name_b}, where all lanes read the same row and it moves nothing. It is "
            f"{name_a} whose rows lie in the same bank."
        )
    return (
        f"Padding alone: rows of {wide_a} words for {name_a} put the two rows of a warp {8 * wide_a} words "
        "apart, a multiple of 32 again; and padding does nothing for the other tile."
    )


def _only_a(name_a: str, name_b: str, wide_a: int, wide_b: int) -> str:
    if wide_a > DOCUMENT.BK:
        return (
            f"{name_b} is mended. {name_a}'s rows are {wide_a} words long now, and the two rows of a warp "
            f"lie 8 · {wide_a} = {8 * wide_a} words apart: a multiple of 32, the same bank again. Another "
            "padding does it."
        )
    return (
        f"{name_b} is mended, {name_a} is not: the two rows that a warp reads are 8 · 16 = 128 words apart, "
        "in the same bank. Make the rows a little longer."
    )


def _only_b(name_a: str, name_b: str, wide_a: int, wide_b: int) -> str:
    if wide_b > DOCUMENT.BN:
        return (
            f"{name_a} is mended. But padding does nothing for {name_b}: all lanes read the same row, and a "
            "row moves as a whole. Its lanes are TN words apart; let "
            "neighbours take neighbouring columns."
        )
    return (
        f"{name_a} is mended, {name_b} is not: the lanes' columns are TN = 8 words apart, and every fourth "
        "one is in the same bank. Let neighbours take neighbouring columns."
    )


def _paddings(kernel, names: list[str]) -> tuple[int, int]:
    """Words behind every row of the two tiles, as the kernel for small tiles has them."""
    tiles = SMALL[0]
    trial = try_on(kernel, _launched(tiles), Problem(tiles.BM, tiles.BN, tiles.BK), watch=Watch(limit=3000))
    a, b = (_width(trial, name) for name in names)
    return a - tiles.BK, b - tiles.BN


def _width(trial: GemmTrial, name: str) -> int:
    """Words from one row of a shared tile to the next, from the addresses of its elements."""
    stores = trial.report.trace.query("array == @name and op == 'store'")
    for element, address in zip(stores["element"], stores["address"]):
        if len(element) == 2 and element[0]:
            return (address // 4 - element[1]) // element[0]
    return 0
