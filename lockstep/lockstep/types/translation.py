"""Rewrites a kernel's source so that one run of the new code does the work of all lanes.

Every operation becomes a call of the machine ``_M``. Branches and loops narrow and widen its mask of active
lanes. ``print(ast.unparse(translate(kernel).tree))`` shows the new code.
"""

import ast
import builtins
import enum
import inspect
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np

from lockstep.errors import UndefinedName, UnsupportedKernel, remember_exception
from lockstep.frozen import original
from lockstep.library.cuda_api import BUILTINS, Special, is_lanewise
from lockstep.machine.machine import Site
from lockstep.machine.reductions import METHODS_THAT_REDUCE
from lockstep.machine.views import METHODS
from lockstep.memory.storage import Constant
from lockstep.reading import inside, names
from lockstep.reading.analysis import (
    Aliases,
    BatchTest,
    Liveness,
    NarrowTest,
    Touched,
    assigned_names,
    computed_size,
    contains_jump,
    counts_to_its_end,
    folded,
    hangs_on_memory,
    is_part,
    is_static,
    jumps_out,
    names_in,
    static_names,
    walk_here,
)
from lockstep.reading.names import Callee, EnumClass, Namespace, OtherModule, Refused, Text
from lockstep.reading.source import Source
from lockstep.reading.trees import children, filled, walk
from lockstep.registry import Emulation
from lockstep.spelling import did_you_mean
from lockstep.values.enums import EnumNumber, Member

from . import recursion
from .local_indices import COUNTED, COUNTED_ELEMENTS, KNOWN, UNKNOWN, Callees, LocalIndices
from .suspendable import suspendable
from .unset_reads import UnsetReads, set_to_none
from .versions import NoVersions, Split, is_copy, variable_of

_site_numbers = count()  # No number is used twice, so that the sites of several functions can be merged.

_BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
}
_BITS = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"}
_DECLARE = ("shared_array", "local_array")
_ATOMICS = {ast.Add: "add", ast.Sub: "sub", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor"}
_COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
# A kernel may use the attributes and methods of outside values of these types.
_VALUES = (Constant, tuple, complex, np.complexfloating)
_STATEMENTS = {
    ast.ClassDef: "a class",
    ast.Delete: "del",
    ast.Global: "global",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.Match: "match",
    ast.Nonlocal: "nonlocal",
    ast.Try: "try",
    ast.With: "with",
}
_INSTEAD = {
    ast.Global: ", where the name is assigned: Numba compiles no store to a global variable; use an array",
    ast.Match: " with sequences, mappings or classes: Numba compiles numbers, names, | and guards in a case",
    ast.Nonlocal: ", where the name is assigned: in Numba no later read of it changes; use a name of its own",
}
MAKE_ARRAYS = ("zeros", "zeros_like", "empty", "empty_like", "ones", "ones_like", "full", "array")
OWN_ARRAY = (
    ": an array that the block shares is `cuda.shared.array(shape, dtype)`, a thread's own array is "
    "`cuda.local.array(size, dtype)`, and a loop sets the elements"
)
# These methods have a fixed number of arguments.
_TAKES = {"item": 0, "view": 1, "conjugate": 0, "sync": 0, **dict.fromkeys(METHODS_THAT_REDUCE, 0)}
LENGTH_OF_TUPLE = "; the emulator does not take len(), which Numba takes of a tuple"
REFUSED_METHODS = {
    "ravel": "write .reshape(x.size) of an array x whose rows lie one after another, or use all its indices",
}
_EXPRESSIONS = {
    ast.Await: "await",
    ast.Dict: "a dict",
    ast.DictComp: "a dict comprehension",
    ast.GeneratorExp: "a generator",
    ast.JoinedStr: "an f-string",
    ast.Lambda: "a lambda that is neither called nor given a name",
    ast.List: "a list",
    ast.ListComp: "a list comprehension",
    ast.NamedExpr: "the walrus operator",
    ast.Set: "a set",
    ast.SetComp: "a set comprehension",
    ast.Starred: "a starred expression",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
}


class Binding(NamedTuple):
    """A global of the new code. Its value is that of ``root.path`` in the kernel's environment."""

    name: str
    root: str
    path: tuple
    line: int


@dataclass(frozen=True, eq=False)
class Translation:
    """The translation of one function: the new code, and what a launch has to know about the function."""

    tree: ast.Module
    code: object
    bindings: list
    callees: list
    # Each of these code objects computes the shape of a local array from the bindings.
    local_shapes: list
    # The function may store to the parameters at these positions, not counting the stores in its calls.
    stored: set
    # For each parameter that a call passes on: (callee root, path, argument position, parameter position).
    passed: list
    # Numba needs literals for the parameters at these positions.
    literal: set
    # For each argument that is no literal: (callee root, path, argument position, line).
    computed: list
    # For each call of a device function: (callee root, path, marks of its arguments, line).
    calls: list
    # For each place that reads elements of an array from outside: (root, path, line, column).
    constants: list
    # `sites` maps the numbers of this function's sites to the Sites.
    sites: dict
    # `unset` maps a site to the name of the variable that is read there and may be unset.
    unset: dict
    source: Source

    @cached_property
    def suspendable_code(self):
        """The new code as a generator function, for units that wait for each other."""
        return compile(suspendable(self.tree), self.code.co_filename, "exec")


_cache: dict = {}
_CACHE_SIZE = 600  # A function takes about three entries, and every edit of a notebook cell makes new ones.


def translate(function, device: bool = False, split: Split | None = None, environment=None) -> Translation:
    """Rewrite a function. The result is cached by the function's code and the values of its names.

    ``split``: how to rewrite the function first, so that each of its variables keeps one type.
    ``environment``: the result of :func:`.inside.environment`, if it is known already.
    """
    environment = environment or inside.environment(function)

    def make():
        return Translator(function, environment, device, split and split.function()).run()

    return cached(function, environment, (device, split and split.key), make)


def cached(function, environment, purpose, make):
    """Return ``make()``, cached by the function's code, the values of its names, and the purpose."""
    kinds = tuple((name, _signature(value)) for name, value in environment.items())
    key = (inside.identity(function), kinds, names.numpy_integers(function), purpose)
    if key not in _cache:
        if len(_cache) >= _CACHE_SIZE:
            del _cache[next(iter(_cache))]
        _cache[key] = make()
    return _cache[key]


def _signature(value):
    """Return the part of a value that the new code depends on.

    This is the type of a number, and the code of a device function, but not its constants.
    """
    if isinstance(value, Callee):
        return inside.identity(value.function)
    if isinstance(
        value, (Refused, OtherModule)
    ):  # Each look-up of the names makes new objects of these classes.
        return type(value).__name__, str(value)
    if isinstance(value, (bool, int, float, complex)) or not hasattr(value, "__dict__"):
        return type(value).__name__
    return value  # The id would not do, because a later object may get the same id.


class Translator:
    """A translator of one function.

    For a class X of AST nodes, ``_do_X`` translates a statement and ``_of_X`` an expression.
    """

    def __init__(self, function, environment, device, definition=None):
        self.function, self.environment, self.device = function, environment, device
        self.filename = function.__code__.co_filename
        read = inside.read(function)
        self.source, self.shown = read.source, read.shown
        self.definition = definition or read.definition
        # `numbers` maps the id of a node and a role to the number of the site.
        self.numbers: dict = {}
        self.alive: list = []  # Nodes whose ids are keys are kept, so that no later node gets the same id.
        self.sites: dict[int, Site] = {}
        self.bindings: dict = {}
        self.passed: list = []
        self.literal: set[int] = set()
        self.computed: list = []
        self.calls: list = []
        self.spelled_out: dict = {}
        # `updating` maps the id of an element that one statement both loads and stores to the name of the
        # atomic operation that does the same, or to "other".
        self.updating: dict = {}
        self.local_shapes: list = []
        self.unset_sites: dict[int, str] = {}
        self.unset_reads, self.tracked, self.set_in = set(), set(), {}
        # These variables may be None.
        self.optional = set()
        # `values` caches the result of only_values.
        self.values: dict | None = None
        self.regions: list[tuple] = [()]
        self.loops: list[str] = []
        self.counter = 0

    # ---- the whole function ----

    def run(self) -> Translation:
        self.prepare()
        return self._finished(self._body())

    def prepare(self):
        """Analyse the source: its names, shared arrays, liveness, loops and stores."""
        definition = self.definition
        self.parameters = self._parameters(definition)
        self.locals = set(self.parameters) | assigned_names(definition.body)
        self.shared = self._shared_arrays()
        self.static = static_names(definition, self._constants(), self._range_bounds)
        self.liveness = Liveness(definition)
        self.batch_test = BatchTest(self.liveness, self._resolve)
        self.narrow_test = NarrowTest(self)
        self.stored = self._stored()

    def _constant_reads(self):
        """Yield the places that read an array from outside and for which compiled code needs a copy of it.

        It needs none for an attribute, nor for an element whose index is a constant.
        """
        known = set()
        for node in walk(self.definition):
            if isinstance(node, ast.Attribute):
                known.add(id(node.value))
            elif isinstance(node, ast.Subscript) and self._is_known_place(node.slice):
                known.add(id(node.value))
            if isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in known:
                if isinstance(self._resolve(node), Constant):
                    yield *self._chain(node), node.lineno, node.col_offset

    def _is_known_place(self, index) -> bool:
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        return all(self._is_constant_outside(part) for part in parts)

    def _body(self) -> list:
        """Return the new code of the function's body."""
        self._find_unset()
        self.scopes = Scopes(self.definition, self.tracked | self.optional)
        self.returns_early = _returns_early(self.definition.body)
        return self._prologue() + self._block(self.definition.body) + self._epilogue()

    def _find_unset(self):
        """Find the variables that a lane may read before it sets them, and those that may be None."""
        found = UnsetReads(self.definition, self.parameters, self._range_bounds)
        self.unset_reads = found.reads
        self.tracked = found.variables
        self.optional = set_to_none(self.definition)
        self.set_in = found.lines
        if found.above:
            name, node = next(iter(found.above.items()))
            raise UndefinedName(
                f"{name} is used above the line that first gives it a value. Numba reads a function from top "
                f"to bottom, also in a loop, so for Numba {name} is not defined here: set it further up",
                self.filename,
                node.lineno,
            )

    def with_tracked(self, variables) -> list | None:
        """Return the variables, and those that tell in which lanes they are set or None, sorted.

        Return None if there are no variables.
        """
        tracked = {_whether_set(name) for name in variables if variable_of(name) in self.tracked}
        tracked |= {_whether_none(name) for name in variables if variable_of(name) in self.optional}
        return sorted({*variables, *tracked}) or None

    def _shared_arrays(self) -> set:
        """Return the variables that are always shared arrays or views of them."""
        sources: dict = {}
        for node in walk(self.definition):
            if isinstance(node, ast.Assign):
                for name in assigned_names([node]):
                    sources.setdefault(name, []).append(node.value)
        shared = {name for name, values in sources.items() if all(map(self._declares_shared, values))}
        views = {
            name
            for name, values in sources.items()
            if all(
                self._kind(v) == "view" and set().union(*map(_base_names, v.args[:1])) <= shared
                for v in values
            )
        }
        return shared | views

    def _declares_shared(self, node) -> bool:
        return self._kind(node) == "shared_array"

    def _kind(self, node):
        """Return the kind of a call of the CUDA API or of an intrinsic, or None for anything else."""
        return getattr(self._resolve(node.func), "kind", None) if isinstance(node, ast.Call) else None

    def _constants(self) -> set:
        """Return the names whose values are known when the kernel is compiled."""
        known = {name for name, value in self.environment.items() if _is_constant(value)}
        known -= self.locals
        # A call of a device function may pass values that Numba knows.
        return known | set(self.parameters) if self.device else known

    def _parameters(self, definition) -> list:
        if definition.args.kwarg:
            self._refuse(
                definition, "the emulator does not support **kwargs in a kernel; name the parameters"
            )
        if definition.args.vararg and not self.device:
            self._refuse(
                definition,
                "the emulator does not support a kernel with *args; a device function may have them",
            )
        if definition.args.kwonlyargs:
            self._refuse(definition, "the emulator does not support keyword-only parameters; leave out the *")
        return list(_signature_of(definition.args).parameters)

    def _prologue(self):
        unset = sorted(assigned_names(self.definition.body) - set(self.parameters))
        lines = [f"{name} = _M.unbound" for name in unset]
        lines += [f"{_whether_set(name)} = False" for name in sorted(self.tracked)]
        for name in sorted(self.optional):
            lines.append(f"{_whether_none(name)} = {f'{name} is None' if name in self.parameters else False}")
        lines.append(f"{_region(())} = _M.unit.mask")
        if self.returns_early:
            lines.append(f"_f = _M.{'frame' if self.device else 'kernel_frame'}()")
        return [s for line in lines for s in self._code(line, self.definition)]

    def _epilogue(self):
        if not self.returns_early:
            return []
        ends = isinstance(self.definition.body[-1], ast.Return)
        value = "_f.value" if ends or not self.device else f"_M.returned(_f, {_region(())})"
        return self._code(f"_M.unit.mask = {_region(())}\nreturn {value}", self.definition)

    def _finished(self, body) -> Translation:
        tree = ast.Module([self._function(body)], [])
        place_all(tree, self.definition.lineno)
        code = compile(tree, self.filename, "exec")
        positions = {self.parameters.index(name) for name in self.stored}
        callees = [b for b in self.bindings.values() if isinstance(self._follow(b.root, b.path), Callee)]
        return Translation(
            tree=tree,
            code=code,
            bindings=list(self.bindings.values()),
            callees=callees,
            local_shapes=self.local_shapes,
            stored=positions,
            passed=self.passed,
            literal=self.literal,
            computed=self.computed,
            calls=self.calls,
            constants=list(self._constant_reads()),
            sites=self.sites,
            unset=self.unset_sites,
            source=self.source,
        )

    def _function(self, body) -> ast.FunctionDef:
        """Return the definition of the new function, which takes the machine and all the old parameters."""
        function = ast.FunctionDef(
            self.definition.name,
            _arguments(self.parameters),
            body,
            [],
            lineno=self.definition.lineno,
            col_offset=0,
        )
        if "type_params" in ast.FunctionDef._fields:
            function.type_params = []
        return function

    def _refuse(self, node, sentence):
        raise UnsupportedKernel(sentence, self.filename, getattr(node, "lineno", self.definition.lineno))

    def _refuse_name(self, node, name):
        known = (*self.locals, *names.visible(self.function))
        sentence = f"the name {name} is not defined{did_you_mean(name, known)}"
        if name in original(self.function).__globals__:
            sentence = f"{name} was not defined yet when Numba compiled this function: define it above"
        raise UndefinedName(sentence, self.filename, node.lineno)

    def _refuse_member(self, node, root, path):
        """Refuse ``root.path``, which a kernel cannot use or which does not exist."""
        shown = ".".join((root, *path))
        for length, name in enumerate(path):
            owner = self._follow(root, path[:length])
            if isinstance(owner, Namespace) and self._follow(root, path[: length + 1]) is None:
                if not names.really_has(owner, name):
                    there = ".".join((root, *path[:length]))
                    sentence = f"{there} has no {name}{did_you_mean(name, names.members(owner))}"
                    raise UndefinedName(sentence, self.filename, node.lineno)
                break
            if isinstance(owner, (EnumNumber, Member)):
                self._refuse(node, f"Numba has no .{name} of an enum's member, only .value")
        more = OWN_ARRAY if path[-1] in MAKE_ARRAYS else ""
        self._refuse(node, f"the emulator does not support {shown} in a kernel{more}")

    # ---- making new code ----

    def _code(self, text: str, at) -> list:
        """Return the statements of ``text``, at the source position of the node ``at``."""
        return filled(text, at, {})

    def _fill(self, text: str, at, **holes) -> list:
        """Return statements like :meth:`_code`, with each name in ``holes`` replaced by its value there."""
        return filled(text, at, holes)

    def _expression(self, text: str, at, **holes):
        return self._fill(text, at, **holes)[0].value

    def _number(self) -> int:
        self.counter += 1
        return self.counter

    def _site(self, node, op, role="", stays=None) -> int:
        key = (id(node), role)
        if key not in self.numbers:
            self.alive.append(node)
            self.numbers[key] = number = next(_site_numbers)
            place = self.filename, node.col_offset
            constant = isinstance(node, ast.Subscript) and self._is_one_constant(node.slice)
            updates = self.updating.get(id(node), "")
            self.sites[number] = Site(self.definition.name, node.lineno, op, stays, *place, constant, updates)
        return self.numbers[key]

    def _is_one_constant(self, node) -> bool:
        """Tell whether an index is one integer that Numba knows, literal or named, or a slice of such."""
        if isinstance(node, ast.Slice):
            bounds = (node.lower, node.upper, node.step)
            # Here Numba knows NumPy integers from outside too.
            numpy = [bound for bound in bounds if names.has_numpy_integer(self._original(bound))]
            return all(bound in (None, *numpy) or self._is_one_constant(bound) for bound in bounds)
        if isinstance(node, ast.Name) and node.id in self.locals:
            name = variable_of(node.id)
            if name in self.parameters:
                return False
            given = self.only_values().get(name, [])
            return len(given) == 1 and given[0] is not None and self._is_constant_outside(given[0])
        return self._is_constant_outside(node)

    def _is_constant_outside(self, node) -> bool:
        if isinstance(node, ast.Name):
            known = node.id not in self.locals and type(self.environment.get(node.id)) is int
            return known and not names.has_numpy_integer(self._original(node))
        return type(folded(node)) is int

    def _original(self, node):
        """Return the Python object of a name from outside, or of ``name.part``, or None."""
        chain = self._chain(node)
        if chain is None:
            return None
        value = names.outside(chain[:1], self.function).get(chain[0])
        for name in chain[1]:
            value = getattr(value, name, None)
        return value

    def _numpy_integer(self, node, seen=frozenset()) -> str | None:
        """Return the name of the NumPy integer from outside that gives an expression its value, or None."""
        if isinstance(node, ast.Name) and node.id in self.locals:
            given = [] if node.id in seen else self.only_values().get(node.id, [])
            parts, seen = [part for part in given if part is not None], seen | {node.id}
        elif isinstance(node, (ast.Tuple, ast.Subscript)):
            # Beside a NumPy integer, no number of a tuple from outside is a literal.
            parts = node.elts if isinstance(node, ast.Tuple) else [node.value]
        else:
            return ast.unparse(node) if names.has_numpy_integer(self._original(node)) else None
        return next(filter(None, (self._numpy_integer(part, seen) for part in parts)), None)

    def _instead_of_numpy_integer(self, node) -> str:
        """Return the end of a sentence about a number that is no literal, if it is a NumPy integer."""
        name = self._numpy_integer(node)
        if name is None:
            return ""
        return (
            f"; {name} is a NumPy integer or has one, which is no literal to Numba: outside the kernel, make "
            "it a Python integer with int(...)"
        )

    def _is_literal(self, node, seen=frozenset()) -> bool:
        """Tell whether Numba knows an integer as a literal: written out, named outside, or a copy of one."""
        if isinstance(node, ast.IfExp):
            return self._is_literal(node.body, seen) and self._is_literal(node.orelse, seen)
        if isinstance(node, ast.Attribute):
            return node.attr == "ndim"
        if not isinstance(node, ast.Name) or node.id not in self.locals:
            return self._is_constant_outside(node)
        if node.id in self.parameters:
            # A call of a device function may pass a literal.
            return self.device and self.only_values()[node.id] == [None]
        given = self.only_values().get(node.id, [None])
        return node.id not in seen and all(
            part is not None and self._is_literal(part, seen | {node.id}) for part in given
        )

    def only_values(self) -> dict:
        """Return the expressions assigned to each variable, with None for any other way of setting it."""
        if self.values is None:
            found = self.values = {}
            for node in walk(self.definition):
                if isinstance(node, ast.Assign) and len(node.targets) == 1:
                    if isinstance(node.targets[0], ast.Name):
                        found.setdefault(node.targets[0].id, []).append(node.value)
                        continue
                for part in _stored_here(node):
                    found.setdefault(part, []).append(None)
        return self.values

    # ---- names ----

    def _chain(self, node):
        """Return (root, attributes) of ``a.b.c`` if ``a`` is a name from outside the kernel, else None."""
        path = []
        while isinstance(node, ast.Attribute):
            path.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id not in self.locals:
            return node.id, tuple(reversed(path))
        return None

    def _follow(self, root, path):
        value = self.environment.get(root)
        for name in path:
            if not isinstance(value, (Namespace, EnumNumber, Member)):
                return None
            value = names.attribute(value, name)
        return value

    def _resolve(self, node):
        """Return the value of a name or ``module.name`` from outside the kernel, or None."""
        chain = self._chain(node)
        return None if chain is None else self._follow(*chain)

    def _outside(self, node):
        """Return the new code's global for a name from outside. Refuse a name that a kernel cannot use."""
        root, path = self._chain(node)
        for length in range(len(path) + 1):
            special = self._follow(root, path[:length])
            if isinstance(special, Special) and not length:
                self._refuse(
                    node,
                    f"Numba does not compile {root} as a name from outside: write it as in cuda.threadIdx",
                )
            if isinstance(special, Special):
                if path[length:] not in ((), ("x",), ("y",), ("z",)):
                    self._refuse(node, f"{'.'.join((root, *path))}: only .x, .y and .z can be asked for")
                return self._expression(".".join((special.code, *path[length:])), node)
            if isinstance(special, Refused):
                shown = ".".join((root, *path[:length]))
                self._refuse(node, f"{shown} cannot be used in a kernel: {special.sentence}")
        value = self._follow(root, path)
        shown = ".".join((root, *path))
        if root not in self.environment:
            self._refuse_name(node, root)
        if value is None:
            self._refuse_member(node, root, path)
        if isinstance(value, EnumClass):
            self._refuse(node, f"the emulator knows of an enum only its members by name, as in {shown}.NAME")
        if isinstance(value, Namespace):
            self._refuse(
                node,
                f"{shown} is a module, and the emulator knows modules in a kernel only by names that they "
                f"have outside: write its members out, as in {shown}.name",
            )
        name = "_g_" + "_".join((root, *path))
        self.bindings.setdefault(name, Binding(name, root, path, node.lineno))
        return self._expression(name, node)

    def _range_bounds(self, node):
        """Return the arguments of ``range(...)``, also in ``unroll(range(...))``, or None."""
        if not isinstance(node, ast.Call) or node.keywords:
            return None
        callee = self._resolve(node.func)
        if getattr(callee, "kind", None) == "range":
            return node.args
        if isinstance(callee, Emulation) and callee.kind != "iterable" and len(node.args) == 1:
            return self._range_bounds(node.args[0])
        return None

    def _stored(self) -> set:
        """Return the parameters whose arrays this function may store to, directly or through an alias."""
        aliases = Aliases(self.definition)
        stored = set()
        for node in walk(self.definition):
            if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
                stored |= aliases.of(node.value)
            elif isinstance(node, ast.Call):
                stored |= self._stored_by_call(node, aliases)
        return stored & set(self.parameters)

    def _stored_by_call(self, node, aliases) -> set:
        """Return the names of the arrays that a call may write.

        What a device function writes is known only once it is bound, so its arguments go to ``passed``.
        """
        callee = self._resolve(node.func)
        if callee is None:
            return set().union(*map(aliases.of, [*node.args, *(k.value for k in node.keywords)]))
        if isinstance(callee, Callee):
            return self._stored_by_callee(node, callee, aliases)
        writes = getattr(callee, "writes", ())
        return set().union(*(aliases.of(a) for i, a in enumerate(node.args) if i in writes))

    def _stored_by_callee(self, node, callee, aliases) -> set:
        stored = set()
        for position, argument in _bound_positions(node, inspect.signature(callee.function)):
            for name in aliases.of(argument) & set(self.parameters):
                if position is None:
                    stored.add(name)
                else:
                    self.passed.append((*self._chain(node.func), position, self.parameters.index(name)))
        return stored

    # ---- blocks ----

    def _block(self, statements) -> list:
        new = []
        for position, statement in enumerate(statements):
            new += self._statement(statement)
            rest = statements[position + 1 :]
            if rest and jumps_out(statement):
                guard = ast.copy_location(
                    ast.If(self._expression("_M.unit.mask.any", statement), self._block(rest), []), rest[0]
                )
                return [*new, guard]
        return new or [ast.Pass()]

    def _inside(self, statements, at) -> tuple:
        """Translate a nested block. The block is a region, which keeps the mask that it begins with."""
        region = (
            (*self.regions[-1], self.scopes.number[id(statements[0])]) if statements else self.regions[-1]
        )
        self.regions.append(region)
        new = self._code(f"{_region(region)} = _M.unit.mask", at) + self._block(statements)
        self.regions.pop()
        return new

    def _statement(self, node) -> list:
        method = getattr(self, f"_do_{type(node).__name__}", None)
        if method is None:
            shown = _STATEMENTS.get(type(node), type(node).__name__)
            self._refuse(node, f"{shown} is not supported in a kernel{_INSTEAD.get(type(node), '')}")
        return [s if hasattr(s, "lineno") else ast.copy_location(s, node) for s in method(node)]

    def _do_Pass(self, node):
        return [ast.Pass()]

    def _do_Assert(self, node):
        given = [] if node.msg is None else [node.msg]
        self._require_constants(node, given)
        holes = {"_SITE": self._site(node, "assert"), "_TEST": self._value(node.test)}
        holes["_GIVEN"] = ast.Tuple([self._exceptions_argument(one) for one in given], ast.Load())
        return self._fill("_M.assert_(_SITE, _TEST, *_GIVEN)", node, **holes)

    def _do_Raise(self, node):
        given = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if given is None or node.cause is not None:
            self._refuse(node, "only `raise` with an exception is supported in a kernel, without `from`")
        kind = self._exception(given)
        arguments = node.exc.args if isinstance(node.exc, ast.Call) else []
        self._require_constants(node, arguments)
        site, key = self._site(node, "raise"), remember_exception(kind)
        line = f"_M.raise_({site}, {ast.unparse(given)!r}, _GIVEN, {key!r})"
        given = ast.Tuple([self._exceptions_argument(one) for one in arguments], ast.Load())
        return self._fill(line, node, _GIVEN=given)

    def _exceptions_argument(self, node):
        """Return code for an argument of an exception: its value, or its source if that is not known."""
        number, value = folded(node), self._resolve(node)
        if isinstance(node, ast.Constant) or number is not None:
            return ast.Constant(node.value if number is None else number)
        if isinstance(value, Text):
            return ast.Constant(value.text)
        if isinstance(value, (bool, int, float, complex, np.generic)):
            return self._outside(node)
        return ast.Constant(ast.unparse(node))

    def _require_constants(self, node, arguments):
        """Refuse arguments of an exception that Numba would have to compute in the kernel."""
        computed = (ast.Call, ast.JoinedStr, ast.Subscript, ast.Mod)
        for given in arguments:
            if names_in(given) & self.locals or any(isinstance(part, computed) for part in walk(given)):
                self._refuse(
                    node,
                    f"`{ast.unparse(given)}` is computed in the kernel, and on a GPU Numba takes only "
                    "constants as arguments of an exception: write a text, and print the values before",
                )

    def _exception(self, node) -> type[BaseException]:
        """Return the exception that an expression names. Refuse any other."""
        value, chain = None, self._chain(node)
        if chain is not None:
            closure = inspect.getclosurevars(self.function)
            spaces = (closure.nonlocals, self.function.__globals__, vars(builtins))
            root, path = chain
            space = next((space for space in spaces if root in space), None)
            if space is None:
                self._refuse_name(node, root)
            value = space[root]
            for part in path:
                value = getattr(value, part, None)
        if not (isinstance(value, type) and issubclass(value, BaseException)):
            self._refuse(node, f"{ast.unparse(node)} is not an exception, so it cannot be raised")
        return value

    def _do_Expr(self, node):
        if isinstance(node.value, ast.Constant):
            return []
        return [ast.Expr(self._value(node.value))]

    # ---- assignments ----

    def _do_Assign(self, node):
        # The use that follows a copy checks whether the variable is set, or None, so the copy does not.
        if is_copy(node):
            kind, source = node.value.kind, node.value.value.id
            value = self._expression(f"_M.converted({kind!r}, _VALUE)", node, _VALUE=source)
            return self._assign_name(node.targets[0].id, value, node)
        self._note_update(node)
        value = self._owned(node.value)
        if len(node.targets) == 1:
            return self._assign(node.targets[0], value, node)
        name = f"_v{self._number()}"
        new = self._fill(f"{name} = _VALUE", node, _VALUE=value)
        for target in node.targets:
            new += self._assign(target, self._expression(name, node), node)
        return new

    def _note_update(self, node):
        """Note the places where an assignment loads the element to which it stores."""
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            text = ast.unparse(target)
            loads = [part for part in walk(node.value) if isinstance(part, ast.Subscript)]
            same = [id(part) for part in loads if ast.unparse(part) == text]
            if same:
                self.updating |= dict.fromkeys((id(target), *same), self._atomic_of(node.value, text))

    def _atomic_of(self, value, element) -> str:
        """Return the atomic operation that computes an element's new value from the old, or "other"."""
        if isinstance(value, ast.Call):
            extreme = self._resolve(value.func)
            found = [name for name in ("max", "min") if extreme is BUILTINS[name]]
            return found[0] if found and element in map(ast.unparse, value.args) else "other"
        if not isinstance(value, ast.BinOp) or type(value.op) not in _ATOMICS:
            return "other"
        sides = [value.left] if isinstance(value.op, ast.Sub) else [value.left, value.right]
        if element in map(ast.unparse, sides):
            return _ATOMICS[type(value.op)]
        again = isinstance(value.left, ast.BinOp) and type(value.left.op) is type(value.op)
        return self._atomic_of(value.left, element) if again else "other"

    def _do_AnnAssign(self, node):
        return [] if node.value is None else self._assign(node.target, self._owned(node.value), node)

    def _owned(self, node):
        """Return code for a value to store in a variable, copied if it would be a view of a local array."""
        value = self._value(node)
        if isinstance(node, (ast.Subscript, ast.IfExp, ast.Call, ast.Tuple)):
            return self._expression("_M.own(_VALUE)", node, _VALUE=value)
        return value

    def _assign(self, target, value, at) -> list:
        if isinstance(target, ast.Name):
            return self._assign_name(target.id, value, at)
        if isinstance(target, (ast.Tuple, ast.List)):
            return self._assign_tuple(target, value, at)
        if isinstance(target, ast.Subscript):
            site = self._site(target, "store", "store", self._stays(target, _adds(at)))
            holes = {"_BASE": self._value(target.value), "_INDEX": self._index(target.slice)}
            assign = "assign_part" if is_part(target.slice) else "assign_element"
            line = f"_M.{assign}(_SITE, _BASE, _INDEX, _VALUE)"
            return self._fill(line, at, _SITE=site, **holes, _VALUE=value)
        site = self._site(target, "store", "store")
        line = f"_M.assign_attribute({site}, _BASE, {target.attr!r}, _VALUE)"
        return self._fill(line, at, _BASE=self._value(target.value), _VALUE=value)

    def _assign_tuple(self, target, value, at):
        if any(isinstance(part, ast.Starred) for part in target.elts):
            self._refuse(target, "a starred target is not supported in a kernel")
        name = f"_v{self._number()}"
        site = self._site(target, "load", "load")
        new = self._fill(f"{name} = _M.unpack({site}, _VALUE, {len(target.elts)})", at, _VALUE=value)
        for position, part in enumerate(target.elts):
            new += self._assign(part, self._expression(f"{name}[{position}]", at), at)
        return new

    def _assign_name(self, name, value, at):
        optional = variable_of(name) in self.optional and not is_copy(at)
        new = self._store_optional(name, value, at) if optional else self._store(name, value, at)
        if variable_of(name) in self.tracked and not is_copy(at):
            new += self._store(_whether_set(name), ast.Constant(True), at)
        return new

    def _store_optional(self, name, value, at):
        """Store to a variable that may be None, and note in which lanes it is None."""
        # Storing None only sets a flag, so that other lanes keep their values.
        if isinstance(value, ast.Constant) and value.value is None:
            return self._store(_whether_none(name), ast.Constant(True), at)
        given = f"_v{self._number()}"
        new = self._fill("_NAME = _VALUE", at, _NAME=given, _VALUE=value)
        new += self._store(name, ast.Name(given, ast.Load()), at)
        return new + self._store(_whether_none(name), self._expression("_A is None", at, _A=given), at)

    def _store(self, name, value, at):
        scope = self.scopes.scope(name)
        alone = scope == self.regions[-1] and not self.scopes.jumps(scope)
        if alone:
            return self._fill("_NAME = _VALUE", at, _NAME=name, _VALUE=value)
        line = f"_NAME = _M.assign(_VALUE, _NAME, {_region(scope)})"
        return self._fill(line, at, _NAME=name, _VALUE=value)

    def _loaded(self, node):
        """Return code for the value of a variable, with a check where lanes may not have set it."""
        value = self._checked(node, node.id)
        variable = variable_of(node.id)
        if variable not in self.optional:
            return value
        holes = {"_SITE": self._variable_site(node), "_VALUE": value, "_IS_NONE": _whether_none(variable)}
        return self._expression("_M.present(_SITE, _VALUE, _IS_NONE)", node, **holes)

    def _checked(self, node, name):
        """Return code for the value of ``name``, which is set in the same lanes as the variable ``node``."""
        if id(node) not in self.unset_reads:
            return ast.Name(name, ast.Load())
        site, variable = self._variable_site(node), variable_of(node.id)
        self.unset_sites[site] = node.id
        lines = [ast.Constant(line) for line in sorted(self.set_in.get(variable, ()))]
        holes = {"_SITE": site, "_NAME": name, "_IS_SET": _whether_set(variable), "_LINES": lines}
        return self._expression("_M.checked(_SITE, _NAME, _IS_SET, _LINES)", node, **holes)

    def _variable_site(self, node) -> int:
        variable = variable_of(node.id)
        return self._site(node, self.shown.get(variable, variable), "load")

    def _do_AugAssign(self, node):
        if isinstance(node.target, ast.Subscript):
            return self._augment_element(node)
        if isinstance(node.target, ast.Attribute):
            return self._augment_field(node)
        name = node.target.id
        if id(node.target) in self.unset_reads:
            old = ast.copy_location(ast.Assign([node.target], self._loaded(node.target)), node)
            return [old, *self._augment_variable(node, name)]
        return self._augment_variable(node, name)

    def _augment_variable(self, node, name):
        reductions = self.batch_test.reductions.get(id(node))
        if reductions and isinstance(node.op, ast.Add):
            x, y = self._factors(node.value)
            site, region = self._site(node, "add"), _region(self.scopes.scope(name))
            loops = tuple(self.scopes.loop_name[loop] for loop in reductions)
            line = f"_NAME = _M.accumulate(_SITE, _NAME, _X, _Y, {loops!r}, {region})"
            return self._fill(line, node, _NAME=name, _SITE=site, _X=x, _Y=y)
        return self._assign_name(name, self._value(self._spelled_out(node, name)), node)

    def _spelled_out(self, node, name):
        """Return ``name op value`` for ``name op= value``, and the same tree for the same node."""
        if id(node) not in self.spelled_out:
            self.alive.append(node)
            old = ast.copy_location(ast.Name(name, ast.Load()), node)
            self.spelled_out[id(node)] = ast.copy_location(ast.BinOp(old, node.op, node.value), node)
        return self.spelled_out[id(node)]

    def _factors(self, node):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return self._value(node.left), self._value(node.right)
        return self._value(node), ast.Constant(None)

    def _augment_field(self, node):
        """Translate ``record.field += value`` like ``record["field"] += value``."""
        at, name = node.target, node.target.attr
        target = ast.copy_location(ast.Subscript(at.value, ast.Constant(name), at.ctx), at)
        new = self._augment_element(ast.copy_location(ast.AugAssign(target, node.op, node.value), node))
        check = self._fill(f"_M.require_record(_BASE, {name!r})", node, _BASE=self._value(at.value))
        return [*check, *new]

    def _augment_element(self, node):
        target = node.target
        self.updating[id(target)] = _ATOMICS.get(type(node.op), "other")
        if is_part(target.slice):
            name = ast.unparse(target.value)
            self._refuse(
                node,
                "a slice cannot be changed as a whole with += and the like; loop over its elements, or write "
                f"`{name} += ...` if {name} is one number",
            )
        stays = self._stays(target, adds=True)
        load, store = self._site(target, "load", "load", stays), self._site(target, "store", "store", stays)
        holes = {"_STORE": store, "_LOAD": load}
        holes |= {"_BASE": self._value(target.value), "_INDEX": self._index(target.slice)}
        operation = self._site(node, "arithmetic")
        if isinstance(node.op, ast.Add):
            holes["_X"], holes["_Y"] = self._factors(node.value)
            line = "_M.accumulate_element(_STORE, _LOAD, _SITE, _BASE, _INDEX, _X, _Y)"
            return self._fill(line, node, _SITE=operation, **holes)
        self.locals.add("_old")
        if isinstance(node.op, ast.Div):
            divided = "_M.divide_element(_SITE, _old, _B)"
            new = self._expression(divided, node, _SITE=operation, _B=self._value(node.value))
        else:
            new = self._value(self._spelled_out(node, "_old"))
        line = "_M.update(_STORE, _LOAD, _BASE, _INDEX, lambda _old: _NEW)"
        return self._fill(line, node, **holes, _NEW=new)

    # ---- branches ----

    def _do_If(self, node):
        if self._only_exits(node.orelse) and not self._only_exits(node.body):
            test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node)
            # A branch that only exits goes first.
            node = ast.copy_location(ast.If(test, node.orelse, node.body), node)
        number = self._number()
        new = self._fill(
            f"_c{number} = _M.truth(_TEST)\n_s{number} = _M.unit.mask", node, _TEST=self._condition(node.test)
        )
        new.append(ast.If(self._expression(f"_M.enter(_c{number})", node), self._inside(node.body, node), []))
        if node.orelse:
            test = self._expression(f"_M.otherwise(_s{number}, _c{number})", node)
            new.append(ast.If(test, self._inside(node.orelse, node), []))
        if jumps_out(node):
            return new + self._code(f"_M.leave(_s{number}, {self._frame()}, {self._loop()})", node)
        return new + self._code(f"_M.unit.mask = _s{number}", node)

    def _only_exits(self, body) -> bool:
        return not self.device and len(body) == 1 and isinstance(body[0], ast.Return)

    def _frame(self) -> str:
        return "_f" if self.returns_early else "None"

    def _loop(self) -> str:
        return self.loops[-1] if self.loops else "None"

    def _do_Return(self, node):
        nothing = node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)
        if not (nothing or self.device):
            self._refuse(node, "a kernel cannot return a value; it writes its results to arrays")
        value = ast.Constant(None) if nothing else self._owned(node.value)
        if not nothing and self._may_return_part(node.value):
            value = self._expression("_M.returned_value(_VALUE)", node, _VALUE=value)
        if not self.returns_early:
            return [ast.Return(value)]
        return self._fill("_M.return_(_f, _VALUE)", node, _VALUE=value)

    def _may_return_part(self, node) -> bool:
        """Tell whether a returned value must be checked, because it may be an array that was not passed.

        A function inside another one may return any array.
        """
        if isinstance(node, ast.Name) and self.only_values().get(node.id) == [None]:
            return node.id not in self.parameters
        numbers = (ast.Constant, ast.BinOp, ast.Compare, ast.UnaryOp, ast.Tuple)
        return not isinstance(node, numbers) and not inside.is_inside(self.function)

    def _do_Break(self, node):
        return self._code(f"_M.break_({self.loops[-1]})", node)

    def _do_Continue(self, node):
        return self._code(f"_M.continue_({self.loops[-1]})", node)

    # ---- loops ----

    def _examine(self, node, variable, body) -> Touched | None:
        """Return the arrays that a loop touches if its iterations may run at once, else None."""
        if self._augments_unset(body):
            return None
        return self.batch_test.examine(node, variable, body)

    def _augments_unset(self, body) -> bool:
        """Tell whether the body adds to a variable that may be unset or None."""
        nodes = (node for statement in body for node in ast.walk(statement))
        targets = [node.target for node in nodes if isinstance(node, ast.AugAssign)]
        none = any(isinstance(t, ast.Name) and variable_of(t.id) in self.optional for t in targets)
        return none or any(id(target) in self.unset_reads for target in targets)

    def _do_For(self, node):
        if not isinstance(node.target, ast.Name):
            self._refuse(
                node, "the emulator takes only a name, or a tuple of names, as the variable of a for loop"
            )
        touched = self._examine(node, node.target.id, node.body)
        loop = self._open_loop(node)
        new = self._code(f"{loop} = _M.loop({node.lineno}, {self._frame()}{self._may_narrow(node)})", node)
        iterations = self._expression(
            f"_M.iterate({loop}, {loop!r}, _VALUES, _TOUCHED)",
            node,
            _VALUES=self._iterable(node.iter),
            _TOUCHED=self._arrays(touched),
        )
        private = None if touched is None else self._private(node.body)
        kept, restored = ([], []) if private is None else self._kept({*private, node.target.id}, node)
        new += kept
        new.append(self._for(loop, iterations, node.target.id, node.body, node, private))
        self.loops.pop()
        new += self._widened(loop, node) + self._code(f"_M.finish({loop})", node)
        return new + restored + self._loop_else(loop, node)

    def _loop_else(self, loop, node):
        """Translate the ``else`` of a loop, for the lanes that did not leave the loop by ``break``."""
        if not node.orelse:
            return []
        saved = f"_s{self._number()}"
        new = self._code(f"{saved} = _M.unit.mask", node)
        test = self._expression(f"_M.completed({loop})", node)
        new.append(ast.If(test, self._inside(node.orelse, node), []))
        if any(map(jumps_out, node.orelse)):
            return new + self._code(f"_M.leave({saved}, {self._frame()}, {self._loop()})", node)
        return new + self._code(f"_M.unit.mask = {saved}", node)

    def _private(self, body) -> set:
        """Return the variables that a body assigns, without those that sum over all iterations."""
        reductions = {s.target.id for top in body for s in walk(top) if id(s) in self.batch_test.reductions}
        return assigned_names(body) - reductions

    def _kept(self, variables, at) -> tuple:
        """Return code that keeps the values from before a loop, and code that restores them.

        The loop's lanes do not need its values afterwards, but other lanes may need the old ones.
        """
        variables = self.with_tracked(variables)
        if variables is None:
            return [], []
        kept = f"_v{self._number()}"
        values = ast.Tuple([ast.Name(name, ast.Load()) for name in variables], ast.Load())
        places = ast.Tuple([ast.Name(name, ast.Store()) for name in variables], ast.Store())
        restore = ast.Assign([places], ast.Name(kept, ast.Load()))
        return self._fill("_NAME = _VALUE", at, _NAME=kept, _VALUE=values), [ast.copy_location(restore, at)]

    def _forget(self, variables, at) -> list:
        """Return code that drops values, so that no assignment under a narrower mask is merged with them."""
        return self._code(f"{' = '.join(sorted(variables))} = _M.unbound", at) if variables else []

    def _iterable(self, node):
        bounds = self._range_bounds(node)
        if bounds is None and self._kind(node) == "iterable":
            return self._combined(node)
        if bounds is None and self._kind(node) == "indices":
            return self._call(node, self._resolve(node.func), self._outside(node.func))
        if bounds is None:
            site = self._site(
                node, "load", "load", stays=0
            )  # A loop over an array uses the addresses of its elements.
            return self._expression("_M.items(_SITE, _VALUE)", node, _SITE=site, _VALUE=self._value(node))
        if not isinstance(node, ast.Call) or not bounds or len(bounds) > 3:
            self._refuse(node, "range() takes one to three numbers")
        return self._expression("_M.range_of(_BOUNDS)", node, _BOUNDS=[self._value(b) for b in bounds])

    def _combined(self, node):
        """Translate ``enumerate(...)`` or ``zip(...)``."""
        if node.keywords:
            self._refuse(node, f"{ast.unparse(node.func)}() takes no keyword arguments in a kernel")
        counted = self._resolve(node.func) is BUILTINS["enumerate"]
        given = [
            self._iterable(a) if i == 0 or not counted else self._value(a) for i, a in enumerate(node.args)
        ]
        function, site = self._outside(node.func), self._site(node, "load", "call")
        return self._expression(f"_M.call({site}, _FUNCTION, _GIVEN)", node, _FUNCTION=function, _GIVEN=given)

    def _arrays(self, touched):
        if touched is None:
            return ast.Constant(None)
        return ast.Tuple(
            [ast.Name(name, ast.Load()) for name in sorted(touched.names) if name in self.locals], ast.Load()
        )

    def _open_loop(self, node) -> str:
        self.alive.append(node)
        loop = self.scopes.loop_name.setdefault(id(node), f"_l{self._number()}")
        self.loops.append(loop)
        return loop

    def _for(self, loop, iterations, variable, body, at, private):
        """Return a loop. ``private``: an iteration's variables if iterations may run at once, else None."""
        region = (*self.regions[-1], self.scopes.number[id(body[0])])
        self.regions.append(region)
        iteration = f"_v{self._number()}"
        new = self._narrowed(loop, at, iteration) + self._code(f"{_region(region)} = _M.unit.mask", at)
        if private is None:
            new += self._assign_name(variable, self._expression(iteration, at), at)
        else:
            new += self._code(f"{variable} = {iteration}", at) + self._forget(private - {variable}, at)
        new += self._block(body) + self._folded(loop, body, at)
        self.regions.pop()
        return ast.copy_location(ast.For(ast.Name(iteration, ast.Store()), iterations, new, []), at)

    def _folded(self, loop, body, at):
        """Return code that lets the machine skip iterations while it only counts."""
        state = sorted(assigned_names(body))
        if not state:
            return self._code(f"if _M.folding: _M.fold({loop}, ())", at)
        variables = ", ".join(state) + ","
        return self._code(f"if _M.folding: ({variables}) = _M.fold({loop}, ({variables}))", at)

    def _do_While(self, node):
        counted = self._counted(node)
        loop = self._open_loop(node)
        new = self._code(
            f"{loop} = _M.loop({node.lineno}, {self._frame()}{self._may_narrow(node)}"
            f"{'' if counts_to_its_end(node) else ', timed=True'})",
            node,
        )
        idle = self._idle(loop, node)
        if idle:
            new += self._code(f"_M.may_wait({loop})", node)
        one_by_one = self._while(loop, node, idle)
        if counted is None:
            new.append(one_by_one)
        else:
            new += self._all_at_once(loop, node, *counted, one_by_one)
        self.loops.pop()
        new += self._widened(loop, node) + self._code(f"_M.finish({loop})", node)
        return new + self._loop_else(loop, node)

    def _while(self, loop, node, idle):
        region = (*self.regions[-1], self.scopes.number[id(node.body[0])])
        test = self._expression(
            f"_M.again({loop}) and _M.test({loop}, _TEST)", node, _TEST=self._condition(node.test)
        )
        self.regions.append(region)
        body = (
            self._narrowed(loop, node)
            + self._code(f"{_region(region)} = _M.unit.mask", node)
            + self._block(node.body)
            + self._folded(loop, node.body, node)
            + idle
        )
        self.regions.pop()
        return ast.copy_location(ast.While(test, body, []), node)

    def _idle(self, loop, node):
        """Return code by which the machine notices that a loop only waits for other threads' stores."""
        if not hangs_on_memory(node, self._may_change):
            return []
        site = self._site(node, "loop", "loop")
        return self._code(f"_M.idle({loop}, {site}, {', '.join(sorted(assigned_names(node.body)))})", node)

    def _may_change(self, node) -> bool:
        """Tell whether other threads may change the value of this expression."""
        if isinstance(node, ast.Call):
            callee = self._resolve(node.func)
            held = isinstance(node.func, ast.Name) and node.func.id in self.locals
            held |= isinstance(node.func, ast.Attribute) and node.func.attr in METHODS_THAT_REDUCE
            return held or isinstance(callee, Callee) or bool(getattr(callee, "reads", ()))
        return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)

    def _all_at_once(self, loop, node, counter, stop, step, touched, one_by_one):
        count = f"_c{self._number()}"
        new = self._fill(
            f"{count} = _M.counted({counter}, _STOP, _STEP)",
            node,
            _STOP=self._value(stop),
            _STEP=self._value(step),
        )
        iterations = self._expression(
            f"_M.iterate({loop}, {loop!r}, {count}, _TOUCHED)", node, _TOUCHED=self._arrays(touched)
        )
        private = self._private(node.body[:-1])
        kept, restored = self._kept({*private, counter}, node)
        batched = [
            *kept,
            self._for(loop, iterations, counter, node.body[:-1], node, private),
            *restored,
        ]
        batched += self._assign_name(counter, self._expression(f"{count}[-1] + {count}.step", node), node)
        test = self._expression(
            f"{count} is not None and _M.may_batch({count}, _TOUCHED)", node, _TOUCHED=self._arrays(touched)
        )
        return [*new, ast.copy_location(ast.If(test, batched, [one_by_one]), node)]

    def _may_narrow(self, node) -> str:
        return ", True" if self.narrow_test.variables(node) is not None else ""

    def _narrowed(self, loop, node, iteration=None) -> list:
        """Return code that begins an iteration with few lanes. ``iteration``: the name of its value."""
        variables = self.narrow_test.variables(node)
        if variables is None:
            return []
        names = "".join(f"{name}, " for name in (*variables, *([iteration] if iteration else [])))
        return self._code(f"if {loop}.sparse: ({names}) = _M.narrow({loop}, ({names}))", node)

    def _widened(self, loop, node) -> list:
        """Return code that goes back to all lanes after the loop."""
        variables = self.narrow_test.variables(node)
        if variables is None:
            return []
        names = "".join(f"{name}, " for name in variables)
        return self._code(f"if {loop}.aside is not None: ({names}) = _M.widen({loop}, ({names}))", node)

    def _counted(self, node):
        """Return (counter, stop, step, arrays) of a ``while`` whose iterations may run at once, else None.

        Its test must be ``counter < stop``, and its last line ``counter += step``.
        """
        test, last = node.test, node.body[-1]
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Lt)):
            return None
        if not (isinstance(last, ast.AugAssign) and isinstance(last.op, ast.Add)):
            return None
        if not isinstance(test.left, ast.Name) or id(test.left) in self.unset_reads:
            return None
        counter = test.left.id
        if not (isinstance(last.target, ast.Name) and last.target.id == counter) or len(node.body) < 2:
            return None
        changed = assigned_names(node.body)
        fixed = (test.comparators[0], last.value)
        if counter in assigned_names(node.body[:-1]) or any(_all_names(part) & changed for part in fixed):
            return None
        if any(isinstance(n, (ast.Call, ast.Subscript)) for e in fixed for n in walk(e)):
            return None
        touched = self._examine(node, counter, node.body[:-1])
        return None if touched is None else (counter, *fixed, touched)

    # ---- expressions ----

    def _value(self, node):
        number = folded(node)
        if number is not None and not isinstance(node, ast.Constant):
            return ast.copy_location(ast.Constant(number), node)
        method = getattr(self, f"_of_{type(node).__name__}", None)
        if method is None:
            shown = _EXPRESSIONS.get(type(node), type(node).__name__)
            more = OWN_ARRAY if isinstance(node, (ast.List, ast.ListComp)) else ""
            more = ": write a loop" if isinstance(node, ast.GeneratorExp) else more
            # Numba compiles these expressions, so the message blames only the emulator.
            if isinstance(node, (ast.NamedExpr, ast.Starred)):
                self._refuse(node, f"the emulator does not support {shown} in a kernel")
            self._refuse(node, f"{shown} is not supported in a kernel{more}")
        return ast.copy_location(method(node), node)

    def _of_Constant(self, node):
        if not isinstance(node.value, (bool, int, float, complex, type(None))):
            more = ": name it where it is used" if isinstance(node.value, str) else ""
            self._refuse(
                node,
                f"a kernel computes with numbers; {node.value!r} is not a number, and the emulator supports "
                f"text only in print(), as a dtype and as a field's name{more}",
            )
        return ast.Constant(node.value)

    def _of_Name(self, node):
        callee = self._resolve(node)
        if isinstance(callee, Callee) and callee.dispatcher is None:
            self._refuse(
                node, f"{node.id} is defined inside the kernel, so it can only be called, not passed on"
            )
        if node.id in self.locals:
            return self._loaded(node)
        return self._outside(node)

    def _of_Tuple(self, node):
        return ast.Tuple([self._value(part) for part in node.elts], ast.Load())

    def _of_Attribute(self, node):
        if self._chain(node) is not None and not isinstance(self._resolve(node.value), _VALUES):
            return self._outside(node)
        site = self._site(node, "load", "load")
        line = f"_M.attribute(_VALUE, {node.attr!r}, _SITE)"
        return self._expression(line, node, _SITE=site, _VALUE=self._value(node.value))

    def _of_Subscript(self, node):
        if isinstance(node.slice, ast.Constant) and node.slice.value in (None, ...):
            shown = ast.unparse(node.slice)
            self._refuse(
                node,
                f"Numba does not compile an index that is {shown} alone: write [{shown}, :], or no index",
            )
        if isinstance(node.slice, ast.Constant) and isinstance(self._resolve(node.value), EnumClass):
            member = ast.Attribute(node.value, str(node.slice.value), ast.Load())
            return self._value(ast.copy_location(member, node))
        site = self._site(node, "load", "load", self._stays(node))
        base, index = self._value(node.value), self._index(node.slice)
        read = "view" if is_part(node.slice) else "subscript"
        return self._expression(
            f"_M.{read}(_SITE, _BASE, _INDEX)", node, _SITE=site, _BASE=base, _INDEX=index
        )

    def _is_member_of_enum(self, node) -> bool:
        return self._chain(node) is not None and isinstance(self._original(node), enum.Enum)

    def _index(self, node):
        if self._is_member_of_enum(node):
            shown = ast.unparse(node)
            self._refuse(node, f"Numba takes no member of an enum as an index: write {shown}.value")
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return ast.copy_location(ast.Constant(node.value), node)  # The index names a field of a record.
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(text := self._resolve(node), Text):
            return ast.copy_location(ast.Constant(text.text), node)
        if isinstance(node, ast.Slice):
            bounds = (node.lower, node.upper, node.step)
            arguments = [ast.Constant(None) if b is None else self._value(b) for b in bounds]
            return self._expression("slice(_ARGUMENTS)", node, _ARGUMENTS=arguments)
        if isinstance(node, ast.Constant) and node.value is ...:
            return ast.copy_location(ast.Constant(...), node)
        if isinstance(node, ast.Tuple):
            return ast.copy_location(ast.Tuple([self._index(part) for part in node.elts], ast.Load()), node)
        return self._value(node)

    # ---- which local arrays stay in registers ----

    def _stays(self, node: ast.Subscript, adds=False) -> int | None:
        """Return the largest local array, in elements, that stays in registers with this index.

        None means any size. adds: whether the access stores a computed value.
        """
        if not self._may_be_local([node.value]):
            return None
        return self._stays_at(self._grade_of_place(node), adds)

    @staticmethod
    def _stays_at(grade, adds=False) -> int | None:
        if grade == COUNTED and adds:
            return COUNTED_ELEMENTS
        return 0 if grade == UNKNOWN else None

    def _grade_of_place(self, node: ast.Subscript) -> int:
        grade = self._grade(node.slice)
        return (
            min(grade, self._grade_of_place(node.value)) if isinstance(node.value, ast.Subscript) else grade
        )

    def _grade(self, index) -> int:
        if self.local_indices is None:
            return KNOWN if is_static(index, self.static) else UNKNOWN
        return self.local_indices.of(index)

    @cached_property
    def local_indices(self) -> LocalIndices | None:
        """The grades of the function's indices, or None if its variables cannot be followed."""
        callees = Callees(
            range_bounds=self._range_bounds,
            is_lanewise=lambda call: is_lanewise(self._resolve(call.func)),
            is_declaration=lambda value: self._kind(value) in ("shared_array", "local_array"),
            loops_over=lambda value: self._kind(value) == "iterable",
        )
        try:
            return LocalIndices(self.definition, self._constants(), callees)
        except NoVersions:
            return None

    def _of_UnaryOp(self, node):
        if isinstance(node.op, ast.UAdd):
            return self._expression("_M.pos(_A)", node, _A=self._value(node.operand))
        if isinstance(node.op, ast.Not):
            return self._expression("_M.not_(_A)", node, _A=self._condition(node.operand))
        number = isinstance(node.operand, ast.Constant) and node.operand.value is not None
        if isinstance(node.op, ast.USub) and number:
            return ast.Constant(-self._of_Constant(node.operand).value)
        name = "neg" if isinstance(node.op, ast.USub) else "invert"
        site = self._site(node, "arithmetic")
        return self._expression(f"_M.{name}(_SITE, _A)", node, _SITE=site, _A=self._value(node.operand))

    def _of_BinOp(self, node):
        fused = self._fused(node)
        if fused is not None:
            return fused
        site = self._site(node, "arithmetic")
        holes = {"_SITE": site, "_A": self._value(node.left), "_B": self._value(node.right)}
        if type(node.op) in _BITS:
            return self._expression(f"_M.bits(_SITE, {_BITS[type(node.op)]!r}, _A, _B)", node, **holes)
        if type(node.op) not in _BINARY:
            self._refuse(node, "the operator @ is not supported in a kernel: write the product as loops")
        return self._expression(f"_M.{_BINARY[type(node.op)]}(_SITE, _A, _B)", node, **holes)

    def _fused(self, node):
        """Translate x * y + z and similar, which the compiler turns into one fused multiply-add."""
        if not isinstance(node.op, (ast.Add, ast.Sub)):
            return None
        left, right = (
            isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mult) for side in (node.left, node.right)
        )
        if not (left or right):
            return None
        product, other = (node.left, node.right) if left else (node.right, node.left)
        name = "fma" if isinstance(node.op, ast.Add) else "fma_sub" if left else "sub_fma"
        order = "_Z, _X, _Y" if name == "sub_fma" else "_X, _Y, _Z"
        site = self._site(node, "arithmetic")
        holes = {"_X": self._value(product.left), "_Y": self._value(product.right), "_Z": self._value(other)}
        return self._expression(f"_M.{name}(_SITE, {order})", node, _SITE=site, **holes)

    def _of_BoolOp(self, node):
        """Translate ``a and b`` or ``a or b``, whose value is one of its parts."""
        return self._joined(
            node, "first_false" if isinstance(node.op, ast.And) else "first_true", self._value
        )

    def _condition(self, node):
        """Translate an expression of which only the truth matters, not the value."""
        if isinstance(node, ast.BoolOp):
            new = self._joined(node, "and_" if isinstance(node.op, ast.And) else "or_", self._condition)
            return ast.copy_location(new, node)
        return self._value(node)

    def _joined(self, node, name, value_of):
        result = value_of(node.values[-1])
        for part in reversed(node.values[:-1]):
            result = self._expression(f"_M.{name}(_A, lambda: _B)", node, _A=value_of(part), _B=result)
        return result

    def _of_Cast(self, node):
        return self._expression(f"_M.converted({node.kind!r}, _VALUE)", node, _VALUE=self._value(node.value))

    def _of_Compare(self, node):
        if self._asks_for_none(node):
            test = self._checked(node.left, _whether_none(node.left.id))
            return (
                self._expression("_M.not_(_A)", node, _A=test) if isinstance(node.ops[0], ast.IsNot) else test
            )
        operands = [self._value(operand) for operand in (node.left, *node.comparators)]
        if len(operands) == 2:
            return self._comparison(node, node.ops[0], *operands)
        if len(operands) == 3:
            return self._chained(node, operands)
        return self._chain_of_many(node, operands)

    def _asks_for_none(self, node) -> bool:
        """Tell whether a node is ``x is None`` or ``x is not None`` of a variable that may be None."""
        if len(node.ops) > 1 or not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return False
        left, right = node.left, node.comparators[0]
        known = isinstance(left, ast.Name) and variable_of(left.id) in self.optional
        return known and isinstance(right, ast.Constant) and right.value is None

    def _comparison(self, node, op, left, right):
        if type(op) in _COMPARE:
            call = f"_M.compare({_COMPARE[type(op)]!r}, _A, _B)"
        else:
            call = f"_M.{'identical' if isinstance(op, (ast.Is, ast.IsNot)) else 'contained'}(_A, _B)"
            if isinstance(op, (ast.IsNot, ast.NotIn)):
                call = f"_M.not_({call})"
        return self._expression(call, node, _A=left, _B=right)

    def _chained(self, node, operands):
        """Translate ``a < b < c``, so that b is evaluated once, and c only where a < b holds."""
        left, middle, right = operands
        name = f"_v{self._number()}"
        kept = ast.NamedExpr(ast.Name(name, ast.Store()), middle)
        step = self._comparison(node, node.ops[0], left, kept)
        rest = self._comparison(node, node.ops[1], self._expression(name, node), right)
        return self._expression("_M.and_(_A, lambda: _B)", node, _A=step, _B=rest)

    def _chain_of_many(self, node, operands):
        """Translate ``a < b < c < d`` into links.

        A link takes an operand's value. It returns the value of the next operand and their comparison.
        """
        first, *rest = operands
        links = []
        for op, operand in zip(node.ops, rest):
            left, right = self._expression("_a", node), self._expression("_b", node)
            outcome = self._comparison(node, op, left, right)
            kept = ast.NamedExpr(ast.Name("_b", ast.Store()), operand)
            links.append(self._expression("lambda _a: (_B, _OUTCOME)", node, _B=kept, _OUTCOME=outcome))
        return self._expression("_M.chain(_FIRST, _LINKS)", node, _FIRST=first, _LINKS=links)

    def _of_IfExp(self, node):
        then, otherwise = self._value(node.body), self._value(node.orelse)
        holes = {"_TEST": self._condition(node.test), "_THEN": then, "_ELSE": otherwise}
        return self._expression("_M.select(_TEST, lambda: _THEN, lambda: _ELSE)", node, **holes)

    def _of_Call(self, node):
        if self._is_method(node.func):
            return self._method_call(node)
        if isinstance(node.func, ast.Name) and node.func.id in self.locals:
            name = node.func.id
            return self._call(
                node,
                None,
                self._expression(f"_M.function_in(_VALUE, {name!r})", node, _VALUE=self._value(node.func)),
            )
        callee = self._resolve(node.func)
        if self._chain(node.func) is None:
            called = node.func.value if isinstance(node.func, ast.Subscript) else None
            if isinstance(called, (ast.Name, ast.Attribute)) and isinstance(self._resolve(called), Callee):
                name = ast.unparse(called)
                self._refuse(
                    node,
                    f"a kernel cannot launch kernels in Numba: launch {name} from the host, or make it a "
                    f"device function and call {name}(...) without a configuration",
                )
            self._refuse(node, "the emulator calls functions in a kernel only by their names")
        function = self._outside(node.func)
        kind = getattr(callee, "kind", "")
        if kind in ("range", "iterable", "indices"):
            shown = ast.unparse(node.func)
            self._refuse(node, f"the emulator supports {shown}() only in the first line of a for loop")
        if not callable(callee) and not isinstance(callee, Callee):
            self._refuse(node, f"{ast.unparse(node.func)} is not a function")
        if isinstance(callee, Callee):
            self._check_arguments(node, inspect.signature(callee.function))
            self._note_computed(node, callee)
            self._note_call(node, callee)
        if callee is BUILTINS["float"] and node.args and isinstance(node.args[0], ast.Constant):
            if (number := self._number_from_text(node)) is not None:
                return ast.Constant(number)
        if kind in ("shared_array", "local_array"):
            self._check_shape(node, kind)
        if kind == "dimensions":
            self._check_dimensions(node)
        return self._call(node, callee, function)

    def _call(self, node, callee, function):
        site = self._site(node, *self._call_site(node, callee))
        arguments = [self._argument(a, callee) for a in node.args]
        call = self._expression(
            "_M.call(_SITE, _FUNCTION, _ARGUMENTS)",
            node,
            _SITE=site,
            _FUNCTION=function,
            _ARGUMENTS=arguments,
        )
        if any(k.arg is None for k in node.keywords):
            self._refuse(node, "** in a call is not supported in a kernel; pass the arguments one by one")
        call.keywords = [ast.keyword(k.arg, self._argument(k.value, callee)) for k in node.keywords]
        return call

    def _note_computed(self, node, callee):
        """Note the arguments that are no literals, in case the function needs one."""
        for position, given in _bound_positions(node, inspect.signature(callee.function)):
            known = is_static(given, self.static) and computed_size(given, self.definition) is None
            known &= self._numpy_integer(given) is None
            if position is not None and not known:
                self.computed.append((*self._chain(node.func), position, node.lineno))

    def _note_call(self, node, callee):
        """Note which arguments of a call are literals, in case the function calls itself."""
        signature = inspect.signature(callee.function)
        marks = [recursion.LEFT_OUT] * len(signature.parameters)
        for position, given in _bound_positions(node, signature):
            if position is None:
                return
            marks[position] = self._mark(given)
        self.calls.append((*self._chain(node.func), tuple(marks), node.lineno))

    def _mark(self, node, follow=True):
        """Return what Numba knows of an argument when it compiles, as a mark of :mod:`.recursion`."""
        if (number := folded(node)) is not None:
            is_literal = isinstance(number, int)
            return recursion.Literal(type(number), number) if is_literal else recursion.COMPUTED
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call)):
            return recursion.COMPUTED
        if isinstance(node, ast.Subscript):
            return self._mark_of_element(node)
        if isinstance(node, ast.Attribute) and self._chain(node) is None:
            return recursion.COMPUTED
        if not isinstance(node, ast.Name):
            return recursion.UNKNOWN
        if node.id not in self.locals:
            return recursion.Outside(node.id)
        if node.id in self.parameters and node.id not in assigned_names(self.definition.body):
            return recursion.Passed(self.parameters.index(node.id))
        values = self.only_values().get(node.id, [])
        if not follow or None in values:
            return recursion.UNKNOWN
        marks = {self._mark(value, follow=False) for value in values}
        return marks.pop() if len(marks) == 1 else recursion.UNKNOWN

    def _mark_of_element(self, node):
        """Return the mark of ``values[index]``. An element of a tuple of literals is a literal."""
        values, index = node.value, folded(node.slice)
        if isinstance(values, ast.Name) and type(index) is int:
            if values.id not in self.locals:
                return recursion.Outside(values.id, index)
            known = self.only_values().get(values.id, [])
            if len(known) == 1 and isinstance(known[0], ast.Tuple) and -1 < index < len(known[0].elts):
                return self._mark(known[0].elts[index])
        return recursion.UNKNOWN if self._mark(values) == recursion.UNKNOWN else recursion.COMPUTED

    def _check_arguments(self, node, signature):
        """Refuse a call whose arguments do not fit the parameters. A call with ``*args`` always passes."""
        if any(keyword.arg is None for keyword in node.keywords):
            self._refuse(node, "** in a call is not supported in a kernel; pass the arguments one by one")
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            return
        try:
            signature.bind(*node.args, **{keyword.arg: keyword.value for keyword in node.keywords})
        except TypeError as wrong:
            takes = ", ".join(map(str, signature.parameters.values()))
            self._refuse(node, f"{ast.unparse(node.func)}({takes}) is called with other arguments: {wrong}")

    def _number_from_text(self, node) -> float | None:
        """Return the number that a call like ``float("inf")`` means, or None for another argument."""
        text = node.args[0].value
        if not isinstance(text, str):
            return None
        try:
            return float(text)
        except ValueError:
            self._refuse(node, f"{text!r} is not the text of a number")

    def _is_method(self, function) -> bool:
        """Tell whether a function is a method ``x.name`` of a kernel's value or of an array from outside."""
        if not isinstance(function, ast.Attribute):
            return False
        return self._chain(function) is None or isinstance(self._resolve(function.value), _VALUES)

    def _method_call(self, node):
        name = node.func.attr
        if name in _TAKES and len(node.args) != _TAKES[name]:
            takes = f"{_TAKES[name] or 'no'} argument{'s' * (_TAKES[name] != 1)}"
            self._refuse(node, f"the method .{name}() takes {takes} in a kernel, not {len(node.args)}")
        if name == "sync":
            group, site = self._value(node.func.value), self._site(node, "barrier")
            return self._expression(f"_M.grid_barrier({site}, _GROUP)", node, _GROUP=group)
        if name in REFUSED_METHODS:
            instead = REFUSED_METHODS[name]
            self._refuse(node, f"Numba does not compile .{name}() in a kernel without its runtime: {instead}")
        if name not in METHODS:
            more = ": store into its elements in a loop" if name == "fill" else ""
            more = ": write a loop" if name in ("dot", "max", "min") else more
            self._refuse(node, f"the emulator does not support the method .{name}() in a kernel{more}")
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            self._refuse(node, f"the method .{name}() is supported in a kernel with plain arguments only")
        site = self._site(node, "load", "load")
        holes = {"_VALUE": self._value(node.func.value), "_ARGUMENTS": [self._value(a) for a in node.args]}
        return self._expression(f"_M.method({site}, _VALUE, {name!r}, _ARGUMENTS)", node, **holes)

    def _note_literals(self, node, seen=frozenset()):
        """Note which parameters a literal comes from, if it is not written here."""
        if node is None or isinstance(node, ast.Attribute):
            return
        for name in names_in(node) - seen:
            if name in self.parameters:
                self.literal.add(self.parameters.index(name))
            for value in self.only_values().get(name, ()):
                self._note_literals(value, seen | {name})

    def _names_of_loops(self) -> set:
        loops = (node for node in walk(self.definition) if isinstance(node, ast.For))
        return set().union(*(names_in(loop.target, ast.Store) for loop in loops))

    def _check_dimensions(self, node):
        """Refuse a call of ``cuda.grid`` or ``cuda.gridsize`` whose argument is no literal."""
        for given in (*node.args, *(keyword.value for keyword in node.keywords)):
            if not (isinstance(given, ast.Constant) or self._is_literal(given)):
                name = ast.unparse(node.func)
                self._refuse(
                    node,
                    f"{name}({ast.unparse(given)}): Numba needs a literal here: write {name}(1), {name}(2) "
                    f"or {name}(3), or the name of such a number outside the kernel"
                    f"{self._instead_of_numpy_integer(given)}",
                )
            self._note_literals(given)

    def _check_shape(self, node, kind):
        given = (*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "shape"))
        shape = next(iter(given), None)
        for name in sorted(names_in(shape) - self.locals) if shape is not None else ():
            if name not in self.environment:
                self._refuse_name(node, name)
        numpy_integer = "" if shape is None else self._instead_of_numpy_integer(shape)
        if shape is not None and (numpy_integer or not is_static(shape, self.static)):
            self._refuse(
                node,
                "the shape of a shared or local array must be known when the kernel is compiled: a number, "
                "or a constant of the module or of the enclosing function, not a value that is only known "
                f"when the kernel runs{LENGTH_OF_TUPLE if _calls_len(shape) else ''}{numpy_integer}",
            )
        if shape is not None and self._names_of_loops() & names_in(shape):
            self._refuse(
                node,
                "the shape of a shared or local array must be known when the kernel is compiled, and the "
                "variable of a loop is not",
            )
        computed = computed_size(shape, self.definition) if shape is not None else None
        if computed is not None:
            self._refuse(
                node,
                f"`{ast.unparse(computed)}` is computed inside the kernel, and Numba does not accept such a "
                "size for a shared or local array: compute it outside the kernel and use its name",
            )
        if shape is not None:
            self._note_literals(shape)
        if kind == "local_array" and shape is not None and not names_in(shape) & self.locals:
            expression = ast.Expression(_plain_arithmetic(shape, self._outside))
            place_all(expression, node.lineno)
            self.local_shapes.append(compile(expression, self.filename, "eval"))

    def _argument(self, node, callee):
        if isinstance(node, ast.Starred):
            return ast.Starred(
                self._expression("_M.starred(_VALUE)", node, _VALUE=self._owned(node.value)), ast.Load()
            )
        text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        text &= callee not in (BUILTINS["len"], BUILTINS["bool"])
        if text and getattr(callee, "kind", "") in ("intrinsic", "shared_array", "local_array"):
            return ast.Constant(
                node.value
            )  # These calls take a text, as in print("...") and dtype="float32".
        takes_text = callee is BUILTINS["print"] or getattr(callee, "kind", "") in _DECLARE
        if takes_text and isinstance(given := self._resolve(node), Text):
            return ast.Constant(given.text)
        return self._owned(node) if callee is None or isinstance(callee, Callee) else self._value(node)

    def _call_site(self, node, callee):
        """Return the arguments of :meth:`_site` for a call: operation or declared array, role, and limit.

        The limit is the size up to which a local array stays in registers, see :meth:`_stays`.
        """
        kind = getattr(callee, "kind", "")
        if kind in ("shared_array", "local_array", "view"):
            name = self.scopes.declared.get(id(node), kind.replace("_", " "))
            return self.shown.get(name, name), "call"
        writes = [position for position in getattr(callee, "writes", ()) if position < len(node.args)]
        op = "store" if writes and not getattr(callee, "reads", ()) else "atomic" if writes else "load"
        fragments = getattr(callee, "fragments", ())
        if fragments:
            views = [a for i, a in enumerate(node.args) if i in fragments and isinstance(a, ast.Subscript)]
            return op, "call", self._stays_at(min(map(self._grade_of_place, views), default=KNOWN))
        arrays = [
            i for i in (*getattr(callee, "reads", ()), *writes) if self._may_be_local(node.args[i : i + 1])
        ]
        index = [node.args[i + 1] for i in arrays if i + 1 < len(node.args)]
        return op, "call", self._stays_at(min(map(self._grade, index), default=KNOWN))

    def _may_be_local(self, given) -> bool:
        """Tell whether an argument, if given, may be a local array. A kernel's own parameters never are."""
        names = set().union(*map(_base_names, given)) if given else set()
        return self.device or not names <= {*self.parameters, *self.shared}


