"""Runs `gemm-course sweep --cluster`: submits each shard of a sweep as a job of a cluster, by submitit.

Shard i of n has every n-th choice from the i-th on, so shards do not overlap, and together they are the
whole. Each job runs `gemm-course sweep --shard i/n` with one GPU and writes into its own folder. Each row is
on the disk as soon as it is measured. So a job that was killed, preempted or out of time resumes, when Slurm
puts it into the queue again or when this process submits it again. At the end the shards' rows are merged.

On one machine the course's own worker processes need no shards. One queue feeds all GPUs, so that no GPU
waits for the slowest shard, and one set of processes compiles for all. Each job runs the same workers, and a
kernel that crashes costs a job no more than one process and one choice. For 40 choices of block_tiled and
vectorized at 2048, compiling included, the workers took 30.0 s with one H100 and 21.8 s with two. Two local
jobs with one H100 each took 27.6 s (32 cores, driver 580.159.04, numba-cuda 0.30.4, 2026-11-26; a run each).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemm_course.bench.merge import Merged, merge

# After this many jobs of a shard in a row that write nothing, an error names the last log.
ATTEMPTS = 3
POLL_SECONDS, GRACE_SECONDS = 5, 5
STOPPED = (
    "Jobs go on without this command: `squeue --me` shows them, and the same command waits for them again."
)


class ClusterError(RuntimeError):
    """The error for a request that the cluster cannot serve. Its message is one sentence."""


@dataclass(frozen=True)
class Shard:
    """A part of a sweep, with its ``number``, counted from 1, among ``of`` parts."""

    number: int
    of: int

    @classmethod
    def read(cls, text: str) -> Shard:
        """Return the shard that a text such as "2/4" names. Raise ValueError for a text that names none."""
        number, slash, of = text.partition("/")
        if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise ValueError(f"a shard is written as in 2/4, the second of four; {text!r} is none")
        return cls(int(number), int(of))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def part(self, whole: Sequence) -> list:
        """Return this shard's elements of a sequence, which are every `of`-th from the `number`-th on."""
        return list(whole[self.number - 1 :: self.of])

    @property
    def folder(self) -> str:
        return f"shard-{self.number}-of-{self.of}"


class Job:
    """The sweep of one shard, which submitit calls on a node, and again after a preemption."""

    def __init__(self, command: Sequence[str], gpu: str | None = None):
        """Keep the command and the GPU, as CUDA_VISIBLE_DEVICES names it.

        ``gpu`` is None where Slurm assigns a GPU to the job.
        """
        self.command, self.gpu = list(command), gpu

    def __call__(self) -> None:
        own = {} if self.gpu is None else {"CUDA_VISIBLE_DEVICES": self.gpu}
        done = subprocess.run(self.command, env=os.environ | own)
        if done.returncode:
            raise RuntimeError(f"the sweep of this shard ended with exit code {done.returncode}")

    def checkpoint(self):
        """Return the job to queue after a preemption or a time limit, which is the same one and resumes."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def run(
    shards: Sequence[Shard],
    folder: Path,
    command: Callable[[Shard, Path], Sequence[str]],
    is_done: Callable[[Shard, Path], bool],
    executor,
    say: Callable[[str], None] = print,
    gpus: Sequence[str] = (),
) -> list[Merged]:
    """Submit the shards that are not done, wait for them, and merge all into ``folder``.

    Return what was merged. ``command(shard, folder)`` returns what a node runs. ``is_done(shard, folder)``
    tells whether the shard is complete. ``executor`` is submitit's, with its parameters set. ``gpus`` are
    this machine's GPUs, one for each local job, because submitit's local executor gives the first one to all
    jobs. A lost shard is submitted again at once. A job that an earlier call has put into Slurm's queue is
    waited for. KeyboardInterrupt leaves Slurm's jobs alone and ends local ones. Raise ClusterError for a
    shard of which ATTEMPTS jobs in a row wrote nothing.
    """
    places = {shard: folder / shard.folder for shard in shards}
    jobs = _in_the_queue(executor, places)
    if jobs:
        say(f"{len(jobs)} of {len(shards)} shards have jobs already: {_names(jobs)}")
    tries, sizes, last, lent = Counter(), {}, {}, {}
    while True:
        missing = [shard for shard in shards if shard not in jobs and not is_done(shard, places[shard])]
        for shard in missing:
            before, sizes[shard] = sizes.get(shard), _size(places[shard])
            tries[shard] *= before == sizes[shard]
        ready = [shard for shard in missing if tries[shard] < ATTEMPTS]
        if gpus:
            lent |= zip(ready, [gpu for gpu in gpus if gpu not in lent.values()])
            ready = [shard for shard in ready if shard in lent]
        if ready:
            with executor.batch():
                new = {s: executor.submit(Job(command(s, places[s]), lent.get(s))) for s in ready}
            again = ", again" if all(shard in last for shard in ready) else ""
            say(f"{len(new)} of {len(shards)} shards submitted{again}: jobs {_names(new)}")
            jobs, last = jobs | new, last | new
            tries.update(ready)
        if not jobs:
            break
        for shard in _wait(jobs, say):
            del jobs[shard]
            lent.pop(shard, None)
            how = "ended" if is_done(shard, places[shard]) else "was lost"
            say(f"shard {shard} {how}; {len(jobs)} jobs to go")
    if missing:
        logs = ", ".join(str(last[shard].paths.stderr) for shard in missing)
        raise ClusterError(
            f"{len(missing)} shards are not done, and {ATTEMPTS} jobs in a row wrote nothing; see {logs}"
        )
    with_rows = [place for place in places.values() if _size(place)]
    return [merged for place in with_rows for merged in merge(place, folder)]


def _names(jobs: dict) -> str:
    return ", ".join(job.job_id for job in jobs.values())


def _size(place: Path) -> int:
    """Return the bytes that a shard's sweep has written."""
    rows = place / "sweep.csv"
    return rows.stat().st_size if rows.exists() else 0


