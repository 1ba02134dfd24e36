"""`gemm-course merge`: new rows replace those that they measure again; nothing else changes."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gemm_course.bench.cli import app
from gemm_course.bench.merge import KEYS, merge
from gemm_course.records import DATA
from gemm_course.records.columns import COUNTERS, LADDER, PROFILE, SWEEP

runner = CliRunner()


@pytest.fixture
def recorded(tmp_path):
    """A copy of the H200's records."""
    folder = tmp_path / "h200"
    shutil.copytree(DATA / "h200", folder)
    return folder


def rows_of(table, path, stage):
    return [row for row in table.rows(path) if row["stage"] == stage]


def test_a_stage_measured_again_replaces_its_rows_at_that_size_only(recorded, tmp_path):
    old = rows_of(LADDER, recorded / "ladder.csv", "vectorized")
    new = old[0] | {"tiles": "BM=64 BN=64 BK=16 TM=8 TN=8 PAD=4", "milliseconds": 1.5}
    LADDER.append(tmp_path / "new" / "ladder.csv", [new])
    before = len(LADDER.rows(recorded / "ladder.csv"))
    (done,) = merge(tmp_path / "new", recorded)
    assert (done.file, done.added, done.replaced) == ("ladder.csv", 1, 1)
    after = rows_of(LADDER, recorded / "ladder.csv", "vectorized")
    assert sorted((row["m"], row["milliseconds"]) for row in after) == sorted(
        [(4096, 1.5), *((row["m"], row["milliseconds"]) for row in old if row["m"] != 4096)]
    )
    assert len(LADDER.rows(recorded / "ladder.csv")) == before


def test_the_sweep_keeps_other_tiles_unless_the_kernel_changed(recorded, tmp_path):
    path = recorded / "sweep.csv"
    old = rows_of(SWEEP, path, "grouped_blocks")
    SWEEP.append(tmp_path / "new" / "sweep.csv", [old[3] | {"tflops": 1.0}])
    merge(tmp_path / "new", recorded)
    assert len(rows_of(SWEEP, path, "grouped_blocks")) == len(old)
    others = len(SWEEP.rows(path)) - len(old)
    (done,) = merge(tmp_path / "new", recorded, again=["grouped_blocks"])
    assert (done.added, done.replaced) == (1, len(old))
    assert [row["tflops"] for row in rows_of(SWEEP, path, "grouped_blocks")] == [1.0]
    assert len(SWEEP.rows(path)) == others + 1


def test_counters_are_merged_by_case_in_their_folder(recorded, tmp_path):
    rows = COUNTERS.rows(recorded / "counters" / "ladder.csv")
    COUNTERS.append(tmp_path / "new" / "counters" / "ladder.csv", [rows[0] | {"registers": 99}])
    merge(tmp_path / "new", recorded)
    after = COUNTERS.rows(recorded / "counters" / "ladder.csv")
    assert {row["case"]: row["registers"] for row in after} == {
        row["case"]: row["registers"] for row in rows
    } | {rows[0]["case"]: 99}


def test_missing_files_are_created_and_a_second_merge_changes_nothing(recorded, tmp_path):
    empty = tmp_path / "empty"
    assert len(merge(recorded, empty)) >= 5
    first = {path.relative_to(empty): path.read_bytes() for path in empty.rglob("*.csv")}
    merge(recorded, empty)
    assert first == {path.relative_to(empty): path.read_bytes() for path in empty.rglob("*.csv")}
    assert first[Path("ladder.csv")] == (recorded / "ladder.csv").read_bytes()


def test_of_rows_measured_twice_the_last_counts(recorded, tmp_path):
    row = rows_of(LADDER, recorded / "ladder.csv", "vectorized")[0]
    other = row | {"tiles": "BM=64 BN=64 BK=16 TM=8 TN=8 PAD=4"}
    LADDER.append(tmp_path / "new" / "ladder.csv", [row | {"milliseconds": 9.0}, other, row])
    (done,) = merge(tmp_path / "new", recorded)
    assert (done.added, done.replaced) == (2, 1)
    after = [one for one in rows_of(LADDER, recorded / "ladder.csv", "vectorized") if one["m"] == row["m"]]
    assert [one["milliseconds"] for one in after] == [row["milliseconds"]] * 2


def test_another_gpus_rows_are_refused(recorded, tmp_path):
    row = LADDER.rows(recorded / "ladder.csv")[0]
    LADDER.append(tmp_path / "new" / "ladder.csv", [row | {"gpu": "Tesla T4"}])
    with pytest.raises(ValueError, match="was measured on Tesla T4"):
        merge(tmp_path / "new", recorded)


