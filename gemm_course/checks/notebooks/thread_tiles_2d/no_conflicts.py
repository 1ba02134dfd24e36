"""Checks ``no_conflicts``: the kernel of ``outer_product`` without bank conflicts in its reads."""

from dataclasses import dataclass

from gemm_course.checks.core import Refused, exercise
from gemm_course.checks.engines.common_mistakes import GuardMistake, Mistake
from gemm_course.checks.engines.gemm import GemmTrial, Likely
from gemm_course.checks.engines.gemm_factory import GemmFactory
from gemm_course.checks.engines.mistakes import among, only_stored, taken_from
from gemm_course.checks.engines.problem import Geometry, Problem
from gemm_course.checks.engines.tiles import Tiles, tile_choices
from gemm_course.checks.notebooks.thread_tiles_2d.outer_product import LESSONS
from gemm_course.checks.notebooks.thread_tiles_2d.outer_product import likely as likely_before
from lockstep import Finding, Watch

TILES = tile_choices(
    "BM BN BK TM TN",
    (8, 24, 4, 2, 4),
    (32, 16, 8, 4, 2),
    # These tiles are deeper than the document's, so rows of 17 words, written as a number, are too short.
    (16, 16, 32, 4, 4),
    # There are 16 × 16 threads, so a warp has two rows of threads.
    (128, 128, 16, 8, 8),
)
DOCUMENT = TILES[-1]
# A store into a tile may take this many wavefronts.
FILLING = 2
# A warp stores C to this many sectors if its lanes have neighbouring columns.
SECTORS = 4


@exercise(
    start="change the kernel in this cell, and take away the line `make_fixed = None`.",
    hints=(
        "Two changes, one for each tile; look at the picture of the banks. As: where are the two rows that "
        "a warp reads? Bs: how far apart are neighbours' columns?",
        "Make every row of As one word longer. The width has to be computed outside the kernel, beside "
        "`def`: inside, Numba does not take it as a constant.",
        "Let thread `tx` have the columns `tx + j * (BN // TN)` instead of `tx * TN + j`: where Bs is read "
        "and where C is stored.",
    ),
)
def no_conflicts(make_fixed):
    """A factory like that of ``outer_product`` whose reads of shared memory take one wavefront each."""
    proof = FACTORY.prove(make_fixed)
    trial = proof.trials[DOCUMENT]
    a, b = _wavefronts(trial)
    return (
        f"Right on {proof.problems} problems. With 128 × 128 × 16 tiles a read of As takes {a:g} wavefront "
        f"instead of 2, a read of Bs {b:g} instead of 4; C is stored in "
        f"{_sectors_of_c(trial):g} sectors per request "
        f"(Kernel 5: 32). {proof.registers}"
    )


@dataclass(frozen=True)
class AnyColumns(Geometry):
    """A geometry in which the learner chooses which of a block's elements belong to which thread."""

    def owner(self, row: int, col: int) -> str:
        rows, columns = self.rows_and_columns
        return f"block {(col // columns, row // rows)}"


def _geometry(tiles: Tiles) -> Geometry:
    return AnyColumns(tiles.threads, "columns", (tiles.TM, tiles.TN))


# ---- what goes wrong ---------------------------------------------------------------------------------------


