"""Walks and copies syntax trees, and makes new ones from lines of text with holes.

A first launch spends most of its time on trees, so all three must be fast. Walk and copy leave out contexts
and operators, and each text is parsed only once.
"""

import ast
from functools import cache, lru_cache

_LEAVES = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
_WITHOUT_NODES = ("ctx", "op", "ops", "id", "attr", "kind", "type_comment")


@cache
def _inner_fields(kind: type) -> tuple:
    """Return the fields of a kind of node that may hold other nodes, except contexts and operators."""
    if kind is ast.Constant:
        return ()
    return tuple(field for field in kind._fields if field not in _WITHOUT_NODES)


def children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes directly inside a node, without contexts and operators."""
    found = []
    for field in _inner_fields(type(node)):
        value = getattr(node, field, None)
        if type(value) is list:
            found += [part for part in value if isinstance(part, ast.AST)]
        elif value is not None and isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """Return a node and all nodes inside it in the order of ``ast.walk``, without contexts and operators."""
    found = [node]
    for each in found:  # The list grows during the loop.
        if type(each) is not ast.Name and type(each) is not ast.Constant:
            found += children(each)
    return found


def copied(node):
    """Return a copy of a node, or of a list of nodes, that shares only contexts and operators with it."""
    if type(node) is list:
        return [copied(part) for part in node]
    if not isinstance(node, ast.AST) or isinstance(node, _LEAVES):
        return node
    new = type(node).__new__(type(node))  # Without fields: the constructor of Python 3.15 wants them all.
    vars(new).update((name, copied(value)) for name, value in vars(node).items())
    return new


def filled(text: str, at: ast.AST, holes: dict) -> list[ast.stmt]:
    """Return new statements for lines of text, at the source position of ``at``.

    Tracebacks then show the learner's line. ``holes`` maps names in the text to their replacements:
    expressions, lists of expressions for the arguments of a call, numbers, or other names. Parsed texts are
    cached, so a part that differs from call to call should be a hole.
    """
    line, column = at.lineno, at.col_offset
    return [make(holes, line, column) for make in _template(text, tuple(holes))]


@lru_cache(maxsize=1000)
def _template(text: str, holes: tuple) -> list:
    return [_maker(statement, holes) for statement in ast.parse(text).body]


def _maker(node: ast.AST, holes: tuple):
    """Return a function of (holes, line, column) that makes a new node like ``node``."""
    kind = type(node)
    if kind is ast.Name and node.id in holes:
        return _hole(node)
    if isinstance(node, _LEAVES):
        return lambda given, line, column: node
    fixed, varying = [], []
    for field in kind._fields:
        value = getattr(node, field)
        if type(value) is list:
            varying.append((len(fixed), _list_maker(value, holes)))
        elif isinstance(value, ast.AST) and not isinstance(value, _LEAVES):
            varying.append((len(fixed), _maker(value, holes)))
        fixed.append(value)
    placed = bool(kind._attributes)

    def make(given, line, column):
        parts = fixed.copy()
        for position, part in varying:
            parts[position] = part(given, line, column)
        return kind(*parts, lineno=line, col_offset=column) if placed else kind(*parts)

    return make


def _hole(node: ast.Name):
    name, context = node.id, node.ctx

    def make(given, line, column):
        hole = given[name]
        if type(hole) is str:
            return ast.Name(hole, context, lineno=line, col_offset=column)
        if type(hole) is int:
            return ast.Constant(hole, lineno=line, col_offset=column)
        if not hasattr(hole, "lineno"):
            hole.lineno, hole.col_offset = line, column
        return hole

    return make


def _list_maker(nodes: list, holes: tuple):
    """Return a function like that of :func:`_maker`, for a list of nodes.

    A hole in the list may be filled with a list of expressions.
    """
    makers = [(getattr(node, "id", None), _maker(node, holes)) for node in nodes]

    def make(given, line, column):
        made = []
        for name, part in makers:
            if type(given.get(name)) is list:
                made += given[name]
            else:
                made.append(part(given, line, column))
        return made

    return make
