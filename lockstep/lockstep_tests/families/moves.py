"""Moving data: transposes, gathers, scatters, layouts."""

import numpy as np
from numba import cuda, float32, float64

from lockstep_tests.families import floats, integers, program, zeros


@program((4, 5), (16, 8), lambda: (floats(37, 53), zeros(53, 37)), lambda a, out: (None, a.T))
@cuda.jit
def transpose_element_by_element(a, out):
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        out[x, y] = a[y, x]


@program(
    (3, 2),
    (16, 16),
    lambda: (floats(29, 43, dtype=np.float64), zeros(43, 29, dtype=np.float64)),
    lambda a, out: (None, a.T),
)
@cuda.jit
def transpose_of_doubles_through_a_tile(a, out):
    tile = cuda.shared.array((16, 17), float64)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * 16, cuda.blockIdx.y * 16
    if top + ty < a.shape[0] and left + tx < a.shape[1]:
        tile[ty, tx] = a[top + ty, left + tx]
    cuda.syncthreads()
    if left + ty < out.shape[0] and top + tx < out.shape[1]:
        out[left + ty, top + tx] = tile[tx, ty]


@program(
    5,
    72,
    lambda: (floats(500), integers(-3, 500, 349, dtype=np.int64), zeros(349)),
    lambda x, index, out: (None, None, np.where(index >= 0, x[index], 0)),
)
@cuda.jit
def gather_unless_negative(x, index, out):
    i = cuda.grid(1)
    if i < out.size:
        source = index[i]
        if source >= 0:
            out[i] = x[source]
        else:
            out[i] = 0


def _scattered(x, place, out):
    out = out.copy()
    out[place] = x
    return None, None, out


@program(
    3,
    112,
    lambda: (floats(317), np.random.default_rng(5).permutation(401)[:317].astype(np.int32), zeros(401)),
    _scattered,
)
@cuda.jit
def scatter_to_places_of_its_own(x, place, out):
    i = cuda.grid(1)
    if i < x.size:
        out[place[i]] = x[i]


@program(
    3,
    96,
    lambda: (floats(259, 3), zeros(3, 259)),
    lambda points, planes: (None, points.T),
)
@cuda.jit
def structures_to_planes(points, planes):
    i = cuda.grid(1)
    if i < points.shape[0]:
        for axis in range(3):
            planes[axis, i] = points[i, axis]


@program(2, 64, lambda: (integers(0, 1000, 111, dtype=np.int16),), lambda x: (x[::-1],))
@cuda.jit
def reverse_16_bits_in_place(x):
    i = cuda.grid(1)
    j = x.size - 1 - i
    if i < j:
        low, high = x[i], x[j]
        x[i] = high
        x[j] = low


def _embedded(table, words, out):
    return None, None, table[words]


@program(
    (2, 19),
    (32, 1),
    lambda: (floats(50, 45), integers(0, 50, 19), zeros(19, 45)),
    _embedded,
)
@cuda.jit
def rows_of_a_table(table, words, out):
    column, i = cuda.grid(2)
    if column < out.shape[1]:
        out[i, column] = table[words[i], column]


@program(
    (5, 3),
    (16, 8),
    lambda: (integers(0, 256, 21, 67, 3, dtype=np.uint8), zeros(21, 67, dtype=np.uint8)),
    lambda image, grey: (None, (image.astype(np.int64) @ [77, 150, 29] >> 8).astype(np.uint8)),
)
@cuda.jit
def colours_to_grey(image, grey):
    x, y = cuda.grid(2)
    if y < image.shape[0] and x < image.shape[1]:
        red, green, blue = image[y, x, 0], image[y, x, 1], image[y, x, 2]
        grey[y, x] = (77 * red + 150 * green + 29 * blue) >> 8


@program(
    3,
    128,
    lambda: (floats(343, dtype=np.float16), zeros(343)),
    lambda x, out: (None, x.astype(np.float32) * 3),
)
@cuda.jit
def scale_halves_to_floats(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = float32(x[i]) * float32(3)


@program(
    2,
    96,
    lambda: (floats(173), floats(173, seed=1), zeros(346)),
    lambda even, odd, out: (None, None, np.stack([even, odd], axis=1).ravel()),
)
@cuda.jit
def interleave_through_shared_memory(even, odd, out):
    tile = cuda.shared.array(192, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < even.size:
        tile[2 * t] = even[i]
        tile[2 * t + 1] = odd[i]
    cuda.syncthreads()
    first = cuda.blockIdx.x * 192
    for k in range(t, 192, 96):
        if first + k < out.size:
            out[first + k] = tile[k]
