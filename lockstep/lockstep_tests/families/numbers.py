"""Arithmetic: loops that end lane by lane, random number generators, wide and narrow integers, math."""

import math
from itertools import pairwise

import numpy as np
from numba import cuda, float32, float64, int32, uint64

from lockstep_tests.families import floats, integers, program, zeros
from lockstep_tests.families.warps import warp_sum


def _escape_times(c, z, limit):
    z, c = np.broadcast_arrays(z.astype(np.complex128), c)
    z, count = z.copy(), np.zeros(z.shape, np.int32)
    going = np.ones(z.shape, bool)
    for _ in range(limit):
        going &= z.real**2 + z.imag**2 <= 4
        count += going
        z[going] = z[going] ** 2 + c[going]
    return count


def _plane(rows, columns):
    x, y = np.arange(columns) * (3 / 64) - 2, np.arange(rows) * (5 / 64) - 1.25
    return x + 1j * y[:, None]


@program(
    (4, 5),
    (16, 8),
    lambda: (zeros(33, 61, dtype=np.int32), 40),
    lambda out, limit: (_escape_times(_plane(33, 61), np.zeros(()), 40), None),
)
@cuda.jit
def mandelbrot(out, limit):
    column, row = cuda.grid(2)
    if row >= out.shape[0] or column >= out.shape[1]:
        return
    cx = column * 0.046875 - 2.0
    cy = row * 0.078125 - 1.25
    x = 0.0
    y = 0.0
    count = 0
    while count < limit and x * x + y * y <= 4.0:
        x, y = x * x - y * y + cx, 2.0 * x * y + cy
        count += 1
    out[row, column] = count


@program(
    (4, 5),
    (16, 8),
    lambda: (zeros(33, 61, dtype=np.uint8), np.float32(-0.4), np.float32(0.6)),
    lambda out, cx, cy: (_escape_times(np.complex128(cx + 1j * cy), _plane(33, 61), 9), None, None),
)
@cuda.jit
def julia(out, cx, cy):
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        x = float32(column) * float32(0.046875) - float32(2)
        y = float32(row) * float32(0.078125) - float32(1.25)
        count = 0
        for _ in range(9):
            if x * x + y * y > float32(4):
                break
            across = x * x - y * y + cx
            y = float32(2) * x * y + cy
            x = across
            count += 1
        out[row, column] = count


def _collatz(numbers, steps):
    counts = []
    for n in map(int, numbers):
        count = 0
        while n != 1:
            n, count = n // 2 if n % 2 == 0 else 3 * n + 1, count + 1
        counts.append(count)
    return None, counts


@program(3, 96, lambda: (integers(1, 5000, 263, dtype=np.int64), zeros(263, dtype=np.int32)), _collatz)
@cuda.jit
def collatz(numbers, steps):
    i = cuda.grid(1)
    if i < numbers.size:
        n = numbers[i]
        count = 0
        while n != 1:
            n = n >> 1 if n & 1 == 0 else 3 * n + 1
            count += 1
        steps[i] = count


@program(
    3,
    96,
    lambda: (
        integers(0, 9999, 269, dtype=np.int64),
        integers(1, 9999, 269, dtype=np.int64, seed=1),
        zeros(269, dtype=np.int64),
    ),
    lambda a, b, out: (None, None, np.gcd(a, b)),
)
@cuda.jit
def greatest_common_divisors(a, b, out):
    i = cuda.grid(1)
    if i < a.size:
        x, y = a[i], b[i]
        while y != 0:
            x, y = y, x % y
        out[i] = x


@program(
    5,
    64,
    lambda: (integers(2, 3000, 317), zeros(317, dtype=np.int32)),
    lambda n, prime: (None, [all(k % d for d in range(2, math.isqrt(k) + 1)) for k in n.tolist()]),
)
@cuda.jit
def primes_by_trial_division(n, prime):
    i = cuda.grid(1)
    if i < n.size:
        number = n[i]
        divisor = 2
        found = 1
        while divisor * divisor <= number:
            if number % divisor == 0:
                found = 0
                break
            divisor += 1
        prime[i] = found


def _hits(seeds, rounds, hits):
    state, total = seeds.copy(), np.zeros(seeds.size, np.int64)
    for _ in range(rounds):
        place = []
        for _ in range(2):
            state = (1103515245 * state + 12345) & 0x7FFFFFFF
            place.append(state >> 16)
        total += place[0] ** 2 + place[1] ** 2 < 1 << 30
    return None, None, [total.sum()]


