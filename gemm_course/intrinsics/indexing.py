"""Indices the compiler knows to be non-negative.

Numba lets an index count from the end, as Python does, so every `A[i, j]` carries `if i < 0: i += rows`
unless the compiler can prove that i is not negative. It knows that of an unsigned number, and of a sum
or product of one with non-negative constants. `tid = u32(cuda.threadIdx.x)` is enough: with the test
gone, neighbouring accesses merge into wider ones and registers are saved.

Combine a u32 with Python's integer constants: that is int64. u32 * u32 is uint64, and where a variable is
uint64 on one path and a signed integer on another, Numba makes it float64.
"""

from numba import uint32 as u32

__all__ = ["u32"]
