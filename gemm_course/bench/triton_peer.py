"""The same multiplication in Triton, as a further peer: `gemm-course bench --triton`.

One program a tile of C, tiles dealt out in groups of rows for L2 reuse, FP32 operands multiplied as FP32
(`input_precision="ieee"`), sizes chosen by Triton's own autotuner. After the pattern of Triton's matrix
multiplication tutorial, triton-lang.org.
"""

import functools
from collections.abc import Callable

from gemm_course.bench.problem import Problem

CHOICES = [
    (BM, BN, BK, warps, stages)
    for BM, BN, warps in ((128, 128, 8), (128, 64, 4), (64, 128, 4), (128, 256, 8), (64, 64, 4))
    for BK, stages in ((16, 3), (32, 3), (32, 2))
]


class NoTriton(RuntimeError):
    """Triton or PyTorch is missing; the message is one sentence."""


def triton_launcher(problem: Problem) -> Callable[[], None]:
    """Compile and tune for a problem -> what queues one launch. Raises NoTriton."""
    try:
        import torch
        import triton
    except ImportError as error:
        raise NoTriton(f"--triton compares with Triton, which needs PyTorch as well: {error}.") from None
    m, n, k = problem.shape
    a, b = (torch.from_dlpack(matrix) for matrix in (problem.A[:, :k], problem.B[:, :n]))
    c = torch.empty((m, n), dtype=torch.float32, device="cuda")
    kernel = _kernel()

    def grid(meta):
        return (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)

    def go():
        kernel[grid](a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0), GROUP=8)

    with torch.cuda.stream(torch.cuda.default_stream()):
        go()
    return go


@functools.cache
def _kernel():
    import triton
    import triton.language as tl

    configurations = [
        triton.Config({"BM": BM, "BN": BN, "BK": BK}, num_warps=warps, num_stages=stages)
        for BM, BN, BK, warps, stages in CHOICES
    ]

    @triton.autotune(configs=configurations, key=["m", "n", "k"])
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
    ):
        tile_rows, tile_cols = tl.cdiv(m, BM), tl.cdiv(n, BN)
        group = tl.program_id(0) // (GROUP * tile_cols)
        height = min(tile_rows - group * GROUP, GROUP)
        within = tl.program_id(0) % (GROUP * tile_cols)
        rows = (group * GROUP + within % height) * BM + tl.arange(0, BM)
        cols = within // height * BN + tl.arange(0, BN)
        steps = tl.arange(0, BK)
        a_at = a + rows[:, None] * lda + steps[None, :]
        b_at = b + steps[:, None] * ldb + cols[None, :]
        acc = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, k, BK):
            left = tl.load(a_at, (rows[:, None] < m) & (steps[None, :] < k - k0), 0.0)
            right = tl.load(b_at, (steps[:, None] < k - k0) & (cols[None, :] < n), 0.0)
            acc = tl.dot(left, right, acc, input_precision="ieee")
            a_at += BK
            b_at += BK * ldb
        tl.store(c + rows[:, None] * ldc + cols[None, :], acc, (rows[:, None] < m) & (cols[None, :] < n))

    return matmul