@program(3, 64, lambda: (integers(1, 2**31, 163, dtype=np.int64), 25, zeros(1, dtype=np.int64)), _hits)
@cuda.jit
def monte_carlo_with_a_congruential_generator(seeds, rounds, hits):
    i = cuda.grid(1)
    mine = 0
    if i < seeds.size:
        state = seeds[i]
        for _ in range(rounds):
            state = (1103515245 * state + 12345) & 0x7FFFFFFF
            x = state >> 16
            state = (1103515245 * state + 12345) & 0x7FFFFFFF
            y = state >> 16
            if x * x + y * y < 1 << 30:
                mine += 1
    mine = warp_sum(mine)
    if cuda.laneid == 0:
        cuda.atomic.add(hits, 0, mine)


def _xorshift(state, out):
    last = state.copy()
    for _ in range(7):
        last ^= last << np.uint64(13)
        last ^= last >> np.uint64(7)
        last ^= last << np.uint64(17)
    return last, (last >> np.uint64(11)).astype(np.float64) / 2**53


@program(
    2,
    96,
    lambda: (integers(1, 2**62, 149, dtype=np.uint64), zeros(149, dtype=np.float64)),
    _xorshift,
)
@cuda.jit
def xorshift_of_64_bits(state, out):
    i = cuda.grid(1)
    if i < state.size:
        s = state[i]
        for _ in range(7):
            s ^= s << uint64(13)
            s ^= s >> uint64(7)
            s ^= s << uint64(17)
        state[i] = s
        out[i] = (s >> uint64(11)) * (1.0 / 9007199254740992.0)


def _fnv(text, starts, hashes):
    found = []
    for first, end in pairwise(starts):
        value = 14695981039346656037
        for byte in text[first:end].tolist():
            value = (value ^ byte) * 1099511628211 % 2**64
        found.append(value)
    return None, None, np.array(found, np.uint64)


@program(
    2,
    64,
    lambda: (
        integers(0, 256, 700, dtype=np.uint8),
        np.r_[0, integers(0, 14, 99, seed=1).cumsum()].astype(np.int32),
        zeros(99, dtype=np.uint64),
    ),
    _fnv,
)
@cuda.jit
def hashes_of_words(text, starts, hashes):
    i = cuda.grid(1)
    if i < hashes.size:
        value = uint64(14695981039346656037)
        for k in range(starts[i], starts[i + 1]):
            value = (value ^ uint64(text[k])) * uint64(1099511628211)
        hashes[i] = value


def _powers(base, exponent, modulus, out):
    return None, None, None, [pow(b, e, int(modulus)) for b, e in zip(base.tolist(), exponent.tolist())]


@program(
    2,
    96,
    lambda: (
        integers(0, 10**6, 151, dtype=np.int64),
        integers(0, 5000, 151, dtype=np.int64, seed=1),
        np.int64(1000003),
        zeros(151, dtype=np.int64),
    ),
    _powers,
)
@cuda.jit
def powers_modulo_a_prime(base, exponent, modulus, out):
    i = cuda.grid(1)
    if i < base.size:
        square = base[i] % modulus
        left = exponent[i]
        result = 1
        while left > 0:
            if left & 1 == 1:
                result = result * square % modulus
            square = square * square % modulus
            left >>= 1
        out[i] = result


def _saturated(a, b, out):
    return None, None, np.clip(a.astype(np.int64) + b, -32768, 32767)


