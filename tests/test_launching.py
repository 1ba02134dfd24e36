"""run and launch: right results, honest errors, nothing of the caller's changed."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from numba import cuda

import lockstep
from gemm_course import launch, launching, run
from gemm_course.device import NoGpu
from gemm_course.kernels import LADDER, IllegalTiles, tiles_text


@cuda.jit
def own_kernel(m, n, k, alpha, A, B, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        acc = A[row, 0] * B[0, col]
        for p in range(1, k):
            acc += A[row, p] * B[p, col]
        C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc


@cuda.jit
def vector_add(x, y, out, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = x[i] + y[i]


def matrices(m, n, k, dtype=np.float32):
    random = np.random.default_rng(m + 7 * n + 31 * k)
    made = (random.standard_normal(shape, dtype=np.float32) for shape in ((m, k), (k, n), (m, n)))
    return [matrix.astype(dtype) for matrix in made]


def near(found, right, dtype="float32"):
    allowed = {"float32": 1e-5, "float16": 3e-3}[dtype]
    return np.linalg.norm(found - right) <= allowed * max(np.linalg.norm(right), 1e-30)


def product(A, B, C, alpha, beta):
    A, B, C = (matrix.astype(np.float32) for matrix in (A, B, C))
    return alpha * A @ B + beta * C


@pytest.mark.many(one_in=9)
@pytest.mark.parametrize("stage", LADDER, ids=lambda stage: stage.name)
def test_every_stage_computes(stage):
    A, B, C = matrices(35, 41, 29, stage.dtype)
    copies = [matrix.copy() for matrix in (A, B, C)]
    result = run(stage, A, B, C, alpha=1.5, beta=-0.5, backend="emulator")
    assert near(result.C, product(A, B, C, 1.5, -0.5), stage.dtype)
    assert result.C.shape == (35, 41)
    assert (result.backend, result.milliseconds, result.tflops) == ("emulator", None, None)
    assert result.report.ok
    for matrix, copy in zip((A, B, C), copies):
        np.testing.assert_array_equal(matrix, copy)
    assert result.leading_dimensions["A"] * stage.itemsize % stage.alignment == 0


def test_a_stage_may_launch_its_kernel_with_other_arguments():
    def doubled(t, m, n, k, alpha, A, B, beta, C):
        return m, n, k, np.float32(2 * alpha), A, B, beta, C

    stage = dataclasses.replace(LADDER["naive_coalesced"], takes=doubled)
    A, B = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)
    assert (run(stage, A, B, backend="emulator").C == 8).all()


def test_a_stage_by_name_with_tiles():
    A, B, _ = matrices(20, 30, 40)
    result = run("penny_xu_tile", A, B, tiles={"BM": 8, "BN": 8, "BK": 8}, backend="emulator")
    assert near(result.C, A @ B)
    assert (result.grid, result.block) == ((4, 3), (8, 8))


def test_beta_zero_does_not_read_c():
    A, B, C = matrices(9, 10, 11)
    C[:] = np.nan
    assert near(run("block_tiled", A, B, C, backend="emulator").C, A @ B)


@pytest.mark.parametrize("shape", [(0, 5, 3), (5, 0, 3), (0, 0, 0)])
def test_an_empty_c_is_returned_without_a_launch(shape):
    A, B, _ = matrices(*shape)
    assert run("block_tiled", A, B, backend="emulator").C.shape == shape[:2]


def test_k_of_zero_scales_c():
    A, B, C = matrices(6, 5, 0)
    assert near(run("block_tiled", A, B, C, beta=2.0, backend="emulator").C, 2 * C)


def test_any_strides_will_do():
    A, B, _ = matrices(12, 14, 16)
    result = run("block_tiled", np.asfortranarray(A), B[:, ::-1], backend="emulator")
    assert near(result.C, A @ B[:, ::-1])


def test_a_kernel_of_ones_own():
    A, B, C = matrices(18, 21, 13)
    result = run(own_kernel[(2, 2), (16, 16)], A, B, C, alpha=2, beta=1, backend="emulator")
    assert near(result.C, 2 * A @ B + C)
    assert result.leading_dimensions == {"A": 16, "B": 32, "C": 32}
    assert result.report.ok


def test_what_a_kernel_reads_beyond_the_matrix_is_nan():
    @cuda.jit
    def reads_padding(m, n, k, alpha, A, B, beta, C):
        C[0, 0] = A[0, k]

    A, B, _ = matrices(3, 3, 3)
    assert np.isnan(run(reads_padding[1, 1], A, B, backend="emulator").C[0, 0])


def test_what_a_kernel_does_not_write_is_nan():
    A, B, _ = matrices(20, 20, 4)
    C = run(own_kernel[1, (16, 16)], A, B, backend="emulator").C
    assert near(C[:16, :16], (A @ B)[:16, :16])
    assert np.isnan(C[16:]).all()


def test_everything_wrong_is_named_at_once():
    A, B, C = matrices(4, 5, 6)
    with pytest.raises(ValueError) as caught:
        run(
            "block_tiled", A.astype(np.float64), B[0], C.tolist(), beta="much", tiles={"BM": 3}, backend="tpu"
        )
    message = str(caught.value)
    for part in (
        "A must be float32, not float64",
        "B must have two dimensions; it has 1",
        "C must be a NumPy array, not list",
        "beta must be a number",
        'backend must be "auto", "gpu" or "emulator", not \'tpu\'',
        "block_tiled: ",
    ):
        assert part in message


def test_what_is_wrong_is_shown_without_a_traceback():
    A = np.ones((4, 4), np.float32)
    with pytest.raises(ValueError, match="how many blocks and threads") as caught:
        run(own_kernel, A, A)
    assert caught.value._render_traceback_() == str(caught.value).splitlines()


def test_illegal_tiles_come_with_the_nearest_legal_ones():
    A, B, _ = matrices(4, 5, 6)
    nearest = tiles_text(LADDER["block_tiled"].nearest_legal({"BM": 3, "BK": 32}))
    with pytest.raises(IllegalTiles, match=rf"BM=3 .*BK \(32\).* The nearest legal choice is {nearest}"):
        run("block_tiled", A, B, tiles={"BM": 3, "BK": 32}, backend="emulator")
    with pytest.raises(ValueError, match="no tile size called XX"):
        run("block_tiled", A, B, tiles={"XX": 3})


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((4, 6), (5, 6), None), r"A is 4 by 6, B is 5 by 6; B\.T would fit"),
        (((4, 6), (4, 5), None), r"A\.T would fit"),
        (((4, 6), (7, 5), None), "as many rows as A has columns: A is 4 by 6, B is 7 by 5$"),
        (((4, 6), (6, 5), (5, 4)), "C must be 4 by 5, as A is 4 by 6 and B 6 by 5; it is 5 by 4"),
    ],
)
def test_shapes_that_do_not_fit(shapes, message):
    A, B, C = (None if shape is None else np.zeros(shape, np.float32) for shape in shapes)
    with pytest.raises(ValueError, match=message):
        run("block_tiled", A, B, C)


def test_reading_a_c_that_is_not_given_is_refused():
    A, B, _ = matrices(4, 5, 6)
    with pytest.raises(ValueError, match="give one of 4 by 5, or beta=0"):
        run("block_tiled", A, B, beta=1)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("no_such", "no stage is called 'no_such'; the ladder is naive_uncoalesced"),
        (own_kernel, r"my_kernel\[grid, block\]"),
        (42, "not 42"),
        (vector_add[1, 32], r"it takes \(x, y, out, n\). Use launch\(\)"),
    ],
)
def test_what_is_no_matrix_multiplication(what, message):
    A, B, _ = matrices(4, 5, 6)
    with pytest.raises(ValueError, match=message):
        run(what, A, B)


def test_own_kernels_have_no_tiles():
    A, B, _ = matrices(4, 5, 6)
    with pytest.raises(ValueError, match="tiles belong to a stage"):
        run(own_kernel[1, (8, 8)], A, B, tiles={"BM": 8})


def test_a_gpu_that_is_not_there_is_asked_for(monkeypatch):
    monkeypatch.setattr(launching, "require_gpu", _no_gpu)
    A, B, _ = matrices(4, 5, 6)
    with pytest.raises(NoGpu, match="none here"):
        run("block_tiled", A, B, backend="gpu")
    with pytest.raises(NoGpu, match="none here"):
        launch(vector_add[1, 32], A[0], A[0], A[0], 6, backend="gpu")


def _no_gpu():
    raise NoGpu("none here")


class TooOld:
    """The facts of a GPU on which Tensor Cores' newer instructions do not exist."""

    name, compute_capability = "NVIDIA GeForce GTX 1080", (6, 1)


