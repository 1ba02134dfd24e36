"""The sweep: its order, resuming, and workers that fail, with fake workers."""

import os
import threading
import time
from multiprocessing import Pipe

import pytest

from gemm_course.bench import sweep as module
from gemm_course.bench.choices import (
    Queue,
    choices,
    forget,
    illegal_rows,
    remaining,
    rows_at,
    standings,
    steps_between,
)
from gemm_course.bench.sweep import Sweep, queue_of, workers_that_fit
from gemm_course.kernels import LADDER, tiles_text
from gemm_course.records.columns import SWEEP
from lockstep_tests import processes

STAGES = [LADDER["block_tiled"], LADDER["thread_tiled_1d"]]
SHAPE = (64, 64, 64)


class Pretender:
    """A fake worker process: a thread that does with a task what `behave(task)` says."""

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
    """How many workers measure on each GPU at the moment, and the most there ever were."""

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


def run_sweep(tasks, behave=lambda task: "well", gpus=("0",), workers=3, seconds=60):
    log, rows = Log(), []

    def start(gpu):
        pretender = Pretender(gpu, behave, log)
        log.started.append(gpu)
        return pretender, pretender.here

    sweep = Sweep(Queue(tasks), gpus, workers, start, rows.append)
    sweep.run(time.monotonic() + seconds)
    log.measured_on = sweep.measured_on
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
        Sweep(Queue(tasks_named("a")), ("0",), 1, start, lambda row: None).run()


def test_a_sweep_stops_in_time_and_what_was_measured_is_kept():
    slow = lambda task: time.sleep(0.05) or "well"  # noqa: E731
    rows, _ = run_sweep(tasks_named(*["x"] * 1000), slow, workers=2, seconds=1)
    assert 1 <= len(rows) < 500  # in one second of some fifty
    assert all(row["tflops"] == 1.5 for row in rows)


def test_a_sweep_does_not_wait_forever_for_its_last_measurement(monkeypatch):
    monkeypatch.setattr(module, "LAST_MEASUREMENT_SECONDS", 0.3)
    ended = []
    sweep = threading.Thread(
        target=lambda: ended.append(
            run_sweep(tasks_named("a"), lambda task: "hangs", workers=1, seconds=0.3)
        ),
        daemon=True,
    )
    sweep.start()
    sweep.join(processes.WAIT)
    ((rows, _),) = ended
    assert rows == []


def test_all_gpus_are_used_and_their_rows_counted():
    rows, log = run_sweep(tasks_named(*["x"] * 60), gpus=("0", "1", "2"), workers=6)
    assert set(log.measured_on) == {"0", "1", "2"}
    assert sum(log.measured_on.values()) == len(rows) == 60
    assert log.most == {"0": 1, "1": 1, "2": 1}


def test_no_worker_measures_while_the_first_ones_start():
    """They create their matrices on the GPU. One started later, as a replacement, delays nobody."""
    late = threading.Event()

    class Late(Pretender):
        def _serve(self):
            late.wait(1)
            assert self.log.most == {}
            super()._serve()

    log, rows = Log(), []
    kinds = iter([Pretender, Late])

    def start(gpu):
        pretender = next(kinds)(gpu, lambda task: "well", log)
        return pretender, pretender.here

    sweep = Sweep(Queue(tasks_named(*"abcd")), ("0",), 2, start, rows.append)
    threading.Timer(0.7, late.set).start()
    sweep.run()
    assert len(rows) == 4


def test_the_default_comes_first_and_the_order_is_always_the_same():
    found = choices(STAGES)
    assert found[0] == ("block_tiled", STAGES[0].complete())
    assert found[1] == ("thread_tiled_1d", STAGES[1].complete())
    assert found == choices(STAGES)
    for stage in STAGES:
        tiles = [tiles_text(t) for name, t in found if name == stage.name]
        assert sorted(tiles) == sorted(tiles_text(t) for t in stage.legal_choices())


def drained(queue):
    return [queue.take() for _ in range(len(queue))]


def test_stages_alternate_and_have_at_most_so_many_rows():
    tasks = choices(STAGES)
    taken = drained(Queue(tasks, most=3))
    assert [name for name, _ in taken] == ["block_tiled", "thread_tiled_1d"] * 3
    assert taken == tasks[:6]
    recorded = [row_for(*task) for task in tasks[:4]]
    assert drained(Queue(remaining(tasks, recorded), recorded, most=3)) == tasks[4:6]
    assert drained(Queue(remaining(tasks, recorded), recorded, most=1)) == []
    with pytest.raises(IndexError, match="no tile choice is left"):
        Queue([]).take()


def test_a_task_put_back_comes_first_again():
    queue = Queue(choices(STAGES[:1]), most=2)
    task = queue.take()
    queue.put_back(task)
    assert len(queue) == 2
    assert drained(queue)[0] == task


def test_promising_choices_are_near_the_fastest_one():
    stage = LADDER["warp_tiled"]
    tasks = choices([stage])
    fastest, slow = dict(tasks[200][1]), dict(tasks[5][1])
    rows = [row_for("warp_tiled", fastest, tflops=40.0), row_for("warp_tiled", slow, tflops=1.0)]
    queue = Queue(remaining(tasks, rows), rows, promising=True)
    first = [queue.take()[1] for _ in range(30)]
    near = [steps_between(tiles, fastest) for place, tiles in enumerate(first, 1) if place % 3]
    spread = [tiles for place, tiles in enumerate(first, 1) if place % 3 == 0]
    assert near == sorted(near)
    assert max(near) < min(20, sum(steps_between(t, fastest) for _, t in tasks) / len(tasks))
    assert spread[0] == tasks[0][1]  # every third follows the given order
    queue.learn(row_for("warp_tiled", slow, tflops=80.0))
    assert steps_between(queue.take()[1], slow) < steps_between(queue.take()[1], fastest)


