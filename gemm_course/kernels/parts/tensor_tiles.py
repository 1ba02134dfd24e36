"""Holds what the Hopper kernels share: the order of tiles, the ring, stores at the edge, rules for tiles."""

from numba import cuda, float32
from numba.types import float16

from lockstep.intrinsics import store2, tensor_map, u32
from lockstep.limits import MAX_SHARED_BYTES, REGISTERS_PER_SM

PANEL = 64  # columns of B that one swizzled row of 128 bytes holds
SHARED_BYTES = MAX_SHARED_BYTES - 1024  # per block, less what barriers and the tiles' alignment take
PRODUCER_REGISTERS = 56
CONSUMER_REGISTERS = {2: 224, 3: 152}  # by the number of consumers; no more than the producer gives back


# ---- device functions ----


@cuda.jit(device=True)
def grouped(tile, tile_rows, tile_cols, group_rows):
    """Return (row, column) of tile number `tile`. Numbers go down the columns of groups of `group_rows` rows.

    Tiles with neighbouring numbers are computed at the same time; down the columns they need few different
    tiles of A and of B, and find them in the L2 cache. Triton's tutorials call it grouped ordering, CUTLASS
    threadblock swizzle, or rasterization.
    """
    whole = u32(group_rows * tile_cols)
    first, rest = u32(tile // whole * group_rows), u32(tile % whole)
    height = min(u32(group_rows), u32(tile_rows - first))  # the last group may have fewer rows
    return u32(first + rest % height), u32(rest // height)


@cuda.jit(device=True)
def warpgroup_of(tid):
    """Return the number of a thread's warpgroup, taken from its warp's first lane.

    So the compiler knows that the warp has one number. The place of a tile that depends on it is then
    computed once per warp, in the uniform registers from which wgmma takes it, not per thread and copied.
    """
    return u32(cuda.shfl_sync(0xFFFFFFFF, tid // 128, 0))


@cuda.jit(device=True)
def next_slot(slot, parity, slots):
    """Return the next slot of a ring, and its parity, which changes when the first slot follows the last."""
    last = slot == slots - 1
    return (u32(0), u32(parity ^ 1)) if last else (u32(slot + 1), parity)


@cuda.jit(device=True)
def old(C, row, col, m, n):
    """Return C[row, col] as float32, or 0 out of bounds."""
    if row < m and col < n:
        return float32(C[row, col])
    return float32(0)


@cuda.jit(device=True)
def store_pair(C, row, col, m, n, alpha, beta, first, second):
    """Store alpha * (first, second) + beta * C in C[row, col] and its right neighbour, where in bounds."""
    if row < m and col < n:
        first, second = alpha * first, alpha * second
        if beta != 0:
            first += beta * old(C, row, col, m, n)
            second += beta * old(C, row, col + 1, m, n)
        if col + 1 < n:
            store2(C, (row, col), (first, second))
        else:
            C[row, col] = float16(first)


@cuda.jit(device=True)
def store_edge(C, row, m, n, Cs, w, piece, rows, chunk, lane):
    """Store C's columns past the last multiple of 8, in `rows` rows from `row` on, from a swizzled piece.

    TMA, which stores 16 bytes or nothing, leaves them out. chunk: which 16 bytes of Cs[w, piece]'s rows.
    """
    y = lane
    while y < rows and row + y < m:
        z = u32(n // 8 * 8)
        while z < n:
            C[u32(row + y), z] = Cs[w, piece, y, u32((chunk ^ y % 8) * 8 + z % 8)]
            z = u32(z + 1)
        y = u32(y + 32)


# ---- tiles and launch ----


def fits_wgmma(t):
    """Yield the rules for tiles that TMA can fetch and wgmma can multiply, and for a ring of them."""
    yield t.BM % 64 == 0 and t.BM <= 256, f"BM ({t.BM}) must be a multiple of 64 up to 256, a TMA box"
    yield t.BN % PANEL == 0 and t.BN <= 256, f"BN ({t.BN}) must be a multiple of {PANEL} up to 256, for wgmma"
    yield t.BK in (16, 32, 64), f"a swizzle permutes rows of 16, 32 or 64 elements: BK must not be {t.BK}"
    yield (
        t.WM in (64, 128),
        f"a warpgroup multiplies 64 rows once or twice: WM must be 64 or 128, not {t.WM}",
    )
    yield t.BM % t.WM == 0, f"BM ({t.BM}) must be a multiple of WM ({t.WM}): whole warpgroups"
    yield t.SLOTS >= 2, f"one slot is read while another is filled: SLOTS must be at least 2, not {t.SLOTS}"


def fits_accumulators(t, most: int, rounded: bool = False):
    """Yield the rule that a thread's accumulators, and what it needs beside them, fit in `most` registers.

    rounded: the thread also holds them rounded to FP16, two per register.
    """
    accumulators = -(-t.WM // 64) * t.BN // 2
    needed = accumulators + (accumulators // 2 if rounded else 0) + 24
    yield (
        needed <= most,
        f"{t.WM} by {t.BN} accumulators per warpgroup and what is needed beside them take {needed} registers "
        f"per thread; the maximum is {most}",
    )


def fits_consumers(t, rounded: bool = False):
    """Yield the rules that two or three warpgroups multiply, and that their accumulators fit in registers.

    rounded: as in `fits_accumulators`.
    """
    consumers = t.BM // t.WM
    yield (
        consumers in CONSUMER_REGISTERS,
        f"two or three warpgroups multiply: BM / WM ({t.BM} / {t.WM}) must be 2 or 3",
    )
    yield from fits_accumulators(t, registers_of_consumers(consumers), rounded)


def registers_of_consumers(consumers: int) -> int:
    """Return how many registers per thread the rules may count on, with two or three consumers.

    With two, these are all that setmaxnreg gives: 192 accumulators compile into 216 registers, though a
    thread starts with 168 (65,536 / 384). With three a thread starts with 128 (65,536 / 512), and the
    compiler refuses a kernel with 128 accumulators: they must fit in what a thread has at the start.
    """
    return REGISTERS_PER_SM // 512 if consumers == 3 else CONSUMER_REGISTERS[2]


def fits_shared(needed: int):
    """Yield the rule that the block's tiles, `needed` bytes, fit in shared memory."""
    yield (
        needed <= SHARED_BYTES,
        f"the tiles take {needed} bytes of shared memory; the maximum is {SHARED_BYTES}",
    )


def ring_bytes(t) -> int:
    """Return the bytes of shared memory that SLOTS tiles of A and of B take."""
    return t.SLOTS * (t.BM * t.BK + t.BK * t.BN) * 2


def maps(t, m, n, k, alpha, A, B, beta, C) -> tuple:
    """Return a launch's arguments: A and B are tensor maps, whose boxes are a tile of A and a panel of B."""
    a, b = tensor_map(A, (m, k), (t.BM, t.BK)), tensor_map(B, (k, n), (t.BK, PANEL))
    return m, n, k, alpha, a, b, beta, C
