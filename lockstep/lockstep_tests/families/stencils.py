"""Halos and stencils in one, two and three dimensions: edges, shared tiles, periodic borders."""

import numpy as np
from numba import cuda, float32, int32

from lockstep_tests.families import floats, integers, program, zeros

RADIUS = 3
THREADS = 96
WITH_HALO = THREADS + 2 * RADIUS


def _moving_sum(x, out):
    wide = np.pad(x.astype(np.float64), RADIUS)
    return None, sum(wide[k : k + x.size] for k in range(2 * RADIUS + 1)).astype(np.float32)


@program(5, THREADS, lambda: (floats(413), zeros(413)), _moving_sum)
@cuda.jit
def moving_sum_with_a_shared_halo(x, out):
    tile = cuda.shared.array(WITH_HALO, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    tile[t + RADIUS] = x[i] if i < x.size else float32(0)
    if t < RADIUS:
        left = i - RADIUS
        right = i + THREADS
        tile[t] = x[left] if left >= 0 else float32(0)
        tile[t + RADIUS + THREADS] = x[right] if right < x.size else float32(0)
    cuda.syncthreads()
    if i < x.size:
        total = float32(0)
        for k in range(2 * RADIUS + 1):
            total += tile[t + k]
        out[i] = total


def _jacobi(a, b):
    out = a.astype(np.float64)
    out[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1].astype(np.float64) + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
    return None, out.astype(np.float32)


@program((4, 5), (16, 8), lambda: (floats(37, 61), zeros(37, 61)), _jacobi)
@cuda.jit
def jacobi_step(a, b):
    x, y = cuda.grid(2)
    rows, columns = a.shape
    if y < rows and x < columns:
        if 0 < y < rows - 1 and 0 < x < columns - 1:
            b[y, x] = float32(0.25) * (a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1])
        else:
            b[y, x] = a[y, x]


def _heat(u, out, alpha):
    wide = u.astype(np.float64)
    out = out.copy()
    core = wide[1:-1, 1:-1, 1:-1]
    around = sum(np.roll(wide, s, axis)[1:-1, 1:-1, 1:-1] for axis in range(3) for s in (1, -1))
    out[1:-1, 1:-1, 1:-1] = core + alpha * (around - 6 * core)
    return None, out, None


@program((3, 5, 4), (8, 4, 4), lambda: (floats(13, 17, 19), zeros(13, 17, 19), np.float32(0.1)), _heat)
@cuda.jit
def heat_in_three_dimensions(u, out, alpha):
    x, y, z = cuda.grid(3)
    depth, rows, columns = u.shape
    if 0 < z < depth - 1 and 0 < y < rows - 1 and 0 < x < columns - 1:
        middle = u[z, y, x]
        around = u[z - 1, y, x] + u[z + 1, y, x]
        around += u[z, y - 1, x] + u[z, y + 1, x]
        around += u[z, y, x - 1] + u[z, y, x + 1]
        out[z, y, x] = middle + alpha * (around - float32(6) * middle)


def _blurred(image, out):
    wide = np.pad(image.astype(np.float64), 1, mode="edge")
    rows, columns = image.shape
    total = sum(wide[r : r + rows, c : c + columns] for r in range(3) for c in range(3))
    return None, (total * np.float32(1 / 9)).astype(np.float32)


