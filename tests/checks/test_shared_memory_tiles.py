"""The checkers of `shared_memory_tiles` on other right answers, on half-written ones and on odd ones."""

from itertools import product

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course import check
from gemm_course.checks.notebooks.shared_memory_tiles.smallest_failing_shape import fails, smallest_product
from gemm_course.checks.notebooks.shared_memory_tiles.tile_walk import CASES as TILES_WALKED
from tests.checks.cells import verdict_of
from tests.wrong_solutions.altering import changed, solution

RIGHT_SHAPES = {"a": (1, 1, 1), "b": (1, 1, 5), "c": (2, 1, 1), "d": (1, 1, 5)}
FIRST_LOADS = [("A", 0, 1), ("B", 0, 3), ("A", 0, 3), ("B", 2, 3)]

TILED = solution("tile_kernel")
STATEMENTS = [line.strip() for line in TILED.split("\n") if line.startswith(" " * 8) and line[-1] != ":"]


def mirrored_when_stored(T):
    @cuda.jit
    def reverse(a, out):
        tile = cuda.shared.array((T,), dtype=float32)
        t, i = cuda.threadIdx.x, cuda.grid(1)
        tile[T - 1 - t] = a[i]
        cuda.syncthreads()
        out[i] = tile[t]

    return reverse


