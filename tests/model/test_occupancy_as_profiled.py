"""The model's tanks against what Nsight Compute says of every kernel that was profiled on the H200.

It counts shared memory as the driver divided it for that launch: the rest of the 256 KB is the L1 cache, and
the driver gives a kernel at least what its other resources allow it to use. So its limit may lie below the
model's, which is for all 228 KB.
"""

import math
import re

import pytest

from gemm_course import records
from gemm_course.model import GPUS, Occupancy, occupancy

H200 = GPUS["H200"]
# What the driver may set aside on compute capability 9.0, in KB (CUDA C++ programming guide).
SET_ASIDE = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)
LIMITS = {"limit_registers": "registers", "limit_warps": "threads", "limit_blocks": "blocks"}


def ours(row) -> Occupancy:
    threads = math.prod(map(int, re.findall(r"\d+", row["block"])))
    return occupancy(
        threads, row["registers"], row["static_shared_bytes"] + row["dynamic_shared_bytes"], H200
    )


def disagreements(row) -> list[str]:
    """In what a profiled kernel differs from the model."""
    model = ours(row)
    wrong = [column for column, name in LIMITS.items() if row[column] != model.limits[name]]
    if row["limit_shared_memory"] not in shared_memory_limits(row):
        wrong.append("limit_shared_memory")
    if min(row[column] for column in (*LIMITS, "limit_shared_memory")) != model.blocks:
        wrong.append("blocks")
    if row["warps_possible"] * H200.limits.partitions != model.warps:
        wrong.append("warps_possible")
    return wrong


def shared_memory_limits(row) -> set[int]:
    """How many blocks fit into each size that the driver may choose."""
    taken = row["static_shared_bytes"] + row["dynamic_shared_bytes"] + H200.limits.reserved_shared_bytes
    per_block = -(-taken // H200.limits.shared_unit) * H200.limits.shared_unit
    return {size * 1024 // per_block for size in SET_ASIDE}


def test_every_profiled_kernel_agrees_with_the_model():
    rows = records.profiles().to_dict("records")
    if not rows:
        pytest.skip("no kernel has been profiled yet: data/h200/profile/kernels.csv is not there")
    differ = {f"{row['stage']} {row['tiles']}": found for row in rows if (found := disagreements(row))}
    assert not differ


ROW = {
    "block": "(256, 1, 1)",
    "registers": 128,
    "static_shared_bytes": 33280,
    "dynamic_shared_bytes": 0,
    "limit_registers": 2,
    "limit_shared_memory": 3,
    "limit_warps": 8,
    "limit_blocks": 32,
    "warps_possible": 4.0,
}


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, []),
        ({"limit_shared_memory": 6}, []),  # with all 228 KB
        ({"limit_shared_memory": 7}, ["limit_shared_memory"]),
        ({"limit_shared_memory": 5}, []),  # 196 KB
        ({"limit_shared_memory": 1}, ["blocks"]),  # 64 KB, less than its registers let it use
        ({"limit_registers": 3}, ["limit_registers", "blocks"]),
        ({"limit_warps": 6}, ["limit_warps"]),
        ({"limit_blocks": 24}, ["limit_blocks"]),
        ({"warps_possible": 8.0}, ["warps_possible"]),
        ({"registers": 120}, []),  # per warp, 3,840 registers: a multiple of 256
        ({"registers": 80}, ["limit_registers", "blocks", "warps_possible"]),
    ],
)
def test_a_row_that_differs_is_found(changed, found):
    assert disagreements(ROW | changed) == found
