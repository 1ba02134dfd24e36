"""`python -m measuring sanitize`: reading compute-sanitizer's output, and which runs are made."""

import os
import stat
import sys

import numpy as np
import pytest
from numba import cuda
from typer.testing import CliRunner

from gemm_course import device
from gemm_course.kernels import LADDER, IllegalTiles, tiles_text
from gemm_course.records.columns import SANITIZER
from measuring.cli import app
from measuring.sanitizer import SHAPES, TOOLS, NoSanitizer, child, sanitize_stages, stages
from measuring.sanitizer.tool import (
    RAN,
    Outcome,
    find_sanitizer,
    read_log,
    run_under,
    sanitizer_version,
)

runner = CliRunner()

# As compute-sanitizer 2025.3.1 prints them.
CLEAN = """\
========= COMPUTE-SANITIZER
the kernel ran
========= ERROR SUMMARY: 0 errors
"""
OUTSIDE = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 16 bytes
=========     at vectorized+0x1a30 in vectorized.py:52
=========     by thread (96,0,0) in block (0,1,0)
=========     Access at 0x7f02c2e00c00 is out of bounds
========= ERROR SUMMARY: 8 errors
"""
RACE = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at vectorized+0xb0 in vectorized.py:58
=========     and Read access at vectorized+0x210 in vectorized.py:63 [512 hazards]
=========
the kernel ran
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
BROKEN = """\
========= COMPUTE-SANITIZER
Traceback (most recent call last):
ValueError: no tensor map can be made
========= ERROR SUMMARY: 0 errors
"""

# Prints RACE for block_tiled under racecheck at 63x65x9, BROKEN for kernel5, and CLEAN otherwise.
PRETENDED = f"""\
#!{sys.executable}
import sys
words = " ".join(sys.argv[1:])
if words == "--version":
    print("NVIDIA (R) Compute Sanitizer\\nVersion 2025.3.1.0 (build 1)")
elif " kernel5 " in words:
    print({BROKEN!r})
elif "racecheck" in words and " block_tiled " in words and "63x65x9" in words:
    print({RACE!r})
else:
    print({CLEAN!r})
with open({{log!r}}, "a") as file:
    file.write(words + "\\n")
