"""Shows the naive kernels as measured with longer rows, where only the leading dimension changes."""

from __future__ import annotations

from functools import partial

import pandas as pd

from gemm_course import records
from gemm_course.figures import row_lengths as figure
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER, tiles_text
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets._explorer import Explorer, explorer
from gemm_course.widgets._gpus import NotKnown, named, remembered, shown, to_measure

WARP = 32
# The explorer begins with this n.
START = 4096
BLOCK = {"BM": 32, "BN": 32}


@explorer
def row_lengths(*stages: str, on: str | None = None) -> Explorer:
    """Show how fast the naive kernels are with rows of different length, and where a warp reads A.

    ``stages`` names the kernels. With one, matrices are 4096 × 4096, and this length's speed is shown alone
    or with all others. With several, the kernel and the size of the matrices can be chosen. ``on`` is the GPU
    that was measured, such as "rtx_3060". Without it, it can be chosen where there are several. Raise
    UnknownGpu for an unknown one.
    """
    names = tuple(LADDER[name].name for name in stages)
    rows = _measured(named(on))
    rows = rows if len(rows) else _measured()
    lengths = sorted({int(extra) for extra in rows["extra"]})
    sizes = sorted({int(n) for n in rows["n"]})
    blocks = [(_shape(each), each) for each in sorted(set(rows["tiles"]), key=_rows_of, reverse=True)]
    block = {"block": ("block (rows × columns)", blocks, tiles_text(BLOCK))}
    extra = {"extra": ("floats of padding", lengths, 0)}
    if len(names) == 1:
        bars = {"bars": ("speed of", [("this length", True), ("all lengths", False)], True)}
        return shown(partial(draw, names[0], n=START), on, {**block, **extra, **bars})
    stage = {"stage": ("stage", names, names[0])}
    matrices = {"n": ("matrices", [(f"{n} × {n}", n) for n in sizes], START)}
    return shown(draw, on, {**stage, **block, **matrices, **extra})


def draw(stage: str, block: str, n: int, extra: int, bars: bool = False, on: Place = SHIPPED) -> Picture:
    """Draw one case. ``block`` is as records write it, "BM=32 BN=32".

    With ``bars``, draw this length's alone.
    """
    rows = _measured(on)
    rows = rows[(rows["stage"] == stage) & (rows["tiles"] == block) & (rows["n"] == n)]
    speeds = {int(row.extra): float(row.tflops) for row in rows.itertuples()}
    if on != SHIPPED and not {0, extra} <= speeds.keys():
        raise NotKnown(to_measure("Rows of this length were", on, "bench --rows"))
    note = f"{n}³, blocks of {_shape(block)} (rows × columns of C); {records.provenance(rows)}"
    return figure.draw(stage, n, extra, speeds, words_of_a(stage, block, n + extra), note, bars)


def words_of_a(stage: str, block: str, leading_dimension: int) -> list[int]:
    """Return the different floats of A that the first warp reads at p = 0."""
    tiles = records.parse_tiles(block)
    wide = LADDER[stage].block(tiles)[0]
    # Each lane is (y, x).
    lanes = [divmod(lane, wide) for lane in range(WARP)]
    rows = {x if stage == "naive_uncoalesced" else y for y, x in lanes}
    return sorted(row * leading_dimension for row in rows)


def _shape(block: str) -> str:
    tiles = records.parse_tiles(block)
    return f"{tiles['BM']} × {tiles['BN']}"


def _rows_of(tiles: str) -> int:
    return records.parse_tiles(tiles)["BM"]


@remembered
def _measured(on: Place = SHIPPED) -> pd.DataFrame:
    rows = records.row_lengths(on)
    return rows.assign(extra=rows["leading_dimension"] - rows["n"])
