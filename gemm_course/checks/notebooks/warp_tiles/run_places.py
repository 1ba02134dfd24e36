"""Computes the rows and columns of ``runs_of_four``'s threads: the right ones and likely mistakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import product

import numpy as np

from gemm_course.checks.engines.tiles import Tiles

# A part is a formula, as a learner writes it, and what is wrong with the formula.
Part = tuple[str, str]

# The right {row} is the sum of the first formulas for lane, warp and run. The braces have words of an Axis.
LANE: tuple[Part, ...] = (
    ("lane {op} LANE_COLS * 4", ""),
    (
        "0",
        "The lane is left out of `{first}`: all lanes of a warp begin at the same place. A lane's {row} "
        "among the lanes is `lane {op} LANE_COLS`.",
    ),
    (
        "lane {op} LANE_COLS",
        "`{first}` counts lanes: a lane begins with a run of four, so its {row} among the lanes is "
        "multiplied by 4.",
    ),
    (
        "tid {op} LANE_COLS * 4",
        "The thread's number in the block stands where its lane is meant, `threadIdx.x % 32`.",
    ),
    *(
        (
            formula,
            "`LANE_COLS` lanes lie side by side: divide by that. The {row} of a lane among the lanes is "
            "`lane {op} LANE_COLS`.",
        )
        for formula in ("lane {op} LANE_ROWS * 4", "lane {other_op} LANE_ROWS * 4")
    ),
    (
        "lane {other_op} LANE_COLS * 4",
        "`//` and `%` are swapped for the lane. Lanes lie side by side first: the {row} of a lane among the "
        "lanes is `lane {op} LANE_COLS`.",
    ),
    (
        "lane {op} LANE_COLS * {T}",
        "`{first}` leaves room for all {T} {rows} of a lane. But only four of them come before the next "
        "lane's: multiply by 4.",
    ),
    (
        "lane {op} 4 * 4",
        "The lane is divided by 4, right only where `LANE_COLS` is 4. The {row} of a lane among the lanes is "
        "`lane {op} LANE_COLS`.",
    ),
)
WARP: tuple[Part, ...] = (
    ("warp {op} (BN // WN) * {W}", ""),
    (
        "0",
        "The warp is left out of `{first}`, or adds nothing to it: all warps have the same {rows}. A warp's "
        "tile begins {W} {rows} after that of the warp before.",
    ),
    *(
        (
            formula,
            "`BN // WN` warps lie side by side: divide by that, not by `BM // WM`. The {row} of a warp among "
            "the warps is `warp {op} (BN // WN)`.",
        )
        for formula in ("warp {op} (BM // WM) * {W}", "warp {other_op} (BM // WM) * {W}")
    ),
    (
        "warp {other_op} (BN // WN) * {W}",
        "`//` and `%` are swapped for the warp. Warps lie side by side first: the {row} of a warp among the "
        "warps is `warp {op} (BN // WN)`.",
    ),
    (
        "warp {op} (BN // WN) * {OTHER_W}",
        "`{OTHER_W}` stands in the place of `{W}`: the {row} of a warp among the warps is multiplied by how "
        "many {rows} a warp's tile has.",
    ),
    (
        "warp {op} (BN // WN)",
        "`{first}` counts warps: a warp has {W} {rows}, so its {row} among the warps is multiplied by {W}.",
    ),
    (
        "warp {op} (BN // WN) * {W} + {B}",
        "The block's own first {row} does not belong here: `{first}`, `put` and the tiles count from the "
        "block's tile. There is no `{block}` in it, and no `cuda.grid(1)` in place of `cuda.threadIdx.x`.",
    ),
    ("warp {op} (BN // WN) * {W} + 1", "All {rows} are one too far."),
    ("warp {op} (BN // WN) * {W} - 1", "All {rows} come one too early."),
    (
        "warp {op} (BN // WN) * {W} + 4 * {LANES}",
        "All {rows} are one run too far: the first is run 0.",
    ),
)
RUN: tuple[Part, ...] = (
    ("{i} // 4 * (4 * {LANES}) + {i} % 4", ""),
    ("0", "All {rows} of a thread are its first: they must go on with `{i}`."),
    (
        "{i}",
        "The runs are contiguous, `{first} + {i}`, but the next lane begins only four {rows} further on: "
        "these are its {rows} as well. How many {rows} do the first runs of all lanes fill?",
    ),
    (
        "{i} // 4 * {LANES} + {i} % 4",
        "The next run begins too early: between two runs of a thread lie those of all other lanes, four "
        "{rows} each.",
    ),
    (
        "{i} // 4 * (4 * {OTHER_LANES}) + {i} % 4",
        "`{OTHER_LANES}` stands in the step from run to run of the {rows}: `LANE_ROWS` lanes stand one below "
        "the other, `LANE_COLS` side by side. Which of them share out the {rows}?",
    ),
    (
        "{i} // 4 * (4 * {T}) + {i} % 4",
        "The step from run to run is `4 * {T}`, or a number equal to it here. But it depends on how many "
        "lanes share out the {rows}: between two runs of a thread lie four {rows} of each other lane.",
    ),
    (
        "{i} // 4 * 16 + {i} % 4",
        "The step from run to run is 16, right only where four lanes share out the {rows}. How many do so "
        "depends on the tiles: the step is `4 * {LANES}`.",
    ),
    (
        "{i} // 4 * {T} + {i} % 4",
        "The step from run to run is `{T}`, how many {rows} one thread has. But between two runs of a thread "
        "lie those of all other lanes, four {rows} each.",
    ),
    (
        "{i} // 4 * {W} + {i} % 4",
        "The step from run to run is `{W}`: that leads out of the warp's tile. How many {rows} do the first "
        "runs of all lanes fill?",
    ),
    (
        "{i} // 4 * ({W} // 2) + {i} % 4",
        "A step of `{W} // 2` is right only where each thread has two runs, {T} = 8. How many {rows} do the "
        "first runs of all lanes fill, whatever {T} is?",
    ),
    (
        "({i} >= 4) * (4 * {LANES}) + {i} % 4",
        "There may be more than two runs: with {T} = 16 there are four. Which of them is `{i}` in?",
    ),
    (
        "{i} % 4",
        "All runs of a thread have the same {rows}: the step from run to run is missing.",
    ),
    (
        "{i} // 4 * (4 * {LANES}) + {i}",
        "`% 4` is missing: in each run the {rows} are counted from 0 again, `{i} % 4`.",
    ),
    (
        "{i} // 4 * (4 * {LANES})",
        "All {rows} of a run are its first: `{i} % 4` is missing, the place in the run.",
    ),
    (
        "least({i}, {T} - 2) // 4 * (4 * {LANES}) + least({i}, {T} - 2) % 4",
        "The last of a thread's {T} {rows} is missing: does a loop end too early?",
    ),
    (
        "{i} % 4 * (4 * {LANES}) + {i} // 4",
        "`{i}` is split wrongly into run and place: a run has four elements, so four values of `{i}` in a "
        "row belong to the same run.",
    ),
)
THE_OTHERS = (
    "These are the places of the other side, of `{other_first}` and `{OTHER_LANES}`. The {rows} "
    "begin at `{first}`, and `{LANES}` lanes share them out."
)
IN_PLACE_OF = "Is `{other_first}` in the place of `{first}`? The {rows} are those that it would give."
NOWHERE = (
    "All threads begin at {row} 0. Work out `{first}` from warp and lane, and these from `cuda.threadIdx.x`: "
    "the blocks have one dimension, `threadIdx.y` is 0 in all threads."
)


@dataclass(frozen=True)
class Axis:
    """The words for one axis of C, its rows or its columns.

    They fill the braces in the formulas and messages above.
    """

    row: str
    first: str
    other_first: str
    i: str
    op: str
    other_op: str
    B: str
    W: str
    OTHER_W: str
    T: str
    LANES: str
    OTHER_LANES: str
    block: str

    @property
    def rows(self) -> str:
        return f"{self.row}s"

    def text(self, template: str) -> str:
        return template.format(rows=self.rows, **self.__dict__)

    @cached_property
    def _candidates(self) -> tuple[tuple[Part, ...], ...]:
        """All combinations of one formula per part, those with the fewest mistakes first."""
        parts = [[(self.text(formula), words) for formula, words in part] for part in (LANE, WARP, RUN)]
        return tuple(sorted(product(*parts), key=lambda chosen: sum(words != "" for _, words in chosen)))

    def right(self, tiles: Tiles) -> np.ndarray:
        """Return the right places, (threads, TM or TN)."""
        return self._places(tiles, self._candidates[0])

    def _places(self, tiles: Tiles, parts: tuple[Part, ...]) -> np.ndarray:
        return sum(_computed(self, tiles, formula) for formula, _ in parts)

    @property
    def other(self) -> Axis:
        return COLUMNS if self is ROWS else ROWS

    def _with_the_others_first(self, tiles: Tiles) -> np.ndarray:
        """Return the places if a thread begins at the other axis's first place.

        From there it takes the right steps.
        """
        return self.other.right(tiles)[:, :1] + (self.right(tiles) - self.right(tiles)[:, :1])

    def _by_the_others_formula(self, tiles: Tiles) -> np.ndarray:
        """Return the places that the other axis's formula gives, as many per thread as this axis has."""
        counted = replace(self.other, T=self.T)
        return sum(_computed(counted, tiles, formula) for formula, _ in self.other._candidates[0])

    def mistake(self, found: Mapping[Tiles, np.ndarray]) -> str | None:
        """Return what is wrong with the places found: "" if nothing is, None if no likely mistake fits.

        found: for each choice of tiles, booleans as :func:`marked` makes them.
        """

        def fits(places: Callable[[Tiles], np.ndarray]) -> bool:
            return all((marked(places(t), t, self, m.shape[1]) == m).all() for t, m in found.items())

        if fits(self._with_the_others_first):
            return self.text(IN_PLACE_OF)
        if fits(self._by_the_others_formula):
            return self.text(THE_OTHERS)
        for parts in self._candidates:
            if fits(partial(self._places, parts=parts)):
                (lane, _), (warp, _), _ = parts
                words = NOWHERE if lane == warp == "0" else next((words for _, words in parts if words), "")
                return self.text(words)
        return None


