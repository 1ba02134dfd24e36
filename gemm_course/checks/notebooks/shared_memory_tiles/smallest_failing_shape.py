"""Checks ``smallest_failing_shape``: the smallest shapes that show the faults of four suspects."""

from functools import cache
from math import prod

import numpy as np

from gemm_course.checks.core import Refused, exercise
from gemm_course.checks.kits import SUSPECTS
from lockstep import emulate

T = 4
# A shape with a larger m * n * k would take too long to run.
LARGEST_PRODUCT = 1 << 15

Shape = tuple[int, int, int]


@exercise(
    start="take suspect a, and ask what it does with the last, incomplete tile along k.",
    hints=(
        "In each kernel find the line that differs from a sound one: how many tiles, what is stored where "
        "the matrix has ended, which guard.",
        "a takes only whole tiles. b takes as many tiles along k as there are blocks along x. c has m and n "
        "swapped in its last guard. d leaves in the tile what was there before.",
        "So a needs an incomplete tile; b more tiles along k than blocks along x; c m and n that differ; d a "
        "complete tile followed by an incomplete one.",
        "Then shrink: a size that does not matter can be 1. The products are 1, 5, 2 and 5.",
    ),
)
def smallest_failing_shape(a=None, b=None, c=None, d=None):
    """For each suspect a shape (m, n, k) that shows its fault, with the smallest m * n * k; T is 4."""
    given = {"a": a, "b": b, "c": c, "d": d}
    for letter in given:
        _check_shape(letter, given)
    products = ", ".join(f"{letter} {prod(shape)}" for letter, shape in given.items())
    return f"Every shape makes its suspect fail, and the emulator finds none smaller; m · n · k: {products}."


@cache
def smallest_product(letter: str) -> int:
    """Find the least m * n * k of a shape that makes the suspect fail, by running every smaller one."""
    size = 0
    while True:
        size += 1
        shapes = ((m, n, size // m // n) for m in range(1, size + 1) for n in range(1, size // m + 1))
        if any(fails(letter, *shape) for shape in shapes if prod(shape) == size):
            return size


@cache
def fails(letter: str, m: int, n: int, k: int) -> bool:
    """Return whether a suspect's numbers are wrong, or the emulator finds an error in it."""
    rng = np.random.default_rng((m, n, k))
    A, B = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    C = np.full((m, n), np.nan, np.float32)
    problem = (m, n, k, np.float32(1), A, B, np.float32(0), C)
    report = emulate(SUSPECTS[letter](T), (-(-n // T), -(-m // T)), (T, T), *problem)
    return not report.ok or not np.allclose(C, A @ B, rtol=1e-4, atol=1e-4)


# ---- what goes wrong ---------------------------------------------------------------------------------------

SHRINK = {
    "a": "What of the last tile does it drop, and how small can that be?",
    "b": "The blocks along x come from n, the tiles from k. How few of each?",
    "c": "k does not matter here at all.",
    "d": "How many elements must the last tile have at least, and does C matter?",
}


def _check_shape(letter: str, given: dict) -> None:
    shape = given[letter]
    if shape is None or shape is Ellipsis:
        raise Refused(f"Not yet: suspect {letter} has no shape. Take the suspects in their order.")
    if not _is_shape(shape):
        raise Refused(f"Suspect {letter}: a shape is three whole numbers, `(m, n, k)`; this is `{shape!r}`.")
    if min(shape) < 1:
        raise Refused(f"Suspect {letter}: m, n and k must be at least 1; this is `{shape!r}`.")
    if _is_smallest(letter, shape):
        return
    _check_swapped(letter, given)
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
        f"smallest: a smaller shape shows it too. {SHRINK[letter]}"
    )


def _is_shape(shape) -> bool:
    return (
        isinstance(shape, (tuple, list))
        and len(shape) == 3
        and all(isinstance(size, (int, np.integer)) and not isinstance(size, bool) for size in shape)
    )


def _is_smallest(letter: str, shape: Shape) -> bool:
    return prod(shape) == smallest_product(letter) and fails(letter, *shape)


def _check_swapped(letter: str, given: dict) -> None:
    """Refuse two letters that each have a shape that shows the other's fault."""
    shape = given[letter]
    for other, theirs in given.items():
        if other == letter or not _is_shape(theirs) or min(theirs) < 1 or shape == theirs:
            continue
        if _is_smallest(other, shape) and _is_smallest(letter, theirs):
            raise Refused(f"The shapes of suspects {letter} and {other} are swapped.")


def _why_no_fault(letter: str, m: int, n: int, k: int) -> str:
    tiles, blocks = -(-k // T), -(-n // T)
    if letter == "a":
        return f"k = {k} is a multiple of T, and no incomplete tile is left to be dropped."
    if letter == "b" and tiles == 1:
        return f"k = {k} fits into only one tile, and there is always one block."
    if letter == "b":
        return f"there are {blocks} blocks along x, at least as many as the {tiles} tiles along k."
    if letter == "c":
        return "m and n are equal, so swapping them changes nothing."
    if tiles == 1:
        return f"k = {k} is all in the first tile, and that was cleared."
    return f"k = {k} makes whole tiles only, and each overwrites all of the one before."
