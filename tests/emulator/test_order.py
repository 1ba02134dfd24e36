"""What orders two accesses besides a barrier: syncwarp, fences with atomics, and what they do not order."""

import numpy as np
import pytest
from numba import cuda, float32, int32

from gemm_course.emulator import emulate
from tests.emulator.corpus import ramp, zeros
from tests.emulator.test_findings import only

FULL = 0xFFFFFFFF


def racing(report):
    """{(kind, array)} of the errors."""
    return {(finding.kind, finding.array) for finding in report.errors}


# ---- syncwarp ----


@cuda.jit
def neighbours_through_global_memory(x, out, mask, synchronised):
    i = cuda.grid(1)
    x[i] += float32(1)
    if synchronised:
        cuda.syncwarp(mask)
    out[i] = x[i ^ 1]


def test_syncwarp_orders_global_memory():
    x, out = ramp(128), zeros(128)
    assert not emulate(neighbours_through_global_memory, 2, 64, x, out, FULL, True).findings
    assert (out.reshape(-1, 2) == x.reshape(-1, 2)[:, ::-1]).all()
    found = emulate(neighbours_through_global_memory, 2, 64, ramp(128), zeros(128), FULL, False)
    assert racing(found) == {("global_race", "x")}


def test_syncwarp_orders_no_other_warp():
    @cuda.jit
    def kernel(x, out):
        t = cuda.threadIdx.x
        x[t] = t
        cuda.syncwarp()
        out[t] = x[t ^ 32]

    assert racing(emulate(kernel, 1, 64, zeros(64), zeros(64))) == {("global_race", "x")}


@cuda.jit
def reduce_in_halves(x, out, distance):
    tile = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    mask = 0xFFFF if t < 16 else 0xFFFF0000
    cuda.syncwarp(mask)
    out[t] = tile[t ^ distance]


def test_syncwarp_orders_the_lanes_of_its_mask_only():
    assert not emulate(reduce_in_halves, 1, 32, ramp(32), zeros(32), 8).findings
    found = emulate(reduce_in_halves, 1, 32, ramp(32), zeros(32), 16)
    assert racing(found) == {("shared_race", "tile")}
    assert only(found, "shared_race").count == 32


# ---- the last block ----


