"""Sparse matrices times vectors: CSR by threads and by warps, coordinates, ELL; a breadth-first step."""

import numpy as np
from numba import cuda, float32

from lockstep_tests.families import floats, program, zeros
from lockstep_tests.families.warps import warp_sum

ROWS, COLUMNS = 83, 71


def matrix(seed=0):
    """A matrix with about 9 % of its elements, and one full row."""
    random = np.random.default_rng(seed)
    dense = random.random((ROWS, COLUMNS)) + 0.5
    dense[random.random((ROWS, COLUMNS)) > 0.09] = 0
    dense[17] = 0.25
    return dense.astype(np.float32)


def csr():
    """(starts of rows, columns, values)"""
    dense = matrix()
    starts = np.r_[0, (dense != 0).sum(axis=1).cumsum()]
    return starts.astype(np.int32), dense.nonzero()[1].astype(np.int32), dense[dense != 0]


def coordinates():
    dense = matrix()
    row, column = dense.nonzero()
    return row.astype(np.int32), column.astype(np.int32), dense[dense != 0]


def ell():
    """(columns, values) with a row per place, -1 where a row has no more elements."""
    dense = matrix()
    width = (dense != 0).sum(axis=1).max()
    columns, values = np.full((width, ROWS), -1, np.int32), np.zeros((width, ROWS), np.float32)
    for r in range(ROWS):
        (present,) = dense[r].nonzero()
        columns[: present.size, r], values[: present.size, r] = present, dense[r, present]
    return columns, values


def product(x):
    return (matrix().astype(np.float64) @ x).astype(np.float32)


@program(
    2,
    64,
    lambda: (*csr(), floats(COLUMNS), zeros(ROWS)),
    lambda s, c, v, x, y: (None, None, None, None, product(x)),
)
@cuda.jit
def csr_with_a_thread_per_row(starts, columns, values, x, y):
    row = cuda.grid(1)
    if row < y.size:
        total = float32(0)
        for k in range(starts[row], starts[row + 1]):
            total += values[k] * x[columns[k]]
        y[row] = total


@program(
    21,
    128,
    lambda: (*csr(), floats(COLUMNS), zeros(ROWS)),
    lambda s, c, v, x, y: (None, None, None, None, product(x)),
)
@cuda.jit
def csr_with_a_warp_per_row(starts, columns, values, x, y):
    row = cuda.grid(1) // 32
    if row < y.size:
        total = float32(0)
        for k in range(starts[row] + cuda.laneid, starts[row + 1], 32):
            total += values[k] * x[columns[k]]
        total = warp_sum(total)
        if cuda.laneid == 0:
            y[row] = total


@program(
    5,
    128,
    lambda: (*coordinates(), floats(COLUMNS), zeros(ROWS)),
    lambda r, c, v, x, y: (None, None, None, None, product(x)),
)
@cuda.jit
def coordinates_with_atomics(rows, columns, values, x, y):
    k = cuda.grid(1)
    if k < values.size:
        cuda.atomic.add(y, rows[k], values[k] * x[columns[k]])


@program(
    3, 32, lambda: (*ell(), floats(COLUMNS), zeros(ROWS)), lambda c, v, x, y: (None, None, None, product(x))
)
@cuda.jit
def ell_until_a_row_ends(columns, values, x, y):
    row = cuda.grid(1)
    if row < y.size:
        total = float32(0)
        k = 0
        while k < columns.shape[0] and columns[k, row] >= 0:
            total += values[k, row] * x[columns[k, row]]
            k += 1
        y[row] = total


def _reached(starts, targets, frontier, depth, level, found):
    level = level.copy()
    new = np.unique(
        np.concatenate([targets[starts[node] : starts[node + 1]] for node in np.flatnonzero(frontier)])
    )
    new = new[level[new] < 0]
    level[new] = depth
    return None, None, None, None, level, [new.size]


def _graph():
    starts, columns, _ = csr()
    level, frontier = np.full(ROWS, -1, np.int32), zeros(ROWS, dtype=np.int32)
    level[[4, 40]] = 0
    frontier[[4, 40]] = 1
    return starts, columns, frontier, np.int32(1), level, zeros(1, dtype=np.int32)


@program(1, 96, _graph, _reached)
@cuda.jit
def one_level_of_a_breadth_first_search(starts, targets, frontier, depth, level, found):
    node = cuda.grid(1)
    if node < level.size and frontier[node] == 1:
        for k in range(starts[node], starts[node + 1]):
            if cuda.atomic.cas(level, targets[k], -1, depth) == -1:
                cuda.atomic.add(found, 0, 1)
