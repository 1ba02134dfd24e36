"""Indices about which the compiler should know more, and indices about which it should know less.

In Numba, as in Python, a negative index counts from the end, so every `A[i, j]` includes
`if i < 0: i += rows` unless the compiler can prove that i is not negative. It can for an unsigned number, and
for a sum or product of one with non-negative constants. `tid = u32(cuda.threadIdx.x)` is enough: without the
test, neighbouring accesses merge into wider ones and registers are saved.

Combine a u32 with Python's integer constants: that gives int64. u32 * u32 is uint64, and where a variable is
uint64 on one path and a signed integer on another, Numba makes it float64.

An offset to which a loop adds constants is better `kept`. The compiler knows which bits of lane % 16 * 64 are
zero, so it writes that plus 1024 as a bitwise OR. Memory instructions add a constant to an address for free,
but cannot do an OR: every such address then costs an extra instruction or register.
"""

import numpy as np
from numba import uint32 as u32

from lockstep.registry import emulates

from ._codegen import intrinsic, ir, types

__all__ = ["kept", "u32"]


@intrinsic
def kept(typing_context, number):
    """The same number, as a uint32 about which the compiler knows nothing.

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