def test_until_something_is_measured_promising_means_the_given_order():
    tasks = choices(STAGES)
    assert [Queue(tasks, promising=True).take()] == tasks[:1]
    failed = [row_for(*tasks[0], tflops=None) | {"reason": "registers: too many"}]
    assert drained(Queue(tasks[1:9], failed, promising=True)) == sorted(
        tasks[1:9], key=lambda task: [tasks.index(task) // 2, task[0] == "thread_tiled_1d"]
    )


def test_steps_count_doublings_and_sizes_that_differ():
    assert steps_between({"BM": 64, "PAD": 0}, {"BM": 64, "PAD": 0}) == 0
    assert steps_between({"BM": 64, "BN": 8}, {"BM": 128, "BN": 8}) == 1.5
    assert steps_between({"BM": 64, "PAD": 0}, {"BM": 16, "PAD": 4}) == 2.5 + 3.5


def row_for(stage, tiles, tflops=1.0):
    place = {"m": 64, "n": 64, "k": 64, "reason": "", "stage": stage, "tiles": tiles_text(tiles)}
    return dict.fromkeys(SWEEP.columns) | place | {"tflops": tflops}


def test_a_sweep_resumes_where_it_stopped(tmp_path):
    path = tmp_path / "sweep.csv"
    tasks = choices(STAGES)
    SWEEP.append(path, [row_for(*task) for task in tasks[:3]])
    path.write_bytes(path.read_bytes() + b"block_tiled,fp32,fp")  # interrupted while writing
    assert remaining(tasks, rows_at(SHAPE, path)) == tasks[3:]
    assert rows_at((128, 64, 64), path) == []
    assert len(SWEEP.read(path)) == 3
    queue = queue_of(STAGES, SHAPE, path, most=4, promising=False)
    assert sorted(map(str, drained(queue))) == sorted(map(str, tasks[3:8]))


@pytest.fixture
def pretenders(monkeypatch):
    """Workers that measure everything at once, and record their tasks."""
    asked, log = [], Log()

    def start(shape, dtypes, command, gpu):
        pretender = Pretender(gpu, lambda task: asked.append(task) or "well", log)
        return pretender, pretender.here

    monkeypatch.setattr(module, "start_process", start)
    return asked


@pytest.mark.parametrize("promising", [False, True])
def test_an_interrupted_sweep_loses_nothing_and_measures_nothing_twice(tmp_path, pretenders, promising):
    path, stages = tmp_path / "sweep.csv", STAGES
    options = {"gpus": ("0", "1"), "workers": 4, "promising": promising}

    class Interrupted(Exception):
        pass

    def interrupt(row):
        if len(SWEEP.rows(path)) % 7 == 0:
            raise Interrupted

    for _ in range(5):
        with pytest.raises(Interrupted):
            module.sweep(stages, SHAPE, path, "gemm-course sweep", most=40, progress=interrupt, **options)
    path.write_bytes(path.read_bytes() + b"block_tiled,fp32,fp")
    before = SWEEP.cut_partial_line(path) or SWEEP.rows(path)
    done = module.sweep(stages, SHAPE, path, "gemm-course sweep", most=40, **options)
    rows = SWEEP.rows(path)
    assert rows[: len(before)] == before
    assert len(rows) == len(before) + done.rows == 80
    assert len({(row["stage"], row["tiles"]) for row in rows}) == 80
    assert {row["stage"] for row in rows[-10:]} == {stage.name for stage in stages}
    assert set(done.measured_on) == {"0", "1"}
    assert {(row["dtype"], row["command"]) for row in rows} == {("fp32", "gemm-course sweep")}
    pretenders.clear()
    assert module.sweep(stages, SHAPE, path, "gemm-course sweep", most=40, **options).rows == 0
    assert pretenders == []


def test_stages_that_changed_are_forgotten_and_nothing_else(tmp_path):
    path = tmp_path / "sweep.csv"
    tasks = choices(STAGES)[:6]
    elsewhere = row_for(*tasks[0]) | {"m": 128}
    SWEEP.append(path, [*(row_for(*task) for task in tasks), elsewhere])
    assert forget(["block_tiled"], SHAPE, path) == 3
    left = [(row["stage"], row["m"]) for row in SWEEP.rows(path)]
    assert left == [("thread_tiled_1d", 64)] * 3 + [("block_tiled", 128)]
    before = path.read_bytes()
    assert forget(["block_tiled"], SHAPE, path) == 0
    assert path.read_bytes() == before


def test_standings_say_what_is_measured_failed_and_left():
    tasks = [task for task in choices(STAGES) if task[0] == "block_tiled"]
    rows = [row_for(*tasks[0], tflops=2.0), row_for(*tasks[1], tflops=3.0), row_for(*tasks[2], tflops=None)]
    rows[2]["reason"] = "shared memory: too much"
    rows.append(row_for("block_tiled", {"BM": 1}, tflops=None) | {"reason": "illegal: BK"})
    one, other = standings(STAGES, rows)
    assert (one.measured, one.failed, one.left) == (2, 1, len(tasks) - 3)
    assert (one.best_tiles, one.best_tflops) == (tiles_text(tasks[1][1]), 3.0)
    assert (other.stage, other.measured, other.best_tflops) == ("thread_tiled_1d", 0, None)


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
