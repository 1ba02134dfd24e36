"""How each kind of answer is tried: launches, kernels, factories, tables, coverage; and what it must do.

Here are the names that most exercises are written with; the rest is in the modules.
"""

from .common_mistakes import GuardMistake, Mistake
from .gemm import GEMM, GemmTrial, Likely, hold_to_numbers, try_on
from .gemm_factory import GemmFactory
from .lessons import STANDARD, barriers, no_float64, not_in_shared, reads, tiles_loaded_once
from .mistakes import Prediction, added_up, among, mixed, only_stored, result, taken_from
from .problem import Geometry, Problem
from .registers import kept_in_registers
from .tables import Part, Slip, a_number, a_whole_number, numbers, table_exercise, whole_numbers
from .tiles import Tiles, tile_choices
from .trial import Trial, try_kernel

__all__ = [
    # small functions: a table of cases
    "Part",
    "Slip",
    "a_number",
    "a_whole_number",
    "numbers",
    "table_exercise",
    "whole_numbers",
    # any kernel
    "Trial",
    "try_kernel",
    # GEMM kernels, and factories of them
    "GEMM",
    "GemmFactory",
    "GemmTrial",
    "Geometry",
    "Likely",
    "Problem",
    "Tiles",
    "hold_to_numbers",
    "tile_choices",
    "try_on",
    # what goes wrong in them
    "GuardMistake",
    "Mistake",
    "Prediction",
    "added_up",
    "among",
    "mixed",
    "only_stored",
    "result",
    "taken_from",
    # lessons: what they must also do
    "STANDARD",
    "barriers",
    "kept_in_registers",
    "no_float64",
    "not_in_shared",
    "reads",
    "tiles_loaded_once",
]
