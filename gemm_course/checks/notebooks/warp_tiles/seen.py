"""Watches which rows and columns each thread of ``runs_of_four`` stores and reads, on the emulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gemm_course.checks.engines.gemm import GemmTrial, try_on
from gemm_course.checks.engines.problem import Problem
from gemm_course.checks.engines.tiles import Tiles
from lockstep import Watch

from .run_places import COLUMNS, ROWS, Axis, marked

if TYPE_CHECKING:
    import pandas as pd

AXES = (ROWS, COLUMNS)


@dataclass(frozen=True)
class Seen:
    """The stores and reads of one block, thread by thread.

    stored: the rows and columns of C to which each thread stores. read: the rows and columns of C for
    which each thread reads As and Bs.
    Both are booleans as :func:`marked` makes them. astray: the first place that is not stored once, in
    words, or "".
    """

    trial: GemmTrial
    stored: Mapping[Axis, np.ndarray]
    read: Mapping[Axis, np.ndarray]
    astray: str

    @classmethod
    def of(cls, trial: GemmTrial) -> Seen:
        """Watch block (1, 1) of four. C is larger than their tiles, so that a store beside them is seen."""
        t, threads = trial.tiles, trial.geometry.block[0]
        geometry = replace(trial.geometry, covers=(2 * t.BM, 2 * t.BN))
        problem = Problem(4 * t.BM, 4 * t.BN, t.BK, row_multiple=4)
        watch = Watch((1, 1, 0), local=False, limit=200_000)
        trace = try_on(trial.kernel, geometry, problem, tiles=t, watch=watch).report.trace
        stores = trace[(trace["space"] == "global") & (trace["op"] == "store")]
        shared = trace[trace["space"] == "shared"]
        loads, tiles = shared[shared["op"] == "load"], shared.loc[shared["op"] == "store", "array"].unique()
        # The course's `fetch` fills As before Bs.
        arrays = dict(zip(AXES, tiles))
        return cls(
            trial,
            {axis: _marked(stores, at, (threads, 4 * getattr(t, axis.B))) for at, axis in enumerate(AXES)},
            {
                axis: _marked(loads[loads["array"] == arrays.get(axis)], 1, (threads, getattr(t, axis.B)))
                for axis in AXES
            },
            _astray(stores, t),
        )

    @property
    def tiles(self) -> Tiles:
        return self.trial.tiles

    @property
    def stores_columns_as_rows(self) -> bool:
        """Tell whether each thread stores to the right places with row and column swapped."""
        return all(
            (marked(other.right(self.tiles), self.tiles, axis, found.shape[1]) == found).all()
            for (axis, found), other in zip(self.stored.items(), reversed(AXES))
        )

    def _of_tile(self, axis: Axis) -> np.ndarray:
        """Return what is stored of the block's own tile."""
        size = getattr(self.tiles, axis.B)
        return self.stored[axis][:, size : 2 * size]

    def reads_other_than_stored(self, axis: Axis) -> bool:
        """Tell whether some thread reads other rows or columns than those it stores to."""
        return bool(self.read[axis].any() and (self.read[axis] != self._of_tile(axis)).any())

    def first_other(self, axis: Axis) -> str:
        """Return the first thread of which this is true, in words."""
        tid = int((self.read[axis] != self._of_tile(axis)).any(axis=1).argmax())
        both = self.read[axis][tid], self._of_tile(axis)[tid]
        read, stored = (_listed(found, axis, int((both[0] != both[1]).argmax())) for found in both)
        return f"Thread {tid} reads {read}, and stores to {stored} of the block's tile."


def _marked(rows: pd.DataFrame, at: int, shape: tuple[int, int]) -> np.ndarray:
    """Return which elements (by index number ``at``) each thread accesses.

    Wide accesses lie along columns.
    """
    found = np.zeros(shape, bool)
    for thread, element, bits in zip(rows["thread"], rows["element"], rows["bits"]):
        found[thread, element[at] : element[at] + (bits // 32 if at else 1)] = True
    return found


def _astray(stores: pd.DataFrame, t: Tiles) -> str:
    times = np.zeros((4 * t.BM, 4 * t.BN), int)
    for (row, column), bits in zip(stores["element"], stores["bits"]):
        times[row, column : column + bits // 32] += 1
    own = times[t.BM : 2 * t.BM, t.BN : 2 * t.BN]
    for wrong, words in ((own > 1, "is stored several times"), (own == 0, "is stored by no thread")):
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            return f"First: row {row}, column {column} of the block's tile {words}."
    if times.sum() == own.sum():
        return ""
    times[t.BM : 2 * t.BM, t.BN : 2 * t.BN] = 0
    row, column = np.argwhere(times)[0] - (t.BM, t.BN)
    return f"A thread stores to row {row}, column {column}, which is outside the block's tile."


def _listed(found: np.ndarray, axis: Axis, at: int) -> str:
    """Return at most eight of the marked places, in words, with those around ``at``."""
    places = np.flatnonzero(found)
    if not len(places):
        return f"no {axis.row}"
    begin = max(0, min(int((places < at).sum()) - 3, len(places) - 8))
    shown = ", ".join(map(str, places[begin : begin + 8]))
    return f"{axis.rows} {'... ' * (begin > 0)}{shown}{' ...' * (begin + 8 < len(places))}"
