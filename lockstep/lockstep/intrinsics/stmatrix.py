"""Provides stmatrix, by which a warp stores a fragment in shared memory, as rows of 8 by 8 matrices.

It is the inverse of `ldmatrix`. A lane's Tensor Core results come in pairs, from two rows and every eighth
column. If each lane stored its own, they would be many small pieces. stmatrix stores four 8 by 8 matrices at
once:

    matrix i      its rows go to the addresses of lanes 8 i to 8 i + 7, 16 bytes each
    lane l        provides row l // 4, columns p and p + 1 of every matrix, p = 2 (l % 4),
                  from fragment[first + 2 i] and fragment[first + 2 i + 1]

Each matrix takes one wavefront, 8 rows of 16 bytes to the 32 banks, or more if rows share banks.

Compute capability 9.0.
"""

from lockstep.library import warps
from lockstep.registry import as_index, emulates

from ._codegen import (
    check_fragment,
    element_pointer,
    inline_ptx,
    intrinsic,
    ir,
    types,
)
from ._hopper import require_hopper, shared_operand
from .ldmatrix import FOUR_MATRICES

__all__ = ["stmatrix_x4"]

_PAIR = ir.IntType(32)
# Each lane holds PER_LANE FP16 values.
PER_LANE = 8


@intrinsic
def stmatrix_x4(typing_context, array, index, fragment, first):
    """Store four 8 by 8 matrices, fragment[first] to fragment[first + 7] of all lanes, in rows of `array`.

    array: shared, float16. index: the place where the lane's row of 8 starts, at a multiple of 16 bytes.
    fragment: a local array of float16. first: an even number. Every lane of the warp must take part. PTX
    `stmatrix.sync.aligned.m8n8.x4.shared.b16`; compute capability 9.0.
    """
    check_fragment("stmatrix_x4", fragment, types.float16)

    def generate(context, builder, signature, arguments):
        require_hopper("stmatrix_x4")
        kinds = signature.args
        row = shared_operand(context, builder, kinds[0], arguments[0], kinds[1], arguments[1])
        start = element_pointer(context, builder, kinds[2], arguments[2], kinds[3], arguments[3])
        pairs = builder.bitcast(start, _PAIR.as_pointer())
        held = [builder.load(builder.gep(pairs, [_PAIR(i)]), align=2) for i in range(PER_LANE // 2)]
        text = "stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};"
        inline_ptx(builder, text, "r,r,r,r,r", [row, *held])
        return context.get_dummy_value()

    return types.void(array, index, fragment, first), generate


@emulates(stmatrix_x4, reads=(2,), writes=(0,), elementwise=False, needs=(9, 0))
def _store(machine, array, index, fragment, first):
    warps.require_whole_warps(machine, "stmatrix_x4")
    warps.require_shared("stmatrix_x4", array, "float16")
    values = machine.read(machine.site, fragment, as_index(first), PER_LANE, boundary=1)
    warps.store_rows(machine, array, as_index(index), FOUR_MATRICES, values)
