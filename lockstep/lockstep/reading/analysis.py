"""Finds facts about a kernel that follow from its source alone.

It finds which variables are live after a loop, which arrays a loop touches, and which indices are known at
compile time. It also finds which loops may run all their iterations at once, or continue with few lanes,
without changing a result.
"""

import ast
import operator
import warnings
from collections import Counter

from lockstep.library.cuda_api import SAME_FOR_ALL, Special, is_lanewise

from .trees import children, walk


def names_in(node, context=ast.Load) -> set[str]:
    return {n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


def walk_here(node):
    """Yield nodes like ``ast.walk``, except those inside functions and lambdas, whose code runs elsewhere."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            todo += children(node)


def assigned_names(statements) -> set[str]:
    """Return the names that the statements, or statements inside them, assign."""
    inside = [node for statement in statements for node in walk_here(statement)]
    assigned = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return assigned | {n.name for n in inside if isinstance(n, ast.FunctionDef)}


def contains_jump(node) -> bool:
    return any(isinstance(n, (ast.Break, ast.Continue, ast.Return)) for n in walk_here(node))


def jumps_out(node) -> bool:
    """Tell whether a statement may end an iteration of a loop around it, that loop, or the function."""
    if isinstance(node, (ast.Break, ast.Continue, ast.Return)):
        return True
    if isinstance(node, ast.FunctionDef):
        return False
    if isinstance(node, (ast.For, ast.While)):
        returns = any(isinstance(n, ast.Return) for n in walk_here(node))
        return returns or any(map(jumps_out, node.orelse))
    return any(jumps_out(child) for child in children(node) if isinstance(child, ast.stmt))


# ---- liveness ----


class Liveness:
    """The liveness analysis of a function's loops.

    ``after``: id of a loop -> the variables that are live after it. ``carried``: id of a loop -> the
    variables that its body reads before it assigns them, so that one iteration may get them from another.
    """

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
        live = self._block(node.orelse, live)
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


# ---- aliases: names that may refer to one array ----


class Aliases:
    """The alias analysis of a function, which finds the names whose arrays an expression may refer to.

    It ignores the order of assignments: a name may refer to anything that is assigned to it somewhere.
    """

    _NUMBERS = ("shape", "ndim", "size", "dtype", "strides", "itemsize", "nbytes")

    def __init__(self, function: ast.FunctionDef):
        self.sources: dict[str, list] = {}
        for node in walk(function):
            if isinstance(node, ast.Assign):
                for target, value in pairs(node):
                    self._add(target, value)
            elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
                self._add(node.target, node.value)
            elif isinstance(node, ast.For):
                self._add(node.target, node.iter)

    def _add(self, target, value):
        for name in names_in(target, ast.Store):
            self.sources.setdefault(name, []).append(value)

    def of(self, node) -> set[str]:
        """Return the names whose arrays ``node`` may refer to, directly or through other names."""
        found, open_ = set(), self._direct(node)
        while open_:
            found |= open_
            values = [value for name in open_ for value in self.sources.get(name, [])]
            open_ = set().union(*map(self._direct, values)) - found
        return found

    def _direct(self, node) -> set[str]:
        if isinstance(node, ast.Name):
            return {node.id}
        if isinstance(node, (ast.Subscript, ast.Starred, ast.NamedExpr)):
            return self._direct(node.value)
        if isinstance(node, ast.Attribute):
            return set() if node.attr in self._NUMBERS else self._direct(node.value)
        if isinstance(node, ast.IfExp):
            return self._direct(node.body) | self._direct(node.orelse)
        if isinstance(node, (ast.Tuple, ast.List)):
            return self._of_all(node.elts)
        if isinstance(node, ast.BoolOp):
            return self._of_all(node.values)
        if isinstance(node, ast.Call):  # A device function may return one of its arguments.
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            return self._of_all(values) | (
                self._direct(node.func) if isinstance(node.func, ast.Attribute) else set()
            )
        return set()

    def _of_all(self, nodes) -> set[str]:
        return set().union(*map(self._direct, nodes)) if nodes else set()


# ---- loops that may wait for other threads ----


# For each comparison, these operations bring a counter closer to the end of the loop.
_TOWARDS = {
    ast.Lt: (ast.Add, ast.Mult, ast.LShift),
    ast.LtE: (ast.Add, ast.Mult, ast.LShift),
    ast.Gt: (ast.Sub, ast.FloorDiv, ast.Div, ast.RShift),
    ast.GtE: (ast.Sub, ast.FloorDiv, ast.Div, ast.RShift),
}


def counts_to_its_end(loop: ast.While) -> bool:
    """Tell whether the test of a loop compares a counter that its body moves towards the end."""
    changes = {}
    for node in walk(ast.Module(loop.body, [])):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            changes.setdefault(node.target.id, set()).add(type(node.op))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
            if ast.unparse(node.targets[0]) == ast.unparse(node.value.left):
                changes.setdefault(ast.unparse(node.targets[0]), set()).add(type(node.value.op))
    tests = loop.test.values if isinstance(loop.test, ast.BoolOp) else [loop.test]
    return any(
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and bool(changes.get(test.left.id, set()) & set(_TOWARDS.get(type(test.ops[0]), ())))
        for test in tests
    )


def hangs_on_memory(loop: ast.While, may_change) -> bool:
    """Tell whether the end of a loop depends on what it loads. ``may_change`` tells what is a load."""
    loose: set = set()

    def depends(expression) -> bool:
        nodes = list(walk(expression))
        return any(map(may_change, nodes)) or any(isinstance(n, ast.Name) and n.id in loose for n in nodes)

    def spread(statements, under):
        """Collect in ``loose`` the variables that depend on memory, by their value or through a branch."""
        for node in statements:
            inner = under
            if isinstance(node, (ast.If, ast.While)):
                inner = under or depends(node.test)
            elif isinstance(node, ast.For):
                inner = under or depends(node.iter)
            value = getattr(node, "value", None)
            if under or inner or (isinstance(value, ast.expr) and depends(value)):
                loose.update(assigned_names([node]) if not hasattr(node, "body") or inner else ())
            for body in (getattr(node, "body", ()), getattr(node, "orelse", ())):
                spread(body, inner)

    known = -1
    while len(loose) != known:
        known = len(loose)
        spread(loop.body, False)
    return depends(loop.test) or any(
        depends(node.test)
        for top in loop.body
        for node in walk(top)
        if isinstance(node, ast.If) and contains_jump(node)
    )


# ---- numbers known at compile time ----

# SIGNS maps the AST node of an operator to Python's function.
SIGNS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}


def folded(node) -> bool | int | float | complex | None:
    """Return the number to which Python folds an expression of constants before Numba sees it, else None."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, (bool, int, float, complex)) else None
    if isinstance(node, ast.UnaryOp):
        operands = [folded(node.operand)]
    elif isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        operands = [folded(node.left), folded(node.right)]
    else:
        return None
    if None in operands or any(isinstance(n, int) and abs(n) > 2**63 for n in operands):
        return None
    if isinstance(node.op, (ast.Pow, ast.LShift)) and operands[1] > 128:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns that ~True is deprecated.
        try:
            number = SIGNS[type(node.op)](*operands)
        except (ArithmeticError, TypeError, ValueError):
            return None
    small = isinstance(number, (float, complex)) or (isinstance(number, int) and -(2**63) <= number < 2**63)
    return number if small else None


# ---- indices known at compile time ----


def static_names(function: ast.FunctionDef, constants: set[str], is_range) -> set[str]:
    """Return the variables whose value is known at compile time once loops of known length are unrolled."""
    sources: dict[str, list] = {}
    for node in walk(function):
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            sources.setdefault(node.target.id, []).append(("range", node.iter))
        elif isinstance(node, ast.Assign):
            for target, value in pairs(node):
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
    if isinstance(node, ast.Attribute):
        return node.attr == "ndim"
    # A constant index of a tuple with known values chooses a known value.
    if isinstance(node, ast.Subscript):
        return is_static(node.value, static) and isinstance(node.slice, ast.Constant)
    if isinstance(node, ast.Slice):
        return all(part is None or is_static(part, static) for part in (node.lower, node.upper, node.step))
    if isinstance(node, ast.Tuple):
        return all(is_static(part, static) for part in node.elts)
    if isinstance(node, ast.IfExp):
        return all(is_static(part, static) for part in (node.test, node.body, node.orelse))
    if isinstance(node, ast.Compare):
        return all(is_static(part, static) for part in (node.left, *node.comparators))
    return False


def is_part(index: ast.expr) -> bool:
    """Tell whether an index shows by a slice, ``...`` or None that it selects more than one element."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(
        isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value in (None, ...))
        for part in parts
    )


def computed_size(shape: ast.expr, function: ast.FunctionDef) -> ast.expr | None:
    """Return the part of an array's shape that a kernel computes, or None.

    Numba accepts only numbers and names, not a sum of two constants or a variable that holds such a sum.
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
    for node in walk(function):
        for target, value in pairs(node) if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Name):
                values.setdefault(target.id, []).append(value)
    return values


