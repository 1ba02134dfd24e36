"""Exercise 06.5: the read outside C that document 004's v05 makes before its guard."""

from functools import cache

import numpy as np
from numba import cuda, float32

from gemm_course.emulator import Finding, emulate
from gemm_course.intrinsics import load4, store4, u32, unroll

from .exercise import Refused, nothing_yet

TILE, DEPTH, EACH = 32, 8, 4  # BM = BN, BK, TM = TN: small, and no different from 128, 16, 8
LEADING = 16  # floats; document 004 pads every row to a multiple of 64 bytes
LARGEST = 4 * TILE
OPS = {"load": "load", "read": "load", "store": "store", "write": "store"}


def document_v05(BM=TILE, BN=TILE, BK=DEPTH, TM=EACH, TN=EACH):
    """v05 as in document 004: A transposed without padding, C read before the guard, fours stored whole."""
    THREADS = BM * BN // (TM * TN)
    A_ROWS, B_ROWS = THREADS // (BK // 4), THREADS // (BN // 4)

    @cuda.jit
    def gemm_v05(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BK, BM), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        for i in unroll(range(TM)):
            for j in unroll(range(TN)):
                acc[i, j] = 0
        zeros = (float32(0), float32(0), float32(0), float32(0))
        tid = u32(cuda.threadIdx.x)
        row0, col0 = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        y0, x0 = tid // (BN // TN) * TM, tid % (BN // TN) * TN
        k0 = 0
        while k0 < k:
            for i in unroll(range(0, BM, A_ROWS)):
                r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
                v = load4(A, (row0 + r, k0 + c)) if row0 + r < m and k0 + c < k else zeros
                for e in unroll(range(4)):
                    As[c + e, r] = v[e] if k0 + c + e < k else float32(0)
            for i in unroll(range(0, BK, B_ROWS)):
                r, c = i + tid // (BN // 4), tid % (BN // 4) * 4
                store4(Bs, (r, c), load4(B, (k0 + r, col0 + c)) if k0 + r < k and col0 + c < n else zeros)
            cuda.syncthreads()
            for p in unroll(range(BK)):
                for i in unroll(range(TM)):
                    a[i] = As[p, y0 + i]
                for j in unroll(range(TN)):
                    b[j] = Bs[p, x0 + j]
                for i in unroll(range(TM)):
                    for j in unroll(range(TN)):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
            k0 += BK
        for i in unroll(range(TM)):
            row = row0 + y0 + i
            for j in unroll(range(0, TN, 4)):
                col = col0 + x0 + j
                old = load4(C, (row, col))
                c0 = alpha * acc[i, j] + beta * old[0]
                c1 = alpha * acc[i, j + 1] + beta * old[1]
                c2 = alpha * acc[i, j + 2] + beta * old[2]
                c3 = alpha * acc[i, j + 3] + beta * old[3]
                if row < m and col < n:
                    store4(C, (row, col), (c0, c1, c2, c3))

    return gemm_v05


def prove_stray_read(access, shape) -> str:
    """What was proved of the access (array, op) and the shape (m, n); raises Refused otherwise."""
    if _blank(access) and _blank(shape):
        raise nothing_yet()
    _check_access(access)
    m, n = _shape(shape)
    found = strays(m, n)
    if found is None:
        raise Refused(f"For m = {m} and n = {n} nothing lies outside: {_why_none(m, n)}")
    if (m, n) != smallest():
        raise Refused(
            f"`({m}, {n})` does show it, but m · n = {m * n} is not the least: the read is not guarded at "
            "all, whatever m and n are. " + _about(m, n),
            f"The emulator: {found.message}",
        )
    return (
        f"Even C of 1 × 1 shows it: {found.count} times a thread reads outside C, and throws away what it "
        "got. No result is ever wrong. It goes well until the memory behind C belongs to nobody."
    )


