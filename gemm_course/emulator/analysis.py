"""What can be known about a kernel from its source alone.

Which variables are live after a loop, which arrays it touches, which indices are known at compile time, and
which loops may run all their iterations at once without changing a result.
"""

import ast
from collections import Counter


def names_in(node, context=ast.Load) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


def assigned_names(statements) -> set[str]:
    """Names assigned by the statements and by what they contain."""
    return {name for statement in statements for name in names_in(statement, ast.Store)} | {
        s.target.id
        for top in statements
        for s in ast.walk(top)
        if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name)
    }


def contains_jump(node) -> bool:
    return any(isinstance(n, (ast.Break, ast.Continue, ast.Return)) for n in ast.walk(node))


def jumps_out(node) -> bool:
    """May this statement end an iteration of an enclosing loop, the loop itself, or the function?"""
    if isinstance(node, (ast.Break, ast.Continue, ast.Return)):
        return True
    if isinstance(node, (ast.For, ast.While)):
        return any(isinstance(n, ast.Return) for n in ast.walk(node))
    return any(jumps_out(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt))


# ---- liveness ----


class Liveness:
    """For every loop: the variables read after it, and those its body reads before it assigns them."""

    def __init__(self, function: ast.FunctionDef):
        self.after: dict[int, set] = {}
        self.carried: dict[int, set] = {}
        self._block(function.body, set())

    def _block(self, statements, live: set) -> set:
        for statement in reversed(statements):
            live = self._statement(statement, live)
        return live

    def _statement(self, node, live: set) -> set:
        if isinstance(node, (ast.For, ast.While)):
            return self._loop(node, live)
        if isinstance(node, ast.If):
            return names_in(node.test) | self._block(node.body, live) | self._block(node.orelse, live)
        if isinstance(node, ast.AugAssign):
            reads = names_in(node.value) | names_in(node.target)
            return live | reads | ({node.target.id} if isinstance(node.target, ast.Name) else set())
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            stored = set().union(*(names_in(t, ast.Store) for t in targets))
            indices = set().union(*(names_in(t) for t in targets))
            return (live - stored) | indices | (names_in(node.value) if node.value else set())
        return live | names_in(node)

    def _loop(self, node, live: set) -> set:
        head = names_in(node.iter) if isinstance(node, ast.For) else names_in(node.test)
        targets = names_in(node.target, ast.Store) if isinstance(node, ast.For) else set()
        self.after[id(node)] = live
        entry = live | (head if isinstance(node, ast.While) else set())
        while True:
            carried = self._block(node.body, entry)
            grown = entry | (carried - targets)
            if grown == entry:
                break
            entry = grown
        self.carried[id(node)] = carried - targets
        return entry | head


# ---- indices known at compile time ----


def static_names(function: ast.FunctionDef, constants: set[str], is_range) -> set[str]:
    """Variables whose value is known at compile time once loops of known length are unrolled."""
    sources: dict[str, list] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            sources.setdefault(node.target.id, []).append(("range", node.iter))
        elif isinstance(node, ast.Assign):
            for target, value in _pairs(node):
                for name in names_in(target, ast.Store):
                    kind = "value" if isinstance(target, ast.Name) else "unknown"
                    sources.setdefault(name, []).append((kind, value))
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            for name in names_in(node.target, ast.Store):
                sources.setdefault(name, []).append(("unknown", None))
    static = set(sources) | constants
    while True:
        failing = {
            name
            for name in static & set(sources)
            if not all(_static_source(source, static, is_range) for source in sources[name])
        }
        if not failing:
            return static
        static -= failing


def _static_source(source, static, is_range) -> bool:
    kind, node = source
    if kind == "unknown":
        return False
    if kind == "value":
        return is_static(node, static)
    bounds = is_range(node)
    return bounds is not None and all(is_static(bound, static) for bound in bounds)


def is_static(node, static: set[str]) -> bool:
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Name):
        return node.id in static
    if isinstance(node, ast.BinOp):
        return is_static(node.left, static) and is_static(node.right, static)
    if isinstance(node, ast.UnaryOp):
        return is_static(node.operand, static)
    if isinstance(node, ast.Slice):
        return all(part is None or is_static(part, static) for part in (node.lower, node.upper, node.step))
    if isinstance(node, ast.Tuple):
        return all(is_static(part, static) for part in node.elts)
    if isinstance(node, ast.IfExp):
        return all(is_static(part, static) for part in (node.test, node.body, node.orelse))
    if isinstance(node, ast.Compare):
        return all(is_static(part, static) for part in (node.left, *node.comparators))
    return False


