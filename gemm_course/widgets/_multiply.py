"""Draws one multiplication, from an element of C up to a block, as the picture that opens every notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gemm_course.figures import multiply as figure
from gemm_course.figures.block_story import LEVELS, Story, numbered, story
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER
from gemm_course.widgets._explorer import Pointing, StepThrough, explorer
from lockstep import Watch, emulate


@dataclass(frozen=True)
class Example:
    """A small multiplication by a stage: its shape (m, n, k) and tiles, and the elements of C to choose from.

    ``level`` is where the picture opens. ``copies`` tells whether copying into shared memory is a step of its
    own. ``at_once`` is the number of steps along k of one operation. ``says`` is the stage's idea.
    ``element`` is where the picture opens, if that is not the last of the choice. ``opens`` is the step that
    is shown first, if that is not the usual one. ``counts_sectors`` tells whether the title says in how many
    sectors the numbers lie.
    """

    stage: str
    shape: tuple[int, int, int]
    tiles: Mapping[str, int]
    rows: Sequence[int]
    columns: Sequence[int]
    level: str
    says: str
    copies: bool = False
    at_once: int = 1
    element: tuple[int, int] | None = None
    opens: int | None = None
    counts_sectors: bool = True

    @property
    def seen_first(self) -> tuple[int, int]:
        """The element of C that is chosen first."""
        return self.element or (self.rows[-1], self.columns[-1])

    @property
    def steps(self) -> int:
        """The number of steps of a block, those along k and those that copy."""
        k = self.shape[2]
        return k // self.at_once + (k // self.tiles["BK"] if self.copies else 0)

    @property
    def first(self) -> int:
        """The step that is shown first.

        Unless the example says otherwise, it is 0, or 3 where each step is one along k.
        """
        if self.opens is not None:
            return self.opens
        return 0 if self.copies or self.at_once > 1 else 3

    def block_of(self, element: tuple[int, int]) -> tuple[int, int]:
        """Return the block, (x, y), whose tile of C holds an element."""
        across, down = element[1] // self.tiles["BN"], element[0] // self.tiles["BM"]
        return (down, across) if self.stage.startswith("naive") else (across, down)


WORDS = "Or click on an element of C."
# The example whose elements can all be chosen takes this many stored states.
_STORED = 2048
_SQUARE = {"BM": 32, "BN": 32, "BK": 8, "TM": 4, "TN": 4}
EXAMPLES = {
    "": Example(
        "naive_coalesced",
        (8, 8, 8),
        {"BM": 8, "BN": 8},
        range(8),
        range(8),
        "element",
        "A row of A meets a column of B. The product of each pair is added.",
        element=(5, 6),
        counts_sectors=False,
    ),
    "naive_uncoalesced": Example(
        "naive_uncoalesced",
        (32, 32, 8),
        {"BM": 32, "BN": 32},
        (0, 3, 5, 9),
        (1, 3, 6, 9),
        # The notebook on naive asks how many numbers a warp reads, and in how many sectors.
        "thread",
        "One thread makes one element. The 32 threads of a warp lie below one another in C.",
        element=(5, 6),
        counts_sectors=False,
    ),
    "naive_coalesced": Example(
        "naive_coalesced",
        (32, 32, 8),
        {"BM": 8, "BN": 32},
        (2, 20),
        (0, 5),
        "warp",
        "One thread makes one element. The 32 threads of a warp now lie side by side in C.",
    ),
    "block_tiled": Example(
        "block_tiled",
        (16, 16, 16),
        {"BM": 8, "BN": 8, "BK": 8},
        (2, 13),
        (9, 12),
        "block",
        "The block copies a tile of A and one of B once. All of its threads read them there.",
        copies=True,
        opens=3,
    ),
    "thread_tiled_1d": Example(
        "thread_tiled_1d",
        (32, 32, 16),
        {"BM": 16, "BN": 16, "BK": 8, "TM": 4},
        (5, 20),
        (18, 25),
        "thread",
        "A thread makes a column of results. Each number of B that it reads serves all of them.",
    ),
    "thread_tiled_2d": Example(
        "thread_tiled_2d",
        (64, 64, 16),
        _SQUARE,
        (9, 40),
        (37, 50),
        "thread",
        "A thread makes a rectangle of results. Each number that it reads serves a row or a column of it.",
    ),
    "vectorized": Example(
        "vectorized",
        (32, 32, 16),
        {"BM": 32, "BN": 16, "BK": 8, "TM": 4, "TN": 4, "PAD": 0},
        (5, 20),
        (18, 25),
        "thread",
        "A thread copies four neighbours with one load. The results are shared out as before.",
        copies=True,
    ),
    "warp_tiled": Example(
        "warp_tiled",
        (64, 64, 16),
        {**_SQUARE, "BN": 64, "WM": 32, "WN": 32, "TM": 8, "PAD": 0},
        (9, 40),
        (37, 50),
        "warp",
        "A warp has a square tile, and reads few different numbers. Is that faster? You will see.",
    ),
    "wmma": Example(
        "wmma",
        (64, 64, 32),
        {"BM": 32, "BN": 32, "BK": 16, "WM": 16, "WN": 32, "PAD": 0},
        (9, 40),
        (37, 50),
        "warp",
        "The warp multiplies as a whole: each call takes 16 × 16 of A and of B. Here two make a step.",
        at_once=16,
    ),
}


@explorer
def multiply(stage: str = "") -> StepThrough:
    """Show how C = A · B is made: by an element, a thread, a warp and a block, step by step along k.

    ``stage`` is the name of one of EXAMPLES. Without it, the matrices are small and their numbers are shown.
    Raise ValueError for a stage that has no example.
    """
    if stage not in EXAMPLES:
        known = ", ".join(name for name in EXAMPLES if name)
        raise ValueError(f"there is no example of {stage!r}; there is one of {known}")
    example = EXAMPLES[stage]
    m, n, _ = example.shape
    return StepThrough(
        lambda step, **chosen: draw(stage, step, **chosen),
        lambda **_: example.steps,
        {
            "level": ("look at", LEVELS, example.level),
            "row": ("row of C", example.rows, example.seen_first[0]),
            "column": ("column of C", example.columns, example.seen_first[1]),
        },
        first=example.first,
        stored=_STORED,
        pointing=Pointing(figure.place_of_c(example.shape), m, n, "row", "column", WORDS),
    )


def draw(stage: str, step: int, level: str, row: int, column: int) -> Picture:
    """Draw a step (from 0) of an example, seen from an element of C at one of LEVELS."""
    example = EXAMPLES[stage]
    block_story = told(stage, example.block_of((row, column)))
    seen_from = figure.Scene(
        block_story,
        step,
        (row, column),
        level,
        *operands(stage),
        example.says,
        example.counts_sectors,
    )
    return figure.draw(seen_from)


def operands(stage: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the small whole numbers that A and B hold in the picture."""
    m, n, k = EXAMPLES[stage].shape
    chance = np.random.default_rng(3)
    return chance.integers(0, 4, (m, k)), chance.integers(0, 4, (k, n))


@lru_cache(64)
def told(stage: str, block: tuple[int, int]) -> Story:
    """Return what a block of an example does, from the emulator's trace."""
    example = EXAMPLES[stage]
    chosen, (m, n, k) = LADDER[example.stage], example.shape
    A, B = numbered(m, k, chosen.dtype), numbered(k, n, chosen.dtype)
    launch = chosen.alone(
        m, n, k, np.float32(1), A, B, np.float32(0), np.zeros((m, n), chosen.dtype), tiles=example.tiles
    )
    watch = Watch((*block, 0), local=False)
    report = emulate(launch.kernel, launch.grid, launch.block, *launch.arguments, watch=watch)
    return story(report.trace, example.shape, block, copies=example.copies, at_once=example.at_once)
