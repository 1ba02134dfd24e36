"""A kernel of one's own: written, read anew, checked on the emulator, and treated as a stage."""

import os
from pathlib import Path

import numpy as np
import pytest

from gemm_course import compiled, own, profiled, run
from gemm_course import widgets as see
from gemm_course.compiler.nvidia import why_no_compiler
from gemm_course.device import NoGpu, gpu_available
from gemm_course.kernels import LADDER
from gemm_course.own_kernel import OwnKernelError
from gemm_course.own_kernel.writing import write_new
from gemm_course.profiles import NoProfile
from gemm_course.widgets import _card, _tiles
from tests.own_kernel.edits import BUG, EPILOGUE, STORE, edit, new_file

ODD = [(33, 37, 9)]


@pytest.fixture
def mine(tmp_path):
    return own(new_file(tmp_path, "mine"))


@pytest.mark.many(one_in=12, with_all=3)
@pytest.mark.parametrize("start", LADDER, ids=lambda stage: stage.name)
def test_a_file_begins_as_any_stage(tmp_path, start):
    stage = own(write_new("mine", tmp_path, start.name))
    assert (stage.name, stage.after, stage.tiles) == ("mine", stage.after, start.tiles)
    assert (stage.dtype, stage.accumulate) == (start.dtype, start.accumulate)
    assert stage.check(shapes=ODD).ok


def test_new_never_overwrites_and_says_what_is_wrong(tmp_path):
    path = write_new("mine.py", tmp_path)
    path.write_text("# all my work")
    for name, start, said in (
        ("mine", "wmma", "exists already"),
        ("my-kernel", "wmma", "cannot be imported"),
        ("wmma", "wmma", "choose another name"),
        ("numba", "wmma", "numba is a module already"),
        ("random", "wmma", "random is a module already"),
        ("other", "nonsense", "no stage is called 'nonsense'"),
    ):
        with pytest.raises(OwnKernelError, match=said):
            write_new(name, tmp_path, start)
    assert path.read_text() == "# all my work"


def test_a_stage_in_place_of_a_file_is_told_how_to_begin_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OwnKernelError, match="new mine --from vectorized"):
        own("vectorized")
    with pytest.raises(OwnKernelError, match="new vektorized` writes one"):
        own("vektorized")


def test_before_there_is_a_file_a_stage_stands_for_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine = own("mine_for_this_test.py", otherwise="block_tiled")
    assert mine.check(shapes=ODD).ok
    assert not list(tmp_path.iterdir())


def test_an_edit_is_seen_at_once_and_the_old_one_says_so(mine):
    assert mine.check(shapes=ODD).ok
    edit(mine.file, [(STORE, STORE.replace("alpha *", "2 * alpha *"))])
    os.utime(mine.file, (0, 0))  # an edit within the clock's step, or an older file, is an edit as well
    assert "has changed since it was read" in str(mine.check(shapes=ODD))
    found = own(mine.file).check(shapes=ODD)
    assert not found.ok and "C[0, 0] is " in str(found)


def test_a_right_kernel_is_right_at_all_shapes(mine):
    found = mine.check(tiles={"BM": 64, "BN": 64, "BK": 8, "TM": 4, "TN": 4})
    assert found.ok and len(found.passed) == 10
    assert "BM=64 BN=64 BK=8 TM=4 TN=4: right in 10 cases" in str(found)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (BUG, "line 66: "),
        ([("if row < m and col < n:", "if row < m:")], "the last column is "),
        ([("if row < m and col < n:", "if row < m and col <= n:")], "the padding of C's rows is written"),
        ([(STORE, STORE.replace(" if beta != 0 else alpha * acc[i, j]", ""))], "NaN"),
        ([("k0 += BK", "k0 += 2 * BK")], "elements are wrong"),
        ([("blocks=columns_by_rows", "blocks=lambda m, n, t: (1, 1)")], "is not written"),
        ([('"TM": 16', '"TM": 3')], "BM (128) must be a multiple of TM (3)"),
        ([("THREADS = BM * BN", "THREADS = BM * BM_")], "mine.py, line 41: NameError"),
        ([("tid = u32(", "tid = u33(")], "u33"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, changes, said):
    path = edit(new_file(tmp_path, "mine"), changes)
    found = own(path).check()
    assert not found.ok and said in str(found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = (", "broken.py, line 1: "),
        ("a = 1\nb = a / 0", "broken.py, line 2: ZeroDivisionError"),
        ("a = 1", "broken.py has no STAGE"),
        ("# caf\u00e9", "broken.py is no text in UTF-8"),
    ],
)
def test_a_file_that_is_no_stage(tmp_path, text, said):
    (tmp_path / "broken.py").write_text(text, "latin-1")
    with pytest.raises(OwnKernelError, match=said):
        own(tmp_path / "broken.py")


