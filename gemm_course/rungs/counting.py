"""Counts what a learner's kernel reads for a multiply-add, as it is written.

Counted are wavefronts of loads, from L1 or from shared memory, in one block of the notebook's tile, for a
multiply-add of a whole warp. What fills the tiles is left out, so a kernel makes at least these.

The count does not depend on the size of the matrices. All blocks of whole tiles do the same, and so do all
steps along k. What comes before the first step and after the last, such as the store of C, is in the counts
of a short and of a longer product alike, and their difference is what the further steps cost. Rows are long
and begin at a line, as in large matrices, so that elements below each other share a place in L1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gemm_course.model.requests import requests, wavefronts_of
from lockstep import DataDependent, Watch, emulate

from .rung import Rung

WARP = 32
# A row of A, B or C has this many elements, many lines of 32 each.
_ROW = 1024
# A kernel without tiles along k is counted in steps of this many products.
_STEP = 8


def wavefronts_per_multiply_add(rung: Rung, answer: Any) -> float:
    """Return the wavefronts that a learner's answer reads for a multiply-add of a warp, as written.

    Raise whatever the answer raises, or the emulator.
    """
    kernel, depth = rung.kernel(answer), rung.tiles.get("BK", _STEP)
    short, longer = (_wavefronts(rung, kernel, k) for k in (depth, 2 * depth))
    x, y = rung.block
    results = rung.tiles["BM"] * rung.tiles["BN"]
    if rung.reads == "global":
        results = results * WARP // (x * y)  # Only the first warp was watched.
    return (longer - short) / (results * depth / WARP)


def _wavefronts(rung: Rung, kernel: Any, k: int) -> int:
    """Return the wavefronts of loads in a block's product of this depth."""
    m, n = rung.tiles["BM"], rung.tiles["BN"]
    A, B, C = (np.zeros((rows, _ROW), np.float32) for rows in (m, k, m))
    launch = kernel, (1, 1), rung.block, m, n, k, np.float32(1), A, B, np.float32(0), C
    if rung.reads == "global":
        trace = emulate(*launch, watch=Watch(warp=0, local=False)).trace
        return sum(map(wavefronts_of, requests(trace, op="load", space="global")))
    try:
        accesses = emulate(*launch, counts_only=True).accesses
    except DataDependent:
        # An index is read from an array, so only a full run knows the index.
        accesses = emulate(*launch).accesses
    loads = accesses[(accesses["space"] == "shared") & (accesses["op"] == "load")]
    return int(loads["wavefronts"].sum())
