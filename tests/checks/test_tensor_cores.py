"""The checkers of `tensor_cores` on other right answers, on half-written ones and on odd ones."""

import numpy as np
import pytest
from numba import cuda, float32
from numba.types import float16

from gemm_course import check
from gemm_course.checks.notebooks.tensor_cores.padding_wavefronts import PADS, wavefronts_of_eight_rows
from lockstep.intrinsics import COL_MAJOR, ROW_MAJOR, wmma_load_a, wmma_load_b, wmma_mma, wmma_store
from tests.checks.cells import verdict_of
from tests.wrong_solutions.altering import changed, solution


def not_transposed(PAD):
    """A's tile as it is, B's transposed, C's tile stored transposed, a barrier for a syncwarp."""
    WIDTH = 16 + PAD

    @cuda.jit
    def product(depth, X, Y, Z):
        left = cuda.shared.array((16, WIDTH), float16, 32)
        top = cuda.shared.array((16, WIDTH), float16, 32)
        out = cuda.shared.array((16, 24), float32, 32)
        x, y = cuda.local.array(16, float16), cuda.local.array(16, float16)
        total = cuda.local.array(8, float32)
        me = cuda.threadIdx.x
        i, j = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        for e in range(8):
            total[e] = float32(0)
        done = 0
        while done < depth:
            for row in range(16):
                if me < 16:
                    left[row, me] = X[i + row, done + me]
                else:
                    top[row, me - 16] = Y[done + me - 16, j + row]
            cuda.syncthreads()
            wmma_load_a(x, left, (0, 0), ROW_MAJOR)
            wmma_load_b(y, top, (0, 0), COL_MAJOR)
            wmma_mma(total, x, y, ROW_MAJOR, COL_MAJOR)
            cuda.syncthreads()
            done += 16
        wmma_store(out, (0, 0), total, COL_MAJOR)
        cuda.syncwarp()
        for row in range(16):
            if me < 16:
                Z[i + row, j + me] = out[me, row]

    return product


@cuda.jit
def edge_row_by_row(m, n, k, A, B, C):
    As = cuda.shared.array((16, 24), float16, 32)
    Bs = cuda.shared.array((16, 24), float16, 32)
    Cs = cuda.shared.array((16, 16), float32, 32)
    a, b = cuda.local.array(16, float16), cuda.local.array(16, float16)
    acc = cuda.local.array(8, float32)
    lane = cuda.threadIdx.x
    x, half = lane % 16, lane // 16
    row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    for e in range(8):
        acc[e] = 0
    for k0 in range(0, k, 16):
        for r in range(half, 16, 2):
            As[r, x] = A[row0 + r, k0 + x] if row0 + r < m and k0 + x < k else float16(0)
            Bs[r, x] = B[k0 + r, col0 + x] if k0 + r < k and col0 + x < n else float16(0)
        cuda.syncwarp()
        wmma_load_a(a, As, (0, 0), ROW_MAJOR)
        wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
        wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)
        cuda.syncwarp()
    wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
    cuda.syncwarp()
    if col0 + x < n:
        for r in range(half, min(16, m - row0), 2):
            C[row0 + r, col0 + x] = Cs[r, x]


