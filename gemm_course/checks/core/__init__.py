"""What every checker is made of: the exercise, its verdict, the learner's function or kernel, its source."""

from .exercise import Exercise, NothingYet, Refused, exercise, nothing_yet
from .learner import (
    call,
    device_function_of,
    emulate_kernel,
    factory_of,
    function_of,
    kernel_of,
    name_of,
    nothing_happens,
    number_shown,
    whole_number,
)
from .source import (
    check_begun,
    is_stub,
    line_at,
    name_of_x,
    parameter_names,
    same_statements,
    source_line,
    source_tree,
)
from .verdict import Verdict

__all__ = [
    "Exercise",
    "NothingYet",
    "Refused",
    "Verdict",
    "exercise",
    "nothing_yet",
    # the learner's function or kernel
    "call",
    "device_function_of",
    "emulate_kernel",
    "factory_of",
    "function_of",
    "kernel_of",
    "name_of",
    "nothing_happens",
    "number_shown",
    "whole_number",
    # its source
    "check_begun",
    "is_stub",
    "line_at",
    "name_of_x",
    "parameter_names",
    "same_statements",
    "source_line",
    "source_tree",
]