def _likely(tiles: Tiles) -> Likely:
    before, x, TN, block = likely_before(tiles), tiles.threads[0], tiles.TN, (tiles.BM, tiles.BN)
    read_in_steps_of_tn = Mistake(
        f"Bs is read at the columns `tx + j * TN`. {COLUMNS_OVERLAP}.",
        taken_from(block, column=lambda c: c % x + c // x * TN),
    )
    steps_of_tn = GuardMistake(
        f"{COLUMNS_OVERLAP}, not `tx + j * TN`.",
        only_stored(block, column=among([tx + j * TN for tx in range(x) for j in range(TN)])),
    )
    results = (read_in_steps_of_tn, *before.results)
    return Likely(results, (steps_of_tn, *before.guards), {**before.findings, "global_race": _overlap})


COLUMNS_OVERLAP = (
    "The columns of neighbouring threads overlap. There are `BN // TN` threads along x, and each takes one "
    "column before the first takes its second: `tx + j * (BN // TN)`"
)


def _overlap(finding: Finding, trial: GemmTrial) -> str:
    return f"Two threads store the same element of C. {COLUMNS_OVERLAP}. {finding.message}"


def width_follows(trial: GemmTrial) -> None:
    """Refuse padding that takes as much room on small tiles as the results would."""
    BM, BN, BK = trial.tiles.block_tile
    if trial.report.shared_bytes < 4 * (BK * (BM + BN) + BM * BN):
        return
    for name, size, usual in zip(_names(trial), (BM, BK), (BK, BN)):
        width = _width(_traced_stores(trial, name))
        if size * (width - usual) >= BM * BN:
            raise Refused(
                f"The rows of `{name}` are {width} words long, where the tile's have {usual}. Is the width a "
                "fixed number, or the padding so wide? Let it follow from the tile, and be short: `BK + 1`.",
                f"{trial.about}.",
            )


# ---- wavefronts --------------------------------------------------------------------------------------------


def one_wavefront_per_read(trial: GemmTrial) -> None:
    """Refuse, with the document's tiles, reads that take over one wavefront, then slow stores."""
    if trial.tiles != DOCUMENT:
        return
    a, b = _wavefronts(trial)
    if max(a, b) <= 1:
        _check_store(trial)
        _check_filling(trial)
        return
    names = _names(trial)
    loads = trial.report.accesses.query("space == 'shared' and op == 'load' and wavefronts > requests")
    explain = _both if min(a, b) > 1 else _only_b if b > 1 else _only_a
    raise Refused(
        explain(*names, *_widths(trial, names)),
        f"{trial.about}: wavefronts per read are {a:g} for {names[0]} and {b:g} for {names[1]}. "
        + trial.line(loads["line"].iloc[0]),
    )


def _check_store(trial: GemmTrial) -> None:
    """Refuse a store of C whose lanes' elements lie apart."""
    per_request = _sectors_of_c(trial)
    if per_request > SECTORS:
        raise Refused(
            "Every read takes one wavefront. But in one store of C neighbours' columns lie apart, so it "
            f"moves {per_request:g} sectors instead of {SECTORS}. A thread should have other columns of C, "
            "not the same ones in another order or at other places of Bs: at any moment thread `tx + 1` "
            "should be one column further on than `tx`.",
            trial.line(trial.accesses("store", "C")["line"].iloc[0]) + f". {trial.about}.",
        )


def _check_filling(trial: GemmTrial) -> None:
    """Refuse stores into a tile that take more than two wavefronts."""
    for name, rows in trial.accesses("store").groupby("array", sort=False):
        each = rows["wavefronts"].sum() / rows["requests"].sum()
        if each > FILLING:
            raise Refused(
                f"Every read takes one wavefront. But a store into `{name}` takes {each:g}: lanes store into "
                "different rows that begin in the same bank. Padding helps here too.",
                f"{trial.line(rows['line'].iloc[0])}. {trial.about}.",
            )


def _sectors_of_c(trial: GemmTrial) -> float:
    return trial.report.sectors_per_request(array=trial.own_name("C"), op="store")


def _wavefronts(trial: GemmTrial) -> list[float]:
    """Return the wavefronts per read of the tile that holds A's elements, and of that with B's."""
    loads = trial.accesses("load")
    each = (loads[loads["array"] == name] for name in _names(trial))
    return [rows["wavefronts"].sum() / max(1, rows["requests"].sum()) for rows in each]


def _names(trial: GemmTrial) -> list[str]:
    """Return the learner's names of the tiles of A and B: each is filled in the line that loads the matrix.

    Both are the same where one array holds the two tiles.
    """
    filled = trial.accesses("store")
    names = list(dict.fromkeys(filled["array"]))
    of_a = filled[filled["line"].isin(trial.accesses("load", "A")["line"])]["array"]
    if len(of_a) and of_a.iloc[0] != names[0]:
        names.reverse()
    return (names * 2)[:2]


def _widths(trial: GemmTrial, names: list[str]) -> list[int]:
    """Return the words from one row of each tile to the next, from the addresses of its elements."""
    return [_width(_traced_stores(trial, name)) for name in names]


def _traced_stores(trial: GemmTrial, name: str):
    traced = FACTORY.try_on_whole_tiles(trial.kernel, trial.tiles, watch=Watch(local=False, limit=10_000))
    return traced.report.trace.query("op == 'store' and array == @name")


def _width(stores) -> int:
    for element, address in zip(stores["element"], stores["address"]):
        if len(element) == 2 and element[0]:
            return (address // 4 - element[1]) // element[0]
    return 0


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
            f"{name_b} is fixed. {name_a}'s rows are {wide_a} words long now, and the two rows of a warp "
            f"lie 8 · {wide_a} = {8 * wide_a} words apart: a multiple of 32, the same bank again. Another "
            "padding does it."
        )
    return (
        f"{name_b} is fixed, {name_a} is not: the two rows that a warp reads are 8 · 16 = 128 words apart, "
        "in the same bank. Make the rows a little longer."
    )


def _only_b(name_a: str, name_b: str, wide_a: int, wide_b: int) -> str:
    if wide_b > DOCUMENT.BN:
        return (
            f"{name_a} is fixed. But padding does nothing for {name_b}: all lanes read the same row, and a "
            "row moves as a whole. Its lanes are TN words apart; let neighbours take neighbouring columns."
        )
    return (
        f"{name_a} is fixed, {name_b} is not: the lanes' columns are TN = 8 words apart, and every fourth "
        "one is in the same bank. Let neighbours take neighbouring columns."
    )


FACTORY = GemmFactory(
    tiles=TILES,
    geometry=_geometry,
    likely=_likely,
    lessons=(width_follows, *LESSONS, one_wavefront_per_read),
    in_registers=True,
    whole_only=(DOCUMENT,),
    whole_problems={DOCUMENT: Problem(*DOCUMENT.block_tile)},
)