@cuda.jit
def b_first_and_no_arrays_of_fragments_of_a(k, A, B, C):
    """B's fragments stay, A's come one after the other; tiles are fetched by rows, and C by halves."""
    top = cuda.shared.array((32, 16), float16, 32)
    left = cuda.shared.array((16, 32), float16, 32)
    out = cuda.shared.array((32, 32), float32, 32)
    one = cuda.local.array(16, float16)
    two = cuda.local.array((2, 16), float16)
    sums = cuda.local.array((4, 8), float32)
    me = cuda.threadIdx.x
    y, x = cuda.blockIdx.y * 32, cuda.blockIdx.x * 32
    for e in range(32):
        sums[e // 8, e % 8] = float32(0)
    for done in range(0, k, 16):
        for row in range(32):
            if me < 16:
                top[row, me] = A[y + row, done + me]
            else:
                left[me - 16, row] = B[done + me - 16, x + row]
        cuda.syncthreads()
        for j in range(2):
            wmma_load_b(two[j], left, (0, 16 * j), ROW_MAJOR)
        for i in range(2):
            wmma_load_a(one, top, (16 * i, 0), ROW_MAJOR)
            for j in range(2):
                wmma_mma(sums[2 * i + j], one, two[j], ROW_MAJOR, ROW_MAJOR)
        cuda.syncthreads()
    for i in range(4):
        wmma_store(out, (i // 2 * 16, i % 2 * 16), sums[i], ROW_MAJOR)
    cuda.syncthreads()
    for row in range(32):
        C[y + row, x + me] = out[row, me]


@pytest.mark.parametrize("before", ["    @cuda.jit", "        lane = cuda"])
def test_an_order_may_have_another_name(before):
    indent = " " * (len(before) - len(before.lstrip()))
    named = (before, f"{indent}ORDER = COL_MAJOR\n{before}"), ("As, (0, 0), COL_MAJOR", "As, (0, 0), ORDER")
    verdict = verdict_of(changed(solution("warp_product"), *named))
    assert verdict.passed, str(verdict)


def test_other_right_answers_pass():
    for verdict in (
        check.warp_product(not_transposed),
        check.ragged_product(edge_row_by_row),
        check.fragments_once(b_first_and_no_arrays_of_fragments_of_a),
        check.padding_wavefronts([np.int64(8), 1.0, 2]),
    ):
        assert verdict.passed, str(verdict)


@pytest.mark.parametrize(("pad", "wavefronts"), list(zip(PADS, (8, 1, 2), strict=True)))
def test_the_emulator_counts_what_the_rows_distance_says(pad, wavefronts):
    assert wavefronts_of_eight_rows(pad) == wavefronts


def test_what_is_not_written_yet_is_not_yet():
    for exercise, answers in (
        (check.warp_product, (None, ..., lambda PAD: None)),
        (check.padding_wavefronts, (None, (None, None, None), (8, None, None))),
        (check.ragged_product, (None, ...)),
        (check.fragments_once, (None, ...)),
    ):
        for answer in answers:
            assert exercise(answer).message.startswith("Not yet")


def test_a_kernel_in_place_of_its_factory_is_named():
    assert "takes PAD" in check.warp_product(not_transposed(8)).message


def test_the_right_numbers_by_the_wrong_layout_are_refused_with_the_line():
    verdict = check.warp_product(_told_another_order)
    assert not verdict.passed and "wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)" in verdict.where


def _told_another_order(PAD):
    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, 24), float16, 32)
        a, b = cuda.local.array(16, float16), cuda.local.array(16, float16)
        acc = cuda.local.array(8, float32)
        wmma_load_a(a, As, (0, 0), COL_MAJOR)
        wmma_load_b(b, As, (0, 0), ROW_MAJOR)
        wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)

    return product


@pytest.mark.parametrize(
    "guard",
    (
        "if row0 + r < C.shape[0] and col0 + c + e < C.shape[1]:",
        "if row0 + r < C.shape[0] and col0 + c + e < n:",
    ),
)
def test_a_guard_by_the_shape_of_the_array_is_named(guard):
    by_shape = changed(solution("ragged_product"), ("if row0 + r < m and col0 + c + e < n:", guard))
    assert "`C.shape` includes the padding" in verdict_of(by_shape).message


@pytest.mark.parametrize(
    ("exercise", "old", "new", "words"),
    [
        ("warp_product", "b, Bs, (0, 0)", "b, Bs, (k0, 0)", "A place counts within"),
        ("fragments_once", "a[i], b[j]", "a[j], b[i]", "in `a[i]` and `b[j]`"),
        ("fragments_once", "(i * 16, j * 16)", "(i * 8, j * 16)", "begin 16 rows or columns apart"),
        ("fragments_once", "(i * 16, j * 16)", "(i * 16, j * 8)", "begin 16 rows or columns apart"),
        ("ragged_product", "= Cs[r, c + e]", "= Cs[c + e, r]", "row and column swapped"),
    ],
)
def test_a_mistake_in_other_places_is_named(exercise, old, new, words):
    verdict = verdict_of(changed(solution(exercise), (old, new)))
    assert not verdict.passed and words in verdict.message, str(verdict)


