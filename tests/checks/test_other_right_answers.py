"""A checker holds to what is asked, not to how the course writes it: other right answers pass as well."""

import math
from itertools import pairwise

import numpy as np
import pytest
from numba import cuda, float32, int32

from gemm_course import check, road


def where_by_divmod(block, thread, block_dim):
    linear = thread[0] + thread[1] * block_dim[0]
    column, row = (b * d + t for b, t, d in zip(block, thread, block_dim))
    return [row, column, *divmod(linear, 32)]


def where_as_an_array(block, thread, block_dim):
    block, thread, dim = map(np.array, (block, thread, block_dim))
    place, linear = block * dim + thread, thread @ [1, dim[0]]
    return np.array([place[1], place[0], linear // 32, linear % 32])


def blocks_by_ceil(n, threads):
    return math.ceil(n / threads)


def blocks_as_numpy_integer(n, threads):
    return np.int64(-(-n // threads))


def sector_by_addresses(i, j, A):
    first = A.__array_interface__["data"][0]
    address = A[i:, j:].__array_interface__["data"][0] - first
    return np.int64(address // 32), np.int64(address // 128)


def queue_by_numpy(addresses):
    return np.bincount(np.unique(np.array(addresses) // 4) % 32).max()


def queue_in_a_dictionary(asked):
    queues = {}
    for address in asked:
        line, byte = divmod(address, 128)
        queues.setdefault(byte // 4, set()).add(line)
    return max(map(len, queues.values()))


def queue_by_bytes(addresses):
    places = [address % 128 for address in set(addresses)]
    return float(max(map(places.count, places)))


def queue_of_sorted_addresses(addresses):
    addresses.sort(key=lambda address: (address % 128, address))
    longest, length = 1, 1
    for before, after in pairwise(addresses):
        same = after % 128 == before % 128
        length = length + (after != before) if same else 1
        longest = max(longest, length)
    return longest


def queue_delivery_by_delivery(addresses):
    waiting, deliveries = set(addresses), 0
    while waiting:
        waiting -= set({address % 128: address for address in waiting}.values())
        deliveries += 1
    return deliveries


def queue_that_empties_its_list(addresses):
    queues = [set() for _ in range(32)]
    while addresses:
        number = addresses.pop() >> 2
        queues[number & 31].add(number)
    return len(max(queues, key=len))


@cuda.jit
def add_with_other_names(x, y, z):
    index = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if index >= len(z):
        return
    z[index] = y[index] + x[index]


@cuda.jit
def add_with_a_stride(a, b, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = a[i] + b[i]


@cuda.jit
def add_backwards(a, b, out):
    i = out.size - 1 - cuda.grid(1)
    if i >= 0:
        out[i] = a[i] + b[i]


@cuda.jit
def add_in_two_dimensions_unneeded(a, b, out):
    i, _ = cuda.grid(2)
    if i < a.shape[0]:
        out[i] = a[i] + b[i]


@cuda.jit
def broadcast_by_shape(column, row, out):
    m, n = out.shape
    j, i = cuda.grid(2)
    if i < m and j < n:
        at = i, j
        out[at] = column[i] + row[j]


@cuda.jit
def broadcast_with_early_returns(column, row, out):
    j = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    i = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if i >= column.size:
        return
    if j >= row.size:
        return
    out[i, j] = column[i] + row[j]


@cuda.jit
def broadcast_over_strides(column, row, out):
    x, y = cuda.grid(2)
    for i in range(y, out.shape[0], cuda.gridsize(2)[1]):
        for j in range(x, out.shape[1], cuda.gridsize(2)[0]):
            out[i, j] = column[i] + row[j]


@cuda.jit
def gemm_with_other_names(rows, columns, depth, a, X, Y, b, Z):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    j = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if i >= rows or j >= columns:
        return
    total = float32(0)
    step = 0
    while step < depth:
        total += X[i, step] * Y[step, j]
        step += 1
    if b != 0:
        Z[i, j] = a * total + b * Z[i, j]
    else:
        Z[i, j] = a * total


@cuda.jit(device=True)
def product(row, col, k, A, B):
    acc = float32(0)
    for p in range(k):
        acc = acc + A[row, p] * B[p, col]
    return acc


@cuda.jit
def gemm_with_a_device_function(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        result = alpha * product(row, col, k, A, B)
        if beta:
            result += beta * C[row, col]
        C[row, col] = result


@cuda.jit
def gemm_backwards_with_alpha_in_the_loop(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m:
        if col < n:
            acc = beta * C[row, col] if beta != 0 else float32(0)
            for p in range(k - 1, -1, -1):
                acc += alpha * A[row, p] * B[p, col]
            C[row, col] = acc


@cuda.jit
def gemm_with_typed_indices(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    row, col = int32(row), int32(col)
    if col < n and row < m:
        acc = np.float32(0.0)
        for p in range(int32(k)):
            acc = cuda.fma(A[row, p], B[p, col], acc)
        acc *= alpha
        if beta != 0:
            acc += beta * C[row, col]
        C[row, col] = acc


@cuda.jit
def gemm_with_a_zero_of_the_matrix_type(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = A.dtype.type(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc


GEMMS = (
    gemm_with_other_names,
    gemm_with_a_device_function,
    gemm_backwards_with_alpha_in_the_loop,
    gemm_with_typed_indices,
    gemm_with_a_zero_of_the_matrix_type,
)


@cuda.jit
def matmul_with_other_names(X, Y, Z):
    """C = A · B, with a loop of its own."""
    rows, columns = Z.shape
    r = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    c = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if r >= rows or c >= columns:
        return
    total, step = np.float32(0.0), 0
    while step < Y.shape[0]:
        total = total + X[r, step] * Y[step, c]
        step += 1
    Z[r, c] = total


@cuda.jit
def matmul_with_a_zero_of_the_matrix_type(A, B, C):
    i, j = cuda.grid(2)
    if i < len(C) and j < C.shape[1]:
        acc = C.dtype.type(0)
        for k in range(A.shape[1] - 1, -1, -1):
            acc = cuda.fma(A[i, k], B[k, j], acc)
        C[i, j] = acc


MATMULS = (matmul_with_other_names, matmul_with_a_zero_of_the_matrix_type)
RIGHT = {
    "where": (where_by_divmod, where_as_an_array),
    "blocks_for": (blocks_by_ceil, blocks_as_numpy_integer),
    "sector_and_line": (sector_by_addresses,),
    "vector_add": (add_with_other_names, add_with_a_stride, add_backwards, add_in_two_dimensions_unneeded),
    "broadcast_add": (broadcast_with_early_returns, broadcast_over_strides, broadcast_by_shape),
    "naive": GEMMS,
    "l1_queue": (
        queue_by_numpy,
        queue_in_a_dictionary,
        queue_by_bytes,
        queue_of_sorted_addresses,
        queue_delivery_by_delivery,
        queue_that_empties_its_list,
    ),
    "no_float64": MATMULS,
}
CASES = [(exercise, answer) for exercise, answers in RIGHT.items() for answer in answers]


@pytest.mark.many(one_in=3)
@pytest.mark.parametrize("exercise, answer", CASES)
def test_another_right_answer_passes(exercise, answer):
    verdict = getattr(check, exercise)(answer)
    assert verdict.passed, str(verdict)


def test_a_float64_sum_is_no_matter_where_it_is_not_the_lesson():
    @cuda.jit
    def wide(m, n, k, alpha, A, B, beta, C):
        row, col = cuda.grid(2)
        if row < m and col < n:
            acc = 0.0
            for p in range(k):
                acc += A[row, p] * B[p, col]
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    assert (
        check.naive(wide).passed and f"exercise {road.number_of('no_float64')}" in check.naive(wide).message
    )
    assert not check.no_float64(wide).passed


def test_whole_floats_are_sectors_as_well():
    assert check.naive_sectors(A=8.0, B=np.float64(1), C=8).passed
