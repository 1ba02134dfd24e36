"""Reads as written and as compiled: what the machine code says is what an H200 counted."""

import re
from dataclasses import replace

import pytest
from numba import cuda, float32

from gemm_course import LADDER
from gemm_course import widgets as see
from gemm_course.compiler import nvidia
from gemm_course.compiler.disassembly import Instruction
from gemm_course.compiler.shared_reads import NotClear, compiled_reads
from gemm_course.kernels.variants import called
from gemm_course.model.requests import Request
from gemm_course.profiles.profile import NoProfile
from gemm_course.records import parse_tiles, profiles
from gemm_course.widgets import _as_compiled
from lockstep.intrinsics import u32, unroll

SQUARE = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}
READS, WAVEFRONTS = "Reads of shared memory per step, of each thread", "Wavefronts per step, of one warp"
KERNEL = "The compiled kernel"


def make_plain(BM, BN, BK, TM, TN):
    """As exercise outer_product's solution."""
    THREADS = BM * BN // (TM * TN)

    @cuda.jit
    def plain(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array((TM, TN), float32)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * (BN // TN) + tx, BM * BK, THREADS):
                As[e // BK, e % BK] = A[row0 + e // BK, k0 + e % BK]
            for e in range(ty * (BN // TN) + tx, BK * BN, THREADS):
                Bs[e // BN, e % BN] = B[k0 + e // BN, col0 + e % BN]
            cuda.syncthreads()
            for p in range(BK):
                for i in range(TM):
                    a[i] = As[ty * TM + i, p]
                for j in range(TN):
                    b[j] = Bs[p, tx * TN + j]
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
        for i in range(TM):
            for j in range(TN):
                C[row0 + ty * TM + i, col0 + tx * TN + j] = alpha * acc[i, j]

    return plain


def make_unrolled(BM, BN, BK, TM, TN):
    """The same in one line, with what lets the compiler merge its reads."""
    THREADS = BM * BN // (TM * TN)

    @cuda.jit
    def unrolled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = u32(cuda.threadIdx.x), u32(cuda.threadIdx.y)
        row0, col0 = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        acc = cuda.local.array((TM, TN), float32)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * (BN // TN) + tx, BM * BK, THREADS):
                As[e // BK, e % BK] = A[row0 + e // BK, k0 + e % BK]
            for e in range(ty * (BN // TN) + tx, BK * BN, THREADS):
                Bs[e // BN, e % BN] = B[k0 + e // BN, col0 + e % BN]
            cuda.syncthreads()
            for p in unroll(range(BK)):
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += As[ty * TM + i, p] * Bs[p, tx * TN + j]
            cuda.syncthreads()
        for i in range(TM):
            for j in range(TN):
                C[row0 + ty * TM + i, col0 + tx * TN + j] = alpha * acc[i, j]

    return unrolled


@pytest.fixture
def no_compiler(monkeypatch):
    """NVIDIA's compiler is missing."""
    monkeypatch.setattr(nvidia, "_what_is_missing", lambda: "NVIDIA's compiler is not installed: install it.")


def profiled():
    """Every profiled launch of a kernel that reads floats from shared memory, by stage and tiles."""
    rows = profiles()
    rows = rows[(rows["m"] == 4096) & (rows["shared_load_wavefronts"] > 0)]
    for name, tiles in zip(rows["stage"], rows["tiles"], strict=True):
        stage = called(name)
        if stage is not None and stage.dtype == "float32":
            yield pytest.param(stage, parse_tiles(tiles), id=f"{name} {tiles}")


@pytest.mark.many(one_in=4)
@pytest.mark.parametrize(("stage", "tiles"), list(profiled()))
def test_the_machine_code_reads_as_many_wavefronts_as_an_h200_counted(stage, tiles):
    """The code is that of the profiled launch, so this needs no compiler."""
    subject = _as_compiled._of_stage(stage, stage.complete(tiles))
    subject = replace(subject, code=lambda: subject.profile.code)
    column = _as_compiled._column(subject)
    assert column.compiled is not None, column.notes
    assert column.compiled.total == pytest.approx(column.measured, rel=0.01)


def test_the_square_as_written_as_compiled_and_as_counted(no_compiler):
    table = see.as_compiled("thread_tiled_2d", tiles=SQUARE)
    assert table.parts[READS] == {
        "as written": ["16, of one float each"],
        "as compiled": ["4, of four floats each"],
    }
    assert table.parts[WAVEFRONTS] == {
        "as written": ["48: 16 for As, 32 for Bs"],
        "as compiled": ["20: 4 for As, 16 for Bs"],
        "counted on an H200": ["20"],
    }
    assert table.parts[KERNEL]["blocks per SM of an H200"] == ["2, of 256 threads each"]
    assert table.head == ["thread_tiled_2d (the course's)"]


def test_the_reads_alone(no_compiler):
    whole = see.as_compiled("thread_tiled_2d", tiles=SQUARE)
    reads = see.as_compiled("thread_tiled_2d", tiles=SQUARE, reads_only=True)
    assert reads.parts == {part: whole.parts[part] for part in (READS, WAVEFRONTS)}
    assert "spilled" in whole.text and "spilled" not in reads.text


@pytest.mark.compiler
def test_a_plain_kernel_reads_as_it_is_written_and_an_unrolled_one_in_fours():
    table = see.as_compiled(make_plain, make_unrolled, "thread_tiled_2d", tiles=SQUARE)
    assert table.head == ["make_plain (yours)", "make_unrolled (yours)", "thread_tiled_2d (the course's)"]
    assert [cell.split(":")[0] for cell in table.parts[WAVEFRONTS]["as written"]] == ["48", "384", "48"]
    assert [cell.split(":")[0] for cell in table.parts[WAVEFRONTS]["as compiled"]] == ["48", "20", "20"]
    assert table.parts[WAVEFRONTS]["counted on an H200"] == ["not measured", "not measured", "20"]
    assert table.parts[READS]["as compiled"][:2] == ["16, of one float each", "4, of four floats each"]
    registers = list(map(int, table.parts[KERNEL]["registers per thread"]))
    assert registers[0] > 128 >= registers[2]
    assert [cell[0] for cell in table.parts[KERNEL]["blocks per SM of an H200"]] == ["1", "1", "2"]


def test_results_that_are_stored_four_at_a_time_are_all_counted(no_compiler):
    stage = LADDER["vectorized"]
    kernel = stage.kernel(stage.complete({**SQUARE, "PAD": 0}))
    table = see.as_compiled(kernel, tiles=SQUARE, block=(256, 1))
    assert table.parts[WAVEFRONTS]["as written"] == ["40: 8 for As, 32 for Bs"]


def test_without_the_compiler_a_kernel_of_ones_own_is_counted_as_written_only(no_compiler):
    table = see.as_compiled(make_plain, "thread_tiled_2d", tiles=SQUARE)
    assert table.parts[WAVEFRONTS]["as written"][0] == "48: 16 for As, 32 for Bs"
    assert table.parts[WAVEFRONTS]["as compiled"] == ["not known", "20: 4 for As, 16 for Bs"]
    assert {cells[0] for cells in table.parts[KERNEL].values()} == {"not known"}
    assert any("make_plain as compiled: NVIDIA's compiler is not installed" in note for note in table.notes)


def test_without_the_compiler_default_tiles_are_read_from_the_record(no_compiler, monkeypatch):
    def none(*args, **kwargs):
        raise NoProfile("none")

    monkeypatch.setattr(_as_compiled, "recorded", none)
    table = see.as_compiled("warp_tiled")
    assert table.parts[WAVEFRONTS] == {
        "as written": ["16: 8 for As, 8 for Bs"],
        "as compiled": ["12: 4 for As, 8 for Bs"],
    }


def test_a_kernel_without_shared_memory_reads_nothing_there(no_compiler):
    table = see.as_compiled("naive_coalesced")
    assert table.parts[READS] == {"as written": ["none"], "as compiled": ["none"]}


def test_a_stage_that_a_learner_wrote_is_theirs(no_compiler):
    table = see.as_compiled(replace(LADDER["block_tiled"], name="mine"))
    assert table.head == ["mine (yours)"]
    assert table.parts[WAVEFRONTS]["as written"] == ["2: 1 for As, 1 for Bs"]
    assert "counted on an H200" not in table.parts[WAVEFRONTS]


def test_kernels_with_other_tiles_say_which(no_compiler):
    columns = [
        _as_compiled._column(_as_compiled._of_stage(LADDER[name], LADDER[name].complete()))
        for name in ("thread_tiled_1d", "thread_tiled_2d")
    ]
    notes = _as_compiled.figure.table(columns).notes
    assert "thread_tiled_2d: BM=128 BN=128 BK=32 TM=16 TN=4." in notes


def test_a_screen_reader_finds_headings_of_columns_rows_and_parts(no_compiler):
    table = see.as_compiled("thread_tiled_2d", tiles=SQUARE)
    html = table._repr_mimebundle_()["text/html"]
    assert re.findall(r'<th scope="(\w+)', html) == [
        "col",
        *["rowgroup", *["row"] * 2],
        *["rowgroup", *["row"] * 3] * 2,
    ]
    assert "<caption" in html and html.count("<tbody>") == 3
    # No colour of text or ground is set, so that the page's own are used.
    assert not re.search(r"(?<!-)color:(?!inherit)|background", html)
    text = table._repr_mimebundle_()["text/plain"]
    assert f"{WAVEFRONTS}, as compiled. thread_tiled_2d (the course's): 20: 4 for As, 16 for Bs." in text


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: see.as_compiled(make_plain), "Say how large the tiles of your kernel are"),
        (lambda: see.as_compiled(make_plain, tiles={"BM": 8, "BN": 8}), "takes BK, TM, TN as well"),
        (
            lambda: see.as_compiled(make_plain, tiles=SQUARE, block=(256, 1)),
            r"blocks of 256 × 1 threads, the first warp of `make_plain` stores .* say so: block=\(x, y\)",
        ),
        (lambda: see.as_compiled(lambda BM: None, tiles=SQUARE), "returns nothing yet"),
    ],
)
def test_what_a_learner_gets_wrong_is_told_in_a_sentence(call, words, capsys):
    assert call() is None
    assert re.search(words, capsys.readouterr().out)


@pytest.mark.parametrize(
    ("call", "words"),
    [(lambda: see.as_compiled(), "pass a kernel"), (lambda: see.as_compiled("wmma"), "Tensor Cores")],
)
def test_calls_that_cannot_be_right(call, words):
    with pytest.raises(ValueError, match=words):
        call()


# --- which load is which ------------------------------------------------------------------------------------


class Code:
    """Machine code whose loop has 1 multiply-add and these loads, all of line 7."""

    def __init__(self, *loads):
        self.rows = [Instruction(16 * place, load, "own.py", 7) for place, load in enumerate(loads)]
        self.by_kind = {"multiply-add": 1}
        self.loop = self


def asked(array, first, each, line=7):
    """A read of one float by every lane, ``each`` words apart."""
    lanes = tuple((lane, (0,), 4 * (first + each * lane)) for lane in range(32))
    return Request(array, "load", "shared", line, 32, lanes)


ROW = [asked("Bs", word, 1) for word in range(0, 128, 32)]
COLUMN = [asked("As", word, 32) for word in range(4)]


def test_loads_of_one_line_are_told_apart_by_their_distances():
    code = Code("LDS.128 R4, [R0]", "LDS R8, [R1]", "LDS R9, [R1+0x80]", "LDS R10, [R1+0x100]")
    reads = compiled_reads(code, [*ROW, *COLUMN], 1)
    assert reads.wavefronts == {"As": 32, "Bs": 3}
    assert reads.widths == {128: 1, 32: 3}


def test_loads_that_may_be_of_either_array_are_not_guessed():
    with pytest.raises(NotClear, match="line 7"):
        compiled_reads(Code("LDS R4, [R0]"), [*ROW, *COLUMN], 1)


def test_a_load_that_never_runs_is_not_counted():
    assert compiled_reads(Code("@!PT LDS RZ, [RZ]", "LDS R4, [R0]"), ROW, 1).total == 1


def test_a_load_of_no_line_of_the_source_is_told():
    with pytest.raises(NotClear, match="no read of the source"):
        compiled_reads(Code("LDS R4, [R0]"), [asked("Bs", 0, 1, line=8)], 1)
