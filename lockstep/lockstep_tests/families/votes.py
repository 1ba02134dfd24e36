"""Votes and ballots of a warp, votes of a block."""

import numpy as np
from numba import cuda, int32

from lockstep_tests.families import integers, program, zeros
from lockstep_tests.families.warps import by_warp

FULL = 0xFFFFFFFF


@program(
    5,
    64,
    lambda: (
        integers(0, 100, 311),
        zeros(10, dtype=np.int32),
        zeros(10, dtype=np.int32),
        zeros(10, dtype=np.int32),
    ),
    lambda x, any_large, all_small, count: (
        None,
        (by_warp(x) > 97).any(axis=1),
        (by_warp(x) < 98).all(axis=1),
        (by_warp(x) > 50).sum(axis=1),
    ),
)
@cuda.jit
def any_all_and_a_count_of_each_warp(x, any_large, all_small, count):
    i = cuda.grid(1)
    value = int32(0)
    if i < x.size:
        value = x[i]
    some = cuda.any_sync(FULL, value > 97)
    every = cuda.all_sync(FULL, value < 98)
    ballot = cuda.ballot_sync(FULL, value > 50)
    if cuda.laneid == 0:
        any_large[i // 32] = 1 if some else 0
        all_small[i // 32] = 1 if every else 0
        count[i // 32] = cuda.popc(ballot)


def _compacted(x, out, counts):
    warps = [warp[warp < 30] for warp in by_warp(x, 99)]
    out, counts = out.copy(), np.array([warp.size for warp in warps])
    for row, warp in zip(out, warps):
        row[: warp.size] = warp
    return None, out, counts


@program(
    4,
    64,
    lambda: (integers(0, 100, 247), np.full((8, 32), -1, np.int32), zeros(8, dtype=np.int32)),
    _compacted,
)
@cuda.jit
def compact_each_warp_by_a_ballot(x, out, counts):
    i = cuda.grid(1)
    lane, warp = cuda.laneid, i // 32
    value = int32(99)
    if i < x.size:
        value = x[i]
    keep = value < 30
    ballot = cuda.ballot_sync(FULL, keep)
    if keep:
        out[warp, cuda.popc(ballot & ((1 << lane) - 1))] = value
    if lane == 0:
        counts[warp] = cuda.popc(ballot)


@program(
    3,
    96,
    lambda: (
        integers(0, 2, 283),
        zeros(3, dtype=np.int32),
        zeros(3, dtype=np.int32),
        zeros(3, dtype=np.int32),
    ),
    lambda x, ones, every, some: (
        None,
        [x[:96].sum(), x[96:192].sum(), x[192:].sum()],
        [0, 0, 0],
        [1, 1, 1],
    ),
)
@cuda.jit
def barriers_that_vote(x, ones, every, some):
    i = cuda.grid(1)
    true = 1 if i < x.size and x[i] == 1 else 0
    count = cuda.syncthreads_count(true)
    conjunction = cuda.syncthreads_and(true)
    disjunction = cuda.syncthreads_or(true)
    if cuda.threadIdx.x == 0:
        ones[cuda.blockIdx.x] = count
        every[cuda.blockIdx.x] = 1 if conjunction else 0
        some[cuda.blockIdx.x] = 1 if disjunction else 0


def _bits_of_rows(x, words):
    return None, np.packbits(by_warp(x) > 0, axis=1, bitorder="little").view(np.uint32).ravel()


@program(3, 128, lambda: (integers(-5, 5, 357), zeros(12, dtype=np.uint32)), _bits_of_rows)
@cuda.jit
def pack_signs_into_words(x, words):
    i = cuda.grid(1)
    ballot = cuda.ballot_sync(FULL, i < x.size and x[i] > 0)
    if cuda.laneid == 0:
        words[i // 32] = ballot


def _first_position(x, wanted, first):
    hit = np.flatnonzero(x == wanted)
    return None, None, [hit[0] if hit.size else -1]


@program(
    1, 64, lambda: (integers(0, 400, 1013, seed=2), np.int32(17), zeros(1, dtype=np.int64)), _first_position
)
@cuda.jit
def search_until_the_block_has_found_it(x, wanted, first):
    t = cuda.threadIdx.x
    best = cuda.shared.array(1, int32)
    if t == 0:
        best[0] = 2147483647
    start = 0
    while start < x.size:
        i = start + t
        here = 1 if i < x.size and x[i] == wanted else 0
        if cuda.syncthreads_or(here):
            if here:
                cuda.atomic.min(best, 0, i)
            break
        start += cuda.blockDim.x
    cuda.syncthreads()
    if t == 0:
        first[0] = best[0] if best[0] != 2147483647 else -1