def test_a_build_that_is_no_function(tmp_path):
    path = edit(new_file(tmp_path, "mine"), [("build=", "build=7 or ")])
    with pytest.raises(OwnKernelError, match="build must be a function that takes the tiles"):
        own(path)


def test_a_file_may_not_be_called_like_a_stage(tmp_path):
    path = new_file(tmp_path, "mine").rename(tmp_path / "wmma.py")
    with pytest.raises(OwnKernelError, match="another name"):
        own(path)
    with pytest.raises(OwnKernelError, match=r"course\.py new nowhere"):
        own(tmp_path / "nowhere.py")


# ---- as a stage --------------------------------------------------------------------------------------------


@pytest.mark.full(reason="compiles a kernel")
def test_what_works_on_the_ladder_works_on_it(mine):
    rng = np.random.default_rng(1)
    A, B = (rng.standard_normal(size, dtype=np.float32) for size in ((40, 20), (20, 30)))
    assert np.allclose(run(mine, A, B, backend="emulator").C, A @ B, atol=1e-4)
    same = LADDER["thread_tiled_2d"]
    assert _tiles.cost(mine, mine.tiles).wavefronts == _tiles.cost(same, same.tiles).wavefronts
    assert "can run" in _tiles.choice(mine, mine.tiles).alt
    see.tiles(mine)
    see.occupancy(mine)


@pytest.mark.full(reason="compiles a kernel")
@pytest.mark.compiler
@pytest.mark.skipif(why_no_compiler() is not None, reason="needs NVIDIA's compiler")
def test_it_is_compiled(tmp_path):
    fused = own(new_file(tmp_path, "three_fused"))
    assert compiled(fused).name == "three_fused" and not compiled(fused).spilled_bytes


@pytest.mark.skipif(gpu_available(), reason="says what is missing without a GPU")
def test_a_profile_needs_a_gpu(mine):
    with pytest.raises(NoGpu):
        profiled(mine)


@pytest.mark.full(reason="large kernels are compiled")
def test_a_card_without_a_gpu_says_so(mine, monkeypatch):
    monkeypatch.setattr(_card, "gpu_available", lambda: False)
    alt = _card.card(mine).alt
    assert "mine not measured" in alt and "No GPU here" in alt
    assert all(name in alt for name in ("grouped_blocks 52", "cuBLAS, H200 5", "FLOP per byte loaded: 32"))


@pytest.mark.full(reason="compiles a kernel, and draws all of its pictures")
def test_a_card_of_a_measured_kernel(mine, monkeypatch):
    here = _card.Here("NVIDIA H200", 40.0, 32.0, 50.0)
    monkeypatch.setattr(_card, "_measured_here", lambda *_: here)
    alt = _card.card(mine, tiles={"BK": 16}).alt
    assert "mine: 40 TFLOPS on this machine, 80% of cuBLAS, 1.25 times its beginning" in alt
    assert "cuBLAS here 50" in alt


# ---- a fused epilogue --------------------------------------------------------------------------------------


