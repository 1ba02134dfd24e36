"""Finds which assignment each use of a variable refers to, and gives every variable of a kernel one type.

Numba gives each assignment of a variable a type of its own. Where paths come together, a variable that is
used afterwards gets the type that holds its values on all paths. After ``v = 0.0`` and
``if n > 3: v = x[i]``, ``v * v`` is computed in float64, also where the branch is taken and x is float32.
Here every assignment is a *version* of its variable. Every place where versions come together is a version
too, like a phi function in static single assignment form. :mod:`.inference` finds the versions' types. If
the types of a variable differ, :class:`Split` rewrites the kernel: one variable per type, with casts where
paths meet.
"""

import ast

from lockstep.reading.analysis import assigned_names
from lockstep.reading.trees import children, walk

# MARK is in the names of versions, because no variable of a kernel is likely to contain it.
MARK = "·"

_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Await, ast.Yield)
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Assert, ast.Raise, ast.Return)


OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.Call)


class NoVersions(Exception):
    """An error for a function with syntax in which variables cannot be followed."""


class Version:
    """An assignment of a variable, or a meeting (a phi) of ``sources``, which are pairs (version, edge)."""

    __slots__ = ("number", "variable", "sources", "used")

    def __init__(self, number, variable, sources=None):
        self.number, self.variable, self.sources = number, variable, sources
        self.used = False

    @property
    def name(self) -> str:
        return f"{self.variable}{MARK}{self.number}"

    @property
    def matters(self) -> bool:
        """Whether Numba gives this version a type: a meeting gets one only if it is used afterwards."""
        return self.sources is None or self.used


class Edge:
    """The end of a path through a function.

    ``place``: "before" for the point before the statement ``node``, "body" or "orelse" for the end of that
    block of it, "through" for the end of a loop that no break ends. ``path``: for each branch around the
    edge whose test has a constant outcome, (number of the decision, outcome that leads here). ``through``:
    for the end of a loop, the edges to the loop's head, from before the loop and from its iterations.
    """

    __slots__ = ("place", "node", "path", "through")

    def __init__(self, place, node, path, through=None):
        self.place, self.node, self.path, self.through = place, node, path, through


class Step:
    """A part of a path: a "statement", a "test", the "element" of an iteration, a "meeting" of versions."""

    __slots__ = ("kind", "node", "path", "decided")

    def __init__(self, kind, node, path, decided=None):
        self.kind, self.node, self.path, self.decided = kind, node, path, decided


class _OpenLoop:
    def __init__(self):
        self.breaks, self.continues = [], []


