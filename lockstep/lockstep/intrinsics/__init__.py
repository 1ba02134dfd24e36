"""Provides what a fast kernel needs and `numba.cuda` lacks, in one file per family.

Each intrinsic is device code through numba-cuda's extension API, with its emulation beside it. Kernels import
the names from here only. A move to another compiler touches only this folder and the code that launches
kernels on a GPU.
"""

from .async_copy import cp_async4, cp_async16, cp_async_commit, cp_async_wait
from .indexing import kept, u32
from .ldmatrix import ldmatrix_x2, ldmatrix_x2_trans, ldmatrix_x4, ldmatrix_x4_trans
from .loops import rolled, unroll
from .mbarrier import (
    fence_async,
    mbarrier_arrive,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_wait,
)
from .mma_sync import mma_m16n8k16
from .stmatrix import stmatrix_x4
from .tma import (
    TensorMap,  # noqa: F401 (what tensor_map returns; no intrinsic, so not in __all__)
    tensor_map,
    tma_acquire,
    tma_commit,
    tma_load,
    tma_store,
    tma_wait_read,
)
from .vector import copy16, load4, store2, store4
from .views import carve, rest
from .wgmma import (
    registers_down,
    registers_up,
    wgmma,
    wgmma_commit,
    wgmma_fence,
    wgmma_wait,
)
from .wmma import COL_MAJOR, ROW_MAJOR, wmma_load_a, wmma_load_b, wmma_mma, wmma_store

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
