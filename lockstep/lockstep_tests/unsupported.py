# ruff: noqa
"""Kernels that the emulator must refuse before it runs anything. `# <- refused` marks the line that it must name.

Each kernel stores to `out` first, so that a refusal that comes too late shows in the array.
"""

import numpy as np
from numba import cuda, float32

counter = 0


@cuda.jit
def with_try(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    try:  # <- refused
        out[i] = x[i + 1]
    except IndexError:
        out[i] = 0


@cuda.jit
def with_with(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    with open("file") as f:  # <- refused
        out[i] = 1


@cuda.jit
def with_yield(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    yield x[i]  # <- refused


@cuda.jit
def with_list(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    pair = [x[i], x[i]]  # <- refused
    out[i] = pair[0]


@cuda.jit
def with_dict(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    table = {1: x[i]}  # <- refused
    out[i] = table[1]


@cuda.jit
def with_set(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    some = {1, 2}  # <- refused


@cuda.jit
def with_list_comprehension(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    squares = [j * j for j in range(4)]  # <- refused
    out[i] = squares[1]


@cuda.jit
def with_sum_over_a_generator(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    out[i] = sum(x[j] for j in range(4))  # <- refused


@cuda.jit
def with_global(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    global counter  # <- refused
    counter = 1


@cuda.jit
def with_nonlocal(x, out):
    count = 0

    def add():
        nonlocal count  # <- refused
        count = 1

    add()
    out[cuda.grid(1)] = count


@cuda.jit
def with_a_class(x, out):
    i = cuda.grid(1)
    out[i] = x[i]

    class Pair:  # <- refused
        pass


@cuda.jit
def with_an_import(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    import math  # <- refused

    out[i] = math.sqrt(x[i])


@cuda.jit
def with_del(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    del i  # <- refused


@cuda.jit
def with_match(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    match x[i], i:  # <- refused
        case 0, 1:
            out[i] = 1


@cuda.jit
def with_an_f_string(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    name = f"thread {i}"  # <- refused


@cuda.jit
def with_a_starred_target(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    first, *rest = (1, 2, 3)  # <- refused
    out[i] = first


@cuda.jit
def with_a_numpy_function(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    out[i] = np.linalg.norm(x)  # <- refused


@cuda.jit
def with_a_python_function(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    out[i] = len(open("file").read())  # <- refused


@cuda.jit
def with_an_unknown_name_of_cuda(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    cuda.synchronise_threads()  # <- refused


@cuda.jit
def with_an_unknown_name(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    out[i] = scale * x[i]  # <- refused


@cuda.jit(device=True)
def first_of(values):
    found = [values[0]]  # <- refused
    return found[0]


@cuda.jit
def with_a_list_in_a_device_function(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    out[i] = first_of(x)


@cuda.jit
def with_a_shared_array_of_run_time_size(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    tile = cuda.shared.array(x.shape[0], float32)  # <- refused
    tile[0] = x[0]


SIZE = 32


@cuda.jit
def with_a_shape_computed_in_the_kernel(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    tile = cuda.shared.array((2, SIZE + 1), float32)  # <- refused
    tile[0, 0] = x[0]


@cuda.jit
def with_a_shape_computed_before(x, out):
    i = cuda.grid(1)
    width = SIZE + 1
    out[i] = x[i]
    tile = cuda.local.array((2, width), float32)  # <- refused
    tile[0, 0] = x[0]


@cuda.jit
def with_text(x, out):
    i = cuda.grid(1)
    out[i] = x[i] if i < 4 else "x"  # <- refused


KERNELS = {name: value for name, value in list(globals().items()) if name.startswith("with_")}
HELPERS = {"with_a_list_in_a_device_function": first_of}
