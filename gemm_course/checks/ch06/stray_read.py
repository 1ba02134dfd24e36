"""Exercise 06.5: the read outside C that document 004's v05 makes before its guard."""

from functools import cache

import numpy as np

from gemm_course.checks.core import Refused, exercise, nothing_yet
from gemm_course.checks.kits import document_v05
from gemm_course.checks.kits.document_v05 import DEPTH, EACH, TILE
from gemm_course.emulator import Finding, emulate

LEADING = 16  # floats; document 004 pads every row to a multiple of 64 bytes
LARGEST = 4 * TILE
OPS = {"load": "load", "read": "load", "store": "store", "write": "store"}


@exercise(
    "06.5",
    start="go through all accesses to global memory, and ask of each which guard it stands in.",
    hints=(
        "Four lines access global memory: the loads of A, of B and of C, and the store of C.",
        "`x if condition else y` loads x only where the condition holds. Which of the four has no condition?",
        "The threads whose elements lie outside C read too. For which m and n are there no such threads?",
        "For multiples of the block's tile. Everything else shows it, the smallest of all as well.",
    ),
)
def stray_read(access=None, shape=None):
    """The access outside its array, as ("A", "load"), and the smallest (m, n) that shows it."""
    if _is_blank(access) and _is_blank(shape):
        raise nothing_yet()
    _check_access(access)
    m, n = _shape(shape)
    found = strays(m, n)
    if found is None:
        raise Refused(f"For m = {m} and n = {n} nothing lies outside: {_why_not(m, n)}")
    if (m, n) != smallest():
        raise Refused(
            f"`({m}, {n})` does show it, but m · n = {m * n} is not the least: the read is not guarded at "
            f"all, whatever m and n are. {_smaller(m, n)}",
            f"The emulator: {found.message}",
        )
    return (
        f"Even C of 1 × 1 shows it: {found.count} times a thread reads outside C, and throws away what it "
        "got. No result is ever wrong. It goes well until the memory behind C belongs to nobody."
    )


@cache
def strays(m: int, n: int) -> Finding | None:
    """The first access outside C for this shape, or None."""
    rows = {"A": (m, DEPTH), "B": (DEPTH, n), "C": (m, n)}
    A, B, C = (np.zeros((r, _length(c)), np.float32) for r, c in rows.values())
    grid, threads = (-(-n // TILE), -(-m // TILE)), TILE * TILE // EACH**2
    one, zero = np.float32(1), np.float32(0)
    report = emulate(document_v05(), grid, threads, m, n, DEPTH, one, A, B, zero, C)
    return next((f for f in report.errors if f.kind == "out_of_bounds" and f.array == "C"), None)


@cache
def smallest() -> tuple[int, int]:
    """(m, n) with the smallest m * n that shows the stray read, by trying all from the smallest on."""
    shapes = sorted(((m, n) for m in range(1, TILE) for n in range(1, TILE)), key=lambda s: s[0] * s[1])
    return next(shape for shape in shapes if strays(*shape) is not None)


def _length(columns: int) -> int:
    """Floats in a row of so many columns, as document 004 pads it."""
    return -(-columns // LEADING) * LEADING


# ---- the access --------------------------------------------------------------------------------------------


def _check_access(access) -> None:
    named = isinstance(access, (tuple, list)) and len(access) == 2
    if not named or not all(isinstance(part, str) for part in access):
        raise Refused(
            'Which access is it? Write the array and what is done to it, such as `("A", "load")`; this is '
            f"`{access!r}`."
        )
    array, op = access[0].strip(), OPS.get(access[1].strip().lower())
    if op is None:
        raise Refused(f'An access is a `"load"` or a `"store"`; this is `{access[1]!r}`.')
    if (array, op) == ("C", "load"):
        return
    if (array, op) == ("C", "store"):
        raise Refused(
            "The store of C stands inside the guard, and the emulator finds no store outside C. It may write "
            "into the padding behind a row, which is still C's. Look at what is done before the guard."
        )
    if array in ("A", "B"):
        raise Refused(
            f"The loads of {array} are guarded: `... if ... else zeros` evaluates only one of the two. The "
            f"emulator finds no load outside {array}."
        )
    if array in ("As", "Bs"):
        raise Refused(f"{array} is in shared memory and just large enough; nothing outside it is accessed.")
    raise Refused(f"There is no array `{array}` in this kernel; it has A, B, C, As and Bs.")


# ---- the shape ---------------------------------------------------------------------------------------------


def _shape(shape) -> tuple[int, int]:
    if _is_blank(shape):
        raise Refused("The access is the right one. And the smallest `shape=(m, n)` that shows it?")
    if isinstance(shape, (tuple, list)) and len(shape) == 3:
        raise Refused(
            "The shape must be two numbers, `(m, n)`: k has nothing to do with it. C is read after the loop "
            "over k, however often that runs."
        )
    pair = isinstance(shape, (tuple, list)) and len(shape) == 2
    if not pair or any(isinstance(s, bool) or not isinstance(s, (int, np.integer)) for s in shape):
        raise Refused(f"A shape is two whole numbers, `(m, n)`; this is `{shape!r}`.")
    m, n = map(int, shape)
    if min(m, n) < 1:
        raise Refused("m and n are at least 1: without elements of C there is no block that could read.")
    if max(m, n) > LARGEST:
        raise Refused(f"`({m}, {n})` is far larger than needed; stay below {LARGEST}.")
    return m, n


def _why_not(m: int, n: int) -> str:
    if n % TILE:
        return (
            "the reads to the right of C stay in the padding behind its rows, which are "
            f"{_length(n)} floats long, multiples of 64 bytes. And below C there is nothing to read."
        )
    return (
        f"both are multiples of the block's tile of {TILE} × {TILE}, every thread has its elements of C. So "
        "no test with such sizes finds it."
    )


def _smaller(m: int, n: int) -> str:
    if m % TILE == 0:
        return (
            "You read outside C to the right. How few columns can there be, and do you need all these rows?"
        )
    if n % TILE == 0:
        return (
            "You read outside C at the bottom. How few rows can there be, and do you need all these columns?"
        )
    return "Go on shrinking: which m and n would *not* show it?"


def _is_blank(value) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_blank, value))
    return value is None or value is Ellipsis
