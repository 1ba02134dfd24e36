"""Does the same multiplication in Triton, to compare with: `python -m measuring triton`.

There is one program per tile of C. Tiles are ordered in groups of rows, so that L2 is reused, and Triton's
own autotuner chooses their sizes. FP32 operands are multiplied as FP32 (`input_precision="ieee"`), FP16 ones
by Tensor Cores. It follows Triton's matrix multiplication tutorial, triton-lang.org.
"""

import functools
from collections.abc import Callable

from gemm_course.bench.problem import Problem

CHOICES = {  # the matrices' dtype -> (BM, BN, BK, warps, slots of the pipeline)
    "float32": [
        (BM, BN, BK, warps, slots)
        for BM, BN, warps in ((128, 128, 8), (128, 64, 4), (64, 128, 4), (128, 256, 8), (64, 64, 4))
        for BK, slots in ((16, 3), (32, 3), (32, 2))
    ],
    "float16": [
        (BM, BN, BK, warps, slots)
        for BM, BN, warps in ((128, 256, 8), (256, 128, 8), (128, 128, 8), (128, 128, 4), (64, 256, 4))
        for BK, slots in ((64, 3), (64, 4), (32, 4))
    ],
}


class NoTriton(RuntimeError):
    """The error for a missing Triton or PyTorch. Its message is one sentence."""


def triton_launcher(problem: Problem, accumulate: str = "float32") -> Callable[[], None]:
    """Compile and tune for a problem. Return a function that queues one launch. Raise NoTriton.

    ``accumulate`` is "float32" or "float16", the dtype of the accumulators.
    """
    try:
        import torch
        import triton
    except ImportError as error:
        raise NoTriton(f"This compares with Triton, which needs PyTorch as well: {error}.") from None
    m, n, k = problem.shape
    a, b = (torch.from_dlpack(matrix) for matrix in (problem.A[:, :k], problem.B[:, :n]))
    c = torch.empty((m, n), dtype=a.dtype, device="cuda")
    strides = a.stride(0), b.stride(0), c.stride(0)
    kernel = _tuned(problem.dtype)

    def grid(meta):
        return (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)

    def go():
        kernel[grid](a, b, c, m, n, k, *strides, GROUP=8, FP16_ACC=accumulate == "float16")

    with torch.cuda.stream(torch.cuda.default_stream()):
        go()
    return go


def _tuned(dtype: str):
    import triton

    configurations = [
        triton.Config({"BM": BM, "BN": BN, "BK": BK}, num_warps=warps, num_stages=slots)
        for BM, BN, BK, warps, slots in CHOICES[dtype]
    ]
    return triton.autotune(configs=configurations, key=["m", "n", "k"])(matmul_kernel())


@functools.cache
def matmul_kernel():
    """Return the kernel, not yet tuned.

    For rows and columns past C it reads the first ones, and stores nothing.
    """
    import triton
    import triton.language as tl

    @triton.jit
    def matmul(
        a,
        b,
        c,
        m,
        n,
        k,
        lda,
        ldb,
        ldc,
        BM: tl.constexpr,
        BN: tl.constexpr,
        BK: tl.constexpr,
        GROUP: tl.constexpr,
        FP16_ACC: tl.constexpr,
    ):
        tile_rows, tile_cols = tl.cdiv(m, BM), tl.cdiv(n, BN)
        group = tl.program_id(0) // (GROUP * tile_cols)
        height = min(tile_rows - group * GROUP, GROUP)
        within = tl.program_id(0) % (GROUP * tile_cols)
        rows = (group * GROUP + within % height) * BM + tl.arange(0, BM)
        cols = within // height * BN + tl.arange(0, BN)
        steps = tl.arange(0, BK)
        a_at = a + (rows % m)[:, None] * lda + steps[None, :]
        b_at = b + steps[:, None] * ldb + (cols % n)[None, :]
        acc_dtype: tl.constexpr = tl.float16 if FP16_ACC else tl.float32
        acc = tl.zeros((BM, BN), acc_dtype)
        for k0 in range(0, k, BK):
            left = tl.load(a_at, steps[None, :] < k - k0, 0.0)
            right = tl.load(b_at, steps[:, None] < k - k0, 0.0)
            acc = tl.dot(left, right, acc, input_precision="ieee", out_dtype=acc_dtype)
            a_at += BK
            b_at += BK * ldb
        inside = (rows[:, None] < m) & (cols[None, :] < n)
        tl.store(c + rows[:, None] * ldc + cols[None, :], acc.to(c.dtype.element_ty), inside)

    return matmul
