"""What orders two accesses besides a barrier: syncwarp, fences with atomics, and what they do not order.

In lock-step, and where warps run one at a time: a kernel with an mbarrier does.
"""

import numpy as np
import pytest
from numba import cuda, float32, float64, int32, int64, uint64
from numba.types import float16

from lockstep import emulate
from lockstep.intrinsics import (
    fence_async,
    mbarrier_arrive,
    mbarrier_init,
    mbarrier_wait,
    tensor_map,
    tma_commit,
    tma_store,
    tma_wait_read,
    u32,
)
from lockstep_tests.corpus import ramp, zeros
from lockstep_tests.test_findings import only

FULL = 0xFFFFFFFF
both_ways = pytest.mark.parametrize("mbarriers", [False, True])


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


# ---- in lock-step, and warp by warp ----


@cuda.jit(device=True)
def begin(bar, mbarriers):
    """A barrier, after which the last warp goes first if warps run one at a time."""
    if mbarriers and cuda.threadIdx.x == 0:
        mbarrier_init(bar, 0, 1)
    cuda.syncthreads()


def last_warp_adds_up(
    mbarriers, before=FULL, fence=True, ticket=True, after=True, fence_after=True, turned=False
):
    """Lane 0 takes a ticket for its warp; the last of two blocks reads what both have stored.

    before: the mask of the syncwarp before the fence; turned: read what other warps have stored.
    """

    @cuda.jit
    def kernel(x, tickets, out):
        bar = cuda.shared.array(1, uint64)
        t = cuda.threadIdx.x
        lane, warp = t % 32, t // 32
        begin(bar, mbarriers)
        x[cuda.blockIdx.x, t] = t + 1
        if before >> lane & 1:
            cuda.syncwarp(before)
        count = int64(0)
        if lane == 0:
            if fence:
                cuda.threadfence()
            if ticket:
                count = cuda.atomic.add(tickets, warp, 1) + 1
            else:
                count = tickets[warp] + 1
                tickets[warp] = count
        last = cuda.shfl_sync(FULL, count, 0) == 2
        if after:
            cuda.syncwarp()
        if last:
            if fence_after:
                cuda.threadfence()
            source = t ^ 32 if turned else t
            out[t] = x[0, source] + x[1, source]

    found = emulate(kernel, 2, 64, zeros(2, 64), zeros(2, dtype=np.int64), zeros(64)).findings
    return sorted((finding.kind, finding.array, finding.count) for finding in found)


@both_ways
def test_lane_0_may_take_a_ticket_for_its_warp(mbarriers):
    assert not last_warp_adds_up(mbarriers)


@both_ways
def test_a_ticket_for_the_warp_with_something_missing_orders_only_some_lanes(mbarriers):
    def races(**mistake):
        return last_warp_adds_up(mbarriers, **mistake)

    assert races(before=0) == races(before=1) == [("global_race", "x", 62)]  # lane 0 knows its own stores
    assert races(before=FULL ^ 1 << 5) == [("global_race", "x", 2)]  # lane 5 of each warp
    assert races(before=0xFFFF) == [("global_race", "x", 32)]
    assert races(fence=False) == [("global_race", "x", 64)]
    assert {race[:2] for race in races(turned=True)} == {("global_race", "x")}


@both_ways
def test_a_shuffle_carries_a_value_and_orders_no_memory(mbarriers):
    """Lane 0 itself has seen the ticket; the other lanes need a syncwarp after the shuffle, fence or not."""
    assert last_warp_adds_up(mbarriers, after=False) == [("global_race", "x", 62)]
    assert last_warp_adds_up(mbarriers, after=False, fence_after=False) == [("global_race", "x", 64)]


@both_ways
def test_a_ticket_that_is_no_atomic_is_found(mbarriers):
    assert ("global_race", "tickets", 2) in last_warp_adds_up(mbarriers, ticket=False)


def neighbours(mbarriers, shared, load_first, value, how):
    """Each lane loads an element, and a neighbour stores to it, or the other way round.

    value: what is stored, the element's own if None. how: what comes in between, or the mask of a syncwarp.
    """
    mask = how if isinstance(how, int) else 0

    @cuda.jit
    def kernel(x, out):
        bar = cuda.shared.array(1, uint64)
        tile = cuda.shared.array(64, float64)
        t = cuda.threadIdx.x
        lane = t % 32
        tile[t] = x[t]
        begin(bar, mbarriers)
        place = tile if shared else x
        other = (lane + 1) % 32 + t // 32 * 32
        there = place[other] if value is None else value
        y = float64(0)
        cuda.syncthreads()
        if load_first:
            y = place[t]
        else:
            place[other] = there
        if how == "shuffle":
            y = cuda.shfl_sync(FULL, y, lane)
        elif how == "vote":
            cuda.all_sync(FULL, True)
        elif mask >> lane & 1:
            cuda.syncwarp(mask)
        if load_first:
            place[other] = there
        else:
            y = place[t]
        out[t] = y

    report = emulate(kernel, 1, 64, ramp(64, dtype=np.float64), np.zeros(64))
    return {(finding.kind, finding.array, finding.count) for finding in report.findings}


