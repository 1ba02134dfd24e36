"""Checks ``leading_dimension``: rows that start at sectors."""

import numpy as np

from gemm_course.checks.core import Refused, call, exercise, function_of
from gemm_course.kernels import LADDER
from lockstep import emulate

WIDTHS = (333, 1, 8, 129)
COARSER = {16: "the 64 bytes that document 004 pads to", 32: "a whole line"}
ROWS = 10
# In 8 steps along k, rows of 333 floats begin at each of the 8 places in a sector.
STEPS = 8
# A sector holds 8 floats.
SECTOR = 8


@exercise(
    start="how many floats are in a sector of 32 bytes, and which is the next multiple of it after 333?",
    hints=(
        "A sector holds 8 floats. Every row starts at a sector if the row length is a multiple of 8.",
        "`-(-n // 8) * 8` rounds n up to a multiple of 8, and leaves multiples as they are.",
        "Make an array of zeros with `B.shape[0]` rows of that length and of dtype `np.float32`, copy B into "
        "its first columns, and return it.",
    ),
)
def leading_dimension(padded):
    """padded(B) -> float32, its first columns B, its every row at the start of a sector; may be a view."""
    function = function_of(padded, ("B",))
    inputs = [_matrix(n) for n in WIDTHS]
    results = [_padded_by(function, B) for B in inputs]
    _check_widths([_row_length(wide) for wide in results])
    for B, wide in zip(inputs, results):
        _check_values(B, wide)
    before, after = _sectors_of_b(inputs[0]), _sectors_of_b(results[0])
    return (
        f"Rows of 333 floats become {_row_length(results[0])} long, and a request for B takes {after:g} "
        f"sectors instead of {before:.2f} on average; also right for "
        f"{', '.join(map(str, WIDTHS[1:]))} columns."
    )


def _matrix(columns: int) -> np.ndarray:
    return np.random.default_rng(columns).standard_normal((ROWS, columns)).astype(np.float32)


def _row_length(wide: np.ndarray) -> int:
    """Return the floats from one row's beginning to the next: the leading dimension, of a view as well."""
    return wide.strides[0] // wide.itemsize


def _rounded_up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


def _sectors_of_b(wide: np.ndarray) -> float:
    """Return B's sectors per request in naive_coalesced with warps of 32 columns and rows as long as here."""
    stage, tiles, n = LADDER["naive_coalesced"], {"BM": 8, "BN": 32}, 320
    A, C = np.ones((8, STEPS), np.float32), np.ones((8, n), np.float32)
    geometry = stage.grid(8, n, tiles), stage.block(tiles)
    one, zero = np.float32(1), np.float32(0)
    report = emulate(stage.kernel(tiles), *geometry, 8, n, STEPS, one, A, wide, zero, C)
    return report.sectors_per_request(array="B", op="load")


# ---- what goes wrong ---------------------------------------------------------------------------------------


def _padded_by(function, B: np.ndarray) -> np.ndarray:
    """Return the learner's array; refuse it unless a kernel can take it and it has room for B."""
    rows, n = B.shape
    given = B.copy()
    wide = call(function, given)
    if wide is given:
        raise Refused("B comes back as it came. Return a wider array, with B in its first columns.")
    if not isinstance(wide, np.ndarray) or wide.ndim != 2:
        raise Refused(
            f"The result must be a 2-D NumPy array; for {n} columns it is a value of type "
            f"{type(wide).__name__}."
        )
    if wide.flags.f_contiguous and not wide.flags.c_contiguous:
        raise Refused(
            "The array is column-major: its columns are contiguous, not its rows (`order='F'`). "
            "Return it in C order.",
            f"With {n} columns: shape {wide.shape}, strides {wide.strides} bytes.",
        )
    if wide.dtype != np.float32:
        raise Refused(f"The kernels take float32; this array is {wide.dtype}. Pass `np.zeros` the dtype.")
    if wide.shape[0] != rows:
        raise Refused(
            f"B has {rows} rows and the result {wide.shape[0]}: rows of zeros do not move where the other "
            "rows begin. The rows themselves must become longer."
        )
    if wide.shape[1] < n:
        raise Refused(
            f"The width is rounded down: of {n} columns {wide.shape[1]} are left, and the rest of B is lost. "
            "Round up."
        )
    _check_view(wide, n)
    return wide


