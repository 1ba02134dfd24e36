"""A kernel that fetches the tiles of its block once and stops: for looking at fetching by itself."""

from collections.abc import Callable

from numba import cuda, float32


def fetch_only(fetch: Callable, BM: int, BN: int, BK: int) -> Callable:
    """Return a kernel (m, n, k, k0, A, B) around the device function ``fetch``.

    fetch(m, n, k, k0, A, B, As, Bs) fills As, (BM, BK), and Bs, (BK, BN), float32 in shared memory, with the
    tiles of A and B that start at column and row ``k0``.
    """

    @cuda.jit
    def fetches(m, n, k, k0, A, B):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        fetch(m, n, k, k0, A, B, As, Bs)
        cuda.syncthreads()

    return fetches
