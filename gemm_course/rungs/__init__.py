"""Keeps what a learner's own ladder is drawn from: the kernels that passed, their counts, and bets on them.

`rung.py` has the one list of rungs. `counting.py` counts what a kernel reads. `store.py` keeps it beside the
learner's progress. `noting.py` is what a checker calls when it has passed.
"""

from .counting import wavefronts_per_multiply_add
from .noting import note_kernel, passed_here
from .rung import PARTS, RUNGS, Part, Rung, rung_of
from .store import Kept, keep, kept, ladder_folder

__all__ = [
    "PARTS",
    "RUNGS",
    "Kept",
    "Part",
    "Rung",
    "keep",
    "kept",
    "ladder_folder",
    "note_kernel",
    "passed_here",
    "rung_of",
    "wavefronts_per_multiply_add",
]
