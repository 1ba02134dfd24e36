"""Provides WMMA, CUDA's first interface to the Tensor Cores: products of 16 by 16 matrices, hidden layouts.

A warp loads a fragment of A and a fragment of B from shared memory, multiplies and accumulates, and stores
the accumulators:

    wmma_load_a(a, As, (y, p), ROW_MAJOR)      a: 16 float16 per lane
    wmma_load_b(b, Bs, (p, x), ROW_MAJOR)      b: 16 float16 per lane
    wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)  acc: 8 float32 or 8 float16 per lane
    wmma_store(Cs, (0, 0), acc, ROW_MAJOR)

Which lane holds which elements is unspecified. So a kernel can only treat all elements of a fragment alike:
set them to zero, multiply them by alpha. All lanes of a warp must take part, with the same index.

In memory a matrix is ROW_MAJOR, array[row, column], or COL_MAJOR, array[column, row]; the second-last stride
of the array is WMMA's leading dimension. It must be a multiple of 16 bytes, and the matrix must start at a
multiple of 32 bytes. (The PTX manual requires 32 bytes of every row; the CUDA C++ manual and the hardware
require 16.)

On compute capability 8.0 to 9.0, the machine code shows what the compiler makes of it. A load is one
`ldmatrix` of four 8 by 8 matrices, transposed where the order in memory requires it. It fills the registers
twice (elements 8 to 15 repeat 0 to 7). A multiplication is two `mma.sync` m16n8k16. A store is four stores
of 64 bits per lane (float32) or of 32 bits (float16), or eight of 32 bits for float32 in COL_MAJOR. The
emulator counts these instructions, and assumes that older GPUs do the same. Tests compare its counts with the
recorded hardware counters.

Compute capability 7.0 and newer.
"""

import numpy as np

from lockstep.library import warps
from lockstep.registry import as_index, emulates

from . import fragments
from ._codegen import (
    TypingError,
    check_fragment,
    element_pointer,
    inline_ptx,
    intrinsic,
    ir,
    ptx_results,
    read_registers,
    row_length,
    shared_address,
    types,
    write_registers,
)

__all__ = ["COL_MAJOR", "ROW_MAJOR", "wmma_load_a", "wmma_load_b", "wmma_mma", "wmma_store"]

ROW_MAJOR, COL_MAJOR = 0, 1

_ORDERS = ("row", "col")
# The multiply-adds of one product are shared equally among the lanes.
_PER_LANE = 16 * 16 * 16 // 32
_WORD = ir.IntType(32)


def _order(instruction, layout) -> str:
    if not isinstance(layout, types.IntegerLiteral) or layout.literal_value not in (ROW_MAJOR, COL_MAJOR):
        raise TypingError(
            f"{instruction} takes ROW_MAJOR or COL_MAJOR as the order of a matrix, not {layout}"
        )
    return _ORDERS[layout.literal_value]


def _accumulator(instruction, acc) -> tuple:
    """Return (LLVM type, PTX's letter, PTX's type, number of registers) of a fragment of accumulators."""
    check_fragment(instruction, acc, types.float32, types.float16)
    return (ir.FloatType(), "f", "f32", 8) if acc.dtype == types.float32 else (_WORD, "r", "f16", 4)


def _registers(start, count) -> str:
    return "{" + ", ".join(f"${i}" for i in range(start, start + count)) + "}"


def _place(context, builder, array_type, array, index_type, index):
    """Return the shared address and the leading dimension of a matrix."""
    pointer = element_pointer(context, builder, array_type, array, index_type, index)
    return [shared_address(builder, pointer), row_length(context, builder, array_type, array)]


def _load(matrix, signature_types):
    """Return the type and the code generator of wmma.load for matrix "a" or "b"."""
    fragment, array, index, layout = signature_types
    check_fragment(f"wmma_load_{matrix}", fragment, types.float16)
    order = _order(f"wmma_load_{matrix}", layout)

    def generate(context, builder, signature, arguments):
        place = _place(context, builder, array, arguments[1], index, arguments[2])
        text = f"wmma.load.{matrix}.sync.aligned.{order}.m16n16k16.shared.f16 {_registers(0, 8)}, [$8], $9;"
        values = ptx_results(builder, text, "=r," * 8 + "r,r", place, (_WORD, 8))
        write_registers(context, builder, fragment, arguments[0], values)
        return context.get_dummy_value()

    return types.void(*signature_types), generate


