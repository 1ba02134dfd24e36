"""`gemm-course bench` and `sweep`: options, sentences, and on a GPU their measurements."""

import pytest
from typer.testing import CliRunner

from gemm_course.bench import ladder
from gemm_course.bench.cli import app
from gemm_course.bench.ladder import ODD_SHAPES
from gemm_course.bench.measure import Candidate, TooOld
from gemm_course.bench.options import able, command_line, parse_shapes
from gemm_course.bench.problem import tolerance
from gemm_course.device import GpuFacts, presence
from gemm_course.kernels import LADDER
from gemm_course.records.columns import CORRECTNESS, SWEEP
from gemm_course.records.columns import LADDER as LADDER_TABLE

runner = CliRunner()
OLD = GpuFacts("Tesla T4", (7, 5), 40, 1590, 0, 0, 0, 0, 0, 0, "580", "13.0", "GPU-1")


@pytest.fixture
def no_gpu(monkeypatch):
    from gemm_course.device import facts

    facts.gpu_facts.cache_clear()
    monkeypatch.setattr(presence, "why_no_gpu", lambda: "There is no GPU here.")
    yield
    facts.gpu_facts.cache_clear()


@pytest.mark.parametrize("command", ["bench", "sweep"])
def test_without_a_gpu_each_command_says_so_in_a_sentence(no_gpu, command):
    done = runner.invoke(app, [command])
    assert done.exit_code == 1
    assert done.output.strip() == "There is no GPU here. This command measures on one."


def test_sizes_are_read():
    assert parse_shapes("4096, 1023x517x769") == [(4096, 4096, 4096), (1023, 517, 769)]
    for wrong in ("", "4096x4096", "big", "4096;1"):
        with pytest.raises(ValueError, match="sizes are written"):
            parse_shapes(wrong)


@pytest.mark.parametrize("folder", [["--folder", "/tmp/new"], ["--folder=/tmp/new"], []])
def test_records_name_the_command_without_the_folder(monkeypatch, folder):
    monkeypatch.setattr("sys.argv", ["gemm-course", "sweep", *folder, "wmma", "--minutes", "8"])
    assert command_line() == "gemm-course sweep wmma --minutes 8"


def test_a_stage_that_needs_a_newer_gpu_is_reported_and_left_out(monkeypatch, capsys):
    monkeypatch.setattr("gemm_course.device.facts.gpu_facts", lambda: OLD)
    stages = [LADDER["vectorized"], LADDER["async_copy"], LADDER["wmma"]]
    assert able(stages) == stages[:1]
    said = capsys.readouterr().err
    assert "left out: wmma needs compute capability 8.0 or newer, and this GPU, Tesla T4, has 7.5" in said
    with pytest.raises(ValueError, match="can run none of these stages"):
        able(stages[1:])
    with pytest.raises(TooOld, match=r"async_copy needs compute capability 8\.0"):
        Candidate(LADDER["async_copy"], {}, None)


def test_a_stage_that_does_not_compile_does_not_stop_the_others(monkeypatch, tmp_path):
    class Broken(Exception):
        """No RuntimeError, like Numba's errors."""

    class Pretended:
        def __init__(self, stage, tiles, problem):
            if stage.name == "vectorized":
                raise Broken("Failed in nopython mode\npipeline")

        def check(self):
            return 1e-7

        def resource_columns(self):
            return {"registers": 32, "shared_bytes": 0, "local_bytes": 0}

        def measure(self, error, budget, triton=None):
            return {"milliseconds": 1.0, "tflops": 1.0, "cublas_tflops": 2.0, "ratio_to_cublas": 0.5}

    for name, value in {
        "Candidate": Pretended,
        "Problem": lambda *shape, **how: None,
        "row_of": lambda stage, *_: dict.fromkeys(LADDER_TABLE.columns) | {"stage": stage.name},
    }.items():
        monkeypatch.setattr(ladder, name, value)
    said = []
    stages = [LADDER["vectorized"], LADDER["wmma"]]
    rows = ladder.measure_ladder(stages, [(8, 8, 8)], [{}], tmp_path / "ladder.csv", "", say=said.append)
    assert [row["stage"] for row in rows] == ["wmma"]
    assert said == ["vectorized  is not timed: Broken: Failed in nopython mode pipeline"]