def test_a_fused_epilogue_is_checked_and_called(tmp_path):
    rng = np.random.default_rng(2)
    fused = own(new_file(tmp_path, "three_fused"))
    assert fused.check().ok
    A, B = (rng.standard_normal(size, dtype=np.float32) for size in ((40, 20), (20, 30)))
    bias = rng.standard_normal(30, dtype=np.float32)
    out = np.empty((40, 30), np.float32)
    assert fused(A, B, out=out, bias=bias) is out
    assert np.allclose(out, np.maximum(A @ B + bias, 0), atol=1e-4)
    with pytest.raises(ValueError, match="bias"):
        run(fused, A, B)
    with pytest.raises(ValueError, match=r"bias must be \(30,\)"):
        run(fused, A, B, extras={"bias": bias[:3]})


def test_an_epilogue_that_the_kernel_does_not_do_is_wrong(tmp_path):
    changes = [*EPILOGUE[:2], (STORE, STORE), EPILOGUE[3]]
    found = own(edit(new_file(tmp_path, "mine"), changes)).check()
    assert not found.ok and "instead of" in str(found)


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        (EPILOGUE[:3], 'STAGE must name: extras={"bias": "n"}'),
        ([EPILOGUE[0], EPILOGUE[3]], "STAGE's extras say that it takes bias after C"),
        ([*EPILOGUE[:3], ('document="",', 'document="",\n    extras={"bias": "n"},')], "no epilogue"),
        (
            [*EPILOGUE[:3], (EPILOGUE[3][0], EPILOGUE[3][1].replace('"n"', '"m"'))],
            "could not be broadcast together with shapes (127,129) (127,) . It was given C (127, 129), bias",
        ),
        (
            [*EPILOGUE[:3], (EPILOGUE[3][0], EPILOGUE[3][1].replace("np.", "npy."))],
            "NameError: name 'npy' is not defined",
        ),
    ],
)
def test_half_an_epilogue_is_told_what_is_missing(tmp_path, left_out, said):
    assert said in str(own(edit(new_file(tmp_path, "mine"), left_out)).check())


def test_an_epilogue_without_its_extras_is_told_when_the_file_is_read(tmp_path):
    last = EPILOGUE[3][0], EPILOGUE[3][1].replace('    extras={"bias": "n"},\n', "")
    with pytest.raises(
        OwnKernelError, match=r"the epilogue takes C, bias, but after C the extras name nothing"
    ):
        own(edit(new_file(tmp_path, "mine"), [*EPILOGUE[:3], last]))


SIDE = """
from numba import cuda, float32
from gemm_course.kernels import Stage


def build(T):
    def kernel(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * T + y, cuda.blockIdx.x * T + x
        acc = float32(0)
        for k0 in range(0, k, T):
            As[y, x] = A[row, k0 + x] if row < m and k0 + x < k else float32(0)
            Bs[y, x] = B[k0 + y, col] if k0 + y < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[y, p] * Bs[p, x]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return kernel


STAGE = Stage(
    name="side",
    title="One side",
    document="",
    tiles={"T": 32},
    options={"T": (8, 16, 32)},
    requirements=lambda t: [],
    build=build,
    threads=lambda t: (t.T, t.T),
    blocks=lambda m, n, t: (-(-n // t.T), -(-m // t.T)),
    registers=lambda t: 32,
)
"""


@pytest.mark.parametrize("side", [8, 32])
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("", "", ""),
        ("A[row, k0 + x] if row < m and k0 + x", "A[row, x] if row < m and x", "instead of"),
        ("            cuda.syncthreads()\n        if", "        if", "between them: either may come first"),
    ],
)
def test_tiles_may_have_any_name(tmp_path, side, old, new, said):
    """More than one step along k, and blocks that are not full, whatever the sizes are called."""
    (tmp_path / "side.py").write_text(SIDE.replace(old, new) if old else SIDE)
    found = own(tmp_path / "side.py").check({"T": side})
    assert found.ok == (not said) and said in str(found)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    registers=", '    dtype="float64",\n    registers=', 'dtype must be "float32" or "float16"'),
        ("(8, 16, 32)", "32", "options must be what the sliders offer"),
        ("(t.T, t.T)", "t.T", "threads must give one to three numbers"),
        ("(t.T, t.T)", "(t.BX, t.T)", "threads stops with AttributeError"),
        ("lambda m, n, t: (-(-n", "lambda m, n: (-(-n", "blocks stops with TypeError"),
        ("lambda t: []", "lambda t: [True]", "requirements must give pairs"),
        ("def build(T):", "def build(T, BK):", "build takes (T, BK), but tiles have T"),
        ('tiles={"T": 32}', 'tiles={"T": "32"}', "tiles must be sizes by their names"),
    ],
)
def test_a_stage_that_is_none_is_told_by_its_field_when_the_file_is_read(tmp_path, old, new, said):
    assert old in SIDE
    (tmp_path / "side.py").write_text(SIDE.replace(old, new))
    with pytest.raises(OwnKernelError) as error:
        own(tmp_path / "side.py")
    assert str(error.value).startswith("side.py, STAGE: ") and said in str(error.value)


