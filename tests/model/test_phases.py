"""The ring of the model against the emulator: the same mistakes in a kernel with mbarriers and copies."""

from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from numba import cuda, float32, uint64
from numba.types import float16

from gemm_course.model import phases
from gemm_course.model.phases import Barrier, Timing, run
from lockstep import Deadlock, emulate
from lockstep.intrinsics import (
    fence_async,
    mbarrier_arrive,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_wait,
    tensor_map,
    tma_acquire,
    tma_load,
    u32,
)

SLOTS, TILES = (2, 3, 4), 6
ROWS = COLUMNS = 32  # of a part: 2,048 bytes of FP16
TIMINGS = [
    Timing(latency, gap, reading)
    for latency, gap, reading in product((1, 2, 4, 8, 12), (1, 2, 4), ((1, 1), (2, 3), (3, 2), (1, 6)))
]


def ring(mistake, slots):
    """One producer warp and two consumer warps; out[tile] is what the consumers' lanes add up of A and B."""
    waits, starts = mistake != phases.NO_WAIT, 0 if mistake == phases.WRONG_START else 1
    flips, silent = int(mistake != phases.SAME_PARITY), 1 if mistake == phases.NO_ARRIVAL else 2
    expected = phases.EXPECTED.get(mistake, phases.TILE_BYTES)

    @cuda.jit
    def kernel(A, B, out):
        As = cuda.shared.array((slots, ROWS, COLUMNS), float16, 1024)
        Bs = cuda.shared.array((slots, ROWS, COLUMNS), float16, 1024)
        full = cuda.shared.array(slots, uint64)
        empty = cuda.shared.array(slots, uint64)
        tid = u32(cuda.threadIdx.x)
        if tid == 0:
            tma_acquire(A)
            tma_acquire(B)
            for s in range(slots):
                mbarrier_init(full, s, 1)
                mbarrier_init(empty, s, 2)
            fence_async()
        cuda.syncthreads()
        slot, parity = 0, 0
        if tid < 32:
            if tid == 0:
                for tile in range(TILES):
                    if waits:
                        mbarrier_wait(empty, slot, parity ^ starts)
                    mbarrier_expect(full, slot, expected)
                    tma_load(As, (slot, 0, 0), A, (tile * ROWS, 0), full, slot)
                    tma_load(Bs, (slot, 0, 0), B, (tile * ROWS, 0), full, slot)
                    slot += 1
                    if slot == slots:
                        slot, parity = 0, parity ^ 1
        else:
            reader, lane = tid // 32 - 1, tid % 32
            for tile in range(TILES):
                mbarrier_wait(full, slot, parity)
                acc = float32(0)
                for row in range(ROWS):
                    acc += float32(As[slot, row, lane]) + float32(Bs[slot, row, lane])
                out[tile, reader * 32 + lane] = acc
                if lane == 0 and reader < silent:
                    mbarrier_arrive(empty, slot)
                slot += 1
                if slot == slots:
                    slot, parity = 0, parity ^ flips

    return kernel


def arguments():
    tiles = np.repeat(np.arange(1, TILES + 1, dtype=np.float16), ROWS)[:, None] * np.ones(COLUMNS, np.float16)
    box = (ROWS, COLUMNS)
    A, B = (tensor_map(np.ascontiguousarray(factor * tiles), tiles.shape, box) for factor in (1, 2))
    return A, B, np.zeros((TILES, 64), np.float32)


@lru_cache(64)
def emulated(mistake, slots):
    """The kinds of what the emulator finds, what it says where it stops, and which tile each read was of."""
    A, B, out = arguments()
    try:
        report = emulate(ring(mistake, slots), 1, 96, A, B, out)
    except Deadlock as stopped:
        return {"deadlock"}, str(stopped), out / (3 * ROWS) - 1
    return {finding.kind for finding in report.findings}, "", out / (3 * ROWS) - 1


