"""A sweep in shards on a cluster, with pretended GPUs: nothing twice, nothing lost, also after a kill."""

import contextlib
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import submitit
from typer.testing import CliRunner

from gemm_course.bench import cluster
from gemm_course.bench.choices import choices
from gemm_course.bench.cli import app
from gemm_course.bench.cluster import ClusterError, Job, Shard
from gemm_course.bench.sweep import queue_of, workers_that_fit
from gemm_course.records.columns import SWEEP
from tests.bench.pretended_sweep import SHAPE, STAGES, measure

ROOT = Path(__file__).parents[2]
MOST, SHARDS = 20, 4  # choices per stage: 60 in all


def command(shard: Shard, folder: Path) -> list[str]:
    dies = [str(folder.parent / "it-died")] if shard.number == 2 else []
    return [sys.executable, "-m", "tests.bench.pretended_sweep", str(MOST), str(shard), str(folder), *dies]


def is_done(shard: Shard, folder: Path) -> bool:
    return not queue_of(STAGES, SHAPE, folder / "sweep.csv", MOST, False, shard)


def rows(path: Path) -> list[tuple]:
    return sorted((row["stage"], row["tiles"], row["tflops"]) for row in SWEEP.rows(path))


def run(folder: Path, executor, said: list[str]) -> None:
    shards = [Shard(number, SHARDS) for number in range(1, SHARDS + 1)]
    cluster.run(shards, folder, command, is_done, executor, said.append)


@pytest.mark.parametrize("text", ["2/4", "1/1", "4/4"])
def test_a_shard_is_written_as_it_is_said(text):
    assert str(Shard.read(text)) == text


@pytest.mark.parametrize("text", ["0/4", "5/4", "2", "a/b", "1/0", "-1/4", ""])
def test_what_is_no_shard_is_told(text):
    with pytest.raises(ValueError, match="as in 2/4"):
        Shard.read(text)


@pytest.mark.parametrize("of", [1, 3, 4, 7])
def test_shards_are_the_whole_and_do_not_overlap(tmp_path, of):
    found = Counter()
    for number in range(1, of + 1):
        queue = queue_of(STAGES, SHAPE, tmp_path / "none.csv", MOST, False, Shard(number, of))
        found.update(str(queue.take()) for _ in range(len(queue)))
    wanted = [str(task) for stage in STAGES for task in choices([stage])[:MOST]]
    assert sorted(found.elements()) == sorted(wanted)


def test_a_shard_goes_on_where_its_file_ends(tmp_path):
    measure(MOST, Shard(1, SHARDS), tmp_path)
    once = rows(tmp_path / "sweep.csv")
    measure(MOST, Shard(1, SHARDS), tmp_path)
    assert rows(tmp_path / "sweep.csv") == once and len(once) == MOST * len(STAGES) // SHARDS


def test_a_job_that_fails_says_so_and_one_that_is_preempted_is_the_same_again():
    with pytest.raises(RuntimeError, match="exit code 3"):
        Job([sys.executable, "-c", "raise SystemExit(3)"])()
    Job([sys.executable, "-c", ""])()


def test_without_submitit_it_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    shown = CliRunner().invoke(app, ["sweep", "block_tiled", "--cluster", "4", "--folder", str(tmp_path)])
    assert shown.exit_code != 0 and "pip install submitit" in shown.output


def test_a_folder_is_needed_that_all_nodes_see():
    shown = CliRunner().invoke(app, ["sweep", "block_tiled", "--cluster", "4"])
    assert shown.exit_code != 0 and "needs --folder" in shown.output


def test_what_a_cluster_would_leave_out_is_told(tmp_path):
    given = ["sweep", "block_tiled", "--cluster", "4", "--folder", str(tmp_path), "--again", "block_tiled"]
    shown = CliRunner().invoke(app, given)
    assert shown.exit_code == 1 and "--cluster goes without --again" in shown.output


def test_a_node_gets_the_same_sweep_and_its_shard(tmp_path):
    given = cluster.sweep_command(["block_tiled", "--size", "512x512x512"])(Shard(2, 4), tmp_path)
    assert given[1:4] == ["-m", "gemm_course", "sweep"] and given[-4:] == [
        "--shard",
        "2/4",
        "--folder",
        str(tmp_path),
    ]


