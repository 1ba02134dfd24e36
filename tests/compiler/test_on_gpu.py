"""What is compiled without a GPU is what a launch on one loads: registers, memory, opcodes."""

from collections import Counter

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course import LADDER, compiled
from gemm_course.compiler.disassembly import instructions
from gemm_course.compiler.limits import why_not
from gemm_course.compiler.nvidia import disassembled
from gemm_course.device import compile_for, gpu_facts, on_device, why_too_old

pytestmark = [pytest.mark.gpu, pytest.mark.compiler]

SIZE = 256


def loaded(kernel, arguments):
    """What the driver says of a kernel, and the opcodes that it was given, in order."""
    on_gpu = on_device(arguments)
    used = compile_for(kernel, on_gpu)
    types = tuple(kernel.typeof_pyval(argument) for argument in on_gpu)
    cubin = kernel.overloads[types]._codelibrary.get_cubin()
    text = disassembled(bytes(cubin.code))
    return used, [row.opcode for row in instructions(text, kernel.overloads[types].entry_name, "", {})]


def agree(kernel, arguments, found):
    used, opcodes = loaded(kernel, arguments)
    assert (used.registers, used.local_bytes) == (found.registers, found.local_bytes)
    assert used.static_shared_bytes == found.static_shared_bytes
    ours = list(found.instructions["opcode"])
    assert Counter(opcodes) == Counter(ours)
    assert opcodes == ours


@pytest.mark.parametrize("stage", LADDER, ids=lambda stage: stage.name)
def test_a_stage_is_loaded_as_it_was_compiled(stage):
    capability = gpu_facts().compute_capability
    if reason := why_too_old(stage.name, stage.compute_capability) or why_not(stage, None, capability):
        pytest.skip(reason)
    a, b, c = (np.zeros((SIZE, SIZE), stage.dtype) for _ in range(3))
    arguments = stage.arguments(SIZE, SIZE, SIZE, np.float32(1), a, b, np.float32(0), c)
    agree(stage.kernel(), arguments, compiled(stage, compute_capability=capability))


@pytest.mark.parametrize(
    "options", [{}, {"max_registers": 40}, {"fastmath": True}, {"launch_bounds": (1024, 2)}]
)
def test_a_kernel_of_ones_own_is_loaded_as_it_was_compiled(options):
    @cuda.jit(device=True)
    def mixed(x, i):
        return x[i] * x[i + 1] / x[i + 2]

    @cuda.jit(**options)
    def kernel(x, y, by):
        values = cuda.local.array(64, float32)
        for i in range(64):
            values[i] = mixed(x, i)
        for i in range(y.size):
            y[i] = values[(i + by) % 64] + y[i] // 3

    x = np.ones(70, np.float32)
    found = compiled(kernel, x, x, 3, compute_capability=gpu_facts().compute_capability)
    agree(kernel, (x, x, 3), found)


def test_compiling_for_another_gpu_changes_nothing_for_this_one():
    @cuda.jit(device=True)
    def twice(x):
        return 2 * x

    @cuda.jit
    def kernel(x):
        x[cuda.threadIdx.x] = twice(x[cuda.threadIdx.x])

    x = np.ones(32, np.float32)
    compiled(kernel, x, compute_capability=(7, 5))
    on_gpu = cuda.to_device(x)
    kernel[1, 32](on_gpu)
    compiled(kernel, x, compute_capability=(12, 0))
    kernel[1, 32](on_gpu)
    assert (on_gpu.copy_to_host() == 4).all()
