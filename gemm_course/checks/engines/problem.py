"""Makes products that expose mistakes: ragged sizes, padding full of NaN, an old C that must not be read."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

# The bits of these NaN differ, so that a result computed from PADDING never looks like an untouched C.
PADDING, PADDING_OF_C = np.array([0x7FC0BAD0, 0x7FC0C0DE], np.uint32).view(np.float32)
EPSILON = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Geometry:
    """The launch of a GEMM kernel, as far as it says which thread computes which elements of C.

    block: threads (x, y) of a block. x_over: whether x runs over the "rows" or the "columns" of C. each: rows
    and columns of C that lie side by side and belong to one thread. covers: rows and columns of C that a
    block covers, if they do not follow from ``block`` and ``each``. owner_of: (row, col) -> the thread of
    that element, in words, if it does not follow from the other fields.
    """

    block: tuple[int, int]
    x_over: str
    each: tuple[int, int] = (1, 1)
    covers: tuple[int, int] | None = None
    owner_of: Callable[[int, int], str] | None = None

    @property
    def rows_and_columns(self) -> tuple[int, int]:
        """Rows and columns of C that one block covers."""
        if self.covers:
            return self.covers
        (x, y), (rows, columns) = self.block, self.each
        return (x * rows, y * columns) if self.x_over == "rows" else (y * rows, x * columns)

    def grid(self, m: int, n: int) -> tuple[int, int]:
        """Return the blocks (x, y) that cover m rows and n columns; at least one."""
        rows, columns = self.rows_and_columns
        down, right = max(1, -(-m // rows)), max(1, -(-n // columns))
        return (down, right) if self.x_over == "rows" else (right, down)

    def launched(self, m: int, n: int) -> tuple[int, int]:
        """Return the rows and columns that the launch covers, surplus threads included."""
        rows, columns = self.rows_and_columns
        return max(1, -(-m // rows)) * rows, max(1, -(-n // columns)) * columns

    def owner(self, row: int, col: int) -> str:
        """Return the thread that computes C[row, col], in words."""
        if self.owner_of:
            return self.owner_of(row, col)
        row, col = row // self.each[0], col // self.each[1]
        along_x, along_y = (row, col) if self.x_over == "rows" else (col, row)
        (x, y) = self.block
        thread, block = (along_x % x, along_y % y), (along_x // x, along_y // y)
        return f"thread {thread} of block {block}"

    def ragged(self) -> tuple[int, int]:
        """Return (m, n): two different sizes, m no multiple of a block's rows, n none of its columns."""
        rows, columns = self.rows_and_columns
        m = _ragged(rows, 2)
        return m, next(n for n in (_ragged(columns, 1), _ragged(columns, 3)) if n != m)


def _ragged(size: int, blocks: int) -> int:
    return blocks * size + (3 if size >= 6 else 1 if size > 1 else 0)


