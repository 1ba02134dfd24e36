"""Finds the functions that machine code was made from, line by line."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

from gemm_course.compiler import Compiled
from gemm_course.compiler.sources import sources

# A file is mapped to its lines, and a line to its text.
Sources = Mapping[str, Mapping[int, str]]


def sources_of(code: Compiled) -> Sources:
    """Return the source of the functions that a kernel's instructions name, where it can still be read."""
    found = sources(code.rows)
    return {file: {int(line): text for line, text in lines.items()} for file, lines in found.items()}


def functions_in(lines: Mapping[int, str]) -> list[tuple[str, list[int]]]:
    """Divide the lines of a file into functions, each as its name, "" if it has none, and its lines.

    Decorators belong to the function below them.
    """
    found: list[list[int]] = []
    indent = 0
    for line in sorted(lines):
        text = lines[line].expandtabs()
        begins = re.match(r" *(?:@|def )", text) and _indent(text) <= indent
        apart = not found or line != found[-1][-1] + 1
        if apart or (begins and _name([lines[number] for number in found[-1]])):
            found.append([])
            indent = _indent(text)
        found[-1].append(line)
    return [(_name([lines[line] for line in numbers]), numbers) for numbers in found]


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _name(lines: list[str]) -> str:
    named = re.search(r"^ *def (\w+)", textwrap.dedent("\n".join(lines)), re.MULTILINE)
    return named[1] if named else ""
