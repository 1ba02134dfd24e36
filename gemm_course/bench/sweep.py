"""`gemm-course sweep`: every legal tile choice of every stage, measured.

Worker processes compile on all cores; this process hands each GPU to one of them at a time. A row is written
as soon as it is measured, so that an interrupted sweep goes on where it stopped.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from gemm_course.bench.worker import CRASH, serve
from gemm_course.kernels import Stage
from gemm_course.records import tiles_text
from gemm_course.records.columns import SWEEP

START_SECONDS, COMPILE_SECONDS, MEASURE_SECONDS = 120, 90, 60
CONTEXT_BYTES = 600 * 2**20  # a CUDA context with cuBLAS in it
Task = tuple[str, dict[str, int]]  # a stage's name and tiles


def choices(stages: Sequence[Stage], most: int | None, seed: int = 0) -> list[Task]:
    """What to measure: a stage's default tiles first, then its legal choices in random order; stages in turn.

    most: choices a stage, all of them if None. The order is the same every time, so a part of it is a fair
    sample.
    """
    columns = []
    for stage in stages:
        legal = [choice for choice in stage.legal_choices() if choice != stage.complete()]
        random.Random(f"{seed} {stage.name}").shuffle(legal)
        columns.append([(stage.name, tiles) for tiles in [stage.complete(), *legal][:most]])
    rows = itertools.zip_longest(*columns)
    return [task for row in rows for task in row if task is not None]


def remaining(tasks: Iterable[Task], shape: tuple[int, int, int], path: Path) -> list[Task]:
    """The tasks that the file has no row of yet, at this shape."""
    SWEEP.mend(path)
    listed = _listed(shape, path)
    return [(stage, tiles) for stage, tiles in tasks if (stage, tiles_text(tiles)) not in listed]


def _listed(shape: tuple[int, int, int], path: Path) -> set[tuple[str, str]]:
    """Stage and tiles of every row that the file has at this shape."""
    rows = SWEEP.read(path)
    same = rows[(rows["m"] == shape[0]) & (rows["n"] == shape[1]) & (rows["k"] == shape[2])]
    return set(zip(same["stage"], same["tiles"], strict=True))


def illegal_rows(
    stages: Sequence[Stage], shape: tuple[int, int, int], path: Path
) -> Iterator[dict[str, Any]]:
    """A row for every choice on offer that breaks a rule, with the rules it breaks, if the file has none."""
    listed = _listed(shape, path)
    for stage in stages:
        names = list(stage.tiles)
        for values in itertools.product(*(stage.options.get(name, (stage.tiles[name],)) for name in names)):
            tiles = dict(zip(names, values, strict=True))
            broken = stage.rules(tiles)
            if broken and (stage.name, tiles_text(tiles)) not in listed:
                yield {
                    **dict.fromkeys(SWEEP.columns),
                    **dict(zip("mnk", shape, strict=True)),
                    "stage": stage.name,
                    "dtype": "fp32",
                    "accumulate": "fp32",
                    "tiles": tiles_text(tiles),
                    "reason": "illegal: " + "; ".join(broken),
                }


def workers_that_fit(gpu_bytes: int, gpus: int, shape: tuple[int, int, int]) -> int:
    """As many as there are cores, as long as their matrices fit the GPUs' memory."""
    m, n, k = shape
    each = CONTEXT_BYTES + 8 * (m * k + k * n) + 8 * m * n + 3 * 8 * m * n
    return max(1, min(os.cpu_count() or 1, int(0.9 * gpu_bytes) // each * gpus))


@dataclass
class Worker:
    """A worker process as seen from here: what it is doing, since when, and on which GPU."""

    gpu: str
    process: Any
    connection: Connection
    state: str = "starting"  # starting, idle, compiling, waiting for the GPU, measuring
    since: float = field(default_factory=time.monotonic)
    task: Task | None = None
    row: dict[str, Any] = field(default_factory=dict)

    def turn(self, state: str) -> None:
        self.state, self.since = state, time.monotonic()

    @property
    def overdue(self) -> bool:
        limits = {"starting": START_SECONDS, "compiling": COMPILE_SECONDS, "measuring": MEASURE_SECONDS}
        return time.monotonic() - self.since > limits.get(self.state, float("inf"))


class Sweep:
    """Runs tasks on workers; `write` gets every finished row."""

    def __init__(
        self,
        tasks: Sequence[Task],
        gpus: Sequence[str],
        workers: int,
        start: Callable[[str], tuple[Any, Connection]],
        write: Callable[[dict[str, Any]], None],
    ):
        """start(gpu) begins a worker process -> (process, connection to it)."""
        self.tasks, self.start, self.write = deque(tasks), start, write
        self.workers = [Worker(gpu, *start(gpu)) for gpu, _ in zip(itertools.cycle(gpus), range(workers))]
        self.failed_starts = 0

    def run(self) -> None:
        """Until every task has its row. Raises RuntimeError if workers cannot be started."""
        try:
            while self.tasks or any(worker.task for worker in self.workers):
                self._step()
        finally:
            for worker in self.workers:
                worker.connection.close()
                worker.process.terminate()

    def _step(self) -> None:
        for worker in self.workers:
            if worker.state == "idle" and self.tasks:
                worker.task = self.tasks.popleft()
                self._ask(worker, "compiling", ("compile", *worker.task))
        for gpu in {worker.gpu for worker in self.workers}:
            self._lend(gpu)
        ready = wait([worker.connection for worker in self.workers], timeout=1)
        for worker in list(self.workers):
            if worker.connection in ready:
                self._answer(worker)
            elif worker.overdue:
                self._replace(worker, f"hung while {worker.state}")

    def _lend(self, gpu: str) -> None:
        """Let one worker measure, if none does and one has been waiting."""
        here = [worker for worker in self.workers if worker.gpu == gpu]
        waiting = [worker for worker in here if worker.state == "waiting"]
        if waiting and not any(worker.state == "measuring" for worker in here):
            self._ask(min(waiting, key=lambda worker: worker.since), "measuring", ("measure",))

    def _ask(self, worker: Worker, state: str, request: tuple) -> None:
        worker.turn(state)
        try:
            worker.connection.send(request)
        except OSError:  # it died before it had this task; another may do it
            if state == "compiling":
                self.tasks.appendleft(worker.task)
                worker.task = None
            self._replace(worker, f"{CRASH} before {state}")

    def _answer(self, worker: Worker) -> None:
        try:
            answer = worker.connection.recv()
        except (EOFError, OSError):
            self._replace(worker, f"{CRASH} while {worker.state}")
            return
        if answer == "ready":
            worker.turn("idle")
            return
        columns, reason = answer
        worker.row |= columns
        if worker.state == "compiling" and not reason:
            worker.turn("waiting")
            return
        self._finish(worker, reason)
        worker.turn("idle")
        if reason.startswith(CRASH):  # its CUDA context is gone
            self._replace(worker, reason)

    def _finish(self, worker: Worker, reason: str) -> None:
        stage, tiles = worker.task
        known = {**dict.fromkeys(SWEEP.columns), "stage": stage, "tiles": tiles_text(tiles)}
        self.write({**known, **worker.row, "reason": reason})
        worker.task, worker.row = None, {}

    def _replace(self, worker: Worker, reason: str) -> None:
        """The process is dead or hangs: note it on its task, and start another in its place."""
        if worker.state == "starting":
            self.failed_starts += 1
            if self.failed_starts > 3:
                raise RuntimeError("the sweep's worker processes do not start")
        if worker.task:
            self._finish(worker, reason)
        worker.connection.close()
        worker.process.kill()
        self.workers[self.workers.index(worker)] = Worker(worker.gpu, *self.start(worker.gpu))


def visible_gpus() -> list[str]:
    """The GPUs that CUDA shows this process, by uuid."""
    from numba import cuda

    return [gpu.uuid for gpu in cuda.gpus]


def start_process(shape: tuple[int, int, int], command: str, gpu: str) -> tuple[Any, Connection]:
    """Begin a worker in a process of its own, with a fresh interpreter."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(there, gpu, shape, command), daemon=True)
    process.start()
    there.close()
    return process, here


def sweep(
    stages: Sequence[Stage],
    shape: tuple[int, int, int],
    path: Path,
    command: str,
    most: int | None = None,
    gpus: Sequence[str] = ("0",),
    workers: int = 1,
    progress: Callable[[Mapping[str, Any]], None] = lambda row: None,
) -> int:
    """Measure what the file lacks of the stages' tile choices -> how many rows were written.

    most: choices a stage. gpus: as CUDA_VISIBLE_DEVICES names them. progress is called with every row.
    """
    tasks = remaining(choices(stages, most), shape, path)
    written = 0
    place = dict(zip("mnk", shape, strict=True)) | {"dtype": "fp32", "accumulate": "fp32", "command": command}

    def write(row: dict[str, Any]) -> None:
        nonlocal written
        SWEEP.append(path, [row | {name: value for name, value in place.items() if row[name] is None}])
        written += 1
        progress(row)

    if tasks:
        Sweep(
            tasks, gpus, min(workers, len(tasks)), lambda gpu: start_process(shape, command, gpu), write
        ).run()
    return written