STORE = "wmma_store(Cs, (0, 0), acc, ROW_MAJOR)"
BY_ONE_LANE = """if lane == 0:
        for y in range(16):
            for x in range(16):
                if row0 + y < m and col0 + x < n:
                    C[row0 + y, col0 + x] = Cs[y, x]
"""


def test_what_is_right_but_wasteful_passes_with_a_remark():
    product = solution("warp_product")
    every_step = changed(
        product,
        (f"        {STORE}\n", ""),
        ("b, COL_MAJOR, ROW_MAJOR)", f"b, COL_MAJOR, ROW_MAJOR)\n            {STORE}"),
    )
    ragged = solution("ragged_product")
    begin = ragged.index("for e in range(8):\n        if row0 + r < m")
    one_lane = ragged[:begin] + BY_ONE_LANE + ragged[ragged.index("\n\n", begin) :]
    for wasteful, right, remark in (
        (every_step, product, "in the loop along k"),
        (one_lane, ragged, "few lanes store at a time"),
    ):
        verdict = verdict_of(wasteful)
        assert verdict.passed and remark in verdict.message, str(verdict)
        assert remark not in verdict_of(right).message


STEP_OF_A_WARP = """@cuda.jit
def load_and_multiply(acc, a, b, As, Bs, y0, x0, p):
    for i in unroll(range(a.shape[0])):
        wmma_load_a(a[i], As, (y0 + i * 16, p), ROW_MAJOR)
    for j in unroll(range(b.shape[0])):
        wmma_load_b(b[j], Bs, (p, x0 + j * 16), ROW_MAJOR)
    for i in unroll(range(a.shape[0])):
        for j in unroll(range(b.shape[0])):
            wmma_mma(acc[i, j], a[i], b[j], ROW_MAJOR, ROW_MAJOR)


"""


def _with_a_helper() -> str:
    cell = solution("several_warps")
    begin = cell.index("                for i in unroll(range(DOWN)):\n                    wmma_load_a")
    end = cell.index("            cuda.syncthreads()\n        for i")
    cell = cell[:begin] + "                load_and_multiply(acc, a, b, As, Bs, y0, x0, p)\n" + cell[end:]
    return cell.replace("def make_wmma", f"{STEP_OF_A_WARP}def make_wmma")


@pytest.mark.parametrize("decorator", ["@cuda.jit", "@cuda.jit(device=True)"])
def test_a_warps_step_may_be_a_function(decorator):
    verdict = verdict_of(_with_a_helper().replace("@cuda.jit\ndef load", f"{decorator}\ndef load"))
    assert verdict.passed, str(verdict)


def test_orders_are_checked_in_a_function_too():
    wrong = _with_a_helper().replace("b[j], ROW_MAJOR, ROW_MAJOR", "b[j], ROW_MAJOR, COL_MAJOR")
    assert "same order as the load" in verdict_of(wrong).message


def test_several_warps_is_not_yet_until_something_is_multiplied_or_stored():
    cell = solution("several_warps")
    begin, end = cell.index("        for k0 in range"), cell.index("    return several")
    verdict = verdict_of(cell[:begin] + cell[end:])
    assert verdict.message.startswith("Not") and "yet" in verdict.message, str(verdict)


def test_a_store_per_tile_passes_with_a_remark():
    cell = solution("several_warps")
    loops = "        for i in unroll(range(DOWN)):\n            for j in unroll(range(ACROSS)):\n"
    begin = cell.index(f"{loops}                put")
    end = cell.index("\n\n    return several")
    inside = "\n".join("    " + line for line in cell[begin:end].splitlines())
    verdict = verdict_of(cell[:begin] + inside + cell[end:])
    assert verdict.passed and "`put` after the loop" in verdict.message, str(verdict)
