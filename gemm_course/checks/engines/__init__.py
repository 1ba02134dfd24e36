"""Tries learners' answers, each kind in a module of its own, and tells what is wrong with them.

Most exercises need only the names that are imported here. All other names are in the modules.
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
    # These compare numbers and small functions with a table of cases.
    "Part",
    "Slip",
    "a_number",
    "a_whole_number",
    "numbers",
    "table_exercise",
    "whole_numbers",
    # These try any kernel.
    "Trial",
    "try_kernel",
    # These try GEMM kernels and factories of GEMM kernels.
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
    # These describe the mistakes that a GEMM kernel may have.
    "GuardMistake",
    "Mistake",
    "Prediction",
    "added_up",
    "among",
    "mixed",
    "only_stored",
    "result",
    "taken_from",
    # These are lessons: what a kernel with the right numbers must also do.
    "STANDARD",
    "barriers",
    "kept_in_registers",
    "no_float64",
    "not_in_shared",
    "reads",
    "tiles_loaded_once",
]