@intrinsic
def wmma_load_a(typing_context, fragment, array, index, layout):
    """Load 16 by 16 elements of A, the first of them array[index], into a warp's fragment.

    fragment: a local array of 16 float16. array: shared, float16, of two or more dimensions. layout:
    ROW_MAJOR or COL_MAJOR. PTX `wmma.load.a.sync.aligned.row.m16n16k16.shared.f16` (or `.col`); compute
    capability 7.0.
    """
    return _load("a", (fragment, array, index, layout))


@intrinsic
def wmma_load_b(typing_context, fragment, array, index, layout):
    """Load 16 by 16 elements of B, the first of them array[index], into a warp's fragment.

    fragment: a local array of 16 float16. array: shared, float16, of two or more dimensions. layout:
    ROW_MAJOR or COL_MAJOR. PTX `wmma.load.b.sync.aligned.row.m16n16k16.shared.f16` (or `.col`); compute
    capability 7.0.
    """
    return _load("b", (fragment, array, index, layout))


@intrinsic
def wmma_mma(typing_context, acc, a, b, a_layout, b_layout):
    """Add a @ b to acc, each 16 by 16, for the fragments of a warp.

    acc: a local array of 8 float32 or 8 float16, which is the type of the accumulation. a, b: local arrays
    of 16 float16, loaded with these layouts. PTX `wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32` (or
    `.f16.f16`, and `.col` for an operand); compute capability 7.0.
    """
    kind, letter, name, count = _accumulator("wmma_mma", acc)
    check_fragment("wmma_mma", a, types.float16)
    check_fragment("wmma_mma", b, types.float16)
    orders = f"{_order('wmma_mma', a_layout)}.{_order('wmma_mma', b_layout)}"

    def generate(context, builder, signature, arguments):
        left, right = (
            read_registers(context, builder, t, v, 8) for t, v in ((a, arguments[1]), (b, arguments[2]))
        )
        old = read_registers(context, builder, acc, arguments[0], count, kind)
        parts = [
            _registers(at, size) for at, size in ((0, count), (count, 8), (count + 8, 8), (count + 16, count))
        ]
        text = f"wmma.mma.sync.aligned.{orders}.m16n16k16.{name}.{name} {', '.join(parts)};"
        constraints = ",".join([f"={letter}"] * count + ["r"] * 16 + [str(i) for i in range(count)])
        results = ptx_results(builder, text, constraints, [*left, *right, *old], (kind, count), memory=False)
        write_registers(context, builder, acc, arguments[0], results)
        return context.get_dummy_value()

    return types.void(acc, a, b, a_layout, b_layout), generate


@intrinsic
def wmma_store(typing_context, array, index, acc, layout):
    """Store the 16 by 16 accumulators of a warp, the first of them at array[index].

    array: shared, of two or more dimensions, of the type of acc. acc: a local array of 8 float32 or 8
    float16. layout: ROW_MAJOR or COL_MAJOR. PTX `wmma.store.d.sync.aligned.row.m16n16k16.shared.f32` (or
    `.f16`, and `.col`); compute capability 7.0.
    """
    kind, letter, name, count = _accumulator("wmma_store", acc)
    order = _order("wmma_store", layout)
    if array.dtype != acc.dtype:
        raise TypingError(
            f"wmma_store cannot store {acc.dtype} in an array of {array.dtype}: the types must be the same"
        )

    def generate(context, builder, signature, arguments):
        address, leading = _place(context, builder, array, arguments[0], index, arguments[1])
        values = read_registers(context, builder, acc, arguments[2], count, kind)
        operands = f"[$0], {_registers(1, count)}, ${count + 1}"
        text = f"wmma.store.d.sync.aligned.{order}.m16n16k16.shared.{name} {operands};"
        constraints = ",".join(["r"] + [letter] * count + ["r"])
        inline_ptx(builder, text, constraints, [address, *values, leading])
        return context.get_dummy_value()

    return types.void(array, index, acc, layout), generate


