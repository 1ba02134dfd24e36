"""The shared loads of a stage as compiled, derived from the addresses in the emulator.

Between two barriers the shared memory that a warp reads does not change, so the compiler may merge loads:
four neighbouring 32-bit words that start at a multiple of 16 bytes in each lane become one load of 128 bits.
This holds for all tiles, so the hardware's counts follow from them.
"""

from collections import defaultdict
from fractions import Fraction
from functools import cache

import numpy as np

from lockstep import Watch, emulate, wavefronts

WORD, FOUR_WORDS = 4, 16  # bytes
LANES = 32


@cache
def merged_ratios(stage, tiles):
    """{counter of shared loads: merged by plain, a Fraction} of one warp; tiles: pairs of name and size."""
    plain, merged = np.zeros(2, int), np.zeros(2, int)
    for loads in _between_barriers(stage, dict(tiles)):
        fours = [load for load in loads if _begins_four(load, loads)]
        covered = {_moved(load, step) for load in fours for step in range(4)}
        plain += _cost(loads, WORD)
        merged += _cost(fours, FOUR_WORDS) + _cost(loads - covered, WORD)
    names = ("shared_load_requests", "shared_load_wavefronts")
    return {name: Fraction(int(after), int(before)) for name, before, after in zip(names, plain, merged)}


def _between_barriers(stage, tiles):
    """The first warp's loads of one tile, one set between each two barriers.

    A load is ((array, lane, address), ...), one entry per lane.
    """
    m, n, k = tiles["BM"], tiles["BN"], tiles["BK"]
    A, B, C = (np.zeros(shape, np.float32) for shape in ((m, k), (k, n), (m, n)))
    report = emulate(
        stage.kernel(tiles),
        stage.grid(m, n, tiles),
        stage.block(tiles),
        *(m, n, k, np.float32(1), A, B, np.float32(0), C),
        shared_bytes=stage.shared_bytes(tiles),
        watch=Watch(warp=0, local=False, limit=10**7),
    )
    stretches = [defaultdict(list)]
    for row in report.trace.itertuples():
        if row.op == "barrier" and row.thread == 0:
            stretches.append(defaultdict(list))
        elif row.space == "shared" and row.op == "load":
            assert row.bits == 32, "loads that are wide in the source are not merged"
            stretches[-1][row.step].append((row.array, row.lane, row.address))
    return [{tuple(lanes) for lanes in steps.values()} for steps in stretches]


def _moved(load, words):
    return tuple((array, lane, address + words * WORD) for array, lane, address in load)


def _begins_four(load, loads):
    """Whether four neighbouring words begin here, for every lane at a multiple of 16 bytes."""
    aligned = all(address % FOUR_WORDS == 0 for _, _, address in load)
    return aligned and all(_moved(load, step) in loads for step in range(4))


def _cost(loads, size):
    """(requests, wavefronts) of loads of `size` bytes."""
    total = 0
    for load in loads:
        words = np.full(LANES, -1)
        for _, lane, address in load:
            words[lane] = address // WORD
        total += wavefronts(words, 8 * size)
    return np.array([len(loads), total])
