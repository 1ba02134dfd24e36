"""What `numba.cuda` lacks and a fast kernel needs, one file a family.

Each intrinsic is device code through numba-cuda's extension API, with its emulation beside it. Kernels import
the names from here and nothing else; a move to another compiler touches this folder and `gemm_course.device`.
"""

from gemm_course.intrinsics.async_copy import cp_async4, cp_async16, cp_async_commit, cp_async_wait
from gemm_course.intrinsics.indexing import u32
from gemm_course.intrinsics.loops import unroll
from gemm_course.intrinsics.vector import copy16, load4, store2, store4

__all__ = [
    "copy16",
    "cp_async4",
    "cp_async16",
    "cp_async_commit",
    "cp_async_wait",
    "load4",
    "store2",
    "store4",
    "u32",
    "unroll",
]
