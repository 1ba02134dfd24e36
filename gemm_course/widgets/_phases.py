"""Steps through the phases of mbarriers, by which a producer and two consumers share a ring of slots."""

from __future__ import annotations

from functools import lru_cache

from gemm_course.figures import phases as figure
from gemm_course.figures.picture import Picture
from gemm_course.model import phases as model
from gemm_course.model.phases import QUICK, SLOW, Moment
from gemm_course.widgets import _phases_in_words as words
from gemm_course.widgets._explorer import StepThrough, explorer

# With so many tiles several slots are used again, and with two slots one is used a third time.
TILES = {2: 5, 3: 6, 4: 6}
SPEEDS = {"quick": QUICK, "slow": SLOW}


@explorer
def phases(mistake: str = model.NO_MISTAKE, slots: int = 2) -> StepThrough:
    """Step through a ring of slots with full and empty mbarriers, and break it.

    ``mistake`` is the one at first, of "none", "consumers never flip parity", "producer does not wait",
    "consumer 1 does not arrive", "expects more bytes", "expects fewer bytes" and "producer starts with parity
    0". ``slots`` is 2, 3 or 4, at first.
    """
    controls = {
        "mistake": ("mistake", list(model.MISTAKES), mistake),
        "slots": ("slots", [(str(each), each) for each in TILES], slots),
        "copies": ("copies are", list(SPEEDS), "quick"),
    }
    return StepThrough(draw, lambda **chosen: len(run(**chosen)), controls, first=_FIRST)


# Without a mistake, a phase ends and a warp waits in this step, so the picture begins there.
_FIRST = 9


def draw(step: int, mistake: str, slots: int, copies: str) -> Picture:
    """Draw moment ``step`` (from 0) of a run."""
    moments = run(mistake, slots, copies)[: step + 1]
    return figure.phases(moments, words.said(moments[-1], mistake, TILES[slots]))


@lru_cache(64)
def run(mistake: str, slots: int, copies: str) -> list[Moment]:
    """Return all moments of a run. ``copies``, a key of SPEEDS, says how quick copies are."""
    return model.run(mistake, slots, TILES[slots], SPEEDS[copies])