def last_block_sums(fence=True, barrier=True, wait_first=True):
    """Every block leaves its sum; the last one to take a ticket adds them up. Right by default."""

    @cuda.jit
    def kernel(x, partial, counter, total):
        tile = cuda.shared.array(64, float32)
        last = cuda.shared.array(1, int32)
        t = cuda.threadIdx.x
        tile[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        if t < 2:
            subtotal = float32(0)
            for i in range(t, 64, 2):
                subtotal += tile[i]
            partial[cuda.blockIdx.x * 2 + t] = subtotal
            if fence:
                cuda.threadfence()
        if wait_first:
            cuda.syncthreads()
        if t == 0:
            ticket = cuda.atomic.add(counter, 0, 1)
            last[0] = ticket == cuda.gridDim.x - 1
        if barrier:
            cuda.syncthreads()
        if t == 0 and last[0] == 1:
            result = float32(0)
            for i in range(2 * cuda.gridDim.x):
                result += partial[i]
            total[0] = result

    return kernel


def run_last_block(**mistakes):
    x, total = ramp(64 * 9), zeros(1)
    report = emulate(last_block_sums(**mistakes), 9, 64, x, zeros(18), zeros(1, dtype=np.int32), total)
    return report, total[0] == x.sum()


def test_a_ticket_after_a_fence_orders_the_blocks():
    report, right = run_last_block()
    assert right and not report.findings, [str(finding) for finding in report.findings]


@pytest.mark.parametrize("mistake", ["fence", "barrier", "wait_first"])
def test_a_ticket_with_something_missing_does_not(mistake):
    """No fence before it; nothing after it; or the fence and the ticket are those of different threads."""
    report, _ = run_last_block(**{mistake: False})
    assert racing(report) == {("global_race", "partial")}


# ---- flags and locks within what lock-step can run ----


def test_a_flag_hands_over_what_was_stored_before_its_fence():
    def hand_over(before, after, wide=True):
        @cuda.jit
        def kernel(box, flag, out):
            if cuda.threadIdx.x == 0:
                if cuda.blockIdx.x == 0:
                    box[0] = 7
                    if before and wide:
                        cuda.threadfence()
                    elif before:
                        cuda.threadfence_block()
                    cuda.atomic.exch(flag, 0, 1)
                else:
                    seen = cuda.atomic.add(flag, 0, 0)
                    if after:
                        cuda.threadfence()
                    if seen == 1:
                        out[cuda.blockIdx.x] = box[0]

        return racing(emulate(kernel, 3, 32, zeros(1), zeros(1, dtype=np.int32), zeros(3)))

    race = {("global_race", "box")}
    assert not hand_over(True, True)
    assert hand_over(False, True) == hand_over(True, False) == race
    assert hand_over(True, True, wide=False) == race


def test_a_store_after_the_fence_is_not_handed_over():
    @cuda.jit
    def kernel(box, flag, out):
        if cuda.threadIdx.x == 0:
            if cuda.blockIdx.x == 0:
                cuda.threadfence()
                box[0] = 7
                cuda.atomic.exch(flag, 0, 1)
            else:
                cuda.atomic.add(flag, 0, 0)
                cuda.threadfence()
                out[0] = box[0]

    found = emulate(kernel, 2, 32, zeros(1), zeros(1, dtype=np.int32), zeros(1))
    assert racing(found) == {("global_race", "box")}


def test_a_fence_within_the_block_orders_its_warps():
    def kinds(fenced):
        @cuda.jit
        def kernel(out):
            box = cuda.shared.array(1, float32)
            flag = cuda.shared.array(1, int32)
            t = cuda.threadIdx.x
            if t == 0:
                flag[0] = 0
            cuda.syncthreads()
            if t == 0:
                box[0] = 7
                if fenced:
                    cuda.threadfence_block()
                cuda.atomic.exch(flag, 0, 1)
            if t == 32:
                cuda.atomic.add(flag, 0, 0)
                cuda.threadfence_block()
                out[0] = box[0]

        return racing(emulate(kernel, 1, 64, zeros(1)))

    assert not kinds(True)
    assert kinds(False) == {("shared_race", "box")}


def test_many_readers_are_all_waited_for():
    """Every block reads the box; block 3 stores to it when all have said that they are done."""

    def kinds(enough):
        @cuda.jit
        def kernel(box, done, out):
            t = cuda.threadIdx.x
            out[cuda.grid(1)] = box[0]
            cuda.syncthreads()
            if t == 0 and cuda.blockIdx.x < enough:
                cuda.threadfence()
                cuda.atomic.add(done, 0, 1)
            if t == 0 and cuda.blockIdx.x == 3:
                cuda.atomic.add(done, 0, 0)
                cuda.threadfence()
                box[0] = 1

        report = emulate(kernel, 4, 64, zeros(1), zeros(1, dtype=np.int32), zeros(256))
        return racing(report)

    assert not kinds(4)
    assert kinds(2) == {("global_race", "box")}


@pytest.mark.parametrize("everyone", [False, True])
def test_the_last_one_to_take_a_ticket_may_reset_the_counter(everyone):
    @cuda.jit
    def kernel(counter, everyone):
        if cuda.threadIdx.x == 0:
            cuda.threadfence()
            ticket = cuda.atomic.add(counter, 0, 1)
            if everyone or ticket == cuda.gridDim.x - 1:
                counter[0] = 0

    found = emulate(kernel, 5, 32, zeros(1, dtype=np.int32), everyone)
    assert racing(found) == ({("global_race", "counter")} if everyone else set())


def test_the_last_of_many_updates_does_not_hide_the_others():
    """The thread that reads has itself been the last to update the element."""

    @cuda.jit
    def kernel(count, out, barrier):
        i = cuda.grid(1)
        cuda.atomic.add(count, 0, 1)
        if barrier:
            cuda.syncthreads()
        if i == cuda.gridsize(1) - 1:
            out[0] = count[0]

    def found(blocks, barrier):
        return racing(emulate(kernel, blocks, 64, zeros(1, dtype=np.int32), zeros(1), barrier))

    race = {("global_race", "count")}
    assert found(1, False) == found(2, False) == found(2, True) == race
    assert not found(1, True)
