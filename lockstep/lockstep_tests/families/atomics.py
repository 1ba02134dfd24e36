"""Atomic operations of every kind, on global and on shared memory."""

import numpy as np
from numba import cuda, float32, int32, int64

from lockstep_tests.families import floats, integers, program, zeros


def added(size, index, values):
    """The sums of the values with each index, in float64 or int64."""
    wide = np.float64 if values.dtype.kind == "f" else np.int64
    sums = np.zeros(size, wide)
    np.add.at(sums, index, values)
    return sums


@program(
    5,
    96,
    lambda: (integers(0, 37, 431), integers(-50, 50, 431, seed=1), zeros(37, dtype=np.int32)),
    lambda key, value, sums: (None, None, added(37, key, value)),
)
@cuda.jit
def add_integers_by_key(key, value, sums):
    i = cuda.grid(1)
    if i < key.size:
        cuda.atomic.add(sums, key[i], value[i])


@program(
    5,
    96,
    lambda: (integers(0, 37, 431), floats(431), zeros(37)),
    lambda key, value, sums: (None, None, added(37, key, value).astype(np.float32)),
)
@cuda.jit
def add_floats_by_key(key, value, sums):
    i = cuda.grid(1)
    if i < key.size:
        cuda.atomic.add(sums, key[i], value[i])


@program(
    7,
    64,
    lambda: (integers(0, 11, 403), floats(403, dtype=np.float64), zeros(11, dtype=np.float64)),
    lambda key, value, sums: (None, None, added(11, key, value)),
    rtol=1e-12,
)
@cuda.jit
def add_doubles_by_key(key, value, sums):
    i = cuda.grid(1)
    if i < key.size:
        cuda.atomic.add(sums, key[i], value[i])


def _row_and_column_sums(a, rows, columns):
    return None, a.sum(axis=1), a.sum(axis=0)


@program(
    (4, 5),
    (16, 8),
    lambda: (integers(-9, 9, 37, 53), zeros(37, dtype=np.int32), zeros(53, dtype=np.int32)),
    _row_and_column_sums,
)
@cuda.jit
def row_and_column_sums(a, rows, columns):
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        value = a[y, x]
        cuda.atomic.add(rows, y, value)
        cuda.atomic.add(columns, x, value)


def _extremes_by_key(key, value, low, high):
    low, high = low.copy(), high.copy()
    np.minimum.at(low, key, value)
    np.maximum.at(high, key, value)
    return None, None, low, high


@program(
    4,
    112,
    lambda: (
        integers(0, 19, 437),
        integers(-1000, 1000, 437, seed=1),
        np.full(19, 2000, np.int32),
        np.full(19, -2000, np.int32),
    ),
    _extremes_by_key,
)
@cuda.jit
def extremes_of_integers_by_key(key, value, low, high):
    i = cuda.grid(1)
    if i < key.size:
        cuda.atomic.min(low, key[i], value[i])
        cuda.atomic.max(high, key[i], value[i])


@program(
    4,
    112,
    lambda: (
        integers(0, 19, 437),
        floats(437, seed=1),
        np.full(19, 9, np.float32),
        np.full(19, -9, np.float32),
    ),
    _extremes_by_key,
)
@cuda.jit
def extremes_of_floats_by_key(key, value, low, high):
    i = cuda.grid(1)
    if i < key.size:
        cuda.atomic.min(low, key[i], value[i])
        cuda.atomic.max(high, key[i], value[i])


def _extreme_of_rows(a, low, high):
    return None, a.min(axis=1), a.max(axis=1)


@program(
    13,
    64,
    lambda: (
        integers(-(2**40), 2**40, 13, 131, dtype=np.int64),
        zeros(13, dtype=np.int64),
        zeros(13, dtype=np.int64),
    ),
    _extreme_of_rows,
)
@cuda.jit
def extremes_of_rows_in_shared_memory(a, low, high):
    lowest = cuda.shared.array(1, int64)
    highest = cuda.shared.array(1, int64)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    if t == 0:
        lowest[0] = a[row, 0]
        highest[0] = a[row, 0]
    cuda.syncthreads()
    for column in range(t, a.shape[1], cuda.blockDim.x):
        value = a[row, column]
        cuda.atomic.min(lowest, 0, value)
        cuda.atomic.max(highest, 0, value)
    cuda.syncthreads()
    if t == 0:
        low[row] = lowest[0]
        high[row] = highest[0]


