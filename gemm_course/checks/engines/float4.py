"""Tries kernels (A, out) of one block, which must move a tile by accesses of four floats, 128 bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gemm_course.checks.core import Operation, Part, Refused, Written, kernel_of
from lockstep import Finding

from .problem import PADDING
from .tiles import Tiles
from .trial import Trial, try_kernel

if TYPE_CHECKING:
    import pandas as pd

NAMES = ("A", "out")
# A matrix goes on behind the rows of its tile. Here a whole sector of NaN floats follows each row.
BEHIND = 8
# A shared array may begin at a multiple of one of these numbers of bytes.
ALIGNMENTS = {2**power for power in range(4, 11)}


@dataclass(kw_only=True)
class Move(Trial):
    """A launch that moves A's tile to `out`. The elements are 1, 2, 3, ..., with NaN behind each row."""

    tiles: Tiles
    expected: np.ndarray

    @cached_property
    def out(self) -> np.ndarray:
        return self.after["out"]

    @cached_property
    def wrong(self) -> np.ndarray:
        return self.out != self.expected

    @property
    def rows_per_pass(self) -> int:
        """Rows of A's tile that the block covers at a time."""
        return self.tiles.THREADS // (self.tiles.BK // 4)

    def source_of(self, value: float) -> str:
        """Return the element of A with this value, as the learner would write it."""
        if not 1 <= value <= self.tiles.BM * self.tiles.BK:
            return "NaN, what lies behind A's rows or was never stored" if np.isnan(value) else f"{value:g}"
        return f"{self.own_name('A')}{list(divmod(int(value) - 1, self.tiles.BK))}"

    @property
    def first_wrong_place(self) -> str:
        row, col = map(int, np.argwhere(self.wrong)[0])
        got, right = self.out[row, col], self.expected[row, col]
        return (
            f"{self.about}: `{self.own_name('out')}[{row}, {col}]` is {self.source_of(got)}, and should be "
            f"{self.source_of(right)}."
        )


def move(given: Any, tiles: Tiles, *, transposed: bool = False) -> Move:
    """Run the learner's kernel (A, out) on one tile; expect A's tile in out, or its transpose."""
    BM, BK = tiles.BM, tiles.BK
    kernel = kernel_of(given, NAMES)
    _check_indices(kernel)
    tile = np.arange(1, BM * BK + 1, dtype=np.float32).reshape(BM, BK)
    A = np.full((BM, BK + BEHIND), PADDING, np.float32)
    A[:, :BK] = tile
    expected = tile.T if transposed else tile
    out = np.full_like(expected, np.nan, order="C")
    done = try_kernel(kernel, NAMES, 1, tiles.THREADS, A, out, about=f"With {tiles}")
    return Move(**vars(done), tiles=tiles, expected=expected)


def _check_indices(kernel: Any) -> None:
    """Raise Refused where an index of `load4` or `store4` is a list, or stands at the wrong place."""
    for call in Written(kernel).calls("load4", "store4"):
        if len(call.args) == 3 and len(call.args[2].items) == 2 != len(call.args[1].items):
            raise Refused(
                "The place comes before the four that are stored there: `store4(array, (row, column), "
                "four)`.",
                call.where,
            )
        if any(given.text.startswith("[") for given in call.args):
            raise Refused(
                "A list cannot be an index: an index is a tuple, `(row, column)` in round brackets.",
                call.where,
            )


# ---- what the emulator found -------------------------------------------------------------------------------


def first_error(trial: Trial) -> Finding | None:
    """Return a misaligned access, from which other errors follow, or else the emulator's first error."""
    return trial.error("misaligned_access") or next(iter(trial.report.errors), None)


def check_errors(run: Move, words: Mapping[str, Callable[[Finding, Move], str | None]]) -> None:
    """Raise Refused for the emulator's first error; ``words``: kind -> (finding, run) -> words or None."""
    finding = first_error(run)
    if finding is None:
        return
    own = words.get(finding.kind)
    message = (own and own(finding, run)) or finding.message
    raise Refused(message, f"{run.line(finding)}. {run.about}.")