@both_ways
@pytest.mark.many(one_in=4)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("load_first", [False, True])
@pytest.mark.parametrize("value", [None, 5])
def test_a_syncwarp_orders_neighbours(mbarriers, shared, load_first, value):
    where = (mbarriers, shared, load_first, value)
    race = ("shared_race", "tile") if shared else ("global_race", "x")
    assert not neighbours(*where, FULL)
    for nothing in ("none", "shuffle", "vote"):
        assert neighbours(*where, nothing) == {(*race, 64)}
    assert neighbours(*where, 0xFFFF) == {(*race, 34)}  # lanes 16 to 31, and from there to lane 0
    assert neighbours(*where, FULL ^ 8) == {(*race, 4)}  # lane 3 and its neighbour, in both warps


def hand_over_a_tile(mbarriers, load_first=False, before=True, fence=True, flag=True, after=True):
    """Warp 1 stores to a tile, or loads it, and raises a flag, after which warp 0 does the opposite."""

    @cuda.jit
    def kernel(out):
        bar = cuda.shared.array(1, uint64)
        tile = cuda.shared.array(32, float32)
        up = cuda.shared.array(1, int32)
        t = cuda.threadIdx.x
        lane = t % 32
        if t < 32:
            tile[t] = 0
        if t == 0:
            up[0] = 0
        begin(bar, mbarriers)
        if t >= 32:
            if load_first:
                out[t] = tile[31 - lane]
            else:
                tile[31 - lane] = t
            if before:
                cuda.syncwarp()
            if lane == 0:
                if fence:
                    cuda.threadfence_block()
                cuda.atomic.exch(up, 0, 1)
        else:
            if lane == 0 and flag:
                cuda.atomic.add(up, 0, 0)
                cuda.threadfence_block()
            if after:
                cuda.syncwarp()
            if load_first:
                tile[lane] = 1
            else:
                out[t] = tile[lane]

    report = emulate(kernel, 1, 64, zeros(64))
    return {(finding.kind, finding.array, finding.count) for finding in report.findings}


@both_ways
@pytest.mark.parametrize("load_first", [False, True])
def test_a_flag_in_shared_memory_hands_a_tile_over(mbarriers, load_first):
    where = mbarriers, load_first
    assert not hand_over_a_tile(*where)
    for mistake, count in (("before", 31), ("fence", 32), ("flag", 32), ("after", 31)):
        assert hand_over_a_tile(*where, **{mistake: False}) == {("shared_race", "tile", count)}, mistake


# ---- mbarriers ----


def told_by_an_mbarrier(wait=True, fence=True, early=False, answer=True, fence_after=True):
    """Warp 0 stores, warp 1 waits for it and takes a ticket for the block, warp 0 waits for that and loads.

    early: the fence is that of warp 0, before it arrives.
    """

    @cuda.jit
    def kernel(x, tickets, out):
        bars = cuda.shared.array(2, uint64)
        t = cuda.threadIdx.x
        if t == 0:
            mbarrier_init(bars, 0, 32)
            mbarrier_init(bars, 1, 32)
        cuda.syncthreads()
        if t < 32:
            x[cuda.blockIdx.x, t] = t
            if fence and early:
                cuda.threadfence()
            mbarrier_arrive(bars, 0)
            if answer:
                mbarrier_wait(bars, 1, 0)
            if fence_after:
                cuda.threadfence()
            if cuda.blockIdx.x == 1:
                out[t] = x[0, t]
        else:
            if wait:
                mbarrier_wait(bars, 0, 0)
            if t == 32:
                if fence and not early:
                    cuda.threadfence()
                cuda.atomic.add(tickets, 0, 1)
            mbarrier_arrive(bars, 1)

    return racing(emulate(kernel, 2, 64, zeros(2, 32), zeros(1, dtype=np.int32), zeros(32)))


@pytest.mark.parametrize("early", [False, True])
def test_what_a_warp_was_told_at_an_mbarrier_it_may_release(early):
    assert not told_by_an_mbarrier(early=early)
    for mistake in ("wait", "fence", "answer", "fence_after"):
        found = told_by_an_mbarrier(early=early, **{mistake: False})
        assert found == {("global_race", "x")}, mistake


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("update", [False, True])
def test_an_mbarrier_orders_nothing_for_warps_that_do_not_arrive(shared, update):
    """Three warps use an element, and the fourth stores to it when some of them have arrived."""

    def found(arrive):
        arrivals = 32 * arrive.bit_count()

        @cuda.jit
        def kernel(x, out):
            bar = cuda.shared.array(1, uint64)
            box = cuda.shared.array(1, int32)
            t = cuda.threadIdx.x
            if t == 0:
                mbarrier_init(bar, 0, arrivals)
                box[0] = 0
            cuda.syncthreads()
            place = box if shared else x
            if t < 96:
                if update:
                    cuda.atomic.add(place, 0, 1)
                else:
                    out[t] = place[0]
                if arrive >> t // 32 & 1:
                    mbarrier_arrive(bar, 0)
            else:
                mbarrier_wait(bar, 0, 0)
                if t == 96:
                    place[0] = 1

        return racing(emulate(kernel, 1, 128, zeros(1, dtype=np.int32), zeros(96)))

    race = {("shared_race", "box") if shared else ("global_race", "x")}
    assert not found(0b111)
    assert found(0b011) == race
    if not update:  # an atomic that comes later has seen the others
        assert found(0b100) == found(0b101) == found(0b110) == race


