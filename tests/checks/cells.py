"""The exercises' cells as the notebooks have them, stub or solution, and what their checker says of them."""

import ast
import functools
import linecache
import re
from itertools import count

from gemm_course.checks import Verdict
from tests.notebooks.builder import builder, source_of

KINDS = {"stub": "learner", "solution": "solutions"}
IMPORTS = """import numpy as np
from numba import cuda, float32, float64, int32
from numba.types import float16
from gemm_course import LADDER, check, own
from gemm_course.own_kernel import own_with
from lockstep.intrinsics import *
from gemm_course.checks.kits import *
"""
_NUMBER = count()


@functools.cache
def checked_cells(tag: str) -> dict[str, str]:
    """The code cells with this tag ("stub", "solution") that call a checker, by the exercise's name.

    They are cut out of the sources' text, as a test module needs the names when it is imported; a test in
    test_stubs.py compares them with the cells of the notebooks.
    """
    cells = {}
    for name in builder.names():
        source = source_of(name)
        for cell in re.split(r"^# %%", source, flags=re.MULTILINE)[1:]:
            head, _, text = cell.partition("\n")
            if builder.BEGIN in text and "[markdown]" not in head:
                written = builder.written(text.strip("\n"), KINDS[tag])
                if checked := checked_in(written):
                    cells[checked] = written
    return cells


def checked_in(source: str) -> str | None:
    """The name of the checker that a cell calls last, None if it calls none."""
    called = [
        node.func.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value) == "check"
    ]
    return called[-1] if called else None


def verdict_of(source: str) -> Verdict:
    """Run a cell as a notebook does, so that its kernels have a source; its last expression is the answer."""
    text, filename = IMPORTS + source, f"<cell {next(_NUMBER)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    *body, last = ast.parse(text).body
    space = {"__name__": "cell"}
    try:
        exec(compile(ast.Module(body, []), filename, "exec"), space)
        return eval(compile(ast.Expression(last.value), filename, "eval"), space)
    finally:
        del linecache.cache[filename]
