"""Indices the compiler knows enough of, and indices it should not know too much of.

Numba lets an index count from the end, as Python does, so every `A[i, j]` carries `if i < 0: i += rows`
unless the compiler can prove that i is not negative. It knows that of an unsigned number, and of a sum
or product of one with non-negative constants. `tid = u32(cuda.threadIdx.x)` is enough: with the test
gone, neighbouring accesses merge into wider ones and registers are saved.

Combine a u32 with Python's integer constants: that is int64. u32 * u32 is uint64, and where a variable is
uint64 on one path and a signed integer on another, Numba makes it float64.

An offset that a loop adds constants to is better `kept`. Of lane % 16 * 64 the compiler knows which bits
are zero, so it writes that plus 1024 as a bitwise or. Memory instructions add a constant to an address for
nothing, but cannot do an or: every such sum then costs an instruction or a register of its own.
"""

import numpy as np
from numba import uint32 as u32

from gemm_course.emulator import emulates
from gemm_course.intrinsics._codegen import intrinsic, ir, types

__all__ = ["kept", "u32"]


@intrinsic
def kept(typing_context, number):
    """The same number, as a uint32 of which the compiler knows nothing any more.

    number: an integer from 0 to 2**32 - 1. PTX `mov.u32`; every compute capability.
    """

    def generate(context, builder, signature, arguments):
        word = context.cast(builder, arguments[0], number, types.uint32)
        move = ir.InlineAsm(ir.FunctionType(word.type, [word.type]), "mov.u32 $0, $1;", "=r,r")
        return builder.call(move, [word])

    return types.uint32(number), generate


@emulates(kept)
def _emulate_kept(machine, number):
    return machine.cast(np.dtype(np.uint32), number)
