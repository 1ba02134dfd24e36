"""Defines the fragment layouts of m16n8k16: which lane of a warp holds which elements of a matrix.

The source is the PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type". A lane's elements lie
in 32-bit registers, two neighbouring FP16 values in each.
"""

import numpy as np

from lockstep.library.warps import Layout

_LANE = np.arange(32, dtype=np.int64)[:, None]
_ROW, _PAIR = _LANE // 4, _LANE % 4 * 2


def _layout(per_lane, rows, columns, shape):
    element = np.arange(per_lane, dtype=np.int64)[None, :]
    return Layout(*np.broadcast_arrays(rows(element), columns(element)), shape)


A = _layout(8, lambda e: _ROW + e // 2 % 2 * 8, lambda e: _PAIR + e % 2 + e // 4 * 8, (16, 16))
B = _layout(4, lambda e: _PAIR + e % 2 + e // 2 * 8, lambda e: _ROW + 0 * e, (16, 8))
C = _layout(4, lambda e: _ROW + e // 2 * 8, lambda e: _PAIR + e % 2, (16, 8))


def _side_by_side(left, shape, step):
    """Return the layout of a matrix whose right half, from column `step` on, is laid out like `left`."""
    rows, columns = np.tile(left.rows, 2), np.concatenate([left.columns, left.columns + step], axis=1)
    return Layout(rows, columns, shape)


def _twice(layout):
    """Return a layout in which each lane holds its elements twice, as WMMA's operands do."""
    return Layout(np.tile(layout.rows, 2), np.tile(layout.columns, 2), layout.shape)


WMMA_A = _twice(A)
WMMA_B = _twice(_side_by_side(B, (16, 16), 8))
WMMA_ACC = _side_by_side(C, (16, 16), 8)