def computed_size(shape: ast.expr, function: ast.FunctionDef) -> ast.expr | None:
    """The part of an array's shape that a kernel computes, or None: Numba accepts only numbers and names.

    It accepts neither a sum of two constants nor a variable that holds one.
    """
    return _computed(shape, _assigned_values(function), set())


def _computed(node, assigned: dict, seen: set) -> ast.expr | None:
    if isinstance(node, ast.Tuple):
        parts = node.elts
    elif isinstance(node, ast.Name):
        parts = assigned.get(node.id, []) if node.id not in seen else []
        seen = seen | {node.id}
    else:
        return node if names_in(node) and not isinstance(node, (ast.Attribute, ast.Subscript)) else None
    return next(filter(None, (_computed(part, assigned, seen) for part in parts)), None)


def _assigned_values(function: ast.FunctionDef) -> dict[str, list]:
    values: dict[str, list] = {}
    for node in ast.walk(function):
        for target, value in _pairs(node) if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Name):
                values.setdefault(target.id, []).append(value)
    return values


# ---- loops whose iterations may run at once ----


class Touched:
    """The arrays a loop body loads from and stores to, with the index of each access."""

    def __init__(self):
        self.loads: dict[str, list] = {}
        self.stores: dict[str, list] = {}

    def add(self, which: str, name: str, index):
        getattr(self, which).setdefault(name, []).append(index)

    @property
    def names(self) -> set[str]:
        return set(self.loads) | set(self.stores)


