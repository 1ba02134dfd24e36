"""The first stages of the ladder in plain numba.cuda, which Numba's own simulator runs too.

The simulator supports neither intrinsics nor alignment nor unsigned index types, so these kernels use none.
Run as a program, this module is the simulator's half of a comparison, in a separate process, because the
simulator is selected when numba.cuda is imported:

    NUMBA_ENABLE_CUDASIM=1 python -m lockstep_tests.simulator_twins OUTPUT.npz M N K [TWIN ...]
"""

import sys
import time
from dataclasses import dataclass

import numpy as np
from numba import cuda, float32


@dataclass(frozen=True)
class Twin:
    """A kernel of (m, n, k, alpha, A, B, beta, C) and how to launch it.

    cover: rows and columns of C that a block computes.
    """

    name: str
    kernel: object
    block: tuple[int, ...]
    cover: tuple[int, int]
    rows_first: bool = False

    def grid(self, m, n):
        """Blocks along x and y."""
        down, across = -(-m // self.cover[0]), -(-n // self.cover[1])
        return (down, across) if self.rows_first else (across, down)


def naive(tile):
    """One thread per element; neighbouring threads take neighbouring rows."""

    @cuda.jit
    def naive(m, n, k, alpha, A, B, beta, C):
        row, col = cuda.grid(2)
        if row < m and col < n:
            acc = float32(0)
            p = 0
            while p < k:
                acc += A[row, p] * B[p, col]
                p += 1
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return Twin("naive", naive, (tile, tile), (tile, tile), rows_first=True)


def coalesced(tile):
    """One thread per element; neighbouring threads take neighbouring columns."""

    @cuda.jit
    def coalesced(m, n, k, alpha, A, B, beta, C):
        col, row = cuda.grid(2)
        if row < m and col < n:
            acc = float32(0)
            p = 0
            while p < k:
                acc += A[row, p] * B[p, col]
                p += 1
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return Twin("coalesced", coalesced, (tile, tile), (tile, tile))


def block_tiled(tile):
    """Tiles of A and B in shared memory."""

    @cuda.jit
    def block_tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((tile, tile), float32)
        Bs = cuda.shared.array((tile, tile), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        k0 = 0
        while k0 < k:
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(tile):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
            k0 += tile
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return Twin("block_tiled", block_tiled, (tile, tile), (tile, tile))


def thread_tiled_1d(BM, BN, BK, TM):
    """Each thread computes TM rows of one column."""
    threads = BM * BN // TM

    @cuda.jit
    def thread_tiled_1d(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = float32(0)
        tid = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        y0, x0 = tid // BN * TM, tid % BN
        k0 = 0
        while k0 < k:
            for s in range(tid, BM * BK, threads):
                r, c = s // BK, s % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for s in range(tid, BK * BN, threads):
                r, c = s // BN, s % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, x0]
                for i in range(TM):
                    acc[i] += As[y0 + i, p] * b
            cuda.syncthreads()
            k0 += BK
        col = col0 + x0
        for i in range(TM):
            row = row0 + y0 + i
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return Twin("thread_tiled_1d", thread_tiled_1d, (threads,), (BM, BN))


def thread_tiled_2d(BM, BN, BK, TM, TN):
    """Each thread computes TM by TN elements."""
    threads = BM * BN // (TM * TN)

    @cuda.jit
    def thread_tiled_2d(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = float32(0)
        tid = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        y0, x0 = tid // (BN // TN) * TM, tid % (BN // TN) * TN
        k0 = 0
        while k0 < k:
            for s in range(tid, BM * BK, threads):
                r, c = s // BK, s % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for s in range(tid, BK * BN, threads):
                r, c = s // BN, s % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                for i in range(TM):
                    a[i] = As[y0 + i, p]
                for j in range(TN):
                    b[j] = Bs[p, x0 + j]
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
            k0 += BK
        for i in range(TM):
            for j in range(TN):
                row, col = row0 + y0 + i, col0 + x0 + j
                if row < m and col < n:
                    C[row, col] = alpha * acc[i, j] + beta * C[row, col] if beta != 0 else alpha * acc[i, j]

    return Twin("thread_tiled_2d", thread_tiled_2d, (threads,), (BM, BN))


def small_twins():
    """Tiles small enough for the simulator, which starts an operating-system thread per GPU thread."""
    return [
        naive(8),
        coalesced(8),
        block_tiled(8),
        thread_tiled_1d(16, 8, 4, 4),
        thread_tiled_2d(16, 16, 4, 4, 2),
    ]


def full_twins():
    """The tiles of the course."""
    return [
        naive(32),
        coalesced(32),
        block_tiled(32),
        thread_tiled_1d(64, 64, 8, 8),
        thread_tiled_2d(128, 128, 16, 8, 8),
    ]


def arguments(m, n, k, beta=0.5):
    """(m, n, k, alpha, A, B, beta, C) with reproducible random matrices."""
    random = np.random.default_rng(m + 1000 * n + k)
    A, B, C = (random.standard_normal(shape, np.float32) for shape in ((m, k), (k, n), (m, n)))
    return m, n, k, np.float32(1.5), A, B, np.float32(beta), C


def simulate(twins, m, n, k):
    """{name: C}, {name: seconds} of each twin in the simulator."""
    results, seconds = {}, {}
    for twin in twins:
        given = arguments(m, n, k)
        start = time.perf_counter()
        twin.kernel[twin.grid(m, n), twin.block](*given)
        seconds[twin.name] = time.perf_counter() - start
        results[twin.name] = given[-1]
    return results, seconds


def main(output, m, n, k, *names):
    """Run the small twins, or the named ones of the course, and save the results."""
    size = int(m), int(n), int(k)
    twins = [twin for twin in full_twins() if twin.name in names] if names else small_twins()
    results, seconds = simulate(twins, *size)
    np.savez(output, **results, **{f"seconds_{name}": value for name, value in seconds.items()})


if __name__ == "__main__":
    main(*sys.argv[1:])
