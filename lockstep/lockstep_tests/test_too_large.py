"""What cannot fit or end is refused soon, in a sentence: sizes before they are taken, loops by time."""

import numpy as np
import pytest
from numba import cuda, float32, int8

from lockstep import KernelStopped, LimitExceeded, emulate, emulated
from lockstep.host import heap
from lockstep.host.errors import UnsupportedCall
from lockstep_tests.corpus import zeros

SOON = 0.2  # seconds of the processor


@cuda.jit
def nothing_changes(x):
    while x[0] >= 0:
        x[0] += 0


@cuda.jit
def away_from_the_end(x):
    i = 10
    while i < 100:
        x[0] += i
        i -= 1


@cuda.jit
def forever(x):
    while True:
        x[0] = 1


@cuda.jit
def misses_its_end(x):
    f = 0.0
    while f != 1.0:
        f += 0.3
        x[0] = f


@cuda.jit
def after_others_have_left(x):
    i = cuda.grid(1)
    while i != 7:
        x[i] += 1
        if i > 7:
            i -= 1


@cuda.jit
def a_long_range(x):
    for i in range(10**12):
        x[0] += i


@cuda.jit
def in_a_function(x):
    _spin(x)


@cuda.jit(device=True)
def _spin(x):
    while x[0] != -1:
        x[0] += 1


ENDLESS = [
    nothing_changes,
    away_from_the_end,
    forever,
    misses_its_end,
    after_others_have_left,
    a_long_range,
    in_a_function,
]


@pytest.mark.many(one_in=7)
@pytest.mark.parametrize("kernel", ENDLESS, ids=lambda kernel: kernel.py_func.__name__)
def test_an_endless_loop_is_stopped_by_its_time(kernel):
    with pytest.raises(KernelStopped, match=r"thread \(\d+, 0, 0\) of block .* raise loop_seconds"):
        emulate(kernel, 1, 32, zeros(32), loop_seconds=SOON, allow=("global_race", "equal_stores"))


@cuda.jit
def with_a_counter(x):
    i = 0
    while i < 10_000:
        x[cuda.threadIdx.x] += i % 3
        i += 1


@cuda.jit
def halved(x):
    n = 1 << 30
    while n > 0:
        for i in range(300):
            x[cuda.threadIdx.x] += i
        n >>= 1


@cuda.jit
def lanes_leave_one_by_one(x):
    i = cuda.threadIdx.x
    while x[i] != 40 * i:
        x[i] += 1


@pytest.mark.many(one_in=3)
@pytest.mark.parametrize(
    "kernel", [with_a_counter, halved, lanes_leave_one_by_one], ids=lambda kernel: kernel.py_func.__name__
)
def test_a_loop_that_comes_closer_to_its_end_has_all_the_time_it_needs(kernel):
    assert emulate(kernel, 1, 64, zeros(64), loop_seconds=0.05).ok


@pytest.mark.parametrize("shape", [10**9, (10**5, 10**5), 49_153])
def test_a_shared_array_that_does_not_fit(shape):
    @cuda.jit
    def kernel(x):
        tile = cuda.shared.array(shape, int8)
        tile[0] = 1
        x[0] = 1

    with pytest.raises(LimitExceeded, match="the limit is 49,152"):
        emulate(kernel, 1, 1, zeros(1))


@pytest.mark.parametrize("shape", [10**9, (10**4, 10**4), 131_073])
def test_a_local_array_that_does_not_fit(shape):
    @cuda.jit
    def kernel(x):
        mine = cuda.local.array(shape, float32)
        mine[0] = 1
        x[0] = 1

    with pytest.raises(LimitExceeded, match=r"mine takes .* 524,288 bytes"):
        emulate(kernel, 1, 1, zeros(1))


def test_device_memory_that_does_not_fit(monkeypatch):
    with emulated():
        with pytest.raises(UnsupportedCall, match="16,000,000,000 bytes of device memory are too many"):
            cuda.device_array(4 * 10**9, np.float32)
        monkeypatch.setattr(heap, "_half_of_this_machine", lambda: 10_000)
        first = cuda.device_array(2000, np.float32)
        with pytest.raises(UnsupportedCall, match="where 8,000 are taken already"):
            cuda.device_array(2000, np.float32)
        del first
        cuda.device_array(2000, np.float32)
