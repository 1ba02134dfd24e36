"""Tells the compiler more about some indices (`u32`), and hides from it what it knows of others (`kept`).

In Numba, as in Python, a negative index counts from the end. So every `A[i, j]` includes
`if i < 0: i += rows` unless the compiler can prove that i is not negative. It can prove it for an unsigned
number, and for a sum or product of an unsigned number and non-negative constants. So
`tid = u32(cuda.threadIdx.x)` is enough. Without the test, neighbouring accesses merge into wider ones and the
kernel needs fewer registers.

Combine a u32 with Python's integer constants, which gives int64. u32 * u32 gives uint64, and where a variable
is uint64 on one path and a signed integer on another, Numba makes it float64.

An offset to which a loop adds constants should be `kept`. The compiler knows which bits of lane % 16 * 64 are
zero, so it writes lane % 16 * 64 + 1024 as a bitwise OR. Memory instructions add a constant to an address for
free, but cannot do an OR. Every such address then costs an extra instruction or register.
"""

import numpy as np
from numba import uint32 as u32

from lockstep.registry import emulates

from ._codegen import intrinsic, ir, types

__all__ = ["kept", "u32"]


@intrinsic
def kept(typing_context, number):
    """Return the same number, as a uint32 about which the compiler knows nothing.

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
