"""Turns the functions and lambdas inside a kernel into device functions.

Numba inlines such a function at each call, so its variables get the types of that call. The variables of a
device function get the types of the call too. The kernel's variables that the function uses become its first
parameters, and each call passes them. So, as in Numba, a call sees the values that they have at that moment.
"""

import ast
import types
from typing import NamedTuple

import numpy as np

from lockstep.errors import UnsupportedKernel

from . import names
from .analysis import assigned_names, walk_here
from .names import Callee
from .pruning import conditions, outcomes, prune
from .simplify import simplified
from .source import Source, parse, source_of
from .trees import copied, walk

# A function that is made here keeps the Inside that replaces its source in this attribute.
_ATTRIBUTE = "_emulator_inside"


class Inside(NamedTuple):
    """A function inside another function. ``definition`` has the parameters that a device function needs."""

    source: Source
    definition: ast.FunctionDef
    shown: dict
    code: types.CodeType
    defaults: tuple


class Read(NamedTuple):
    """A function without the functions inside it.

    ``definition`` has no dead branches: where a condition is known, it has only the branch that is taken.
    ``own``: the source with empty lines in place of the functions inside. ``inside``: name -> Inside.
    ``shown``: new names -> names in the source.
    """

    source: Source
    own: Source
    definition: ast.FunctionDef
    shown: dict
    inside: dict


class _Parsed(NamedTuple):
    """A function's source with all branches. ``conditions``: the conditions that Numba may know."""

    source: Source
    definition: ast.FunctionDef
    shown: dict
    conditions: list


_cache: dict = {}
_CACHE_SIZE = 600  # A function takes two entries of the cache.


def read(function) -> Read:
    """Read a function's source, and separate the functions inside it.

    Raises UnsupportedKernel if the source is not found, or for a function inside that Numba refuses.
    """
    parsed = _parsed(function)
    known = outcomes(parsed.conditions, function)
    return _cached((*_place(function), known), lambda: _read(function, parsed, known))


def identity(function) -> tuple:
    """Return a key of all that a function's new code depends on, except the types of its constants.

    The file name is a part of the key. In a notebook, a comment that silences a finding changes only that.
    """
    try:
        return *_place(function), outcomes(_parsed(function).conditions, function)
    except UnsupportedKernel:  # A function without source matters only if it is called.
        return _place(function)


def is_inside(function) -> bool:
    """Is it a function or lambda inside another one, which Numba inlines?"""
    return _ATTRIBUTE in vars(function)


def _place(function) -> tuple:
    return function.__code__, function.__code__.co_filename


def _cached(key, make):
    if key not in _cache:
        if len(_cache) >= _CACHE_SIZE:
            del _cache[next(iter(_cache))]
        _cache[key] = make()
    return _cache[key]


def _parsed(function) -> _Parsed:
    return _cached(_place(function), lambda: _parse(function))


def _parse(function) -> _Parsed:
    known = vars(function).get(_ATTRIBUTE)
    if known is not None:
        return _Parsed(known.source, known.definition, known.shown, conditions(known.definition))
    source = source_of(function)
    definition = parse(function, source)
    if "newaxis" in names.names_of(function.__code__):
        definition = _NewAxis(function).visit(definition)
    shown = simplified(definition)
    return _Parsed(source, definition, shown, conditions(definition))


class _NewAxis(ast.NodeTransformer):
    """A rewriter that puts None in place of ``np.newaxis``, so that an index shows what it is."""

    def __init__(self, function):
        self.function = function

    def visit_Attribute(self, node):
        root = node.value.id if isinstance(node.value, ast.Name) else None
        if node.attr == "newaxis" and names.outside([root], self.function).get(root) is np:
            return ast.copy_location(ast.Constant(None), node)
        return self.generic_visit(node)


def _read(function, parsed: _Parsed, known: tuple) -> Read:
    code, (source, definition, shown, _) = function.__code__, parsed
    if any(known) or False in known or _has_code_inside(code):
        definition = copied(definition)
    prune(definition, known, code.co_filename, shown)
    lifted = _Lifting(definition, code.co_filename).inside if _has_code_inside(code) else {}
    inside = {name: _compiled(new, code.co_filename, source, shown) for name, new in lifted.items()}
    return Read(source, _without(source, lifted), definition, shown, inside)


