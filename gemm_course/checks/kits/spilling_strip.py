"""Holds the kernel of ``in_registers`` as handed out: it is right, but `acc` does not stay in registers."""

from numba import cuda, float32


def make_strip(R):
    """Return the kernel y = x A, R columns per thread, whose accumulators do not stay in registers.

    For an H200 and R = 16, numba-cuda 0.30.4 makes 12 loads from local memory and 11 stores of the kernel.
    The compiler still writes out the loops of `count` iterations with R = 9, but not with 12. The repaired
    kernel uses no local memory, and takes 102 registers instead of 38.
    """

    @cuda.jit
    def strip(n, k, x, A, y):
        acc = cuda.local.array(R, float32)
        first = cuda.blockIdx.x * 32 * R + cuda.threadIdx.x
        count = min(R, (n - first + 31) // 32)  # this thread's columns: first, first + 32, ... below n
        for i in range(R):
            acc[i] = 0
        for p in range(k):
            xp = x[p]
            for i in range(count):
                acc[i] += xp * A[p, first + 32 * i]
        for i in range(count):
            y[first + 32 * i] = acc[i]

    return strip
