"""Kernels that learners write and that no stage of the ladder is: their solutions on a real GPU."""

import numpy as np
import pytest
from numba import cuda

from gemm_course.checks.kits import staying_blocks, two_roles
from gemm_course.device import launch, on_device
from gemm_course.widgets._card import card_of
from lockstep.intrinsics import tensor_map
from tests.checks.cells import verdict_of
from tests.wrong_solutions.altering import solution

pytestmark = pytest.mark.gpu


def made(exercise: str, names: str):
    """Run the solution's cell without its check, and return what it defines under these names."""
    return verdict_of(solution(exercise).rpartition("check.")[0] + names)


@pytest.mark.parametrize("sizes", [(2, 4), (3, 8), (4, 16)], ids=str)
def test_reading_ahead(sizes):
    m, n, k = 333, 217, 129
    rng = np.random.default_rng(5)
    A, B = (rng.standard_normal(shape, np.float32) for shape in ((m, k), (k, n)))
    C = cuda.to_device(np.full((m, n), np.nan, np.float32))
    kernel = made("reads_ahead", "make_reads_ahead")(*sizes)
    kernel[(-(-n // 32), -(-m // 32)), (8, 8)](m, n, k, cuda.to_device(A), cuda.to_device(B), C)
    assert np.allclose(C.copy_to_host(), A @ B, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("slots", "blocks", "k"), [(2, 7, 192), (3, 1, 320), (4, 5, 448)])
def test_a_ring_that_goes_on_from_tile_to_tile(slots, blocks, k):
    m, n = 256, 448
    rng = np.random.default_rng(k)
    A, B = (rng.uniform(-2, 2, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    A, B, C = on_device([A, B, np.full((m, n), np.nan, np.float32)])
    maps = tensor_map(A, (m, k), (64, 64)), tensor_map(B, (k, n), (64, 64))
    kernel = staying_blocks(slots, *made("ring_goes_on", "(produce, consume)"))
    arguments = (k, n // 64, m // 64 * (n // 64), *maps, C)
    launch(kernel, (blocks,), (160,), arguments, slots * 2 * 64 * 64 * 2)
    exact = A.copy_to_host().astype(float) @ B.copy_to_host()
    assert np.allclose(C.copy_to_host(), exact, rtol=1e-3, atol=1e-1)


@pytest.mark.parametrize(("slots", "k"), [(2, 192), (4, 448)])
def test_a_producer_and_consumers(slots, k):
    m, n = 128, 192
    rng = np.random.default_rng(k)
    A, B = (rng.uniform(-2, 2, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    A, B, C = on_device([A, B, np.full((m, n), np.nan, np.float32)])
    maps = tensor_map(A, (m, k), (64, 64)), tensor_map(B, (k, n), (64, 64))
    kernel = two_roles(slots, made("producer", "produce"), made("consumer", "consume"))
    launch(kernel, (n // 64, m // 64), (160,), (k, *maps, C), slots * 2 * 64 * 64 * 2)
    exact = A.copy_to_host().astype(float) @ B.copy_to_host()
    assert np.allclose(C.copy_to_host(), exact, rtol=1e-3, atol=1e-1)


@pytest.mark.parametrize("tiles", [(64, 32, 32, 32, 32, 8), (128, 128, 64, 64, 32, 8)], ids=str)
def test_several_warps(tiles):
    m, n, k = 333, 216, 128
    rng = np.random.default_rng(5)
    A, B = (rng.uniform(-2, 2, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    BM, BN, _, WM, WN, _ = tiles
    C = cuda.to_device(np.full((m, n), np.nan, np.float32))
    grid, threads = (-(-n // BN), -(-m // BM)), BM // WM * (BN // WN) * 32
    made("several_warps", "make_wmma")(*tiles)[grid, threads](
        m, n, k, cuda.to_device(A), cuda.to_device(B), C
    )
    assert np.allclose(C.copy_to_host(), A.astype(float) @ B, rtol=1e-3, atol=1e-1)


@pytest.mark.parametrize("slots", [2, 4])
def test_a_ring_of_swizzled_tiles(slots):
    m, n, k = 160, 192, 328
    rng = np.random.default_rng(5)
    A, B = (rng.uniform(-2, 2, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    C = cuda.to_device(np.full((m, n), np.nan, np.float32))
    kernel = made("ring_and_swizzle", "make_ring")(slots)
    kernel[(n // 64, m // 16), 32](k, cuda.to_device(A), cuda.to_device(B), C)
    assert np.allclose(C.copy_to_host(), A.astype(float) @ B, rtol=1e-3, atol=1e-1)


def test_a_raised_roof():
    m, n, k = 333, 217, 129
    rng = np.random.default_rng(13)
    A, B = (rng.standard_normal(shape, np.float32) for shape in ((m, k), (k, n)))
    mine = made("raised_roof", "mine")
    assert np.allclose(mine(A, B), A @ B, rtol=1e-4, atol=1e-3)
    line = card_of(mine).line
    assert "TFLOPS at 4096³ on " in line and "of cuBLAS there" in line and "not measured" not in line
