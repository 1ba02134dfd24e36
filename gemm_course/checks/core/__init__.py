"""Defines what every checker is made of: exercises, verdicts, and how the learner's code is run and read."""

from .elsewhere import line_of
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
    name_of_x,
    same_statements,
)
from .verdict import Verdict
from .written import (
    Assignment,
    Branch,
    Call,
    Comparison,
    Element,
    Loop,
    Operation,
    Part,
    Written,
    line_at,
    parameter_names,
    source_line,
)

__all__ = [
    "Exercise",
    "NothingYet",
    "Refused",
    "Verdict",
    "exercise",
    "nothing_yet",
    # These take and run the learner's function or kernel.
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
    # These read the learner's source.
    "Assignment",
    "Branch",
    "Call",
    "Comparison",
    "Element",
    "Loop",
    "Operation",
    "Part",
    "Written",
    "check_begun",
    "is_stub",
    "line_at",
    "line_of",
    "name_of_x",
    "parameter_names",
    "same_statements",
    "source_line",
]