def test_tritons_kernel_is_made_once_for_each_pair_of_dtypes(monkeypatch, tmp_path):
    class Pretended:
        def __init__(self, stage, tiles, problem):
            pass

        def check(self):
            return 1e-7

        def resource_columns(self):
            return {}

        def measure(self, error, budget, triton=None):
            return {"triton_tflops": float(len(triton))}

    def make(problem, accumulate):
        made.append((problem, accumulate))
        return problem + accumulate

    made = []
    monkeypatch.setattr(ladder, "Candidate", Pretended)
    monkeypatch.setattr(ladder, "Problem", lambda *shape, dtype, **how: dtype)
    monkeypatch.setattr(ladder, "row_of", lambda stage, *_: dict.fromkeys(LADDER_TABLE.columns))
    stages = [LADDER[name] for name in ("vectorized", "wmma", "wmma_fp16_acc", "warp_tiled")]
    rows = ladder.measure_ladder(stages, [(8, 8, 8)], [{}], tmp_path / "ladder.csv", "", make)
    assert made == [("float32", "float32"), ("float16", "float32"), ("float16", "float16")]
    assert [row["triton_tflops"] for row in rows] == [14, 14, 14, 14]


def test_the_odd_shapes_are_odd():
    assert len(set(ODD_SHAPES)) == len(ODD_SHAPES) >= 20
    assert {(1, 1, 1), (1023, 517, 769), (1, 4096, 1)} <= set(ODD_SHAPES)
    least_bk = min(stage.tiles.get("BK", 1) for stage in LADDER if "BK" in stage.tiles)
    assert any(k < least_bk for _, _, k in ODD_SHAPES)
    assert any(all(_is_prime(size) for size in shape) for shape in ODD_SHAPES)
    for edge in (127, 129):  # one below and one above the usual tile
        assert (edge, edge, edge) in ODD_SHAPES


def _is_prime(number):
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def test_the_tolerance_admits_fp32_and_nothing_coarser():
    import numpy as np

    random = np.random.default_rng(0)
    A, B = (random.standard_normal((256, 256), dtype=np.float32) for _ in range(2))
    right = A.astype(float) @ B.astype(float)

    def error(product):
        return np.linalg.norm(product - right) / np.linalg.norm(right)

    one_by_one = np.zeros((256, 256), np.float32)
    for p in range(256):
        one_by_one += np.outer(A[:, p], B[p])
    assert error(one_by_one) < tolerance(256) / 1.5
    without_the_last = one_by_one - np.outer(A[:, 255], B[255])
    half = A.astype(np.float16).astype(np.float32) @ B.astype(np.float16).astype(np.float32)
    assert error(half) > 20 * tolerance(256)
    assert error(without_the_last) > 1000 * tolerance(256)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (["counters", "vectorized", "--shapes", "64"], "counters"),
        (["sanitize"], "sanitize"),
        (["bench", "--roofs"], "roofs"),
        (["bench", "wmma", "--triton"], "triton"),
    ],
)
def test_what_only_maintainers_measure_is_elsewhere(before, now):
    from measuring.cli import app as measuring

    done = runner.invoke(app, before)
    assert done.exit_code == 1
    assert done.output.strip() == f"This is now `python -m measuring {now}`, in a clone of the course."
    assert runner.invoke(measuring, [now, "--help"]).exit_code == 0


def test_without_cupy_there_is_a_sentence(monkeypatch):
    import sys

    from gemm_course.bench import cublas

    cublas.cupy.cache_clear()
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(cublas.NoCublas, match="install the course's gpu extra"):
        cublas.cupy()