def _adds(at) -> bool:
    """Tell whether an assignment stores more than a constant."""
    return not isinstance(getattr(at, "value", None), ast.Constant)


def place_all(node, line: int):
    """Give every node a line: its own, or that of the enclosing node."""
    if node._attributes:  # A node without attributes has no line.
        line = node.lineno = node.end_lineno = getattr(node, "lineno", line)
        node.col_offset = node.end_col_offset = 0
    for child in children(node):
        place_all(child, line)


def _calls_len(node) -> bool:
    return any(isinstance(part, ast.Call) and getattr(part.func, "id", "") == "len" for part in walk(node))


def _stored_here(node):
    """Return the names that a statement assigns in any other way than ``name = value``."""
    if isinstance(node, ast.arguments):
        return [argument.arg for argument in (*node.posonlyargs, *node.args, *node.kwonlyargs)]
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    parts = (part for target in targets if target is not None for part in walk(target))
    return [part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]


class Scopes:
    """The scopes of a function's variables, each the innermost block with all uses of the variable.

    ``tracked``: variables that may be read before they are set. Their value may come from an earlier run of
    that block, perhaps by fewer lanes, so their scope is the whole function. ``loop_name`` and ``declared``
    map the ids of loops, and of calls that declare arrays, to their names in the new code.
    """

    def __init__(self, definition, tracked=frozenset()):
        self.tracked = tracked
        self.number: dict[int, int] = {}
        self.paths: dict[str, list] = {}
        self.blocks: dict[tuple, list] = {(): definition.body}
        self.loop_name: dict[int, str] = {}
        self.declared: dict[int, str] = {}
        self.jumping: dict[tuple, bool] = {}
        for name in _signature_of(definition.args).parameters:
            self.paths[name] = [()]
        self._walk(definition.body, ())

    def _walk(self, statements, path):
        for node in statements:
            self._note_declaration(node)
            for field in ("test", "iter", "target", "value", "targets"):
                part = getattr(node, field, None)
                for expression in part if isinstance(part, list) else [part] if part is not None else []:
                    inside = isinstance(node, ast.For) and field == "target"
                    self._note(expression, (*path, self._enter(node.body)) if inside else path)
            for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
                if isinstance(body, list) and body:
                    inner = (*path, self._enter(body))
                    self.blocks[inner] = body
                    self._walk(body, inner)

    def _enter(self, body) -> int:
        return self.number.setdefault(id(body[0]), len(self.number) + 1)

    def _note(self, expression, path):
        for node in walk(expression):
            if isinstance(node, ast.Name):
                self.paths.setdefault(node.id, []).append(path)

    def _note_declaration(self, node):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            return
        if isinstance(node.targets[0], ast.Name):
            self.declared[id(node.value)] = node.targets[0].id

    def scope(self, name) -> tuple:
        if variable_of(name) in self.tracked:
            return ()
        paths = self.paths.get(name, [()])
        shortest = min(paths, key=len)
        for length in range(len(shortest), -1, -1):
            if all(path[:length] == shortest[:length] for path in paths):
                return shortest[:length]
        return ()

    def jumps(self, path) -> bool:
        if path not in self.jumping:
            self.jumping[path] = any(contains_jump(statement) for statement in self.blocks.get(path, []))
        return self.jumping[path]