def _has_code_inside(code) -> bool:
    return any(isinstance(part, types.CodeType) for part in code.co_consts)


def environment(function) -> dict:
    """Return every outside name of a function with its value in a kernel, and the functions inside it."""
    values = names.environment(function)
    if not _has_code_inside(function.__code__):
        return values
    inside = read(function).inside
    callees = {name: Callee(_function(new)) for name, new in inside.items()}
    for callee in callees.values():
        used = names.names_of(callee.function.__code__)
        inner = {name: callees[name] for name in used if name in callees}
        callee.function.__globals__.update(names.outside(used, function) | inner)
    return values | callees


def _function(new: Inside):
    function = types.FunctionType(new.code, {}, new.definition.name, new.defaults)
    vars(function)[_ATTRIBUTE] = new
    return function


def _compiled(definition, filename, source, shown) -> Inside:
    tree = ast.fix_missing_locations(ast.Module([copied(definition)], []))
    tree.body[0].args.defaults = []
    code = next(c for c in compile(tree, filename, "exec").co_consts if isinstance(c, types.CodeType))
    defaults = tuple(map(ast.literal_eval, definition.args.defaults)) or None
    first, last = definition.lineno - source.start, definition.end_lineno - source.start
    lines = [line if first <= n <= last else "\n" for n, line in enumerate(source.lines)]
    return Inside(Source(lines, source.start), definition, shown, code, defaults)


def _without(source: Source, inside: dict) -> Source:
    lines = list(source.lines)
    for definition in inside.values():
        # A lambda is only a part of its lines, so the lines stay.
        if definition.body[0] is not getattr(definition, "expression", None):
            for line in range(definition.lineno, definition.end_lineno + 1):
                lines[line - source.start] = "\n"
    return Source(lines, source.start)


class _Lifting:
    """The separation of a definition from the functions inside it. ``inside``: name -> definition."""

    def __init__(self, definition: ast.FunctionDef, filename: str):
        self.definition, self.filename = definition, filename
        self.inside: dict[str, ast.FunctionDef] = {}
        self.variables = assigned_names(definition.body)
        self._find()
        arguments = {a.arg for a in ast.walk(definition.args) if isinstance(a, ast.arg)}
        self.variables = (self.variables | arguments) - self.inside.keys()
        if self.inside:
            self.used = {name: _outer_names(new) for name, new in self.inside.items()}
            self.passed = {name: self._passed(name) for name in self.inside}
            self._check_order()
            for name, new in self.inside.items():
                self._extend_calls(new, {name})
                new.args.args[:0] = [ast.arg(v, lineno=new.lineno, col_offset=0) for v in self.passed[name]]
            self._extend_calls(definition, set())

    def _refuse(self, node, sentence):
        raise UnsupportedKernel(sentence, self.filename, node.lineno)

    # ---- finding the functions inside ----

    def _find(self):
        self.definition.body = _TakeOut(self).block(self.definition.body)

    def add(self, name, node):
        """Record the function ``node``, a definition or a lambda. Refuse what Numba does not compile."""
        if name in self.inside:
            self._refuse(node, f"{name} is defined twice; give the second function another name")
        if isinstance(node, ast.Lambda):
            body = [ast.copy_location(ast.Return(node.body), node.body)]
            new = ast.copy_location(ast.FunctionDef(name, node.args, body, []), node)
            if "type_params" in ast.FunctionDef._fields:
                new.type_params = []
            new.expression = body[0]
            node = new
        for inner in ast.walk(node):
            if isinstance(inner, ast.Nonlocal):
                self._refuse(
                    inner,
                    f"in Numba an assignment to a `nonlocal` name changes no variable outside {name}: let "
                    f"{name} return the new value",
                )
        if node.decorator_list:
            self._refuse(node, "a function inside a kernel cannot have decorators; define it outside")
        if node.args.vararg or not all(map(_is_literal, node.args.defaults)):
            self._refuse(
                node,
                "a function inside a kernel has no *args, and as defaults only numbers; define it outside",
            )
        self.inside[name] = node

    # ---- the variables that the functions inside use ----

    def _passed(self, name, through=()) -> list[str]:
        """Return the kernel's variables that a function uses, directly or through the functions it calls."""
        if name in through:
            self._refuse(self.inside[name], f"{name} calls itself; only a function outside the kernel can")
        used = self.used[name]
        called = [self._passed(other, (*through, name)) for other in sorted(used & self.inside.keys())]
        return sorted((used & self.variables).union(*called))

    def _check_order(self):
        """Refuse, as Numba does, a function that uses a variable which is only set below its definition."""
        first = {a.arg: 0 for a in ast.walk(self.definition.args) if isinstance(a, ast.arg)}
        for node in walk(self.definition):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                first[node.id] = min(node.lineno, first.get(node.id, node.lineno))
        for name, new in self.inside.items():
            for variable in sorted(self.used[name] & first.keys()):
                if first[variable] > new.lineno:
                    self._refuse(
                        new,
                        f"{name} uses {variable}, which is set only below it: Numba refuses that; "
                        f"define {name} further down",
                    )

    def _extend_calls(self, definition, own):
        """Add to each call the variables that the called function uses.

        ``own``: the name of the function around the calls, or nothing if that is the kernel.
        """
        hidden = {a.arg for a in ast.walk(definition.args) if isinstance(a, ast.arg)} if own else set()
        hidden |= assigned_names(definition.body) if own else set()
        for node in ast.walk(definition):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.passed:
                passed = self.passed[node.func.id]
                if clash := hidden.intersection(passed):
                    self._refuse(
                        node,
                        f"{node.func.id} uses {min(clash)} of the kernel, and there is another {min(clash)} "
                        "here: give one of them another name",
                    )
                loads = [ast.copy_location(ast.Name(v, ast.Load()), node) for v in passed]
                node.args = [*loads, *node.args]


