"""Why a line of a kernel computes in float64, found in its source, so that the message names the literal."""

import ast
from collections.abc import Collection

from gemm_course.checks.core import source_tree


def why_float64(kernel, lines: list[int]) -> str:
    """One or two sentences on where the float64 of these lines comes from; ``lines`` in the file's order."""
    tree = source_tree(kernel.py_func)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.lineno in lines}
    starts = [start for start in _starts(tree) if start[0] in names]
    wide = next((start for start in starts if _is_wide(start[1])), None)
    if wide and wide[0] in _annotated(tree):
        return (
            f"`{wide[0]}` starts as `{ast.unparse(wide[1])}`. Numba ignores annotations: the type must be "
            "in the number, `float32(0)`."
        )
    if wide and _is_cast_later(tree, wide[0]):
        return (
            f"`{wide[0]}` becomes float32 only at the end. Until then, for all k steps, it is float64, since "
            f"it starts as `{ast.unparse(wide[1])}`."
        )
    if wide:
        return _wide_start(*wide)
    return _bare_arm(tree, lines[0]) or _literal_in(tree, lines[0]) or "This line still computes in float64."


def passed_on(kernel, lines: list[int]) -> tuple[int, str] | None:
    """(line, why) of a bare number with which a device function computes in float64, on these lines.

    It gets the number and gives it back: `acc = 0`, later `acc = add_products(acc, ...)`.
    """
    tree = source_tree(kernel.py_func)
    own = {node.lineno for node in ast.walk(tree) if hasattr(node, "lineno")}
    if own.intersection(lines):
        return None
    returned = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in {ast.unparse(each) for each in node.value.args}
    }
    wide = next((s for s in _starts(tree) if s[0] in returned and _is_wide(s[1])), None)
    return wide and (wide[1].lineno, _wide_start(*wide))


def number_beside(kernel, arrays: Collection[str]) -> tuple[ast.IfExp, str] | None:
    """The first `A[...] if ... else 0.0` of these arrays, and its bare number, which makes it float64."""
    for node in ast.walk(source_tree(kernel.py_func)):
        if not isinstance(node, ast.IfExp):
            continue
        arms = (node.body, node.orelse)
        numbers = [arm for arm in arms if isinstance(arm, ast.Constant)]
        elements = [arm for arm in arms if isinstance(arm, ast.Subscript)]
        if numbers and elements and ast.unparse(elements[0].value) in arrays:
            return node, ast.unparse(numbers[0])
    return None


def _wide_start(name: str, value: ast.expr) -> str:
    shown = f"`{name} = {ast.unparse(value)}`"
    if isinstance(value, ast.Constant) and isinstance(value.value, float):
        return (
            f"{shown} makes a float64, since Numba gives a literal with a point that type. All that is added "
            "to it becomes float64 too."
        )
    if isinstance(value, ast.Constant):
        return (
            f"{shown} makes an integer. Integer and float32 together are float64 in Numba, so `{name}` "
            "becomes float64 as well: the zero itself needs the type."
        )
    return f"{shown} asks for float64 by name."


def _bare_arm(tree: ast.AST, line: int) -> str | None:
    """A bare number that an `if ... else` of this line has on one side."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.IfExp) or not node.lineno <= line <= node.end_lineno:
            continue
        numbers = [arm for arm in (node.body, node.orelse) if isinstance(arm, ast.Constant)]
        if len(numbers) == 1 and _is_wide(numbers[0]):
            shown = ast.unparse(numbers[0])
            kind = "float64" if "." in shown else "a whole number"
            return (
                f"The `{shown}` beside the `if ... else` is {kind}, and Numba gives both sides one type, "
                f"float64. Write `float32({shown})`."
            )
    return None


def _literal_in(tree: ast.AST, line: int) -> str | None:
    """A number that takes part in the line's arithmetic, outside of calls and indices."""
    for operation in ast.walk(tree):
        if not isinstance(operation, ast.BinOp) or operation.lineno != line:
            continue
        for side in (operation.left, operation.right):
            if isinstance(side, ast.Constant) and isinstance(side.value, float):
                return f"The literal `{side.value}` is float64, and so is every product and sum with it."
            if (
                isinstance(side, ast.Constant)
                and isinstance(side.value, int)
                and not _is_index(tree, operation)
            ):
                return (
                    f"The whole number `{side.value}` in this line makes it float64: Numba turns integer "
                    "times float32 into float64. Leave it out, or give it a type: `float32(...)`."
                )
    return None


def _starts(tree: ast.AST) -> list[tuple[str, ast.expr]]:
    """(name, value) of every assignment to a name, with or without an annotation."""
    return [
        (node.target.id, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value
    ] + [
        (target.id, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]


def _annotated(tree: ast.AST) -> set[str]:
    """Names that are assigned with an annotation, `acc: float32 = ...`."""
    return {ast.unparse(node.target) for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)}


def _is_wide(value: ast.expr) -> bool:
    """A bare number, a call of something named float64 or float, or an array of these."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, (int, float)) and not isinstance(value.value, bool)
    if not isinstance(value, ast.Call):
        return False
    named = (value.func, *value.args[1:], *(keyword.value for keyword in value.keywords))
    return any(ast.unparse(part).split(".")[-1] in ("float64", "float") for part in named)


def _is_cast_later(tree: ast.AST, name: str) -> bool:
    return any(
        isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[-1] == "float32"
        and any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))
        for node in ast.walk(tree)
    )


def _is_index(tree: ast.AST, operation: ast.BinOp) -> bool:
    subscripts = (node.slice for node in ast.walk(tree) if isinstance(node, ast.Subscript))
    return any(operation in ast.walk(index) for index in subscripts)
