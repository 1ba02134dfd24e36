"""Tells which elements the lanes of the first warp touch, and how these lie in their matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockstep import Watch

if TYPE_CHECKING:
    import pandas as pd

WATCH = Watch(block=(0, 0, 0), warp=0)

SAME, ALONG_A_ROW, DOWN_A_COLUMN, SCATTERED = "the same element", "along a row", "down a column", "scattered"


@dataclass(frozen=True)
class FirstWarp:
    """The trace of an emulation with ``watch=WATCH``, in which arrays have the learner's names."""

    trace: pd.DataFrame

    def stored(self, array: str) -> list[tuple]:
        """Return the element that each lane stores last."""
        stores = self._global(array, "store")
        return list(stores.groupby("lane")["element"].last())

    def loaded_first(self, array: str) -> list[tuple]:
        """Return the elements of the warp's first load, lane by lane."""
        loads = self._global(array, "load")
        return list(loads[loads["step"] == loads["step"].min()]["element"])

    def walk(self, array: str, lane: int = 1) -> list[tuple]:
        """Return the elements that one lane loads, in order."""
        loads = self._global(array, "load")
        return list(loads[loads["lane"] == lane]["element"])

    def _global(self, array: str, op: str) -> pd.DataFrame:
        trace = self.trace
        return trace[(trace["space"] == "global") & (trace["array"] == array) & (trace["op"] == op)]


def direction(elements: list[tuple]) -> str:
    """Return how consecutive elements lie: SAME, ALONG_A_ROW, DOWN_A_COLUMN or SCATTERED."""
    if len(elements) < 2:
        return SCATTERED
    (row, col), count = elements[0], len(elements)
    for name, down, right in ((SAME, 0, 0), (ALONG_A_ROW, 0, 1), (DOWN_A_COLUMN, 1, 0)):
        if elements == [(row + i * down, col + i * right) for i in range(count)]:
            return name
    return SCATTERED