def _why_none(m: int, n: int) -> str:
    if n % TILE:
        return (
            "the reads to the right of C stay in the padding behind its rows, which are "
            f"{_length(n)} floats long, multiples of 64 bytes. And below C there is nothing to read."
        )
    return (
        f"both are multiples of the block's tile of {TILE} × {TILE}, every thread has its elements of C. So "
        "no test with such sizes finds it."
    )


def _blank(value) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_blank, value))
    return value is None or value is Ellipsis


def _check_access(access) -> None:
    if not (
        isinstance(access, (tuple, list)) and len(access) == 2 and all(isinstance(a, str) for a in access)
    ):
        raise Refused(
            'Which access is it? Write the array and what is done to it, such as `("A", "load")`; this is '
            f"`{access!r}`."
        )
    array, op = access[0].strip(), OPS.get(access[1].strip().lower())
    if op is None:
        raise Refused(f'An access is a `"load"` or a `"store"`; this is `{access[1]!r}`.')
    if (array, op) == ("C", "load"):
        return
    if (array, op) == ("C", "store"):
        raise Refused(
            "The store of C stands inside the guard, and the emulator finds none outside C. It may write "
            "into the padding behind a row, which is still C's. Look at what is done before the guard."
        )
    if array in ("A", "B"):
        raise Refused(
            f"The loads of {array} are guarded: `... if ... else zeros` evaluates only one of the two. The "
            "emulator finds none outside."
        )
    if array in ("As", "Bs"):
        raise Refused(f"{array} is in shared memory and just large enough; nothing outside it is touched.")
    raise Refused(f"There is no array `{array}` in this kernel; it has A, B, C, As and Bs.")


def _shape(shape) -> tuple[int, int]:
    if _blank(shape):
        raise Refused("The access is the right one. And the smallest `shape=(m, n)` that shows it?")
    if isinstance(shape, (tuple, list)) and len(shape) == 3:
        raise Refused(
            "Two numbers, `(m, n)`: k has nothing to do with it. C is read after the loop along k, however "
            "often that turns."
        )
    whole = isinstance(shape, (tuple, list)) and len(shape) == 2
    if not whole or not all(
        isinstance(size, (int, np.integer)) and not isinstance(size, bool) for size in shape
    ):
        raise Refused(f"A shape is two whole numbers, `(m, n)`; this is `{shape!r}`.")
    m, n = map(int, shape)
    if min(m, n) < 1:
        raise Refused("m and n are at least 1: without elements of C there is no block that could read.")
    if max(m, n) > LARGEST:
        raise Refused(f"`({m}, {n})` is far larger than needed; stay below {LARGEST}.")
    return m, n


def _about(m: int, n: int) -> str:
    if m % TILE == 0:
        return "You leave C to the right. How few columns can there be, and do you need all these rows?"
    if n % TILE == 0:
        return "You leave C at the bottom. How few rows can there be, and do you need all these columns?"
    return "Go on shrinking: which m and n would *not* show it?"


def _length(columns: int) -> int:
    """Floats in a row of so many columns, as document 004 pads it."""
    return -(-columns // LEADING) * LEADING


@cache
def strays(m: int, n: int) -> Finding | None:
    """The first access outside C for this shape, or None."""
    rows = {"A": (m, DEPTH), "B": (DEPTH, n), "C": (m, n)}
    A, B, C = (np.zeros((r, _length(c)), np.float32) for r, c in rows.values())
    grid, threads = (-(-n // TILE), -(-m // TILE)), TILE * TILE // EACH**2
    one, zero = np.float32(1), np.float32(0)
    report = emulate(document_v05(), grid, threads, m, n, DEPTH, one, A, B, zero, C)
    return next((f for f in report.errors if f.kind == "out_of_bounds" and f.array == "C"), None)


@cache
def smallest() -> tuple[int, int]:
    """(m, n) with the smallest m * n that shows the stray read, by trying all from the smallest on."""
    shapes = sorted(((m, n) for m in range(1, TILE) for n in range(1, TILE)), key=lambda s: s[0] * s[1])
    return next(shape for shape in shapes if strays(*shape) is not None)
