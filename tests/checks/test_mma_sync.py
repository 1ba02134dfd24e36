"""The exercises of the notebook `mma_sync`: right answers in other styles, and what is said of them."""

import numpy as np
import pytest
from numba import cuda, float32
from numba.types import float16

from gemm_course import check
from gemm_course.kernels import LADDER
from lockstep.intrinsics import ldmatrix_x4, ldmatrix_x4_trans, mma_m16n8k16
from tests.checks.cells import checked_cells, verdict_of


@cuda.jit
def own_names(depth, left, right, result):
    tile_a = cuda.shared.array((16, 24), float16, 16)
    tile_b = cuda.shared.array((16, 24), float16, 16)
    x = cuda.local.array(8, float16)
    y = cuda.local.array(8, float16)
    sums = cuda.local.array((2, 4), float32)
    me = cuda.threadIdx.x
    top, side = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    sums[:, :] = 0
    for start in range(0, depth, 16):
        for e in range(8):
            tile_a[me // 2, me % 2 * 8 + e] = left[top + me // 2, start + me % 2 * 8 + e]
            tile_b[me // 2, me % 2 * 8 + e] = right[start + me // 2, side + me % 2 * 8 + e]
        cuda.syncwarp()
        ldmatrix_x4_trans(y, tile_b, (me & 15, me >> 4 << 3))
        ldmatrix_x4(x, tile_a, (me & 15, me >> 4 << 3))
        for j in range(2):
            mma_m16n8k16(sums[j], x, y[4 * j : 4 * j + 4])
        cuda.syncwarp()
    group, pair = divmod(me, 4)
    for j in range(2):
        at = side + 8 * j + 2 * pair
        result[top + group, at], result[top + group, at + 1] = sums[j, 0], sums[j, 1]
        result[top + group + 8, at], result[top + group + 8, at + 1] = sums[j, 2], sums[j, 3]


@cuda.jit
def element_by_element(k, A, B, C):
    a = cuda.local.array(8, float16)
    b = cuda.local.array(4, float16)
    acc = cuda.local.array(4, float32)
    As = cuda.shared.array((16, 24), float16, 16)
    Bs = cuda.shared.array((16, 24), float16, 16)
    lane = cuda.threadIdx.x
    g, p = lane // 4, lane % 4 * 2
    row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    for j in range(2):
        for e in range(4):
            acc[e] = 0
        for k0 in range(0, k, 16):
            for e in range(8):
                As[lane // 2, lane % 2 * 8 + e] = A[row0 + lane // 2, k0 + lane % 2 * 8 + e]
                Bs[lane // 2, lane % 2 * 8 + e] = B[k0 + lane // 2, col0 + lane % 2 * 8 + e]
            cuda.syncwarp()
            for e in range(8):
                a[e] = As[g + e // 2 % 2 * 8, p + e % 2 + e // 4 * 8]
            for e in range(4):
                b[e] = Bs[p + e % 2 + e // 2 * 8, j * 8 + g]
            mma_m16n8k16(acc, a, b)
            cuda.syncwarp()
        for e in range(4):
            C[row0 + g + e // 2 * 8, col0 + j * 8 + p + e % 2] = acc[e]


def test_a_product_with_other_names_and_loops_passes():
    assert check.by_hand(own_names).passed, check.by_hand(own_names).message


def test_a_product_that_loads_element_by_element_passes_and_is_told_what_it_costs():
    verdict = check.by_hand(element_by_element)
    assert verdict.passed, verdict.message
    assert "times per step, where two `ldmatrix_x4` are enough" in verdict.message


def test_stores_in_the_loop_pass_and_are_told_what_they_cost():
    lines = checked_cells("solution")["by_hand"].split("\n")
    first = next(place for place, line in enumerate(lines) if line.startswith("    for j in") and place > 20)
    end = next(place for place, line in enumerate(lines) if "C[row0" in line) + 1
    inside = [f"    {line}" for line in lines[first:end]]
    verdict = verdict_of("\n".join(lines[:first] + inside + lines[end:]))
    assert verdict.passed, verdict.message
    assert "C is stored 2 times" in verdict.message


def test_the_line_of_an_error_is_the_learners():
    def place(row, piece):
        return piece // 0

    verdict = check.swizzle(place)
    assert "return piece // 0" in str(verdict) and "`place(0, 0)`" in verdict.message


@pytest.mark.parametrize(
    "place",
    [
        lambda row, piece: piece ^ row % 8,
        lambda row, piece: piece ^ (row & 7),
        lambda row, piece: (piece - row) % 8,
        lambda row, piece: (piece + 3 * row) % 8,
        lambda row, piece: np.int64((piece + row) % 8),
    ],
)
def test_any_swizzle_without_conflicts_passes(place):
    assert check.swizzle(place).passed


def test_the_swizzles_of_the_ladder_pass():
    def as_in_the_stage(row, piece, pieces):
        repeat, span = max(1, 8 // pieces), min(8, pieces)
        return piece ^ (row // repeat % span)

    assert {BK // 8 for BK in LADDER["mma_swizzled"].options["BK"]} <= {2, 4, 8, 16, 32}
    assert check.swizzle_any(as_in_the_stage).passed
    rotated = check.swizzle_any(lambda row, piece, pieces: (piece + row // max(1, 8 // pieces)) % pieces)
    assert rotated.passed


def test_a_ring_may_close_an_empty_group_instead_of_asking_for_zeros():
    cell = checked_cells("solution")["ring_and_swizzle"]
    ask = next(line for line in cell.splitlines() if "(t + SLOTS - 1) % SLOTS" in line)
    inside = f"            if t + SLOTS - 1 < (k + 63) // 64:\n    {ask}\n            else:\n"
    verdict = verdict_of(cell.replace(ask, f"{inside}                cp_async_commit()"))
    assert verdict.passed, verdict.message


def test_a_ring_may_have_a_part_of_its_own():
    cell = checked_cells("solution")["ring_and_swizzle"]
    ask = next(line for line in cell.splitlines() if "(t + SLOTS - 1) % SLOTS" in line)
    part = """
    @cuda.jit(device=True)
    def ask(As, Bs, A, B, t, k):
        fetch_swizzled(As, Bs, t % SLOTS, A, B, t, k)
"""
    cell = cell.replace("    IN_FLIGHT = SLOTS - 2\n", f"    IN_FLIGHT = SLOTS - 2\n{part}")
    verdict = verdict_of(cell.replace(ask, "            ask(As, Bs, A, B, t + SLOTS - 1, k)"))
    assert verdict.passed, verdict.message


def test_numbers_may_be_rounded():
    assert check.product_clocks((382_790, 80_730, 76)).passed
    assert check.product_clocks([382790.0, 80730.0, 76.3]).passed
    least = 33_554_432 / 528 * 6  # without the products of the set that is still empty
    assert check.product_clocks((least, 463_520 - least, 63.0 * 463_520 / least)).passed
    busy = 0.83 * 463_520  # as the profile has it: pauses are judged with the clocks that were given
    assert check.product_clocks((busy, 463_520 - busy, 63 / 0.83)).passed
    assert not check.product_clocks((None, None, None)).passed
