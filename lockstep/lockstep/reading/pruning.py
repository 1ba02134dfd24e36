"""Removes dead branches, as Numba does if it knows their conditions when it compiles (``dead_branch_prune``).

Numba knows literals, and the values of names that the function does not assign. It knows whether such a value
is true, the outcome of a comparison or operation of two of them, and ``not``, ``and`` and ``or`` of these. It
does not know attributes, so it compiles both branches of ``if config.DEBUG:``.
"""

import ast
import operator

import numpy as np

from lockstep.errors import UnsupportedKernel

from .analysis import SIGNS, assigned_names, folded, names_in, walk_here
from .names import outside
from .trees import walk

_COMPARISONS = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: operator.contains(b, a),
}
# Numba can call bool() on values of these types.
_TRUE_OR_FALSE = (bool, int, float, str, np.bool_, np.number, type(None))
_JUMPS = (ast.Return, ast.Break, ast.Continue, ast.Raise)


class _None:
    """The value that Numba compares in place of None. It equals only itself, and cannot be ordered."""


def conditions(definition: ast.FunctionDef) -> list:
    """Return the conditions of a function that Numba could know, always in the same order."""
    nodes = walk(definition)
    own = names_in(definition, ast.Store) | {node.arg for node in nodes if isinstance(node, ast.arg)}
    own |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    found = []
    for node in nodes:
        if isinstance(node, (ast.If, ast.IfExp, ast.While)):
            tests = [node.test]
        else:
            tests = node.values if isinstance(node, ast.BoolOp) else []
        found += [part for part in map(_without_not, tests) if _could_be_known(part, own)]
    return found


def outcomes(found: list, function) -> tuple:
    """Return each condition's outcome with the present outside values: True, False, or None if unknown."""
    values = outside({name for node in found for name in names_in(node)}, function) if found else {}
    return tuple(_outcome(node, values) for node in found)


def prune(definition: ast.FunctionDef, known: tuple, filename: str, shown=None):
    """Remove the branches that Numba leaves out. ``known``: the outcomes of the function's conditions."""
    if any(outcome is not None for outcome in known):
        before = assigned_names(definition.body)
        definition.body = _Pruning(conditions(definition), known).block(definition.body)
        _require_values(definition, before - assigned_names(definition.body), filename, shown or {})


def _without_not(node):
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node = node.operand
    return node


def _could_be_known(node, own) -> bool:
    if isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
        return all(type(sign) in _COMPARISONS for sign in node.ops) and all(
            _is_operand(part, own) for part in parts
        )
    if isinstance(node, ast.BinOp) and folded(node) is None:
        return type(node.op) is not ast.Pow and _is_operand(node.left, own) and _is_operand(node.right, own)
    return _is_operand(node, own)


def _is_operand(node, own) -> bool:
    if isinstance(node, ast.Name):
        return node.id not in own
    return isinstance(node, ast.Constant) or folded(node) is not None


def _outcome(node, values) -> bool | None:
    try:
        if isinstance(node, ast.Compare):
            return _of_chain(node, values)
        if isinstance(node, ast.BinOp) and folded(node) is None:
            left, right = _operand(node.left, values), _operand(node.right, values)
            return bool(SIGNS[type(node.op)](left, right))
        value = _value(node, values)
        return bool(value) if isinstance(value, _TRUE_OR_FALSE) else None
    except Exception:  # An outside object may raise anything, and a name may lack a value.
        return None


def _of_chain(node: ast.Compare, values) -> bool | None:
    """Evaluate a comparison. For ``a < b < c`` Numba evaluates ``a < b`` first, and then ``b < c``."""
    operands = [_operand(part, values) for part in (node.left, *node.comparators)]
    pairs = zip(node.ops, operands, operands[1:])
    return all(_COMPARISONS[type(sign)](left, right) for sign, left, right in pairs)


def _operand(node, values):
    value = _value(node, values)
    return _None if value is None else value


