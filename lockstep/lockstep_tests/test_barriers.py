"""Who meets at a barrier, and which lanes of a warp act together."""

import numpy as np
import pytest
from numba import cuda, float32, int32

from lockstep import KernelTypeError, emulate
from lockstep_tests.corpus import ramp, zeros
from lockstep_tests.test_findings import only

FULL = 0xFFFFFFFF


def kinds(report):
    return [finding.kind for finding in report.findings]


# ---- barriers after threads have exited ----


@cuda.jit
def sum_of_those_that_stay(x, out, n):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    if t >= n:
        return
    tile[t] = x[t]
    cuda.syncthreads()
    out[t] = tile[n - 1 - t]


def test_a_barrier_after_threads_have_returned_is_advised_against():
    out = zeros(64)
    report = emulate(sum_of_those_that_stay, 1, 64, ramp(64), out, 40)
    finding = only(report, "barrier_after_exit")
    assert report.ok and finding.severity == "advice"
    assert finding.threads == [(40, 0, 0)] and "Since Volta" in finding.message
    assert (out[:40] == ramp(40)[::-1]).all() and report.barriers == 1


def test_no_advice_where_nobody_has_returned():
    assert not emulate(sum_of_those_that_stay, 1, 64, ramp(64), zeros(64), 64).findings


def test_a_return_in_the_other_branch_is_one_before_the_barrier():
    @cuda.jit
    def kernel(out):
        t = cuda.threadIdx.x
        if t < 40:
            cuda.syncthreads()
            out[t] = 1
        else:
            return

    assert kinds(emulate(kernel, 1, 64, zeros(64))) == ["barrier_after_exit"]


def test_returning_from_a_device_function_is_not_exiting():
    @cuda.jit(device=True)
    def wait_if(t):
        if t >= 40:
            return 0
        cuda.syncthreads()
        return 1

    @cuda.jit
    def kernel(out, again):
        out[cuda.threadIdx.x] = wait_if(cuda.threadIdx.x)
        if again:
            cuda.syncthreads()

    assert kinds(emulate(kernel, 1, 64, zeros(64), True)) == ["barrier_divergence"]
    assert kinds(emulate(kernel, 1, 64, zeros(64), False)) == ["barrier_divergence"]


def test_threads_that_return_and_threads_that_pass_by():
    @cuda.jit
    def kernel(out, edge):
        t = cuda.threadIdx.x
        if t >= 60:
            return
        if t < edge:
            cuda.syncthreads()
        out[t] = 1

    finding = only(emulate(kernel, 1, 64, zeros(64), 32), "barrier_in_branch")
    assert finding.threads == [(32, 0, 0)] and "run to their end" in finding.message
    finding = only(emulate(kernel, 1, 64, zeros(64), 40), "barrier_divergence")
    assert finding.threads == [(40, 0, 0)] and "of the same warp" in finding.message


def test_the_example_is_a_thread_that_the_counted_ones_waited_for():
    @cuda.jit
    def kernel(edge):
        while edge >= 32:
            if cuda.threadIdx.x < edge:
                cuda.syncthreads()
            edge //= 2

    finding = only(emulate(kernel, 1, 256, 128), "barrier_in_branch")
    assert "Only 128 of the 256 threads" in finding.message and finding.threads == [(128, 0, 0)]


# ---- barriers that some threads pass by ----


def _end(x, out, tile, t):
    out[t] = t


def _nothing(x, out, tile, t):
    pass


def _come_to_another(x, out, tile, t):
    cuda.syncthreads()


def _use_shared_memory(x, out, tile, t):
    out[t] = tile[t]


def _read_what_the_others_wrote_before(x, out, tile, t):
    out[t] = x[t ^ 63]


def _write_what_the_others_read_later(x, out, tile, t):
    if t >= 40:
        x[t ^ 63] = 2


@pytest.mark.parametrize(
    ("edge", "afterwards", "expected"),
    [
        (32, _end, ["barrier_in_branch"]),
        (40, _end, ["barrier_divergence"]),
        (40, _nothing, ["barrier_in_branch"]),
        (32, _come_to_another, ["barrier_divergence"]),
        (32, _use_shared_memory, ["barrier_divergence"]),
        (32, _read_what_the_others_wrote_before, ["global_race", "barrier_in_branch"]),
        (40, _read_what_the_others_wrote_before, ["global_race", "barrier_divergence"]),
        (32, _write_what_the_others_read_later, ["global_race", "barrier_in_branch"]),
    ],
)
def test_threads_that_miss_a_barrier_are_judged_by_warp_and_by_what_they_do_next(edge, afterwards, expected):
    then = cuda.jit(device=True)(afterwards)

    @cuda.jit
    def kernel(x, out):
        tile = cuda.shared.array(64, float32)
        t, first = cuda.threadIdx.x, 64 * cuda.blockIdx.x
        tile[t] = t
        if t < edge or cuda.blockIdx.x == 0:
            x[first + t] = t
            cuda.syncthreads()
            out[first + t] = tile[edge - 1 - t % edge] + x[first + t]
        then(x[first:], out[first:], tile, t)

    report = emulate(kernel, (3, 1), 64, zeros(192), zeros(192))
    assert kinds(report) == expected, report
    assert report.findings[-1].block == (1, 0, 0) and report.findings[-1].count in (2, 64)