class Pretended:
    """submitit's local executor, and its jobs: each runs, and has ended, when it is asked whether it has."""

    cluster = "local"

    def __init__(self, folder: Path):
        self.folder, self.running, self.shown, self.together = folder, [], [], 0

    def batch(self):
        return contextlib.nullcontext()

    def submit(self, job: Job):
        self.running.append(job)
        self.together = max(self.together, len(self.running))

        def done() -> bool:
            with contextlib.suppress(RuntimeError):
                job()
            self.running.remove(job)
            self.shown.append(job.gpu)
            return True

        paths = SimpleNamespace(stderr=self.folder / "log.err")
        return SimpleNamespace(job_id=str(len(self.shown)), done=done, paths=paths)


def test_each_local_job_has_a_gpu_of_its_own(tmp_path):
    def sees(shard: Shard, folder: Path) -> list[str]:
        write = "import os, pathlib, sys; folder = pathlib.Path(sys.argv[1]); folder.mkdir(); "
        write += "(folder / 'gpu').write_text(os.environ['CUDA_VISIBLE_DEVICES'])"
        return [sys.executable, "-c", write, str(folder)]

    executor, shards = Pretended(tmp_path), [Shard(number, 4) for number in (1, 2, 3, 4)]
    has_run = lambda shard, folder: (folder / "gpu").exists()  # noqa: E731
    cluster.run(shards, tmp_path, sees, has_run, executor, lambda said: None, ["GPU-a", "GPU-b"])
    seen = [(tmp_path / shard.folder / "gpu").read_text() for shard in shards]
    assert seen == ["GPU-a", "GPU-b", "GPU-a", "GPU-b"] and executor.together == 2


def test_a_shard_that_writes_each_time_is_never_given_up(tmp_path, monkeypatch):
    write = "import sys; open(sys.argv[1], 'a').write('.'); raise SystemExit(1)"
    command = lambda shard, folder: [sys.executable, "-ISc", write, str(folder / "sweep.csv")]  # noqa: E731
    is_done = lambda shard, folder: cluster._size(folder) == 6  # noqa: E731
    monkeypatch.setattr(cluster, "merge", lambda source, target: [])
    (tmp_path / "shard-1-of-1").mkdir()
    said: list[str] = []
    cluster.run([Shard(1, 1)], tmp_path, command, is_done, Pretended(tmp_path), said.append)
    assert len([one for one in said if "submitted" in one]) == 6


@pytest.mark.parametrize("queue, submitted", [("7_0 7_1", []), ("7_1", ["1/2"]), ("", ["1/2", "2/2"])])
def test_a_shard_with_a_job_in_the_queue_gets_no_second_one(tmp_path, monkeypatch, queue, submitted):
    class SlurmJob:
        def __init__(self, folder: Path, name: str):
            self.job_id, place = name, tmp_path / f"shard-{int(name[-1]) + 1}-of-2"
            given = SimpleNamespace(function=Job(["sweep", "--folder", str(place)]))
            self.submission = lambda: given

    monkeypatch.setitem(sys.modules, "submitit", SimpleNamespace(SlurmJob=SlurmJob))
    monkeypatch.setattr(cluster, "_queue", lambda: set(queue.split()))
    for name in ("7_0", "7_1"):
        (tmp_path / f"{name}_submitted.pkl").touch()
    executor, shards = Pretended(tmp_path), [Shard(1, 2), Shard(2, 2)]
    executor.cluster = "slurm"
    found = cluster._in_the_queue(executor, {shard: tmp_path / shard.folder for shard in shards})
    assert [str(shard) for shard in shards if shard not in found] == submitted


