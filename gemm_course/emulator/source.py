"""The source of a kernel as a syntax tree with the line numbers of its file or notebook cell."""

import ast
import inspect

from .errors import UnsupportedKernel


def parse(function) -> ast.FunctionDef:
    """The definition of ``function``; raises UnsupportedKernel if its source cannot be found."""
    filename, first = function.__code__.co_filename, function.__code__.co_firstlineno
    try:
        lines, start = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise UnsupportedKernel(
            "the source of this kernel cannot be found; define it in a file or a notebook cell",
            filename,
            first,
        ) from None
    text, shift = "".join(lines), start - 1
    if lines[0][:1].isspace():
        text, shift = "if True:\n" + text, shift - 1
    no_definition = UnsupportedKernel("a kernel must be written with def, not as a lambda", filename, first)
    try:
        tree = ast.parse(text)
    except SyntaxError:
        raise no_definition from None
    ast.increment_lineno(tree, shift)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function.__code__.co_name:
            return node
    raise no_definition