def _check_view(wide: np.ndarray, n: int) -> None:
    """Refuse a view unless it is a window of a wider array whose rows are whole and start at sectors."""
    shape = f"With {n} columns: shape {wide.shape}, strides {wide.strides} bytes."
    if wide.strides[1] != wide.itemsize or wide.strides[0] < n * wide.itemsize:
        raise Refused("The floats of a row do not lie side by side in this view.", shape)
    owner = wide
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    first = (wide.ctypes.data - owner.ctypes.data) % (4 * SECTOR)
    if first:
        raise Refused(
            f"This view begins {first // 4} floats after the start of a sector, and so do all its rows. The "
            "padding belongs at the end of the rows.",
            shape,
        )


def _check_widths(widths: list[int]) -> None:
    """Refuse widths that are not the next multiples of 8."""
    if len(set(widths)) == 1:
        raise Refused(f"It is always {widths[0]}, whatever the width of B. Work it out from `B.shape[1]`.")
    if widths == [n + n % SECTOR for n in WIDTHS]:
        raise Refused(
            f"You add `n % 8`, what stands beyond the last whole sector: {WIDTHS[0]} becomes {widths[0]}. "
            "What is missing up to the next one is 8 minus that, and 0 where nothing stands beyond: `-n % 8`."
        )
    for n, width in zip(WIDTHS, widths):
        if width % SECTOR:
            _refuse_width(n, width)
    if widths != [_rounded_up(n, SECTOR) for n in WIDTHS]:
        raise _surplus(widths)


def _refuse_width(n: int, width: int) -> None:
    start = f"Row 1 begins at byte {4 * width}, {4 * width % 32} bytes after the start of a sector."
    becomes = f"{n} column{'s become' if n > 1 else ' becomes'} {width}"
    if width == n:
        raise Refused(
            f"The rows are still {n} float{'s' * (n > 1)} long, without padding. (If you made a wide array: "
            "a copy of a slice, `wide[:, :n].copy()`, does not keep its padding. Return the wide array.)",
            start,
        )
    if n % 2 and width == n + 1:
        raise Refused(
            f"{becomes}: an even number is not enough. A sector is 8 floats, and rows start at sectors only "
            "if their length is a multiple of 8.",
            start,
        )
    raise Refused(f"{becomes}, and that is no multiple of 8 floats, so no whole sectors.", start)


def _surplus(widths: list[int]) -> Refused:
    """Return a refusal of rows that start at sectors, but have more padding than that takes."""
    for multiple, what in COARSER.items():
        if widths == [_rounded_up(n, multiple) for n in WIDTHS]:
            return Refused(
                f"Every row starts at a sector, but you round up to {multiple} floats, {what}. A sector is 8 "
                f"floats: {WIDTHS[-1]} columns need {_rounded_up(WIDTHS[-1], SECTOR)}, not {widths[-1]}."
            )
    for n, width in zip(WIDTHS, widths):
        if n % SECTOR == 0 and width == n + SECTOR:
            return Refused(
                f"{n} columns already are whole sectors and need no padding, but become {width}. `8 - n % 8` "
                "is 8 where nothing is missing."
            )
    n, width = max(zip(WIDTHS, widths), key=lambda pair: pair[1] - pair[0])
    return Refused(
        f"Every row starts at a sector, but the array is wider than necessary: a width of {n} becomes "
        f"{width}. The next multiple of 8 is {_rounded_up(n, SECTOR)}."
    )


def _check_values(B: np.ndarray, wide: np.ndarray) -> None:
    n = B.shape[1]
    wrong = wide[:, :n] != B
    if not wrong.any():
        return
    row, col = map(int, np.argwhere(wrong)[0])
    where = f"With {n} columns: element [{row}, {col}] is {wide[row, col]:.4g}; in B it is {B[row, col]:.4g}."
    if np.array_equal(wide.reshape(-1)[: B.size], B.reshape(-1)):
        raise Refused(
            "The elements just follow one another, as after a reshape: row 1 of B begins in row 0 of the "
            "result. Each row of B must go to the start of a row.",
            where,
        )
    raise Refused("The first columns do not hold B.", where)
