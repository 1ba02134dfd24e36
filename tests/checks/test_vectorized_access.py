"""The checkers of `vectorized_access` on other right answers, on half-written ones and on odd ones."""

import inspect
import linecache
import textwrap

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course import check, compiled
from gemm_course.checks.kits import around, make_copies
from gemm_course.checks.notebooks.vectorized_access.scatter_padding import wavefronts_of
from gemm_course.checks.notebooks.vectorized_access.stray_read import SMALLEST, TILE, strays
from gemm_course.kernels import LADDER
from gemm_course.kernels.variants import vectorized_apart
from lockstep import wavefronts
from lockstep.intrinsics import copy16, load4, store4, u32
from tests.wrong_solutions.vectorized_access import WRONG


def copy_in_one_loop(BM, BK, THREADS):
    @cuda.jit
    def copy(A, out):
        for four in range(cuda.grid(1), BM * BK // 4, cuda.blockDim.x):
            row, col = four // (BK // 4), four % (BK // 4)
            store4(out, (row, 4 * col), load4(A, (row, 4 * col)))

    return copy


def copy_by_copy16(BM, BK, THREADS):
    @cuda.jit
    def copy(A, out):
        four = cuda.threadIdx.x
        while four < BM * BK // 4:
            place = (four // (BK // 4), four % (BK // 4) * 4)
            copy16(out, place, A, place)
            four += THREADS

    return copy


def transpose_with_a_flat_tile(BM, BK, PAD, THREADS):
    """Document 003's own form: a flat As, four lines for the four components."""
    WIDTH = BM + PAD
    SIZE = BK * WIDTH

    @cuda.jit
    def transpose(A, out):
        As = cuda.shared.array(SIZE, dtype=float32, alignment=16)
        inner_row, inner_col = cuda.threadIdx.x // (BK // 4), cuda.threadIdx.x % (BK // 4)
        for offset in range(0, BM, THREADS // (BK // 4)):
            x, y, z, w = load4(A, (inner_row + offset, inner_col * 4))
            As[(inner_col * 4 + 0) * WIDTH + inner_row + offset] = x
            As[(inner_col * 4 + 1) * WIDTH + inner_row + offset] = y
            As[(inner_col * 4 + 2) * WIDTH + inner_row + offset] = z
            As[(inner_col * 4 + 3) * WIDTH + inner_row + offset] = w
        cuda.syncthreads()
        for four in range(cuda.threadIdx.x, BK * BM // 4, THREADS):
            p, i = four // (BM // 4), four % (BM // 4) * 4
            store4(out, (p, i), load4(As, p * WIDTH + i))

    return transpose


def fetch_with_clamped_rows(BM, BK, THREADS):
    """Rows below m are those of the last one: they feed only rows of C that nobody stores."""

    @cuda.jit(device=True)
    def fetch(m, k, A, row0, k0, As, tid):
        for four in range(tid, BM * BK // 4, THREADS):
            r, c = four // (BK // 4), four % (BK // 4) * 4
            row = min(row0 + r, m - 1)
            if k0 + c < k:
                v = load4(A, (row, k0 + c))
                for e in range(4):
                    As[c + e, r] = v[e] if k0 + c + e < k else float32(0)
            else:
                for e in range(4):
                    As[c + e, r] = float32(0)

    return fetch


def fetch_until_k(BM, BK, THREADS):
    """Zeros everywhere first, then as many of the four as lie before k: a length that only the run knows."""

    @cuda.jit(device=True)
    def fetch(m, k, A, row0, k0, As, tid):
        zeros = (float32(0), float32(0), float32(0), float32(0))
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (row0 + r, k0 + c)) if row0 + r < m and k0 + c < k else zeros
            for e in range(4):
                As[c + e, r] = float32(0)
            for e in range(min(4, k - k0 - c)):
                As[c + e, r] = v[e]

    return fetch


def fetch_with_slices(BM, BK, THREADS):
    """A thread clears its own four by a slice."""

    @cuda.jit(device=True)
    def fetch(m, k, A, row0, k0, As, tid):
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            if row0 + r < m and k0 + c < k:
                v = load4(A, (row0 + r, k0 + c))
                for e in range(4):
                    As[c + e, r] = v[e] if k0 + c + e < k else float32(0)
            else:
                As[c : c + 4, r] = 0

    return fetch


def fetch_with_an_array_of_its_own(BM, BK, THREADS):
    @cuda.jit(device=True)
    def fetch(m, k, A, row0, k0, As, tid):
        v = cuda.local.array(4, float32)
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v[:] = 0
            if row0 + r < m and k0 + c < k:
                four = load4(A, (row0 + r, k0 + c))
                for e in range(4):
                    v[e] = four[e] if k0 + c + e < k else float32(0)
            for e in range(4):
                As[c + e, r] = v[e]

    return fetch


def fetch_as_document_004(BM, BK, THREADS):
    """The last of the four are cleared, as many as the run knows."""

    @cuda.jit(device=True)
    def fetch(m, k, A, row0, k0, As, tid):
        v = cuda.local.array(4, float32)
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v[:] = 0
            if row0 + r < m and k0 + c < k:
                v[0], v[1], v[2], v[3] = load4(A, (row0 + r, k0 + c))
            for j in range(min(4, k0 + c + 4 - k)):
                v[3 - j] = 0
            for e in range(4):
                As[c + e, r] = v[e]

    return fetch


def transpose_with_barriers(BM, BK, PAD, THREADS):
    WIDTH = BM + PAD

    @cuda.jit
    def transpose(A, out):
        As = cuda.shared.array((BK, WIDTH), float32, 16)
        tid = cuda.threadIdx.x
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (r, c))
            for e in range(4):
                As[c + e, r] = v[e]
            cuda.syncthreads()
        for i in range(0, BK, THREADS // (BM // 4)):
            p, j = i + tid // (BM // 4), tid % (BM // 4) * 4
            store4(out, (p, j), load4(As, (p, j)))

    return transpose


def with_its_own_fetch(BM, BN, BK, TM, TN, FOURS, TRANSPOSED):
    """The learner's fetch of ragged_fours, a padded As, and reads by load4 where they are neighbours."""
    fetch_a, fetch_b, put = make_copies(BM, BN, BK, TM, TN, FOURS, TRANSPOSED)
    if FOURS and TRANSPOSED:
        fetch_a = fetch_with_clamped_rows(BM, BK, BM * BN // (TM * TN))
    SHAPE = (BK, BM + 4) if TRANSPOSED else (BM, BK + 4)
    WIDE = TRANSPOSED and TM % 4 == 0

    @cuda.jit
    def kernel(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array(SHAPE, float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        tx, ty = u32(cuda.threadIdx.x), u32(cuda.threadIdx.y)
        top, left = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        mine = ty * (BN // TN) + tx
        acc = cuda.local.array((TM, TN), float32)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = 0
        k0 = 0
        while k0 < k:
            fetch_a(m, k, A, top, k0, As, mine)
            fetch_b(k, n, B, k0, left, Bs, mine)
            cuda.syncthreads()
            for p in range(BK):
                if WIDE:
                    for i in range(0, TM, 4):
                        a[i], a[i + 1], a[i + 2], a[i + 3] = load4(As, (p, ty * TM + i))
                else:
                    for i in range(TM):
                        a[i] = As[p, ty * TM + i] if TRANSPOSED else As[ty * TM + i, p]
                for j in range(TN):
                    b[j] = Bs[p, tx * TN + j]
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
            k0 += BK
        put(m, n, alpha, beta, C, top + ty * TM, left + tx * TN, acc)

    return kernel


def without_the_kit(BM, BN, BK, TM, TN, FOURS, TRANSPOSED):
    """The course's kernel with these switches, in blocks of two dimensions."""
    made = vectorized_apart.build(BM, BN, BK, TM, TN, 0, FOURS, TRANSPOSED)
    lines = textwrap.dedent(inspect.getsource(made))
    numbers = "u32(cuda.threadIdx.y) * (BN // TN) + u32(cuda.threadIdx.x)"
    source = lines.replace("u32(cuda.threadIdx.x)", numbers)
    names = {**vars(vectorized_apart), **inspect.getclosurevars(made).nonlocals}
    name = f"vectorized_apart in two dimensions {FOURS} {TRANSPOSED} {BM} {BK}"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    exec(compile(source, name, "exec"), names)
    return cuda.jit(names["vectorized_apart"])


def without_u32(BM, BN, BK, TM, TN, FOURS, TRANSPOSED):
    """The solution, whose thread numbers the compiler takes for numbers that may be negative."""
    fetch_a, fetch_b, put = make_copies(BM, BN, BK, TM, TN, FOURS, TRANSPOSED)
    SHAPE = (BK, BM) if TRANSPOSED else (BM, BK)

    @cuda.jit
    def kernel(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array(SHAPE, float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        tid, y0, x0 = ty * (BN // TN) + tx, ty * TM, tx * TN
        acc = cuda.local.array((TM, TN), float32)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = 0
        for k0 in range(0, k, BK):
            fetch_a(m, k, A, row0, k0, As, tid)
            fetch_b(k, n, B, k0, col0, Bs, tid)
            cuda.syncthreads()
            for p in range(BK):
                for i in range(TM):
                    a[i] = As[p, y0 + i] if TRANSPOSED else As[y0 + i, p]
                for j in range(TN):
                    b[j] = Bs[p, x0 + j]
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
        put(m, n, alpha, beta, C, row0 + y0, col0 + x0, acc)

    return kernel


COMMENTED = [
    ("ragged_fours", fetch_until_k, "a chain of branches of `v[e]`"),
    ("ragged_fours", fetch_as_document_004, "`v[3 - j]`. In C++ the four would go to local memory"),
    ("transposing_scatter", transpose_with_barriers, "the threads wait 2 times"),
    ("both_switches", without_u32, "does not make fours of all reads"),
]


@pytest.mark.parametrize("exercise, answer, words", COMMENTED)
def test_a_costly_right_answer_passes_with_a_comment(exercise, answer, words):
    verdict = getattr(check, exercise)(answer)
    assert verdict.passed and words in verdict.message, str(verdict)


@pytest.mark.full(reason="four large kernels are compiled")
@pytest.mark.compiler
def test_the_comment_on_dynamic_places_is_true():
    tiles, square = (32, 16, 64), np.zeros((64, 64), np.float32)
    arguments = 64, 64, 64, np.float32(1), square, square, np.float32(0), square
    plain, *dynamic = (
        compiled(around(make(*tiles), 32, 32, 16, 4, 4), *arguments)
        for make in (fetch_with_an_array_of_its_own, fetch_until_k, fetch_as_document_004)
    )
    for each in dynamic:
        assert each.by_kind["branch"] > plain.by_kind["branch"] and len(each.rows) > len(plain.rows)
        assert not each.by_kind["local memory"]


RIGHT = [
    ("four_at_once", copy_in_one_loop),
    ("four_at_once", copy_by_copy16),
    ("transposing_scatter", transpose_with_a_flat_tile),
    ("ragged_fours", fetch_with_clamped_rows),
    ("ragged_fours", fetch_with_slices),
    ("ragged_fours", fetch_with_an_array_of_its_own),
    ("both_switches", with_its_own_fetch),
    ("both_switches", without_the_kit),
]


@pytest.mark.many(one_in=3)
@pytest.mark.parametrize("exercise, answer", RIGHT)
def test_another_right_answer_passes(exercise, answer):
    verdict = getattr(check, exercise)(answer)
    assert verdict.passed, str(verdict)


def test_answers_in_other_forms_pass():
    assert check.scatter_padding((4, 1, np.int64(2)), 4).passed
    assert check.stray_read(["C", "read"], [32, 17]).passed


@pytest.mark.parametrize(
    "answer, words",
    [
        ({"wavefronts": [4, 1, 2]}, "which padding do you"),
        ({"wavefronts": [4, 1, None], "take": 4}, "padding 4 is still missing"),
        ({"wavefronts": [4, 1], "take": 4}, "your list has 2"),
        ({"wavefronts": "4, 1, 2", "take": 4}, "three numbers"),
        ({"wavefronts": [4, 1, 2.5], "take": 4}, "whole number"),
        ({"wavefronts": [3, 1, 2], "take": 4}, "lie in the same bank"),
    ],
)
def test_a_half_written_padding_is_told_what_is_missing(answer, words):
    verdict = check.scatter_padding(**answer)
    assert not verdict.passed and words in verdict.message


@pytest.mark.parametrize(
    "answer, words",
    [
        ({"access": ("C", "load")}, "smallest `shape"),
        ({"access": "C", "shape": (1, 1)}, "Which access"),
        ({"access": ("C", "reads it"), "shape": (1, 1)}, 'a `"load"` or a'),
        ({"access": ("acc", "load"), "shape": (1, 1)}, "no array `acc`"),
        ({"access": ("As", "load"), "shape": (1, 1)}, "shared memory"),
        ({"access": ("C", "load"), "shape": (True, 1)}, "two whole numbers"),
    ],
)
def test_a_half_found_stray_read_is_told_what_is_missing(answer, words):
    verdict = check.stray_read(**answer)
    assert not verdict.passed and words in verdict.message


@pytest.mark.parametrize("pad", [0, 2, 4])
def test_the_padding_exercise_counts_as_the_stage_does(pad):
    """Of the three paddings the stage allows 0 and 4; its own stores take as many wavefronts."""
    stage = LADDER["vectorized"]
    tiles = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8, "PAD": pad}
    assert bool(stage.rules(tiles)) == (pad == 2)
    lanes = range(32)
    words = [4 * (lane % 4) * (128 + pad) + lane // 4 for lane in lanes]
    assert wavefronts_of(pad) == wavefronts(words, 32, "store") == {0: 4, 2: 1, 4: 2}[pad]


def test_what_hides_the_stray_read():
    for m, n in ((TILE, TILE), (2 * TILE, TILE), SMALLEST):
        assert strays(m, n) is None
    for m, n in ((1, 1), (TILE, TILE // 2), (TILE + 1, TILE), (TILE - 1, TILE), (TILE, 2 * TILE + 4)):
        assert strays(m, n) is not None, (m, n)


def test_no_smaller_shape_hides_it():
    m, n = SMALLEST
    assert SMALLEST == (32, 17) and strays(m, n - 1) is not None  # fewer columns need more than one row less
    for rows in (1, 2, 8, 16, 17, m - 1):
        assert strays(rows, min(TILE, (m * n - 1) // rows)) is not None, rows


def test_a_refused_line_is_the_learners():
    """Not the line of the kernel around that calls the function."""
    verdict = WRONG["ragged_fours"]["assigns_to_the_tuple"].verdict()
    assert "`v[e] = float32(0)`" in verdict.where


def test_a_fetch_that_is_told_its_line():
    """A finding in the learner's device function names a line of it, not of the kernel around."""

    def make_fetch(BM, BK, THREADS):
        @cuda.jit(device=True)
        def fetch(m, k, A, row0, k0, As, tid):
            r, c = tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (row0 + r, k0 + c + 1))
            As[c, r] = v[0]

        return fetch

    verdict = check.ragged_fours(make_fetch)
    assert "must begin at a multiple of four" in verdict.message
    assert "v = load4(A, (row0 + r, k0 + c + 1))" in verdict.where