def _value(node, values):
    if isinstance(node, ast.Name):
        return values[node.id]
    return node.value if isinstance(node, ast.Constant) else folded(node)


def _require_values(definition, unset, filename, shown):
    """Refuse a variable that is set only in removed branches, because for Numba it has no type."""
    for statement in definition.body if unset else ():
        for node in walk_here(statement):
            if isinstance(node, ast.Name) and node.id in unset:
                name = shown.get(node.id, node.id)
                raise UnsupportedKernel(
                    f"{name} is set only in a branch that Numba leaves out, because the condition of that "
                    f"branch is known when it compiles: here {name} has no value",
                    filename,
                    node.lineno,
                )


class _Pruning(ast.NodeTransformer):
    """A rewriter that removes branches. ``known``: id of a condition -> its outcome.

    ``alive`` keeps the conditions, so that no new node gets the id of a removed one.
    """

    def __init__(self, found: list, known: tuple):
        self.alive, self.known = found, dict(zip(map(id, found), known))

    def block(self, statements) -> list:
        kept = []
        for statement in statements:
            new = self.visit(statement)
            new = new if isinstance(new, list) else [new]
            kept += new
            if new and new[-1] is not statement and isinstance(new[-1], _JUMPS):
                break  # No path reaches the statements that follow.
        return kept or [ast.copy_location(ast.Pass(), s) for s in statements[:1]]

    def _with_blocks(self, node):
        for field, value in ast.iter_fields(node):
            if field in ("body", "orelse") and isinstance(value, list):
                setattr(node, field, self.block(value))
            elif isinstance(value, ast.AST):
                setattr(node, field, self.visit(value))
        return node

    visit_FunctionDef = visit_For = visit_With = _with_blocks

    def visit_If(self, node):
        known, surely = self._surely(node.test), self._truth(node.test)
        if surely is None:
            return self._with_blocks(node)
        taken = node.body if surely else node.orelse
        taken = self.block(taken) if taken else []
        if known is None:  # An unknown part of the condition must still be evaluated.
            evaluated = ast.If(self.visit(node.test), [ast.copy_location(ast.Pass(), node)], [])
            taken.insert(0, ast.copy_location(evaluated, node))
        return taken

    def visit_While(self, node):
        if self._surely(node.test) is False:
            return self.block(node.orelse) if node.orelse else []
        return self._with_blocks(node)

    def visit_IfExp(self, node):
        known = self._surely(node.test)
        if known is None:
            return self.generic_visit(node)
        return self.visit(node.body if known else node.orelse)

    def visit_BoolOp(self, node):
        decides = isinstance(node.op, ast.Or)
        kept = []
        for value in node.values:
            known = self._surely(value)
            if known is None or known is decides or value is node.values[-1]:
                kept.append(self._evaluated(value, known))
            if known is decides:
                break
        node.values = kept
        return node if len(kept) > 1 else kept[0]

    def _evaluated(self, node, known):
        if known is not None and isinstance(node, ast.Compare):
            return ast.copy_location(ast.Constant(known), node)
        return self.visit(node)

    def _surely(self, node) -> bool | None:
        """Return a condition's outcome if every part of it that is evaluated is known, else None."""
        return self._outcome(node, self._surely, exact=True)

    def _truth(self, node) -> bool | None:
        """Return a condition's outcome even if an evaluated part is unknown, as in ``x or True``."""
        return self._outcome(node, self._truth, exact=False)

    def _outcome(self, node, outcome, exact) -> bool | None:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = node.operand
            if isinstance(inner, ast.Compare) and isinstance(inner.ops[0], ast.In):
                # Python compiles `not x in y` to `x not in y`, and Numba prunes no branch on that.
                return None
            known = outcome(inner)
            return None if known is None else not known
        if not isinstance(node, ast.BoolOp):
            return self.known.get(id(node))
        decides = isinstance(node.op, ast.Or)
        for value in node.values:
            known = outcome(value)
            if known is decides:
                return decides
            if known is None and exact:
                return None
        return None if None in map(outcome, node.values) else not decides