@pytest.mark.gpu
class TestOnAGpu:
    @pytest.fixture(autouse=True)
    def needs_cupy(self):
        pytest.importorskip("cupy", reason="cuBLAS comes with CuPy")

    def test_a_stage_is_measured_beside_cublas(self, tmp_path):
        done = runner.invoke(app, ["bench", "thread_tiled_2d", "--sizes", "1024", "--folder", str(tmp_path)])
        assert done.exit_code == 0, done.output
        (row,) = LADDER_TABLE.read(tmp_path / "ladder.csv").itertuples()
        assert 0.05 < row.ratio_to_cublas < 1.5
        assert row.relative_error < tolerance(1024)
        assert "thread_tiled_2d" in done.output

    def test_an_fp16_stage_is_measured_beside_fp16_cublas(self, tmp_path):
        done = runner.invoke(app, ["bench", "wmma", "--sizes", "1024", "--folder", str(tmp_path)])
        assert done.exit_code == 0, done.output
        (row,) = LADDER_TABLE.read(tmp_path / "ladder.csv").itertuples()
        assert (row.dtype, row.accumulate) == ("fp16", "fp32")
        assert row.cublas_tflops > 100  # FP32 could not
        assert 0.02 < row.ratio_to_cublas < 1.5

    @pytest.mark.parametrize("accumulate", ["float32", "float16"])
    def test_fp16_cublas_is_as_right_as_its_accumulators_allow(self, accumulate):
        from gemm_course.bench.problem import Problem

        problem = Problem(255, 257, 1024, dtype="float16")
        error = problem.cublas_error(accumulate)
        assert tolerance(1024, "float16", accumulate) / 10 < error < tolerance(1024, "float16", accumulate)

    def test_every_gpu_measures_one_kernel_at_a_time(self, tmp_path):
        from gemm_course.bench.sweep import sweep, visible_gpus

        gpus = visible_gpus()
        if len(gpus) < 2:
            pytest.skip("there is one GPU here")
        stage = LADDER["block_tiled"]
        done = sweep([stage], (512, 512, 512), tmp_path / "s.csv", "test", 24, gpus, 3 * len(gpus))
        assert done.rows == 24
        assert set(done.measured_on) == set(gpus)
        assert min(done.measured_on.values()) >= 24 // len(gpus) // 3
        assert SWEEP.read(tmp_path / "s.csv")["tflops"].notna().all()

    def test_odd_shapes_are_checked(self, tmp_path):
        done = runner.invoke(app, ["bench", "block_tiled", "--odd", "--folder", str(tmp_path)])
        assert done.exit_code == 0, done.output
        assert len(CORRECTNESS.read(tmp_path / "correctness.csv")) == len(ODD_SHAPES)

    def test_a_wrong_kernel_is_not_timed(self):
        from numba import cuda

        from gemm_course.bench.problem import Problem, WrongResult
        from gemm_course.device import launch

        @cuda.jit
        def forgets_the_last(m, n, k, alpha, A, B, beta, C):
            col, row = cuda.grid(2)
            if row < m and col < n:
                acc = A[row, 0] * B[0, col]
                for p in range(1, k - 1):
                    acc += A[row, p] * B[p, col]
                C[row, col] = acc

        @cuda.jit
        def writes_the_padding(m, n, k, alpha, A, B, beta, C):
            row = cuda.grid(1)
            if row < m:
                C[row, n] = 0

        problem = Problem(100, 90, 80)

        def by(kernel, grid, block):
            return lambda alpha, beta: launch(kernel, grid, block, problem.arguments(alpha, beta))

        with pytest.raises(WrongResult, match="relative error"):
            problem.error_of(by(forgets_the_last, (6, 7), (16, 16)))
        with pytest.raises(WrongResult, match="past the columns"):
            problem.error_of(by(writes_the_padding, 2, 64))
        with pytest.raises(WrongResult, match="nan"):
            problem.error_of(by(forgets_the_last, (1, 1), (16, 16)))

    def test_a_sweep_is_measured_and_resumed(self, tmp_path):
        command = ["sweep", "block_tiled", "--size", "512", "--workers", "2", "--folder", str(tmp_path)]
        assert runner.invoke(app, [*command, "--most", "3"]).exit_code == 0
        first = SWEEP.read(tmp_path / "sweep.csv")
        assert runner.invoke(app, [*command, "--most", "5"]).exit_code == 0
        rows = SWEEP.read(tmp_path / "sweep.csv")
        assert (len(first), len(rows)) == (3, 5)
        assert rows["tflops"].notna().all()
        assert not rows.duplicated("tiles").any()
