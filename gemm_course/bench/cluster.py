"""`gemm-course sweep --cluster`: a sweep in shards, each a job of its own on a cluster, through submitit.

Shard i of n has every n-th choice from the i-th on: shards do not overlap, and together they are the whole.
Each job runs `gemm-course sweep --shard i/n` into a folder of its own, with one GPU. What it has measured is
on the disk at once: a job that is killed, preempted or out of time goes on where it was, when Slurm puts it
into the queue again or when this process submits what is missing. At the end the shards' rows are merged.

On one machine the course's own worker processes stay, and submitit's local executor does not replace them:
they compile on all cores while one of them measures on each GPU, where a job per GPU compiles and measures in
turn, and when a kernel crashes they replace one process and lose one choice. Inside a job they are the same.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemm_course.bench.merge import Merged, merge

ATTEMPTS = 3  # how often a shard is submitted before its job's log is named
POLL_SECONDS, GRACE_SECONDS = 5, 5
STOPPED = (
    "Jobs go on without this command. `squeue --me` shows them; the same command collects what they did."
)


class ClusterError(RuntimeError):
    """Something about the cluster, in a sentence."""


@dataclass(frozen=True)
class Shard:
    """Part ``number`` of ``of``, counted from 1."""

    number: int
    of: int

    @classmethod
    def read(cls, text: str) -> Shard:
        """Read "2/4". Raises ValueError for anything that is no part of a whole."""
        number, slash, of = text.partition("/")
        if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise ValueError(f"a shard is written as in 2/4, the second of four; {text!r} is none")
        return cls(int(number), int(of))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def part(self, whole: Sequence) -> list:
        """This shard's part of a sequence: every `of`-th, from the `number`-th on."""
        return list(whole[self.number - 1 :: self.of])

    @property
    def folder(self) -> str:
        return f"shard-{self.number}-of-{self.of}"


class Job:
    """What a node does: the sweep of one shard. submitit calls it there, and again after a preemption."""

    def __init__(self, command: Sequence[str]):
        self.command = list(command)

    def __call__(self) -> None:
        done = subprocess.run(self.command)
        if done.returncode:
            raise RuntimeError(f"the sweep of this shard ended with exit code {done.returncode}")

    def checkpoint(self):
        """What to put into the queue where the job is preempted or out of time: the same; it resumes."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def run(
    shards: Sequence[Shard],
    folder: Path,
    command: Callable[[Shard, Path], Sequence[str]],
    is_done: Callable[[Shard, Path], bool],
    executor,
    say: Callable[[str], None] = print,
) -> list[Merged]:
    """Submit the shards that are not done, wait for them, and merge all into ``folder`` -> what was merged.

    command(shard, folder) is what a node runs, is_done(shard, folder) whether nothing is left of it.
    executor: submitit's, with its parameters set. A shard that is lost is submitted again. KeyboardInterrupt
    leaves the jobs alone. Raises ClusterError for a shard that is not done after ATTEMPTS submissions.
    """
    places = {shard: folder / shard.folder for shard in shards}
    for attempt in range(1, ATTEMPTS + 1):
        missing = [shard for shard in shards if not is_done(shard, places[shard])]
        if not missing:
            break
        with executor.batch():
            jobs = [executor.submit(Job(command(shard, places[shard]))) for shard in missing]
        again = "" if attempt == 1 else ", again"
        names = ", ".join(job.job_id for job in jobs)
        say(f"{len(jobs)} of {len(shards)} shards submitted{again}: jobs {names}")
        _wait(dict(zip(missing, jobs)), say)
    left = [shard for shard in shards if not is_done(shard, places[shard])]
    if left:
        logs = ", ".join(str(job.paths.stderr) for shard, job in zip(missing, jobs) if shard in left)
        raise ClusterError(f"{len(left)} shards are not done after {ATTEMPTS} submissions; see {logs}")
    return [merged for shard in shards for merged in merge(places[shard], folder)]


def _wait(jobs: dict, say: Callable[[str], None]) -> None:
    """Until all have ended, however."""
    open_jobs = dict(jobs)
    try:
        while open_jobs:
            for shard, job in list(open_jobs.items()):
                ended = job.done()
                if ended or _is_gone(job):
                    del open_jobs[shard]
                    fine = ended and job.exception() is None
                    say(f"shard {shard} {'ended' if fine else 'was lost'}; {len(open_jobs)} to go")
            if open_jobs:
                time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        say(STOPPED)
        raise


def _is_gone(job) -> bool:
    """Whether Slurm's queue has no such job: submitit asks its accounting, which not all clusters have."""
    if type(job).__name__ != "SlurmJob":
        return False
    asked = subprocess.run(["squeue", "--noheader", "--jobs", job.job_id], capture_output=True, text=True)
    if asked.stdout.strip():
        return False
    time.sleep(GRACE_SECONDS)  # its result may be on its way through a network folder
    return not job.done()


def executor_for(folder: Path, minutes: int, partition: str | None, cluster: str | None = None):
    """submitit's executor for this machine: Slurm's, or processes here where there is no Slurm.

    minutes: of a job. cluster: "slurm" or "local" to insist. Raises ClusterError where submitit is missing.
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
    """What a node runs for a shard: this Python's `gemm-course sweep` with the same arguments."""

    def command(shard: Shard, folder: Path) -> list[str]:
        here = ["--shard", str(shard), "--folder", str(folder)]
        return [sys.executable, "-m", "gemm_course", "sweep", *arguments, *here]

    return command
