"""Finds the types of a function's variables before it runs, as Numba does.

Numba types a kernel as a whole, whichever branches its threads will take. So does this module. It translates
the function a second time, as a list of steps without jumps in which every version of a variable has a name
of its own (:mod:`.versions`). It runs the steps with numbers of which only the type is known, until no type
changes any more. If a variable then has several types, :class:`.versions.Split` rewrites the kernel, and the
result is translated.
"""

import ast
from functools import reduce
from typing import NamedTuple

import numpy as np

from lockstep.counts.fold import Log
from lockstep.errors import KernelTypeError, RefusedLine
from lockstep.findings import Findings
from lockstep.frozen import original
from lockstep.library.cuda_api import Special, Type
from lockstep.library.functions import Function
from lockstep.machine.declarations import whole_shape
from lockstep.machine.iterables import type_of_range
from lockstep.machine.operations import Operations
from lockstep.memory.storage import (
    ARRAYS,
    ChosenArray,
    DeviceArray,
    GlobalStorage,
    LocalStorage,
    SharedStorage,
    Unbound,
    row_major,
    unknown,
)
from lockstep.reading.names import Callee
from lockstep.reading.trees import walk
from lockstep.registry import Emulation
from lockstep.values.chunk import Chunk
from lockstep.values.dtypes import dtype_of, name_of, unify
from lockstep.values.enums import Member
from lockstep.values.geometry import Geometry
from lockstep.values.unit import Unit

from .local_indices import KNOWN
from .recursion import OtherTypes, refuse_other_types
from .translation import Scopes, Translator, cached, place_all, translate
from .versions import MARK, NoVersions, Rewriter, Split, Version, Versions, is_number, variable_of

# A program drops its rewritings when it has _SPLITS_KEPT of them.
_SPLITS_KEPT = 32
# Values of these types never change, so they can be parts of a key.
_FIXED = (type, np.dtype, Emulation, Function, Member, Special, Type)
_PASSES = 32  # Any loop needs fewer passes, because a type is widened a few times at most.


# ---- kinds: the types of values ----


class Thing(NamedTuple):
    """The type of a value that is not a number. Arrays of equal dtype and number of dimensions share it."""

    what: tuple


_NOTHING = Thing((type(None),))


def kind_of(value):
    """Return the name of a number's dtype, a tuple of kinds for a tuple, a Thing for anything else."""
    if type(value) is tuple:
        return tuple(map(kind_of, value))
    dtype = dtype_of(value)
    if isinstance(value, Type):
        return Thing((Type, dtype))
    if isinstance(dtype, np.dtype) and not isinstance(value, type):
        return name_of(dtype)
    if isinstance(value, ARRAYS):
        return Thing(("array", value.dtype, value.ndim))
    return Thing(getattr(value, "record_kind", (type(value),)))


class RefusedType(RefusedLine, KernelTypeError):
    """An error for a line whose types Numba would refuse."""


class NoCommonType(KernelTypeError):
    """An error for a variable or a choice between two arrays, functions or tuples of different types."""


def _is_array(kind) -> bool:
    return isinstance(kind, Thing) and kind.what[0] == "array"


def _is_function(kind) -> bool:
    return isinstance(kind, Thing) and callable(kind.what[-1]) and len(kind.what) == 2


def _described(kind: Thing) -> str:
    _, dtype, dimensions = kind.what
    return f"{dtype} with {dimensions} dimension{'s' * (dimensions != 1)}"


def unified(a, b):
    """Return the kind of a variable that has these kinds on two paths.

    Raises KernelTypeError if there is no such kind.
    """
    if a == b:
        return a
    if isinstance(a, str) and isinstance(b, str):
        return name_of(unify(np.dtype(a), np.dtype(b)))
    if type(a) is type(b) is tuple and len(a) == len(b):
        return tuple(map(unified, a, b))
    if _is_array(a) and _is_array(b):
        raise NoCommonType(
            f"Numba needs arrays of one type where paths meet, not {_described(a)} and {_described(b)}"
        )
    if type(a) is type(b) is tuple:
        raise NoCommonType(f"Numba needs tuples of one length where paths meet, not of {len(a)} and {len(b)}")
    if _is_function(a) and _is_function(b):
        names = " and ".join(kind.what[1].__name__ for kind in (a, b))
        raise NoCommonType(
            f"Numba needs one function where paths meet, not {names}: call them on their paths"
        )
    if isinstance(a, Thing) and a.what[0] is Type and isinstance(b, Thing) and b.what[0] is Type:
        raise NoCommonType(f"Numba needs one type where paths meet, not {a.what[1]} and {b.what[1]}")
    raise KernelTypeError("a variable is a number on one path and something else on another")


