"""Checks ``stray_read``: the read outside C that document 004's v05 makes before its guard."""

from functools import cache

import numpy as np

from gemm_course.checks.core import Refused, exercise, nothing_yet
from gemm_course.checks.kits import document_v05
from gemm_course.checks.kits.document_v05 import DEPTH, EACH, TILE
from lockstep import Finding, emulate

# Document 004 pads every row to a multiple of 64 bytes, which are 16 floats.
LEADING = 16
LARGEST = 4 * TILE
# The rows end with a block. So do the columns, together with their padding.
SMALLEST = (TILE, TILE - LEADING + 1)
OPS = {"load": "load", "read": "load", "store": "store", "write": "store"}


@exercise(
    start="go through all accesses to global memory, and ask of each which guard it stands in.",
    hints=(
        "Four lines access global memory: the loads of A, of B and of C, and the store of C.",
        "`x if condition else y` loads x only where the condition holds. So is what stands in an "
        "`if`. Write the condition of each access beside it.",
        "The threads whose elements lie outside C read too. Below C there are no rows at all: which m has "
        "no such threads?",
        "To the right of C lies the padding, which belongs to the array. Rows are multiples of 16 floats "
        "long: for which n do they reach as far as the block's 32 columns?",
    ),
)
def stray_read(access=None, shape=None):
    """The access outside its array, as ("A", "load"), and the smallest (m, n) that hides it."""
    if _is_blank(access) and _is_blank(shape):
        raise nothing_yet()
    _check_access(access)
    m, n = _shape(shape)
    found = strays(m, n)
    if found is not None:
        raise Refused(f"With m = {m} and n = {n} it does happen. {_why_it_shows(m, n)} {found.message}")
    if (m, n) != SMALLEST:
        raise Refused(f"Nothing lies outside, but m · n = {m * n} is not the least. {_smaller(m, n)}")
    return (
        "Rows of 17 floats are padded to 32, and 32 rows are a whole block: every read hits C or its "
        "padding. A test with such sizes does not find it, and even C of 1 × 1 shows it: "
        f"{strays(1, 1).count} reads outside C. It goes well until the memory behind C belongs to nobody."
    )


@cache
def strays(m: int, n: int) -> Finding | None:
    """Return the first access outside C for this shape, or None."""
    rows = {"A": (m, DEPTH), "B": (DEPTH, n), "C": (m, n)}
    A, B, C = (np.zeros((r, _length(c)), np.float32) for r, c in rows.values())
    grid, threads = (-(-n // TILE), -(-m // TILE)), TILE * TILE // EACH**2
    one, zero = np.float32(1), np.float32(0)
    report = emulate(document_v05(), grid, threads, m, n, DEPTH, one, A, B, zero, C)
    return next((f for f in report.errors if f.kind == "out_of_bounds" and f.array == "C"), None)


def _length(columns: int) -> int:
    """Return the floats in a row of so many columns, as document 004 pads it."""
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
        raise Refused("The access is the right one. And the smallest `shape=(m, n)` without it?")
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


def _why_it_shows(m: int, n: int) -> str:
    """Return in words which threads read outside C."""
    narrow = _length(n) % TILE
    if m % TILE and narrow:
        return (
            f"Blocks are {TILE} × {TILE}. Some threads read below C's last row, and a row with its padding "
            f"is {_length(n)} floats long: others read behind that."
        )
    if m % TILE:
        return f"Blocks are {TILE} rows high, and threads below C's last row read where nothing is."
    return (
        f"A row of C is {_length(n)} floats long with its padding, a multiple of {LEADING}, and blocks are "
        f"{TILE} wide: some threads read behind that."
    )


def _smaller(m: int, n: int) -> str:
    if m > TILE or n > TILE:
        return "One block hides it as well."
    return (
        f"The threads to the right of C read its padding: rows are padded to multiples of {LEADING} floats. "
        "How few columns can there be?"
    )


def _is_blank(value) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_blank, value))
    return value is None or value is Ellipsis
