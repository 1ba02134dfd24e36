"""Runs `gemm-course sweep`: measures every legal tile choice of every stage.

Worker processes compile on all cores, and this process lends each GPU to one of them at a time. A row is
written as soon as it is measured, so that an interrupted sweep resumes where it stopped.
"""

from __future__ import annotations

import itertools
import math
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from gemm_course.bench.choices import Queue, Task, choices, common_columns, remaining, rows_at
from gemm_course.bench.cluster import Shard
from gemm_course.bench.worker import CRASH, serve
from gemm_course.kernels import LADDER, Stage, tiles_text
from gemm_course.records.columns import SWEEP

START_SECONDS, COMPILE_SECONDS, MEASURE_SECONDS = 120, 90, 20
# A CUDA context with cuBLAS in it takes about this many bytes.
CONTEXT_BYTES = 600 * 2**20
# A sweep may run this much longer to finish a measurement.
LAST_MEASUREMENT_SECONDS = 15


def cores() -> int:
    """Return how many cores this process may use. A job on a cluster has only some of the node's."""
    # Only Linux has this function.
    own = getattr(os, "sched_getaffinity", None)
    return len(own(0)) if own else os.cpu_count() or 1


def workers_that_fit(gpu_bytes: int, gpus: int, shape: tuple[int, int, int], dtypes: int = 1) -> int:
    """Return how many workers to start: one per core, or fewer if the GPUs' memory has no room.

    Each worker needs room for its matrices. ``dtypes`` is the number of dtypes for which each holds matrices.
    """
    m, n, k = shape
    each = CONTEXT_BYTES + dtypes * (8 * (m * k + k * n) + 8 * m * n + 3 * 8 * m * n)
    return max(1, min(cores(), int(0.9 * gpu_bytes) // each * gpus))


@dataclass
class Worker:
    """A worker process: what it is doing, since when, and on which GPU.

    ``first`` is true if the worker was started with the sweep, and not as a replacement. ``state`` is
    "starting", "idle", "compiling", "waiting" (for the GPU) or "measuring".
    """

    gpu: str
    process: Any
    connection: Connection
    first: bool = True
    state: str = "starting"
    since: float = field(default_factory=time.monotonic)
    task: Task | None = None
    row: dict[str, Any] = field(default_factory=dict)

    def enter(self, state: str) -> None:
        self.state, self.since = state, time.monotonic()

    @property
    def overdue(self) -> bool:
        limits = {"starting": START_SECONDS, "compiling": COMPILE_SECONDS, "measuring": MEASURE_SECONDS}
        return time.monotonic() - self.since > limits.get(self.state, float("inf"))


class Sweep:
    """A sweep in progress: worker processes compile in parallel, and one at a time measures on each GPU.

    ``write`` is called with every finished row. ``measured_on`` counts, for each GPU, the rows whose task
    reached its measurement.
    """

    def __init__(
        self,
        tasks: Queue,
        gpus: Sequence[str],
        workers: int,
        start: Callable[[str], tuple[Any, Connection]],
        write: Callable[[dict[str, Any]], None],
    ):
        """Start the workers.

        ``start(gpu)`` starts a worker process and returns it with a connection to it.
        """
        self.tasks, self.start, self.write = tasks, start, write
        self.measured_on: Counter[str] = Counter()
        self.workers = [Worker(gpu, *start(gpu)) for gpu, _ in zip(itertools.cycle(gpus), range(workers))]
        self.failed_starts = 0

    def run(self, until: float = math.inf) -> None:
        """Run until every task has its row, or until a time.monotonic(). Finish a measurement under way.

        Raise RuntimeError if workers cannot be started.
        """
        try:
            while self._goes_on(until):
                self._step(late=time.monotonic() >= until)
        finally:
            for worker in self.workers:
                worker.connection.close()
                worker.process.terminate()

    def _goes_on(self, until: float) -> bool:
        now = time.monotonic()
        if now >= until:
            measuring = any(worker.state == "measuring" for worker in self.workers)
            return measuring and now < until + LAST_MEASUREMENT_SECONDS
        return bool(self.tasks) or any(worker.task for worker in self.workers)

    def _step(self, late: bool) -> None:
        """Give idle workers tasks, lend GPUs, and take answers. If ``late``, start nothing new."""
        for worker in self.workers:
            if worker.state == "idle" and self.tasks and not late:
                worker.task = self.tasks.take()
                self._ask(worker, "compiling", ("compile", *worker.task))
        for gpu in {worker.gpu for worker in self.workers}:
            if not late:
                self._lend(gpu)
        ready = wait([worker.connection for worker in self.workers], timeout=0.5)
        for worker in list(self.workers):
            if worker.connection in ready:
                self._answer(worker)
            elif worker.overdue:
                self._replace(worker, f"hung while {worker.state}")

    def _lend(self, gpu: str) -> None:
        """Let the worker that has waited longest measure, unless one is measuring.

        No worker measures while the first workers are still creating their matrices on the GPU.
        """
        here = [worker for worker in self.workers if worker.gpu == gpu]
        waiting = [worker for worker in here if worker.state == "waiting"]
        starting = any(worker.state == "starting" and worker.first for worker in here)
        if waiting and not starting and not any(worker.state == "measuring" for worker in here):
            self._ask(min(waiting, key=lambda worker: worker.since), "measuring", ("measure",))

    def _ask(self, worker: Worker, state: str, request: tuple) -> None:
        worker.enter(state)
        try:
            worker.connection.send(request)
        except OSError:  # The worker died before it got this task, so another may do it.
            if state == "compiling":
                self.tasks.put_back(worker.task)
                worker.task = None
            self._replace(worker, f"{CRASH} before {state}")

    def _answer(self, worker: Worker) -> None:
        try:
            answer = worker.connection.recv()
        except (EOFError, OSError):
            self._replace(worker, f"{CRASH} while {worker.state}")
            return
        if answer == "ready":
            worker.enter("idle")
            return
        columns, reason = answer
        worker.row |= columns
        if worker.state == "compiling" and not reason:
            worker.enter("waiting")
            return
        self._finish(worker, reason)
        worker.enter("idle")
        # The worker's CUDA context is lost.
        if reason.startswith(CRASH):
            self._replace(worker, reason)

    def _finish(self, worker: Worker, reason: str) -> None:
        stage, tiles = worker.task
        known = {**dict.fromkeys(SWEEP.columns), "stage": stage, "tiles": tiles_text(tiles)}
        row = {**known, **worker.row, "reason": reason}
        self.measured_on[worker.gpu] += worker.state == "measuring"
        self.tasks.learn(row)
        self.write(row)
        worker.task, worker.row = None, {}

    def _replace(self, worker: Worker, reason: str) -> None:
        """Record for a worker's task that the worker is dead or hangs, and start another in its place."""
        if worker.state == "starting":
            self.failed_starts += 1
            if self.failed_starts > 3:
                raise RuntimeError("the sweep's worker processes do not start")
        if worker.task:
            self._finish(worker, reason)
        worker.connection.close()
        worker.process.kill()
        self.workers[self.workers.index(worker)] = Worker(worker.gpu, *self.start(worker.gpu), first=False)


def visible_gpus() -> list[str]:
    """Return the uuids of the GPUs that CUDA shows this process."""
    from numba import cuda

    return [gpu.uuid for gpu in cuda.gpus]


def start_process(
    shape: tuple[int, int, int], dtypes: Sequence[str], command: str, gpu: str
) -> tuple[Any, Connection]:
    """Start a worker in a process with a fresh interpreter. Return the process and a connection to it."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(there, gpu, shape, dtypes, command), daemon=True)
    process.start()
    there.close()
    return process, here


@dataclass(frozen=True)
class Done:
    """The result of one run of a sweep: rows written, and how many of them each GPU measured."""

    rows: int
    measured_on: Mapping[str, int]


def sweep(
    stages: Sequence[Stage],
    shape: tuple[int, int, int],
    path: Path,
    command: str,
    most: int | None = None,
    gpus: Sequence[str] = ("0",),
    workers: int = 1,
    progress: Callable[[Mapping[str, Any]], None] = lambda row: None,
    promising: bool = False,
    until: float = math.inf,
    shard: Shard | None = None,
) -> Done:
    """Measure the tile choices of the stages that the file lacks.

    ``most`` is the number of rows per stage, including those of the file, and with a shard those of all
    shards together. ``gpus`` are as CUDA_VISIBLE_DEVICES names them. ``progress`` is called with every row.
    With ``promising``, choices near the fastest ones are measured first. ``until`` is a time.monotonic().
    """
    queue = queue_of(stages, shape, path, most, promising, shard)
    written = 0

    def write(row: dict[str, Any]) -> None:
        nonlocal written
        common = common_columns(LADDER[row["stage"]], shape) | {"command": command}
        SWEEP.append(path, [row | {name: value for name, value in common.items() if row[name] is None}])
        written += 1
        progress(row)

    if not queue:
        return Done(0, {})
    dtypes = sorted({stage.dtype for stage in stages})
    run = Sweep(
        queue,
        gpus,
        min(workers, len(queue)),
        lambda gpu: start_process(shape, dtypes, command, gpu),
        write,
    )
    run.run(until)
    return Done(written, dict(run.measured_on))


def queue_of(
    stages: Sequence[Stage],
    shape: tuple[int, int, int],
    path: Path,
    most: int | None,
    promising: bool,
    shard: Shard | None = None,
) -> Queue:
    """Return the tile choices of the stages, or of a shard of them, that the file lacks at this shape."""
    names = {stage.name for stage in stages}
    rows = [row for row in rows_at(shape, path) if row["stage"] in names]
    if shard is None:
        return Queue(remaining(choices(stages), rows), rows, most, promising)
    # The whole is the same in every shard, so that shards do not overlap.
    whole = [task for stage in stages for task in choices([stage])[:most]]
    return Queue(remaining(shard.part(whole), rows), rows, None, promising)
