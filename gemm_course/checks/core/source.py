"""What is asked of every learner's source: whether there is an answer yet, and what its functions are."""

from typing import Any

from lockstep import Report

from .exercise import Refused, nothing_yet
from .written import Written


def is_stub(kernel: Any) -> bool:
    """No element of any array is read or written in the kernel's source."""
    return not Written(kernel).elements()


def check_begun(kernel: Any, *reports: Report) -> None:
    """Tell a stub, which has nothing to run, from a kernel whose guard keeps every thread out."""
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
    """The function that a factory defines without any ``return`` of its own; "" for all other functions."""
    outer, *inner = Written(factory).functions or [None]
    of_others = [part for function in inner for part in function.returns]
    if not inner or any(part not in of_others for part in outer.returns):
        return ""
    return inner[0].name


def prints_only(function: Any) -> bool:
    """Whether a function calls ``print`` and has no ``return`` with a value."""
    written = Written(function)
    returned = {part.text for part in written.returns} - {"return", "return None"}
    return not returned and bool(written.calls("print"))


def same_statements(kernel: Any, other: Any) -> bool:
    """Whether two kernels do the same word for word, whatever their docstrings and comments say."""
    return _statements(kernel) == _statements(other)


def _statements(kernel: Any) -> list[str]:
    functions = Written(kernel).functions
    return [statement.text for statement in functions[0].statements] if functions else []


def name_of_x(kernel: Any) -> str:
    """The variable that holds a thread's index along x, as the learner called it; "" where none is found.

    It is found in `col, row = cuda.grid(2)` and in `col = ... cuda.threadIdx.x`.
    """
    for target, value in Written(kernel).assignments:
        if target.items and value.text.endswith("grid(2)"):
            return target.items[0].text
        if not target.items and "blockIdx.x" in value.text and "threadIdx.x" in value.text:
            return target.text
    return ""