def _is_literal(node) -> bool:
    try:
        return isinstance(ast.literal_eval(node), (bool, int, float, complex))
    except ValueError:
        return False


def _outer_names(definition) -> set[str]:
    """Return the names that a function takes from around it, itself or in the functions inside it."""
    own = assigned_names(definition.body) | {
        a.arg for a in ast.walk(definition.args) if isinstance(a, ast.arg)
    }
    found = set()
    for statement in definition.body:
        for node in walk_here(statement):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.FunctionDef):
                found |= _outer_names(node)
            elif isinstance(node, ast.Lambda):
                found |= _outer_names(ast.FunctionDef("", node.args, [ast.Expr(node.body)], []))
    return found - own


class _TakeOut(ast.NodeTransformer):
    """A rewriter that removes definitions, and lambdas that are assigned or called, from a function.

    It gives each of them to ``lifting``.
    """

    def __init__(self, lifting):
        self.lifting = lifting

    def block(self, statements) -> list:
        kept = [new for statement in statements if (new := self.visit(statement)) is not None]
        return kept or [ast.copy_location(ast.Pass(), statements[0])]

    def visit_FunctionDef(self, node):
        self.lifting.add(node.name, node)

    def visit_Assign(self, node):
        if isinstance(node.value, ast.Lambda) and all(isinstance(t, ast.Name) for t in node.targets):
            for target in node.targets:
                self.lifting.add(target.id, node.value)
            return None
        return self.generic_visit(node)

    def visit_Call(self, node):
        if isinstance(node.func, ast.Lambda):
            name = f"lambda_{node.func.lineno}_{node.func.col_offset}"
            self.lifting.add(name, node.func)
            node.func = ast.copy_location(ast.Name(name, ast.Load()), node.func)
        return self.generic_visit(node)

    def visit_Lambda(self, node):
        return node

    def _with_blocks(self, node):
        for field in ("body", "orelse"):
            if statements := getattr(node, field):
                setattr(node, field, self.block(statements))
        for field in ("test", "iter"):
            if hasattr(node, field):
                setattr(node, field, self.visit(getattr(node, field)))
        return node

    visit_If = visit_For = visit_While = _with_blocks
