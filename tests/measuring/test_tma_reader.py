"""The reader by TMA: it reads the boxes that its bytes are computed from, in every choice that is tried."""

from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda

from gemm_course.compiler import compiled
from lockstep import emulate
from lockstep.intrinsics import tensor_map
from lockstep.limits import PROFILES
from measuring import roofs, tma_reader
from measuring.tma_reader import CHOICES, COLUMNS, Choice, array_of, reader

BLOCKS, BOXES = 5, 7


def numbered(choice: Choice) -> np.ndarray:
    """BOXES boxes, each filled with its number."""
    array = np.empty((BOXES * choice.rows, COLUMNS), np.float16)
    array.reshape(BOXES, -1)[:] = np.arange(BOXES)[:, None]
    return array


def read(choice: Choice, loads: int):
    array = numbered(choice)
    boxes = tensor_map(array, array.shape, (choice.rows, COLUMNS))
    out = np.full(BLOCKS * choice.slots, -1, np.float32)
    arguments = (boxes, np.uint32(BOXES), np.uint32(choice.sharers), np.uint32(loads), out)
    kernel = reader(choice.rows, choice.slots)
    return out, emulate(
        kernel, BLOCKS, choice.threads, *arguments, shared_bytes=choice.shared_bytes, gpu="H200"
    )


@pytest.mark.many(one_in=18, with_all=6)
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_each_slot_reads_its_boxes_one_after_the_other(choice):
    groups = -(-BLOCKS // choice.sharers)
    first = np.array([block // choice.sharers * choice.slots for block in range(BLOCKS)])
    first = (first[:, None] + np.arange(choice.slots)).ravel()
    for loads in (1, 3):
        out, report = read(choice, loads)
        assert report.findings == []
        assert out.tolist() == ((first + (loads - 1) * groups * choice.slots) % BOXES).tolist()
        assert report.total("bytes", space="global", op="load") == choice.moved(BLOCKS, loads)


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_every_choice_can_be_launched_on_an_h200(choice):
    gpu = PROFILES["H200"]
    assert choice.threads <= 1024
    assert choice.shared_bytes + 8 * choice.slots + 1024 <= gpu.max_shared_bytes
    array = array_of(gpu.l2_bytes // 4)
    assert array.nbytes <= gpu.l2_bytes // 4
    assert array.shape[0] % choice.rows == 0
    tensor_map(array, array.shape, (choice.rows, COLUMNS))  # raises if TMA could not


@pytest.mark.full(reason="compiles a kernel")
@pytest.mark.compiler
def test_the_loop_copies_and_waits_and_does_little_else():
    """A tensor map has the type of its 16 words. The compiler writes several iterations one after another."""
    arguments = (np.zeros(16, np.uint64), *(np.uint32(1),) * 3, np.zeros(1, np.float32))
    code = compiled(reader(128, 8), *arguments)
    assert code.local_bytes == 0
    bodies = [loop for loop in code.loops if loop.by_kind["asynchronous copy"]]
    assert bodies
    longest = max(bodies, key=len)
    assert len(longest) <= 32 * longest.by_kind["asynchronous copy"]
    assert longest.by_kind["global load"] == longest.by_kind["shared load"] == 0


@pytest.mark.full(reason="a large launch")
def test_the_bandwidth_is_that_of_the_bytes_that_were_read(monkeypatch):
    """The launch as it is measured, on the emulator, with a clock on which each takes a millisecond."""
    reports = []

    class OnEmulator:
        def __init__(self, rows, slots):
            self.kernel = reader(rows, slots)

        def __getitem__(self, launch):
            grid, block, _, shared_bytes = launch
            return lambda *arguments: reports.append(
                emulate(self.kernel, grid, block, *arguments, shared_bytes=shared_bytes)
            )

    def one_millisecond(go, budget_ms):
        go()
        return SimpleNamespace(best_ms=1.0)

    monkeypatch.setattr(cuda, "to_device", lambda array: array)
    monkeypatch.setattr(tma_reader, "reader", OnEmulator)
    monkeypatch.setattr(tma_reader, "LOADS", 3)
    monkeypatch.setattr(roofs, "gpu_facts", lambda: SimpleNamespace(multiprocessors=BLOCKS))
    monkeypatch.setattr(roofs, "time_launch", one_millisecond)
    for name in ("compile_for", "allow_shared_memory"):
        monkeypatch.setattr(roofs, name, lambda *_: None)
    array = array_of(BOXES * 32 * 1024)
    for choice in CHOICES[::5]:
        speed = roofs._speed_by_tma(array, choice)
        assert reports[-1].findings == []
        assert speed == pytest.approx(1e-9 * reports[-1].total("bytes", space="global", op="load"))


@pytest.mark.gpu
def test_tma_reads_l2_faster_than_dram_and_slower_than_shared_memory_is_written(tmp_path):
    """128 bytes per clock and multiprocessor."""
    from gemm_course.device import gpu_facts, why_too_old

    if why := why_too_old("TMA", (9, 0)):
        pytest.skip(why)
    gpu, found = gpu_facts(), roofs.measure_roofs(tmp_path / "roofs.csv", "test")
    assert found["DRAM"] < found["L2 by TMA"] < 128e-6 * gpu.multiprocessors * gpu.max_sm_clock_mhz