def outcomes(mistake, slots):
    """How the model's runs end, with quick and slow copies and readers."""
    return {run(mistake, slots, TILES, timing)[-1].outcome for timing in TIMINGS}


RIGHT_TILES = np.arange(TILES)[:, None] * np.ones(64)
ONLY_STANDSTILLS = (phases.NO_ARRIVAL, phases.MORE_BYTES, phases.WRONG_START)


@pytest.mark.parametrize("slots", SLOTS)
def test_without_a_mistake_nothing_is_found_and_every_run_is_right(slots):
    kinds, _, tiles = emulated(phases.NO_MISTAKE, slots)
    assert kinds == set() and (tiles == RIGHT_TILES).all()
    assert outcomes(phases.NO_MISTAKE, slots) == {phases.RIGHT}


@pytest.mark.parametrize("slots", SLOTS)
@pytest.mark.parametrize("mistake", ONLY_STANDSTILLS)
def test_a_standstill_is_one_at_every_speed_and_the_emulator_waits_for_the_same_phases(mistake, slots):
    kinds, said, _ = emulated(mistake, slots)
    assert kinds == {"deadlock"} and "Found before" not in said
    for timing in TIMINGS:
        last = run(mistake, slots, TILES, timing)[-1]
        assert last.outcome == phases.STANDSTILL
        for warp in last.warps:
            assert f"for phase {_waited(last, warp).phase} of {warp.op.barrier}[{warp.op.slot}]" in said
            assert _missing(_waited(last, warp)) in said
        assert said.count(" for phase ") == len({(warp.op.barrier, warp.op.slot) for warp in last.warps})


def _waited(moment, warp):
    return moment.barriers[warp.op.barrier, warp.op.slot]


def _missing(barrier):
    if barrier.pending:
        return f"still needs {barrier.pending} arrival"
    return f"expects {barrier.expected - barrier.came:,} bytes more"


@pytest.mark.parametrize("slots", SLOTS)
def test_a_producer_that_does_not_wait_races_and_overwrites_at_some_speed(slots):
    _, said, _ = emulated(phases.NO_WAIT, slots)
    assert "Found before that" in said and "Warp 0 arrives at full" in said
    found = outcomes(phases.NO_WAIT, slots)
    assert phases.NEWER in found and phases.STANDSTILL not in found


@pytest.mark.parametrize("slots", SLOTS)
def test_too_few_bytes_let_consumers_read_too_early(slots):
    kinds, _, _ = emulated(phases.FEWER_BYTES, slots)
    assert {"async_read_too_early", "uninitialised_read"} <= kinds
    assert phases.MISSING in outcomes(phases.FEWER_BYTES, slots)


@pytest.mark.parametrize("slots", SLOTS)
def test_a_parity_that_is_never_flipped_reads_old_tiles_or_stands_still(slots):
    """In the emulator consumers have "read" all tiles and are done, while the producer waits to copy some."""
    kinds, said, _ = emulated(phases.SAME_PARITY, slots)
    assert kinds == {"deadlock"} and "warp 0 waits" in said and "of full" not in said
    found = outcomes(phases.SAME_PARITY, slots)
    assert phases.OLD in found and (phases.STANDSTILL in found) == (slots > 2)


def test_a_phase_is_over_when_no_arrival_and_no_byte_is_missing():
    waiting = Barrier(2, 0, 0, expected=64, came=32)
    assert waiting.settled() == waiting and waiting.over(1) and not waiting.over(0)
    after = Barrier(2, 0, 0, expected=64, came=64).settled()
    assert after == Barrier(2, 2, 1) and after.over(0) and not after.over(1)


def test_more_slots_hide_slow_copies():
    ticks = [len(run(phases.NO_MISTAKE, slots, TILES, phases.SLOW)) for slots in SLOTS]
    assert ticks == sorted(ticks, reverse=True) and len(set(ticks)) == len(ticks)
