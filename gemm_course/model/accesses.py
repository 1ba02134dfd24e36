"""Counts how often a stage touches each kind of memory, by formula, from its tiles alone.

The formulas are those that a learner derives with pen and paper. They count elements as the source names
them: one per thread and access, even if the compiler or the hardware merges accesses. In a stage without
tiles along k, every thread fetches its own row of A and column of B. In a stage with them, a block fetches
its tiles of A and B once for all its threads, and a thread that computes `rows` by `columns` results reads
rows + columns elements of shared memory for each step along k.

The formulas are exact for stages that fetch tile by tile, also where tiles extend past the matrices. For
other stages they leave something to the emulator. Stages that fetch ahead, from `double_buffered` on, read
the same elements at sizes that their tiles divide. What they write to shared memory and read past the edge in
addition is not counted. On Tensor Cores, a warp loads fragments from its rows of As and its columns of Bs for
each step. Results that pass through shared memory on their way to C are not counted. With wgmma, a warpgroup
reads 64 rows of As and all columns of Bs for each instruction, and the barriers of these stages are not
counted.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from gemm_course.kernels import Stage


@dataclass(frozen=True)
class Accesses:
    """The element accesses of all threads of one launch.

    ``global_loads`` is by array: "A", "B" and "C". ``barriers`` is summed over blocks.
    """

    m: int
    n: int
    k: int
    fma: int
    global_loads: Mapping[str, int]
    global_stores: int
    shared_loads: int
    shared_stores: int
    barriers: int
    itemsize: int = 4

    @property
    def flops(self) -> int:
        """The operations that the result needs, 2mnk. Threads past the edge add to them."""
        return 2 * self.m * self.n * self.k

    @property
    def global_bytes(self) -> int:
        """The bytes that threads request from global memory."""
        return self.itemsize * (sum(self.global_loads.values()) + self.global_stores)

    @property
    def intensity(self) -> float:
        """The operations per byte requested from global memory."""
        return self.flops / self.global_bytes

    @property
    def least_bytes(self) -> int:
        """The bytes that move if A and B are read once and C is written once."""
        return self.itemsize * (self.m * self.k + self.k * self.n + self.m * self.n)

    @property
    def shared_loads_per_fma(self) -> float:
        return self.shared_loads / self.fma


def accesses(
    stage: Stage, m: int, n: int, k: int, tiles: Mapping[str, int] | None = None, beta: float = 0.0
) -> Accesses:
    """Return the accesses of a stage for C = alpha AB + beta C with (m, n, k), all at least 1.

    Raise IllegalTiles for tiles that break a rule.
    """
    tiles = t = stage.tiles_for(m, n, k, tiles)
    if "BK" not in t:
        return _untiled(m, n, k, beta)
    threads, blocks = math.prod(stage.block(tiles)), _over(m, t["BM"]) * _over(n, t["BN"])
    steps = _over(k, t["BK"])
    # These stages write a part of C in every second step.
    if stage.name in ("overlapped_store", "stream_k_fp16"):
        steps = max(steps, 2 * t["PARTS"] - 1)
    tile_elements = t["BK"] * (t["BM"] + t["BN"])
    wide = max(1, stage.alignment // stage.itemsize)
    return Accesses(
        m,
        n,
        k,
        fma=blocks * steps * t["BM"] * t["BN"] * t["BK"],
        global_loads={
            "A": _over(n, t["BN"]) * m * _up(k, wide),
            "B": _over(m, t["BM"]) * k * _up(n, wide),
            "C": m * _up(n, wide) if beta else 0,
        },
        global_stores=m * n,
        shared_loads=blocks * steps * t["BK"] * _operands(stage, t, threads),
        shared_stores=blocks * steps * tile_elements,
        barriers=2 * blocks * steps,
        itemsize=stage.itemsize,
    )


def _operands(stage: Stage, t: Mapping[str, int], threads: int) -> int:
    """Count the elements of As and Bs that all threads of a block read for one step along k."""
    if stage.dtype == "float16" and "WN" in t:
        return t["BM"] // t["WM"] * (t["BN"] // t["WN"]) * (t["WM"] + t["WN"])  # Only consumer warps read.
    if stage.dtype == "float16":
        return t["BM"] + t["BM"] // 64 * t["BN"]
    results, columns = t["BM"] * t["BN"] // threads, t.get("TN", 1) * t.get("WNITER", 1)
    return threads * (results // columns + columns)


def _untiled(m: int, n: int, k: int, beta: float) -> Accesses:
    loads = {"A": m * n * k, "B": m * n * k, "C": m * n if beta else 0}
    return Accesses(m, n, k, m * n * k, loads, m * n, 0, 0, 0)


def _over(length: int, tile: int) -> int:
    return -(-length // tile)


def _up(length: int, unit: int) -> int:
    return _over(length, unit) * unit