# ---- loops whose iterations may run at once ----


class Touched:
    """The arrays that a loop's body loads from and stores to, with the index of each access."""

    def __init__(self):
        self.loads: dict[str, list] = {}
        self.stores: dict[str, list] = {}

    def add(self, which: str, name: str, index):
        getattr(self, which).setdefault(name, []).append(index)

    @property
    def names(self) -> set[str]:
        return set(self.loads) | set(self.stores)


class BatchTest:
    """The test whether all iterations of a loop may run at once.

    They may if no iteration depends on another. So every variable that the body assigns must be assigned
    before it is read, and not be read after the loop. Reductions like ``acc += ...`` are an exception,
    because they are added up iteration by iteration. Every array must be only loaded or only stored, or all
    its accesses must go to the same element, a different one in each iteration. A loop with barriers,
    atomics, jumps or inner loops that are not over a range fails the test.
    """

    def __init__(self, liveness: Liveness, resolve):
        self.liveness, self.resolve = liveness, resolve
        self.verdicts: dict[int, tuple] = {}  # A verdict keeps its loop, so that no other node gets the id.
        # `reductions` maps the id of an AugAssign to the ids of the loops over which it adds up.
        self.reductions: dict[int, list[int]] = {}

    def examine(self, loop, variable: str, body) -> Touched | None:
        """Return the arrays that the loop touches if its iterations may run at once, else None."""
        if id(loop) not in self.verdicts:
            self.verdicts[id(loop)] = loop, self._examine(loop, variable, body)
        return self.verdicts[id(loop)][1]

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
        """Return the ``name += ...`` statements by name.

        Return None if one of them is conditional, or if the body uses its name elsewhere.
        """
        found = {}
        for statement in _unconditional(body):
            if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                if not isinstance(statement.op, ast.Add) or statement.target.id in found:
                    return None
                found[statement.target.id] = statement
        names = (n.id for s in body for n in walk(s) if isinstance(n, ast.Name))
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
            if not self._is_range(node.iter):
                return False
            return self._value(node.iter, touched) and all(self._statement(s, touched) for s in node.body)
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Constant) or self._value(node.value, touched)
        return False

    def _is_range(self, node) -> bool:
        """Tell whether a node is ``range(...)``, or a call around one such as ``unroll(range(...))``."""
        if not isinstance(node, ast.Call):
            return False
        if getattr(self.resolve(node.func), "kind", "") == "range":
            return True
        return len(node.args) == 1 and self._is_range(node.args[0])

    def _target(self, node, touched) -> bool:
        if isinstance(node, ast.Name):
            return True
        if isinstance(node, ast.Tuple):
            return all(self._target(part, touched) for part in node.elts)
        return isinstance(node, ast.Subscript) and self._subscript(node, touched, "stores")

    def _subscript(self, node, touched, which) -> bool:
        if is_part(node.slice):
            return False
        if not isinstance(node.value, ast.Name):
            if which == "stores" or isinstance(node.value, (ast.IfExp, ast.BoolOp)):
                return False
            if isinstance(node.value, ast.Attribute) and node.value.attr in ("real", "imag"):
                return False  # The real or imaginary part is the array's memory under another name.
            return self._value(node.value, touched) and self._value(node.slice, touched)
        touched.add(which, node.value.id, node.slice)
        return self._value(node.slice, touched)

    def _value(self, node, touched) -> bool:
        if isinstance(node, ast.Subscript):
            return self._subscript(node, touched, "loads")
        if isinstance(node, ast.Call):
            return self._call(node, touched)
        if isinstance(node, (ast.Lambda, ast.Starred)):
            return False
        if isinstance(node, ast.Attribute) and node.attr in ("T", "flat"):
            return False
        parts = (part for part in children(node) if isinstance(part, ast.expr))
        return all(self._value(part, touched) for part in parts)

    def _call(self, node, touched) -> bool:
        callee = self.resolve(node.func)
        if not getattr(callee, "elementwise", False) or node.keywords:
            return False
        for which, positions in (("loads", callee.reads), ("stores", callee.writes)):
            for position in (position for position in positions if position < len(node.args)):
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
            for inner in walk(statement):  # The caller refuses subtractions, and so conditional reductions.
                if isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
                    yield ast.copy_location(ast.AugAssign(inner.target, ast.Sub(), inner.value), inner)
        else:
            yield statement


