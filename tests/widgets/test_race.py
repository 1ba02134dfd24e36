"""The race: who reads what when a thread is late, which sums that spoils, and what the picture says of it."""

import inspect
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pytest

from gemm_course.figures import colours
from gemm_course.kernels import LADDER
from gemm_course.widgets import _race
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
    for (x, y), program in _race._programs().items():
        assert [phase.kind for phase in program] == ["load", "add"] * 2
        factors = [value for phase in program for _, value in phase.reads]
        row, column = _race.A[y], _race.B[:, x]
        assert factors == [each for pair in zip(row, column, strict=True) for each in pair]


def test_the_race_is_the_one_that_the_emulator_reports():
    kernel = LADDER["penny_xu_tile"].kernel(dict.fromkeys(("BM", "BN", "BK"), _race.TILE))
    lines, first = inspect.getsourcelines(kernel.py_func)
    for kind in ("load", "add"):
        race = _race._race_of(kind)
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
