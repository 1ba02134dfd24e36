"""Says where a finding is, in the learner's terms, if it lies in a function of another file, as in a kit's.

The number of such a line means nothing to a learner, and their own file has another line with that number.
What they can look at is the line of theirs that calls the function.
"""

import re
from typing import Any

from lockstep import Finding, Report

from .written import Written, line_at


def name_given_functions(report: Report, kernel: Any, own: Any = None) -> None:
    """Change the messages of findings: name a function of another file in place of its line.

    own: the learner's device function, where the kernel around it is the course's.
    """
    learners = own or kernel
    for finding in report.findings:
        later = _told(report.file_of(finding), finding.function, kernel, learners)
        earlier = _told(finding.other_file, finding.other_function, kernel, learners)
        # A message names the earlier access first.
        for line, told in ((finding.other_line, earlier), (finding.line, later)):
            if told:
                finding.message = re.sub(rf"\bin line {line}\b", told, finding.message, count=1)


def line_of(report: Report, finding: Finding, learners: Any) -> str:
    """Return the learner's line of a finding as messages show it, or the line that calls where it lies.

    Where several lines call it, or none, return the function's name.
    """
    if report.file_of(finding) == _file(learners):
        return line_at(learners, finding.line)
    lines = _calling(learners, finding.function)
    if len(lines) == 1:
        return line_at(learners, lines[0])
    return f"In `{finding.function}`" + (f", called in {_numbers(lines)}" if lines else "")


def _told(file: str | None, function: str | None, kernel: Any, learners: Any) -> str:
    """Return a place in a file that is not the learner's in words; "" for one in theirs."""
    if file is None or file == _file(learners):
        return ""
    if learners is not kernel and function == kernel.py_func.__name__:
        return "in the given kernel"
    lines = _calling(learners, function)
    return f"in `{function}`" + (f" (called in {_numbers(lines)})" if lines else "")


def _calling(learners: Any, function: str) -> list[int]:
    """Return the learner's lines that call a function, whatever name they gave it."""
    written = Written(learners)
    names = [name for name, value in written.outside.items() if _name(value) == function]
    return sorted({call.line for call in written.calls(function, *names)})


def _name(value: Any) -> str:
    return getattr(getattr(value, "py_func", None), "__name__", "")


def _file(function: Any) -> str:
    return function.py_func.__code__.co_filename


def _numbers(lines: list[int]) -> str:
    *first, last = map(str, lines)
    return f"lines {', '.join(first)} and {last}" if first else f"line {last}"
