"""The race: who reads what when a thread is late, which sums that spoils, and what the picture says of it."""

import inspect
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course.figures import colours
from gemm_course.kernels import LADDER
from gemm_course.widgets import _race
from gemm_course.widgets._errors_in_words import NotShown
from tests.figures.page import SVG, faults

LATE = [_race.NOBODY, *(f"({x}, {y})" for x, y in _race.THREADS)]
STATES = list(product(_race.MISSING, LATE))
RIGHT = (_race.A @ _race.B)[: _race.TILE, : _race.TILE]


def sums(missing, late):
    """The sums of the four threads in the places of C that they are for."""
    found = np.zeros((_race.TILE, _race.TILE))
    for track in _race.run(missing, late)[0]:
        x, y = track.thread
        found[y, x] = track.total
        assert track.right == RIGHT[y, x]
    return found


@pytest.mark.parametrize("late", LATE)
def test_with_both_barriers_all_sums_are_numpys(late):
    assert (sums("none", late) == RIGHT).all()


@pytest.mark.parametrize("missing", _race.MISSING)
def test_in_step_all_sums_are_right_by_luck(missing):
    assert (sums(missing, _race.NOBODY) == RIGHT).all()


@pytest.mark.parametrize(("x", "y"), _race.THREADS)
def test_without_the_barrier_after_loading_neighbours_read_what_is_left_of_the_tile_before(x, y):
    """The late thread's element of As is for its row, that of Bs for its column."""
    A, B, T = _race.A, _race.B, _race.TILE
    expected = RIGHT.copy()
    expected[y, 1 - x] += (A[y, x] - A[y, T + x]) * B[T + x, 1 - x]
    expected[1 - y, x] += A[1 - y, T + y] * (B[y, x] - B[T + y, x])
    assert (sums("after loading", f"({x}, {y})") == expected).all()


@pytest.mark.parametrize(("x", "y"), _race.THREADS)
def test_without_the_barrier_after_computing_the_late_thread_reads_the_next_tile(x, y):
    """Of what it multiplies, its neighbours' elements are new: one of its row and one of its column."""
    A, B, T = _race.A[:2], _race.B[:, :2], _race.TILE
    a, b = A[y, :T].copy(), B[:T, x].copy()
    a[1 - x], b[1 - y] = A[y, T + 1 - x], B[T + 1 - y, x]
    expected = RIGHT.copy()
    expected[y, x] = a @ b + A[y, T:] @ B[T:, x]
    assert (sums("after computing", f"({x}, {y})") == expected).all()


def test_what_threads_do_is_what_the_emulator_recorded():
    """Each loads two numbers per tile and adds two products; its sum is that of the kernel's C."""
    for (x, y), program in _race._read(_race.COURSES).programs.items():
        assert [phase.kind for phase in program] == ["load", "add"] * 2
        factors = [value for phase in program for _, value in phase.reads]
        row, column = _race.A[y], _race.B[:, x]
        assert factors == [each for pair in zip(row, column, strict=True) for each in pair]


def test_the_race_is_the_one_that_the_emulator_reports():
    kernel = LADDER["penny_xu_tile"].kernel(dict.fromkeys(("BM", "BN", "BK"), _race.TILE))
    lines, first = inspect.getsourcelines(kernel.py_func)
    for missing in ("after loading", "after computing"):
        race = _race._race_of(missing)
        text = [lines[number - first] for number in sorted((race.line, race.other_line))]
        assert "As[ty, tx] =" in text[0] and "acc +=" in text[1]
    said = _race.draw("after loading", "(0, 0)").alt
    assert "between “As[ty, tx] = …” and “acc += As[ty, p] * Bs[p, tx]”." in said
    said = _race.draw("after computing", "(0, 0)").alt
    assert "between “acc += …” and the next tile's “As[ty, tx] = …”." in said
    assert "The emulator" not in _race.draw("none", "(0, 0)").alt


@pytest.mark.parametrize(("missing", "late"), STATES)
def test_nothing_lies_over_anything_and_all_are_equally_high(missing, late):
    picture = _race.draw(missing, late)
    assert faults(picture) == []
    assert height(picture) == height(_race.draw("none", _race.NOBODY))


@pytest.mark.parametrize(("missing", "late"), STATES)
def test_only_what_is_wrong_is_red(missing, late):
    picture = _race.draw(missing, late)
    wrong = int((sums(missing, late) != RIGHT).sum())
    told = [text for text in texts(picture) if "not " in text and text[4:].isdigit()]
    assert len(told) == wrong
    red = [text for text, fill in filled(picture) if fill == colours.WARN]
    assert sum(text.startswith("✗") for text in red) == wrong
    assert sum(text == "no barrier" for text in red) == 2 * (missing != "none")
    assert sum(text.isdigit() for text in red) == 2 * bool(wrong)  # a late or early store of As and of Bs
    assert ("wrong" in picture.alt.split(". ")[0]) == bool(wrong)


