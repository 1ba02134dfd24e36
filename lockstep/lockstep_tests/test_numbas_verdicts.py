"""What Numba does not compile, the emulator refuses as well; what the emulator lacks, it says so."""

import linecache
import math
import warnings

import numpy as np
import pytest
from numba import cuda, float32, types

from lockstep import EmulatorFault, LaunchError, LimitExceeded, emulate, emulated
from lockstep.errors import EmulatorError
from lockstep_tests.numbas_verdicts import EVERY

pytest.importorskip("numba_cuda", reason="Numba's own numba.cuda cannot be asked without a GPU")
WANTED = types.float64[::1], types.float64[:, ::1], types.int64
NEVER_LOOKED_AT = ["lambda:n"]  # no code uses the value, and the emulator leaves it out


def kernel_of(expression):
    source = f"def kernel(x, m, n):\n    y = {expression}\n"
    filename = f"<{expression}>"
    linecache.cache[filename] = len(source), None, source.splitlines(True), filename
    space = {"cuda": cuda, "np": np, "math": math, "float32": float32}
    exec(compile(source, filename, "exec"), space)
    return space["kernel"]


def numba_compiles(kernel) -> bool:
    from numba.cuda.cudadrv.error import CudaSupportError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            cuda.compile(kernel, WANTED, cc=(9, 0))
        except CudaSupportError:  # Types and lowering are done; only the linker needs a driver.
            return True
        except Exception:
            return False
    return True


@pytest.mark.many(one_in=25, with_all=5)
@pytest.mark.parametrize("expression", EVERY)
def test_what_numba_refuses_is_refused(expression):
    kernel = kernel_of(expression)
    try:
        emulate(kernel, 1, 32, np.ones(4), np.ones((2, 2)), 1)
    except EmulatorFault:
        raise
    except EmulatorError as error:
        assert str(error)[-1].isalnum() or str(error)[-1] in ".)`?]", error
    else:
        assert numba_compiles(kernel) or expression in NEVER_LOOKED_AT, f"Numba does not compile {expression}"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("x[0] = cuda.grid(n)", r"cuda.grid\(\) takes a literal number of dimensions, 1, 2 or 3, not n"),
        ("d = n\n    x[0] = cuda.gridsize(d)", "cuda.gridsize.* takes a literal number"),
        ("x[0] = cuda.any_sync(0xffffffff, x[0])", "takes a boolean or an integer, not a float64 value"),
        ("x[n > 0] = 1", "an index must be an integer, not a bool"),
        ("x[x[0] > 5] = 1", "an index must be an integer, not a bool"),
        ("m.ravel()[0] = 1", r"write m.reshape\(m.size\)"),
        ("t = cuda.local.array(4, float)\n    t[0] = 1", "must be a numeric type such as float32"),
        ("x[0] = cuda.ffs(x[0])", "takes an integer, not a float64 value"),
    ],
)
def test_the_sentence_says_what_to_write(body, said):
    source = f"def kernel(x, m, n):\n    {body}\n"
    filename = f"<{body}>"
    linecache.cache[filename] = len(source), None, source.splitlines(True), filename
    space = {"cuda": cuda, "np": np}
    exec(compile(source, filename, "exec"), space)
    with pytest.raises(EmulatorError, match=said):
        emulate(space["kernel"], 1, 32, np.ones(32), np.ones((2, 2)), 1)


def test_literals_that_numba_knows_are_taken():
    dimensions = 1

    @cuda.jit
    def kernel(x):
        two = 2
        i, _ = cuda.grid(two)
        x[i] = cuda.grid(dimensions) + cuda.grid(x.ndim)

    x = np.zeros(32)
    emulate(kernel, 1, 32, x)
    assert (x == 2 * np.arange(32)).all()


def test_a_masked_array_is_refused():
    @cuda.jit
    def kernel(x):
        x[0] = 1

    for launch in (lambda x: emulate(kernel, 1, 1, x), lambda x: kernel[1, 1](x)):
        with emulated(), pytest.raises(LaunchError, match="masked array"):
            launch(np.ma.array([1.0, 2], mask=[0, 1]))


def test_constant_memory_has_64_kb():
    large, fits = np.arange(8193.0), np.arange(8192.0)

    @cuda.jit
    def too_much(x):
        x[0] = cuda.const.array_like(large)[int(x[0])]

    @cuda.jit
    def enough(x):
        x[0] = fits[int(x[0])] + fits[1]

    with pytest.raises(LimitExceeded, match=r"65,544 bytes of constant memory.* the limit is 65,536"):
        emulate(too_much, 1, 1, np.zeros(1))
    assert emulate(enough, 1, 1, np.zeros(1)).ok


def test_fma_of_integers_is_computed_in_float64():
    @cuda.jit
    def kernel(a, out):
        out[0] = cuda.fma(a[0], a[0], a[0])
        out[1] = cuda.fma(a[1], 0.5, a[1])

    out = np.zeros(2)
    emulate(kernel, 1, 1, np.array([4 * 10**9, 3]), out)
    assert out.tolist() == [1.6000000004e19, 4.5]


def test_positions_under_another_name():
    @cuda.jit
    def kernel(x):
        t, b, d = cuda.threadIdx, cuda.blockIdx, cuda.blockDim
        x[b.x * d.x + t.x] = t.x + cuda.gridDim.x

    x = np.zeros(8)
    emulate(kernel, 2, 4, x)
    assert x.tolist() == [2, 3, 4, 5] * 2


@pytest.mark.parametrize(
    "name", "char uchar short ushort int uint long ulong longlong ulonglong float double".split()
)
def test_vector_types_under_cs_names(name):
    source = f"def kernel(x):\n    v = cuda.{name}3(1, 2, 250)\n    x[0] = v.x + v.y\n    x[1] = v.z\n"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    space = {"cuda": cuda}
    exec(compile(source, name, "exec"), space)
    x = np.zeros(2)
    emulate(space["kernel"], 1, 1, x)
    assert x.tolist() == [3, -6 if name == "char" else 250]
