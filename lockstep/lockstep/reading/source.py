"""Parses the source of a kernel into a syntax tree with the line numbers of its file or notebook cell."""

import ast
import inspect
from typing import NamedTuple

from lockstep.errors import UnsupportedKernel

# Python gives every lambda this name.
LAMBDA = "<lambda>"


class Source(NamedTuple):
    """The lines of a function, decorators included, and the first line's number in its file or cell."""

    lines: list[str]
    start: int


def source_of(function) -> Source:
    """Return the source of ``function``. Raises UnsupportedKernel if it cannot be found."""
    try:
        return Source(*inspect.getsourcelines(function))
    except (OSError, TypeError):
        raise UnsupportedKernel(
            "the source of this kernel cannot be found; define it in a file or a notebook cell",
            function.__code__.co_filename,
            function.__code__.co_firstlineno,
        ) from None


def parse(function, source: Source) -> ast.FunctionDef:
    """Return the definition of ``function``. Raises UnsupportedKernel if the source does not contain it."""
    if function.__code__.co_name == LAMBDA:
        return _parse_lambda(function)
    filename, first = function.__code__.co_filename, function.__code__.co_firstlineno
    text, shift = "".join(source.lines), source.start - 1
    if source.lines[0][:1].isspace():
        text, shift = "if True:\n" + text, shift - 1
    no_definition = UnsupportedKernel("the definition of this kernel cannot be found", filename, first)
    try:
        tree = ast.parse(text)
    except SyntaxError:
        raise no_definition from None
    ast.increment_lineno(tree, shift)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function.__code__.co_name:
            return node
    raise no_definition


def _parse_lambda(function) -> ast.FunctionDef:
    """Return the definition of a function that computes a lambda's expression.

    The lambda may be anywhere in a statement. Raises UnsupportedKernel if its source is not found.
    """
    code = function.__code__
    try:
        lines, _ = inspect.findsource(function)
        tree = ast.parse("".join(lines))
    except (OSError, SyntaxError):
        tree = ast.Module([], [])
    around = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and _surrounds(node, code)]
    if not around:
        raise UnsupportedKernel(
            "the source of this lambda cannot be found; write it as a function, with def",
            code.co_filename,
            code.co_firstlineno,
        )
    node = max(around, key=lambda node: (node.lineno, node.col_offset))  # The innermost lambda starts last.
    returned = ast.copy_location(ast.Return(node.body), node.body)
    return ast.copy_location(ast.FunctionDef(LAMBDA, node.args, [returned], []), node)


def _surrounds(node: ast.Lambda, code) -> bool:
    """Tell whether a lambda contains the source positions of all instructions in ``code``."""
    start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    places = [place for place in code.co_positions() if place[2] is not None and place[2] != place[3]]
    return bool(places) and all(
        start <= (line, column) and (end_line, end_column) <= end
        for line, end_line, column, end_column in places
    )