def _returns_early(body) -> bool:
    """Tell whether a body returns anywhere but in its last statement."""
    if not body:
        return False
    inside = any(isinstance(node, ast.Return) for statement in body[:-1] for node in walk_here(statement))
    return inside or (not isinstance(body[-1], ast.Return) and contains_jump(body[-1]))


def _is_constant(value) -> bool:
    """Tell whether Numba knows a value from outside when it compiles. It knows no named tuple's fields."""
    if type(value) is tuple:
        return all(map(_is_constant, value))
    return isinstance(value, (bool, int))


def _signature_of(arguments: ast.arguments) -> inspect.Signature:
    """Return the signature of a function in the source. Its defaults are AST nodes."""
    kinds = inspect.Parameter
    plain = [(a, kinds.POSITIONAL_ONLY) for a in arguments.posonlyargs]
    plain += [(a, kinds.POSITIONAL_OR_KEYWORD) for a in arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + arguments.defaults
    found = [(a.arg, kind, default) for (a, kind), default in zip(plain, defaults)]
    if arguments.vararg:
        found.append((arguments.vararg.arg, kinds.VAR_POSITIONAL, None))
    found += [(a.arg, kinds.KEYWORD_ONLY, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return inspect.Signature(
        [kinds(name, kind, default=kinds.empty if d is None else d) for name, kind, d in found]
    )


def _arguments(parameters) -> ast.arguments:
    """Return the parameters of a function of the new code."""
    return ast.arguments([], [ast.arg("_M"), *(ast.arg(p) for p in parameters)], None, [], [], None, [])


def _bound_positions(node: ast.Call, signature):
    """Yield (position of the parameter, argument) of a call. The position is None if it is not known."""
    starred = any(isinstance(argument, ast.Starred) for argument in node.args)
    keywords = {k.arg: k.value for k in node.keywords if k.arg is not None}
    try:
        bound = signature.bind_partial(*node.args, **keywords).arguments
    except TypeError:
        bound, starred = {"": (*node.args, *keywords.values())}, True
    positions = {name: position for position, name in enumerate(signature.parameters)}
    for name, given in bound.items():
        for argument in given if isinstance(given, tuple) else (given,):
            yield None if starred else positions[name], argument


def _whether_set(name: str) -> str:
    """Return the name of the new code's variable that tells which lanes have set the variable ``name``."""
    return f"_set_{variable_of(name)}"


def _whether_none(name: str) -> str:
    """Return the name of the new code's variable that tells in which lanes the variable ``name`` is None."""
    return f"_none_{variable_of(name)}"


def _region(path: tuple) -> str:
    return "_r" + "_".join(map(str, path)) if path else "_r0"


def _base_names(node) -> set:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        if isinstance(node, ast.Attribute) and node.attr in ("shape", "ndim", "size"):
            return set()
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def _plain_arithmetic(node, outside):
    """Return a copy of a constant expression, with outside names bound as in the new code."""

    class Binder(ast.NodeTransformer):
        def visit_Name(self, name):
            return outside(name)

    return Binder().visit(ast.parse(ast.unparse(node), mode="eval").body)


def _all_names(node) -> set:
    return {n.id for n in walk(node) if isinstance(n, ast.Name)}
