"""What a Watch records."""

import numpy as np
from numba import cuda, float32

from lockstep import Watch, emulate


@cuda.jit
def through_a_local_array(out):
    own = cuda.local.array(2, float32)
    own[1] = cuda.threadIdx.x
    out[cuda.threadIdx.x] = own[1]


def trace(**watch):
    return emulate(through_a_local_array, 1, 32, np.zeros(32, np.float32), watch=Watch(**watch)).trace


def test_local_arrays_are_recorded_unless_they_are_excluded():
    assert set(trace()["space"]) == {"local", "global"}
    without = trace(local=False)
    assert set(without["space"]) == {"global"}
    assert without["element"].tolist() == [(lane,) for lane in range(32)]


def test_excluded_accesses_do_not_count_against_the_limit():
    assert len(trace(local=False, limit=32)) == 32
    assert set(trace(limit=32)["space"]) == {"local"}
