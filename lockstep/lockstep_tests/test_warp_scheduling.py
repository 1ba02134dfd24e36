"""Warps that wait for each other: correct kernels run, each mistake is named, and a deadlock ends."""

import numpy as np
import pytest
from numba import cuda, float32, uint64
from numba.types import float16

from lockstep import Deadlock, emulate
from lockstep.errors import KernelTypeError
from lockstep.intrinsics import (
    fence_async,
    mbarrier_arrive,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_wait,
    tensor_map,
    tma_commit,
    tma_load,
    tma_store,
    tma_wait_read,
    u32,
    unroll,
    wgmma,
    wgmma_commit,
    wgmma_fence,
    wgmma_wait,
)
from lockstep_tests.intrinsics.test_hopper import random_float16

STEPS = 5


def pipeline(
    slots=2,
    wait_full=True,
    wait_empty=True,
    release_early=False,
    release=True,
    fence_products=True,
    wait_products=True,
    fence_barriers=True,
    barrier=True,
    expected=4096,
    expect_early=False,
):
    """A warpgroup multiplies tiles that a producer warp loads into a ring of slots; correct by default."""

    @cuda.jit
    def kernel(A, B, C):
        full = cuda.shared.array(slots, uint64)
        empty = cuda.shared.array(slots, uint64)
        As = cuda.shared.array((slots, 64, 16), float16, 1024)
        Bs = cuda.shared.array((slots, 1, 16, 64), float16, 1024)
        acc = cuda.local.array(32, float32)
        tid = u32(cuda.threadIdx.x)
        if tid == 0:
            for s in range(slots):
                mbarrier_init(full, s, 1)
                mbarrier_init(empty, s, 4)
            if fence_barriers:
                fence_async()
        if barrier:
            cuda.syncthreads()
        if tid >= 128:
            if tid == 128:
                for step in range(STEPS):
                    s = step % slots
                    if expect_early:
                        mbarrier_expect(full, s, expected)
                    if wait_empty:
                        mbarrier_wait(empty, s, step // slots % 2 ^ 1)
                    if not expect_early:
                        mbarrier_expect(full, s, expected)
                    tma_load(As, (s, 0, 0), A, (0, step * 16), full, s)
                    tma_load(Bs, (s, 0, 0, 0), B, (step * 16, 0), full, s)
        else:
            lane = tid % 32
            for e in unroll(range(32)):
                acc[e] = 0
            for step in range(STEPS):
                s = step % slots
                if wait_full:
                    mbarrier_wait(full, s, step // slots % 2)
                if fence_products:
                    wgmma_fence()
                wgmma(64, acc, As, (s, 0, 0), Bs, (s, 0, 0, 0))
                wgmma_commit()
                if release_early and lane == 0:
                    mbarrier_arrive(empty, s)
                if wait_products:
                    wgmma_wait(0)
                if release and not release_early and lane == 0:
                    mbarrier_arrive(empty, s)
            for e in unroll(range(32)):
                row = tid // 32 * 16 + lane // 4 + e // 2 % 2 * 8
                C[row, e // 4 * 8 + lane % 4 * 2 + e % 2] = acc[e]

    return kernel


def run(**mistakes):
    """(report, result, expected result)."""
    A, B, C = (
        random_float16(64, 16 * STEPS),
        random_float16(16 * STEPS, 64, seed=1),
        np.zeros((64, 64), np.float32),
    )
    maps = tensor_map(A, A.shape, (64, 16)), tensor_map(B, B.shape, (16, 64))
    report = emulate(pipeline(**mistakes), 1, 160, *maps, C)
    return report, C, A.astype(np.float64) @ B.astype(np.float64)


def kinds(report):
    return {(finding.kind, finding.array) for finding in report.findings}


@pytest.mark.parametrize("slots", [1, 2, 3, 8])
def test_producer_and_consumers_that_wait_for_each_other(slots):
    report, C, expected = run(slots=slots)
    assert report.findings == []
    np.testing.assert_allclose(C, expected, atol=1e-5)
    assert report.barriers == 1


def test_a_tile_read_without_waiting_is_read_too_early():
    report, C, expected = run(wait_full=False, slots=8)
    assert ("async_read_too_early", "As") in kinds(report)
    assert not np.allclose(C, expected, atol=1e-3)  # nothing had landed
    (finding,) = [f for f in report.findings if f.array == "Bs" and f.kind == "async_read_too_early"]
    assert "without having waited since at the mbarrier" in finding.message
    assert finding.other_line < finding.line


def test_a_slot_overwritten_without_waiting_is_still_in_use():
    """The consumers then miss a phase and deadlock; the message names the cause as well."""
    with pytest.raises(
        Deadlock, match=r"Found before that: line \d+: Warp 4 arrives at full\[0\], and nothing"
    ):
        run(wait_empty=False)


def test_bytes_announced_before_the_wait_arrive_in_a_phase_that_may_not_be_over():
    """The copies of the phase before may not have come: the wait at `empty` comes too late to tell."""
    report, C, expected = run(expect_early=True)
    assert kinds(report) == {("missing_wait", "full")}
    assert "the copies of phase 0 have come" in report.findings[0].message
    np.testing.assert_allclose(C, expected, atol=1e-5)


def test_arriving_before_the_products_have_finished_releases_the_slot_too_early():
    report, _, _ = run(release_early=True)
    (finding,) = [f for f in report.findings if f.array == "As"]
    assert finding.kind == "shared_race" and "Warp 4 lets TMA overwrite As[" in finding.message


def test_a_producer_whose_slots_are_never_released_deadlocks():
    with pytest.raises(Deadlock) as error:
        run(release=False)
    message = str(error.value)
    assert message.startswith("No warp of the block can continue, so a GPU would hang: ")
    assert "warps 0 to 3 wait in line" in message and "of full[0], which still needs 1 arrival" in message
    assert "warp 4 waits in line" in message and "of empty[0], which still needs 4 arrivals" in message


def test_expecting_bytes_that_no_copy_delivers_deadlocks():
    with pytest.raises(Deadlock, match="expects 16 bytes more than the copies deliver"):
        run(expected=4096 + 16)
    with pytest.raises(Deadlock, match="expects 16 bytes fewer than the copies deliver"):
        run(expected=4096 - 16)


@pytest.mark.parametrize(
    ("mistake", "kind", "array", "words"),
    [
        ({"fence_products": False}, "missing_fence", "acc", "no wgmma_fence() before the first product"),
        ({"fence_barriers": False}, "missing_fence", "full", "no fence_async() since"),
        ({"wait_products": False}, "async_read_too_early", "acc", "wgmma_wait(0) must come first"),
    ],
)
def test_the_message_names_what_is_missing(mistake, kind, array, words):
    report, _, _ = run(**mistake, slots=8)
    finding, *_ = [f for f in report.findings if (f.kind, f.array) == (kind, array)]
    assert words in finding.message


def test_mbarriers_must_be_initialised_before_other_warps_use_them():
    report, _, _ = run(barrier=False)
    assert ("shared_race", "full") in kinds(report) and ("shared_race", "empty") in kinds(report)


def test_accumulators_that_the_thread_changes_need_another_fence():
    @cuda.jit
    def kernel(fenced):
        As = cuda.shared.array((1, 64, 16), float16, 1024)
        Bs = cuda.shared.array((1, 16, 64), float16, 1024)
        acc = cuda.local.array(32, float32)
        tid = u32(cuda.threadIdx.x)
        for i in range(tid, 1024, 128):
            As[0, i // 16, i % 16] = 1
            Bs[0, i // 64, i % 64] = 1
        for e in unroll(range(32)):
            acc[e] = 0
        fence_async()
        cuda.syncthreads()
        for product in range(2):
            if product == 0 or fenced:
                wgmma_fence()
            wgmma(64, acc, As, (0, 0, 0), Bs, (0, 0, 0))
            wgmma_commit()
            wgmma_wait(0)
            for e in unroll(range(32)):
                acc[e] = -acc[e]

    assert emulate(kernel, 1, 128, True).findings == []
    (finding,) = emulate(kernel, 1, 128, False).findings
    assert finding.kind == "missing_fence" and "since the kernel itself wrote to it" in finding.message


def storing(fence=True, sync=True, wait_last=True, reuse=True):
    """Two warps, each of which fills a tile twice and stores it with TMA."""

    @cuda.jit
    def kernel(target, C):
        tiles = cuda.shared.array((2, 16, 64), float16, 1024)
        tid = u32(cuda.threadIdx.x)
        warp, lane = tid // 32, tid % 32
        for iteration in range(2):
            if reuse and lane == 0:
                tma_wait_read(0)
            cuda.syncwarp()
            for i in range(lane, 1024, 32):
                r, c = i // 64, i % 64
                tiles[warp, r, (c // 8 ^ r % 8) * 8 + c % 8] = float16(warp * 2 + iteration)
            if fence:
                fence_async()
            if sync:
                cuda.syncwarp()
            if lane == 0:
                tma_store(target, (iteration * 16, warp * 64), tiles, (warp, 0, 0))
                tma_commit()
        if wait_last and lane == 0:
            tma_wait_read(0)

    return kernel


def store(**mistakes):
    C = np.full((32, 128), np.nan, np.float16)
    report = emulate(storing(**mistakes), 1, 64, tensor_map(C, C.shape, (16, 64)), C)
    return {finding.kind for finding in report.findings}, C


def test_tiles_are_stored_and_reused():
    found, C = store()
    assert found == set()
    np.testing.assert_array_equal(C[::16, ::64], [[0, 2], [1, 3]])
    assert not np.isnan(C).any()


def test_mistakes_in_storing_are_found():
    assert store(fence=False)[0] == {"missing_fence"}
    assert store(wait_last=False)[0] == {"missing_wait"}
    found, C = store(reuse=False)
    assert found == {"shared_race"}
    assert C[0, 0] == 1  # the first copy read what the second iteration had written


def test_two_blocks_that_store_one_element_race():
    C = np.zeros((32, 128), np.float16)
    report = emulate(storing(), 2, 64, tensor_map(C, C.shape, (16, 64)), C)
    assert {(f.kind, f.array) for f in report.findings} == {("global_race", "C")}


def test_ordinary_barriers_and_memory_work_when_warps_run_one_at_a_time():
    @cuda.jit
    def kernel(out, careful):
        box = cuda.shared.array(96, float32)
        bars = cuda.shared.array(1, uint64)
        tid = u32(cuda.threadIdx.x)
        if tid == 0:
            mbarrier_init(bars, 0, 96)
        for iteration in range(3):
            box[tid] = tid + iteration
            cuda.syncthreads()
            out[iteration, tid] = box[95 - tid]
            if careful:
                cuda.syncthreads()
        mbarrier_arrive(bars, 0)

    out = np.zeros((3, 96), np.float32)
    report = emulate(kernel, 1, 96, out, True)
    assert report.findings == [] and report.barriers == 6
    np.testing.assert_array_equal(out, 95 - np.arange(96) + np.arange(3)[:, None])
    assert kinds(emulate(kernel, 1, 96, out, False)) == {("shared_race", "box")}


def test_a_barrier_that_part_of_a_block_never_reaches_is_found():
    @cuda.jit
    def kernel():
        bars = cuda.shared.array(1, uint64)
        if cuda.threadIdx.x == 0:
            mbarrier_init(bars, 0, 1)
        if cuda.threadIdx.x < 48:
            cuda.syncthreads()

    (finding,) = emulate(kernel, 1, 64).findings
    assert finding.kind == "barrier_in_branch" and "Only 48 of the 64 threads" in finding.message


def test_an_error_in_one_warp_ends_all_warps():
    @cuda.jit
    def kernel(A):
        tile = cuda.shared.array((16, 64), float16, 1024)
        bars = cuda.shared.array(1, uint64)
        tid = u32(cuda.threadIdx.x)
        if tid == 0:
            mbarrier_init(bars, 0, 1)
            fence_async()
        cuda.syncthreads()
        if tid >= 32:
            mbarrier_wait(bars, 0, 0)
        else:
            tma_load(tile, (0, 0), A, (0, 0), bars, 0)

    with pytest.raises(KernelTypeError, match="needs a tensor map"):
        emulate(kernel, 1, 128, random_float16(16, 64))


def test_counting_without_running_does_not_wait():
    A = np.broadcast_to(np.float16(0), (64, 16 * STEPS))
    B = np.broadcast_to(np.float16(0), (16 * STEPS, 64))
    maps = tensor_map(A, A.shape, (64, 16)), tensor_map(B, B.shape, (16, 64))
    counted = emulate(pipeline(), 1, 160, *maps, np.zeros((64, 64), np.float32), counts_only=True)
    ran, _, _ = run()
    columns = ["line", "space", "op", "array", "requests", "bytes", "sectors", "wavefronts"]
    assert counted.accesses[columns].equals(ran.accesses[columns])
    assert counted.flops == ran.flops == 2 * 64 * 64 * 16 * STEPS


def test_an_mbarrier_orders_accesses_to_global_memory():
    @cuda.jit
    def pass_on(out, wait):
        ready = cuda.shared.array(1, uint64)
        tid = u32(cuda.threadIdx.x)
        if tid == 0:
            mbarrier_init(ready, 0, 32)
        cuda.syncthreads()
        if tid < 32:
            old = out[tid]
            out[tid] = old + float32(1)
            mbarrier_arrive(ready, 0)
        elif wait:
            mbarrier_wait(ready, 0, 0)
            out[tid - 32] = float32(2) * out[tid - 32]
        else:
            out[tid - 32] = 5

    out = np.ones(32, np.float32)
    assert emulate(pass_on, 1, 64, out, True).findings == []
    assert (out == 4).all()
    assert kinds(emulate(pass_on, 1, 64, out, False)) == {("global_race", "out")}


def test_reads_after_the_arrival_are_not_ordered():
    @cuda.jit
    def too_late(out, found):
        ready = cuda.shared.array(1, uint64)
        tid = u32(cuda.threadIdx.x)
        if tid == 0:
            mbarrier_init(ready, 0, 32)
        cuda.syncthreads()
        if tid < 32:
            mbarrier_arrive(ready, 0)
            found[tid] = out[tid]
        else:
            mbarrier_wait(ready, 0, 0)
            out[tid - 32] = 5

    report = emulate(too_late, 1, 64, np.ones(32, np.float32), np.zeros(32, np.float32))
    assert kinds(report) == {("global_race", "out")}


def test_lanes_of_one_warp_do_not_order_each_other():
    @cuda.jit
    def neighbours(out):
        ready = cuda.shared.array(1, uint64)
        tid = u32(cuda.threadIdx.x)
        if tid == 0:
            mbarrier_init(ready, 0, 32)
        out[tid] = 1
        out[(tid + 1) % 32] = 2
        mbarrier_arrive(ready, 0)

    assert kinds(emulate(neighbours, 1, 32, np.zeros(32, np.float32))) == {("global_race", "out")}
