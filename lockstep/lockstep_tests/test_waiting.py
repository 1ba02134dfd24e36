"""Threads that wait for others: flags, locks, grid barriers, and kernels that would hang."""

import itertools
import sys
import threading

import numpy as np
import pytest
from numba import cuda, float32, int32, int64, uint64

from lockstep import Deadlock, KernelRaised, KernelStopped, LaunchError, emulate
from lockstep.intrinsics import mbarrier_arrive, mbarrier_init, mbarrier_wait
from lockstep.machine import control
from lockstep.values import unit
from lockstep.waiting.scheduler import Scheduler
from lockstep_tests.corpus import ramp, zeros

FULL = 0xFFFFFFFF


def integers(*shape):
    return zeros(*shape, dtype=np.int32)


def racing(report):
    return {(finding.kind, finding.array) for finding in report.errors}


# ---- flags between blocks ----


@cuda.jit
def chain(flags, values, forward):
    """Every block waits for the one before it, or after it, and adds one to its value."""
    if cuda.threadIdx.x == 0:
        b = cuda.blockIdx.x if forward else cuda.gridDim.x - 1 - cuda.blockIdx.x
        if b > 0:
            while cuda.atomic.add(flags, b - 1, 0) == 0:
                pass
            cuda.threadfence()
            values[b] = values[b - 1] + 1
        cuda.threadfence()
        cuda.atomic.exch(flags, b, 1)


@pytest.mark.parametrize("forward", [True, False])
def test_blocks_that_wait_for_another_block(forward):
    values = integers(9)
    report = emulate(chain, 9, 32, integers(9), values, forward)
    assert not report.findings, [str(finding) for finding in report.findings]
    assert (values == np.arange(9)).all()


@cuda.jit
def wait_for_the_next(flags, out):
    b = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        while cuda.atomic.add(flags, (b + 1) % cuda.gridDim.x, 0) == 0:
            pass
        cuda.atomic.exch(flags, b, 1)
    out[b] = 1


def test_a_ring_of_blocks_that_wait_is_a_deadlock():
    flags, out = integers(3), zeros(3)
    with pytest.raises(Deadlock) as error:
        emulate(wait_for_the_next, 3, 32, flags, out)
    message = str(error.value)
    line = wait_for_the_next.py_func.__code__.co_firstlineno + 4
    assert message.startswith("No thread can continue, so a GPU would hang: ")
    for block, element in ((0, 1), (1, 2), (2, 0)):
        assert (
            f"thread (0, 0, 0) of block ({block}, 0, 0) waits in line {line} for flags[{element}] to change, "
            "which no thread has stored to"
        ) in message, message
    assert not flags.any() and not out.any()


def test_a_flag_that_was_stored_before_its_value_is_still_a_race():
    @cuda.jit
    def kernel(flag, box, out):
        if cuda.threadIdx.x == 0:
            if cuda.blockIdx.x == 1:
                box[0] = 7
                cuda.atomic.exch(flag, 0, 1)
            else:
                while cuda.atomic.add(flag, 0, 0) == 0:
                    pass
                out[0] = box[0]

    out = zeros(1)
    assert racing(emulate(kernel, 2, 32, integers(1), zeros(1), out)) == {("global_race", "box")}
    assert out[0] == 7


def test_what_a_thread_was_told_it_passes_on():
    @cuda.jit
    def kernel(flags, box, out, passes_on):
        b = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            if b == 0:
                box[0] = 7
                cuda.threadfence()
                cuda.atomic.exch(flags, 0, 1)
            else:
                while cuda.atomic.add(flags, b - 1, 0) == 0:
                    pass
                if b == 2 or passes_on:
                    cuda.threadfence()
                cuda.atomic.exch(flags, b, 1)
                if b == 2:
                    out[0] = box[0]

    def kinds(passes_on):
        return racing(emulate(kernel, 3, 32, integers(3), zeros(1), zeros(1), passes_on))

    assert not kinds(True)
    assert kinds(False) == {("global_race", "box")}


# ---- locks ----


def locked(fences=True, release=True):
    @cuda.jit
    def kernel(lock, total, x):
        i = cuda.grid(1)
        value = x[i]
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        if fences:
            cuda.threadfence()
        total[0] += value
        if fences:
            cuda.threadfence()
        if release:
            cuda.atomic.exch(lock, 0, 0)

    return kernel


