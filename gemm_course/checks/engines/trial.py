"""Launches a learner's kernel, and keeps its arguments and what the emulator counted and found."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gemm_course.checks.core import (
    Refused,
    Written,
    emulate_kernel,
    line_at,
    line_of,
    number_shown,
    parameter_names,
)
from lockstep import Finding, Report

if TYPE_CHECKING:
    import pandas as pd

BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclass(kw_only=True)
class Trial:
    """A launch of a learner's kernel.

    names: the course's names of the arguments; the learner may have chosen others. before, after: the
    arguments before and after the launch, by the course's names. about: the launch in words, for messages,
    such as "With T = 4".
    """

    kernel: Any
    names: tuple[str, ...]
    grid: tuple
    block: tuple
    before: dict[str, Any] = field(repr=False)
    after: dict[str, Any] = field(repr=False)
    report: Report = field(repr=False)
    about: str = ""

    # ---- names and lines ----------------------------------------------------------------------------------

    @cached_property
    def written(self) -> Written:
        """The source of the kernel."""
        return Written(self.kernel)

    @property
    def learners(self) -> Any:
        """What the learner wrote: the kernel, or a device function that the course's kernel calls."""
        return self.kernel

    def is_own(self, finding: Finding) -> bool:
        """Return whether a finding lies in what the learner wrote, not in a given function."""
        return self.report.file_of(finding) == self.learners.py_func.__code__.co_filename

    def own_name(self, name: str) -> str:
        """Return the learner's name of the argument that the course calls ``name``."""
        return parameter_names(self.kernel)[self.names.index(name)]

    def line(self, at: Finding | int) -> str:
        """Return the learner's line with this number, or that of a finding, as messages show it.

        Of a finding in a given function it is the line that calls the function.
        """
        if isinstance(at, (int, np.integer)):
            return line_at(self.learners, at)
        return line_of(self.report, at, self.learners)

    # ---- what was counted ---------------------------------------------------------------------------------

    def total(self, what: str, op: str, *names: str) -> int:
        """Return how many lanes, requests or sectors these arguments' loads or stores take.

        what: "lanes", "requests" or "sectors". op: "load" or "store". names: the course's names of arguments.
        """
        own = map(self.own_name, names)
        return sum(self.report.total(what, space="global", op=op, array=name) for name in own)

    def lanes(self, op: str, *names: str) -> int:
        """Return how many elements the launch loads from ("load") or stores to ("store") these arguments."""
        return self.total("lanes", op, *names)

    def sectors(self, op: str, *names: str) -> int:
        """Return how many sectors these loads or stores move."""
        return self.total("sectors", op, *names)

    def accesses(self, op: str, name: str | None = None) -> pd.DataFrame:
        """Return the report's rows of loads or stores of one argument, or else of shared memory."""
        rows = self.report.accesses
        rows = rows[rows["op"] == op]
        if name is None:
            return rows[rows["space"] == "shared"]
        return rows[(rows["space"] == "global") & (rows["array"] == self.own_name(name))]

    @property
    def shared_reads(self) -> int:
        """The number of elements that the whole launch reads from shared memory."""
        return self.report.total("lanes", space="shared", op="load")

    @property
    def float64(self) -> pd.DataFrame:
        """The rows of the report's arithmetic that are in float64."""
        return self.report.arithmetic.query("dtype == 'float64'")

    @property
    def threads(self) -> int:
        """The number of threads of the whole launch."""
        return int(np.prod(self.grid) * np.prod(self.block))

    @property
    def barriers_per_block(self) -> int:
        return self.report.barriers // int(np.prod(self.grid))

    # ---- what was found -----------------------------------------------------------------------------------

    def error(self, kind: str) -> Finding | None:
        """Return the first error of this kind, or None."""
        return next((finding for finding in self.report.errors if finding.kind == kind), None)

    def advised(self, kind: str) -> Finding | None:
        """Return the first advice of this kind, or None."""
        return next((finding for finding in self.report.advice if finding.kind == kind), None)

    def strays(self, name: str) -> int:
        """Return the most lanes that one line sends outside this array."""
        own = self.own_name(name)
        found = [f.count for f in self.report.errors if f.kind == "out_of_bounds" and f.array == own]
        return max(found, default=0)

    def refuse_errors(self, where: str = "") -> None:
        """Raise Refused with the emulator's first error, if there is one."""
        if self.report.errors:
            finding = self.report.errors[0]
            raise Refused(finding.message, f"{self.line(finding)}. {where or self.about}")

    # ---- what came out ------------------------------------------------------------------------------------

    def touched(self, name: str) -> np.ndarray:
        """Return which elements have other bits than before the launch, as an array of booleans."""
        before, after = self.before[name], self.after[name]
        bits = BITS[before.itemsize]
        return before.view(bits) != after.view(bits)

    def first_wrong(self, name: str, wrong: np.ndarray, expected: np.ndarray, owner: str = "") -> str:
        """Return the first wrong element of an argument in words. owner: whose it is, a sentence, or ""."""
        place = tuple(map(int, np.argwhere(wrong)[0]))
        got = number_shown(float(self.after[name][place]))
        return " ".join(
            filter(
                None,
                (
                    f"First wrong element: `{name}[{', '.join(map(str, place))}]` is {got}, NumPy has "
                    f"{float(expected[place]):.5g}.",
                    owner,
                    self.about and f"{self.about}.",
                ),
            )
        )


def try_kernel(
    kernel: Any,
    names: tuple[str, ...],
    grid: int | tuple,
    block: int | tuple,
    *arguments,
    about="",
    **options,
) -> Trial:
    """Launch ``kernel`` on copies of the arguments; refuse it if it cannot be run.

    about: as in :class:`Trial`. options: passed to `emulate`.
    """
    after = [given.copy() if isinstance(given, np.ndarray) else given for given in arguments]
    grid, block = (size if isinstance(size, tuple) else (size,) for size in (grid, block))
    report = emulate_kernel(kernel, grid, block, *after, **options)
    before, after = dict(zip(names, arguments)), dict(zip(names, after))
    return Trial(
        kernel=kernel,
        names=names,
        grid=grid,
        block=block,
        before=before,
        after=after,
        report=report,
        about=about,
    )
