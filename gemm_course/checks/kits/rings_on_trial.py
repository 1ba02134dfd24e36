"""Holds the suspects of ``ring_suspects``: four rings of three slots, of which three have a bug."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from numba import cuda, float32

from lockstep.intrinsics import cp_async4, cp_async_commit, cp_async_wait

SLOTS, T = 3, 16


def _ring(*, waits: bool = True, pending: int = 1, meets: bool = True, ahead: int = 2) -> Any:
    """Return a kernel (k, A, B, C) with a ring of tiles.

    waits: whether the loop waits for copies. meets: whether the loop has a barrier. pending: how many groups
    of copies the wait leaves under way. ahead: how far the slot to fill lies after the slot that is read.
    """

    @cuda.jit(device=True)
    def fetch(As, Bs, slot, A, B, row, col, t, k):
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        cp_async4(As, (slot, ty, tx), A, (row, t * T + tx), 4 if t * T < k else 0)
        cp_async4(Bs, (slot, ty, tx), B, (t * T + ty, col), 4 if t * T < k else 0)

    @cuda.jit
    def ring(k, A, B, C):
        As = cuda.shared.array((SLOTS, T, T), float32)
        Bs = cuda.shared.array((SLOTS, T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for t in range(SLOTS - 1):
            fetch(As, Bs, t, A, B, row, col, t, k)
            cp_async_commit()
        for t in range(k // T):
            if waits:
                cp_async_wait(pending)
            if meets:
                cuda.syncthreads()
            fetch(As, Bs, (t + ahead) % SLOTS, A, B, row, col, t + SLOTS - 1, k)
            cp_async_commit()
            for p in range(T):
                acc += As[t % SLOTS, ty, p] * Bs[t % SLOTS, p, tx]
        cp_async_wait(0)
        C[row, col] = acc

    return ring


RINGS: Mapping[str, Any] = MappingProxyType(
    {"W": _ring(ahead=1), "X": _ring(pending=0), "Y": _ring(meets=False), "Z": _ring(waits=False)}
)
BUGS: Mapping[str, str] = MappingProxyType({"W": "slot", "X": "none", "Y": "barrier", "Z": "wait"})