@pytest.mark.parametrize("again", [False, True])
def test_lanes_that_run_apart_may_miss_a_barrier_as_well(again):
    @cuda.jit
    def kernel(lock, out, again):
        t = cuda.threadIdx.x
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        out[t] += float32(1)
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)
        if t < 20:
            cuda.syncthreads()
        if again:
            cuda.syncthreads()

    report = emulate(kernel, 1, 40, zeros(1, dtype=np.int32), zeros(40), again)
    assert kinds(report)[0] == ("barrier_divergence" if again else "barrier_in_branch")


def test_votes_at_a_barrier_count_the_threads_that_take_part():
    @cuda.jit
    def kernel(out):
        t = cuda.threadIdx.x
        if t >= 40:
            return
        out[0, t] = cuda.syncthreads_count(t % 2)
        out[1, t] = cuda.syncthreads_and(1)
        out[2, t] = cuda.syncthreads_or(int(t == 50))

    out = zeros(3, 40, dtype=np.int32)
    report = emulate(kernel, 1, 64, out)
    assert report.ok and (out == np.array([[20], [1], [0]])).all()


@pytest.mark.parametrize("vote", [cuda.syncthreads_count, cuda.syncthreads_and, cuda.syncthreads_or])
def test_votes_at_a_barrier_take_integers_alone_as_in_numba(vote):
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if vote(x[i] > 3):
            out[i] = 1

    with pytest.raises(KernelTypeError, match=r"takes an integer, not a bool value: pass int\(\.\.\.\)"):
        emulate(kernel, 1, 32, zeros(32), zeros(32))


def test_a_barrier_of_one_block_orders_nothing_in_another():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        x[i] = i
        if cuda.blockIdx.x == 1:
            cuda.syncthreads()
        out[i] = x[i ^ 1]

    finding = only(emulate(kernel, 2, 64, zeros(128), zeros(128)), "global_race")
    assert finding.array == "x" and finding.block == (0, 0, 0) and finding.count == 64


def test_a_syncwarp_of_one_warp_orders_nothing_in_another():
    @cuda.jit
    def kernel(out, everyone):
        tile = cuda.shared.array(64, float32)
        t = cuda.threadIdx.x
        tile[t] = t
        if everyone or t < 32:
            cuda.syncwarp()
        out[t] = tile[t ^ 1]

    assert not emulate(kernel, 1, 64, zeros(64), True).findings
    finding = only(emulate(kernel, 1, 64, zeros(64), False), "shared_race")
    assert finding.count == 32 and finding.element[0] >= 32


# ---- masks of lanes ----


@cuda.jit
def swap_below(x, out, bound, mask):
    t = cuda.threadIdx.x
    if t < bound:
        out[t] = cuda.shfl_xor_sync(mask, x[t], 1)


def test_a_mask_that_names_absent_lanes_is_reported():
    report = emulate(swap_below, 1, 64, ramp(64), zeros(64), 40, FULL)
    finding = only(report, "warp_divergence")
    assert "names lanes 8 to 31 of its warp, which are not there" in finding.message
    assert "shfl_xor_sync" in finding.message
    assert finding.threads == [(32, 0, 0), (40, 0, 0)] and finding.count == 8


def test_a_lane_outside_its_own_mask_is_reported():
    finding = only(emulate(swap_below, 1, 32, ramp(32), zeros(32), 32, 0xFFFF), "warp_divergence")
    assert "does not name lane 16" in finding.message and finding.count == 16


@pytest.mark.parametrize(("bound", "mask"), [(16, 0xFFFF), (32, FULL), (64, FULL), (32, -1)])
def test_masks_that_fit_are_not_reported(bound, mask):
    out = zeros(64)
    assert not emulate(swap_below, 1, 64, ramp(64), out, bound, mask).findings
    assert (out[:bound].reshape(-1, 2) == ramp(bound).reshape(-1, 2)[:, ::-1]).all()


def test_lanes_that_do_not_exist_or_have_returned_may_be_named():
    @cuda.jit
    def kernel(x, out):
        t = cuda.threadIdx.x
        if t >= 44:
            return
        out[t] = cuda.ballot_sync(FULL, x[t] > 0)

    out = zeros(48, dtype=np.int64)
    assert emulate(kernel, 1, 48, ramp(48), out).ok
    assert (out[:32] == -1).all() and (out[32:44] == 2**12 - 1).all()


