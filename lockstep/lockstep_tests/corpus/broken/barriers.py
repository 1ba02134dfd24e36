"""A barrier that some threads of the block never reach: advice if these just run to their end."""

from numba import cuda, float32

from lockstep_tests.corpus import broken_case, ramp, zeros


@broken_case("barrier_divergence", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def barrier_under_an_if(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    if t < 32:
        cuda.syncthreads()  # <- barrier_divergence
    out[t] = tile[t]


@broken_case("barrier_divergence", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def barrier_under_an_if_inside_one_warp(x, out):
    t = cuda.threadIdx.x
    if t % 2 == 0:
        cuda.syncthreads()  # <- barrier_divergence
    out[t] = x[t]


@broken_case("barrier_in_branch", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def barrier_in_a_loop_of_uneven_length(x, out):
    t = cuda.threadIdx.x
    total = float32(0)
    for j in range(t // 32 + 1):
        total += x[j]
        cuda.syncthreads()  # <- barrier_in_branch
    out[t] = total


@broken_case("barrier_divergence", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def one_barrier_in_each_branch(x, out):
    t = cuda.threadIdx.x
    if t < 32:
        out[t] = x[t]
        cuda.syncthreads()  # <- barrier_divergence
    else:
        out[t] = -x[t]
        cuda.syncthreads()  # <- barrier_divergence


@broken_case("barrier_divergence", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def some_threads_break_out(x, out):
    t = cuda.threadIdx.x
    j = 0
    while j < 4:
        if x[t] < 20 and j == 2:
            break
        cuda.syncthreads()  # <- barrier_divergence
        j += 1
    out[t] = j


@broken_case("barrier_divergence", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def barrier_where_the_data_say(x, out):
    t = cuda.threadIdx.x
    if x[t] > 30:
        cuda.syncthreads()  # <- barrier_divergence
    out[t] = x[t]


@broken_case("barrier_divergence", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def some_threads_continue(x, out):
    t = cuda.threadIdx.x
    total = float32(0)
    for j in range(3):
        if t >= 48 and j == 1:
            continue
        total += x[t]
        cuda.syncthreads()  # <- barrier_divergence
    out[t] = total


@broken_case("barrier_divergence", grid=2, block=32, args=lambda: (ramp(48), zeros(64)), blocks=((1, 0, 0),))
@cuda.jit
def barrier_splits_the_last_block(x, out):
    i = cuda.grid(1)
    value = float32(0)
    if i < x.shape[0]:
        value = x[i]
        cuda.syncthreads()  # <- barrier_divergence
    out[i] = value


@cuda.jit(device=True)
def meet_and_double(value):
    cuda.syncthreads()  # <- barrier_in_branch
    return value + value


@broken_case(
    "barrier_in_branch", grid=1, block=64, args=lambda: (ramp(64), zeros(64)), helpers=(meet_and_double,)
)
@cuda.jit
def barrier_inside_a_device_function(x, out):
    t = cuda.threadIdx.x
    value = x[t]
    if t >= 32:
        value = meet_and_double(value)
    out[t] = value