@program((5, 4), (16, 16), lambda: (floats(51, 67), zeros(51, 67)), _blurred)
@cuda.jit
def blur_with_a_shared_tile_and_clamped_edges(image, out):
    tile = cuda.shared.array((18, 18), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    rows, columns = image.shape
    left = cuda.blockIdx.x * 16 - 1
    top = cuda.blockIdx.y * 16 - 1
    place = ty * 16 + tx
    while place < 18 * 18:
        r, c = place // 18, place % 18
        row = min(max(top + r, 0), rows - 1)
        column = min(max(left + c, 0), columns - 1)
        tile[r, c] = image[row, column]
        place += 256
    cuda.syncthreads()
    x, y = cuda.grid(2)
    if y < rows and x < columns:
        total = float32(0)
        for r in range(3):
            for c in range(3):
                total += tile[ty + r, tx + c]
        out[y, x] = total * float32(1 / 9)


def _convolved(image, weights, out):
    rows, columns = out.shape
    total = np.zeros(out.shape)
    for r in range(weights.shape[0]):
        for c in range(weights.shape[1]):
            total += weights[r, c].astype(np.float64) * image[r : r + rows, c : c + columns]
    return None, None, total.astype(np.float32)


@program((4, 6), (12, 6), lambda: (floats(35, 47), floats(5, 3, seed=1), zeros(31, 45)), _convolved)
@cuda.jit
def convolution_without_padding(image, weights, out):
    x, y = cuda.grid(2)
    if y >= out.shape[0] or x >= out.shape[1]:
        return
    total = float32(0)
    for r in range(weights.shape[0]):
        for c in range(weights.shape[1]):
            total += weights[r, c] * image[y + r, x + c]
    out[y, x] = total


def _edges(image, out):
    i = image.astype(np.int32)
    gx = i[:-2, 2:] + 2 * i[1:-1, 2:] + i[2:, 2:] - i[:-2, :-2] - 2 * i[1:-1, :-2] - i[2:, :-2]
    gy = i[2:, :-2] + 2 * i[2:, 1:-1] + i[2:, 2:] - i[:-2, :-2] - 2 * i[:-2, 1:-1] - i[:-2, 2:]
    out = out.copy()
    out[1:-1, 1:-1] = np.minimum(abs(gx) + abs(gy), 255)
    return None, out


@program(
    (3, 6),
    (32, 4),
    lambda: (integers(0, 256, 23, 71, dtype=np.uint8), zeros(23, 71, dtype=np.uint8)),
    _edges,
)
@cuda.jit
def sobel_of_bytes(image, out):
    x, y = cuda.grid(2)
    rows, columns = image.shape
    if y < 1 or x < 1 or y >= rows - 1 or x >= columns - 1:
        return
    nw, n, ne = int32(image[y - 1, x - 1]), int32(image[y - 1, x]), int32(image[y - 1, x + 1])
    w, e = int32(image[y, x - 1]), int32(image[y, x + 1])
    sw, s, se = int32(image[y + 1, x - 1]), int32(image[y + 1, x]), int32(image[y + 1, x + 1])
    across = ne + 2 * e + se - nw - 2 * w - sw
    down = sw + 2 * s + se - nw - 2 * n - ne
    out[y, x] = min(abs(across) + abs(down), 255)


def _wave(u, v, out):
    wide = u.astype(np.float64)
    return (
        None,
        None,
        (wide + 0.5 * v + 0.25 * (np.roll(wide, 1) - 2 * wide + np.roll(wide, -1))).astype(np.float32),
    )


@program(3, 128, lambda: (floats(331), floats(331, seed=1), zeros(331)), _wave)
@cuda.jit
def wave_on_a_ring(u, v, out):
    i = cuda.grid(1)
    n = u.size
    if i < n:
        left = i - 1 if i > 0 else n - 1
        right = i + 1 if i < n - 1 else 0
        here = u[i]
        bend = u[left] - float32(2) * here + u[right]
        out[i] = here + float32(0.5) * v[i] + float32(0.25) * bend


def _life(world, after):
    around = sum(np.roll(world, (r, c), (0, 1)) for r in (-1, 0, 1) for c in (-1, 0, 1)) - world
    return None, ((around == 3) | ((world == 1) & (around == 2))).astype(np.uint8)


@program(
    (4, 5),
    (16, 8),
    lambda: (integers(0, 2, 39, 53, dtype=np.uint8), zeros(39, 53, dtype=np.uint8)),
    _life,
)
@cuda.jit
def game_of_life_on_a_torus(world, after):
    x, y = cuda.grid(2)
    rows, columns = world.shape
    if y < rows and x < columns:
        around = 0
        for r in range(-1, 2):
            for c in range(-1, 2):
                if r != 0 or c != 0:
                    around += world[(y + r) % rows, (x + c) % columns]
        if around == 3 or (around == 2 and world[y, x] == 1):
            after[y, x] = 1
        else:
            after[y, x] = 0
