"""Compiles kernels as numba-cuda does for a launch, with its own classes, and prints what it loads: JSON.

It believes in a GPU of compute capability 9.0 that is not there. That changes numba-cuda for good, so this is
a process of its own: python -m tests.compiler.numbas_own_way STAGE ...
"""

import json
import sys
from types import SimpleNamespace

import numpy as np
from numba import cuda
from numba.cuda import codegen, dispatcher

from gemm_course import LADDER
from gemm_course.compiler._numba import type_of
from gemm_course.compiler.disassembly import instructions
from gemm_course.compiler.nvidia import disassembled

CAPABILITY, SIZE = (9, 0), 64


@cuda.jit(device=True)
def mixed(x, i):
    return x[i] * x[i + 1] / x[i + 2]


def kernel(x, y, by):
    values = cuda.local.array(64, np.float32)
    for i in range(64):
        values[i] = mixed(x, i)
    for i in range(y.size):
        y[i] = values[(i + by) % 64] + y[i] // 3


@cuda.jit(device=True)
def squared(value):
    return value * value


def reordered(x, y, by):
    """Of which the compiler puts some instructions into another order where it keeps numbers of lines."""
    tile = cuda.shared.array(128, np.float32)
    i = cuda.grid(1)
    tile[cuda.threadIdx.x] = x[i]
    cuda.syncthreads()
    total = np.float32(0)
    for step in range(1000):
        total += squared(tile[(cuda.threadIdx.x + step) % 128]) * by
    y[i] = total


X = np.ones(70, np.float32)
SCALED = (X, X, np.float32(2))
ARGUMENTS = (X, X, 3)
OPTIONS = ({}, {"max_registers": 40}, {"fastmath": True}, {"launch_bounds": (1024, 2)}, {"lto": False})


def opcodes(function, arguments, lto=True, **options) -> list[str]:
    """What a launch would load, instruction by instruction."""
    made = dispatcher._Kernel(function, tuple(map(type_of, arguments)), lto=lto, **options)
    text = disassembled(bytes(made._codelibrary.get_cubin().code))
    return [row.opcode for row in instructions(text, made.entry_name, "", {})]


def main(names: list[str]) -> None:
    """Print {name of a stage, or options: opcodes}."""
    device = SimpleNamespace(compute_capability=CAPABILITY, id=0)
    dispatcher.get_current_device = lambda: device
    codegen.devices.get_context = lambda *_: SimpleNamespace(device=device)
    found = {str(options): opcodes(kernel, ARGUMENTS, **options) for options in OPTIONS}
    found["reordered"] = opcodes(reordered, SCALED)
    found["with lines"] = opcodes(reordered, SCALED, lineinfo=True)
    for stage in map(LADDER.__getitem__, names):
        a, b, c = (np.zeros((SIZE, SIZE), stage.dtype) for _ in range(3))
        arguments = stage.arguments(SIZE, SIZE, SIZE, np.float32(1), a, b, np.float32(0), c)
        function = stage.build(**stage.complete())
        found[stage.name] = opcodes(function, arguments, launch_bounds=stage.launch_bounds())
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
