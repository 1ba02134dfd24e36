"""Rewrites a kernel's source in fewer kinds of syntax, so that the translator has fewer of them to know."""

import ast

from .analysis import assigned_names, names_in
from .matches import Matches
from .trees import walk


def simplified(definition: ast.FunctionDef) -> dict[str, str]:
    """Simplify ``definition`` in place. Return a map from each new name to the kernel's name.

    A variable whose name starts with an underscore is renamed, because the translator's own names start with
    one. ``match`` becomes branches. ``global`` and ``nonlocal`` are left out for names that are only read. A
    loop over ``a, b`` gets one variable, from which the two are assigned. A list after ``in`` becomes a
    tuple, in a loop and in a comparison. ``(a and b) and c`` becomes ``a and b and c``, because Python
    compiles both to the same code. So Numba never sees the 3.0 of ``(a and 3.0) and c``.
    """
    if any(isinstance(node, (ast.Match, ast.Global, ast.Nonlocal)) for node in walk(definition)):
        Matches().visit(definition)
        _OnlyRead().visit(definition)
    shown = _rename_underscored(definition)
    _LoopTargets().visit(definition)
    _Members().visit(definition)
    _Chains().visit(definition)
    return shown


def _rename_underscored(definition) -> dict[str, str]:
    arguments = {node.arg for node in walk(definition) if isinstance(node, ast.arg)}
    functions = {n.name for n in walk(definition) if isinstance(n, ast.FunctionDef) and n is not definition}
    own = names_in(definition, ast.Store) | arguments | functions
    used = own | names_in(definition)
    new_names = {}
    for name in sorted(own):
        if name.startswith("_") and name != "_":
            new = f"u{name}"
            while new in used:
                new = f"u{new}"
            used.add(new)
            new_names[name] = new
    if new_names:
        _Renamer(new_names).visit(definition)
    return {new: old for old, new in new_names.items()}


class _Renamer(ast.NodeTransformer):
    def __init__(self, new_names):
        self.new_names = new_names

    def visit_Name(self, node):
        node.id = self.new_names.get(node.id, node.id)
        return node

    def visit_arg(self, node):
        node.arg = self.new_names.get(node.arg, node.arg)
        return node

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        node.name = self.new_names.get(node.name, node.name)
        return node


class _OnlyRead(ast.NodeTransformer):
    """A rewriter that leaves out ``global`` and ``nonlocal`` where a function only reads their names."""

    def __init__(self):
        self.assigned: set[str] = set()

    def visit_FunctionDef(self, node):
        outer, self.assigned = self.assigned, assigned_names(node.body)
        self.generic_visit(node)
        self.assigned = outer
        return node

    def _declaration(self, node):
        return node if self.assigned & set(node.names) else ast.copy_location(ast.Pass(), node)

    visit_Global = visit_Nonlocal = _declaration


class _LoopTargets(ast.NodeTransformer):
    """A rewriter that turns ``for a, b in values`` into ``for each in values: a, b = each``."""

    def __init__(self):
        self.count = 0

    def visit_For(self, node):
        self.generic_visit(node)
        node.iter = _no_list(node.iter)
        if isinstance(node.target, (ast.Tuple, ast.List)):
            self.count += 1
            each = ast.copy_location(ast.Name(f"_each{self.count}", ast.Store()), node.target)
            value = ast.copy_location(ast.Name(each.id, ast.Load()), node.target)
            first = ast.copy_location(ast.Assign([node.target], value), node.target)
            node.target, node.body = each, [first, *node.body]
        return node


class _Members(ast.NodeTransformer):
    """A rewriter that turns ``x in [a, b]`` into ``x in (a, b)``."""

    def visit_Compare(self, node):
        self.generic_visit(node)
        for place, op in enumerate(node.ops):
            if isinstance(op, (ast.In, ast.NotIn)):
                node.comparators[place] = _no_list(node.comparators[place])
        return node


def _no_list(node):
    """Return a list as a tuple, and any other expression as it is."""
    return ast.copy_location(ast.Tuple(node.elts, ast.Load()), node) if isinstance(node, ast.List) else node


class _Chains(ast.NodeTransformer):
    """A rewriter that merges each ``and`` (or ``or``) with those directly inside it."""

    def visit_BoolOp(self, node):
        self.generic_visit(node)
        inside = [
            (isinstance(part, ast.BoolOp) and type(part.op) is type(node.op), part) for part in node.values
        ]
        node.values = [value for chained, part in inside for value in (part.values if chained else [part])]
        return node