"""

FACTS = device.GpuFacts("NVIDIA H200", (9, 0), 132, 1980, 0, 0, 0, 0, 0, 0, "580", "13.0", "GPU-1")


@pytest.fixture
def pretended(tmp_path, monkeypatch):
    """A fake compute-sanitizer that runs nothing; yields the file in which it records its arguments."""
    log, program = tmp_path / "asked", tmp_path / "bin" / "compute-sanitizer"
    program.parent.mkdir()
    program.write_text(PRETENDED.format(log=str(log)))
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(stages, "gpu_facts", lambda: FACTS)
    sanitizer_version.cache_clear()
    yield log
    sanitizer_version.cache_clear()


@pytest.mark.parametrize(
    ("log", "outcome"),
    [
        (CLEAN, Outcome("clean", 0, "")),
        (
            OUTSIDE,
            Outcome(
                "error",
                8,
                "Invalid __global__ read of size 16 bytes at vectorized+0x1a30 in vectorized.py:52",
            ),
        ),
        (
            RACE,
            Outcome(
                "error", 1, "Error: Race reported between Write access at vectorized+0xb0 in vectorized.py:58"
            ),
        ),
        (BROKEN, Outcome("failed", 0, "ValueError: no tensor map can be made")),
        ("", Outcome("failed", None, "")),
    ],
)
def test_what_it_prints_is_read(log, outcome):
    assert read_log(log) == outcome


def test_a_stopped_program_counts_as_hanging_unless_the_tool_complained():
    assert read_log("", ended=False).verdict == "hang"
    assert read_log(OUTSIDE, ended=False).verdict == "error"


def test_a_program_is_run_under_a_tool(pretended):
    outcome, command = run_under("memcheck", ["-m", "anything"], 20)
    assert outcome == Outcome("clean", 0, "")
    assert command == "compute-sanitizer --tool memcheck --print-limit 5 python -m anything"
    assert pretended.read_text().split(" -m ")[1].strip() == "anything"


def test_a_program_that_does_not_end_is_stopped(tmp_path, monkeypatch):
    program = tmp_path / "compute-sanitizer"
    program.write_text(f"#!{sys.executable}\nimport time\nprint('starting', flush=True)\ntime.sleep(60)\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    outcome, _ = run_under("racecheck", ["-m", "anything"], 0.5)
    assert outcome.verdict == "hang"


def test_without_it_there_is_a_sentence(monkeypatch):
    monkeypatch.setattr("measuring.sanitizer.tool.shutil.which", lambda *_, **__: None)
    with pytest.raises(NoSanitizer, match="is not installed here; it comes with the CUDA toolkit"):
        find_sanitizer()


def test_clean_stages_take_one_process_per_tool_and_get_one_row_per_shape(pretended, tmp_path):
    path = tmp_path / "stage_sanitizer.csv"
    rows = sanitize_stages([LADDER["vectorized"]], [{}], path, TOOLS, workers=2)
    asked = [line for line in pretended.read_text().splitlines() if "--tool" in line]
    assert len(asked) == len(TOOLS)
    assert all("1x1x1 129x131x17 67x130x0" in line for line in asked)
    assert len(rows) == len(TOOLS) * len(SHAPES)
    frame = SANITIZER.read(path)
    assert set(zip(frame["m"], frame["n"], frame["k"])) == set(SHAPES)
    assert (frame["errors"] == 0).all()
    assert set(frame["compute_sanitizer"]) == {"2025.3.1.0"}
    assert set(frame["tiles"]) == {tiles_text(LADDER["vectorized"].tiles)}
    assert (frame["gpu"] == "NVIDIA H200").all()


def test_a_complaint_is_traced_to_its_shape(pretended, tmp_path):
    path = tmp_path / "stage_sanitizer.csv"
    rows = sanitize_stages([LADDER["block_tiled"]], [{}], path, ["racecheck", "memcheck"])
    wrong = [row for row in rows if row["verdict"] != "clean"]
    assert [(row["tool"], row["m"], row["n"], row["k"]) for row in wrong] == [("racecheck", 63, 65, 9)]
    assert wrong[0]["errors"] == 1
    assert wrong[0]["message"].startswith("Error: Race reported between Write access")
    tiles = tiles_text(LADDER["block_tiled"].tiles)
    assert wrong[0]["command"].endswith(f"sanitizer.child block_tiled '{tiles}' 63x65x9")


def test_a_stage_that_does_not_run_is_not_clean(pretended, tmp_path):
    rows = sanitize_stages([LADDER["kernel5"]], [{}], tmp_path / "s.csv", ["memcheck"], SHAPES[:2])
    assert {(row["verdict"], row["message"]) for row in rows} == {
        ("failed", "ValueError: no tensor map can be made")
    }


def test_rows_of_a_stage_and_tool_are_replaced_and_others_stay(pretended, tmp_path):
    path = tmp_path / "s.csv"
    both = [LADDER["vectorized"], LADDER["warp_tiled"]]
    sanitize_stages(both, [{}], path, ["memcheck"], SHAPES)
    sanitize_stages(both[:1], [{"BK": 8}], path, ["memcheck"], SHAPES[:2])
    frame = SANITIZER.read(path)
    assert frame.groupby("stage").size().to_dict() == {"vectorized": 2, "warp_tiled": len(SHAPES)}
    assert frame[frame["stage"] == "vectorized"]["tiles"].str.contains("BK=8").all()


def test_illegal_tiles_are_refused_before_anything_runs(pretended, tmp_path):
    with pytest.raises(IllegalTiles):
        sanitize_stages([LADDER["vectorized"]], [{"BK": 3}], tmp_path / "s.csv")
    assert not [line for line in pretended.read_text().splitlines() if "--tool" in line]


def test_the_command_says_what_is_not_clean(pretended, tmp_path, monkeypatch):
    monkeypatch.setattr("gemm_course.device.facts.gpu_facts", lambda: FACTS)
    command = ["sanitize", "block_tiled", "async_copy", "--tools", "racecheck", "--folder", str(tmp_path)]
    monkeypatch.setattr("gemm_course.device.gpu_facts", lambda: FACTS)
    done = runner.invoke(app, command)
    assert done.exit_code == 1
    assert "at 63x65x9, racecheck: error. Error: Race reported" in done.output
    assert f"{2 * len(SHAPES)} rows written" in done.output.replace("\n", " ")
    wrong = runner.invoke(app, ["sanitize", "--tools", "leakcheck", "--folder", str(tmp_path)])
    assert "has no tool leakcheck; it has memcheck" in wrong.output


def test_the_watched_process_launches_each_shape_with_and_without_reading_c(monkeypatch, capsys):
    launched = []
    monkeypatch.setattr(cuda, "to_device", lambda array: array)
    monkeypatch.setattr(cuda, "device_array", lambda shape, dtype: np.zeros(shape, dtype))
    monkeypatch.setattr(cuda, "synchronize", lambda: None)
    monkeypatch.setattr(child, "launch", lambda kernel, grid, block, args, shared: launched.append(args))
    child.main("vectorized", tiles_text(LADDER["vectorized"].tiles), "9x5x3", "0x5x3", "4x4x0")
    assert [(args[0], float(args[6])) for args in launched] == [(9, 0), (9, -0.5), (4, 0), (4, -0.5)]
    assert [bool((args[7] == 0).all()) for args in launched] == [True, False, True, False]
    assert launched[0][4].shape == (9, 4)
    assert capsys.readouterr().out == f"{RAN}\n"


@pytest.mark.gpu
def test_a_stage_is_clean_on_a_gpu(tmp_path):
    try:
        find_sanitizer()
    except NoSanitizer as reason:
        pytest.skip(str(reason))
    rows = sanitize_stages([LADDER["vectorized"]], [{}], tmp_path / "s.csv", ["memcheck"], SHAPES[:3])
    assert [row["verdict"] for row in rows] == ["clean"] * 3, rows