def test_on_a_gpu_too_old_it_runs_on_the_emulator_and_says_why(monkeypatch, capsys):
    monkeypatch.setattr(launching, "gpu_available", lambda: True)
    monkeypatch.setattr(launching, "require_gpu", lambda: None)
    monkeypatch.setattr("gemm_course.device.facts.gpu_facts", lambda: TooOld)
    A, B, _ = matrices(4, 5, 6)
    result = run("async_copy", A, B)
    assert result.backend == "emulator"
    assert near(result.C, A @ B)
    assert capsys.readouterr().out == (
        "async_copy needs compute capability 8.0 or newer, and this GPU, NVIDIA GeForce GTX 1080, has 6.1: "
        "this runs on the emulator.\n"
    )
    with pytest.raises(NoGpu, match=r"and this GPU, NVIDIA GeForce GTX 1080, has 6\.1\."):
        run("async_copy", A, B, backend="gpu")


HOPPERS = ("mma_tma", "wgmma_tma", "warp_specialised", "persistent", "staged_store", "overlapped_store")


@pytest.mark.many(one_in=6)
@pytest.mark.parametrize("name", HOPPERS)
def test_a_gpu_that_is_not_hopper_leaves_hoppers_stages_to_the_emulator(name, monkeypatch, capsys):
    class Newer:
        name, compute_capability = "NVIDIA B200", (10, 0)

    monkeypatch.setattr(launching, "gpu_available", lambda: True)
    monkeypatch.setattr("gemm_course.device.facts.gpu_facts", lambda: Newer)
    A, B, _ = (matrix.astype(np.float16) for matrix in matrices(4, 5, 6))
    assert run(name, A, B).backend == "emulator"
    assert capsys.readouterr().out == (
        f"{name} needs compute capability 9.0, Hopper, and this GPU, NVIDIA B200, has 10.0: "
        "this runs on the emulator.\n"
    )