def test_the_command_says_what_it_did(recorded, tmp_path):
    LADDER.append(tmp_path / "new" / "ladder.csv", LADDER.rows(recorded / "ladder.csv")[:2])
    done = runner.invoke(app, ["merge", str(tmp_path / "new"), "--folder", str(recorded)])
    assert done.output == "ladder.csv: 2 rows added, 2 replaced\n"
    both = runner.invoke(app, ["merge", *[str(tmp_path / "new")] * 2, "--folder", str(recorded)])
    assert both.output.count("2 rows added, 2 replaced") == 2
    (tmp_path / "empty").mkdir()
    several = [str(tmp_path / name) for name in ("empty", "new")]
    done = runner.invoke(app, ["merge", *several, "--folder", str(recorded)])
    assert done.output == f"{several[0]}: no records\nladder.csv: 2 rows added, 2 replaced\n"
    nothing = runner.invoke(app, ["merge", str(tmp_path / "bin"), "--folder", str(recorded)])
    assert nothing.exit_code == 1
    assert "there are no records in" in nothing.output


def test_every_kind_of_record_that_a_command_writes_can_be_merged():
    written = {
        "ladder.csv",
        "correctness.csv",
        "sweep.csv",
        "stage_sanitizer.csv",
        "roofs.csv",
        "row_lengths.csv",
        "profile/kernels.csv",
    }
    assert written <= set(KEYS)


def profile_rows(folder, *cases):
    """Rows of profiles, and a file with some bytes for each."""
    rows = []
    for stage, tiles, size, command in cases:
        file = f"{stage}-{size}.json.xz"
        about = {"stage": stage, "tiles": tiles, "m": size, "n": size, "k": size, "file": file}
        rows.append({**dict.fromkeys(PROFILE.columns), **about, "gpu": "NVIDIA H200", "command": command})
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(f"{stage} {tiles} {command}".encode())
    PROFILE.append(folder / "kernels.csv", rows)


def test_profiles_are_merged_with_their_files(tmp_path):
    old, new = tmp_path / "h200" / "profile", tmp_path / "new" / "profile"
    profile_rows(
        old, ("block_tiled", "BM=16", 4096, "1"), ("kernel5", "BM=16", 4096, "1"), ("wmma", "", 512, "1")
    )
    profile_rows(
        new, ("block_tiled", "BM=16", 4096, "2"), ("naive_coalesced", "", 64, "2"), ("wmma", "", 64, "2")
    )
    profile_rows(
        new, ("kernel5", "BM=32", 4096, "2")
    )  # other tiles in the same file: the default has changed
    (done,) = merge(tmp_path / "new", tmp_path / "h200")
    assert (done.file, done.added, done.replaced) == ("kernels.csv", 4, 2)
    rows = PROFILE.rows(old / "kernels.csv")
    assert [(row["stage"], row["tiles"], row["m"], row["command"]) for row in rows] == [
        ("naive_coalesced", "", 64, "2"),
        ("block_tiled", "BM=16", 4096, "2"),
        ("kernel5", "BM=32", 4096, "2"),
        ("wmma", "", 64, "2"),
        ("wmma", "", 512, "1"),
    ]
    for row in rows:
        assert (old / row["file"]).read_text() == f"{row['stage']} {row['tiles']} {row['command']}"


def test_a_profile_without_its_file_is_not_merged(tmp_path):
    new = tmp_path / "new" / "profile"
    profile_rows(new, ("block_tiled", "BM=16", 4096, "2"))
    (new / "block_tiled-4096.json.xz").unlink()
    with pytest.raises(ValueError, match=r"whose files are missing: block_tiled-4096\.json\.xz"):
        merge(tmp_path / "new", tmp_path / "h200")
    assert not (tmp_path / "h200").exists()


@pytest.mark.parametrize("name", ["../../x.json.xz", "/etc/x.json.xz", "..\\x.json.xz", "x.py", ""])
def test_a_row_names_a_file_beside_it_and_no_path(name, tmp_path):
    new, old = tmp_path / "new", tmp_path / "old"
    profile_rows(new / "profile", ("wmma", "", 64, "1"))
    path = new / "profile" / "kernels.csv"
    path.write_text(path.read_text().replace("wmma-64.json.xz", name))
    with pytest.raises(ValueError, match="which is no profile's file beside it"):
        merge(new, old)
    assert not (old / "profile").exists()
