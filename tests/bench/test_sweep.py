"""The sweep's order, its resuming, and its handling of workers that fail, with workers that only pretend."""

import os
import threading
import time
from multiprocessing import Pipe

import pytest

from gemm_course.bench import sweep as module
from gemm_course.bench.sweep import Sweep, choices, illegal_rows, remaining, workers_that_fit
from gemm_course.kernels import LADDER
from gemm_course.records import tiles_text
from gemm_course.records.columns import SWEEP

STAGES = [LADDER["block_tiled"], LADDER["thread_tiled_1d"]]
SHAPE = (64, 64, 64)


class Pretender:
    """Stands in for a worker process: a thread that does with a task what `behave(task)` says."""

    def __init__(self, gpu, behave, log):
        self.gpu, self.behave, self.log = gpu, behave, log
        self.alive = True
        self.here, self.there = Pipe()
        threading.Thread(target=self._serve, daemon=True).start()

    def kill(self):
        self.alive = False

    terminate = kill

    def _serve(self):
        there = self.there
        there.send("ready")
        try:
            while True:
                request, *task = there.recv()
                if request == "compile":
                    self.task = tuple(task)
                    conduct = self.behave(self.task)
                    if conduct == "dies compiling":
                        there.close()
                        return
                    there.send(({"registers": 7}, conduct if conduct.startswith("illegal") else ""))
                else:
                    self.log.enter(self.gpu)
                    time.sleep(0.002)
                    self.log.leave(self.gpu)
                    conduct = self.behave(self.task)
                    if conduct == "dies measuring":
                        there.close()
                        return
                    if conduct == "hangs":
                        return
                    reason = conduct if conduct.startswith(("wrong", "crashed")) else ""
                    there.send(({} if reason else {"tflops": 1.5}, reason))
        except (EOFError, OSError):
            pass


class Log:
    """Who measures on which GPU at the moment, and the most there ever were."""

    def __init__(self):
        self.lock, self.now, self.most = threading.Lock(), {}, {}
        self.started = []

    def enter(self, gpu):
        with self.lock:
            self.now[gpu] = self.now.get(gpu, 0) + 1
            self.most[gpu] = max(self.most.get(gpu, 0), self.now[gpu])

    def leave(self, gpu):
        with self.lock:
            self.now[gpu] -= 1


def run_sweep(tasks, behave=lambda task: "well", gpus=("0",), workers=3):
    log, rows = Log(), []

    def start(gpu):
        pretender = Pretender(gpu, behave, log)
        log.started.append(gpu)
        return pretender, pretender.here

    Sweep(tasks, gpus, workers, start, rows.append).run()
    return rows, log


def tasks_named(*names):
    return [(name, {"BM": number}) for number, name in enumerate(names)]


def test_every_task_gets_its_row():
    tasks = tasks_named(*"abcdefghij")
    rows, log = run_sweep(tasks)
    assert {(row["stage"], row["tiles"]) for row in rows} == {(s, tiles_text(t)) for s, t in tasks}
    assert all(row["tflops"] == 1.5 and row["registers"] == 7 and row["reason"] == "" for row in rows)
    assert set(rows[0]) == set(SWEEP.columns)
    assert log.started == ["0"] * 3


def test_one_kernel_at_a_time_on_each_gpu():
    _, log = run_sweep(tasks_named(*["x"] * 40), gpus=("0", "1"), workers=6)
    assert log.most == {"0": 1, "1": 1}
    assert sorted(log.started) == ["0"] * 3 + ["1"] * 3


@pytest.mark.parametrize("conduct", ["dies compiling", "dies measuring", "crashed: ILLEGAL_ADDRESS"])
def test_a_worker_that_dies_costs_one_row(conduct):
    rows, log = run_sweep(
        tasks_named(*"abcdef"), lambda task: conduct if task[0] == "c" else "well", workers=2
    )
    reasons = {row["stage"]: row["reason"] for row in rows}
    assert reasons.pop("c").startswith("crashed")
    assert set(reasons) == set("abdef")
    assert not any(reasons.values())
    assert len(log.started) == 3


def test_a_kernel_that_hangs_is_given_up(monkeypatch):
    monkeypatch.setattr(module, "MEASURE_SECONDS", 0.2)
    rows, log = run_sweep(tasks_named(*"abc"), lambda task: "hangs" if task[0] == "b" else "well", workers=2)
    reasons = {row["stage"]: row["reason"] for row in rows}
    assert reasons == {"a": "", "b": "hung while measuring", "c": ""}
    assert len(log.started) == 3


def test_what_does_not_compile_is_not_measured():
    rows, log = run_sweep(tasks_named("a", "b"), lambda task: "illegal: x" if task[0] == "a" else "wrong: y")
    assert {row["stage"]: row["reason"] for row in rows} == {"a": "illegal: x", "b": "wrong: y"}
    assert all(row["tflops"] is None for row in rows)
    assert log.most == {"0": 1}


def test_workers_that_never_start_end_the_sweep(monkeypatch):
    class Stillborn:
        def kill(self):
            pass

        terminate = kill

    def start(gpu):
        here, there = Pipe()
        there.close()
        return Stillborn(), here

    with pytest.raises(RuntimeError, match="do not start"):
        Sweep(tasks_named("a"), ("0",), 1, start, lambda row: None).run()


def test_the_default_comes_first_and_the_order_is_always_the_same():
    found = choices(STAGES, None)
    assert found[0] == ("block_tiled", STAGES[0].complete())
    assert found[1] == ("thread_tiled_1d", STAGES[1].complete())
    assert found == choices(STAGES, None)
    assert choices(STAGES, 5) == [task for task in found if task in choices(STAGES, 5)]
    for stage in STAGES:
        tiles = [tiles_text(t) for name, t in found if name == stage.name]
        assert sorted(tiles) == sorted(tiles_text(t) for t in stage.legal_choices())
    assert [name for name, _ in choices(STAGES, 3)] == ["block_tiled", "thread_tiled_1d"] * 3


def test_a_sweep_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "sweep.csv"
    tasks = choices(STAGES, 4)
    row = dict.fromkeys(SWEEP.columns) | {"m": 64, "n": 64, "k": 64, "reason": ""}
    SWEEP.append(path, [row | {"stage": name, "tiles": tiles_text(tiles)} for name, tiles in tasks[:3]])
    path.write_bytes(path.read_bytes() + b"block_tiled,fp32,fp")  # interrupted while writing
    assert remaining(tasks, SHAPE, path) == tasks[3:]
    assert remaining(tasks, (128, 64, 64), path) == tasks
    assert len(SWEEP.read(path)) == 3


def test_illegal_choices_are_listed_once_with_their_rules(tmp_path):
    path = tmp_path / "sweep.csv"
    rows = list(illegal_rows([LADDER["block_tiled"]], SHAPE, path))
    SWEEP.append(path, rows[:10])
    assert list(illegal_rows([LADDER["block_tiled"]], SHAPE, path)) == rows[10:]
    stage = LADDER["block_tiled"]
    offered = len(stage.options["BM"]) * len(stage.options["BN"]) * len(stage.options["BK"])
    assert len(rows) + len(stage.legal_choices()) == offered
    assert all(row["reason"].startswith("illegal: ") for row in rows)


def test_workers_fit_the_gpus_memory():
    assert workers_that_fit(10**12, 1, (4096, 4096, 4096)) == (os.cpu_count() or 1)
    assert workers_that_fit(8 * 2**30, 1, (8192, 8192, 8192)) <= 2
    assert workers_that_fit(0, 1, SHAPE) == 1
