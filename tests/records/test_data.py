"""The files in data/ are consistent: with one another, and with the kernels they name."""

import time

import pandas as pd
import pytest

from gemm_course import records
from gemm_course.bench.best import LONGEST_COMPILATION
from gemm_course.bench.problem import tolerance
from gemm_course.kernels import LADDER, tiles_text
from gemm_course.model import GPUS
from gemm_course.records.columns import SHORT_DTYPES
from measuring.sanitizer import TOOLS
from tests.unmeasured import (
    COMPILE_TIMES,
    CORRECTNESS,
    COUNTERS,
    ON_A_GPU,
    SANITIZER,
    SWEEP,
    measured_stages,
    rows_of,
    stages_in,
    why_unmeasured,
)

FP16_PEAK = 4096e-6 * 132 * 1980  # Tensor Cores: 4096 operations per clock and multiprocessor
MEASURED = {"ladder": records.ladder, "sweep": records.sweep, "correctness": records.correctness}


def measured(name):
    """A table's rows that were measured; the sweep also lists choices that could not be."""
    frame = MEASURED[name]()
    return frame[frame["tflops"].notna()] if "tflops" in frame else frame


@pytest.mark.parametrize("name", MEASURED)
def test_there_are_records_and_all_name_their_origin(name):
    frame = measured(name)
    assert len(frame) > 0
    for column in ("gpu", "driver", "cuda", "numba_cuda", "date", "command"):
        assert (frame[column] != "").all(), column
    assert frame["command"].str.startswith(("gemm-course ", "python -m measuring ")).all()


@pytest.mark.parametrize("name", ["ladder", "sweep"])
def test_speeds_follow_from_times(name):
    frame = measured(name)
    flops = 2e-9 * frame["m"].astype(float) * frame["n"].astype(float) * frame["k"].astype(float)
    assert (frame["tflops"] / (flops / frame["milliseconds"]) - 1).abs().max() < 1e-4
    assert (frame["ratio_to_cublas"] * frame["cublas_tflops"] / frame["tflops"] - 1).abs().max() < 1e-4
    peaks = frame["dtype"].map({"fp32": GPUS["H200"].peak_fp32_tflops, "fp16": FP16_PEAK})
    assert (frame["tflops"] < peaks).all()


@pytest.mark.parametrize("name", MEASURED)
def test_what_was_timed_was_right(name):
    for row in measured(name).itertuples():
        stage = LADDER[row.stage]
        assert row.relative_error <= tolerance(int(row.k), stage.dtype, stage.accumulate), row


@pytest.mark.parametrize("name", ["ladder", "sweep"])
def test_dtypes_are_those_of_the_stages(name):
    frame = measured(name)
    for stage, dtype, accumulate in set(zip(frame["stage"], frame["dtype"], frame["accumulate"])):
        short = SHORT_DTYPES[LADDER[stage].dtype], SHORT_DTYPES[LADDER[stage].accumulate]
        assert (dtype, accumulate) == short, stage


@pytest.mark.parametrize("name", MEASURED)
def test_stages_and_tiles_are_those_of_the_ladder(name):
    frame = measured(name)
    assert set(frame["stage"]) <= {stage.name for stage in LADDER}
    for stage, tiles in set(zip(frame["stage"], frame["tiles"])):
        given = records.parse_tiles(tiles)
        assert set(given) == set(LADDER[stage].tiles), f"{stage} {tiles}"
        assert not LADDER[stage].rules(given), f"{stage} {tiles}"


def test_the_sweep_holds_many_choices_of_every_tiled_stage():
    counts = measured("sweep").groupby("stage").size()
    for stage in measured_stages(SWEEP):
        if "BK" in stage.tiles:
            legal = len(stage.legal_choices())  # penny_xu_tile has one per width
            least = {"float32": 150, "float16": 60}[stage.dtype]
            assert counts[stage.name] >= min(least, legal), stage.name
    assert counts.sum() >= 1500


def test_no_choice_is_in_the_sweep_twice():
    frame = records.sweep()
    assert not frame.duplicated(["stage", "tiles", "m", "n", "k"]).any()
    failed = frame[frame["tflops"].isna()]
    assert (failed["reason"] != "").all()
    assert (measured("sweep")["reason"] == "").all()


@pytest.mark.parametrize("stage", LADDER, ids=lambda stage: stage.name)
def test_a_stage_was_measured_with_its_default_tiles(stage):
    """One test tells of an unmeasured stage, with all commands; those of single tables leave it out."""
    for table in ON_A_GPU:
        rows = rows_of(table)
        rows = rows[rows["stage"] == stage.name]
        if table != CORRECTNESS and not rows.empty:  # odd shapes may suit other tiles
            assert tiles_text(stage.tiles) in set(rows["tiles"]), table
    if missing := why_unmeasured(stage, *ON_A_GPU):
        pytest.skip(missing)


def test_every_stage_was_checked_at_twenty_odd_shapes():
    frame = records.correctness()
    shapes = frame.groupby("stage")[["m", "n", "k"]].apply(lambda rows: len(rows.drop_duplicates()))
    assert (shapes >= 20).all()
    assert (frame["verdict"] == "right").all()


