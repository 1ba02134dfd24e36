"""Provides ldmatrix, by which a warp loads 8 by 8 matrices of float16 from shared memory into fragments.

Tensor Cores need each lane to hold certain pairs of a matrix. A lane that loads its own pairs needs four
32-bit loads, each from eight rows. ldmatrix is one instruction: the lanes provide the addresses of rows, 16
bytes each, and the hardware distributes the elements.

    matrix i      its rows are at the addresses of lanes 8 i to 8 i + 7
    lane l        gets row l // 4, columns p and p + 1 of every matrix, p = 2 (l % 4),
                  in fragment[2 i] and fragment[2 i + 1]
    transposed    gets column l // 4, rows p and p + 1

Each matrix takes one wavefront, 8 rows of 16 bytes from the 32 banks, or more if rows share banks. If lanes 0
to 15 point to rows of A and lanes 16 to 31 to the same rows 8 columns further, the four matrices of
`ldmatrix_x4` are the fragment of A for `mma_m16n8k16`. B, in rows along n, needs the transposed form.

Compute capability 7.5 and newer.
"""

import numpy as np

from lockstep.library import warps
from lockstep.registry import as_index, emulates

from ._codegen import (
    check_fragment,
    element_pointer,
    intrinsic,
    ir,
    ptx_results,
    shared_address,
    types,
    write_registers,
)

__all__ = ["ldmatrix_x2", "ldmatrix_x2_trans", "ldmatrix_x4", "ldmatrix_x4_trans"]


def _load(context, builder, signature, arguments, count, transposed=""):
    """Emit one ldmatrix of `count` matrices for (fragment, array, index)."""
    fragment, array, index = signature.args
    row = shared_address(builder, element_pointer(context, builder, array, arguments[1], index, arguments[2]))
    registers = ", ".join(f"${i}" for i in range(count))
    text = f"ldmatrix.sync.aligned.m8n8.x{count}{transposed}.shared.b16 {{{registers}}}, [${count}];"
    values = ptx_results(builder, text, "=r," * count + "r", [row], (ir.IntType(32), count))
    write_registers(context, builder, fragment, arguments[0], values)
    return context.get_dummy_value()


@intrinsic
def ldmatrix_x2(typing_context, fragment, array, index):
    """Load two 8 by 8 matrices into fragment[0:4]; lanes 0 to 15 each provide a row, at array[index].

    fragment: a local array of 4 float16. array: shared, float16; rows must start at multiples of 16 bytes.
    Every lane of the warp must take part. The index of lanes 16 to 31 is not used (but on compute capability
    7.5 it must be valid). PTX `ldmatrix.sync.aligned.m8n8.x2.shared.b16`; compute capability 7.5.
    """
    check_fragment("ldmatrix_x2", fragment, types.float16)

    def generate(context, builder, signature, arguments):
        return _load(context, builder, signature, arguments, 2)

    return types.void(fragment, array, index), generate


@intrinsic
def ldmatrix_x2_trans(typing_context, fragment, array, index):
    """Load two 8 by 8 matrices like `ldmatrix_x2`, each of them transposed.

    PTX `ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16`; compute capability 7.5.
    """
    check_fragment("ldmatrix_x2_trans", fragment, types.float16)

    def generate(context, builder, signature, arguments):
        return _load(context, builder, signature, arguments, 2, ".trans")

    return types.void(fragment, array, index), generate


@intrinsic
def ldmatrix_x4(typing_context, fragment, array, index):
    """Load four 8 by 8 matrices into fragment[0:8]; every lane provides a row, at array[index].

    fragment: a local array of 8 float16. array: shared, float16; rows must start at multiples of 16 bytes.
    Every lane of the warp must take part. PTX `ldmatrix.sync.aligned.m8n8.x4.shared.b16`; compute capability
    7.5.
    """
    check_fragment("ldmatrix_x4", fragment, types.float16)

    def generate(context, builder, signature, arguments):
        return _load(context, builder, signature, arguments, 4)

    return types.void(fragment, array, index), generate


@intrinsic
def ldmatrix_x4_trans(typing_context, fragment, array, index):
    """Load four 8 by 8 matrices like `ldmatrix_x4`, each of them transposed.

    PTX `ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16`; compute capability 7.5.
    """
    check_fragment("ldmatrix_x4_trans", fragment, types.float16)

    def generate(context, builder, signature, arguments):
        return _load(context, builder, signature, arguments, 4, ".trans")

    return types.void(fragment, array, index), generate


def _layout(count, transposed):
    """Return the layout of `count` matrices, stacked on top of each other: (8 * count, 8)."""
    lane, element = np.arange(32, dtype=np.int64)[:, None], np.arange(2 * count, dtype=np.int64)[None, :]
    line, pair = lane // 4 + 0 * element, lane % 4 * 2 + element % 2
    row, column = (pair, line) if transposed else (line, pair)
    return warps.Layout(row + element // 2 * 8, column, (8 * count, 8))


# stmatrix uses the same layout.
FOUR_MATRICES = _layout(4, transposed=False)


def _emulate(name, count, transposed):
    layout = _layout(count, transposed)

    def load(machine, fragment, array, index):
        warps.require_whole_warps(machine, name)
        warps.require_shared(name, array, "float16")
        rows = warps.load_rows(machine, array, as_index(index), 8 * count)
        warps.write_fragment(machine, name, fragment, layout, rows, "float16")

    return load


for _function, _name, _count, _transposed in (
    (ldmatrix_x2, "ldmatrix_x2", 2, False),
    (ldmatrix_x2_trans, "ldmatrix_x2_trans", 2, True),
    (ldmatrix_x4, "ldmatrix_x4", 4, False),
    (ldmatrix_x4_trans, "ldmatrix_x4_trans", 4, True),
):
    emulates(_function, reads=(1,), writes=(0,), elementwise=False, fragments=(0,))(
        _emulate(_name, _count, _transposed)
    )