# ---- emulation ----

_START_BYTES = 32  # A matrix in memory must start at a multiple of this, by the CUDA C++ manual.
_LANE = np.arange(32, dtype=np.int64)
# Each lane loads a row of 8 elements, which starts here in the tile.
_ROWS, _COLUMNS = _LANE % 16, _LANE // 16 * 8
_LINE, _PAIR = _LANE // 4, _LANE % 4 * 2
_IN_PAIRS = [(_LINE + 8 * i, _PAIR + 8 * j) for j in range(2) for i in range(2)]
_ONE_BY_ONE = [(_PAIR + e + 8 * j, _LINE + 8 * i) for j in range(2) for i in range(2) for e in range(2)]


def _emulate_load(name, layout_of_fragment):
    def load(machine, fragment, array, index, layout):
        index = _checked_place(machine, name, array, index, "float16")
        lines = warps.load_rows(machine, array, _offset(machine, index, _ROWS, _COLUMNS), 32)
        tile = None
        if lines is not None:
            left, right = lines[..., :16, :], lines[..., 16:, :]
            tile = np.concatenate([left, right], axis=-1)
            tile = np.swapaxes(tile, -1, -2) if layout == COL_MAJOR else tile
        warps.write_fragment(machine, name, fragment, layout_of_fragment, tile, "float16")

    return load


def _checked_place(machine, name, array, index, *dtypes) -> tuple:
    index = as_index(index)
    warps.require_whole_warps(machine, name)
    warps.require_shared(name, array, *dtypes)
    warps.require_place(name, array, index)
    warps.require_uniform(machine, name, "positions", *index)
    machine.check_start(machine.site, array, index, _START_BYTES // array.dtype.itemsize, "a fragment")
    return index


def _offset(machine, index, rows, columns) -> tuple:
    """Return the index of each lane's element, `rows` and `columns` away from the start of the matrix."""
    *front, row, column = index
    return (
        *front,
        machine.add(None, row, warps.by_lane(machine, rows)),
        machine.add(None, column, warps.by_lane(machine, columns)),
    )


for _function, _name, _held in (
    (wmma_load_a, "wmma_load_a", fragments.WMMA_A),
    (wmma_load_b, "wmma_load_b", fragments.WMMA_B),
):
    emulates(_function, reads=(1,), writes=(0,), elementwise=False, fragments=(0,))(
        _emulate_load(_name, _held)
    )


@emulates(wmma_mma, reads=(0, 1, 2), writes=(0,), elementwise=False, fragments=(0, 1, 2))
def _emulate_mma(machine, acc, a, b, a_layout, b_layout):
    warps.require_whole_warps(machine, "wmma_mma")
    old = warps.read_fragment(machine, "wmma_mma", acc, fragments.WMMA_ACC, "float32", "float16")
    left = warps.read_fragment(machine, "wmma_mma", a, fragments.WMMA_A, "float16")
    right = warps.read_fragment(machine, "wmma_mma", b, fragments.WMMA_B, "float16")
    machine.count_arithmetic(machine.site, "mma", acc.dtype, _PER_LANE)
    new = warps.multiply_add(machine, left, right, old, acc.dtype)
    warps.write_fragment(machine, "wmma_mma", acc, fragments.WMMA_ACC, new, "float32", "float16")


@emulates(wmma_store, reads=(2,), writes=(0,), elementwise=False, fragments=(2,))
def _emulate_store(machine, array, index, acc, layout):
    index = _checked_place(machine, "wmma_store", array, index, "float32", "float16")
    tile = warps.read_fragment(machine, "wmma_store", acc, fragments.WMMA_ACC, array.dtype.name)
    alone = layout == COL_MAJOR and array.dtype == np.float32
    if tile is not None and layout == COL_MAJOR:
        tile = np.swapaxes(tile, -1, -2)
    for rows, columns in _ONE_BY_ONE if alone else _IN_PAIRS:
        width = 1 if alone else 2
        values = tuple(warps.elements(machine, array, tile, rows, columns + e) for e in range(width))
        place = _offset(machine, index, rows, columns)
        machine.write(machine.site, array, place, values if width > 1 else values[0], width)