def of_kind(kind, like):
    """Return a value of which only the kind is known. ``like``: a value of this kind or a narrower one."""
    if isinstance(kind, str):
        return unknown(kind)
    return tuple(map(of_kind, kind, like)) if type(kind) is tuple else like


def _blank(value):
    """Return an argument as the inference sees it: a number without a value, an array without elements."""
    if type(value) is tuple:
        return tuple(map(_blank, value))
    if isinstance(value, ARRAYS):
        return _without_data(value.arrays[0] if type(value) is ChosenArray else value)
    kind = kind_of(value)
    return unknown(kind) if isinstance(kind, str) else value


def _without_data(array: DeviceArray) -> DeviceArray:
    storage, like = array.storage, np.broadcast_to(np.zeros((), array.storage.dtype), array.storage.shape)
    if array.space in ("global", "constant"):
        empty = GlobalStorage(like, True)
    else:
        empty = (SharedStorage if array.space == "shared" else LocalStorage)(
            storage.dtype, storage.shape, True
        )
    shape = _extents(array.shape)
    return DeviceArray(array.name, empty, array.dtype, shape, array.strides, layout=array.layout)


# ---- the function as a list of steps ----


class Program(NamedTuple):
    """A function as a list of steps.

    ``code`` defines a function that takes the machine, a :class:`Types` and the arguments.
    """

    versions: Versions
    code: object
    bindings: list
    # `sites` maps the number of a site to the Site.
    sites: dict
    # `splits` maps a key of all that the types of a launch depend on to the Split.
    splits: dict


class _Renamed(Rewriter):
    """A rewriter that replaces each variable's name with the name of the version it refers to."""

    def __init__(self, versions):
        self.versions = versions
        self.number = {id(node): number for number, node in enumerate(versions.choices)}
        self.operation = {id(node): number for number, node in enumerate(versions.operations)}

    def copy_Name(self, node):
        version = self.versions.stores.get(id(node)) or self.versions.loads.get(id(node))
        return ast.Name(version.name if version else node.id, self.copy(node.ctx))

    def copy_AugAssign(self, node):
        if not isinstance(node.target, ast.Name) or id(node.target) not in self.versions.loads:
            return self.plain(node)  # The target is an element, or no path reaches the statement.
        old, new = self.versions.loads[id(node.target)], self.versions.stores[id(node.target)]
        assign = self.augmented(node, old.name, new.name)
        assign.value.operation = self.operation.get(id(node))
        assign.value.divided = new.number if isinstance(node.op, ast.Div) else None
        return assign

    def _choice(self, node):
        new = self.plain(node)
        new.number = self.number.get(id(node))
        return new

    def _operation(self, node):
        new = self.plain(node)
        new.operation = self.operation.get(id(node))
        return new

    copy_IfExp = copy_BoolOp = _choice
    copy_BinOp = copy_UnaryOp = copy_Call = _operation


