"""Tells which elements of its two shared tiles a learner's whole GEMM kernel has stored, and what with.

The emulator's trace of one block is cut into pairs of tiles: a new pair begins where a store into a tile
follows reads of the tiles. The tile of A is the shared array that gets A's elements, whatever its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gemm_course.checks.core import Refused
from lockstep import Finding, Watch

from .coverage import Coverage, Fetched, Store, situations
from .findings import FINDINGS
from .gemm import GemmTrial, try_on
from .problem import Geometry, Problem
from .tiles import Tiles

if TYPE_CHECKING:
    import pandas as pd

# No block of these small problems has more accesses to record.
ROWS = 200_000
# The rows of a tile may be longer than the tile is wide by up to this many elements.
PADDING = 8


def hold_tiles(coverage: Coverage, kernel: Any, geometry: Geometry, tiles: Tiles, *, fully: bool) -> None:
    """Refuse a kernel that does not store each element of its tiles once, with its value or a zero.

    fully: whether to look at whole tiles as well, or only at those where the matrices end. A kernel whose
    stores and reads do not form one pair of tiles after the other is left to what looks at its results.
    """
    for situation in situations(tiles)[0 if fully else -1 :]:
        done = filled(kernel, geometry, tiles, *situation)
        if not done.readable:
            return
        if done.is_plain:
            coverage.hold(done)
        else:
            _hold_any_layout(done)


def filled(
    kernel: Any, geometry: Geometry, tiles: Tiles, problem: Problem, at: tuple[int, int], k0: int
) -> Filled:
    """Run the learner's kernel, and watch how one block fills the tiles that begin at ``k0``."""
    watch = Watch((*at, 0), local=False, limit=ROWS)
    trial = try_on(kernel, geometry, problem, tiles=tiles, watch=watch)
    return Filled(**vars(trial) | {"tiles": tiles}, function=kernel, at=at, k0=k0)


@dataclass(kw_only=True)
class Filled(Fetched, GemmTrial):
    """A launch of a whole kernel, with how one block filled the pair of tiles that begins at ``k0``."""

    @cached_property
    def own_tiles(self) -> dict[str, str]:
        """The learner's names of the tiles "As" and "Bs", by the matrix whose elements are stored."""
        q, stored = self.problem, self.shared("store")
        stored = stored[stored["bits"] == 32]  # the others are tuples of values
        names = {}
        for tile, matrix in (("As", q.A), ("Bs", q.B)):
            ours = stored[stored["value"].isin(set(matrix.flat))]["array"].value_counts()
            names[tile] = ours.index[0] if len(ours) else tile
        return names

    def shared(self, *ops: str) -> pd.DataFrame:
        """Return the rows of the trace with these accesses, "store" or "load", to shared memory."""
        trace = self.report.trace
        return trace[(trace["space"] == "shared") & trace["op"].isin(ops)]

    @cached_property
    def pairs(self) -> list[dict[str, list[Store]]]:
        """The stores into "As" and "Bs" for one pair of tiles after the other."""
        ours = {name: tile for tile, name in self.own_tiles.items()}
        rows = self.shared("store", "load")
        rows = rows[rows["array"].isin(ours)]
        columns = (rows[name].tolist() for name in ("op", "array", "thread", "element", "value"))
        pairs: list[dict[str, list[Store]]] = []
        reading = True
        for op, array, thread, element, value in zip(*columns):
            if op == "store" and reading:
                pairs.append({"As": [], "Bs": []})
            if op == "store":
                pairs[-1][ours[array]].append(Store(thread, element, value))
            reading = op == "load"
        return pairs

    @cached_property
    def stores(self) -> dict[str, list[Store]]:
        return self.pairs[self.k0 // self.tiles.BK]

    @property
    def readable(self) -> bool:
        """Whether two arrays are filled, and once for every pair of tiles along k."""
        a, b = self.own_tiles.values()
        return a != b and len(self.pairs) == -(-self.problem.k // self.tiles.BK)

    @cached_property
    def is_plain(self) -> bool:
        """Whether As has BM rows and Bs has BK, with padding or without; a transposed tile has not."""
        BM, BN, BK = self.tiles.block_tile
        stored = self.shared("store")
        a, b = (_row_length(stored[stored["array"] == name]) for name in self.own_tiles.values())
        too_long = BM if BM > BK else BK + PADDING + 1
        return (not a or BK <= a < too_long) and (not b or BN <= b <= BN + PADDING)

    # ---- what the engine asks of any launch that fills tiles --------------------------------------------

    def errors_of(self, array: str | None) -> list[Finding]:
        """Return the errors of stores into a tile. All others are named by what looks at the results."""
        if array is None:
            return []
        own = self.own_tiles[array]
        stores = self.report.accesses.query("space == 'shared' and op == 'store' and array == @own")
        return [
            finding
            for finding in self.report.errors
            if finding.kind == "out_of_bounds"
            and finding.array == own
            and finding.line in set(stores["line"])
        ]

    def again(self, problem: Problem, at: tuple[int, int], k0: int) -> Filled:
        return filled(self.function, self.geometry, self.tiles, problem, at, k0)

    def check_barriers(self) -> None:
        """Refuse a barrier that not all threads reach equally often."""
        if exited := self.advised("barrier_after_exit"):
            raise Refused(FINDINGS["barrier_after_exit"](exited, self), f"{self.line(exited)}. {self.about}")
        diverged = self.error("barrier_divergence") or self.advised("barrier_in_branch")
        if diverged:
            raise Refused(
                "There is a barrier inside a loop or a branch that not all threads go through equally often. "
                "The two barriers stay where they were: one when both tiles are filled, one after the "
                f"products. {diverged.message}",
                f"{self.line(diverged)}. {self.about}",
            )

    def values(self, array: str) -> np.ndarray:
        """Return what the tile holds in the end, in the order in which it belongs there.

        A kernel may keep a tile's elements in an order of its own. It is right if its results are.
        """
        held, wanted = super().values(array), self.wanted(array)
        reordered = not self.wrong.any() and (np.sort(held.flat) == np.sort(wanted.flat)).all()
        return wanted if reordered else held


def _row_length(rows: pd.DataFrame) -> int:
    """Return the words from one row of a tile to the next, 0 where no second row is stored."""
    for element, address in zip(rows["element"], rows["address"]):
        if len(element) != 2:
            return -1
        if element[0]:
            return (address // 4 - element[1]) // element[0]
    return 0


def _hold_any_layout(done: Filled) -> None:
    """Refuse tiles of another layout that take more or fewer stores than they have elements."""
    for array, stores in done.stores.items():
        rows, columns = done.shape(array)
        places = len({store.element for store in stores})
        if (places, len(stores)) != (rows * columns, rows * columns):
            raise Refused(
                f"Into `{done.own_tiles[array]}` go {len(stores):,} stores, to {places:,} places, for a tile "
                f"of {rows} × {columns}. Each element must be stored exactly once.",
                done.about,
            )
