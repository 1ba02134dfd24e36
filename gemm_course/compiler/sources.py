"""Finds the text of the functions that a kernel's instructions came from."""

from __future__ import annotations

import ast
import linecache
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from gemm_course.compiler.disassembly import Instruction

_ROOT = Path(__file__).parents[2]


def sources(code: Iterable[Instruction]) -> dict[str, dict[str, str]]:
    """Return the source of the innermost functions that have instructions, by file and line (as text).

    Decorators belong to their function. A file whose text is unknown has no lines.
    """
    used = defaultdict(set)
    for one in code:
        if one.file:
            used[one.file].add(one.line)
    return {file: _text(_lines(file), lines) for file, lines in used.items()}


def _lines(file: str) -> list[str]:
    """Return the lines of a file, by the name that `Instruction` has for it."""
    path = _ROOT / file
    name = str(path) if not Path(file).is_absolute() and path.is_file() else file
    return [line.rstrip("\n") for line in linecache.getlines(name)]


def _text(lines: Sequence[str], used: set[int]) -> dict[str, str]:
    shown = {line for line in used if 1 <= line <= len(lines)}
    functions = list(_functions("\n".join(lines)))
    for line in tuple(shown):
        around = min((span for span in functions if line in span), key=len, default=())
        shown |= set(around)
    return {str(line): lines[line - 1] for line in sorted(shown)}


def _functions(text: str) -> Iterable[range]:
    """Yield the lines of each function."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # A cell with a magic command is no Python.
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield range(first, node.end_lineno + 1)
