"""Tells how much of a product one machine instruction computes, and the fewest clocks that it takes.

The clocks for FP32 are from the "CUDA C++ Programming Guide", "Throughput of native arithmetic instructions".
Those for FP16 on Tensor Cores are from NVIDIA's white papers, of the A100 with 256 multiply-adds per clock
and Tensor Core, and of the H100 with twice that. A multiprocessor has a Tensor Core for each of its four
schedulers. On an H200 a product of one warp, HMMA, was measured to take half as long again, 6 clocks for 4:
by the counter of its Tensor Cores, and on registers alone (``data/h200/compute_roofs.csv``). One of four
warps, HGMMA, keeps to the data sheet.
"""

from __future__ import annotations

import re

from lockstep.limits import LIMITS

LANES = 32
# This many warps compute one product together.
WARPS_OF_WGMMA = 4
_PER_LANE = {"FFMA": 1, "FFMA32I": 1, "DFMA": 1, "HFMA2": 2}
_TENSOR_CORE_RATE = {(8, 0): 256, (9, 0): 512}
# So many times as long as the data sheet says, measured.
_PRODUCTS_OF_ONE_WARP = {(9, 0): 1.5}
_PRODUCT = re.compile(r"HMMA\.(16)(8)(16|8)\b|HGMMA\.(64)x(\d+)x(\d+)\b")


def multiply_adds(opcode: str) -> int | None:
    """Return how many multiply-adds a warp does with this instruction, all lanes together.

    Of a product of four warps, "HGMMA.64x256x16.F32", it is one warp's part. Return None for other
    instructions.
    """
    product = _PRODUCT.match(opcode)
    if product:
        m, n, k = (int(size) for size in product.groups() if size)
        return m * n * k // (WARPS_OF_WGMMA if opcode.startswith("HGMMA") else 1)
    per_lane = _PER_LANE.get(opcode.split(".")[0])
    return None if per_lane is None else LANES * per_lane


def least_clocks(opcode: str, compute_capability: tuple[int, int]) -> float | None:
    """Return the clocks that a multiprocessor's quarter needs at least for this instruction of one warp.

    This is known for FP32 multiply-adds, and for FP16 products of compute capability 8.0 and 9.0. Otherwise
    return None.
    """
    if opcode.startswith("FFMA"):
        limits = LIMITS[compute_capability]
        return LANES * limits.partitions / limits.fp32_lanes
    done, rate = multiply_adds(opcode), _TENSOR_CORE_RATE.get(compute_capability)
    if not _PRODUCT.match(opcode) or rate is None or "TF32" in opcode:
        return None
    longer = 1 if opcode.startswith("HGMMA") else _PRODUCTS_OF_ONE_WARP.get(compute_capability, 1)
    return done / rate * longer