@dataclass(frozen=True)
class Problem:
    """A product C = alpha * A @ B + beta * C. Equal problems have equal inputs.

    padding: columns of NaN beyond the matrix in B's array; if it is not 0, A's has one more and C's two more.
    spare_rows: rows beyond the matrix, full of NaN. row_multiple: every row's length is a multiple of
    this number; the rest of the row is NaN. old_c: "random", or "nan" for a C that must not be read.
    """

    m: int
    n: int
    k: int
    alpha: float = 1.0
    beta: float = 0.0
    padding: int = 0
    spare_rows: int = 0
    row_multiple: int = 1
    old_c: str = "random"
    seed: int = 1

    def but(self, **changes) -> "Problem":
        return replace(self, **changes)

    def __str__(self) -> str:
        words = f"m = {self.m}, n = {self.n}, k = {self.k}, alpha = {self.alpha:g}, beta = {self.beta:g}"
        if self.padding:
            words += ", rows longer than the matrices are wide"
        return words + (", C full of NaN" if self.old_c == "nan" else "")

    # ---- the matrices, as they would be without padding, in float64 for predictions -----------------------

    @cached_property
    def _random(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng((self.seed, self.m, self.n, self.k))
        shapes = ((self.m, self.k), (self.k, self.n), (self.m, self.n))
        return tuple(rng.uniform(0.25, 2, s).astype(np.float32) * rng.choice([-1, 1], s) for s in shapes)

    @cached_property
    def A(self) -> np.ndarray:
        return self._random[0].astype(np.float64)

    @cached_property
    def B(self) -> np.ndarray:
        return self._random[1].astype(np.float64)

    @cached_property
    def C(self) -> np.ndarray:
        """C before the launch."""
        return (
            np.full((self.m, self.n), np.nan) if self.old_c == "nan" else self._random[2].astype(np.float64)
        )

    @cached_property
    def AB(self) -> np.ndarray:
        return self.A @ self.B

    @cached_property
    def expected(self) -> np.ndarray:
        old = self.beta * self.C if self.beta else 0.0
        return self.alpha * self.AB + old

    @cached_property
    def tolerance(self) -> np.ndarray:
        """How far rounding in float32 may put each element off, whatever the order of its sum."""
        size = abs(self.alpha) * (abs(self.A) @ abs(self.B)) + abs(self.beta) * np.nan_to_num(abs(self.C))
        return (self.k + 4) * EPSILON * size + 1e-30

    # ---- what the kernel gets -----------------------------------------------------------------------------

    def buffers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return A, B and C as float32 with fresh copies of the matrices in them, all the rest NaN."""
        extra = (self.padding + 1, self.padding, self.padding + 2) if self.padding else (0, 0, 0)
        matrices, fills = (self.A, self.B, self.C), (PADDING, PADDING, PADDING_OF_C)
        return tuple(self._padded(*each) for each in zip(matrices, extra, fills))

    def _padded(self, matrix: np.ndarray, more: int, fill: np.float32) -> np.ndarray:
        rows, columns = matrix.shape
        length = -(-(columns + more) // self.row_multiple) * self.row_multiple
        wide = np.full((rows + self.spare_rows, length), fill, np.float32)
        wide[:rows, :columns] = matrix
        return wide


def adversarial(geometry: Geometry, depth: int = 6) -> list[Problem]:
    """Return problems, in the order in which their failures are easiest to understand.

    Whole blocks come first, then alpha and beta, an old C full of NaN, sizes around a block's (odd and even:
    threads may have pairs of rows), padding, thin shapes and k = 0. depth: the width of a tile along k, or
    any number where there are no tiles.
    """
    rows, columns = geometry.rows_and_columns
    whole = Problem(rows, 2 * columns, 2 * depth if depth != columns else 3 * depth)
    m, n = geometry.ragged()
    shapes = [
        (rows + 1, 2 * columns + 1, depth),
        (max(rows - 1, 1), 3 * columns - 1, depth),
        (m, n, depth + 1),
        (n, m, max(depth - 1, 1)),
        (rows + 2, columns + 2, depth),
    ]
    thin = [(1, 1, 1), (1, columns + 1, depth + 2), (rows + 1, 1, depth), (3, 2, 1)]
    return [
        whole,
        whole.but(alpha=1.5, beta=-0.75),
        whole.but(alpha=0.5, old_c="nan"),
        *(Problem(*shape) for shape in shapes),
        Problem(m, n, depth + 1, alpha=-1.25, beta=0.5, padding=3),
        Problem(rows, columns, depth, padding=2)
        if rows != columns
        else Problem(rows, 2 * columns, 1, padding=2),
        *(Problem(*shape, alpha=1.5, beta=0.5, padding=1) for shape in thin),
        Problem(m, n, 0, alpha=2.0, beta=0.5),
        Problem(3, 2, 0, old_c="nan"),
    ]


def square(geometry: Geometry, depth: int = 6) -> Problem:
    """Return a problem with m = n = k in whole blocks, where swapped indices stay inside the arrays."""
    rows, columns = geometry.rows_and_columns
    return Problem(*(3 * [int(np.lcm.reduce([rows, columns, depth if depth > 1 else 1]))]))
