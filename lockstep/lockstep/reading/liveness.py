"""Finds the loads and stores that no compiler can leave out, because their values are needed on every path.

A value is needed if it reaches memory, an atomic, or a condition that decides about one of these. This is
liveness analysis: :class:`_Flow` goes backwards through a function's source, and knows before each statement
which variables are needed. The first pass finds what some path needs, because a compiler may delete a value
that no path needs. The second pass finds what every path needs, because a compiler may move a value into the
only branch that needs it. Compilers move no loops into branches, so a loop's values are needed if some path
needs them.
"""

import ast
import inspect

from .analysis import assigned_names, names_in, walk_here
from .names import Callee, attribute, environment
from .pruning import conditions, outcomes, prune
from .source import parse, source_of
from .trees import children, walk

# The lanes of a warp or a block make these calls together. If one lane needs the value, every lane takes
# part.
_TOGETHER = ("shfl", "all_sync", "any_sync", "ballot_sync", "eq_sync", "match_", "syncthreads_", "reduce_")
_JUMPS = (ast.Return, ast.Break, ast.Continue, ast.Raise)


def surely_needed(kernel) -> set[tuple]:
    """Return (file, line, column) of the loads, stores and calls that no compiler can leave out."""
    program = _Program()
    program.add(kernel)
    while not program.settled:
        program.look()
    return program.needed


class _Program:
    """A kernel and all its device functions.

    ``unsure``: functions with a call whose result is not needed on every path. ``unused``: functions with a
    call whose result is needed on no path.
    """

    def __init__(self):
        # `functions` maps a function's code to (function, definition, environment).
        self.functions: dict = {}
        self.unsure: set = set()
        self.unused: set = set()
        self.needed: set = set()
        self.settled = False
        self._parameters: dict = {}

    def add(self, function):
        if function.__code__ in self.functions:
            return
        definition, names = parse(function, source_of(function)), environment(function)
        prune(definition, outcomes(conditions(definition), function), function.__code__.co_filename)
        self.functions[function.__code__] = function, definition, names
        for node in walk(definition):
            if isinstance(node, ast.Call):
                callee = self.callee(node, names)
                if isinstance(callee, Callee):
                    self.add(callee.function)

    def callee(self, node: ast.Call, names):
        """Return the value of a called name from outside the function, or None if it is not known."""
        path, func = [], node.func
        while isinstance(func, ast.Attribute):
            path.append(func.attr)
            func = func.value
        value = names.get(func.id) if isinstance(func, ast.Name) else None
        for part in reversed(path):
            value = value if value is None else attribute(value, part)
        return value

    def look(self):
        """Analyse each function once. Set ``settled`` unless that found more results that are not needed."""
        known, self.needed, self._parameters = len(self.unsure) + len(self.unused), set(), {}
        for code in self.functions:
            self._flow(code, code not in self.unused, code not in self.unsure, self.needed)
        self.settled = len(self.unsure) + len(self.unused) == known

    def parameters(self, code, used: bool, needed: bool) -> tuple[set, set]:
        """Return the parameters that a function needs on some path, and those it needs on every path.

        used, needed: whether the function's result is needed on some path, and on every path. While the
        analysis of a function runs, its calls of itself need no parameters.
        """
        key = code, used, needed
        if key not in self._parameters:
            self._parameters[key] = set(), set()
            self._parameters[key] = self._flow(*key, set())
        return self._parameters[key]

    def _flow(self, code, used, needed, marked) -> tuple[set, set]:
        function, definition, names = self.functions[code]
        somewhere = _Flow(self, function, names, used, set())
        perhaps = somewhere.run(definition)
        everywhere = _Flow(self, function, names, needed, marked, somewhere)
        return perhaps, everywhere.run(definition)


