"""Blocks that work together: locks, tickets, flags, the last block, the whole grid."""

import numpy as np
from numba import cuda, float32, int32

from lockstep_tests.families import floats, integers, program, zeros
from lockstep_tests.families.reductions import sums_of

FULL = 0xFFFFFFFF


def _sum_of_all(x, lock, total):
    return None, None, [x.sum(dtype=np.float64)]


@program(7, 64, lambda: (floats(431), zeros(1, dtype=np.int32), zeros(1)), _sum_of_all)
@cuda.jit
def spin_lock_of_one_thread_per_block(x, lock, total):
    part = cuda.shared.array(64, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    part[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    if t == 0:
        mine = float32(0)
        for k in range(64):
            mine += part[k]
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        cuda.threadfence()
        total[0] += mine
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)


def _accounts(key, amount, lock, balance, moves):
    balance = balance.copy()
    np.add.at(balance, key, amount)
    return None, None, None, balance, np.bincount(key, minlength=13)


@program(
    3,
    64,
    lambda: (
        integers(0, 13, 157),
        integers(-9, 90, 157, seed=1),
        zeros(13, dtype=np.int32),
        zeros(13, dtype=np.int32),
        zeros(13, dtype=np.int32),
    ),
    _accounts,
)
@cuda.jit
def a_lock_for_every_account(key, amount, lock, balance, moves):
    i = cuda.grid(1)
    if i < key.size:
        k = key[i]
        waiting = True
        while waiting:
            if cuda.atomic.cas(lock, k, 0, 1) == 0:
                cuda.threadfence()
                balance[k] += amount[i]
                moves[k] += 1
                cuda.threadfence()
                cuda.atomic.exch(lock, k, 0)
                waiting = False


@program(
    9,
    32,
    lambda: (zeros(2, dtype=np.int32), np.full(9, -1, np.int32), zeros(1, dtype=np.int32)),
    lambda tickets, order, entered: ([9, 9], np.arange(9), [9]),
    seen=lambda tickets, order, entered: (tickets, np.sort(order), entered),
)
@cuda.jit
def ticket_lock_in_order_of_arrival(tickets, order, entered):
    if cuda.threadIdx.x == 0:
        mine = cuda.atomic.add(tickets, 0, 1)
        while cuda.atomic.add(tickets, 1, 0) != mine:
            pass
        cuda.threadfence()
        order[entered[0]] = cuda.blockIdx.x
        entered[0] += 1
        cuda.threadfence()
        cuda.atomic.add(tickets, 1, 1)


@program(
    6,
    64,
    lambda: (
        integers(0, 50, 359),
        zeros(6, dtype=np.int32),
        zeros(6, dtype=np.int32),
        zeros(359, dtype=np.int32),
    ),
    lambda x, ready, sums, out: (
        None,
        np.ones(6),
        np.array([x[: 64 * (b + 1)].sum() for b in range(6)]),
        x.cumsum(),
    ),
)
@cuda.jit
def scan_chained_from_block_to_block(x, ready, sums, out):
    values = cuda.shared.array(64, int32)
    before = cuda.shared.array(1, int32)
    b, t, i = cuda.blockIdx.x, cuda.threadIdx.x, cuda.grid(1)
    values[t] = x[i] if i < x.size else int32(0)
    cuda.syncthreads()
    step = 1
    while step < 64:
        below = values[t - step] if t >= step else int32(0)
        cuda.syncthreads()
        values[t] += below
        cuda.syncthreads()
        step *= 2
    if t == 0:
        before[0] = 0
        if b > 0:
            while cuda.atomic.add(ready, b - 1, 0) == 0:
                pass
            cuda.threadfence()
            before[0] = sums[b - 1]
        sums[b] = before[0] + values[63]
        cuda.threadfence()
        cuda.atomic.exch(ready, b, 1)
    cuda.syncthreads()
    if i < x.size:
        out[i] = before[0] + values[t]


@program(
    5,
    64,
    lambda: (floats(307), zeros(5), zeros(1, dtype=np.int32), zeros(1)),
    lambda x, parts, count, total: (None, sums_of(x, 64), [5], sums_of(x, 400)),
)
@cuda.jit
def the_last_block_adds_the_sums(x, parts, count, total):
    part = cuda.shared.array(64, float32)
    last = cuda.shared.array(1, int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    part[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    width = 32
    while width > 0:
        if t < width:
            part[t] += part[t + width]
        cuda.syncthreads()
        width >>= 1
    if t == 0:
        parts[cuda.blockIdx.x] = part[0]
        cuda.threadfence()
        last[0] = cuda.atomic.add(count, 0, 1) == cuda.gridDim.x - 1
    cuda.syncthreads()
    if last[0] == 1 and t == 0:
        cuda.threadfence()
        sum_of_all = float32(0)
        for b in range(cuda.gridDim.x):
            sum_of_all += parts[b]
        total[0] = sum_of_all


def _most_frequent(values, bins, count, winner):
    counts = np.bincount(values, minlength=23)
    return None, np.zeros(23), [0], [counts.argmax(), counts.max()]


@program(
    4,
    96,
    lambda: (
        integers(0, 23, 379),
        zeros(23, dtype=np.int32),
        zeros(1, dtype=np.int32),
        zeros(2, dtype=np.int32),
    ),
    _most_frequent,
)
@cuda.jit
def the_last_block_evaluates_and_clears_the_histogram(values, bins, count, winner):
    last = cuda.shared.array(1, int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(bins, values[i], 1)
    cuda.threadfence()
    cuda.syncthreads()
    if t == 0:
        last[0] = cuda.atomic.add(count, 0, 1)
    cuda.syncthreads()
    if last[0] == cuda.gridDim.x - 1:
        cuda.threadfence()
        if t == 0:
            best = 0
            for b in range(1, bins.size):
                if bins[b] > bins[best]:
                    best = b
            winner[0] = best
            winner[1] = bins[best]
            count[0] = 0
        cuda.syncthreads()
        if t < bins.size:
            bins[t] = 0


def _after_steps(a, b, steps):
    now = a.astype(np.float64)
    before = now
    for _ in range(steps):
        after = now.copy()
        after[1:-1] = 0.5 * now[1:-1] + 0.25 * (now[:-2] + now[2:])
        before, now = now, after
    pair = (now, before) if steps % 2 == 0 else (before, now)
    return *(each.astype(np.float32) for each in pair), None


@program(4, 64, lambda: (floats(251), zeros(251), 5), _after_steps)
@cuda.jit
def diffusion_with_the_grid_in_step(a, b, steps):
    grid = cuda.cg.this_grid()
    i = cuda.grid(1)
    n = a.size
    for step in range(steps):
        if i < n:
            if step % 2 == 0:
                if 0 < i < n - 1:
                    b[i] = float32(0.5) * a[i] + float32(0.25) * (a[i - 1] + a[i + 1])
                else:
                    b[i] = a[i]
            else:
                if 0 < i < n - 1:
                    a[i] = float32(0.5) * b[i] + float32(0.25) * (b[i - 1] + b[i + 1])
                else:
                    a[i] = b[i]
        grid.sync()


@program(
    5,
    64,
    lambda: (floats(293), zeros(5), zeros(293)),
    lambda x, parts, out: (None, sums_of(x, 64), (x / x.sum(dtype=np.float64)).astype(np.float32)),
)
@cuda.jit
def normalise_with_two_phases_of_the_grid(x, parts, out):
    part = cuda.shared.array(64, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    part[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    width = 32
    while width > 0:
        if t < width:
            part[t] += part[t + width]
        cuda.syncthreads()
        width //= 2
    if t == 0:
        parts[cuda.blockIdx.x] = part[0]
    cuda.cg.this_grid().sync()
    total = float32(0)
    for b in range(cuda.gridDim.x):
        total += parts[b]
    if i < x.size:
        out[i] = x[i] / total


@program(
    6,
    32,
    lambda: (
        integers(0, 99, 187),
        zeros(1, dtype=np.int32),
        zeros(187, dtype=np.int32),
        zeros(187, dtype=np.int32),
    ),
    lambda x, arrived, doubled, out: (None, [6], 2 * x, 2 * x[::-1]),
)
@cuda.jit
def a_barrier_of_all_blocks_by_hand(x, arrived, doubled, out):
    i = cuda.grid(1)
    if i < x.size:
        doubled[i] = 2 * x[i]
    cuda.threadfence()
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(arrived, 0, 1)
        while cuda.atomic.add(arrived, 0, 0) < cuda.gridDim.x:
            pass
        cuda.threadfence()
    cuda.syncthreads()
    if i < x.size:
        out[i] = doubled[x.size - 1 - i]


@program(
    1,
    64,
    lambda: (floats(8, 32), zeros(8, 32)),
    lambda x, out: (None, x + 1),
)
@cuda.jit
def one_warp_hands_over_to_another(x, out):
    box = cuda.shared.array(32, float32)
    full = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    warp, lane = t // 32, t % 32
    if t == 0:
        full[0] = 0
    cuda.syncthreads()
    for row in range(x.shape[0]):
        wanted = 0 if warp == 0 else 1
        if lane == 0:
            while cuda.atomic.add(full, 0, 0) != wanted:
                pass
            cuda.threadfence_block()
        cuda.syncwarp()
        if warp == 0:
            box[lane] = x[row, lane] + float32(1)
        else:
            out[row, lane] = box[lane]
        cuda.syncwarp()
        if lane == 0:
            cuda.threadfence_block()
            cuda.atomic.exch(full, 0, 1 - wanted)


def _queue(work, taken, square):
    return None, None, work.astype(np.int64) ** 2


@program(
    3,
    32,
    lambda: (integers(0, 1000, 41), zeros(1, dtype=np.int32), zeros(41, dtype=np.int64)),
    _queue,
    seen=lambda work, taken, square: (work, np.zeros(1, np.int32), square),
)
@cuda.jit
def blocks_take_work_from_a_queue(work, taken, square):
    mine = cuda.shared.array(1, int32)
    while True:
        if cuda.threadIdx.x == 0:
            mine[0] = cuda.atomic.add(taken, 0, 1)
        cuda.syncthreads()
        job = mine[0]
        cuda.syncthreads()
        if job >= work.size:
            break
        if cuda.threadIdx.x == 0:
            number = work[job]
            square[job] = number * number
