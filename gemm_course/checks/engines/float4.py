"""Kernels (A, out) of one block that move one tile, four floats at a time: run, and held to 128 bits."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gemm_course.checks.core import Refused, emulate_kernel, kernel_of, line_at, parameter_names
from gemm_course.checks.engines.problem import PADDING
from gemm_course.emulator import Finding, Report

BEHIND = 8  # floats behind each row of A's tile, NaN: rows go on where the matrix does, whole sectors


@dataclass(frozen=True)
class Sizes:
    """A tile of BM by BK, ``pad`` floats behind each row of As, and the threads of the block."""

    BM: int
    BK: int
    threads: int
    pad: int = 0

    def __str__(self) -> str:
        pad = f", PAD = {self.pad}" if self.pad else ""
        return f"With BM = {self.BM}, BK = {self.BK}{pad} and {self.threads} threads"


@dataclass
class Move:
    """One launch: A's tile, numbered from 1, with NaN behind its rows, and what came out."""

    kernel: Any
    sizes: Sizes
    expected: np.ndarray
    out: np.ndarray
    report: Report

    @cached_property
    def wrong(self) -> np.ndarray:
        return self.out != self.expected

    def name(self, position: int) -> str:
        """The learner's name for A (0) or out (1)."""
        return parameter_names(self.kernel)[position]

    def of(self, op: str, position: int | None = None):
        """The accesses of this kind to A (0), to out (1), or to shared memory (None)."""
        rows = self.report.accesses
        rows = rows[rows["op"] == op]
        if position is None:
            return rows[rows["space"] == "shared"]
        return rows[(rows["space"] == "global") & (rows["array"] == self.name(position))]

    def source_of(self, value: float) -> str:
        """The element of A with this value, as the learner would write it."""
        if not 1 <= value <= self.sizes.BM * self.sizes.BK:
            return "NaN, what lies behind A's rows or was never stored" if np.isnan(value) else f"{value:g}"
        return f"{self.name(0)}{list(divmod(int(value) - 1, self.sizes.BK))}"

    @property
    def first_wrong(self) -> str:
        row, col = map(int, np.argwhere(self.wrong)[0])
        got, right = self.out[row, col], self.expected[row, col]
        return (
            f"{self.sizes}: `{self.name(1)}[{row}, {col}]` is {self.source_of(got)}, and should be "
            f"{self.source_of(right)}."
        )


def move(given, sizes: Sizes, *, transposed: bool = False) -> Move:
    """Run the learner's kernel (A, out) on one tile; out is to be A's tile, or its transpose."""
    kernel = kernel_of(given, ("A", "out"))
    tile = np.arange(1, sizes.BM * sizes.BK + 1, dtype=np.float32).reshape(sizes.BM, sizes.BK)
    A = np.full((sizes.BM, sizes.BK + BEHIND), PADDING, np.float32)
    A[:, : sizes.BK] = tile
    expected = tile.T if transposed else tile
    out = np.full_like(expected, np.nan, order="C")
    return Move(kernel, sizes, expected, out, emulate_kernel(kernel, 1, sizes.threads, A, out))


def check_errors(run: Move, words) -> None:
    """Raise Refused for the emulator's first error; ``words``: kind -> (finding, run) -> words or None.

    A misaligned access comes before all others, which follow from it.
    """
    for finding in sorted(run.report.errors, key=lambda f: f.kind != "misaligned_access")[:1]:
        own = words.get(finding.kind)
        message = (own and own(finding, run)) or finding.message
        raise Refused(message, f"{line_at(run.kernel, finding.line)}. {run.sizes}.")


def misaligned(finding: Finding, run: Move) -> str:
    return (
        "A 128-bit access must begin at a multiple of four floats, and this one does not. Is the column "
        f"multiplied by 4 (`tid % (BK // 4) * 4`), and every row a multiple of four long? {finding.message}"
    )


def check_width(run: Move, op: str, position: int | None, what: str) -> None:
    """Raise Refused unless all these accesses are 128 bits wide."""
    rows = run.of(op, position)
    narrow = rows[rows["bits"] < 128]
    if len(narrow):
        requests, enough = int(rows["requests"].sum()), -(-int((rows["lanes"] * rows["bits"]).sum()) // 4096)
        raise Refused(
            f"The numbers are right, but {what} one float at a time: {requests} requests where {enough} of "
            "128 bits do. " + ("Use `load4`." if op == "load" else "Use `store4`."),
            f"{line_at(run.kernel, int(narrow['line'].iloc[0]))}. {run.sizes}.",
        )


def check_once(run: Move, op: str, position: int, what: str) -> None:
    """Raise Refused unless the tile is moved once and a warp's request keeps to whole sectors."""
    rows = run.of(op, position)
    floats, needed = int((rows["lanes"] * rows["bits"]).sum()) // 32, run.sizes.BM * run.sizes.BK
    if floats > needed:
        raise Refused(
            f"The numbers are right, but {floats} floats are {what}, and the tile has {needed}: several "
            "threads do the same work. The block covers THREADS // (BK // 4) rows in a round.",
            f"{run.sizes}.",
        )
    sectors, least = int(rows["sectors"].sum()), needed // 8
    if sectors > least:
        raise Refused(
            f"The numbers are right, but where the tile is {what} {sectors} sectors move, twice as many as "
            f"the {least} it lies in: neighbouring threads are in different rows and use half of each. Let "
            "neighbours take neighbouring fours of a row: the row is `tid // (BK // 4)`.",
            f"{run.sizes}.",
        )