class _Flow:
    """One backward pass over a function.

    Without ``somewhere`` it finds what some path needs. With ``somewhere``, that earlier pass, it finds what
    every path needs.
    """

    def __init__(self, program, function, names, result_needed, marked, somewhere=None):
        self.program, self.names, self.result_needed = program, names, result_needed
        self.file, self.marked, self.somewhere = function.__code__.co_filename, marked, somewhere
        self.marking = True
        # For each loop around the statement: (variables needed after it, and before its next iteration).
        self.loops: list = []
        # `after` maps the id of a loop to the variables that are needed after the loop.
        self.after: dict = {}
        self.used_calls: set = set()

    def run(self, definition) -> set:
        self.everything = names_in(definition) | names_in(definition, ast.Store)
        self.local = {
            name
            for node in walk(definition)
            if isinstance(node, ast.Assign) and _declares_local(node.value)
            for name in assigned_names([node])
        }
        return self._block(definition.body, set())

    def _meet(self, one, other) -> set:
        return one | other if self.somewhere is None else one & other

    def _mark(self, node):
        if self.marking:
            self.marked.add((self.file, node.lineno, node.col_offset))

    # ---- statements: each method takes the variables needed after one, and returns those before it ----

    def _block(self, statements, need) -> set:
        for statement in reversed(statements):
            method = getattr(self, f"_do_{type(statement).__name__}", None)
            need = method(statement, set(need)) if method else need
        return need

    def _do_If(self, node, need):
        matters = self._matters([*node.body, *node.orelse], need)
        before = self._meet(self._block(node.body, need), self._block(node.orelse, need))
        self._evaluate(node.test, before, matters)
        return before

    def _do_For(self, node, need):
        before = self._loop(node, need, names_in(node.target, ast.Store), None)
        self._evaluate(node.iter, before, self._matters(node.body, before))
        return before

    def _do_While(self, node, need):
        return self._loop(node, need, set(), node.test)

    def _loop(self, node, need, targets, test) -> set:
        """Return the variables needed before a loop. Repeat an iteration until they no longer change."""
        need = self._block(node.orelse, need)
        self.after[id(node)] = need
        if self.somewhere is not None:
            need = need | (self.somewhere.after.get(id(node), set()) & self._assigned(node.body))
        marking, self.marking = self.marking, False
        head = set() if self.somewhere is None else self.everything | need
        while (before := self._iteration(node, need, head, targets, test)) != head:
            head = before
        self.marking = marking
        return self._iteration(node, need, head, targets, test)

    def _iteration(self, node, need, head, targets, test) -> set:
        """Return the variables needed before an iteration.

        ``head``: those needed before the next iteration. ``need``: those needed after the loop.
        """
        self.loops.append((need, head))
        before = self._meet(need, self._block(node.body, head) - targets)
        self.loops.pop()
        if test is not None:
            self._evaluate(test, before, self._matters(node.body, head))
        return before

    def _do_Break(self, node, need):
        return set(self.loops[-1][0])

    def _do_Continue(self, node, need):
        return set(self.loops[-1][1])

    def _do_Return(self, node, need):
        need = set()
        if node.value is not None:
            self._evaluate(node.value, need, self.result_needed)
        return need

    def _do_Assert(self, node, need):
        self._evaluate(node.test, need, True)
        return need

    def _do_Expr(self, node, need):
        self._evaluate(node.value, need, False)
        return need

    def _do_Assign(self, node, need):
        if len(node.targets) == 1 and _same_element(node.targets[0], node.value):
            return need
        pairs = [pair for target in node.targets for pair in _pairs(target, node.value)]
        wanted = [self._wanted(target, need) for target, _ in pairs]
        need -= {target.id for target, _ in pairs if isinstance(target, ast.Name)}
        for (target, value), is_wanted in zip(pairs, wanted):
            self._target(target, need, is_wanted)
            self._evaluate(value, need, is_wanted)
        return need

    def _do_AnnAssign(self, node, need):
        return need if node.value is None else self._do_Assign(ast.Assign([node.target], node.value), need)

    def _do_AugAssign(self, node, need):
        wanted = self._wanted(node.target, need)
        self._target(node.target, need, wanted)
        self._evaluate(node.value, need, wanted)
        return need

    def _wanted(self, target, need) -> bool:
        if isinstance(target, ast.Name):
            return target.id in need
        if isinstance(target, (ast.Tuple, ast.List)):
            return any(self._wanted(part, need) for part in target.elts)
        return not _base(target) & self.local or bool(_base(target) & need)

    def _target(self, target, need, wanted):
        if isinstance(target, (ast.Subscript, ast.Attribute)):
            self._evaluate(target, need, wanted)
        elif isinstance(target, (ast.Tuple, ast.List)):
            need -= names_in(target, ast.Store)
            for part in target.elts:
                self._target(part, need, wanted)

    def _assigned(self, statements) -> set:
        """Return the variables that the statements assign, and the local arrays that they store to."""
        stored = [n for s in statements for n in walk_here(s) if _is_store(n)]
        return assigned_names(statements) | {name for node in stored for name in _base(node)}

    def _matters(self, statements, need) -> bool:
        """Tell whether running these statements matters: they jump, store, set a needed variable, or act.

        A call acts if it does something besides returning a value (:meth:`_acts`).
        """
        inside = [node for statement in statements for node in walk_here(statement)]
        if any(
            isinstance(node, _JUMPS) or (_is_store(node) and not _base(node) & self.local) for node in inside
        ):
            return True
        calls = [node for node in inside if isinstance(node, ast.Call)]
        return any(map(self._acts, calls)) or bool(self._assigned(statements) & need)

    # ---- expressions ----

    def _evaluate(self, node, need, wanted):
        """Add to ``need`` the variables of an expression, or only those of its calls if it is not wanted."""
        if isinstance(node, ast.Call):
            self._call(node, need, wanted)
        elif isinstance(node, ast.BoolOp):
            self._evaluate(node.values[0], need, wanted)
            for value in node.values[1:]:
                self._perhaps(value, need, wanted)
        elif isinstance(node, ast.IfExp):
            self._evaluate(node.test, need, wanted)
            self._perhaps(node.body, need, wanted)
            self._perhaps(node.orelse, need, wanted)
        elif not isinstance(node, ast.Lambda):
            if wanted and isinstance(node, ast.Name):
                need.add(node.id)
            if wanted and isinstance(node, ast.Subscript):
                self._mark(node)
            for child in children(node):
                self._evaluate(child, need, wanted)

    def _perhaps(self, node, need, wanted):
        """Evaluate an expression that some lanes skip. Some path needs its variables, but not every path."""
        self._evaluate(node, need if self.somewhere is None else set(), wanted)

    def _call(self, node, need, wanted):
        if wanted:
            self.used_calls.add(id(node))
        callee = self.program.callee(node, self.names)
        done = wanted or self._acts(node)
        if done:
            self._mark(node)
        if isinstance(callee, Callee):
            self._call_function(node, callee.function, need, wanted)
            return
        known = not isinstance(node.func, ast.Name) or node.func.id in self.names
        if isinstance(node.func, ast.Attribute):
            self._evaluate(node.func.value, need, done)
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            self._evaluate(argument, need, done and known)

    def _call_function(self, node, function, need, wanted):
        code = function.__code__
        if self.somewhere is None:
            wanted_parameters, _ = self.program.parameters(code, wanted, wanted)
        else:
            used = id(node) in self.somewhere.used_calls
            if self.marking:
                self.program.unsure |= set() if wanted else {code}
                self.program.unused |= set() if used else {code}
            _, wanted_parameters = self.program.parameters(code, used, wanted)
        for name, value in _arguments(function, node):
            self._evaluate(value, need, name in wanted_parameters)

    def _acts(self, node) -> bool:
        """Tell whether a call does something besides returning a value."""
        callee = self.program.callee(node, self.names)
        if isinstance(callee, Callee):
            return True
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name.startswith(_TOGETHER):
            return self.somewhere is not None and id(node) in self.somewhere.used_calls
        return (
            any(position < len(node.args) for position in getattr(callee, "writes", ()))
            or getattr(callee, "kind", "") == "barrier"
        )


def _declares_local(node) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("local.array")


def _is_store(node) -> bool:
    return isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store)


def _base(node) -> set:
    """Return, as a set, the variable whose array or record an element or field belongs to."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def _same_element(target, value) -> bool:
    """Tell whether an assignment is like ``x[i] = x[i]``, which a compiler deletes."""
    return isinstance(target, ast.Subscript) and ast.unparse(target) == ast.unparse(value)


def _pairs(target, value) -> list:
    """Return the (target, value) pairs of an assignment: two of ``a, b = x, y``, one of ``a = x``."""
    both = isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List))
    if both and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts))
    return [(target, value)]


def _arguments(function, node) -> list:
    """Return each (parameter, argument) of a call. The parameter is None if it is not known."""
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return [(None, argument) for argument in given]
    try:
        named = {keyword.arg: keyword.value for keyword in node.keywords}
        bound = inspect.signature(function).bind(*node.args, **named).arguments
    except TypeError:  # The translator refuses a call that does not fit the parameters.
        return [(None, argument) for argument in given]
    parts = [(name, value if isinstance(value, tuple) else (value,)) for name, value in bound.items()]
    return [(name, part) for name, values in parts for part in values]
