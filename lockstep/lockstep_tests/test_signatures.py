"""Kernels and device functions with signatures: defined without a GPU, their arguments cast as by Numba."""

import os
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from numba import cuda

import lockstep
from lockstep import ArgumentError, EmulatorError, KernelTypeError, UnsupportedKernel, emulate
from lockstep_tests import processes
from lockstep_tests.corpus import ramp, zeros

ROOT = Path(__file__).parents[1]
if cuda.is_available():
    pytest.skip("with a GPU these kernels are compiled", allow_module_level=True)

import numba  # noqa: E402
from numba import cuda, float32, int32, void  # noqa: E402


@cuda.jit("void(float32[:], float32[:])")
def copied(x, out):
    i = cuda.grid(1)
    out[i] = x[i]


@cuda.jit((float32[:], int32))
def shifted(out, by):
    i = cuda.grid(1)
    out[i] = i + by / 2


@cuda.jit([void(float32[:]), void(int32[:])])
def of_two_types(out):
    out[cuda.grid(1)] = 1


@cuda.jit("float32(float32, int32)", device=True)
def product(a, b):
    return a * b


@cuda.jit(["int32(int32)", "float64(float64)"], device=True)
def doubled(a):
    return a + a


@cuda.jit("int32(int32, int32, int32, int32)", device=True)
def packed(r, g, b, a):
    return ((r & 0xFF) << 16) | ((g & 0xFF) << 8) | ((b & 0xFF) << 0) | ((a & 0xFF) << 24)


@cuda.jit("float32(float32[:], float32[:], int32)", device=True)
def first_and_second(a, b, by):
    return a[0] + b[1] + by


@numba.njit("int64(int64)")
def for_the_cpu(a):
    return a


def test_kernel_with_a_signature():
    out = zeros(8)
    emulate(copied, 1, 8, ramp(8), out)
    assert (out == ramp(8)).all()


@pytest.mark.parametrize(
    "given, sentence",
    [
        (ramp(8).astype(np.float64), "x is float64 with 1 dimension, and the signature says"),
        (ramp(2, 4), "x is float32 with 2 dimensions, and the signature says"),
        (3.0, "x is float, and the signature says"),
    ],
)
def test_wrong_argument(given, sentence):
    out = zeros(8)
    with pytest.raises(ArgumentError, match=sentence):
        emulate(copied, 1, 8, given, out)
    assert (out == 0).all()


def test_numbers_are_cast_to_the_signature():
    out = zeros(4)
    emulate(shifted, 1, 4, out, 2**32 + 3)
    assert out.tolist() == [1.5, 2.5, 3.5, 4.5]


def test_list_of_signatures():
    for dtype in (np.float32, np.int32):
        out = np.zeros(4, dtype)
        emulate(of_two_types, 1, 4, out)
        assert (out == 1).all()
    with pytest.raises(ArgumentError, match="no signature of of_two_types takes"):
        emulate(of_two_types, 1, 4, np.zeros(4))


def test_a_signature_is_chosen_before_an_array_is_copied():
    """An array with gaps fits no signature for C order. That it cannot be copied would be a ValueError."""
    with lockstep.emulated():

        @cuda.jit("void(float32[::1])")
        def kernel(x):
            x[0] = 1

        with pytest.raises(TypeError, match="not C-contiguous"):
            kernel[1, 1](zeros(8)[::2])


def test_arguments_and_results_of_device_functions_are_cast():
    @cuda.jit
    def kernel(x, out):
        out[0] = product(x[0], 2.9)
        out[1] = doubled(x[0])
        out[2] = doubled(np.int32(2**30))
        out[3] = packed(1.0, 2.0, x[3], 4.0)

    x, out = np.array([0.1, 0, 0, 3]), np.zeros(4)
    emulate(kernel, 1, 1, x, out)
    assert out[0] == np.float32(0.1) * np.float32(2)
    assert out[1] == 0.1 + 0.1
    assert out[2] == -(2**31)
    assert out[3] == 0x04010203


def test_device_function_with_arrays_in_its_signature():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        out[i] = first_and_second(x[4 * i : 4 * i + 4], x[i : i + 2], 0.75)

    x, out = ramp(16), zeros(4)
    emulate(kernel, 1, 4, x, out)
    np.testing.assert_array_equal(out, x[::4] + x[1:5])


def test_device_function_with_the_wrong_number_of_arguments():
    @cuda.jit
    def kernel(x, out):
        out[0] = doubled(x)

    with pytest.raises(KernelTypeError, match="no signature of doubled takes these arguments"):
        emulate(kernel, 1, 1, zeros(4), zeros(4))


def test_function_compiled_for_the_cpu_alone_is_refused():
    @cuda.jit
    def kernel(out):
        out[0] = for_the_cpu(3)

    with pytest.raises(UnsupportedKernel, match="it was compiled for the CPU by its signature"):
        emulate(kernel, 1, 1, zeros(4))


def test_without_the_emulator_it_is_still_the_missing_driver():
    from numba.cuda.cudadrv.error import CudaSupportError

    with pytest.raises((CudaSupportError, EmulatorError)):
        copied[1, 8](ramp(8), zeros(8))


PROGRAM = """
{first}
{second}
import numpy as np

with open({file!r}, "w") as kernels:
    kernels.write('''
from numba import cuda

@cuda.jit("void(float32[:])")
def ones(out):
    out[cuda.grid(1)] = 1
''')
import importlib.util
spec = importlib.util.spec_from_file_location("kernels", {file!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
out = np.zeros(4, np.float32)
lockstep.emulate(module.ones, 1, 4, out)
print(out.tolist())
"""


ORDERS = "import lockstep", "from numba import cuda"


@pytest.mark.parametrize("first, second", [ORDERS, ORDERS[::-1]])
def test_imported_before_or_after_numba(first, second, tmp_path):
    program = textwrap.dedent(PROGRAM).format(first=first, second=second, file=str(tmp_path / "kernels.py"))
    done = processes.run([sys.executable, "-c", program], cwd=ROOT)
    assert done.stdout.strip() == "[1.0, 1.0, 1.0, 1.0]", done.stderr


LAUNCHED = """
import lockstep
import numpy as np
from numba import cuda

@cuda.jit
def kernel(out):
    out[0] = 1

kernel[1, 32](np.zeros(1))
"""


def test_a_launch_without_a_gpu_fails_as_numba_has_it(tmp_path):
    (tmp_path / "launched.py").write_text(LAUNCHED)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = processes.run([sys.executable, tmp_path / "launched.py"], env=environment)
    assert done.returncode and "CudaSupportError: " in done.stderr, done.stderr
