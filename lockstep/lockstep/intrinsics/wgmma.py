"""Provides wgmma, by which a warpgroup (four warps) multiplies tiles from shared memory, asynchronously.

One instruction computes D += A B for D of 64 by N, A of 64 by 16, B of 16 by N. A and B stay in shared
memory, in float16. Only D, in float32, is in registers, N / 2 of them in each of the 128 threads. The warps
queue products, commit them in groups, and wait for groups later. Until then they must not access the
accumulators or overwrite the tiles.

`acc`, a local array of N / 2 float32, holds D in this layout; warps are numbered within the warpgroup:

| | |
|---|---|
| row | warp * 16 + lane // 4 + e // 2 % 2 * 8 |
| column | e // 4 * 8 + lane % 4 * 2 + e % 2 |

So a thread has pairs of neighbours in two rows of every 16 by 8 part. The tiles have the layout that
`tma_load` produces:

| tile | array in shared memory | one row |
|---|---|---|
| A | (..., rows, 16, 32 or 64): rows along m, elements along k | 32, 64 or 128 bytes, swizzled |
| B | (..., panels, k, 16, 32 or 64): rows along k, elements along n; panels side by side along n | the same |

*Descriptors* of 64 bits tell the hardware where a tile is: its address, the distances between its 8-row
pieces and between its panels, and the swizzle. This module makes them from the arrays' strides.

Compute capability 9.0a: Hopper only, no later generation.
"""

import numpy as np

from lockstep.counts.counting import matrix_wavefronts
from lockstep.counts.tally import MovedKey
from lockstep.errors import KernelTypeError
from lockstep.library import warps
from lockstep.registry import emulates
from lockstep.waiting.tensor_copies import swizzled

from ._codegen import (
    TypingError,
    intrinsic,
    ir,
    pack,
    ptx_results,
    read_registers,
    types,
    unpack,
    write_registers,
)
from ._hopper import literal, no_operands, require_hopper, shared_operand

__all__ = [
    "registers_down",
    "registers_up",
    "wgmma",
    "wgmma_commit",
    "wgmma_fence",
    "wgmma_wait",
]

# One instruction has m = ROWS, k = DEPTH, and n up to LARGEST.
ROWS, DEPTH, LARGEST = 64, 16, 256
# The fields of a descriptor count in units of 16 bytes.
UNIT = 16
# A warp has 32 threads, and a warpgroup has four warps.
WARP, WARPGROUP = 32, 128
# setmaxnreg accepts these numbers of registers per thread.
REGISTER_STEPS = range(24, 257, 8)

_FLOAT, _LONG, _WORD = ir.FloatType(), ir.IntType(64), ir.IntType(32)


def _descriptor(context, builder, kind, tile, index_type, index, panels):
    """Return the descriptor of an operand.

    It holds the address, the distance of panels and of 8 rows, each in units of 16 bytes, and the swizzle.
    panels: whether the operand may be longer than a row of the tile, and so continue in the next panel.

    The index is added, in units of 16 bytes, to the finished descriptor of the array's start. A loop over
    slots then costs one multiply-add per operand. If the index changed the address first, it would cost one
    multiply-add, and four instructions more to fit the address into the descriptor.
    """
    strides = unpack(builder, context.make_array(kind)(context, builder, value=tile).strides, kind.ndim)
    row = strides[-2]
    panel = strides[-3] if panels else _LONG(UNIT)
    # The swizzle's code is 1, 2, 3 for rows of 128, 64, 32 bytes.
    by_128, by_64 = (builder.icmp_signed("==", row, _LONG(size)) for size in (128, 64))
    swizzle = builder.select(by_128, _LONG(1), builder.select(by_64, _LONG(2), _LONG(3)))
    zeros = pack(builder, [_LONG(0)] * kind.ndim)
    start = shared_operand(context, builder, kind, tile, types.UniTuple(types.intp, kind.ndim), zeros)
    fields = ((builder.zext(start, _LONG), 0), (panel, 16), (builder.mul(row, _LONG(8)), 32))
    word = builder.shl(swizzle, _LONG(62))
    for length, position in fields:
        word = builder.or_(word, builder.shl(builder.udiv(length, _LONG(UNIT)), _LONG(position)))
    kinds = list(index_type)
    *leading, last = (
        context.cast(builder, value, of, types.uint32)
        for value, of in zip(unpack(builder, index, kind.ndim), kinds, strict=True)
    )
    # A unit holds eight FP16 values.
    offset = builder.lshr(last, _WORD(3))
    for value, stride in zip(leading, strides[:-1], strict=True):
        units = builder.trunc(builder.udiv(stride, _LONG(UNIT)), _WORD)
        offset = builder.add(offset, builder.mul(value, units))
    # Addresses are below 2**18 bytes, so this sum carries nothing into the field of the panels.
    low = builder.add(builder.trunc(word, _WORD), offset)
    high = builder.and_(word, _LONG(0xFFFFFFFF << 32))
    return builder.or_(high, builder.zext(low, _LONG))


