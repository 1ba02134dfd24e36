"""Defaults beside the fastest measured choice, which must compile in time."""

from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from gemm_course.bench import best
from gemm_course.bench.best import LONGEST_COMPILATION, best_choices
from gemm_course.bench.cli import app
from gemm_course.kernels import LADDER, tiles_text
from gemm_course.records.columns import SWEEP

STAGE = LADDER["block_tiled"]
DEFAULT = tiles_text(STAGE.complete())
FAST, FASTEST = "BM=32 BN=16 BK=64", "BM=32 BN=32 BK=32"


def row(tiles, tflops, stage=STAGE.name, reason=""):
    share = tflops / 50 if tflops else None
    about = {"stage": stage, "tiles": tiles, "tflops": tflops, "ratio_to_cublas": share, "reason": reason}
    return dict.fromkeys(SWEEP.columns) | about


ROWS = [
    row(DEFAULT, 8.0),
    row(FAST, 9.0),
    row(FASTEST, 10.0),
    row("BM=1 BN=4 BK=8", None, reason="registers: too many"),
    row("BM=1 BN=256", 40.0, stage="naive_uncoalesced"),
]


def test_the_fastest_measured_choice_is_found():
    (found,) = best_choices([STAGE], ROWS)
    assert (found.default, found.best) == (DEFAULT, FASTEST)
    assert found.ratio == pytest.approx(0.8)
    assert found.default_share == pytest.approx(0.16)
    assert found.compile_seconds is None


def test_it_must_compile_in_time():
    seconds = {FASTEST: LONGEST_COMPILATION + 1, FAST: 1.5}  # the slower ones' times are not needed
    (found,) = best_choices([STAGE], ROWS, lambda stage, tiles: seconds[tiles])
    assert (found.best, found.compile_seconds) == (FAST, 1.5)


def test_if_none_compiles_in_time_it_is_the_fastest():
    (found,) = best_choices([STAGE], ROWS, lambda stage, tiles: 10.0)
    assert (found.best, found.compile_seconds) == (FASTEST, 10.0)


def test_an_unmeasured_default_has_no_ratio_and_a_stage_without_rows_no_entry():
    (found,) = best_choices([STAGE, LADDER["kernel5"]], ROWS[1:])
    assert (found.stage, found.ratio, found.default_share) == (STAGE.name, None, None)


def test_compile_times_are_recorded_once(tmp_path, monkeypatch):
    path, compiled = tmp_path / "compile_times.csv", []
    monkeypatch.setattr(best, "compile_seconds", lambda stage, tiles: compiled.append(tiles) or 1.25)
    monkeypatch.setattr(best, "gpu_facts", lambda: SimpleNamespace(name="T4", driver="580", cuda="13.0"))
    times = best.CompileTimes(path, "gemm-course sweep --best", measure=True)
    assert (times(STAGE, FAST), times(STAGE, FAST)) == (1.25, 1.25)
    assert compiled == [{}, {"BM": 32, "BN": 16, "BK": 64}]
    assert best.CompileTimes(path, "", measure=False)(STAGE, FAST) == 1.25
    assert best.CompileTimes(path, "", measure=False)(STAGE, FASTEST) is None


def test_the_command_shows_the_recorded_sweep_without_a_gpu():
    shown = CliRunner().invoke(app, ["sweep", "vectorized", "--best"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    assert "vectorized" in shown.output
    assert "not timed" in shown.output or "compiles in s" in shown.output
