"""Shows how this GPU's Tensor Cores add: writes sums with which `gemm_course.model.tensor_cores` must agree.

python -m measuring.tensor_core_sums data/h200/tensor_core_sums.csv
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numba import cuda, float32
from numba.types import float16

from gemm_course.bench.options import command_line
from gemm_course.device import gpu_facts
from gemm_course.records import origin
from gemm_course.records.columns import TENSOR_CORE_SUMS
from lockstep.intrinsics import ROW_MAJOR, wmma_load_a, wmma_load_b, wmma_mma, wmma_store

DEPTH = 4096  # the number of products of a long sum
CASES = {  # name -> the accumulator, and the factors of each product
    "1 + 0.75 steps": (1, [(2**-12, 2**-12), (2**-13, 2**-12)]),
    "-1 - 0.75 steps": (-1, [(-(2**-12), 2**-12), (-(2**-13), 2**-12)]),
    "1 + 16 times step / 8": (1, [(2**-13, 2**-13)] * 16),
    "1 + 16 times step / 4": (1, [(2**-13, 2**-12)] * 16),
    "1 + 16 times step / 2": (1, [(2**-12, 2**-12)] * 16),
    "2^26 - 2^26 + 1": (2**26, [(-(2**13), 2**13), (1, 1)]),
    "2^25 - 2^25 + 1": (2**25, [(-(2**13), 2**12), (1, 1)]),
}


@cuda.jit
def product(c, A, B, C):
    """Compute C = c + A · B, with one warp and one tile of 16 by 16."""
    As = cuda.shared.array((16, 16), float16, 32)
    Bs = cuda.shared.array((16, 16), float16, 32)
    Cs = cuda.shared.array((16, 16), float32, 32)
    a = cuda.local.array(16, float16)
    b = cuda.local.array(16, float16)
    acc = cuda.local.array(8, float32)
    r, column = cuda.threadIdx.x // 2, cuda.threadIdx.x % 2 * 8
    for e in range(8):
        acc[e] = c[0]
    for k0 in range(0, A.shape[1], 16):
        for e in range(8):
            As[r, column + e], Bs[r, column + e] = A[r, k0 + column + e], B[k0 + r, column + e]
        cuda.syncwarp()
        wmma_load_a(a, As, (0, 0), ROW_MAJOR)
        wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
        wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)
        cuda.syncwarp()
    wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
    cuda.syncwarp()
    for e in range(8):
        C[r, column + e] = Cs[r, column + e]


def one_sum(c: float, factors: list[tuple[float, float]]) -> float:
    """Return the GPU's result for c + the sum of these products."""
    A, B = np.zeros((16, 16), np.float16), np.zeros((16, 16), np.float16)
    A[0, : len(factors)], B[: len(factors), 0] = zip(*factors, strict=True)
    C = np.zeros((16, 16), np.float32)
    product[1, 32](np.array([c], np.float32), A, B, C)
    return float(C[0, 0])


def mean_error() -> float:
    """Return the mean relative error of 256 long sums of products of numbers between 0 and 1."""
    rng = np.random.default_rng(0)
    A, B = (rng.random(shape).astype(np.float16) for shape in ((16, DEPTH), (DEPTH, 16)))
    C = np.zeros((16, 16), np.float32)
    product[1, 32](np.zeros(1, np.float32), A, B, C)
    return float((C / (A.astype(float) @ B.astype(float)) - 1).mean())


def main(path: Path) -> None:
    """Write a row per case."""
    gpu = gpu_facts()
    beside = origin(gpu.name, gpu.driver, gpu.cuda, command_line("python -m measuring.tensor_core_sums"))
    rows = [
        {
            "case": name,
            "accumulator": c,
            "products": " ".join(repr(float(x * y)) for x, y in factors),
            "k": 16,
            "result": repr(one_sum(c, factors)),
            "mean_relative_error": None,
        }
        for name, (c, factors) in CASES.items()
    ]
    rows.append(
        {
            "case": "between 0 and 1",
            "accumulator": 0,
            "products": "",
            "k": DEPTH,
            "result": "",
            "mean_relative_error": mean_error(),
        }
    )
    TENSOR_CORE_SUMS.write(path, [row | beside for row in rows])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