@cache
def _computed(axis: Axis, t: Tiles, formula: str) -> np.ndarray:
    """Return a formula's value for each thread, (threads, 1 or TM or TN), cached."""
    names = {**dict(zip(t.names, t.values)), "LANE_ROWS": t.WM // t.TM, "LANE_COLS": t.WN // t.TN}
    tid = np.arange(t.BM * t.BN // (t.TM * t.TN))[:, None]
    names |= {"tid": tid, "warp": tid // 32, "lane": tid % 32, "least": np.minimum}
    names[axis.i] = np.arange(names[axis.T])
    return np.zeros_like(tid) + eval(formula, {}, names)


def marked(places: np.ndarray, tiles: Tiles, axis: Axis, size: int) -> np.ndarray:
    """Return which of ``size`` rows or columns each thread has, (threads, size).

    places: (threads, any), counted from the first row or column of the block's tile. If ``size`` is larger
    than the tile, the tile begins at its own size, as that of block (1, 1) does. Places outside are left out.
    """
    tile = getattr(tiles, axis.B)
    places = places + (tile if size > tile else 0)
    thread, which = np.nonzero((places >= 0) & (places < size))
    found = np.zeros((len(places), size), bool)
    found[thread, places[thread, which]] = True
    return found


ROWS = Axis(
    "row", "y0", "x0", "i", "//", "%", "BM", "WM", "WN", "TM", "LANE_ROWS", "LANE_COLS", "cuda.blockIdx.y"
)
COLUMNS = Axis(
    "column", "x0", "y0", "j", "%", "//", "BN", "WN", "WM", "TN", "LANE_COLS", "LANE_ROWS", "cuda.blockIdx.x"
)
