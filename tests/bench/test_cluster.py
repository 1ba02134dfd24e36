"""A sweep in shards on a cluster, with pretended GPUs: nothing twice, nothing lost, also after a kill."""

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gemm_course.bench import cluster
from gemm_course.bench.choices import choices
from gemm_course.bench.cli import app
from gemm_course.bench.cluster import ClusterError, Job, Shard
from gemm_course.bench.sweep import queue_of
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


def test_a_node_gets_the_same_sweep_and_its_shard(tmp_path):
    given = cluster.sweep_command(["block_tiled", "--size", "512x512x512"])(Shard(2, 4), tmp_path)
    assert given[1:4] == ["-m", "gemm_course", "sweep"] and given[-4:] == [
        "--shard",
        "2/4",
        "--folder",
        str(tmp_path),
    ]


@pytest.mark.waits
def test_a_shard_that_is_never_done_ends_with_its_log(tmp_path, monkeypatch):
    submitit = pytest.importorskip("submitit", reason="needs submitit")
    monkeypatch.setattr(cluster, "POLL_SECONDS", 0.2)
    executor = submitit.AutoExecutor(folder=tmp_path / "jobs", cluster="local")
    never = lambda shard, folder: [sys.executable, "-c", "raise SystemExit(1)"]  # noqa: E731
    with pytest.raises(ClusterError, match=r"1 shards are not done after 3 submissions; see .*err"):
        cluster.run([Shard(1, 1)], tmp_path, never, is_done, executor, lambda said: None)


@pytest.mark.waits
def test_one_killed_of_four_and_the_merged_file_is_that_of_one_process(tmp_path, monkeypatch):
    submitit = pytest.importorskip("submitit", reason="needs submitit")
    _one_killed(tmp_path, monkeypatch, submitit.AutoExecutor(folder=tmp_path / "jobs", cluster="local"))


@pytest.mark.waits
@pytest.mark.skipif(shutil.which("sbatch") is None, reason="needs Slurm: there is no sbatch here")
def test_the_same_on_slurm(tmp_path, monkeypatch):
    submitit = pytest.importorskip("submitit", reason="needs submitit")
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