def test_a_lock_that_every_lane_of_every_warp_takes():
    lock, total = integers(1), zeros(1)
    report = emulate(locked(), 2, 34, lock, total, ramp(68))
    assert not report.findings, [str(finding) for finding in report.findings]
    assert total[0] == ramp(68).sum() and lock[0] == 0


def test_a_lock_without_fences_is_a_race():
    report = emulate(locked(fences=False), 1, 12, integers(1), zeros(1), ramp(12))
    assert racing(report) == {("global_race", "total")}


def test_a_lock_that_is_never_released():
    with pytest.raises(
        Deadlock, match=r"lock\[0\] to change, which thread \(0, 0, 0\) of block \(0, 0, 0\) did"
    ):
        emulate(locked(release=False), 1, 40, integers(1), zeros(1), ramp(40))


def test_lanes_that_take_a_lock_are_counted_as_warps_before_it():
    """The values are loaded warp by warp; in the lock every lane is alone."""
    report = emulate(locked(), 1, 40, integers(1), zeros(1), ramp(40))
    loads = report.accesses.query("op == 'load'").set_index("array")["requests"]
    assert loads["x"] == 2 and loads["total"] == 40


def test_a_lock_between_warps_of_a_block_in_shared_memory():
    @cuda.jit
    def kernel(out):
        lock = cuda.shared.array(1, int32)
        total = cuda.shared.array(1, float32)
        t = cuda.threadIdx.x
        if t == 0:
            lock[0] = 0
            total[0] = 0
        cuda.syncthreads()
        if t % 32 == 0:
            while cuda.atomic.cas(lock, 0, 0, 1) != 0:
                pass
            cuda.threadfence_block()
            total[0] += t
            cuda.threadfence_block()
            cuda.atomic.exch(lock, 0, 0)
        cuda.syncthreads()
        out[t] = total[0]

    out = zeros(128)
    report = emulate(kernel, 1, 128, out)
    assert not report.errors, [str(finding) for finding in report.findings]
    assert (out == 192).all() and report.barriers == 2


def test_a_lane_that_waits_for_another_lane_of_its_warp():
    @cuda.jit
    def kernel(out):
        flag = cuda.shared.array(1, int32)
        t = cuda.threadIdx.x
        if t == 0:
            flag[0] = 0
        cuda.syncwarp()
        if t == 3:
            while cuda.atomic.add(flag, 0, 0) != 5:
                pass
            out[t] = 1
        else:
            cuda.atomic.add(flag, 0, int(t < 5) + int(t == 6))
            out[t] = 2
        cuda.syncwarp()
        out[t] += cuda.shfl_sync(FULL, t, 7)

    out = integers(32)
    report = emulate(kernel, 1, 32, out)
    assert not report.errors, [str(finding) for finding in report.findings]
    assert (out == np.where(np.arange(32) == 3, 8, 9)).all()


def test_a_loop_that_counts_its_attempts_waits_as_well(monkeypatch):
    monkeypatch.setattr(control, "PATIENCE", 20)

    @cuda.jit
    def kernel(flag, attempts):
        if cuda.threadIdx.x == 0:
            if cuda.blockIdx.x == 0:
                n = 0
                while cuda.atomic.add(flag, 0, 0) == 0:
                    n += 1
                attempts[0] = n
            else:
                cuda.atomic.exch(flag, 0, 1)

    attempts = integers(1)
    assert emulate(kernel, 2, 32, integers(1), attempts).ok
    assert attempts[0] > 0


def test_iterations_that_run_at_once_store_before_a_thread_waits():
    @cuda.jit
    def kernel(x, out, lock):
        v = x[cuda.threadIdx.x]
        for b in range(8):
            if b == v:
                out[cuda.blockIdx.x, b] = 1
        while cuda.atomic.compare_and_swap(lock, 0, 1) != 0:
            pass
        cuda.atomic.exch(lock, 0, 0)

    out = zeros(2, 8)
    emulate(kernel, 2, 1, np.array([3]), out, integers(1))
    assert (out == (np.arange(8) == 3)).all()


