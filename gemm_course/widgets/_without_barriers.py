"""Removes barriers from a kernel, to show what they are for."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable
from types import FunctionType

BARRIER = "syncthreads"


def without_barriers(kernel: Callable, removed: set[int]) -> Callable:
    """Return a kernel's plain function without the barriers in ``removed``, counted from 0 in source order.

    The other lines keep their text and their numbers, so that findings still point at the kernel as it is
    shown. Raise ValueError if the kernel has no such barrier.
    """
    function, text, first, places = _read(kernel)
    if not removed <= set(range(len(places))):
        raise ValueError(f"{function.__name__} has {len(places)} barriers; asked to remove {sorted(removed)}")
    for number in removed:
        line = text[places[number]]
        text[places[number]] = line[: len(line) - len(line.lstrip())] + "pass\n"
    return _compiled(
        "\n" * (first - 1) + "".join(text), function, f"<{function.__name__} without {sorted(removed)}>"
    )


def barrier_lines(kernel: Callable) -> list[int]:
    """Return the lines of a kernel's barriers, in the order of the source and as findings number them."""
    _, _, first, places = _read(kernel)
    return [first + place for place in places]


def _read(kernel: Callable) -> tuple[FunctionType, list[str], int, list[int]]:
    """Return a kernel's function, its lines, the number of the first, and which of them are barriers."""
    function = getattr(kernel, "py_func", kernel)
    lines, first = inspect.getsourcelines(function)
    text = textwrap.dedent("".join(lines)).splitlines(keepends=True)
    found = {node.lineno - 1 for node in ast.walk(ast.parse("".join(text))) if _is_barrier(node)}
    return function, text, first, sorted(found)


def _is_barrier(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    called = node.value.func
    return isinstance(called, ast.Attribute) and called.attr == BARRIER


def _compiled(source: str, original: FunctionType, filename: str) -> FunctionType:
    """Compile ``source`` as a function that closes over what ``original`` closes over."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    closed = inspect.getclosurevars(original)
    scope = dict(original.__globals__) | closed.nonlocals
    tree = ast.parse(source)
    tree.body[0].decorator_list = []
    exec(compile(tree, filename, "exec"), scope)
    return scope[original.__name__]