@program(
    3,
    96,
    lambda: (
        integers(-32768, 32768, 287, dtype=np.int16),
        integers(-32768, 32768, 287, dtype=np.int16, seed=1),
        zeros(287, dtype=np.int16),
    ),
    _saturated,
)
@cuda.jit
def add_16_bits_and_saturate(a, b, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = max(-32768, min(32767, a[i] + b[i]))


def _matches(text, pattern, found):
    places = [p for p in range(text.size - pattern.size + 1) if (text[p : p + pattern.size] == pattern).all()]
    return None, None, np.isin(np.arange(found.size), places).astype(np.uint8)


@program(
    5,
    96,
    lambda: (
        integers(97, 99, 463, dtype=np.uint8),
        np.frombuffer(b"abbab", np.uint8).copy(),
        zeros(459, dtype=np.uint8),
    ),
    _matches,
)
@cuda.jit
def find_a_pattern(text, pattern, found):
    i = cuda.grid(1)
    if i < found.size:
        k = 0
        while k < pattern.size and text[i + k] == pattern[k]:
            k += 1
        found[i] = 1 if k == pattern.size else 0


def _edit_distance(a, b, distance):
    row = list(range(b.size + 1))
    for x in a.tolist():
        new = [row[0] + 1]
        for k, y in enumerate(b.tolist()):
            new.append(min(row[k] + (x != y), row[k + 1] + 1, new[k] + 1))
        row = new
    return None, None, [row[-1]]


@program(
    1,
    64,
    lambda: (
        integers(0, 4, 53, dtype=np.uint8),
        integers(0, 4, 47, dtype=np.uint8, seed=1),
        zeros(1, dtype=np.int32),
    ),
    _edit_distance,
)
@cuda.jit
def edit_distance_along_diagonals(a, b, distance):
    diagonals = cuda.shared.array((3, 64), int32)
    row = cuda.threadIdx.x
    m, n = a.size, b.size
    for d in range(m + n + 1):
        column = d - row
        if row <= m and 0 <= column <= n:
            if row == 0:
                best = column
            elif column == 0:
                best = row
            else:
                change = 0 if a[row - 1] == b[column - 1] else 1
                best = min(
                    diagonals[(d - 2) % 3, row - 1] + change,
                    diagonals[(d - 1) % 3, row - 1] + 1,
                    diagonals[(d - 1) % 3, row] + 1,
                )
            diagonals[d % 3, row] = best
        cuda.syncthreads()
    if row == m:
        distance[0] = diagonals[(m + n) % 3, m]


def _forces(body, force):
    wide = body.astype(np.float64)
    away = wide[None, :, :3] - wide[:, None, :3]
    weight = wide[None, :, 3] / ((away**2).sum(axis=2) + np.float32(0.01)) ** 1.5
    return None, (away * weight[:, :, None]).sum(axis=1).astype(np.float32)


@program(3, 64, lambda: (floats(141, 4), zeros(141, 3)), _forces, rtol=1e-4)
@cuda.jit
def forces_between_bodies(body, force):
    tile = cuda.shared.array((64, 4), float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    n = body.shape[0]
    x = y = z = float32(0)
    if i < n:
        x, y, z = body[i, 0], body[i, 1], body[i, 2]
    fx = fy = fz = float32(0)
    for first in range(0, n, 64):
        if first + t < n:
            for c in range(4):
                tile[t, c] = body[first + t, c]
        cuda.syncthreads()
        for j in range(min(64, n - first)):
            dx, dy, dz = tile[j, 0] - x, tile[j, 1] - y, tile[j, 2] - z
            squared = dx * dx + dy * dy + dz * dz + float32(0.01)
            inverse = float32(1) / math.sqrt(squared)
            weight = tile[j, 3] * inverse * inverse * inverse
            fx += weight * dx
            fy += weight * dy
            fz += weight * dz
        cuda.syncthreads()
    if i < n:
        force[i, 0] = fx
        force[i, 1] = fy
        force[i, 2] = fz


def _softmax(a, out):
    wide = np.exp(a.astype(np.float64) - a.max(axis=1, keepdims=True))
    return None, (wide / wide.sum(axis=1, keepdims=True)).astype(np.float32)


@program(9, 32, lambda: (floats(9, 77), zeros(9, 77)), _softmax)
@cuda.jit
def softmax_of_rows(a, out):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    columns = a.shape[1]
    largest = float32(-math.inf)
    for c in range(lane, columns, 32):
        largest = max(largest, a[row, c])
    for bit in (16, 8, 4, 2, 1):
        largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, bit))
    total = float32(0)
    for c in range(lane, columns, 32):
        power = math.exp(a[row, c] - largest)
        out[row, c] = power
        total += power
    for bit in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, bit)
    for c in range(lane, columns, 32):
        out[row, c] /= total


@program(
    3,
    64,
    lambda: (
        floats(167, dtype=np.float64),
        floats(7, dtype=np.float64, seed=1),
        zeros(167, dtype=np.float64),
    ),
    lambda x, c, out: (None, None, np.polyval(c[::-1], x)),
    rtol=1e-12,
)
@cuda.jit
def polynomial_by_horner(x, c, out):
    i = cuda.grid(1)
    if i < x.size:
        value = float64(0)
        for k in range(c.size - 1, -1, -1):
            value = value * x[i] + c[k]
        out[i] = value


@program(
    (3, 5),
    (16, 8),
    lambda: (integers(1, 100, 37, 37), 5),
    lambda distance, k: (np.minimum(distance, distance[:, 5:6] + distance[5:6, :]), None),
)
@cuda.jit
def one_step_of_floyd_and_warshall(distance, k):
    j, i = cuda.grid(2)
    if i < distance.shape[0] and j < distance.shape[1] and i != k and j != k:
        through = distance[i, k] + distance[k, j]
        if through < distance[i, j]:
            distance[i, j] = through


@program(
    3,
    64,
    lambda: (floats(149, 67), floats(67, seed=1), zeros(149)),
    lambda a, x, y: (None, None, (a.astype(np.float64) @ x).astype(np.float32)),
)
@cuda.jit
def matrix_times_vector_with_a_shared_piece(a, x, y):
    piece = cuda.shared.array(64, float32)
    t, row = cuda.threadIdx.x, cuda.grid(1)
    rows, columns = a.shape
    total = float32(0)
    for first in range(0, columns, 64):
        if first + t < columns:
            piece[t] = x[first + t]
        cuda.syncthreads()
        if row < rows:
            for k in range(min(64, columns - first)):
                total += a[row, first + k] * piece[k]
        cuda.syncthreads()
    if row < rows:
        y[row] = total
