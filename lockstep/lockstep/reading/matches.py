"""Rewrites as branches those ``match`` statements that Numba compiles."""

import ast

from .trees import walk

_COMPILED = (ast.MatchValue, ast.MatchSingleton, ast.MatchOr, ast.MatchAs)


class Matches(ast.NodeTransformer):
    """A rewriter that turns ``match`` into ``if`` and ``else``, and leaves what Numba does not compile."""

    def __init__(self):
        self.count = 0

    def visit_Match(self, node):
        self.generic_visit(node)
        patterns = [
            part for case in node.cases for part in walk(case.pattern) if isinstance(part, ast.pattern)
        ]
        if not all(isinstance(pattern, _COMPILED) for pattern in patterns):
            return node
        self.count += 1
        subject = f"_match{self.count}"
        statements = []
        for case in reversed(node.cases):
            statements = _case(case, subject, statements)
        given = ast.copy_location(ast.Name(subject, ast.Store()), node.subject)
        first = ast.copy_location(ast.Assign([given], node.subject), node.subject)
        return [first, *statements]


def _case(case: ast.match_case, subject: str, otherwise: list) -> list:
    """Return the statements for a case. ``otherwise``: those for the cases after it."""
    test, names = _test(case.pattern, subject), _captured(case.pattern)
    captures = [
        ast.copy_location(
            ast.Assign([_at(ast.Name(name, ast.Store()), case)], _load(subject, case)), case.pattern
        )
        for name in names
    ]
    if case.guard is None:
        return _branch(case, test, [*captures, *case.body], otherwise)
    both = [part for part in (test, case.guard) if part is not None]
    whole = both[0] if len(both) == 1 else _at(ast.BoolOp(ast.And(), both), case)
    before = _branch(case, _test(case.pattern, subject), captures, []) if captures else []
    return [*before, *_branch(case, whole, case.body, otherwise)]


def _branch(case, test, body: list, otherwise: list) -> list:
    return body if test is None else [ast.copy_location(ast.If(test, body, otherwise), case.pattern)]


def _test(pattern: ast.pattern, subject: str) -> ast.expr | None:
    """Return the condition under which the subject fits a pattern, or None if it always does."""
    if isinstance(pattern, ast.MatchValue):
        return _compared(pattern, subject, ast.Eq(), pattern.value)
    if isinstance(pattern, ast.MatchSingleton):
        return _compared(pattern, subject, ast.Is(), ast.copy_location(ast.Constant(pattern.value), pattern))
    if isinstance(pattern, ast.MatchAs):
        return None if pattern.pattern is None else _test(pattern.pattern, subject)
    parts = [_test(part, subject) for part in pattern.patterns]
    return None if None in parts else ast.copy_location(ast.BoolOp(ast.Or(), parts), pattern)


def _compared(pattern, subject: str, operation, value: ast.expr) -> ast.expr:
    load = ast.copy_location(ast.Name(subject, ast.Load()), pattern)
    return ast.copy_location(ast.Compare(load, [operation], [value]), pattern)


def _captured(pattern: ast.pattern) -> list[str]:
    """Return the names to which a pattern assigns the subject."""
    names = [part.name for part in walk(pattern) if isinstance(part, ast.MatchAs) and part.name is not None]
    return list(dict.fromkeys(names))


def _load(subject: str, case) -> ast.Name:
    return _at(ast.Name(subject, ast.Load()), case)


def _at(node, case: ast.match_case):
    return ast.copy_location(node, case.pattern)
