"""Sorting: bitonic, odd-even, by rank, a step of a radix sort, a merge."""

import numpy as np
from numba import cuda, float32, int32

from lockstep_tests.families import floats, integers, program, zeros


def _sorted_blocks(x, size):
    return np.concatenate([np.sort(x[p : p + size]) for p in range(0, x.size, size)])


@program(
    2,
    64,
    lambda: (integers(0, 500, 241), zeros(241, dtype=np.int32)),
    lambda x, out: (None, _sorted_blocks(x, 128)),
)
@cuda.jit
def bitonic_sort_of_each_block(x, out):
    keys = cuda.shared.array(128, int32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * 128
    for k in range(t, 128, 64):
        keys[k] = x[first + k] if first + k < x.size else int32(2147483647)
    size = 2
    while size <= 128:
        step = size >> 1
        while step > 0:
            cuda.syncthreads()
            low = 2 * t - (t & (step - 1))
            high = low + step
            a, b = keys[low], keys[high]
            if (a > b) == ((low & size) == 0):
                keys[low] = b
                keys[high] = a
            step >>= 1
        size <<= 1
    cuda.syncthreads()
    for k in range(t, 128, 64):
        if first + k < x.size:
            out[first + k] = keys[k]


def _bitonic_step(x, size, step):
    x = x.copy()
    for i in range(x.size):
        partner = i ^ step
        if partner > i and (x[i] > x[partner]) == ((i & size) == 0):
            x[i], x[partner] = x[partner], x[i]
    return x, None, None


@program(4, 64, lambda: (floats(256), 32, 8), _bitonic_step)
@cuda.jit
def one_step_of_a_bitonic_sort(x, size, step):
    i = cuda.grid(1)
    partner = i ^ step
    if partner > i:
        mine, other = x[i], x[partner]
        if (i & size) == 0:
            if mine > other:
                x[i] = other
                x[partner] = mine
        else:
            if mine < other:
                x[i] = other
                x[partner] = mine


@program(3, 32, lambda: (floats(3, 51), zeros(3, 51)), lambda x, out: (None, np.sort(x, axis=1)))
@cuda.jit
def odd_even_transposition_sort(x, out):
    keys = cuda.shared.array(51, float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    for k in range(t, 51, 32):
        keys[k] = x[row, k]
    cuda.syncthreads()
    for phase in range(51):
        left = 2 * t + (phase & 1)
        if left + 1 < 51:
            a, b = keys[left], keys[left + 1]
            if a > b:
                keys[left] = b
                keys[left + 1] = a
        cuda.syncthreads()
    for k in range(t, 51, 32):
        out[row, k] = keys[k]


@program(3, 64, lambda: (integers(0, 40, 149), zeros(149, dtype=np.int32)), lambda x, out: (None, np.sort(x)))
@cuda.jit
def sort_by_counting_smaller_ones(x, out):
    i = cuda.grid(1)
    if i < x.size:
        mine = x[i]
        rank = 0
        for j in range(x.size):
            other = x[j]
            if other < mine or (other == mine and j < i):
                rank += 1
        out[rank] = mine


def _split(x, bit, out):
    blocks = [x[p : p + 96] for p in range(0, x.size, 96)]
    return (
        None,
        None,
        np.concatenate([block[np.argsort(block >> bit & 1, kind="stable")] for block in blocks]),
    )


@program(3, 96, lambda: (integers(0, 1 << 20, 271), 3, zeros(271, dtype=np.int32)), _split)
@cuda.jit
def radix_split_by_one_bit(x, bit, out):
    zeros_before = cuda.shared.array(96, int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    here = i < x.size
    key = x[i] if here else int32(-1)
    is_zero = int32(1) if here and (key >> bit) & 1 == 0 else int32(0)
    zeros_before[t] = is_zero
    cuda.syncthreads()
    step = 1
    while step < 96:
        below = zeros_before[t - step] if t >= step else int32(0)
        cuda.syncthreads()
        zeros_before[t] += below
        cuda.syncthreads()
        step *= 2
    if here:
        before = zeros_before[t] - is_zero
        place = before if is_zero == 1 else zeros_before[95] + t - before
        out[cuda.blockIdx.x * 96 + place] = key


@program(
    4,
    64,
    lambda: (
        np.sort(integers(0, 300, 113)),
        np.sort(integers(0, 300, 131, seed=1)),
        zeros(244, dtype=np.int32),
    ),
    lambda a, b, out: (None, None, np.sort(np.r_[a, b])),
)
@cuda.jit
def merge_by_binary_search(a, b, out):
    i = cuda.grid(1)
    if i < a.size + b.size:
        from_a = i < a.size
        value = a[i] if from_a else b[i - a.size]
        low = 0
        high = b.size if from_a else a.size
        while low < high:
            middle = (low + high) >> 1
            if from_a:
                smaller = b[middle] < value
            else:
                smaller = a[middle] <= value
            if smaller:
                low = middle + 1
            else:
                high = middle
        out[low + (i if from_a else i - a.size)] = value