def _in_the_queue(executor, places: dict) -> dict:
    """Return the shards' jobs that an earlier call has submitted to Slurm and that have not ended."""
    if executor.cluster != "slurm":
        return {}
    from submitit import SlurmJob

    queue = _queue()
    if queue is None:
        raise ClusterError("Slurm does not answer: `squeue --me` fails.")
    found = {}
    for path in sorted(executor.folder.glob("*_submitted.pkl")):
        name = path.name.removesuffix("_submitted.pkl")
        if name in queue:
            job = SlurmJob(executor.folder, name)
            given = job.submission().function.command
            found |= {shard: job for shard, place in places.items() if str(place) in given}
    return found


def _queue() -> set[str] | None:
    """Return the names of this user's jobs in Slurm's queue, as submitit writes them.

    Return None if Slurm does not answer. Submitit is not asked, because it asks Slurm's accounting, which
    some clusters lack. It also believes that a job has ended when Slurm has put it back into the queue.
    """
    asked = subprocess.run(
        ["squeue", "--me", "--noheader", "--array", "--format=%i"], capture_output=True, text=True
    )
    return None if asked.returncode else set(asked.stdout.split())


def _wait(jobs: dict, say: Callable[[str], None]) -> list[Shard]:
    """Wait until at least one job has ended, well or not. Return the shards of the ended jobs."""
    local = not any(type(job).__name__ == "SlurmJob" for job in jobs.values())
    try:
        while True:
            queue = None if local else _queue()
            if local:
                ended = [shard for shard, job in jobs.items() if job.done()]
            elif queue is not None:
                ended = [shard for shard, job in jobs.items() if job.job_id not in queue]
            else:
                # Slurm does not answer now, so no job is known to have ended.
                ended = []
            if ended:
                time.sleep(0 if local else GRACE_SECONDS)  # On a network folder the last rows may come late.
                return ended
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        if local:
            for job in jobs.values():
                job.cancel()
        else:
            say(STOPPED)
        raise


def executor_for(folder: Path, minutes: int, partition: str | None, cluster: str | None = None):
    """Return submitit's executor for this machine: Slurm's, or local processes where there is no Slurm.

    ``minutes`` is the time limit of a job. ``cluster`` is "slurm" or "local" to insist on one of them. Raise
    ClusterError where submitit is missing.
    """
    try:
        import submitit
    except ImportError:
        raise ClusterError("A sweep on a cluster needs submitit: `pip install submitit`.") from None
    executor = submitit.AutoExecutor(folder=folder / "jobs", cluster=cluster)
    executor.update_parameters(name="gemm-course-sweep", timeout_min=minutes, gpus_per_node=1)
    if executor.cluster == "slurm" and partition:
        executor.update_parameters(slurm_partition=partition)
    return executor


def sweep_command(arguments: Sequence[str]) -> Callable[[Shard, Path], list[str]]:
    """Return a function from a shard and its folder to a node's command.

    The command is `gemm-course sweep` with these options.
    """

    def command(shard: Shard, folder: Path) -> list[str]:
        here = ["--shard", str(shard), "--folder", str(folder)]
        return [sys.executable, "-m", "gemm_course", "sweep", *arguments, *here]

    return command