def test_shards_without_a_choice_are_merged_as_nothing(tmp_path):
    shards = [Shard(number, 3) for number in (1, 2, 3)]
    measure(MOST, shards[0], tmp_path / shards[0].folder)
    merged = cluster.run(shards, tmp_path, command, lambda *shard: True, Pretended(tmp_path))
    assert [one.added for one in merged] == [MOST * len(STAGES) // 3]


@pytest.mark.parametrize("queue, ended", [("7_0\n", ["2/2"]), ("", ["1/2", "2/2"]), (None, None)])
def test_a_job_has_ended_when_it_is_not_in_slurms_queue(monkeypatch, queue, ended):
    """And not when Slurm does not answer, or when it has put the job back into the queue."""
    answers = [subprocess.CompletedProcess([], queue is None, queue or "")]
    monkeypatch.setattr(cluster.subprocess, "run", lambda *given, **named: answers.pop())
    monkeypatch.setattr(cluster.time, "sleep", lambda seconds: None)
    SlurmJob = type("SlurmJob", (), {"__init__": lambda self, name: setattr(self, "job_id", name)})
    jobs = {Shard(1, 2): SlurmJob("7_0"), Shard(2, 2): SlurmJob("7_1")}
    if ended is None:
        with pytest.raises(IndexError):  # it asks again
            cluster._wait(jobs, print)
    else:
        assert [str(shard) for shard in cluster._wait(jobs, print)] == ended


def test_a_cluster_without_slurm_and_gpu_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "executor_for", lambda *given: Pretended(tmp_path))
    monkeypatch.setattr("gemm_course.device.presence.why_no_gpu", lambda: "There is no NVIDIA GPU here.")
    shown = CliRunner().invoke(app, ["sweep", "block_tiled", "--cluster", "2", "--folder", str(tmp_path)])
    assert shown.exit_code == 1 and "There is no Slurm here" in shown.output


@pytest.mark.parametrize("minutes, limit", [("0.5", 1), ("2.5", 3)])
def test_minutes_of_a_job_are_whole_and_never_zero_which_is_forever(tmp_path, monkeypatch, minutes, limit):
    given = []
    monkeypatch.setattr(cluster, "executor_for", lambda *those: given.append(those) or Pretended(tmp_path))
    command = ["sweep", "block_tiled", "--cluster", "2", "--folder", str(tmp_path), "--minutes", minutes]
    CliRunner().invoke(app, command)
    assert given[0][1] == limit


def test_a_process_counts_the_cores_that_it_may_use(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {3, 5}, raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 128)
    assert workers_that_fit(80 * 2**30, 1, SHAPE) == 2


@pytest.mark.full(reason="three jobs, one after the other")
@pytest.mark.waits
def test_a_shard_that_is_never_done_ends_with_its_log(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "POLL_SECONDS", 0.2)
    executor = submitit.AutoExecutor(folder=tmp_path / "jobs", cluster="local")
    never = lambda shard, folder: [sys.executable, "-c", "raise SystemExit(1)"]  # noqa: E731
    with pytest.raises(ClusterError, match=r"1 shards are not done, and 3 jobs in a row .*err"):
        cluster.run([Shard(1, 1)], tmp_path, never, is_done, executor, lambda said: None)


@pytest.mark.full(reason="a sweep in nine processes")
@pytest.mark.waits
def test_one_killed_of_four_and_the_merged_file_is_that_of_one_process(tmp_path, monkeypatch):
    _one_killed(tmp_path, monkeypatch, submitit.AutoExecutor(folder=tmp_path / "jobs", cluster="local"))


@pytest.mark.waits
@pytest.mark.skipif(shutil.which("sbatch") is None, reason="needs Slurm: there is no sbatch here")
def test_the_same_on_slurm(tmp_path, monkeypatch):
    if subprocess.run(["sinfo", "--noheader"], capture_output=True).returncode:
        pytest.skip("needs Slurm: its controller does not answer")
    executor = submitit.AutoExecutor(folder=tmp_path / "jobs", cluster="slurm")
    executor.update_parameters(timeout_min=5, slurm_setup=[f"cd {ROOT}"])
    _one_killed(tmp_path, monkeypatch, executor)


def _one_killed(tmp_path, monkeypatch, executor) -> None:
    monkeypatch.setattr(cluster, "POLL_SECONDS", 0.5)
    monkeypatch.chdir(ROOT)
    said: list[str] = []
    run(tmp_path / "sweep", executor, said)
    assert "4 of 4 shards submitted" in said[0]
    assert "shard 2/4 was lost" in " ".join(said) and "1 of 4 shards submitted, again" in " ".join(said)
    (tmp_path / "alone").mkdir()
    measure(MOST, None, tmp_path / "alone")
    alone, merged = (rows(tmp_path / name / "sweep.csv") for name in ("alone", "sweep"))
    assert merged == alone and len(merged) == MOST * len(STAGES)
    run(tmp_path / "sweep", executor, said)
    assert rows(tmp_path / "sweep" / "sweep.csv") == merged, "what is done is collected, and not done again"
