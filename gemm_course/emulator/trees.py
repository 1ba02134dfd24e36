"""Syntax trees: a walk over one, and new code written as lines of text with holes.

A first launch spends most of its time on trees, so both are made to be fast: the walk leaves out what nobody
asks for, and each text is parsed once.
"""

import ast
from functools import cache, lru_cache

_LEAVES = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
_WITHOUT_NODES = ("ctx", "op", "ops", "id", "attr", "kind", "type_comment")


@cache
def _inner_fields(kind: type) -> tuple:
    """The fields of a kind of node that may hold other nodes, contexts and operators left out."""
    if kind is ast.Constant:
        return ()
    return tuple(field for field in kind._fields if field not in _WITHOUT_NODES)


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly inside a node, without contexts and operators."""
    found = []
    for field in _inner_fields(type(node)):
        value = getattr(node, field, None)
        if type(value) is list:
            found += [part for part in value if isinstance(part, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all inside it in the order of ``ast.walk``, without contexts and operators."""
    found = [node]
    for each in found:  # grows meanwhile
        if type(each) is not ast.Name and type(each) is not ast.Constant:
            found += children(each)
    return found


@lru_cache(maxsize=1000)
def _template(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


def filled(text: str, at: ast.AST, holes: dict) -> list[ast.stmt]:
    """Lines of new code, placed where ``at`` is, so that a traceback shows the learner's line.

    In place of the names in ``holes`` come expressions, lists of them for arguments of a call, numbers, or
    other names. What differs from line to line is better a hole: each text is remembered.
    """
    filler = _Filler(at, holes)
    return [filler.copy(statement) for statement in _template(text)]


class _Filler:
    """Copies a template."""

    def __init__(self, at, holes):
        self.lineno, self.col_offset, self.holes = at.lineno, at.col_offset, holes

    def copy(self, node):
        kind = type(node)
        if kind is ast.Name:
            new = self._name(node)
        elif kind is ast.Constant:
            new = ast.Constant(node.value)
        elif isinstance(node, _LEAVES):
            return node
        else:
            new = kind(*[self._part(getattr(node, field)) for field in kind._fields])
        if not hasattr(new, "lineno"):
            new.lineno, new.col_offset = self.lineno, self.col_offset
        return new

    def _name(self, node):
        hole = self.holes.get(node.id, node.id)
        if type(hole) is str:
            return ast.Name(hole, node.ctx)
        return ast.Constant(hole) if type(hole) is int else hole

    def _part(self, value):
        if type(value) is list:
            return [new for part in value for new in self._several(part)]
        return self.copy(value) if isinstance(value, ast.AST) else value

    def _several(self, part):
        hole = self.holes.get(part.id) if type(part) is ast.Name else None
        return hole if type(hole) is list else (self.copy(part) if isinstance(part, ast.AST) else part,)
