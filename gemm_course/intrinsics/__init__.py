"""What a fast kernel needs and `numba.cuda` lacks, one file per family.

Each intrinsic is device code through numba-cuda's extension API, with its emulation beside it. Kernels import
the names from here only; a move to another compiler touches this folder and `gemm_course.device`.
"""

from gemm_course.intrinsics.async_copy import cp_async4, cp_async16, cp_async_commit, cp_async_wait
from gemm_course.intrinsics.indexing import kept, u32
from gemm_course.intrinsics.ldmatrix import ldmatrix_x2, ldmatrix_x2_trans, ldmatrix_x4, ldmatrix_x4_trans
from gemm_course.intrinsics.loops import rolled, unroll
from gemm_course.intrinsics.mbarrier import (
    fence_async,
    mbarrier_arrive,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_wait,
)
from gemm_course.intrinsics.mma_sync import mma_m16n8k16
from gemm_course.intrinsics.stmatrix import stmatrix_x4
from gemm_course.intrinsics.tma import (
    tensor_map,
    tma_acquire,
    tma_commit,
    tma_load,
    tma_store,
    tma_wait_read,
)
from gemm_course.intrinsics.vector import copy16, load4, store2, store4
from gemm_course.intrinsics.views import carve, rest
from gemm_course.intrinsics.wgmma import (
    registers_down,
    registers_up,
    wgmma,
    wgmma_commit,
    wgmma_fence,
    wgmma_wait,
)
from gemm_course.intrinsics.wmma import COL_MAJOR, ROW_MAJOR, wmma_load_a, wmma_load_b, wmma_mma, wmma_store

__all__ = [
    "COL_MAJOR",
    "ROW_MAJOR",
    "carve",
    "copy16",
    "cp_async4",
    "cp_async16",
    "cp_async_commit",
    "cp_async_wait",
    "fence_async",
    "kept",
    "ldmatrix_x2",
    "ldmatrix_x2_trans",
    "ldmatrix_x4",
    "ldmatrix_x4_trans",
    "load4",
    "mbarrier_arrive",
    "mbarrier_expect",
    "mbarrier_init",
    "mbarrier_wait",
    "mma_m16n8k16",
    "registers_down",
    "registers_up",
    "rest",
    "rolled",
    "stmatrix_x4",
    "store2",
    "store4",
    "tensor_map",
    "tma_acquire",
    "tma_commit",
    "tma_load",
    "tma_store",
    "tma_wait_read",
    "u32",
    "unroll",
    "wgmma",
    "wgmma_commit",
    "wgmma_fence",
    "wgmma_wait",
    "wmma_load_a",
    "wmma_load_b",
    "wmma_mma",
    "wmma_store",
]