class _Steps(Translator):
    """A translator of a function into the steps that define its versions."""

    def program(self) -> Program:
        """Return the function as steps.

        Raises NoVersions if variables cannot be followed, and UnsupportedKernel where the translation that
        runs would raise it.
        """
        self.prepare()
        versions = self.versions = Versions(self.definition, lambda test: self._decided(test) is not None)
        self.renamed = _Renamed(versions)
        every = [*versions.all, *versions.undefined.values()]
        self.number_of = {version.name: version.number for version in versions.all}
        self.scopes = Scopes(self.definition)
        parameters = [version.name for version in versions.parameters]
        decisions = {step.decided: step.node for step in versions.steps if step.decided is not None}
        decided = {number: self._decided(test) for number, test in decisions.items()}
        self.locals, self.shared, self.static = {version.name for version in every}, set(), set()
        body = [s for step in versions.steps for s in self._step(step)]
        at = self.definition
        unset = [version.name for version in every if version.name not in parameters]
        new = [s for name in unset for s in self._fill("_NAME = _M.unbound", at, _NAME=name)]
        new += [s for n, test in decided.items() for s in self._fill(f"_d{n} = _TEST", at, _TEST=test)]
        new += [s for name in parameters for s in self._record(name, ast.Name(name, ast.Load()), at)]
        loop = ast.While(self._expression("_T.again()", at), body or [ast.Pass()], [])
        arguments = ast.arguments([], [ast.arg(n) for n in ("_M", "_T", *parameters)], None, [], [], None, [])
        function = ast.FunctionDef("_steps", arguments, [*new, loop], [])
        if "type_params" in ast.FunctionDef._fields:
            function.type_params = []
        tree = ast.Module([function], [])
        place_all(tree, at.lineno)
        code = compile(tree, self.filename, "exec")
        return Program(versions, code, list(self.bindings.values()), self.sites, {})

    def _step(self, step) -> list:
        node = step.node
        if step.kind == "meeting":
            new = self._meeting(node) if node.used else []
        elif step.kind == "element":
            element = self._expression(
                "_M.element(_VALUES)", node, _VALUES=self._iterable(self.renamed.copy(node.iter))
            )
            new = self._assign(self.renamed.copy(node.target), element, node)
        elif not self._tells(node):
            new = []
        elif step.kind == "test":
            new = [ast.Expr(self._condition(self.renamed.copy(node)))]
        elif isinstance(node, ast.Return):
            new = self._returned(node)
        else:
            new = self._statement(self.renamed.copy(node))
        return self._guarded(new, step) if new else []

    def _tells(self, node) -> bool:
        """Tell whether a node affects the type of a version, a choice, an operation or the result."""
        if isinstance(node, ast.Return):
            return True
        if self.device and any(self._is_itself(part) for part in walk(node)):
            return True
        known = [self.versions.stores, self.renamed.number]
        if not isinstance(node, ast.Expr):  # The type of a call that is a statement does not matter.
            known.append(self.renamed.operation)
        return any(id(part) in numbers for part in walk(node) for numbers in known)

    def _is_itself(self, node) -> bool:
        """Tell whether a node is a call of the function itself."""
        callee = self._resolve(node.func) if isinstance(node, ast.Call) else None
        return isinstance(callee, Callee) and original(callee.function) is original(self.function)

    def _guarded(self, new, step):
        """Return a step's code, which skips the step on a path that Numba drops, and notes if it fails."""
        at, unknown = self._line_of(step.node), self._stored_by(step.node)
        handler = ast.ExceptHandler(
            self._expression("_T.failures", self.definition),
            "_e",
            self._code(f"_T.failed({at}, {unknown!r}, _e)", self.definition),
        )
        new = [ast.Try(new, [handler], [], [])]
        test = self._alive(step.path)
        return new if test is None else [ast.If(test, new, [])]

    def _line_of(self, node) -> int:
        # A meeting has no line of its own, so it takes the line where its first path ends.
        if isinstance(node, Version) and node.sources:
            node = node.sources[0][1].node
        return getattr(node, "lineno", self.definition.lineno)

    def _stored_by(self, node) -> tuple:
        """Return the numbers of the versions that a step defines."""
        if isinstance(node, Version):
            return (node.number,)
        stored = [self.versions.stores.get(id(part)) for part in walk(node)]
        return tuple(version.number for version in stored if version is not None)

    def _alive(self, path):
        tests = [f"_d{number} is not {not outcome}" for number, outcome in path]
        return self._expression(" and ".join(tests), self.definition) if tests else None

    def _meeting(self, version):
        sources = []
        for source, edge in version.sources:
            name = ast.Name(source.name, ast.Load())
            test = self._alive(edge.path)
            unbound = self._expression("_M.unbound", self.definition)
            sources.append(name if test is None else ast.IfExp(test, name, unbound))
        value = self._expression("_T.meet(_SOURCES)", self.definition, _SOURCES=sources)
        return self._record(version.name, value, self.definition)

    def _record(self, name, value, at):
        line, number = "_NAME = _T.define(_NUMBER, _VALUE)", self.number_of[name]
        return self._fill(line, at, _NAME=name, _NUMBER=number, _VALUE=value)

    def _returned(self, node):
        value = ast.Constant(None) if node.value is None else self._owned(self.renamed.copy(node.value))
        number = self.versions.returns.index(node)
        return self._fill(f"_T.returned({number}, _VALUE)", node, _VALUE=value)

    # ---- overrides where the steps differ from the translation that runs ----

    def _new_value(self, name, value, at):
        return self._expression(f"_T.define({self.number_of[name]}, _VALUE)", at, _VALUE=value)

    def _assign_name(self, name, value, at):
        return self._record(name, value, at)

    def _value(self, node):
        new = super()._value(node)
        if getattr(node, "divided", None) is not None:
            parts = {"_A": self._value(node.left), "_B": self._value(node.right)}
            places = f"{node.divided}, {node.lineno}"
            new = self._expression(f"_T.divided({places}, _A, _B, _VALUE)", node, _VALUE=new, **parts)
        number = getattr(node, "operation", None)
        if number is None:
            return new
        return self._expression("_T.grown(_NUMBER, _VALUE)", node, _NUMBER=number, _VALUE=new)

    def _fused(self, node):
        return None  # Each operation has a type of its own, so none are fused.

    def _chosen(self, node, alive, parts):
        """Return code for a choice. ``alive``: code that tells which of the parts Numba compiles."""
        thunks = [self._expression("lambda: _PART", node, _PART=part) for part in parts]
        return self._expression(
            f"_T.chosen({node.number}, _ALIVE, _PARTS)", node, _ALIVE=alive, _PARTS=thunks
        )

    def _of_IfExp(self, node):
        test = self._expression("_T.tested(_TEST)", node, _TEST=self._condition(node.test))
        outcome = self._decided(node.test) or ast.Constant(None)
        alive = self._expression("_T.either(_OUTCOME)", node, _OUTCOME=outcome)
        chosen = self._chosen(node, alive, [self._value(node.body), self._value(node.orelse)])
        return self._expression("(_TEST, _CHOSEN)[1]", node, _TEST=test, _CHOSEN=chosen)

    def _of_BoolOp(self, node):
        parts = [self._value(part) for part in node.values]
        if node.number is None:  # An expression without a number is a test, and only its truth matters.
            return self._expression("_T.tested(_PARTS)", node, _PARTS=parts)
        unknown = ast.Constant(None)
        outcomes = ast.Tuple([self._decided(part) or unknown for part in node.values[:-1]], ast.Load())
        decided = self._expression(
            f"_T.reached({isinstance(node.op, ast.Or)}, _OUTCOMES)", node, _OUTCOMES=outcomes
        )
        return self._chosen(node, decided, parts)

    def _condition(self, node):
        return self._value(node)

    def _check_shape(self, *_):
        pass  # The translation that runs checks the shape.

    _check_dimensions = _note_computed = _check_shape

    def _grade(self, index):
        return KNOWN  # The translation that runs decides which arrays stay in registers.

    # ---- tests with a constant outcome ----

    def _decided(self, test):
        """Return code for the outcome of a test that Numba decides when it compiles, else None."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._decided(test.operand)
            return inner and self._expression("_T.opposite(_A)", test, _A=inner)
        if isinstance(test, ast.BoolOp):
            parts = [self._decided(part) for part in test.values]
            name = "all_of" if isinstance(test.op, ast.And) else "any_of"
            if any(parts):
                parts = [part or ast.Constant(None) for part in parts]
                return self._expression(f"_T.{name}(_PARTS)", test, _PARTS=parts)
            return None
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            if isinstance(test.ops[0], (ast.Is, ast.IsNot)):
                return self._decided_none(test)
            parts = self._constant(test.left), self._constant(test.comparators[0])
            if all(parts):
                return ast.copy_location(ast.Compare(parts[0], test.ops, [parts[1]]), test)
            return None
        value = self._constant(test)
        return value and self._expression("not not _A", test, _A=value)

    def _decided_none(self, test):
        """Return code for the outcome of ``x is None`` for a parameter that keeps its value, else None."""
        left, right = test.left, test.comparators[0]
        name = variable_of(left.id) if isinstance(left, ast.Name) else None
        nothing = isinstance(right, ast.Constant) and right.value is None
        if not nothing or name not in self.parameters or self.only_values()[name] != [None]:
            return None
        parameter = ast.Name(f"{name}{MARK}{self.parameters.index(name)}", ast.Load())
        return ast.copy_location(ast.Compare(parameter, test.ops, [ast.Constant(None)]), test)

    def _constant(self, node, follow=True):
        """Return code for a literal, an outside constant or a variable that holds only one, else None."""
        if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float, complex)):
            return ast.Constant(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = isinstance(node.operand, ast.Constant) and self._constant(node.operand)
            return ast.UnaryOp(ast.USub(), inner) if inner else None
        # Numba does not know attributes: it compiles both branches of `if config.DEBUG:`.
        if isinstance(node, ast.Name) and isinstance(
            self._resolve(node), (bool, int, float, complex, np.generic)
        ):
            return self._outside(node)
        if isinstance(node, ast.Name) and node.id in self.locals and follow:
            values = self.only_values().get(variable_of(node.id), [])
            return self._constant(values[0], False) if len(values) == 1 and values[0] is not None else None
        return None


def steps_of(function, device, environment) -> Program | None:
    """Return the program of a function, or None if its types cannot be followed."""

    def make():
        try:
            return _Steps(function, environment, device).program()
        except NoVersions:
            return None

    return cached(function, environment, ("steps", device), make)


# ---- running the steps ----


class Types:
    """The types of one function for given arguments, as its steps find them."""

    failures = Exception

    def __init__(self, versions: Versions):
        self.versions = versions
        self.kinds = [None] * len(versions.all)
        self.choices = [None] * len(versions.choices)
        self.operations = [None] * len(versions.operations)
        self.values = [None] * len(versions.returns)
        self.failed_steps: list = []
        # For each version that `/=` of two integers defines: its line.
        self.quotients: dict[int, int] = {}
        self.changed, self.passes = True, 0

    def again(self) -> bool:
        """Start another pass if the last one changed a type. Return whether one starts."""
        if not self.changed or self.passes == _PASSES:
            return False
        self.changed, self.failed_steps = False, []
        self.passes += 1
        return True

    def failed(self, line, numbers, error):
        self.failed_steps.append((line, numbers, error))

    def check(self, function):
        """Raise RefusedType if a needed type was not found, or if types of a variable do not fit.

        Also where numba-cuda does not compile ``n /= 2`` of an integer.
        """
        for number, line in self.quotients.items():
            if any(version.used and self._comes_from(version, number) for version in self.versions.all):
                name = self.versions.all[number].variable
                raise self._refused(
                    function,
                    line,
                    f"`{name} /= ...` makes a float of an integer, where a path without it leaves the "
                    f"integer; numba-cuda fails to compile that: write `{name} = {name} / ...`",
                )
        for line, numbers, error in self.failed_steps:
            used = [self.versions.all[number].used for number in numbers]
            needed = isinstance(error, NoCommonType) and (any(used) or not numbers)
            if needed or isinstance(error, (OtherTypes, RefusedType)):
                raise self._refused(function, line, error)
            for version in (self.versions.all[number] for number in numbers):
                if version.used and self.kinds[version.number] is None and self._may_differ(version):
                    self._raise_first_failure(function, error)
                    told = (
                        "Numba finds the types of variables before a kernel runs, and that of "
                        f"{version.variable} cannot be found here: {error}"
                    )
                    raise self._refused(function, line, told)

    @staticmethod
    def _comes_from(version, number) -> bool:
        return any(source.number == number for source, _ in version.sources or ())

    @staticmethod
    def _refused(function, line, error) -> RefusedType:
        """Return the error to raise for a line. An error of a function called there has its own line."""
        if isinstance(error, RefusedType):
            return error
        return RefusedType(str(error), function.__code__.co_filename, line)

    def _raise_first_failure(self, function, error):
        """Raise the error of an earlier step, if there is one: a later one may fail for want of its value."""
        line, _, first = self.failed_steps[0]
        if first is not error:
            raise self._refused(function, line, first)

    def _may_differ(self, version) -> bool:
        """Tell whether the variable is a number elsewhere, so that Numba needs a type that holds both.

        If the variable is None somewhere, such a type always exists.
        """
        others = zip(self.versions.all, self.kinds)
        known = [kind for other, kind in others if other.variable == version.variable]
        return _NOTHING not in known and any(map(is_number, known))

    def define(self, number, value):
        """Record the kind of a version. Return a value of that kind."""
        if isinstance(value, Unbound):
            return value
        kind, known = kind_of(value), self.kinds[number]
        if kind == known:
            return value
        if known is not None:
            kind = unified(known, kind)
        if kind != known:
            self.kinds[number] = kind
            self.changed = True
        return of_kind(kind, value)

    @staticmethod
    def meet(*values):
        """Return the value where versions come together. Versions that no path defines have no effect."""
        values = [value for value in values if not isinstance(value, Unbound)]
        if any(value is not None for value in values):  # None does not change the type of the other values.
            values = [value for value in values if value is not None]
        if not values:
            return Operations.unbound
        return of_kind(reduce(unified, map(kind_of, values)), values[0])

    @staticmethod
    def either(outcome) -> list:
        """Return which parts of ``a if test else b`` may be its value."""
        return [True, True] if outcome is None else [outcome, not outcome]

    @staticmethod
    def reached(end, outcomes) -> list:
        """Return which parts of ``a and b``, or of ``a or b``, may be its value.

        Evaluation stops at a part that is ``end``, which is False for ``and`` and True for ``or``.
        """
        alive = []
        for outcome in outcomes:
            alive.append(outcome is None or outcome == end)
            if outcome == end:
                return alive + [False] * (len(outcomes) + 1 - len(alive))
        return [*alive, True]

    def chosen(self, number, alive, *parts):
        """Return a value of the type that holds every possible value of a choice, and record that type.

        A choice is a conditional expression, or an ``and`` or ``or``. ``parts`` are functions that compute
        its operands. ``alive`` tells for each part whether it may be the value.
        """
        values = [self._tried(part) if here else None for part, here in zip(parts, alive)]
        alive = [here and not isinstance(value, Unbound) for here, value in zip(alive, values)]
        if not any(alive):
            return Operations.unbound
        kinds = [kind_of(value) if here else None for value, here in zip(values, alive)]
        known = () if self.choices[number] is None else (self.choices[number][0],)
        whole = reduce(unified, (*known, *(kind for kind, here in zip(kinds, alive) if here)))
        self.choices[number] = whole, tuple(kinds)
        return of_kind(whole, values[alive.index(True)])

    def _tried(self, part):
        """Return ``part()``, or ``unbound`` if it fails in the first two passes.

        In these it may depend on the result of a recursive call, which is not known yet.
        """
        try:
            return part()
        except KernelTypeError:
            if self.passes > 2:
                raise
            self.changed = True
            return Operations.unbound

    def grown(self, number, value):
        """Return the outcome of an operation, in a type that holds all outcomes found so far."""
        if isinstance(value, Unbound):
            return value
        kind, known = kind_of(value), self.operations[number]
        whole = kind if known is None or known[0] == kind else unified(known[0], kind)
        self.operations[number] = whole, kind
        return value if whole == kind else of_kind(whole, value)

    def divided(self, number, line, a, b, value):
        """Note the version that ``a /= b`` defines if both are integers. Return the value."""
        kinds = kind_of(a), kind_of(b)
        if all(isinstance(kind, str) and np.dtype(kind).kind in "iu" for kind in kinds):
            self.quotients[number] = line
        return value

    @staticmethod
    def tested(*_):
        return True

    def returned(self, number, value):
        if kind_of(value) != kind_of(self.values[number]):
            self.changed = True  # Recursive calls need another pass.
        self.values[number] = value

    @property
    def result(self):
        """The value of a call, of a type that holds everything the function returns."""
        values = [value for value in self.values if value is not None]
        if values:
            return self.meet(*values)
        return Operations.unbound if self.versions.returns and self.passes < 2 else None

    def rewriting(self) -> Split:
        kinds = tuple(None if value is None else kind_of(value) for value in self.values)
        known = [kind for kind in kinds if kind is not None]
        try:
            whole = reduce(unified, known) if known else None
        except KernelTypeError:
            whole = None
        return Split(self.versions, self.kinds, self.choices, self.operations, (whole, kinds))

    # ---- tests with a constant outcome: True, False, or None where it is not known ----

    @staticmethod
    def opposite(outcome):
        return None if outcome is None else not outcome

    @staticmethod
    def all_of(*outcomes):
        return False if False in outcomes else None if None in outcomes else True

    @staticmethod
    def any_of(*outcomes):
        return True if True in outcomes else None if None in outcomes else False


class _Range:
    """The value of ``range(...)`` where only the types of the bounds are known."""

    length = 0

    def __init__(self, dtype):
        self.dtype = dtype

    def at(self, *_):
        return unknown(self.dtype)


class _NoLog(Log):
    """A log that records nothing, because the counts of iterations do not matter for types."""

    def note(self, key, number):
        pass


class Typing(Operations):
    """A machine that only finds types: no lane is active, it counts nothing, and numbers have no values."""

    only_types, warp_by_warp = True, False

    def __init__(self, machine):
        launch = machine.grid, machine.block, machine.dynamic_shared
        super().__init__(*launch, sites=machine.sites, findings=Findings(), log=_NoLog(None))
        self.typing = self
        geometry = Geometry(machine.block, 1, 1)
        self.chunk = Chunk(machine.grid, geometry, (0, 0, 0), 0, {})
        self.unit = Unit(geometry.no_threads)

    def count_arithmetic(self, site, name, dtype, per_lane=1):
        pass

    # ---- control ----

    def truth(self, value):
        return value if type(value) is bool else True

    def select(self, condition, then, otherwise):
        a, b = then(), otherwise()
        return of_kind(unified(kind_of(a), kind_of(b)), a)

    def range_of(self, *bounds):
        return _Range(type_of_range([self._dtype(bound) for bound in bounds]))

    def element(self, values):
        """Return an element of the values that a loop runs over."""
        if isinstance(values, tuple):
            return Types.meet(*values)
        if hasattr(values, "at"):
            return values.at(self, 0)
        return next(iter(values))

    def together(self, call, function, mask, operands):
        """Return the result of a call that the lanes of a warp execute together."""
        return function(self, call, mask, *operands)

    def barrier_vote(self, site, predicate, combine):
        return unknown(np.int32)

    def barrier(self, *_):
        """Do nothing, because such a call gives no value."""

    warp_barrier = fence = start_copy = advise_registers = barrier

    # ---- memory ----

    def read(self, site, array, index, width=1, *_, **__):
        return unknown(array.dtype) if width == 1 else (unknown(array.dtype),) * width

    def write(self, *_, **__):
        pass

    def atomic(self, site, name, array, *_):
        return unknown(array.dtype)

    def assign_part(self, *_):
        pass

    assign_computed = assign_all = assign_part

    def _reshape(self, site, array, *shape):
        """Return the array with as many dimensions as its new shape has numbers. Unknown sizes are 1."""
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        if all(type(extent) is int for extent in shape):
            return super()._reshape(site, array, *shape)
        sizes = _extents(shape)
        return array.changed(shape=sizes, strides=row_major(sizes))

    def _bounds(self, part, extent):
        return 0, 1, 1

    def _row(self, site, base, axis, position, index):
        return 0, ()

    def _linear(self, array, index):
        return None, 0

    def pick_in_each_lane(self, site, values, index):
        return Types.meet(*values)

    def declared_shape(self, shape):
        return whole_shape(_extents(shape))


def _extents(shape):
    """Return a shape with 1 for each extent whose value is not known here."""
    shape = shape if isinstance(shape, tuple) else (shape,)
    return tuple(extent if isinstance(extent, int) else 1 for extent in shape)


class Typed:
    """A function's code, with a variant for each combination of argument types that needs one."""

    def __init__(self, function, device, translation, program: Program | None, space: dict, recursive=False):
        self.function, self.device, self.program, self.space = function, device, program, space
        self.recursive = recursive
        # `translations` maps code to the Translation that it belongs to.
        self.translations: dict = {}
        self.code, self.unset = self._defined(translation), translation.unset
        self.steps = None if program is None else _function_of(program.code, "_steps", space)
        # `generators` maps code to the same code as a generator function.
        self.generators: dict = {}
        # `variants` maps the kinds of the arguments to (code, kinds of the variables that may be unset).
        self.variants: dict = {}
        # `types` maps the kinds of the arguments to the Types that were found for them.
        self.types: dict = {}
        # `open` has the kinds of the arguments for which the types are being found.
        self.open: list = []

    def _defined(self, translation):
        code = _function_of(translation.code, translation.tree.body[0].name, self.space)
        self.translations[code] = translation
        return code

    def suspendable(self, code):
        """Return code of this function as a generator function, for units that wait for each other."""
        if code not in self.generators:
            compiled = self.translations[code].suspendable_code
            self.generators[code] = _function_of(compiled, code.__name__, self.space)
        return self.generators[code]

    def code_for(self, machine, arguments):
        """Return the code that computes in the right types for these arguments."""
        needed = self.recursive or self.unset
        if self.program is None or (self.program.versions.trivial and not needed):
            return self.code
        key = tuple(map(kind_of, arguments))
        if key not in self.variants:
            split = self._split(machine, key, arguments)
            code, unset = self.code, self.unset
            if split.needed:
                translation = translate(self.function, self.device, split)
                machine.sites.update(translation.sites)
                code, unset = self._defined(translation), translation.unset
            self.variants[key] = code, {site: split.kind_of(name) for site, name in unset.items()}
        code, kinds = self.variants[key]
        machine.unset_kinds.update(kinds)
        return code

    def _split(self, machine, key, arguments) -> Split:
        """Return how to rewrite the function for these arguments. Launches with equal keys share it."""
        try:
            known = self._launch_key(machine, arguments)
        except _NotKept:
            return self._types(machine, key, arguments).rewriting()
        splits = self.program.splits
        if known not in splits:
            if len(splits) >= _SPLITS_KEPT:
                splits.clear()
            splits[known] = self._types(machine, key, arguments).rewriting()
        return splits[known]

    def _launch_key(self, machine, arguments) -> tuple:
        """Return a key of all that the types in a kernel depend on. Raises _NotKept if that has no key."""
        if self.device:
            raise _NotKept
        outside = tuple(
            (name, _key_of(value)) for name, value in self.space.items() if name != "__builtins__"
        )
        given = tuple(map(_key_of_argument, arguments))
        return machine.grid, machine.block, machine.dynamic_shared, given, outside

    def result(self, machine, arguments):
        """Return a value of the type that the function returns for these arguments."""
        if self.program is None:
            raise KernelTypeError(f"the types in {self.function.__name__} cannot be followed")
        return self._types(machine, tuple(map(kind_of, arguments)), arguments).result

    def check_call(self, arguments):
        """Raise OtherTypes if the function calls itself with arguments of other types than it has."""
        if self.open:
            refuse_other_types(self.function, self.open[-1], tuple(map(kind_of, arguments)))

    def _types(self, machine, key, arguments) -> Types:
        if key not in self.types:
            if machine.typing is None:
                machine.typing = Typing(machine)
            # The types are stored while they are incomplete, so that a recursive call finds those that are
            # known.
            types = self.types[key] = Types(self.program.versions)
            self.open.append(key)
            try:
                self.steps(machine.typing, types, *map(_blank, arguments))
            finally:
                self.open.pop()
            types.check(self.function)
        return self.types[key]


class _NotKept(Exception):
    """An error for types that may depend on values which have no key."""


def _key_of_argument(value):
    if type(value) is not DeviceArray and isinstance(kind := kind_of(value), str):
        return kind
    return _key_of(value)


def _key_of(value):
    """Return a key that is equal for two values only if the types in a kernel are the same for both.

    Raises _NotKept for a value that has no key.
    """
    if value is None or isinstance(value, (bool, int, float, complex, np.generic)):
        return type(value), repr(value)
    if type(value) is tuple:
        return tuple(map(_key_of, value))
    if type(value) is DeviceArray and value.pattern is None and not value.escapes:
        return value.space, value.dtype, value.shape, value.strides, value.offset, value.layout
    if isinstance(value, _FIXED):
        return type(value), value
    raise _NotKept


def _function_of(code, name, space):
    """Return the function of this name that compiled code defines."""
    defined = dict(space)
    exec(code, defined)
    return defined[name]