def test_a_loop_that_ends_without_others_is_left_alone(monkeypatch):
    """A list is followed in an array that the kernel also stores to, for longer than others would wait."""
    monkeypatch.setattr(control, "PATIENCE", 20)

    @cuda.jit
    def kernel(follow, steps):
        i = cuda.grid(1)
        n = 0
        at = i
        while follow[at] != at:
            at = follow[at]
            n += 1
        steps[i] = n
        follow[i] = follow[i]

    follow = np.minimum(np.arange(300) + 1, 299)
    steps = np.zeros(1, np.int64)
    report = emulate(kernel, 1, 1, follow, steps)
    assert report.ok and steps[0] == 299


def test_more_blocks_than_a_gpu_holds_cannot_all_wait():
    """The last block, for which all others wait, never begins."""

    @cuda.jit
    def kernel(flag):
        if cuda.threadIdx.x == 0:
            if cuda.blockIdx.x < cuda.gridDim.x - 1:
                while cuda.atomic.add(flag, 0, 0) == 0:
                    pass
            else:
                cuda.atomic.exch(flag, 0, 1)

    shape = {"shared_bytes": 40_000, "gpu": "t4"}
    assert emulate(kernel, 40, 32, integers(1), **shape).ok
    with pytest.raises(Deadlock, match="1 of the 41 blocks have not begun, because a GPU holds 40"):
        emulate(kernel, 41, 32, integers(1), **shape)


# ---- the whole grid ----


@cuda.jit
def jacobi(a, b, steps):
    i = cuda.grid(1)
    grid = cuda.cg.this_grid()
    for _ in range(steps):
        if 0 < i < a.shape[0] - 1:
            b[i] = float32(0.5) * (a[i - 1] + a[i + 1])
        grid.sync()
        if 0 < i < a.shape[0] - 1:
            a[i] = b[i]
        grid.sync()