class BatchTest:
    """May all iterations of a loop run at once?

    They may if no iteration depends on another: every variable assigned in the body is assigned before it is
    read and not read after the loop (except reductions like ``acc += ...``, which are added up iteration by
    iteration); every array is either only loaded or only stored, or all its accesses go to the same element,
    a different one in each iteration. Barriers, atomics, jumps and inner loops of unknown length rule it out.
    """

    def __init__(self, liveness: Liveness, resolve):
        self.liveness, self.resolve = liveness, resolve
        self.verdicts: dict[int, Touched | None] = {}
        self.reductions: dict[int, list[int]] = {}  # id of an AugAssign -> ids of the loops it reduces over

    def examine(self, loop, variable: str, body) -> Touched | None:
        """The arrays touched if the iterations may run at once, else None."""
        if id(loop) not in self.verdicts:
            self.verdicts[id(loop)] = self._examine(loop, variable, body)
        return self.verdicts[id(loop)]

    def _examine(self, loop, variable, body):
        reductions = self._reductions(body)
        if reductions is None or not self._variables_are_private(loop, variable, body, reductions):
            return None
        touched = Touched()
        if not all(self._statement(s, touched) for s in body):
            return None
        if touched.names & (assigned_names(body) | {variable}):
            return None
        if not self._arrays_are_apart(touched, variable, body):
            return None
        for statement in reductions.values():
            self.reductions.setdefault(id(statement), []).append(id(loop))
        return touched

    @staticmethod
    def _reductions(body):
        """The ``name += ...`` statements by name; None if one is conditional or used elsewhere."""
        found = {}
        for statement in _unconditional(body):
            if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                if not isinstance(statement.op, ast.Add) or statement.target.id in found:
                    return None
                found[statement.target.id] = statement
        names = (n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name))
        uses = Counter(name for name in names if name in found)
        return None if any(count > 1 for count in uses.values()) else found

    def _variables_are_private(self, loop, variable, body, reductions) -> bool:
        carried = self.liveness.carried[id(loop)]
        after = self.liveness.after[id(loop)]
        for name in assigned_names(body) - set(reductions):
            if name == variable or name in after or name in carried:
                return False
        return variable not in after or isinstance(loop, ast.While)

    # ---- statements ----

    def _statement(self, node, touched) -> bool:
        if isinstance(node, ast.Pass):
            return True
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return (
                node.value is not None
                and all(self._target(t, touched) for t in targets)
                and self._value(node.value, touched)
            )
        if isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Subscript) and not self._subscript(node.target, touched, "loads"):
                return False
            return self._target(node.target, touched) and self._value(node.value, touched)
        if isinstance(node, ast.If):
            return self._value(node.test, touched) and all(
                self._statement(s, touched) for s in node.body + node.orelse
            )
        if isinstance(node, ast.For) and not node.orelse and isinstance(node.target, ast.Name):
            return self._value(node.iter, touched) and all(self._statement(s, touched) for s in node.body)
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Constant) or self._value(node.value, touched)
        return False

    def _target(self, node, touched) -> bool:
        if isinstance(node, ast.Name):
            return True
        if isinstance(node, ast.Tuple):
            return all(self._target(part, touched) for part in node.elts)
        return isinstance(node, ast.Subscript) and self._subscript(node, touched, "stores")

    def _subscript(self, node, touched, which) -> bool:
        if not isinstance(node.value, ast.Name):
            return which == "loads" and self._value(node.value, touched) and self._value(node.slice, touched)
        touched.add(which, node.value.id, node.slice)
        return self._value(node.slice, touched)

    def _value(self, node, touched) -> bool:
        if isinstance(node, ast.Subscript):
            return self._subscript(node, touched, "loads")
        if isinstance(node, ast.Call):
            return self._call(node, touched)
        children = (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
        return all(self._value(child, touched) for child in children)

    def _call(self, node, touched) -> bool:
        callee = self.resolve(node.func)
        if not getattr(callee, "elementwise", False):
            return False
        for which, positions in (("loads", callee.reads), ("stores", callee.writes)):
            for position in positions:
                array = node.args[position]
                if not isinstance(array, ast.Name):
                    return False
                touched.add(which, array.id, next(iter(node.args[position + 1 :]), None))
        return all(self._value(argument, touched) for argument in node.args)

    # ---- arrays ----

    def _arrays_are_apart(self, touched, variable, body) -> bool:
        definitions = _definitions(body)
        for name, stores in touched.stores.items():
            indices = stores + touched.loads.get(name, [])
            if any(index is None for index in indices):
                return False
            if not all(_depends(index, variable, definitions) for index in stores):
                return False
            if name not in touched.loads:
                continue
            one_element = len({ast.dump(index) for index in indices}) == 1
            if not one_element or not _moves(indices[0], variable, definitions, body):
                return False
        return True


def _unconditional(body):
    for statement in body:
        if isinstance(statement, ast.For):
            yield from _unconditional(statement.body)
        elif isinstance(statement, ast.If):
            for inner in ast.walk(statement):  # a conditional reduction: shown as a subtraction, so refused
                if isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
                    yield ast.copy_location(ast.AugAssign(inner.target, ast.Sub(), inner.value), inner)
        else:
            yield statement


def _definitions(body) -> dict[str, list]:
    """The expressions assigned to the private variables of a body."""
    found: dict[str, list] = {}
    for top in body:
        for node in ast.walk(top):
            if isinstance(node, ast.Assign):
                for target, value in _pairs(node):
                    for name in names_in(target, ast.Store):
                        found.setdefault(name, []).append(value)
    return found


def _pairs(node: ast.Assign):
    """(target, value) of an assignment; ``a, b = c, d`` gives two."""
    for target in node.targets:
        both_tuples = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
        if both_tuples and len(target.elts) == len(node.value.elts):
            yield from zip(target.elts, node.value.elts)
        else:
            yield target, node.value


def _depends(node, variable, definitions, seen=()) -> bool:
    for name in names_in(node):
        if name == variable:
            return True
        values = [] if name in seen else definitions.get(name, [])
        if any(_depends(value, variable, definitions, (*seen, name)) for value in values):
            return True
    return False


def _moves(index, variable, definitions, body) -> bool:
    """Does some part of the index differ in every iteration, whatever inner loops do?"""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    loops = (node for statement in body for node in ast.walk(statement) if isinstance(node, ast.For))
    inner = {loop.target.id for loop in loops if isinstance(loop.target, ast.Name)}
    return any(_linear(part, variable, definitions, inner) for part in parts)


def _linear(node, variable, definitions, inner, depth=0) -> bool:
    """Is it the variable, a multiple of it, or a sum of one such term and terms fixed in inner loops?"""
    if isinstance(node, ast.Name):
        if node.id == variable:
            return True
        values = definitions.get(node.id, [])
        return depth < 8 and len(values) == 1 and _linear(values[0], variable, definitions, inner, depth + 1)
    if isinstance(node, ast.BinOp):
        left, right = (_depends(side, variable, definitions) for side in (node.left, node.right))
        if left == right:
            return False
        moving, still = (node.left, node.right) if left else (node.right, node.left)
        if any(_depends(still, other, definitions) for other in inner):
            return False
        if isinstance(node.op, (ast.Add, ast.Sub)):
            return _linear(moving, variable, definitions, inner, depth + 1)
        if isinstance(node.op, ast.Mult):
            plain = isinstance(still, (ast.Constant, ast.Name))
            return plain and _linear(moving, variable, definitions, inner, depth + 1)
    return False