def _definitions(body) -> dict[str, list]:
    """Return the expressions that a body assigns to each variable."""
    found: dict[str, list] = {}
    for top in body:
        for node in walk(top):
            if isinstance(node, ast.Assign):
                for target, value in pairs(node):
                    for name in names_in(target, ast.Store):
                        found.setdefault(name, []).append(value)
    return found


def pairs(node: ast.Assign):
    """Yield each (target, value) of an assignment. ``a, b = c, d`` has two."""
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
    """Tell whether some part of the index differs in every iteration, whatever inner loops do."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    loops = (node for statement in body for node in walk(statement) if isinstance(node, ast.For))
    inner = {loop.target.id for loop in loops if isinstance(loop.target, ast.Name)}
    return any(_linear(part, variable, definitions, inner) for part in parts)


def _linear(node, variable, definitions, inner, depth=0) -> bool:
    """Tell whether a node is the variable, a multiple of it, or a sum of one such term and other terms.

    The other terms must not depend on the variable or on the counters of inner loops.
    """
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


# ---- loops that may continue with few lanes ----


class NarrowTest:
    """The test whether a loop may continue with its active lanes alone, because each lane computes by itself.

    The loop's body may therefore only compute, and read and write arrays that are parameters. (The machine
    checks that these are in global memory.) It has no barrier and no warp function, and does not use the
    thread's index.
    """

    def __init__(self, translator):
        self.translator = translator
        self.verdicts: dict[int, tuple] = {}  # A verdict keeps its loop, as in BatchTest.

    def variables(self, loop) -> list[str] | None:
        """Return the variables that the loop uses, sorted, or None if the loop must keep all lanes."""
        if id(loop) not in self.verdicts:
            used = {n.id for n in walk(loop) if isinstance(n, ast.Name)} & self.translator.locals
            verdict = self.translator.with_tracked(used) if self._statement(loop) else None
            self.verdicts[id(loop)] = loop, verdict
        return self.verdicts[id(loop)][1]

    def _statement(self, node) -> bool:
        if isinstance(node, (ast.Pass, ast.Break, ast.Continue)):
            return True
        if isinstance(node, ast.Assign):
            return all(map(self._target, node.targets)) and self._value(node.value)
        if isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            return node.value is not None and self._target(node.target) and self._value(node.value)
        if isinstance(node, ast.Return):
            return node.value is None or self._value(node.value)
        if isinstance(node, (ast.If, ast.While)):
            return self._value(node.test) and all(map(self._statement, node.body + node.orelse))
        if isinstance(node, ast.For):
            bounds = self.translator._range_bounds(node.iter)
            return (
                bounds is not None
                and all(map(self._value, bounds))
                and all(map(self._statement, node.body + node.orelse))
            )
        return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

    def _target(self, node) -> bool:
        if isinstance(node, ast.Tuple):
            return all(map(self._target, node.elts))
        return isinstance(node, ast.Name) or (isinstance(node, ast.Subscript) and self._element(node))

    def _element(self, node) -> bool:
        """Tell whether a node is an element of a parameter, or of a tuple such as ``x.shape``."""
        base = node.value
        if isinstance(base, ast.Attribute):
            return base.attr == "shape" and isinstance(node.ctx, ast.Load) and self._value(node.slice)
        known = isinstance(base, ast.Name) and base.id in self.translator.parameters
        return known and self._value(node.slice)

    def _value(self, node) -> bool:
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            return not isinstance(self.translator._resolve(node), Special)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Subscript):
            return self._element(node)
        if isinstance(node, ast.Call):
            lanewise = is_lanewise(self.translator._resolve(node.func))
            return lanewise and not node.keywords and all(map(self._value, node.args))
        plain = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Tuple)
        parts = (part for part in children(node) if isinstance(part, ast.expr))
        return isinstance(node, plain) and all(map(self._value, parts))

    def _attribute(self, node) -> bool:
        """Tell whether all lanes have the same value, as of ``x.shape`` but not of ``cuda.threadIdx.x``."""
        if self.translator._chain(node) is None:
            return isinstance(node.value, ast.Name)
        found = self.translator._resolve(node)
        within = self.translator._resolve(node.value)
        return isinstance(found, (bool, int, float, complex)) or within in SAME_FOR_ALL