class Versions:
    """All versions of a function's variables.

    ``loads`` and ``stores`` map the id of a name's node to its version. ``choices`` are the conditional
    expressions, and the ``and`` and ``or`` whose value is used. ``steps`` is the function without its jumps.
    ``decidable`` tells whether a test has a constant outcome, because Numba then drops the other branch.
    """

    def __init__(self, definition: ast.FunctionDef, decidable):
        self.definition, self.decidable = definition, decidable
        self.all: list[Version] = []
        self.steps: list[Step] = []
        self.loads: dict[int, Version] = {}
        self.stores: dict[int, Version] = {}
        self.first: dict[str, Version] = {}
        self.undefined: dict[str, Version] = {}
        self.choices: list[ast.expr] = []
        # The types of these operations may widen while the types in a loop are found.
        self.operations: list[ast.AST] = []
        self.looped = any(isinstance(node, (ast.For, ast.While)) for node in walk(definition))
        self.returns: list[ast.Return] = []
        self.path: tuple = ()
        self.decisions = 0
        self.loops: list[_OpenLoop] = []
        given = definition.args
        arguments = [*given.posonlyargs, *given.args, *filter(None, [given.vararg]), *given.kwonlyargs]
        arguments = [argument.arg for argument in arguments]
        self.variables = set(arguments) | assigned_names(definition.body)
        self.parameters = [self._new(name) for name in arguments]
        self._block(definition.body, {version.variable: version for version in self.parameters})
        self._mark_used()

    @property
    def trivial(self) -> bool:
        """Whether every variable keeps one type, whatever the types of the arguments."""
        names = [version.variable for version in self.all]
        return len(set(names)) == len(names) and not self.choices and len(self.returns) < 2

    def _new(self, variable, sources=None) -> Version:
        version = Version(len(self.all), variable, sources)
        self.all.append(version)
        return version

    def _mark_used(self):
        pending = list(self.loads.values())
        while pending:
            version = pending.pop()
            if not version.used:
                version.used = True
                pending += [source for source, _ in version.sources or ()]

    # ---- expressions ----

    def _expression(self, node, now, tested=False):
        """Note which versions an expression uses. ``tested``: whether only the expression's truth matters."""
        if isinstance(node, ast.Name):
            if node.id in self.variables:
                self.loads[id(node)] = now.get(node.id) or self._undefined(node.id)
        elif isinstance(node, ast.NamedExpr):
            self._expression(node.value, now)
            self._target(node.target, now)
        elif isinstance(node, _SCOPES):
            raise NoVersions
        elif isinstance(node, ast.BoolOp):
            for part in node.values:
                self._expression(part, now, tested)
            if not tested:
                self.choices.append(node)
        elif isinstance(node, ast.IfExp):
            self._expression(node.test, now, tested=True)
            self._expression(node.body, now)
            self._expression(node.orelse, now)
            self.choices.append(node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._expression(node.operand, now, tested=True)
        else:
            for child in children(node):
                self._expression(child, now)
            if self.looped and isinstance(node, OPERATIONS):
                self.operations.append(node)

    def _undefined(self, variable) -> Version:
        """Return the version that Numba takes where none is set: the first one, if it stands further up."""
        if variable in self.first:
            return self.first[variable]
        return self.undefined.setdefault(variable, Version("undefined", variable))

    def _target(self, node, now):
        if isinstance(node, ast.Name):
            self.stores[id(node)] = now[node.id] = self._new(node.id)
            self.first.setdefault(node.id, now[node.id])
        elif isinstance(node, (ast.Tuple, ast.List)):
            for part in node.elts:
                self._target(part, now)
        elif isinstance(node, ast.Starred):
            self._target(node.value, now)
        else:
            self._expression(node, now)

    # ---- statements; each returns the current versions after it, or None if no path gets past it ----

    def _block(self, statements, now):
        for statement in statements:
            if now is None:
                return None
            now = self._statement(statement, now)
        return now

    def _statement(self, node, now):
        if isinstance(node, ast.If):
            return self._if(node, now)
        if isinstance(node, (ast.For, ast.While)):
            return self._loop(node, now)
        if isinstance(node, (ast.Break, ast.Continue)):
            left = self.loops[-1].breaks if isinstance(node, ast.Break) else self.loops[-1].continues
            left.append((now, Edge("before", node, self.path)))
            return None
        if isinstance(node, _SIMPLE):
            return self._simple(node, now)
        if isinstance(node, (ast.Pass, ast.Delete)):
            return now
        raise NoVersions

    def _simple(self, node, now):
        for field in ("value", "test", "exc", "msg"):
            part = getattr(node, field, None)
            if part is not None:
                self._expression(part, now)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self.loads[id(node.target)] = now.get(node.target.id) or self._undefined(node.target.id)
            self.operations.append(node)
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            if target is not None:
                self._target(target, now)
        self.steps.append(Step("statement", node, self.path))
        if isinstance(node, ast.Return):
            self.returns.append(node)
        return None if isinstance(node, (ast.Return, ast.Raise)) else now

    def _decision(self, test):
        """Return a new decision's number for a test with a constant outcome, else None."""
        if not self.decidable(test):
            return None
        self.decisions += 1
        return self.decisions

    def _if(self, node, now):
        self._expression(node.test, now, tested=True)
        decided = self._decision(node.test)
        self.steps.append(Step("test", node.test, self.path, decided))
        outer, ends = self.path, []
        for outcome, field in ((True, "body"), (False, "orelse")):
            if decided is not None:
                self.path = (*outer, (decided, outcome))
            ends.append((self._block(getattr(node, field), dict(now)), Edge(field, node, self.path)))
        self.path = outer
        return self._meet(ends)

    def _meet(self, ends):
        """Return the versions where paths meet. ``ends``: (versions, edge) for each path."""
        ends = [(versions, edge) for versions, edge in ends if versions is not None]
        if not ends:
            return None
        after = {}
        for name in {name: None for versions, _ in ends for name in versions}:
            sources = [(versions[name], edge) for versions, edge in ends if name in versions]
            if len({version for version, _ in sources}) == 1:
                after[name] = sources[0][0]
            else:
                after[name] = self._new(name, sources)
                self.steps.append(Step("meeting", after[name], self.path))
        return after

    def _loop(self, node, now):
        counted = isinstance(node, ast.For)
        if counted:
            self._expression(node.iter, now)
        entry = Edge("before", node, self.path)
        heads = self._heads(node, now, entry)
        body = {**now, **heads}
        loop, outer, decided = _OpenLoop(), self.path, None
        self.loops.append(loop)
        if counted:
            self._target(node.target, body)
            self.steps.append(Step("element", node, self.path))
            exhausted = {**now, **heads}
        else:
            if any(isinstance(part, ast.NamedExpr) for part in walk(node.test)):
                raise NoVersions
            self._expression(node.test, body, tested=True)
            decided = self._decision(node.test)
            self.steps.append(Step("test", node.test, self.path, decided))
            exhausted = dict(body)
        if decided is not None:
            self.path = (*outer, (decided, True))
        end = self._block(node.body, body)
        back = [*loop.continues] if end is None else [(end, Edge("body", node, self.path)), *loop.continues]
        for versions, edge in back:
            for name, head in heads.items():
                if name in versions:
                    head.sources.append((versions[name], edge))
        self.path = outer if decided is None else (*outer, (decided, False))
        if node.orelse:
            ends = [(self._block(node.orelse, exhausted), Edge("orelse", node, self.path))]
        else:
            ends = [(exhausted, Edge("through", node, self.path, [entry, *(edge for _, edge in back)]))]
        if not counted and isinstance(node.test, ast.Constant) and node.test.value:
            ends = []  # Only a break ends a loop whose test is always true.
        self.path = outer
        self.loops.pop()
        return self._meet([*ends, *loop.breaks])

    def _heads(self, node, now, entry) -> dict:
        """Return a loop's phis, where versions from before it and from its iterations come together."""
        heads = {}
        for name in sorted(assigned_names([node])):
            heads[name] = self._new(name, [(now[name], entry)] if name in now else [])
            self.steps.append(Step("meeting", heads[name], self.path))
        return heads


class Cast(ast.expr):
    """An AST node that casts ``value`` to ``kind``: the name of a dtype, or a tuple of such names."""

    _fields = ("value", "kind")


def variable_of(name: str) -> str:
    """Return the kernel's own name of a variable that has been renamed for one of its types."""
    return name.split(MARK)[0]


def is_copy(node) -> bool:
    """Tell whether a node is an assignment by which :class:`Split` casts a variable where paths meet."""
    if not (isinstance(node, ast.Assign) and isinstance(node.value, Cast)):
        return False
    names = *node.targets, node.value.value
    return all(isinstance(n, ast.Name) for n in names) and len({variable_of(n.id) for n in names}) == 1


class Rewriter:
    """A copier of trees. A subclass has a method ``copy_X`` for each class X of AST nodes that it changes."""

    def copy(self, node):
        if isinstance(node, list):
            return [self.copy(part) for part in node]
        if not isinstance(node, ast.AST):
            return node
        method = getattr(self, f"copy_{type(node).__name__}", self.plain)
        new = method(node)
        return ast.copy_location(new, node) if hasattr(node, "lineno") else new

    def plain(self, node):
        return type(node)(**{name: self.copy(value) for name, value in ast.iter_fields(node)})

    def augmented(self, node, old: str, new: str):
        """Return ``new = old op value`` for ``name op= value``."""
        load = ast.copy_location(ast.Name(old, ast.Load()), node.target)
        store = ast.copy_location(ast.Name(new, ast.Store()), node.target)
        value = ast.copy_location(ast.BinOp(load, node.op, self.copy(node.value)), node)
        return ast.Assign([store], value)


def is_number(kind) -> bool:
    """Tell whether a type is that of a number or of a tuple of numbers."""
    return isinstance(kind, str) or (type(kind) is tuple and all(map(is_number, kind)))


def is_array(kind) -> bool:
    return getattr(kind, "what", (None,))[0] == "array"


def _label(kind) -> str:
    """Return a type's name in a form that can be a part of a variable's name."""
    if is_array(kind):
        return "array"
    return str(kind).translate({ord(c): None for c in "'() "}).replace(",", "_")


class Split(Rewriter):
    """A rewriting of a function in which each variable keeps one type.

    ``kinds``: the type of each version, as :func:`.inference.kind_of` names it, or None if it is not known.
    ``choices``: for each choice, (type of the whole, types of the parts). ``grown``: for each operation,
    (type that holds every outcome found so far, type of the last outcome). ``result``: (type of what the
    function returns, type of each returned value).
    """

    def __init__(self, versions: Versions, kinds, choices, grown, result):
        self.versions, self.kinds, self.result = versions, kinds, result
        self.grown = {id(node): found for node, found in zip(versions.operations, grown) if found}
        self.choices = {id(node): found for node, found in zip(versions.choices, choices)}
        self.names = self._names()
        self.copies: dict[tuple, list] = {}
        for version in versions.all:
            if version.sources is not None and version.used and is_number(kinds[version.number]):
                for source, edge in version.sources:
                    self._arrive(version, source, edge)

    @property
    def needed(self) -> bool:
        """Whether types differ: of a variable, of a choice's parts, of an operation, of returned values."""
        return (
            any(name != version.variable for version, name in zip(self.versions.all, self.names))
            or any(
                found and any(_differs(part, found[0]) for part in found[1])
                for found in self.choices.values()
            )
            or any(_differs(kind, whole) for whole, kind in self.grown.values())
            or any(_differs(kind, self.result[0]) for kind in self.result[1])
        )

    @property
    def key(self) -> tuple:
        """A key that two rewritings of one function share only if they are equal."""
        return (
            tuple(self.names),
            tuple(self.kinds),
            tuple(self.choices.values()),
            tuple(self.grown.values()),
            self.result,
        )

    def _names(self) -> list[str]:
        """Return a name for each version: the variable's, and the type too if the variable has several."""
        first: dict[str, object] = {}
        names = []
        mixed = self._mixed()
        for version, kind in zip(self.versions.all, self.kinds):
            name = version.variable
            several = is_number(kind) or name in mixed
            if version.matters and several and first.setdefault(name, kind) != kind:
                name = f"{name}{MARK}{_label(kind)}"
            names.append(name)
        return names

    def _mixed(self) -> set[str]:
        """Return the variables of known types that are an array in one place and a number in another."""
        found: dict[str, list] = {}
        for version, kind in zip(self.versions.all, self.kinds):
            if version.matters:
                found.setdefault(version.variable, []).append(kind)
        return {
            name
            for name, kinds in found.items()
            if any(map(is_array, kinds)) and all(is_array(kind) or is_number(kind) for kind in kinds)
        }

    def kind_of(self, name):
        """Return the type of the variable with this name in the new tree, or None if it holds no numbers."""
        known = (kind for kind, other in zip(self.kinds, self.names) if other == name and is_number(kind))
        return next(known, None)

    def _arrive(self, version, source, edge, after=None):
        """Add a cast at the end of ``edge``, from ``source`` to the type of the meeting ``version``."""
        if edge.through is not None:
            for back in edge.through:
                self._arrive(version, source, back)
            return
        if source.number == "undefined" or self.names[source.number] == self.names[version.number]:
            return
        if not is_number(self.kinds[source.number]):
            return
        place = edge.node.body[-1] if edge.place == "body" else edge.node
        value = Cast(ast.Name(self.names[source.number], ast.Load()), self.kinds[version.number])
        copy = ast.Assign([ast.Name(self.names[version.number], ast.Store())], value)
        for node in walk(copy):
            if "lineno" in node._attributes:
                ast.copy_location(node, place)
        self.copies.setdefault((edge.place, id(edge.node)), []).append(copy)

    # ---- the new tree ----

    def function(self) -> ast.FunctionDef:
        return self.copy(self.versions.definition)

    def copy(self, node):
        if isinstance(node, list) and node and isinstance(node[0], ast.stmt):
            return [new for statement in node for new in (*self._before(statement), self.copy(statement))]
        return super().copy(node)

    def _before(self, statement):
        return self.copies.get(("before", id(statement)), ())

    def _inside(self, node, field):
        return [*self.copy(getattr(node, field)), *self.copies.get((field, id(node)), ())]

    def _with_blocks(self, node):
        fields = {
            name: self.copy(value) for name, value in ast.iter_fields(node) if name not in ("body", "orelse")
        }
        return type(node)(**fields, body=self._inside(node, "body"), orelse=self._inside(node, "orelse"))

    copy_If = copy_For = copy_While = _with_blocks

    def copy_Name(self, node):
        version = self.versions.stores.get(id(node)) or self.versions.loads.get(id(node))
        known = version is not None and version.number != "undefined"
        return ast.Name(self.names[version.number] if known else node.id, self.copy(node.ctx))

    def copy_AugAssign(self, node):
        if not isinstance(node.target, ast.Name) or id(node.target) not in self.versions.loads:
            return self.plain(node)  # The target is an element, or no path reaches the statement.
        old, new = self.versions.loads[id(node.target)], self.versions.stores[id(node.target)]
        old = node.target.id if old.number == "undefined" else self.names[old.number]
        new = self.names[new.number]
        whole, kind = self.grown.get(id(node), (None, None))
        if old == new and not _differs(kind, whole):
            return self.plain(node)
        assign = self.augmented(node, old, new)
        if _differs(kind, whole):
            assign.value = ast.copy_location(Cast(assign.value, whole), node)
        return assign

    def _operation(self, node):
        whole, kind = self.grown.get(id(node), (None, None))
        new = ast.copy_location(self.plain(node), node)
        return Cast(new, whole) if _differs(kind, whole) else new

    copy_BinOp = copy_UnaryOp = copy_Call = _operation

    def copy_IfExp(self, node):
        body, orelse = self._cast(node, (node.body, node.orelse))
        return ast.IfExp(self.copy(node.test), body, orelse)

    def copy_BoolOp(self, node):
        return ast.BoolOp(node.op, self._cast(node, node.values))

    def _cast(self, node, parts) -> list:
        found = self.choices.get(id(node)) or (None, (None,) * len(parts))
        return [self._as(found[0], kind, part) for kind, part in zip(found[1], parts)]

    def _as(self, wanted, kind, node):
        new = self.copy(node)
        return ast.copy_location(Cast(new, wanted), node) if _differs(kind, wanted) else new

    def copy_Return(self, node):
        if node.value is None:
            return ast.Return(None)
        kind = self.result[1][self.versions.returns.index(node)] if node in self.versions.returns else None
        return ast.Return(self._as(self.result[0], kind, node.value))


def _differs(kind, wanted) -> bool:
    """Tell whether both are known types of numbers, and are different."""
    return is_number(kind) and is_number(wanted) and kind != wanted
