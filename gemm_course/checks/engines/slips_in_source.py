"""Mistakes in a GEMM kernel that its source shows at a glance, where the result alone would mislead."""

from __future__ import annotations

import ast
from typing import Any

from gemm_course.checks.core import Refused, line_at, source_tree

from .trial import Trial

MAKE_ARRAYS = ("zeros", "empty", "ones", "full", "array")


def refuse_numpy_arrays(kernel: Any) -> None:
    """Refuse an accumulator that is an array of NumPy's, for kernels that need one number only."""
    for node in ast.walk(source_tree(kernel)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {f"np.{name}" for name in MAKE_ARRAYS}:
            raise Refused(
                f"`{ast.unparse(node)}` makes an array, and a kernel cannot use NumPy's. One sum is one "
                "number: `acc = float32(0)`.",
                line_at(kernel, node.lineno),
            )


def tied_by_bits(kernel: Any) -> Refused | None:
    """`row < m & col < n`: `&` comes before `<`."""
    for node in ast.walk(source_tree(kernel)):
        if not isinstance(node, ast.Compare):
            continue
        for part in (node.left, *node.comparators):
            if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.BitAnd, ast.BitOr)):
                word, sign = ("and", "&") if isinstance(part.op, ast.BitAnd) else ("or", "|")
                return Refused(
                    f"`{sign}` ties two numbers together before `<` compares: Python takes the line as "
                    f"`{_with_brackets(node, part)}`. Between two comparisons write `{word}`.",
                    line_at(kernel, node.lineno),
                )
    return None


def else_that_stores(trial: Trial) -> Refused | None:
    """A guard whose `else` stores: surplus threads must do nothing at all."""
    sizes, C = {trial.own_name("m"), trial.own_name("n")}, trial.own_name("C")
    for node in ast.walk(source_tree(trial.kernel)):
        if not isinstance(node, ast.If) or not sizes <= _names(node.test):
            continue
        for store in (each for part in node.orelse for each in ast.walk(part)):
            is_element = isinstance(store, ast.Subscript) and isinstance(store.ctx, ast.Store)
            if is_element and ast.unparse(store.value) == C:
                return Refused(
                    f"The guard's `else` stores into `{C}`. The threads that get there have no element: they "
                    "must do nothing at all.",
                    trial.line(store.lineno),
                )
    return None


def negative_beta_left_out(trial: Trial) -> Refused | None:
    """`beta > 0` where `beta != 0` is meant."""
    beta = trial.own_name("beta")
    for node in ast.walk(source_tree(trial.kernel)):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and trial.before["beta"] < 0:
            left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
            above = (left, right) == (beta, "0") and isinstance(node.ops[0], (ast.Gt, ast.LtE))
            below = (left, right) == ("0", beta) and isinstance(node.ops[0], (ast.Lt, ast.GtE))
            if above or below:
                return Refused(
                    f"`{ast.unparse(node)}` puts a negative `{beta}` on the side of 0. Only 0 itself is a "
                    "case of its own: compare with `== 0` or `!= 0`.",
                    f"{trial.line(node.lineno)}. Here `{beta}` is {float(trial.before['beta']):g}.",
                )
    return None


def beta_test_inverted(trial: Trial) -> Refused | None:
    """The old `C` is read where `beta` is 0, and only there."""
    beta, C = trial.own_name("beta"), trial.own_name("C")
    for node in ast.walk(source_tree(trial.kernel)):
        if not isinstance(node, (ast.If, ast.IfExp)) or not node.orelse:
            continue
        if ast.unparse(node.test) not in (f"{beta} == 0", f"{beta} != 0"):
            continue
        reads = [_reads(part, C) for part in (node.body, node.orelse)]
        if reads == ([True, False] if ast.unparse(node.test) == f"{beta} == 0" else [False, True]):
            return Refused(
                f"The two cases of `{beta}` are exchanged: the old `{C}` is read where `{beta}` is 0, and "
                f"`{beta} * {C}` is left out where it is not.",
                trial.line(node.lineno),
            )
    return None


def _reads(part: ast.AST | list[ast.stmt], array: str) -> bool:
    """Whether these lines, or this expression, read elements of an array."""
    return any(
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and ast.unparse(node.value) == array
        for each in (part if isinstance(part, list) else [part])
        for node in ast.walk(each)
    )


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _with_brackets(compared: ast.Compare, tied: ast.BinOp) -> str:
    text = ast.unparse(tied)
    return ast.unparse(compared).replace(text, f"({text})", 1)
