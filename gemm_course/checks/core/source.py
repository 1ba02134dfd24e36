"""What can be read off a learner's source: whether there is an answer yet, names, lines."""

import ast
import inspect
import linecache
import textwrap
from typing import Any

from lockstep import Report

from .exercise import Refused, nothing_yet


def source_tree(function: Any) -> ast.Module:
    """The syntax of a kernel or function, with the line numbers of its file; empty without a source."""
    try:
        lines, start = inspect.getsourcelines(getattr(function, "py_func", function))
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError):
        return ast.Module([], [])
    return ast.increment_lineno(tree, start - 1)


def parameter_names(kernel: Any) -> tuple[str, ...]:
    """The names the learner gave the kernel's arguments: the report's array names."""
    code = kernel.py_func.__code__
    return code.co_varnames[: code.co_argcount]


def line_at(kernel: Any, line: int) -> str:
    """``Line 7: `acc += A[row, p]` `` of the learner's file or notebook cell."""
    return source_line(kernel.py_func.__code__.co_filename, line)


def source_line(filename: str, line: int) -> str:
    """The same for any file."""
    text = linecache.getline(filename, line).strip()
    return f"Line {line}: `{text}`" if text else f"Line {line}"


def is_stub(kernel: Any) -> bool:
    """No element of any array is read or written in the kernel's source."""
    return not any(isinstance(node, ast.Subscript) for node in ast.walk(source_tree(kernel)))


def check_begun(kernel: Any, *reports: Report) -> None:
    """Tell a stub, which has nothing to run, from a kernel whose guard keeps every thread out."""
    if any(len(report.accesses) or report.barriers for report in reports):
        return
    arguments = parameter_names(kernel)
    if any(_is_element_of(node, arguments) for node in ast.walk(source_tree(kernel))):
        raise Refused(
            "The kernel runs, but not one thread reads or writes anything. Does the guard let the wrong ones "
            "through, or does a loop never begin?"
        )
    raise nothing_yet()


def _is_element_of(node: ast.AST, arrays: tuple[str, ...]) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in arrays


def defined_but_not_returned(factory: Any) -> str:
    """The function that a factory defines without any ``return`` of its own; "" for all other functions."""
    outer = next((node for node in source_tree(factory).body if isinstance(node, ast.FunctionDef)), None)
    if outer is None or any(isinstance(node, ast.Return) for node in outer.body):
        return ""
    return next((node.name for node in outer.body if isinstance(node, ast.FunctionDef)), "")


def prints_only(function: Any) -> bool:
    """Whether a function calls ``print`` and has no ``return`` with a value."""
    nodes = list(ast.walk(source_tree(function)))
    returned = (node.value for node in nodes if isinstance(node, ast.Return))
    if any(value is not None and ast.unparse(value) != "None" for value in returned):
        return False
    return any(isinstance(node, ast.Call) and ast.unparse(node.func) == "print" for node in nodes)


def same_statements(kernel: Any, other: Any) -> bool:
    """Whether two kernels do the same word for word, whatever their docstrings and comments say."""
    return _statements(kernel) == _statements(other)


def _statements(kernel: Any) -> list[str]:
    functions = (node for node in ast.walk(source_tree(kernel)) if isinstance(node, ast.FunctionDef))
    function = next(functions, None)
    if function is None:
        return []
    start = 1 if ast.get_docstring(function) is not None else 0
    return [ast.unparse(statement) for statement in function.body[start:]]


def name_of_x(kernel: Any) -> str:
    """The variable that holds a thread's index along x, as the learner called it; "" where none is found."""
    for node in ast.walk(source_tree(kernel)):
        if isinstance(node, ast.Assign):
            name = _first_name(node.targets[0], node.value)
            if name:
                return name
    return ""


def _first_name(target: ast.expr, value: ast.expr) -> str:
    """`col, row = cuda.grid(2)` or `col = ... cuda.threadIdx.x`."""
    text = ast.unparse(value)
    if isinstance(target, ast.Name):
        return target.id if "blockIdx.x" in text and "threadIdx.x" in text else ""
    if not isinstance(target, ast.Tuple) or not all(isinstance(part, ast.Name) for part in target.elts):
        return ""
    if text.endswith("grid(2)"):
        return target.elts[0].id
    parts = value.elts if isinstance(value, ast.Tuple) else ()
    return next(filter(None, map(_first_name, target.elts, parts)), "")