def test_the_words_say_what_the_picture_says():
    alt = _race.draw("after loading", "(0, 0)").alt.replace("\u00a0", " ")
    assert alt.startswith("No barrier after loading: thread (0, 0) is late, and two sums are wrong.")
    assert "its sum is 56, but it should be 70" in alt and "its sum is 60, which is right" in alt
    assert (
        "Thread (1, 0) reads As[0, 0] = 1 instead of 3; thread (0, 1) reads Bs[0, 0] = 2 instead of 6." in alt
    )


def height(picture):
    return picture.data.split('viewBox="')[1].split('"')[0]


def filled(picture):
    for text in ElementTree.fromstring(picture.data).iter(f"{SVG}text"):
        yield "".join(text.itertext()), text.get("fill")


def texts(picture):
    return [text for text, _ in filled(picture)]


# ---- a learner's kernel ------------------------------------------------------------------------------------


def make_tiled(T):
    """A right answer to tile_kernel, in names of its own and with one barrier at the loop's top."""

    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        left = cuda.shared.array((T, T), float32)
        upper = cuda.shared.array((T, T), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            if k0 > 0:
                cuda.syncthreads()
            upper[y, x] = B[k0 + y, col]
            left[x, y] = A[row, k0 + x]
            cuda.syncthreads()
            for p in range(T):
                acc += upper[p, x] * left[p, y]
        C[row, col] = alpha * acc

    return tiled


def make_broken(T):
    """The second barrier is away already."""

    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + tx]
            Bs[ty, tx] = B[k0 + ty, col]
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
        C[row, col] = acc

    return tiled


def make_in_turn(T):
    """Two pairs of tiles with one barrier for each step."""

    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((2, T, T), float32)
        Bs = cuda.shared.array((2, T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            pair = k0 // T % 2
            As[pair, ty, tx] = A[row, k0 + tx]
            Bs[pair, ty, tx] = B[k0 + ty, col]
            cuda.syncthreads()
            for p in range(T):
                acc += As[pair, ty, p] * Bs[pair, p, tx]
        C[row, col] = acc

    return tiled


def wrong(subject, missing, late):
    return sum(track.total != track.right for track in _race.run(missing, late, subject)[0])


@pytest.mark.parametrize(("missing", "late"), STATES)
def test_a_learners_kernel_races_as_the_courses_does(missing, late):
    assert wrong(make_tiled, missing, late) == int((sums(missing, late) != RIGHT).sum())
    assert faults(_race.draw(missing, late, make_tiled)) == []


def test_lines_and_arrays_are_the_learners_own():
    said = _race.draw("after computing", "(0, 0)", make_tiled).alt.replace("\u00a0", " ")
    assert "between “acc += …” and the next tile's “upper[y, x] = …”." in said
    assert "reads upper[1, 0] = 8 instead of 4 and left[1, 0] = 4 instead of 2" in said and "As[" not in said


def test_a_barrier_that_the_learner_has_taken_away_is_missing():
    said = _race.draw("none", "(0, 0)", make_broken).alt.replace("\u00a0", " ")
    assert said.startswith("No barrier after computing: thread (0, 0) is late, and one sum is wrong.")
    assert "and the next tile's “As[ty, tx] = …”." in said
    assert _race.draw("none", _race.NOBODY, make_broken).alt.startswith(
        "No barrier after computing: all sums are right, by luck."
    )
    assert _race.draw("after loading", _race.NOBODY, make_broken).alt.startswith("No barrier: ")


@pytest.mark.parametrize("late", LATE)
def test_two_pairs_of_tiles_need_one_barrier(late):
    assert wrong(make_in_turn, "none", late) == 0
    said = _race.draw("none", late, make_in_turn).alt
    assert "luck" not in said and "finds no race" in said


def test_a_read_of_what_nobody_has_stored_is_said():
    with pytest.raises(NotShown, match="where nobody has stored anything yet"):
        _race.draw("after loading", "(0, 0)", make_in_turn)


def test_a_kernel_that_cannot_be_drawn_gets_a_sentence():
    def unwritten(T):
        @cuda.jit
        def tiled(m, n, k, alpha, A, B, beta, C):
            pass

        return tiled

    with pytest.raises(NotShown, match="does not use shared memory yet"):
        _race.draw("none", "nobody", unwritten)
    of_columns = LADDER["thread_tiled_1d"].kernel({"BM": 4, "BN": 4, "BK": 2, "TM": 2})
    with pytest.raises(NotShown, match="that nobody has stored"):
        _race._read(of_columns)
