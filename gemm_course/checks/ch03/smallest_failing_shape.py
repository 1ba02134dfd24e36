"""Exercise 03.5: the smallest shapes that show the faults of four suspects."""

from functools import cache
from math import prod

import numpy as np

from gemm_course.checks.core import Refused
from gemm_course.checks.kits import SUSPECTS
from gemm_course.emulator import emulate

T = 4
LARGEST_PRODUCT = 1 << 15  # of a shape that is worth running


def prove_shapes(given: dict) -> str:
    """What was proved of the learner's shapes (letter -> (m, n, k)); raises Refused otherwise."""
    for letter, shape in given.items():
        _check_shape(letter, shape, given)
    products = ", ".join(f"{letter} {prod(shape)}" for letter, shape in given.items())
    return f"Every shape makes its suspect fail, and the emulator finds none smaller; m · n · k: {products}."


def _check_shape(letter, shape, given):
    if shape is None or shape is Ellipsis:
        raise Refused(f"Not yet: suspect {letter} has no shape. Take the suspects in their order.")
    if not _is_shape(shape):
        raise Refused(f"Suspect {letter}: a shape is three whole numbers, `(m, n, k)`; this is `{shape!r}`.")
    if min(shape) < 1:
        raise Refused(f"Suspect {letter}: m, n and k are to be at least 1; this is `{shape!r}`.")
    smallest = smallest_product(letter)
    if prod(shape) == smallest and fails(letter, *shape):
        return
    _check_exchanged(letter, shape, given)
    if prod(shape) > LARGEST_PRODUCT:
        raise Refused(
            f"Suspect {letter}: `{shape!r}` is far too large; the smallest is a handful of elements."
        )
    if not fails(letter, *shape):
        raise Refused(
            f"Suspect {letter} gives the right result for `{shape!r}`: {_why_no_fault(letter, *shape)}"
        )
    raise Refused(
        f"`{shape!r}` does show the fault of suspect {letter}, but m · n · k = {prod(shape)} is not the "
        f"least: a smaller shape does it too. {_SHRINK[letter]}"
    )


_SHRINK = {
    "a": "What of the last tile does it drop, and how small can that be?",
    "b": "The blocks along x come from n, the tiles from k. How few of each?",
    "c": "k does not matter here at all.",
    "d": "How many elements must the last tile have at least, and does C matter?",
}


def _is_shape(shape) -> bool:
    return (
        isinstance(shape, (tuple, list))
        and len(shape) == 3
        and all(isinstance(size, (int, np.integer)) and not isinstance(size, bool) for size in shape)
    )


def _check_exchanged(letter, shape, given):
    """Two letters, each with a shape that shows the other's fault."""
    for other, theirs in given.items():
        if other != letter and _is_shape(theirs) and min(theirs) >= 1 and shape != theirs:
            if _is_smallest(other, shape) and _is_smallest(letter, theirs):
                raise Refused(f"The shapes of suspects {letter} and {other} are exchanged.")


def _is_smallest(letter, shape) -> bool:
    return prod(shape) == smallest_product(letter) and fails(letter, *shape)


def _why_no_fault(letter, m, n, k) -> str:
    tiles, blocks = -(-k // T), -(-n // T)
    if letter == "a":
        return f"k = {k} is a multiple of T, and no incomplete tile is left to be dropped."
    if letter == "b" and tiles == 1:
        return f"k = {k} fits into only one tile, and there is always one block."
    if letter == "b":
        return f"there are {blocks} blocks along x, at least as many as the {tiles} tiles along k."
    if letter == "c":
        return "m and n are equal, so exchanging them changes nothing."
    if tiles == 1:
        return f"k = {k} is all in the first tile, and that was cleared."
    return f"k = {k} makes whole tiles only, and each overwrites all of the one before."


@cache
def smallest_product(letter: str) -> int:
    """Of all shapes that make the suspect fail, by running every smaller one."""
    size = 0
    while True:
        size += 1
        shapes = ((m, n, size // m // n) for m in range(1, size + 1) for n in range(1, size // m + 1))
        if any(fails(letter, *shape) for shape in shapes if prod(shape) == size):
            return size


@cache
def fails(letter: str, m: int, n: int, k: int) -> bool:
    """Whether a suspect's numbers are wrong, or the emulator finds an error in it."""
    rng = np.random.default_rng((m, n, k))
    A, B = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    C = np.full((m, n), np.nan, np.float32)
    grid = -(-n // T), -(-m // T)
    one, zero = np.float32(1), np.float32(0)
    kernel = SUSPECTS[letter](T)
    report = emulate(kernel, grid, (T, T), m, n, k, one, A, B, zero, C)
    return not report.ok or not np.allclose(C, A @ B, rtol=1e-4, atol=1e-4)
