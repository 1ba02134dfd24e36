"""Exercise 02.4: rows that start at sectors."""

import numpy as np

from gemm_course.checks.core import Refused, call, function_of
from gemm_course.emulator import emulate
from gemm_course.kernels import LADDER

WIDTHS = (333, 1, 8, 129)
ROWS = 10
STEPS = 8  # along k: rows of 333 floats begin at each of the 8 places in a sector
A_SECTOR = 8  # floats
A_LINE = 32


def prove_padding(given) -> str:
    """What was proved of the learner's function; raises Refused with the first thing wrong."""
    function = function_of(given, ("B",))
    inputs = [_matrix(n) for n in WIDTHS]
    results = [_padded_by(function, B) for B in inputs]
    widths = [wide.shape[1] for wide in results]
    if len(set(widths)) == 1:
        raise Refused(f"It is always {widths[0]}, whatever the width of B. Work it out from `B.shape[1]`.")
    for B, wide in zip(inputs, results):
        _check_width(B.shape[1], wide.shape[1])
    for multiple in (A_SECTOR, 2 * A_SECTOR, A_LINE):
        if widths == [-(-n // multiple) * multiple for n in WIDTHS]:
            break
    else:
        _refuse_surplus(widths)
    for B, wide in zip(inputs, results):
        _check_values(B, wide)
    before, after = _sectors_of_b(inputs[0]), _sectors_of_b(results[0])
    return (
        f"333 columns become {widths[0]}, and a request for B takes {after:g} sectors instead of "
        f"{before:.2f} on average; also right for {', '.join(map(str, WIDTHS[1:]))} columns."
    )


def _matrix(columns: int) -> np.ndarray:
    return np.random.default_rng(columns).standard_normal((ROWS, columns)).astype(np.float32)


def _padded_by(function, B) -> np.ndarray:
    """The learner's array, once it is one that a kernel can take and that has room for B."""
    rows, n = B.shape
    given = B.copy()
    wide = call(function, given)
    if wide is given:
        raise Refused("B comes back as it came. A wider array is wanted, with B in its first columns.")
    if not isinstance(wide, np.ndarray) or wide.ndim != 2:
        raise Refused(
            f"A 2-D NumPy array is wanted; for {n} columns it returns a value of type {type(wide).__name__}."
        )
    if not wide.flags.c_contiguous:
        raise Refused(
            "This is a view into a wider array, not C-contiguous: its `.shape[1]` is the old width, and a "
            "kernel that takes it for the leading dimension reads the wrong elements. Return the wide array "
            "itself.",
            f"With {n} columns: shape {wide.shape}, strides {wide.strides} bytes.",
        )
    if wide.dtype != np.float32:
        raise Refused(
            f"The kernels take float32; this array is {wide.dtype}. `np.zeros` needs the dtype said."
        )
    if wide.shape[0] != rows:
        raise Refused(
            f"B has {rows} rows and the result {wide.shape[0]}: rows of zeros do not move where the other "
            "rows begin. It is the rows that must become longer."
        )
    if wide.shape[1] < n:
        raise Refused(
            f"The width is rounded down: of {n} columns {wide.shape[1]} are left, and the rest of B is lost. "
            "Round up."
        )
    return wide


def _check_width(n: int, width: int):
    if width % A_SECTOR == 0:
        return
    start = f"Row 1 begins at byte {4 * width}, {4 * width % 32} bytes after the start of a sector."
    if width == n:
        raise Refused(
            f"The rows are still {n} floats long. A copy of a slice, `wide[:, :n].copy()`, does not keep the "
            "padding: the wide array itself has to be returned.",
            start,
        )
    if n % 2 and width == n + 1:
        raise Refused(
            f"{n} columns become {width}: an even number is not enough. A sector is 8 floats, and rows start "
            "at sectors only if their length is a multiple of 8.",
            start,
        )
    raise Refused(
        f"{n} columns become {width}, and that is no multiple of 8 floats, so no whole sectors.", start
    )


def _refuse_surplus(widths):
    """Every row starts at a sector, but with more padding than that takes."""
    for n, width in zip(WIDTHS, widths):
        if n % A_SECTOR == 0 and width == n + A_SECTOR:
            raise Refused(
                f"{n} columns already are whole sectors and need no padding, but become {width}. `8 - n % 8` "
                "is 8 where nothing is missing."
            )
    n, width = max(zip(WIDTHS, widths), key=lambda pair: pair[1] - pair[0])
    raise Refused(
        f"Every row starts at a sector, but the array is wider than necessary: a width of {n} becomes "
        f"{width}. The next multiple of 8 is {-(-n // A_SECTOR) * A_SECTOR}."
    )


def _check_values(B, wide):
    n = B.shape[1]
    wrong = wide[:, :n] != B
    if not wrong.any():
        return
    row, col = map(int, np.argwhere(wrong)[0])
    where = f"With {n} columns: element [{row}, {col}] is {wide[row, col]:.4g}; in B it is {B[row, col]:.4g}."
    if np.array_equal(wide.reshape(-1)[: B.size], B.reshape(-1)):
        raise Refused(
            "The elements just follow one another, as after a reshape: row 1 of B begins in row 0 of the "
            "result. Each row of B has to go to the start of a row.",
            where,
        )
    raise Refused("The first columns do not hold B.", where)


def _sectors_of_b(wide) -> float:
    """Sectors a request that naive_coalesced takes for B, warps of 32 columns, rows as long as they are "
    "here."""
    stage, tiles, n = LADDER["naive_coalesced"], {"BM": 8, "BN": 32}, 320
    A, C = np.ones((8, STEPS), np.float32), np.ones((8, n), np.float32)
    geometry = stage.grid(8, n, tiles), stage.block(tiles)
    one, zero = np.float32(1), np.float32(0)
    report = emulate(stage.kernel(tiles), *geometry, 8, n, STEPS, one, A, wide, zero, C)
    return report.sectors_per_request(array="B", op="load")