def test_the_sweep_is_read_in_little_more_time_than_pandas_takes_for_the_file():
    """In seconds of the processor, in turn, the best of several: the same on a busy machine."""
    ours, alone = [], []
    for _ in range(7):
        ours.append(seconds_of(records.sweep))
        alone.append(seconds_of(lambda: pd.read_csv(records.files.DATA / "h200" / "sweep.csv")))
    assert min(ours) < 5 * min(alone), (ours, alone)


def seconds_of(action):
    start = time.process_time()
    action()
    return time.process_time() - start


def test_best_tiles_are_the_fastest_of_the_sweep():
    frame = measured("sweep")
    stage = frame.iloc[0]["stage"]
    best = records.best_tiles(stage)
    rows = frame[frame["stage"] == stage]
    assert rows.set_index("tiles")["tflops"].idxmax() == tiles_text(best)
    assert records.best_tiles("no such stage") is None


def test_counters_are_of_kernels_as_launched():
    frame = records.counters("ladder")
    assert stages_in(COUNTERS) <= {stage.name for stage in LADDER}
    for row in frame.itertuples():
        stage = LADDER[row.case.split()[0]]
        tiles = records.parse_tiles(row.tiles)
        grid = (*stage.grid(row.m, row.n, tiles), 1, 1)[:3]
        assert row.grid == "x".join(str(size) for size in grid)
        assert row.shared_wavefronts >= row.shared_ideal_wavefronts
        if stage.dtype == "float32":
            assert row.float32_fma >= row.m * row.n * (row.k - 1)
        assert row.ncu


def test_published_figures_are_those_of_the_documents():
    frame = records.published().set_index(["source", "stage"])["tflops"]
    assert frame["document 004 (Lei Mao)", "naive_uncoalesced"] == 0.27
    assert frame["siboehm/SGEMM_CUDA README", "warp_tiled"] == 21.779


def test_peers_were_measured_on_the_same_gpu():
    frame = records.peers()
    assert records.provenance(frame) == "NVIDIA H200, driver 580.159, CUDA 13.0, 2026-11-21"
    assert frame[frame["kernel"] == "2_coalesce"]["tflops"].tolist() == [6.26]


def test_changed_peers_are_those_of_the_first_run():
    before = records.peers().set_index("kernel")["tflops"]
    changed = records.peers_apart()
    as_written = changed[(changed["change"] == "as written") & (changed["option"] == "")]
    assert len(as_written) == 8
    for row in as_written.itertuples():
        assert abs(row.tflops / before[row.kernel] - 1) < 0.01, row.kernel
    assert (abs(2e-9 * 4096**3 / changed["milliseconds"] / changed["tflops"] - 1) < 1e-3).all()


def test_roofs_are_below_what_the_hardware_could_do():
    roofs = records.roofs().set_index("memory")["tb_s"]
    assert 0.8 * GPUS["H200"].dram_tb_s < roofs["DRAM"] < GPUS["H200"].dram_tb_s
    assert 0.8 * GPUS["H200"].l1_tb_s < roofs["shared"] < GPUS["H200"].l1_tb_s
    assert roofs["DRAM"] < roofs["L2"] < roofs["shared"]
    # TMA reads into the memory that is also L1.
    assert roofs["DRAM"] < roofs["L2 by TMA"] < GPUS["H200"].l1_tb_s


def some_rows(frame):
    """The frame; skips the test if the record does not exist yet."""
    if frame.empty:
        pytest.skip("this has not been measured yet")
    return frame


def test_every_stage_is_clean_under_the_sanitizer():
    frame = some_rows(records.stage_sanitizer())
    assert set(zip(frame["stage"], frame["tool"])) == {
        (stage.name, tool) for stage in measured_stages(SANITIZER) for tool in TOOLS
    }
    wrong = frame[frame["verdict"] != "clean"]
    assert wrong.empty, wrong[["stage", "tool", "m", "n", "k", "message"]].to_string()
    assert (frame["errors"] == 0).all()


def test_arithmetic_units_are_no_faster_than_their_data_sheets():
    units = some_rows(records.compute_roofs()).set_index("unit")["tflops"]
    assert 0.9 * GPUS["H200"].peak_fp32_tflops < units["FP32"] < 1.01 * GPUS["H200"].peak_fp32_tflops
    assert 0.4 * FP16_PEAK < units["mma FP16"] < units["wgmma FP16"] < FP16_PEAK


# their products are unrolled; six stages were compiled at a time
SLOWER_TO_COMPILE = """
    stream_k mma_ring mma_sync mma_tma warp_specialised staged_store overlapped_store stream_k_fp16
""".split()


def test_defaults_compile_quickly_enough_for_a_slider():
    frame = some_rows(records.compile_times())
    seconds = {(row.stage, row.tiles): row.seconds for row in frame.itertuples()}
    for stage in measured_stages(COMPILE_TIMES):
        longest = LONGEST_COMPILATION * (2 if stage.name in SLOWER_TO_COMPILE else 1)
        assert seconds[stage.name, tiles_text(stage.tiles)] <= longest, stage
