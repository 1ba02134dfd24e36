"""Docstrings are one plain string each: no quotes and line breaks left of strings that were put together."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PUT_TOGETHER = re.compile(r'"\s+"|\\n')  # a quote, white space, a quote; a line break written out
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def sources() -> list[Path]:
    """Return every Python file of the course, notebooks and tools among them."""
    folders = ("gemm_course", "lockstep", "measuring", "tests", "tools", "notebooks/source")
    return [ROOT / "course.py", *(path for folder in folders for path in (ROOT / folder).rglob("*.py"))]


def broken_docstrings(text: str) -> list[int]:
    """Return the lines of docstrings that are several strings or read as if they were."""
    lines, source = [], text.splitlines()
    for node in ast.walk(ast.parse(text)):
        told = ast.get_docstring(node, clean=False) if isinstance(node, DOCUMENTED) else None
        if told is not None:
            first, last = node.body[0].lineno, node.body[0].end_lineno
            written = "\n".join(source[first - 1 : last]).strip()
            if PUT_TOGETHER.search(told) or not re.fullmatch(r'r?"""(?:(?!""").)*"""', written, re.DOTALL):
                lines.append(node.body[0].lineno)
    return lines


@pytest.mark.full(reason="reads every file")
def test_every_docstring_is_one_plain_string():
    found = {
        path.relative_to(ROOT).as_posix(): broken_docstrings(path.read_text(encoding="utf-8"))
        for path in sources()
    }
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "docstring",
    [
        '"""Found in its source, so that the message can name the "\n    "literal."""',
        '"""What the lanes of a warp touch."\n    " And how."""',
        '"""The name" " of it."""',
        '"""The name""" """ of it."""',
        '"The name" " of it."',
        r'"""One\\nand two."""',
    ],
)
def test_a_docstring_that_is_not_is_found(docstring):
    assert broken_docstrings(f"def f():\n    {docstring}\n") == [2]


@pytest.mark.parametrize(
    "docstring", ['"""A version, "" if there is none."""', '""" "1.0", or "" if none."""']
)
def test_quotes_as_such_are_plain(docstring):
    assert broken_docstrings(f"def f():\n    {docstring}\n") == []