@pytest.mark.parametrize("block", [32, 100, 1024])
def test_a_grid_barrier_orders_all_blocks(block):
    a = ramp(5000) ** 2 / 1000
    expected = a.copy()
    for _ in range(3):
        expected[1:-1] = 0.5 * (expected[:-2] + expected[2:])
    report = emulate(jacobi, -(-5000 // block), block, a, np.zeros_like(a), 3)
    assert not report.findings, [str(finding) for finding in report.findings]
    np.testing.assert_allclose(a, expected, rtol=1e-6)
    assert report.barriers == 6 * -(-5000 // block)


def test_too_many_blocks_for_a_grid_barrier():
    with pytest.raises(LaunchError, match="holds at most 264 blocks of 1,024 threads, and this grid has 265"):
        emulate(jacobi, 265, 1024, ramp(10), zeros(10), 1)


def test_blocks_that_miss_the_grid_barrier():
    @cuda.jit
    def kernel(out, first):
        if cuda.blockIdx.x >= first:
            return
        cuda.cg.this_grid().sync()
        out[0] = 1

    report = emulate(kernel, 200, 1024, zeros(1), 199)
    assert "barrier_divergence" in {finding.kind for finding in report.errors}
    with pytest.raises(Deadlock, match="all blocks of the grid at a grid barrier, but"):
        emulate(kernel, 200, 1024, zeros(1), 100)


# What an H100 does in each case (driver 580.159.04, numba-cuda 0.30.4, 2026-11-27) stands beside it.
MISSED_BY = {
    "the last threads of the last block": (lambda t, b: b == 3 and t >= 40, "barrier_after_exit"),  # goes on
    "a warp of each block": (lambda t, b: t >= 32, "barrier_after_exit"),  # goes on
    "every second thread": (lambda t, b: t % 2 == 1, "barrier_after_exit"),  # goes on
    "the first thread of a block": (lambda t, b: t == 0 and b == 2, "barrier_divergence"),  # hangs
    "the first warp of a block": (lambda t, b: t < 32 and b == 1, "barrier_divergence"),  # hangs
    "a whole block": (lambda t, b: b == 3, "barrier_divergence"),  # hangs
}


@pytest.mark.parametrize("some_wait", [False, True], ids=["in lock-step", "warp by warp"])
@pytest.mark.parametrize("missed", MISSED_BY)
def test_threads_that_return_before_a_grid_barrier(missed, some_wait):
    returns, kind = MISSED_BY[missed]
    gone = cuda.jit(device=True)(returns)

    @cuda.jit
    def kernel(flag, out):
        i = cuda.grid(1)
        if some_wait and i == 0:
            cuda.atomic.exch(flag, 0, 1)
        while some_wait and cuda.atomic.add(flag, 0, 0) == 0:
            pass
        if gone(cuda.threadIdx.x, cuda.blockIdx.x):
            return
        cuda.cg.this_grid().sync()
        out[i] = 1

    report = emulate(kernel, 4, 64, integers(1), zeros(256))
    assert [finding.kind for finding in report.findings] == [kind], list(map(str, report.findings))
    if kind == "barrier_divergence":
        assert "the first thread of each block tells the others" in str(report.findings[0])


def test_a_grid_barrier_in_a_branch():
    @cuda.jit
    def by_warps(x, first):
        if (cuda.threadIdx.x < 32) == first:
            cuda.cg.this_grid().sync()
        x[cuda.grid(1)] = 1

    (finding,) = emulate(by_warps, 4, 64, zeros(256), True).findings
    assert finding.kind == "barrier_in_branch"  # on a GPU, it goes on
    (finding,) = emulate(by_warps, 4, 64, zeros(256), False).findings
    assert finding.kind == "barrier_divergence"  # on a GPU, the blocks do not wait for each other


def test_the_warps_of_a_block_at_two_grid_barriers():
    @cuda.jit
    def kernel(x):
        if cuda.threadIdx.x < 32:
            cuda.cg.this_grid().sync()
        else:
            cuda.cg.this_grid().sync()
        x[cuda.grid(1)] = 1

    assert "barrier_divergence" in {finding.kind for finding in emulate(kernel, 4, 64, zeros(256)).errors}


def test_blocks_may_meet_at_different_grid_barriers_of_the_source():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        x[i] = i
        if cuda.blockIdx.x % 2:
            cuda.cg.this_grid().sync()
            out[i] = x[(i + 64) % 256]
        else:
            cuda.cg.this_grid().sync()
            out[i] = x[(i + 128) % 256]

    out = zeros(256)
    report = emulate(kernel, 4, 64, zeros(256), out)
    assert not report.findings, list(map(str, report.findings))
    i = np.arange(256)
    np.testing.assert_array_equal(out, np.where(i // 64 % 2, (i + 64) % 256, (i + 128) % 256))


def test_a_grid_barrier_and_a_lock():
    @cuda.jit
    def kernel(lock, total, out):
        grid = cuda.cg.this_grid()
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        cuda.threadfence()
        total[0] += 1
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)
        grid.sync()
        out[cuda.grid(1)] = total[0]

    out = zeros(18)
    report = emulate(kernel, 2, 9, integers(1), zeros(1), out)
    assert not report.errors, [str(finding) for finding in report.findings]
    assert (out == 18).all()


def test_a_grid_barrier_made_of_atomics():
    @cuda.jit
    def kernel(count, x, out):
        i = cuda.grid(1)
        x[i] = i
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cuda.threadfence()
            cuda.atomic.add(count, 0, 1)
            while cuda.atomic.add(count, 0, 0) < cuda.gridDim.x:
                pass
            cuda.threadfence()
        cuda.syncthreads()
        out[i] = x[cuda.gridsize(1) - 1 - i]

    out = zeros(192)
    report = emulate(kernel, 3, 64, integers(1), zeros(192), out)
    assert not report.findings, [str(finding) for finding in report.findings]
    assert (out == np.arange(192)[::-1]).all()


def test_votes_where_blocks_wait():
    @cuda.jit
    def kernel(flag, out):
        t = cuda.threadIdx.x
        if cuda.blockIdx.x == 0 and t == 0:
            while cuda.atomic.add(flag, 0, 0) == 0:
                pass
        out[cuda.grid(1)] = cuda.syncthreads_count(int(t % 3 == 0))
        if cuda.blockIdx.x == 1 and t == 0:
            cuda.atomic.exch(flag, 0, 1)

    out = integers(160)
    assert emulate(kernel, 2, 80, integers(1), out).ok
    assert (out == 27).all()


def test_an_endless_loop_is_still_stopped():
    @cuda.jit
    def kernel(x):
        while x[0] == 0:
            pass

    with pytest.raises(KernelStopped):
        emulate(kernel, 1, 32, zeros(1), step_limit=1000)


def test_a_kernel_that_is_run_again_prints_once(capsys):
    @cuda.jit
    def kernel(flag):
        if cuda.threadIdx.x == 0:
            print("block", cuda.blockIdx.x)
            if cuda.blockIdx.x == 0:
                while cuda.atomic.add(flag, 0, 0) == 0:
                    pass
            cuda.atomic.exch(flag, 0, 1)

    emulate(kernel, 2, 32, integers(1))
    assert sorted(capsys.readouterr().out.splitlines()) == ["block 0", "block 1"]


@pytest.mark.parametrize("load", [False, True])
def test_accesses_wholly_out_of_bounds_where_threads_wait(load):
    @cuda.jit
    def kernel(flag, out):
        if cuda.blockIdx.x == 0:
            while cuda.atomic.add(flag, 0, 0) == 0:
                pass
        else:
            if load:
                out[0] = out[out.size]
            else:
                out[out.size] = 1
            cuda.atomic.exch(flag, 0, 1)

    report = emulate(kernel, 2, 1, np.zeros(1, np.int32), np.zeros(5, np.int32))
    assert [finding.kind for finding in report.errors] == ["out_of_bounds"]


@cuda.jit
def each_block_waits_for_the_next(ready, out):
    big = cuda.shared.array(12288, float32)
    b = cuda.blockIdx.x
    big[0] = b
    if b + 1 < cuda.gridDim.x:
        while cuda.atomic.add(ready, b + 1, 0) == 0:
            pass
    out[b] = big[0]
    cuda.atomic.add(ready, b, 1)


def test_arrays_of_fixed_shape_take_room_for_blocks():
    """A T4 has 64 KB of shared memory in each of 40 multiprocessors, so each holds one block of 48 KB."""
    for blocks in (40, 45):
        ready, out = np.zeros(blocks, np.int32), np.zeros(blocks)
        if blocks == 40:
            assert emulate(each_block_waits_for_the_next, blocks, 1, ready, out, gpu="t4").ok
            assert out.tolist() == list(range(blocks))
        else:
            with pytest.raises(Deadlock, match="5 of the 45 blocks have not begun, because a GPU holds 40"):
                emulate(each_block_waits_for_the_next, blocks, 1, ready, out, gpu="t4")


@cuda.jit
def all_arrive(x, arrived, out):
    b = cuda.blockIdx.x
    x[b] = b
    cuda.threadfence()
    cuda.atomic.add(arrived, 0, 1)
    while cuda.atomic.add(arrived, 0, 0) < cuda.gridDim.x:
        pass
    cuda.threadfence()
    out[b] = x[(b + 1) % cuda.gridDim.x]


def test_each_of_many_waiting_blocks_looks_a_few_times(monkeypatch):
    """If each block looked again whenever another arrives, 60 blocks would look 1,800 times."""
    monkeypatch.setattr("lockstep.launching.launch.CHUNK_LANES", 32)
    x, arrived, out = integers(60), integers(1), integers(60)
    report = emulate(all_arrive, 60, 1, x, arrived, out)
    assert report.ok and out.tolist() == [(b + 1) % 60 for b in range(60)]
    assert report.total("requests", op="atomic") <= 10 * 60


# ---- waiting in the middle of an expression, and in functions ----

ODD, LOW, HIGH = 0xAAAAAAAA, 0x0000FFFF, 0xFFFF0000


@cuda.jit(device=True)
def in_turn(turn):
    """Let the threads of a block pass one by one, so that lanes of a warp wait for each other."""
    while cuda.atomic.add(turn, 0, 0) != cuda.threadIdx.x:
        pass
    cuda.atomic.add(turn, 0, 1)


def in_lock_step_and_lane_by_lane(kernel, *args):
    """Run a kernel, one block of 64 threads, both ways; return its (64, 8) results, which must be equal."""
    outcomes = []
    for one_by_one in (False, True):
        out = integers(64, 8)
        outcomes.append((emulate(kernel, 1, 64, integers(1), one_by_one, out, *map(np.copy, args)), out))
    (together, expected), (apart, found) = outcomes
    assert not together.errors and not apart.errors, (together.errors, apart.errors)
    assert (found == expected).all(), (found, expected)
    for op in ("load", "store"):
        assert apart.total("bytes", op=op) == together.total("bytes", op=op)
    return found


def test_a_call_that_waits_may_stand_anywhere_in_an_expression():
    @cuda.jit
    def kernel(turn, one_by_one, out, some):
        i = cuda.threadIdx.x
        lane = i % 32
        if one_by_one:
            in_turn(turn)
        out[i, 0] = some[i] < 64 and cuda.syncthreads_count(int32(i < 10)) == 10
        out[i, 1] = some[i] > 64 or cuda.shfl_sync(FULL, i, 3) == i - lane + 3
        out[i, 2] = cuda.shfl_sync(LOW, i, 3) if lane < 16 else cuda.shfl_sync(HIGH, i, 20)
        out[i, 3] = (lane % 2) and cuda.shfl_sync(ODD, i, 5)
        out[i, 4] = 0 <= cuda.shfl_sync(FULL, i, 1) < cuda.syncthreads_count(int32(i < 40))
        out[i, 5] = 0 <= cuda.shfl_sync(FULL, i, 1) <= cuda.syncthreads_count(1) < some[i] + 65
        out[i, 6] = 1000
        out[i, 6] -= cuda.shfl_sync(FULL, i, 2) if some[i] < 64 and cuda.any_sync(FULL, i == 40) else 7

    i = np.arange(64)
    lane, warp = i % 32, i - i % 32
    found = in_lock_step_and_lane_by_lane(kernel, i.astype(np.int32))
    assert found[:, 0].all() and found[:, 1].all() and found[:, 4].all() and found[:, 5].all()
    assert (found[:, 2] == warp + np.where(lane < 16, 3, 20)).all()
    assert (found[:, 3] == np.where(lane % 2, warp + 5, 0)).all()
    assert (found[:, 6] == 1000 - np.where(warp, warp + 2, 7)).all()


def test_a_field_is_changed_by_a_value_that_is_waited_for():
    @cuda.jit
    def kernel(turn, one_by_one, out, records):
        i = cuda.threadIdx.x
        if one_by_one:
            in_turn(turn)
        records[i].x *= cuda.shfl_sync(FULL, i, 2) if records[i].x > 2 else cuda.syncthreads_count(1)
        out[i, 0] = records[i].x

    records = np.zeros(64, [("x", np.int32), ("y", np.float32)])
    records["x"] = 3
    found = in_lock_step_and_lane_by_lane(kernel, records)
    assert (found[:, 0] == np.where(np.arange(64) < 32, 6, 102)).all()


def test_a_function_waits_at_each_depth_of_its_calls():
    @cuda.jit(device=True)
    def deep(i, levels):
        if levels > 0:
            return deep(i, levels - 1) + cuda.shfl_sync(FULL, i, 1)
        return int64(cuda.syncthreads_count(int32(i < 5)))

    @cuda.jit("uint8(int32)", device=True)
    def cast(i):
        return cuda.syncthreads_count(int32(i < 7)) + 250

    @cuda.jit
    def kernel(turn, one_by_one, out, levels):
        i = cuda.threadIdx.x
        if one_by_one:
            in_turn(turn)
        out[i, 0] = deep(i, levels[0])
        total = 0
        total += cast(i) * float32(2)
        out[i, 1] = total

    found = in_lock_step_and_lane_by_lane(kernel, np.array([2], np.int64))
    assert (found[:, 0] == np.where(np.arange(64) < 32, 5 + 2, 5 + 2 * 33)).all()
    assert (found[:, 1] == 2).all()


def test_half_a_warp_waits_in_an_expression():
    @cuda.jit(device=True)
    def waited_for(ready, x, i):
        mbarrier_wait(ready, 0, 0)
        return x[i]

    @cuda.jit
    def kernel(x, out):
        ready, i = cuda.shared.array(1, uint64), cuda.threadIdx.x
        if i == 0:
            mbarrier_init(ready, 0, 32)
        cuda.syncthreads()
        if i < 32:
            out[i] = waited_for(ready, x, i) if x[i] % 2 else -1
        else:
            mbarrier_arrive(ready, 0)

    x, out = np.arange(32, dtype=np.int32), integers(32)
    report = emulate(kernel, 1, 64, x, out)
    assert not report.errors and (out == np.where(x % 2, x, -1)).all(), (report.errors, out)
    # 32 lanes load for the condition, and 16 of them in the function.
    assert report.total("bytes", op="load", array="x") == (32 + 16) * 4


def test_threads_that_wait_at_the_bottom_of_their_calls_are_not_deep_together():
    @cuda.jit(device=True)
    def deep(levels):
        if levels > 0:
            return deep(levels - 1) + 1
        return int64(cuda.syncthreads_count(1))

    @cuda.jit
    def kernel(turn, one_by_one, out, levels):
        if one_by_one:
            in_turn(turn)
        out[cuda.threadIdx.x, 0] = deep(levels[0])
        out[cuda.threadIdx.x, 1] = deep(levels[0])

    found = in_lock_step_and_lane_by_lane(kernel, np.array([150], np.int64))
    assert (found[:, :2] == 150 + 64).all()


# ---- without threads of Python ----


def test_no_launch_starts_a_thread_of_python(monkeypatch):
    """A browser's Python has none."""

    @cuda.jit
    def blocks_that_meet(turn, out):
        b = cuda.blockIdx.x
        out[32 + b] = 7
        cuda.cg.this_grid().sync()
        out[b] = out[32 + (b + 1) % 32]

    @cuda.jit
    def lanes_in_turn(turn, out):
        in_turn(turn)
        out[cuda.threadIdx.x] = cuda.syncthreads_count(1)

    @cuda.jit
    def warps_with_an_mbarrier(turn, out):
        ready = cuda.shared.array(1, uint64)
        if cuda.threadIdx.x == 0:
            mbarrier_init(ready, 0, 32)
        cuda.syncthreads()
        if cuda.threadIdx.x < 32:
            mbarrier_wait(ready, 0, 0)
            out[cuda.threadIdx.x] = 1
        else:
            mbarrier_arrive(ready, 0)

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    cases = (blocks_that_meet, 32, 1, 7), (lanes_in_turn, 1, 64, 64), (warps_with_an_mbarrier, 1, 64, 1)
    for kernel, grid, block, expected in cases:
        out = integers(64)
        report = emulate(kernel, grid, block, integers(1), out)
        assert not report.errors and (out[:32] == expected).all(), (report.errors, out)


def test_the_time_in_which_other_units_run_is_not_that_of_a_loop(monkeypatch):
    """On this clock whoever begins to run has spent a second, and nothing else takes time."""
    now, resume = 0, Scheduler._resume

    def resume_a_second_later(scheduler, chosen):
        nonlocal now
        now += 1
        resume(scheduler, chosen)

    @cuda.jit
    def kernel(turn, x):
        in_turn(turn)
        while x[cuda.threadIdx.x] != 20:
            x[cuda.threadIdx.x] += 1
            cuda.syncthreads()

    monkeypatch.setattr(Scheduler, "_resume", resume_a_second_later)
    monkeypatch.setattr(unit, "thread_time", lambda: now)
    monkeypatch.setattr(control, "perf_counter", itertools.count().__next__)
    monkeypatch.setattr(control, "FEW_ITERATIONS", 3)
    assert emulate(kernel, 1, 64, integers(1), integers(64), loop_seconds=0.5).ok
    assert now > 64 * 20


def test_an_error_in_one_unit_ends_the_others_in_the_middle_of_their_calls():
    @cuda.jit(device=True)
    def deep(out, levels):
        if levels > 0:
            return deep(out, levels - 1) + 1
        if cuda.threadIdx.x == 63:
            raise ValueError
        cuda.syncthreads()
        return levels

    @cuda.jit
    def kernel(turn, out, levels):
        in_turn(turn)
        out[cuda.threadIdx.x] = deep(out, levels)

    limit = sys.getrecursionlimit()
    with pytest.raises(KernelRaised):
        emulate(kernel, 1, 64, integers(1), integers(64), np.int64(1), debug=True)
    assert sys.getrecursionlimit() == limit