def padded_tiles_and_else(T):
    WIDTH = T + 1

    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        left = cuda.shared.array((T, WIDTH), float32)
        top = cuda.shared.array((T, T), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        i, j = cuda.blockIdx.y * T + y, cuda.blockIdx.x * T + x
        total = float32(0)
        for tile in range((k + T - 1) // T):
            if i < m and tile * T + x < k:
                left[y, x] = A[i, tile * T + x]
            else:
                left[y, x] = 0
            if tile * T + y < k and j < n:
                top[y, x] = B[tile * T + y, j]
            else:
                top[y, x] = 0
            cuda.syncthreads()
            for p in range(T):
                total += left[y, p] * top[p, x]
            cuda.syncthreads()
        if i < m and j < n:
            if beta == 0:
                C[i, j] = alpha * total
            else:
                C[i, j] = alpha * total + beta * C[i, j]

    return tiled


def test_other_right_kernels_pass():
    assert check.reverse(mirrored_when_stored).passed
    verdict = check.tile_kernel(padded_tiles_and_else)
    assert verdict.passed, str(verdict)
    assert "6 barriers per block for its 3 tiles" in verdict.message


def test_a_barrier_after_the_loop_is_one_outside_it():
    guard = "        if row < m and col < n:"
    verdict = verdict_of(TILED.replace(guard, f"        cuda.syncthreads()\n{guard}"))
    assert "One barrier stands outside the loop over k" in verdict.message


def test_two_pairs_of_tiles_need_one_barrier_per_tile():
    in_turn = changed(
        TILED,
        ("(T, T), float32", "(2, T, T), float32"),
        ("for k0", "b = 0\n        for k0"),
        ("As[ty, tx] =", "As[b, ty, tx] ="),
        ("Bs[ty, tx] =", "Bs[b, ty, tx] ="),
        (
            "As[ty, p] * Bs[p, tx]\n            cuda.syncthreads()",
            "As[b, ty, p] * Bs[b, p, tx]\n            b = 1 - b",
        ),
    )
    verdict = verdict_of(in_turn)
    assert verdict.passed, str(verdict)
    assert "One barrier per tile is enough here" in verdict.message
    assert "16,384 bytes of shared memory instead of 8,192" in verdict.message
    assert "One barrier" not in verdict_of(TILED).message


@pytest.mark.parametrize("statement", sorted(set(STATEMENTS)))
def test_no_line_of_the_tile_kernel_can_be_left_out(statement):
    verdict = verdict_of(TILED.replace(statement, "pass", 1))
    assert not verdict.passed
    assert not verdict.message.startswith("Not yet")
    assert verdict.where


@pytest.mark.parametrize(
    "right, wrong",
    [
        ("row < m and k0", "ty < m and k0"),
        ("k0 + tx < k ", "tx < k "),
        ("k0 + ty < k and", "k0 + ty <= k and"),
        ("range(0, k, T)", "range(0, k - 1, T)"),
        ("range(0, k, T)", "range(0, k + T, T)"),
        ("range(T)", "range(T - 1)"),
        ("As[ty, p] * Bs[p, tx]", "As[ty, p] * As[p, tx]"),
        ("if row < m and col < n:", "if row < m and col <= n:"),
        ("B[k0 + ty, col]", "B[k0 + ty, tx]"),
    ],
)
def test_a_slip_in_the_tile_kernel_is_refused(right, wrong):
    assert right in TILED
    verdict = verdict_of(TILED.replace(right, wrong, 1))
    assert not verdict.passed and not verdict.message.startswith("Not yet")


@pytest.mark.parametrize("exercise", [check.reverse, check.tile_kernel])
def test_factories_that_are_not_written_yet(exercise):
    for answer in (None, ..., lambda T: None, lambda T: ...):
        assert exercise(answer).message.startswith("Not yet")


def test_a_factory_that_only_declares_its_tiles_is_not_written_yet():
    def declares(T):
        @cuda.jit
        def tiled(m, n, k, alpha, A, B, beta, C):
            As = cuda.shared.array((T, T), float32)  # noqa: F841
            tx, ty = cuda.threadIdx.x, cuda.threadIdx.y  # noqa: F841

        return tiled

    assert check.tile_kernel(declares).message.startswith("Not yet")


def test_a_kernel_in_place_of_its_factory_is_named():
    verdict = check.tile_kernel(padded_tiles_and_else(4))
    assert not verdict.passed and "takes T and returns" in verdict.message


def test_a_loop_without_end_is_stopped():
    endless = (
        ("for p in range(T):", "while acc == acc:"),
        ("Bs[p, tx]", "Bs[ty, tx]"),
        ("[ty, p]", "[ty, tx]"),
    )
    verdict = verdict_of(changed(TILED, *endless))
    assert not verdict.passed and "come to an end" in verdict.message


def test_the_loads_may_be_written_in_other_ways():
    assert check.first_loads(
        tuple([name.lower(), np.int64(row), col] for name, row, col in FIRST_LOADS)
    ).passed
    assert check.first_loads([]).message.startswith("Not yet")
    assert not check.first_loads([*FIRST_LOADS, ("A", 0, 0)]).passed


def test_the_walk_of_v02_is_that_of_the_formula():
    for tid, THREADS, BM, BK in TILES_WALKED:
        walked = [divmod(element, BK) for element in range(tid, BM * BK, THREADS)]
        assert check.tile_walk.right(tid, THREADS, BM, BK) == walked


def test_the_walks_are_over_tiles_of_all_kinds():
    kinds = {(THREADS % BK == 0, BM * BK % THREADS == 0, THREADS < BK) for _, THREADS, BM, BK in TILES_WALKED}
    assert {(True, True, False), (False, True, False), (False, False, False), (False, True, True)} <= kinds
    assert [] in [check.tile_walk.right(*case) for case in TILES_WALKED]


def test_a_walk_may_be_returned_in_other_ways():
    assert check.tile_walk(
        lambda t, n, rows, width: (divmod(e, width) for e in range(t, rows * width, n))
    ).passed
    assert check.tile_walk(
        lambda t, n, rows, width: np.argwhere(np.arange(rows * width).reshape(rows, width) % n == t)
    ).passed


def test_a_walk_that_is_rounded_in_another_way_is_named():
    def rounded(t, n, rows, width):
        return [divmod(t + i * n, width) for i in range(round(rows * width / n))]

    assert "The number of passes is rounded" in check.tile_walk(rounded).message


@pytest.mark.parametrize("more", [0, 1])
def test_passes_that_count_from_one_are_named(more):
    def from_one(t, n, rows, width):
        return [divmod(t + i * n, width) for i in range(1, rows * width // n + more)]

    assert "The first pass is missing" in check.tile_walk(from_one).message


def test_rows_and_columns_in_any_form_are_named():
    forms = (
        lambda t, n, rows, width: np.unravel_index(np.arange(t, rows * width, n), (rows, width)),
        lambda t, n, rows, width: np.nonzero(np.arange(rows * width).reshape(rows, width) % n == t),
        lambda t, n, rows, width: np.array(np.divmod(np.arange(t, rows * width, n), width)),
        lambda t, n, rows, width: [part.tolist() for part in np.divmod(np.arange(t, rows * width, n), width)],
    )
    for form in forms:
        assert "Pair them" in check.tile_walk(form).message


def test_a_walk_names_the_learners_function():
    def my_walk(tid, threads, rows, width):
        return [(0, 0)]

    assert "`my_walk(0, 16, 4, 12)`" in check.tile_walk(my_walk).where


def test_a_map_that_fails_when_it_is_read_is_told_like_a_list():
    def pair(element):
        raise NameError(element)

    verdict = check.tile_walk(lambda t, n, rows, width: map(pair, range(t, rows * width, n)))
    assert "stopped with NameError" in verdict.message and verdict.where.startswith("Line")


@pytest.mark.parametrize("letter", RIGHT_SHAPES)
def test_no_shape_smaller_than_the_answer_shows_a_fault(letter):
    least = int(np.prod(RIGHT_SHAPES[letter]))
    assert smallest_product(letter) == least
    assert fails(letter, *RIGHT_SHAPES[letter])
    smaller = (shape for shape in product(range(1, least), repeat=3) if np.prod(shape) < least)
    assert not any(fails(letter, *shape) for shape in smaller)


def test_every_smallest_shape_passes_and_missing_ones_are_asked_for():
    assert check.smallest_failing_shape(**RIGHT_SHAPES).passed
    assert check.smallest_failing_shape(**RIGHT_SHAPES | {"c": [1, 2, 1]}).passed
    verdict = check.smallest_failing_shape(**RIGHT_SHAPES | {"d": None})
    assert verdict.message.startswith("Not yet") and "suspect d" in verdict.message


@pytest.mark.parametrize("shape", [(10**4, 10**4, 10**4), (1.0, 1, 1), (1, 1), "(1, 1, 1)", (True, 1, 1)])
def test_impossible_shapes_are_refused_in_words(shape):
    verdict = check.smallest_failing_shape(**RIGHT_SHAPES | {"a": shape})
    assert not verdict.passed and not verdict.message.startswith("Not yet")


def test_a_return_between_the_loads_and_the_barrier_is_named():
    loaded = "col < n else float32(0)\n"
    left = f"{loaded}            if row >= m or col >= n:\n                return\n"
    verdict = verdict_of(changed(TILED, (loaded, left)))
    assert "The threads outside C `return` and never reach the barrier" in verdict.message


# ---- transpose ---------------------------------------------------------------------------------------------


def lanes_rotate_the_columns(T):
    @cuda.jit
    def kernel(src, dst):
        tile = cuda.shared.array((T, T), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        j, i = cuda.grid(2)
        if i < dst.shape[1] and j < dst.shape[0]:
            tile[y, (x + y) % T] = src[i, j]
        cuda.syncthreads()
        j, i = cuda.blockIdx.y * T + x, cuda.blockIdx.x * T + y
        if i >= dst.shape[0] or j >= dst.shape[1]:
            return
        dst[i, j] = tile[x, (x + y) % T]

    return kernel


def swizzled(T):
    @cuda.jit
    def kernel(A, out):
        tile = cuda.shared.array((T, T), dtype=float32)
        x, y, bx, by = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.x * T, cuda.blockIdx.y * T
        tile[y, x ^ y] = A[by + y, bx + x] if by + y < A.shape[0] and bx + x < A.shape[1] else float32(0)
        cuda.syncthreads()
        if bx + y < A.shape[1] and by + x < A.shape[0]:
            out[bx + y, by + x] = tile[x, y ^ x]

    return kernel


def in_one_dimension(T):
    WORDS = T * T + T

    @cuda.jit
    def kernel(A, out):
        m, n = A.shape
        tile = cuda.shared.array(WORDS, float32)
        e = cuda.threadIdx.y * T + cuda.threadIdx.x
        i, j = cuda.blockIdx.y * T + e // T, cuda.blockIdx.x * T + e % T
        if i < m and j < n:
            tile[e + e // T] = A[i, j]
        cuda.syncthreads()
        i, j = cuda.blockIdx.x * T + e // T, cuda.blockIdx.y * T + e % T
        if i < n and j < m:
            out[i, j] = tile[e % T * (T + 1) + e // T]

    return kernel


def turned_when_filled(T):
    P = T + 1

    @cuda.jit
    def kernel(A, out):
        m, n = A.shape
        tile = cuda.shared.array((T, P), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        x, y = cuda.grid(2)
        if y < m and x < n:
            tile[tx, ty] = A[y, x]
        cuda.syncthreads()
        x += (cuda.blockIdx.y - cuda.blockIdx.x) * T
        y += (cuda.blockIdx.x - cuda.blockIdx.y) * T
        if y < n and x < m:
            out[y, x] = tile[ty, tx]

    return kernel


def padded_by_three_and_clamped(T):
    P = T + 3

    @cuda.jit
    def kernel(A, out):
        m, n = A.shape
        tile = cuda.shared.array((T, P), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        r, c = cuda.blockIdx.y * T, cuda.blockIdx.x * T
        if ty < min(T, m - r) and tx < min(T, n - c):
            tile[ty, tx] = A[r + ty, c + tx]
        cuda.syncthreads()
        if tx < min(T, m - r) and ty < min(T, n - c):
            out[c + ty, r + tx] = tile[tx, ty]

    return kernel


@pytest.mark.parametrize(
    "factory",
    [
        lanes_rotate_the_columns,
        swizzled,
        in_one_dimension,
        turned_when_filled,
        padded_by_three_and_clamped,
    ],
)
def test_any_map_of_addresses_without_conflicts_transposes(factory):
    verdict = check.transpose(factory)
    assert verdict.passed, str(verdict)


def test_a_transpose_counts_whole_sectors_both_ways():
    # A is 40 × 88 with T = 32: 3,520 floats, eight in a sector.
    assert "440 sectors in and 440 out" in verdict_of(solution("transpose")).message


@pytest.mark.parametrize("padding, wavefronts", [(2, 2), (4, 4), (16, 16), (32, 32)])
def test_a_padding_that_is_no_odd_number_leaves_conflicts(padding, wavefronts):
    verdict = verdict_of(changed(solution("transpose"), ("P = T + 1", f"P = T + {padding}")))
    assert f"reading `tile` takes {wavefronts} wavefronts" in verdict.message
    assert f"A padding of {padding} words" in verdict.message
