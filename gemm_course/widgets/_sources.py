"""The lines of the functions that machine code was made from."""

from __future__ import annotations

import ast
import linecache
import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

import gemm_course
from gemm_course.compiler import Compiled

Sources = Mapping[str, Mapping[int, str]]  # file -> line -> its text
_PACKAGE = Path(gemm_course.__file__).parent


def sources_of(code: Compiled) -> Sources:
    """Return the functions that a kernel's instructions name, as far as their source is still there."""
    used: dict[str, set[int]] = {}
    for one in code.rows:
        if one.file:
            used.setdefault(one.file, set()).add(one.line)
    return {file: _functions(file, lines) for file, lines in used.items()}


def _functions(file: str, used: Iterable[int]) -> dict[int, str]:
    """The innermost functions around the lines used; without a source, just these lines, without text."""
    path = str(_PACKAGE.parent / file) if file.startswith(f"{_PACKAGE.name}/") else file
    lines = [line.rstrip("\n") for line in linecache.getlines(path)]
    kept: set[int] = set()
    ranges = _ranges(lines)
    for line in used:
        around = [each for each in ranges if line in each]
        kept.update(min(around, key=len) if around else (line,))
    return {line: lines[line - 1] if line <= len(lines) else "" for line in sorted(kept)}


def _ranges(lines: list[str]) -> list[range]:
    try:
        tree = ast.parse("\n".join(lines))
    except SyntaxError:  # a cell with a magic
        return []
    found = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return [range(node.lineno, node.end_lineno + 1) for node in found]


def functions_in(lines: Mapping[int, str]) -> list[tuple[str, list[int]]]:
    """Divide the lines of a file into functions: the name of each, "" if it has none, and its lines."""
    found: list[tuple[str, list[int]]] = []
    indent = 0
    for line in sorted(lines):
        text = lines[line].expandtabs()
        before = found[-1][1][-1] if found else None
        begins = re.match(r" *(?:@|def )", text) and _indent(text) <= indent
        decorated = before is not None and lines[before].lstrip().startswith("@")
        if before is None or line != before + 1 or (begins and not decorated):
            found.append(("", []))
            indent = _indent(text)
        found[-1][1].append(line)
    return [(_name([lines[line] for line in numbers]), numbers) for _, numbers in found]


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _name(lines: list[str]) -> str:
    named = re.search(r"^ *def (\w+)", textwrap.dedent("\n".join(lines)), re.MULTILINE)
    return named[1] if named else ""