@pytest.mark.many(one_in=3)
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("\n    return kernel\n", "\n", "build must return the kernel, a function; it returns None"),
        ("m, n, k, alpha, A, B, beta, C", "m, n, k, A, B, C, alpha, beta", "in this order"),
        ("for k0 in range(0, k, T):", "k0 = 0\n        while k0 <= k:", "still running after"),
    ],
)
def test_what_a_kernel_is_held_to_before_it_runs_and_while_it_runs(tmp_path, old, new, said):
    assert old in SIDE
    (tmp_path / "side.py").write_text(SIDE.replace(old, new))
    assert said in str(own(tmp_path / "side.py").check({"T": 8}))


def test_a_decorated_kernel_is_taken_as_well(tmp_path):
    (tmp_path / "side.py").write_text(SIDE.replace("    def kernel(", "    @cuda.jit\n    def kernel("))
    assert own(tmp_path / "side.py").check({"T": 8}).ok


@pytest.mark.full(reason="draws several pictures")
def test_pictures_take_sizes_of_any_name(tmp_path):
    (tmp_path / "side.py").write_text(SIDE)
    mine = own(tmp_path / "side.py")
    for picture in (see.card(mine), see.tiles(mine)):
        assert picture is None or picture


@pytest.mark.parametrize("shapes", [[70, 67, 65], [(1, 2)], [(1.5, 2, 3)], "abc"])
def test_shapes_that_are_none_are_told(mine, shapes):
    assert "shapes is a list of (m, n, k)" in str(mine.check(shapes=shapes))


def test_a_stage_that_is_nearly_called_so_is_offered(tmp_path):
    with pytest.raises(OwnKernelError, match="did you mean naive_uncoalesced or naive_coalesced"):
        new_file(tmp_path, "mine", "naive")


def test_a_syntax_error_is_one_sentence_in_a_notebook(tmp_path):
    (tmp_path / "broken.py").write_text("x = 1\nif x\n")
    with pytest.raises(OwnKernelError) as error:
        own(tmp_path / "broken.py")
    assert error.value._render_traceback_() == ["broken.py, line 2: expected ':'"]


@pytest.mark.parametrize("show", [see.limits, see.waits])
def test_a_picture_of_a_profile_says_how_to_get_one(mine, show):
    with pytest.raises(NoProfile, match=r"`profiled\(mine\)` makes one"):
        show(mine)


@pytest.mark.full(reason="large kernels are compiled")
@pytest.mark.compiler
@pytest.mark.skipif(why_no_compiler() is not None, reason="needs NVIDIA's compiler")
def test_tiles_and_occupancy_agree_on_registers(mine):
    assert "registers 128 per thread; an SM holds 2 blocks" in _tiles.choice(mine, mine.tiles).alt
    assert "not known without compiling" in _tiles.choice(mine, {"BM": 64}).alt


def test_the_files_are_kept_out_of_git():
    ignored = (Path(__file__).parents[2] / ".gitignore").read_text()
    assert "notebooks/*.py\n" in ignored


def test_a_card_of_a_name_says_what_it_takes():
    with pytest.raises(TypeError, match=r"mine = own\('mine.py'\), then see.card\(mine\)"):
        _card.card("mine")
