"""``cuda.ldcg(array, i)``, ``cuda.stcs(array, i, value)`` and the like load and store global memory."""

import numpy as np
import pytest
from numba import cuda, float64

from lockstep import EmulatorError, emulate

pytestmark = pytest.mark.skipif(
    not hasattr(cuda, "ldca"), reason="the built-in numba.cuda has no cache hints"
)


def test_they_load_store_and_count():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        total = cuda.ldca(x, i) + cuda.ldcg(x, (i,)) + cuda.ldcs(x, i) + cuda.ldlu(x, i) + cuda.ldcv(x, -1)
        cuda.stcg(out, (i, 0), total)
        cuda.stcs(out, (i, 1), 1)
        cuda.stwb(out, (i, 2), 2.9)
        cuda.stwt(out, (i, 3), i)

    x, out = np.arange(32.0), np.zeros((32, 4), np.int32)
    report = emulate(kernel, 1, 32, x, out)
    assert report.ok
    assert out.tolist() == [[4 * i + 31, 1, 2, i] for i in range(32)]
    assert (report.total("requests", op="load"), report.total("requests", op="store")) == (5, 4)


def test_races_and_indices_are_found():
    @cuda.jit
    def same(x, out):
        cuda.stcs(out, 0, cuda.grid(1))

    @cuda.jit
    def beyond(x, out):
        out[cuda.grid(1)] = cuda.ldcg(x, cuda.grid(1) + 1)

    x, out = np.zeros(32), np.zeros(32)
    assert [found.kind for found in emulate(same, 1, 32, x, out).errors] == ["global_race"]
    assert [found.kind for found in emulate(beyond, 1, 32, x, out).errors] == ["out_of_bounds"]


def refused_kernels():
    def shared(x, m):
        tile = cuda.shared.array(3, float64)
        tile[0] = 1
        x[0] = cuda.ldcg(tile, 0)

    def real_index(x, m):
        x[0] = cuda.ldcg(x, 0.5)

    def one_index_of_two(x, m):
        cuda.stwt(m, 0, 1)

    def complex_value(x, m):
        cuda.stcs(x, 0, 3j)

    def no_array(x, m):
        cuda.stcs(x[0], 0, 3)

    return [kernel for kernel in locals().values() if callable(kernel)]


REFUSED = {
    "shared": "cuda.ldcg() reaches global memory only, and tile lies in shared memory",
    "real_index": "cuda.ldcg() takes an integer as the index of x",
    "one_index_of_two": "cuda.stwt() takes a tuple of 2 integers as the index of m",
    "complex_value": "Numba converts no complex128 to float64",
    "no_array": "cuda.stcs() takes an array of integers or floats, not a float64 value",
}


@pytest.mark.parametrize("kernel", refused_kernels(), ids=lambda kernel: kernel.__name__)
def test_what_is_refused(kernel):
    with pytest.raises(EmulatorError) as refused:
        emulate(kernel, 1, 1, np.zeros(4), np.zeros((2, 2)))
    assert REFUSED[kernel.__name__] in str(refused.value)