def test_each_half_of_a_warp_with_its_own_mask():
    @cuda.jit
    def kernel(x, out):
        t = cuda.threadIdx.x
        mask = 0xFFFF if t < 16 else 0xFFFF0000
        out[0, t] = cuda.ballot_sync(mask, x[t] % 3 == 0)
        out[1, t] = cuda.all_sync(mask, x[t] <= 16)
        out[2, t] = cuda.any_sync(mask, x[t] == 17)
        out[3, t] = cuda.eq_sync(mask, x[t] <= 16)

    out = zeros(4, 32, dtype=np.int64)
    x = ramp(32, dtype=np.int32)
    assert not emulate(kernel, 1, 32, x, out).findings
    bits = sum(int(v % 3 == 0) << lane for lane, v in enumerate(x))
    halves = np.array([bits & 0xFFFF, bits & 0xFFFF0000]).astype(np.uint32).view(np.int32)
    assert (out[0] == np.repeat(halves, 16)).all()
    assert (out[1:, [0, 31]] == [[1, 0], [0, 1], [1, 1]]).all()


def test_lanes_that_name_each_other_must_pass_the_same_mask():
    @cuda.jit
    def kernel(out):
        t = cuda.threadIdx.x
        out[t] = cuda.shfl_sync(FULL if t else 0x1, t, 0)

    finding = only(emulate(kernel, 1, 32, zeros(32, dtype=np.int32)), "warp_divergence")
    assert "another mask" in finding.message


def test_matches():
    @cuda.jit
    def kernel(x, out):
        t = cuda.threadIdx.x
        out[0, t] = cuda.match_any_sync(FULL, x[t])
        same, agree = cuda.match_all_sync(FULL, x[t])
        out[1, t] = same
        out[2, t] = agree
        same, agree = cuda.match_all_sync(FULL, int32(7))
        out[3, t] = same
        out[4, t] = agree

    x = np.array([0.5, -0.0, 0.0, 0.5] * 8, np.float32)
    out = zeros(5, 32, dtype=np.int64)
    assert not emulate(kernel, 1, 32, x, out).findings
    expected = [0x99999999, 0x22222222, 0x44444444, 0x99999999] * 8
    assert (out[0] == np.array(expected, np.uint32).view(np.int32)).all()
    assert (out[1:, 0] == [0, 0, -1, 1]).all()


def test_shuffles_use_five_bits_of_their_operand():
    @cuda.jit
    def kernel(x, out):
        t = cuda.threadIdx.x
        out[0, t] = cuda.shfl_down_sync(FULL, x[t], 33)
        out[1, t] = cuda.shfl_up_sync(FULL, x[t], 33)
        out[2, t] = cuda.shfl_xor_sync(FULL, x[t], 33)

    x, out = ramp(32), zeros(3, 32)
    emulate(kernel, 1, 32, x, out)
    lane = np.arange(32)
    assert (out == x[[np.minimum(lane + 1, 31), np.maximum(lane - 1, 0), lane ^ 1]]).all()


def test_shuffles_take_the_types_that_numba_has_for_them():
    @cuda.jit
    def kernel(x, out):
        out[cuda.threadIdx.x] = cuda.shfl_sync(FULL, x[cuda.threadIdx.x], 0)

    with pytest.raises(KernelTypeError, match="shfl_sync takes int32, int64, float32 or float64, not int16"):
        emulate(kernel, 1, 32, zeros(32, dtype=np.int16), zeros(32))


@cuda.jit
def shuffle_beyond_the_mask(x, out):
    lane = cuda.threadIdx.x
    mask = cuda.ballot_sync(FULL, lane < 30)
    if lane < 30:
        out[lane] = cuda.shfl_down_sync(mask, x[lane], 20)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_a_shuffle_from_a_lane_outside_the_mask_is_undefined(dtype):
    x, out = np.arange(32, dtype=dtype), np.zeros(32, dtype)
    finding = only(emulate(shuffle_beyond_the_mask, 1, 32, x, out), "absent_lane")
    assert finding.threads == [(10, 0, 0)] and finding.count == 2
    assert (out[:10] == x[20:30]).all()
    assert np.isnan(out[10:12]).all() if dtype == np.float32 else (out[10:12] < -(10**9)).all()


def test_lanes_that_are_not_there_do_not_spoil_a_sum_that_leaves_them_out():
    @cuda.jit
    def kernel(x, out):
        value = x[cuda.threadIdx.x]
        for distance in (8, 4, 2, 1):
            value += cuda.shfl_down_sync(FULL, value, distance)
        if cuda.threadIdx.x == 0:
            out[0] = value

    out = zeros(1)
    assert emulate(kernel, 1, 16, np.ones(16, np.float32), out).ok and out[0] == 16