def tiles_stored_by_tma(fence=True, after=True):
    """Two blocks store a tile with TMA and take a ticket; the last one reads what both have stored."""

    @cuda.jit
    def kernel(target, C, tickets, out):
        tile = cuda.shared.array((16, 64), float16, 1024)
        last = cuda.shared.array(1, int32)
        t = u32(cuda.threadIdx.x)
        for i in range(t, 1024, 32):
            tile[i // 64, i % 64] = 1
        fence_async()
        cuda.syncwarp()
        if t == 0:
            tma_store(target, (cuda.blockIdx.x * 16, 0), tile, (0, 0))
            tma_commit()
            tma_wait_read(0)
            if fence:
                cuda.threadfence()
            last[0] = cuda.atomic.add(tickets, 0, 1)
            cuda.threadfence()
        if after:
            cuda.syncwarp()
        if last[0] == 1:
            out[t] = C[0, t] + C[16, t]

    C = zeros(32, 64, dtype=np.float16)
    arguments = tensor_map(C, C.shape, (16, 64)), C, zeros(1, dtype=np.int32), zeros(32)
    return racing(emulate(kernel, 2, 32, *arguments))


def test_a_ticket_orders_what_tma_has_stored():
    assert not tiles_stored_by_tma()
    assert tiles_stored_by_tma(fence=False) == {("global_race", "C")}
    assert tiles_stored_by_tma(after=False) == {("global_race", "C"), ("shared_race", "last")}


# ---- stores of equal values ----


def kinds(report):
    return {(finding.kind, finding.array) for finding in report.findings}


@both_ways
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("mask", [FULL, 0b11])
def test_equal_stores_in_a_defined_order_are_not_advised_against(mbarriers, shared, mask):
    def found(ordered):
        @cuda.jit
        def kernel(x):
            bar = cuda.shared.array(1, uint64)
            box = cuda.shared.array(1, float32)
            t = cuda.threadIdx.x
            begin(bar, mbarriers)
            place = box if shared else x
            if t == 0:
                place[0] = 7
            if ordered and mask >> t & 1:
                cuda.syncwarp(mask)
            if t == 1:
                place[0] = 7

        return kinds(emulate(kernel, 1, 32, zeros(1)))

    assert not found(True)
    assert found(False) == {("equal_stores", "box" if shared else "x")}


@both_ways
@pytest.mark.parametrize("shared", [False, True])
def test_a_load_races_with_a_store_of_the_value_that_is_there(mbarriers, shared):
    """Only threads that have stored the value themselves may load it, whoever stores it again."""

    def found(everyone):
        @cuda.jit
        def kernel(x, out):
            bar = cuda.shared.array(1, uint64)
            box = cuda.shared.array(1, float32)
            t = cuda.threadIdx.x
            if t == 0:
                box[0] = 0
            begin(bar, mbarriers)
            place = box if shared else x
            if everyone:
                place[0] = 0
            out[t] = place[0]
            if t == 40:
                place[0] = 0

        return kinds(emulate(kernel, 1, 64, zeros(1), zeros(64)))

    name = "box" if shared else "x"
    assert found(True) == {("equal_stores", name)}
    assert found(False) == {("shared_race" if shared else "global_race", name)}


@both_ways
def test_equal_stores_are_advice_beside_accesses_that_need_a_closer_look(mbarriers):
    """The tile is ordered by a syncwarp of half a warp; the flag by nothing."""

    @cuda.jit
    def kernel(out):
        bar = cuda.shared.array(1, uint64)
        tile = cuda.shared.array(32, float32)
        flag = cuda.shared.array(1, int32)
        t = cuda.threadIdx.x
        begin(bar, mbarriers)
        tile[t] = t
        flag[0] = 1
        cuda.syncwarp(0xFFFF if t < 16 else 0xFFFF0000)
        out[t] = tile[t ^ 8]

    assert kinds(emulate(kernel, 1, 32, zeros(32))) == {("equal_stores", "flag")}


def test_equal_numbers_of_two_types_are_not_one_value():
    """1 is not 1.0: to store both is a race, also where accesses are examined one by one."""

    @cuda.jit
    def kernel(x, out):
        t = cuda.threadIdx.x
        out[t] = t
        cuda.syncwarp(0xFFFF if t < 16 else 0xFFFF0000)
        out[t ^ 8] = t
        if t == 0:
            x[0] = 1
        if t == 1:
            x.view(int32)[0] = 1

    assert racing(emulate(kernel, 1, 32, zeros(1), zeros(32))) == {("global_race", "x")}