def test_a_stage_takes_the_dtype_it_is_made_for():
    stage = dataclasses.replace(LADDER["naive_coalesced"], name="halves", dtype="float16")
    A, B, C = (matrix.astype(np.float16) for matrix in matrices(5, 6, 7))
    result = run(stage, A, B, C, beta=1.0, backend="emulator")
    assert result.C.dtype == np.float16
    assert np.linalg.norm(result.C - (A @ B + C)) < 1e-2 * np.linalg.norm(A @ B + C)
    assert run(stage, A[:0], B, backend="emulator").C.dtype == np.float16
    with pytest.raises(ValueError, match=r"B must be float16, not float32: B\.astype\(np\.float16\)"):
        run(stage, A, B.astype(np.float32))


def test_rows_are_padded_in_bytes_whatever_the_dtype():
    @cuda.jit
    def copies(m, n, k, alpha, A, B, beta, C):
        C[0, 0] = A[0, 0]

    A, B, C = (matrix.astype(np.float16) for matrix in matrices(5, 6, 7))
    result = run(copies[1, 1], A, B, C, backend="emulator")
    assert result.leading_dimensions == {"A": 32, "B": 32, "C": 32}
    with pytest.raises(ValueError, match="B must be float16, not float32"):
        run(copies[1, 1], A, B.astype(np.float32))


def test_any_kernel_can_be_launched():
    x, y = np.arange(100.0), np.ones(100)
    out = np.zeros(100)
    done = launch(vector_add[4, 32], x, y, out, 100, backend="emulator")
    np.testing.assert_array_equal(done.arrays["out"], x + 1)
    assert set(done.arrays) == {"x", "y", "out"}
    assert not out.any()
    assert done.report.ok


def test_a_launch_names_what_is_wrong():
    with pytest.raises(ValueError, match=r"takes 4 arguments \(x, y, out, n\); 1 were given"):
        launch(vector_add[1, 32], np.zeros(3))
    with pytest.raises(ValueError, match=r"my_kernel\[grid, block\]"):
        launch(vector_add, np.zeros(3))


