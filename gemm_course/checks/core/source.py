"""Answers what several checkers ask about a learner's source, such as whether there is an answer yet."""

from typing import Any

from lockstep import Report

from .exercise import Refused, nothing_yet
from .written import Written


def is_stub(kernel: Any) -> bool:
    """Return whether the kernel's source reads and writes no element of any array."""
    return not Written(kernel).elements()


def check_begun(kernel: Any, *reports: Report) -> None:
    """Raise NothingYet for a stub, and Refused for a kernel whose guard keeps every thread out."""
    if any(len(report.accesses) or report.barriers for report in reports):
        return
    written = Written(kernel)
    if written.elements(*written.parameters):
        raise Refused(
            "The kernel runs, but not one thread reads or writes anything. Does the guard let the wrong ones "
            "through, or does a loop never begin?"
        )
    raise nothing_yet()


def defined_but_not_returned(factory: Any) -> str:
    """Return the name of the function that a factory defines without any ``return`` of its own, or ""."""
    outer, *inner = Written(factory).functions or [None]
    of_others = [part for function in inner for part in function.returns]
    if not inner or any(part not in of_others for part in outer.returns):
        return ""
    return inner[0].name


def prints_only(function: Any) -> bool:
    """Return whether a function calls ``print`` and has no ``return`` with a value."""
    written = Written(function)
    returned = {part.text for part in written.returns} - {"return", "return None"}
    return not returned and bool(written.calls("print"))


def same_statements(kernel: Any, other: Any) -> bool:
    """Return whether two kernels do the same word for word, whatever their docstrings and comments say."""
    return _statements(kernel) == _statements(other)


def _statements(kernel: Any) -> list[str]:
    functions = Written(kernel).functions
    return [statement.text for statement in functions[0].statements] if functions else []


def name_of_x(kernel: Any) -> str:
    """Return the learner's name of the variable that holds a thread's index along x, or "".

    It is found in `col, row = cuda.grid(2)` and in `col = ... cuda.threadIdx.x`.
    """
    for target, value in Written(kernel).assignments:
        if target.items and value.text.endswith("grid(2)"):
            return target.items[0].text
        if not target.items and "blockIdx.x" in value.text and "threadIdx.x" in value.text:
            return target.text
    return ""