def _is_tile(kind) -> bool:
    return isinstance(kind, types.Array) and kind.dtype == types.float16 and kind.ndim >= 3


def _instruction(n: int) -> str:
    """Return the PTX for n columns.

    Operands 0 to n/2 - 1 are the new accumulators, the next n/2 the old ones, and two descriptors follow.
    """
    acc = ",".join(f"${i}" for i in range(n // 2))
    a_as_stored, b_across = 0, 1  # B's rows run along n, so the instruction transposes B.
    return (
        f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16 "
        f"{{{acc}}}, ${n}, ${n + 1}, 1, 1, 1, {a_as_stored}, {b_across};"
    )


@intrinsic
def wgmma(typing_context, n, acc, a, a_index, b, b_index):
    """Queue acc += A B, where A is 64 by 16 elements of `a` from a_index on, B 16 by n of `b` from b_index.

    n: a compile-time constant, a multiple of 8 up to 256. acc: a local array of n / 2 float32, in the layout
    of the module's first table. a, b: tiles in shared memory, float16, at least three dimensions, rows of 16,
    32 or 64 elements. a_index: the element at A's corner; its row is a multiple of 8. b_index: the element at
    B's corner, in the first of its panels. All 128 threads of a warpgroup must execute it together. PTX
    `wgmma.mma_async`; compute capability 9.0a.
    """
    count = literal(n)
    if count is None or not (_is_tile(a) and _is_tile(b)) or acc.dtype != types.float32:
        return None
    if count % 8 or not 8 <= count <= LARGEST:
        raise TypingError(f"wgmma computes 8 to {LARGEST} columns, a multiple of 8, not {count}")

    def generate(context, builder, signature, arguments):
        require_hopper("wgmma")
        kinds = signature.args
        registers = (context, builder, kinds[1], arguments[1])
        descriptors = [
            _descriptor(context, builder, kinds[i], arguments[i], kinds[i + 1], arguments[i + 1], panels)
            for i, panels in ((2, False), (4, True))
        ]
        operands = read_registers(*registers, count // 2, _FLOAT) + descriptors
        tied = [str(i) for i in range(count // 2)]
        constraints = ",".join(["=f"] * len(tied) + tied + ["l", "l"])
        write_registers(
            *registers,
            ptx_results(builder, _instruction(count), constraints, operands, (_FLOAT, count // 2)),
        )
        return context.get_dummy_value()

    return types.void(n, acc, a, a_index, b, b_index), generate


@intrinsic
def wgmma_fence(typing_context):
    """Order this warp's own accesses to the accumulators before the products that it queues next.

    A kernel needs it before the first `wgmma`, and whenever it has accessed the accumulators itself. PTX
    `wgmma.fence.sync.aligned`; compute capability 9.0a.
    """
    return types.void(), no_operands("wgmma.fence.sync.aligned;", "wgmma_fence")


@intrinsic
def wgmma_commit(typing_context):
    """Commit the products queued since the last commit as one group.

    PTX `wgmma.commit_group.sync.aligned`; compute capability 9.0a.
    """
    return types.void(), no_operands("wgmma.commit_group.sync.aligned;", "wgmma_commit")


@intrinsic
def wgmma_wait(typing_context, pending):
    """Wait until at most `pending` of the newest groups are unfinished; 0 waits for all.

    pending: a compile-time constant. The tiles of the finished groups may be filled again. The
    accumulators may be used after a wait for 0. PTX `wgmma.wait_group.sync.aligned`; compute capability 9.0a.
    """
    if literal(pending) is None:
        return None
    return types.void(pending), no_operands(
        f"wgmma.wait_group.sync.aligned {literal(pending)};", "wgmma_wait"
    )


def _set_registers(name, instruction):
    def typing(typing_context, count):
        number = literal(count)
        if number is None:
            return None
        if number not in REGISTER_STEPS:
            raise TypingError(f"a warp can have 24, 32, ... 256 registers per thread, not {number}")
        return types.void(count), no_operands(f"{instruction}.sync.aligned.u32 {number};", name)

    return typing


@intrinsic
def registers_down(typing_context, count):
    """Release registers until each thread of this warpgroup has `count`, for other warpgroups to take.

    count: a compile-time constant, a multiple of 8 from 24 on. All four warps call it. PTX `setmaxnreg.dec`;
    compute capability 9.0a.
    """
    return _set_registers("registers_down", "setmaxnreg.dec")(typing_context, count)


@intrinsic
def registers_up(typing_context, count):
    """Take registers, once they are free, until each thread of this warpgroup has `count`.

    count: a compile-time constant, a multiple of 8 up to 256. All four warps call it. PTX `setmaxnreg.inc`;
    compute capability 9.0a.
    """
    return _set_registers("registers_up", "setmaxnreg.inc")(typing_context, count)


# ---- on the emulator ----


class _Tile:
    """The part of a shared array that is one operand of one instruction, in the running warp or block.

    rows: the operand's number of rows. places: for each of its columns, the distance in elements from the
    start of the same row in the operand's first panel.
    """

    def __init__(self, machine, array, index, rows: int, width: int):
        warps.require_shared("wgmma", array, "float16")
        self.array, self.site = array, machine.site
        self.index = tuple(int(machine.active_values(part)[0]) for part in index)
        self.rows, self.row_bytes = rows, array.shape[-1] * 2
        column = self.index[-1] + np.arange(width, dtype=np.int64)
        self.places = column // array.shape[-1] * array.strides[-3] + column % array.shape[-1]
        self.first = array.offset + sum(
            i * step for i, step in zip(self.index[:-1], array.strides[:-1], strict=True)
        )

    def problem(self) -> tuple[str, str] | None:
        """Return the kind and the message of a finding if the operand cannot be there, else None."""
        *_, row, column = self.index
        panels, length = self.array.shape[-3:-2] and self.array.shape[-3], self.array.shape[-1]
        name = f"{self.array.name}[{', '.join(map(str, self.index))}]"
        if self.row_bytes not in (32, 64, 128):
            return (
                "misaligned_access",
                f"wgmma reads rows of 32, 64 or 128 bytes; those at {name} have {self.row_bytes}.",
            )
        last = (self.index[-3] + (column + len(self.places) - 1) // length, row + self.rows - 1)
        if min(self.index) < 0 or last[0] >= panels or last[1] >= self.array.shape[-2]:
            return (
                "out_of_bounds",
                f"wgmma reads {self.rows} by {len(self.places)} elements from {name} on, but not all exist.",
            )
        eight = 8 * self.row_bytes
        if self.first * 2 % eight or self.array.storage.alignment % eight:
            return (
                "misaligned_access",
                f"The eight rows from {name} on must start at a multiple of {eight} bytes, for the swizzle.",
            )
        return None

    def cells(self, first_row: int = 0, rows: int | None = None) -> np.ndarray:
        """Return the operand's positions in the array's storage, in elements, (rows, columns), swizzled."""
        line = np.arange(first_row, first_row + (rows or self.rows), dtype=np.int64) * self.array.strides[-2]
        return swizzled((self.first + line[:, None] + self.places) * 2, self.row_bytes) // 2

    def count(self, machine, requests: int, rows: int):
        """Count `requests` reads of `rows` rows, as reads of 8 by 8 matrices.

        A matrix takes one wavefront if no two of its rows share a bank.
        """
        columns = self.cells(0, rows)[:, ::8] * 2
        wavefronts = matrix_wavefronts(columns.T.reshape(-1, 8))
        matrices = columns.size // 8
        costs = (1, WARP, matrices * 128, 0, 0, wavefronts, matrices)
        moved = tuple(requests * cost for cost in costs)
        machine.tally(MovedKey(self.site, self.array.name, "shared", "load", 128, moved), None)


def _lanes_of(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the row (within the warp's 16) and the column of acc[e] in each lane, both (n / 2, 32)."""
    e, lane = np.arange(n // 2, dtype=np.int64)[:, None], np.arange(WARP, dtype=np.int64)
    return lane // 4 + e // 2 % 2 * 8, e // 4 * 8 + lane % 4 * 2 + e % 2


@emulates(wgmma, reads=(1,), writes=(1,), fragments=(1,), elementwise=False, warp_by_warp=True, needs=(9, 0))
def _multiply(machine, n, acc, a, a_index, b, b_index):
    warps.require_whole_warps(machine, "wgmma")
    if getattr(acc, "space", "") != "local" or acc.shape != (n // 2,) or acc.pattern is not None:
        raise KernelTypeError(
            f"wgmma of {n} columns adds to a local array of {n // 2} float32, or to such a row of one"
        )
    left, right = _Tile(machine, a, a_index, ROWS, DEPTH), _Tile(machine, b, b_index, DEPTH, n)
    linear = machine.active_values(machine.chunk.geometry.linear)
    machine.count_arithmetic(machine.site, "mma", acc.dtype, ROWS * DEPTH * n // WARPGROUP)
    left.count(machine, len(linear) // WARP, ROWS // 4)
    # One request serves the four warps.
    right.count(machine, int(np.count_nonzero(linear % WARPGROUP == 0)), DEPTH)
    if machine.log is not None:
        return
    for tile in (left, right):
        if tile.problem():
            kind, sentence = tile.problem()
            machine.reporter.thread(kind, machine.site, sentence, tile.array, tile.index)
            return
    _queue(machine, n, acc, left, right)


def _queue(machine, n, acc, left, right):
    """Record what the product reads, and queue its computation until a warp waits for it."""
    site, warp = machine.site, machine.unit
    machine.require_accumulator(site, acc)
    own_rows = left.cells(warp.number % 4 * (ROWS // 4), ROWS // 4)
    reads = [(left.array, own_rows), (right.array, right.cells())]
    tokens = []
    for array, cells in reads:
        machine.check_written(site, array, cells.reshape(-1))
        tokens.append(machine.chunk.clocks.begin_reading(array, cells.reshape(-1), site, "wgmma"))
    rows, columns = _lanes_of(n)

    def finish():
        a, b = (array.storage.data[0, 0, cells].astype(np.float32) for array, cells in reads)
        machine.add_to_accumulator(acc, warp, np.matmul(a, b)[rows, columns])
        for token in tokens:
            machine.chunk.clocks.finish_reading(token)

    machine.products.queue(site, acc, finish)


@emulates(wgmma_fence, elementwise=False, warp_by_warp=True, needs=(9, 0))
def _fence(machine):
    if machine.log is None:
        machine.products.fence()


@emulates(wgmma_commit, elementwise=False, warp_by_warp=True, needs=(9, 0))
def _commit(machine):
    if machine.log is None:
        machine.products.commit()


@emulates(wgmma_wait, elementwise=False, warp_by_warp=True, needs=(9, 0))
def _wait(machine, pending):
    if isinstance(pending, int) and pending < 0:
        raise KernelTypeError(f"wgmma_wait leaves 0 or more groups running, not {pending}")
    if machine.log is None:
        machine.products.wait(pending)


for _change in (registers_down, registers_up):
    emulates(_change, elementwise=False, warp_by_warp=True, needs=(9, 0))(lambda machine, count: None)
