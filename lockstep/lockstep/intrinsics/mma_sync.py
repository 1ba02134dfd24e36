"""Provides mma.sync, by which a warp multiplies 16 by 16 with 16 by 8 FP16 values on a Tensor Core.

The matrices are in the registers of the warp's 32 lanes. Each lane holds these elements (g = lane // 4,
p = 2 (lane % 4)), two FP16 values per register:

    fragment         elements 0, 1      2, 3                4, 5                6, 7
    a    (16 by 16)  row g,             row g + 8,          row g,              row g + 8,
                     columns p, p + 1   columns p, p + 1    columns p + 8, + 9  columns p + 8, + 9
    b    (16 by 8)   rows p, p + 1,     rows p + 8, p + 9,
                     column g           column g
    acc  (16 by 8)   row g,             row g + 8,
                     columns p, p + 1   columns p, p + 1

The products are exact. An H200 does not round their sum to float32 but cuts bits off. NVIDIA does not
document how. The emulator adds in float32, as NumPy does, so its last bits differ. With float16 accumulators
the emulator rounds the sum to float16 once per instruction.

Compute capability 8.0 and newer.
"""

import numpy as np

from lockstep.library import warps
from lockstep.registry import emulates

from . import fragments
from ._codegen import (
    check_fragment,
    intrinsic,
    ir,
    ptx_results,
    read_registers,
    types,
    write_registers,
)

__all__ = ["mma_m16n8k16"]

_FLOAT, _PAIR = (ir.FloatType(), "f", "f32"), (ir.IntType(32), "r", "f16")
# The multiply-adds of one instruction are shared equally among the lanes.
_PER_LANE = 16 * 8 * 16 // 32


@intrinsic
def mma_m16n8k16(typing_context, acc, a, b):
    """Add a @ b to acc for a warp's fragments: 16 by 8 += 16 by 16 times 16 by 8.

    acc: a local array of 4 float32, or of 4 float16. a, b: local arrays of 8 and 4 float16. Every lane of
    the warp must take part. PTX `mma.sync.aligned.m16n8k16.row.col` with `.f32.f16.f16.f32` or
    `.f16.f16.f16.f16`; compute capability 8.0.
    """
    check_fragment("mma_m16n8k16", acc, types.float32, types.float16)
    check_fragment("mma_m16n8k16", a, types.float16)
    check_fragment("mma_m16n8k16", b, types.float16)
    (kind, letter, name), count = (_FLOAT, 4) if acc.dtype == types.float32 else (_PAIR, 2)

    def generate(context, builder, signature, arguments):
        old, left, right = (
            read_registers(context, builder, array, argument, registers, register)
            for array, argument, registers, register in zip(
                signature.args, arguments, (count, 4, 2), (kind, _PAIR[0], _PAIR[0]), strict=True
            )
        )
        d, c = ("{" + ", ".join(f"${i}" for i in range(at, at + count)) + "}" for at in (0, count + 6))
        a_at, b_at = (", ".join(f"${count + i}" for i in span) for span in (range(4), range(4, 6)))
        text = f"mma.sync.aligned.m16n8k16.row.col.{name}.f16.f16.{name} {d}, {{{a_at}}}, {{{b_at}}}, {c};"
        constraints = ",".join([f"={letter}"] * count + ["r"] * 6 + [str(i) for i in range(count)])
        results = ptx_results(builder, text, constraints, [*left, *right, *old], (kind, count), memory=False)
        write_registers(context, builder, signature.args[0], arguments[0], results)
        return context.get_dummy_value()

    return types.void(acc, a, b), generate


@emulates(mma_m16n8k16, reads=(0, 1, 2), writes=(0,), elementwise=False, fragments=(0, 1, 2), needs=(8, 0))
def _emulate(machine, acc, a, b):
    name = "mma_m16n8k16"
    warps.require_whole_warps(machine, name)
    old = warps.read_fragment(machine, name, acc, fragments.C, "float32", "float16")
    left = warps.read_fragment(machine, name, a, fragments.A, "float16")
    right = warps.read_fragment(machine, name, b, fragments.B, "float16")
    machine.count_arithmetic(machine.site, "mma", acc.dtype, _PER_LANE)
    new = warps.multiply_add(machine, left, right, old, np.dtype(acc.dtype))
    warps.write_fragment(machine, name, acc, fragments.C, new, "float32", "float16")