@program(
    3,
    96,
    lambda: (integers(0, 29, 281), floats(281), zeros(3, 29)),
    lambda key, value, sums: (
        None,
        None,
        np.array([added(29, key[p : p + 96], value[p : p + 96]) for p in (0, 96, 192)], np.float32),
    ),
)
@cuda.jit
def add_floats_in_shared_memory(key, value, sums):
    mine = cuda.shared.array(29, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if t < 29:
        mine[t] = 0
    cuda.syncthreads()
    if i < key.size:
        cuda.atomic.add(mine, key[i], value[i])
    cuda.syncthreads()
    if t < 29:
        sums[cuda.blockIdx.x, t] = mine[t]


def _first_of_each_key(key, owner):
    return None, np.isin(np.arange(owner.size), key).astype(np.int32)


@program(
    6,
    64,
    lambda: (integers(0, 211, 347), np.full(211, -1, np.int32)),
    _first_of_each_key,
    seen=lambda key, owner: (key, ((owner >= 0) & (key[owner] == np.arange(211))).astype(np.int32)),
)
@cuda.jit
def claim_slots_with_compare_and_swap(key, owner):
    i = cuda.grid(1)
    if i < key.size:
        cuda.atomic.cas(owner, key[i], -1, i)


def _hash_set(keys, table, size):
    return None, np.sort(np.r_[np.unique(keys), np.full(table.size - np.unique(keys).size, -1)]), None


@program(
    3,
    96,
    lambda: (integers(0, 150, 263), np.full(256, -1, np.int32), 256),
    _hash_set,
    seen=lambda keys, table, size: (keys, np.sort(table), size),
)
@cuda.jit
def insert_into_a_hash_set(keys, table, size):
    i = cuda.grid(1)
    if i < keys.size:
        key = keys[i]
        slot = (key * 79) & (size - 1)
        while True:
            found = cuda.atomic.cas(table, slot, -1, key)
            if found == -1 or found == key:
                break
            slot = (slot + 1) & (size - 1)


@program(
    4,
    72,
    lambda: (
        np.random.default_rng(3).permutation(277).astype(np.int32),
        np.arange(277, dtype=np.int32),
        zeros(277, dtype=np.int32),
    ),
    lambda place, slots, old: (None, np.argsort(place) + 1000, place),
)
@cuda.jit
def exchange_with_scattered_slots(place, slots, old):
    i = cuda.grid(1)
    if i < place.size:
        old[i] = cuda.atomic.exch(slots, place[i], i + 1000)


@program(
    3,
    80,
    lambda: (zeros(2, dtype=np.uint32), zeros(233, dtype=np.uint32), np.uint32(9)),
    lambda counters, ticket, limit: (
        np.array([233 % 10, (-233) % 10], np.uint32),
        np.sort(np.arange(233) % 10).astype(np.uint32),
        None,
    ),
    seen=lambda counters, ticket, limit: (counters, np.sort(ticket), limit),
)
@cuda.jit
def counters_that_wrap(counters, ticket, limit):
    i = cuda.grid(1)
    if i < ticket.size:
        ticket[i] = cuda.atomic.inc(counters, 0, limit)
        cuda.atomic.dec(counters, 1, limit)


def _bits(numbers, seen, common, parity):
    seen, common, parity = seen.copy(), common.copy(), parity.copy()
    np.bitwise_or.at(seen, numbers >> 5, np.uint32(1) << (numbers & 31).astype(np.uint32))
    np.bitwise_and.at(common, numbers & 7, numbers.astype(np.uint32))
    np.bitwise_xor.at(parity, numbers & 7, numbers.astype(np.uint32))
    return None, seen, common, parity


@program(
    5,
    64,
    lambda: (
        integers(0, 700, 301),
        zeros(22, dtype=np.uint32),
        np.full(8, 0xFFFFFFFF, np.uint32),
        zeros(8, dtype=np.uint32),
    ),
    _bits,
)
@cuda.jit
def bitmap_and_parities(numbers, seen, common, parity):
    i = cuda.grid(1)
    if i < numbers.size:
        number = numbers[i]
        cuda.atomic.or_(seen, number >> 5, 1 << (number & 31))
        cuda.atomic.and_(common, number & 7, number)
        cuda.atomic.xor(parity, number & 7, number)


@program(
    3,
    96,
    lambda: (integers(0, 1000, 271), zeros(271, dtype=np.int32), zeros(1, dtype=np.int32)),
    lambda x, kept, count: (
        None,
        np.sort(np.r_[x[x % 3 == 0], np.zeros((x % 3 != 0).sum(), np.int32)]),
        [(x % 3 == 0).sum()],
    ),
    seen=lambda x, kept, count: (x, np.sort(kept), count),
)
@cuda.jit
def compact_with_one_counter_per_block_and_one_for_all(x, kept, count):
    mine = cuda.shared.array(2, int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if t == 0:
        mine[0] = 0
    cuda.syncthreads()
    keep = i < x.size and x[i] % 3 == 0
    place = 0
    if keep:
        place = cuda.atomic.add(mine, 0, 1)
    cuda.syncthreads()
    if t == 0:
        mine[1] = cuda.atomic.add(count, 0, mine[0])
    cuda.syncthreads()
    if keep:
        kept[mine[1] + place] = x[i]