def misaligned(finding: Finding, run: Move) -> str:
    if swapped := _place_with_row_and_column_swapped(run):
        return (
            f"Row and column are swapped in `{swapped}`: the index is `(row, column)`, and the column is the "
            f"one that is a multiple of four. {finding.message}"
        )
    return (
        "Four floats must begin at a multiple of 16 bytes, and these do not. Is the column "
        f"multiplied by 4 (`tid % (BK // 4) * 4`), and every row a multiple of four long? {finding.message}"
    )


def _place_with_row_and_column_swapped(run: Move) -> str:
    """Return the learner's load4 or store4 whose first index alone is made by `* 4`, or ""."""
    made = {target.text: value for target, value in run.written.assignments}
    for call in run.written.calls("load4", "store4"):
        for place in (given.items for given in call.args if len(given.items) == 2):
            row, column = (_times_four(made.get(each.text, each)) for each in place)
            if row and not column:
                return call.text
    return ""


def _times_four(part: Part) -> bool:
    """Return whether a part is something times 4, or a sum with such a summand."""
    if not isinstance(part, Operation):
        return False
    if part.sign == "+":
        return any(map(_times_four, part.sides))
    return part.sign == "*" and "4" in [side.text for side in part.sides]


# ---- how it is moved ---------------------------------------------------------------------------------------


def floats(rows: pd.DataFrame) -> int:
    """Return how many floats these accesses move, whatever their width."""
    return int((rows["lanes"] * rows["bits"]).sum()) // 32


def check_width(run: Move, op: str, name: str | None, what: str) -> None:
    """Raise Refused unless all these accesses are 128 bits wide.

    op: "load" or "store". name: "A", "out", or None for As in shared memory. what: the accesses in words,
    such as "A is read".
    """
    rows = run.accesses(op, name)
    narrow = rows[rows["bits"] < 128]
    if len(narrow):
        requests, enough = int(rows["requests"].sum()), -(-floats(rows) // 128)
        raise Refused(
            f"The numbers are right, but {what} one float at a time: {requests} requests where {enough} by "
            f"fours do. Use `{op}4`.",
            f"{run.line(narrow['line'].iloc[0])}. {run.about}.",
        )


def check_once(run: Move, op: str, name: str, what: str, width: str = "BK") -> None:
    """Raise Refused unless the tile is moved once and a warp's request moves only whole sectors.

    op: "load" or "store". name: "A" or "out". what: "loaded" or "stored", or the like. width: the name of the
    length of a row.
    """
    rows, needed = run.accesses(op, name), run.tiles.BM * run.tiles.BK
    if floats(rows) > needed:
        raise Refused(
            f"The numbers are right, but {floats(rows)} floats are {what}, and the tile has {needed}: "
            f"several threads do the same work. The block covers THREADS // ({width} // 4) rows in one pass.",
            f"{run.about}.",
        )
    sectors, least = int(rows["sectors"].sum()), needed // 8
    if sectors > least:
        raise Refused(
            f"The numbers are right, but where the tile is {what} {sectors} sectors move, and it "
            f"lies in {least}: what neighbouring threads take does not lie side by side, so each request "
            "uses only a part of its sectors. Let neighbours take neighbouring groups of four floats in a "
            f"row: the row is `tid // ({width} // 4)`.",
            f"{run.about}.",
        )


# ---- how it is declared ------------------------------------------------------------------------------------


def check_declared_alignment(written: Written) -> None:
    """Refuse a shared array whose declaration does not promise where it begins."""
    for declared in written.calls("shared.array"):
        alignment = declared.argument(2, "alignment")
        if alignment is None:
            raise Refused(
                "The numbers are right, but nobody says that the shared array begins at a multiple of 16 "
                "bytes, as fours need it. On a GPU it may begin at any multiple of 4. Say it in "
                "the third argument: `cuda.shared.array(shape, float32, 16)`.",
                declared.where,
            )
        if alignment.number is not None and alignment.number not in ALIGNMENTS:
            raise Refused(
                f"An alignment is a power of two, in bytes, and fours need 16; this is `{alignment.text}`.",
                declared.where,
            )