def test_an_interrupted_emulation_changes_nothing(monkeypatch):
    A, B, C = matrices(8, 8, 8)
    copies = [matrix.copy() for matrix in (A, B, C)]

    def interrupted(kernel, grid, block, *args, **options):
        for arg in args:
            if isinstance(arg, np.ndarray):
                arg[:] = 0
        raise KeyboardInterrupt

    monkeypatch.setattr(lockstep, "emulate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run("block_tiled", A, B, C, beta=1, backend="emulator")
    for matrix, copy in zip((A, B, C), copies):
        np.testing.assert_array_equal(matrix, copy)


def test_a_long_emulation_says_how_long(monkeypatch, capsys):
    monkeypatch.setattr(launching, "EMULATED_FMAS_A_SECOND", 100)
    A, B, _ = matrices(64, 64, 4)
    result = run("block_tiled", A, B, backend="emulator")
    said = capsys.readouterr()
    assert "The emulator will need about 3 minutes" in said.out
    assert said.err == ""  # no bar where nobody looks
    assert near(result.C, A @ B)


def test_a_short_emulation_says_nothing(capsys):
    A, B, _ = matrices(16, 16, 16)
    run("block_tiled", A, B, backend="emulator")
    assert capsys.readouterr() == ("", "")


@pytest.mark.full(reason="a process of its own")
def test_numba_does_not_complain_of_small_grids():
    program = (
        "from gemm_course import run\nfrom numba import cuda\n"
        "@cuda.jit\ndef kernel(a):\n    a[0] = 1\n"
        "run\nkernel[1, 32]\nprint('done')"
    )
    done = subprocess.run([sys.executable, "-W", "always", "-c", program], capture_output=True, text=True)
    assert done.stdout == "done\n"
    assert "low occupancy" not in done.stderr


@pytest.mark.gpu
class TestOnAGpu:
    @pytest.mark.parametrize("stage", LADDER, ids=lambda stage: stage.name)
    def test_every_stage_computes(self, stage):
        A, B, C = matrices(301, 257, 193, stage.dtype)
        result = run(stage, A, B, C, alpha=1.5, beta=-0.5, report=stage.name == "block_tiled")
        assert result.backend == "gpu"
        assert near(result.C, product(A, B, C, 1.5, -0.5), stage.dtype)
        assert result.milliseconds > 0
        assert result.tflops > 0
        assert (result.report is not None) == (stage.name == "block_tiled")

    def test_own_kernels_and_vectors(self):
        A, B, C = matrices(18, 21, 13)
        assert near(run(own_kernel[(2, 2), (16, 16)], A, B, C, beta=1, backend="gpu").C, A @ B + C)
        x = np.arange(1000.0)
        done = launch(vector_add[4, 256], x, x, np.zeros(1000), 1000)
        np.testing.assert_array_equal(done.arrays["out"], 2 * x)
        assert done.backend == "gpu"


# naive_coalesced counts columns along y, the others rows; grouped_blocks has one axis only and no such limit.
@pytest.mark.many(one_in=4)
@pytest.mark.parametrize(
    ("stage", "tiles"),
    [
        ("block_tiled", {"BM": 8, "BN": 16, "BK": 16}),
        ("naive_coalesced", {"BM": 2, "BN": 32}),
        ("naive_uncoalesced", {"BM": 8, "BN": 4}),
        ("grouped_blocks", {}),
    ],
)
def test_a_grid_too_tall_is_launched_in_parts(monkeypatch, stage, tiles):
    monkeypatch.setattr(launching, "MOST_BLOCKS_ALONG_Y", 2)
    A, B, C = matrices(45, 131, 6)
    whole = run(stage, A, B, C, alpha=2.0, beta=0.5, tiles=tiles, backend="emulator")
    assert near(whole.C, 2 * A @ B + 0.5 * C)
    assert (whole.m, whole.n, whole.k) == (45, 131, 6)
    if stage != "grouped_blocks":
        assert whole.grid[1] == 2
    without = run(stage, A, B, tiles=tiles, backend="emulator")
    assert near(without.C, A @ B)
    assert without.report.ok


@pytest.mark.gpu
def test_a_million_rows_are_multiplied_on_the_gpu():
    m = 65535 * LADDER["block_tiled"].tiles["BM"] + 3
    A, B = np.ones((m, 2), np.float32), np.full((2, 1), 3, np.float32)
    result = run("block_tiled", A, B, backend="gpu")
    assert (result.C == 6).all()
    assert result.milliseconds > 0
