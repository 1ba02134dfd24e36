"""A kernel's source, rewritten so that one run of it does the work of all lanes.

Every operation becomes a call of the machine ``_M``; branches and loops narrow and widen its mask. To see the
new code, print it: ``print(ast.unparse(translate(kernel).tree))``.
"""

import ast
from typing import NamedTuple

from . import names
from .analysis import (
    BatchTest,
    Liveness,
    assigned_names,
    computed_size,
    contains_jump,
    is_static,
    jumps_out,
    names_in,
    static_names,
)
from .cuda_api import Special
from .errors import UnsupportedKernel
from .machine import Site
from .names import Callee, Namespace, Refused
from .registry import Emulation
from .source import parse

SITES: list[Site] = []
"""All sites of all translated kernels; a site's number is its position in this list."""

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
_COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_ATTRIBUTES = {"shape", "ndim", "size", "dtype", "x", "y", "z", "w"}
_STATEMENTS = {
    ast.Assert: "assert",
    ast.ClassDef: "a class",
    ast.Delete: "del",
    ast.FunctionDef: "a function inside a kernel",
    ast.Global: "global",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.Match: "match",
    ast.Nonlocal: "nonlocal",
    ast.Raise: "raise",
    ast.Try: "try",
    ast.With: "with",
}
_EXPRESSIONS = {
    ast.Await: "await",
    ast.Dict: "a dict",
    ast.DictComp: "a dict comprehension",
    ast.GeneratorExp: "a generator",
    ast.JoinedStr: "an f-string",
    ast.Lambda: "a lambda",
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
    """A global of the new code: what ``root.path`` of the kernel's environment stands for."""

    name: str
    root: str
    path: tuple
    line: int


class Translation(NamedTuple):
    """The new code of one function."""

    tree: ast.Module
    code: object
    bindings: list
    callees: list
    local_shapes: list  # code that computes the shapes of local arrays from the bindings
    stored: set  # positions of parameters that the function itself (not what it calls) may store to
    passed: list  # (callee root, path, argument position, parameter position)


_cache: dict = {}
_CACHE_SIZE = 200  # translations kept: every edit of a notebook cell makes new ones


def translate(function, device: bool = False) -> Translation:
    """Rewrite a function; the result is cached by its code object and what its names stand for."""
    environment = names.environment(function)
    key = (function.__code__, device, tuple((name, _signature(value)) for name, value in environment.items()))
    if key not in _cache:
        if len(_cache) >= _CACHE_SIZE:
            del _cache[next(iter(_cache))]
        _cache[key] = Translator(function, environment, device).run()
    return _cache[key]


def _signature(value):
    """What the new code depends on: a number's type; a device function's code, not its constants."""
    if isinstance(value, Callee):
        return value.function.__code__
    if isinstance(value, (bool, int, float)) or not hasattr(value, "__dict__"):
        return type(value).__name__
    return id(value)


class Translator:
    """Rewrites one function."""

    def __init__(self, function, environment, device):
        self.function, self.environment, self.device = function, environment, device
        self.filename = function.__code__.co_filename
        self.definition = parse(function)
        self.sites: dict = {}
        self.bindings: dict = {}
        self.passed: list = []
        self.spelled_out: dict = {}
        self.local_shapes: list = []
        self.regions: list[tuple] = [()]
        self.loops: list[str] = []
        self.counter = 0

    # ---- the whole function ----

    def run(self) -> Translation:
        definition = self.definition
        self._check_signature(definition.args)
        self.parameters = [argument.arg for argument in definition.args.args]
        self.locals = set(self.parameters) | assigned_names(definition.body)
        self._check_names()
        self.shared = self._shared_arrays()
        self.static = static_names(definition, self._constants(), self._range_bounds)
        self.liveness = Liveness(definition)
        self.batch_test = BatchTest(self.liveness, self._resolve)
        self.stored = self._stored()
        self.scopes = _Scopes(definition)
        self.returns_early = _returns_early(definition.body)
        body = self._prologue() + self._block(definition.body) + self._epilogue()
        return self._finished(body)

    def _check_names(self):
        for name in self.locals:
            if name.startswith("_") and name != "_":
                self._refuse(
                    self.definition,
                    f"the emulator reserves names with a leading underscore; rename {name}",
                )

    def _shared_arrays(self) -> set:
        """The variables that are always shared arrays or views of them."""
        sources: dict = {}
        for node in ast.walk(self.definition):
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
        """The kind of a call of the CUDA API or of an intrinsic; None for anything else."""
        return getattr(self._resolve(node.func), "kind", None) if isinstance(node, ast.Call) else None

    def _constants(self) -> set:
        """Names whose value is known when the kernel is compiled."""
        known = {name for name, value in self.environment.items() if isinstance(value, (bool, int))}
        known -= self.locals
        return known | set(self.parameters) if self.device else known  # what a call passes may be known

    def _check_signature(self, args):
        if args.vararg or args.kwarg or args.kwonlyargs:
            self._refuse(
                self.definition, "*args, **kwargs and keyword-only parameters are not supported in a kernel"
            )

    def _prologue(self):
        unset = sorted(self.locals - set(self.parameters))
        lines = [f"{name} = _M.unbound" for name in unset]
        lines.append(f"{_region(())} = _M.mask")
        if self.returns_early:
            lines.append("_f = _M.frame()")
        return [s for line in lines for s in self._code(line, self.definition)]

    def _epilogue(self):
        if not self.returns_early:
            return []
        return self._code(f"_M.mask = {_region(())}", self.definition) + self._code(
            "return _f.value", self.definition
        )

    def _finished(self, body) -> Translation:
        arguments = ast.arguments(
            [], [ast.arg("_M"), *(ast.arg(p) for p in self.parameters)], None, [], [], None, []
        )
        function = ast.FunctionDef(
            self.definition.name, arguments, body, [], lineno=self.definition.lineno, col_offset=0
        )
        if "type_params" in ast.FunctionDef._fields:
            function.type_params = []
        tree = ast.Module([function], [])
        _place_all(tree, self.definition.lineno)
        code = compile(tree, self.filename, "exec")
        positions = {self.parameters.index(name) for name in self.stored}
        callees = [b for b in self.bindings.values() if isinstance(self._follow(b.root, b.path), Callee)]
        return Translation(
            tree, code, list(self.bindings.values()), callees, self.local_shapes, positions, self.passed
        )

    def _refuse(self, node, sentence):
        raise UnsupportedKernel(sentence, self.filename, getattr(node, "lineno", self.definition.lineno))

    # ---- small tools ----

    def _code(self, text: str, at) -> list:
        """Parse a line of new code, placed where ``at`` is; :meth:`_fill` fills its holes."""
        statements = ast.parse(text).body
        for statement in statements:
            for node in ast.walk(statement):
                _place(node, at)
        return statements

    def _fill(self, text: str, at, **holes) -> list:
        """Like :meth:`_code`, with expressions in place of the names in ``holes``."""
        filler = _Filler(holes)
        return [filler.visit(statement) for statement in self._code(text, at)]

    def _expression(self, text: str, at, **holes):
        return self._fill(text, at, **holes)[0].value

    def _number(self) -> int:
        self.counter += 1
        return self.counter

    def _site(self, node, op, role="", static=True) -> int:
        key = (id(node), role)
        if key not in self.sites:
            self.sites[key] = len(SITES)
            SITES.append(Site(self.definition.name, node.lineno, op, static))
        return self.sites[key]

    # ---- names ----

    def _chain(self, node):
        """(root, attributes) of ``a.b.c``, or None."""
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
            if not isinstance(value, Namespace):
                return None
            value = names.attribute(value, name)
        return value

    def _resolve(self, node):
        """What a name or ``module.name`` outside the kernel stands for; None for anything else."""
        chain = self._chain(node)
        return None if chain is None else self._follow(*chain)

    def _outside(self, node):
        """The new code's global for a name from outside the kernel, checked now and not when it runs."""
        root, path = self._chain(node)
        for length in range(len(path) + 1):
            special = self._follow(root, path[:length])
            if isinstance(special, Special):
                return self._expression(".".join((special.code, *path[length:])), node)
        value = self._follow(root, path)
        shown = ".".join((root, *path))
        if root not in self.environment:
            self._refuse(node, f"the name {root} is not defined")
        if value is None:
            self._refuse(node, f"the emulator does not support {shown} in a kernel")
        if isinstance(value, Refused):
            self._refuse(node, f"{shown} cannot be used in a kernel: {value.sentence}")
        if isinstance(value, Namespace):
            self._refuse(node, f"{shown} is a module; a kernel can only use its members")
        name = "_g_" + "_".join((root, *path))
        self.bindings.setdefault(name, Binding(name, root, path, node.lineno))
        return self._expression(name, node)

    def _range_bounds(self, node):
        """The bounds of ``range(...)``, also in ``unroll(range(...))``; None for other expressions."""
        if not isinstance(node, ast.Call) or node.keywords:
            return None
        callee = self._resolve(node.func)
        if getattr(callee, "kind", None) == "range":
            return node.args
        if isinstance(callee, Emulation) and len(node.args) == 1:
            return self._range_bounds(node.args[0])
        return None

    def _stored(self) -> set:
        """The parameters whose arrays this function itself may change."""
        stored = set()
        for node in ast.walk(self.definition):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                stored |= _base_names(node)
            elif isinstance(node, ast.Assign):
                stored |= _bare_names(node.value)  # a second name for the array
            elif isinstance(node, ast.Call):
                stored |= self._stored_by_call(node)
        return stored & set(self.parameters)

    def _stored_by_call(self, node) -> set:
        """Arrays that an intrinsic writes; for a device function, that is known once it is bound."""
        callee = self._resolve(node.func)
        stored = set()
        for position, argument in enumerate(node.args):
            for name in _base_names(argument) & set(self.parameters):
                if isinstance(callee, Callee):
                    self.passed.append((*self._chain(node.func), position, self.parameters.index(name)))
                elif position in getattr(callee, "writes", ()):
                    stored.add(name)
        return stored

    # ---- blocks ----

    def _block(self, statements) -> list:
        new = []
        for position, statement in enumerate(statements):
            new += self._statement(statement)
            rest = statements[position + 1 :]
            if rest and jumps_out(statement):
                guard = ast.copy_location(
                    ast.If(self._expression("_M.mask.any", statement), self._block(rest), []), rest[0]
                )
                return [*new, guard]
        return new or [ast.Pass()]

    def _inside(self, statements, at) -> tuple:
        """A nested block, in a region of its own."""
        region = (
            (*self.regions[-1], self.scopes.number[id(statements[0])]) if statements else self.regions[-1]
        )
        self.regions.append(region)
        new = self._code(f"{_region(region)} = _M.mask", at) + self._block(statements)
        self.regions.pop()
        return new

    def _statement(self, node) -> list:
        method = getattr(self, f"_do_{type(node).__name__}", None)
        if method is None:
            self._refuse(
                node, f"{_STATEMENTS.get(type(node), type(node).__name__)} is not supported in a kernel"
            )
        return [s if hasattr(s, "lineno") else ast.copy_location(s, node) for s in method(node)]

    def _do_Pass(self, node):
        return [ast.Pass()]

    def _do_Expr(self, node):
        if isinstance(node.value, ast.Constant):
            return []
        return [ast.Expr(self._value(node.value))]

    # ---- assignments ----

    def _do_Assign(self, node):
        value = self._owned(node.value)
        if len(node.targets) == 1:
            return self._assign(node.targets[0], value, node)
        name = f"_v{self._number()}"
        new = self._fill(f"{name} = _VALUE", node, _VALUE=value)
        for target in node.targets:
            new += self._assign(target, self._expression(name, node), node)
        return new

    def _do_AnnAssign(self, node):
        return [] if node.value is None else self._assign(node.target, self._owned(node.value), node)

    def _owned(self, node):
        """The value for a variable: a copy if it would be a view of a local array."""
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
            site = self._site(target, "store", "store", self._static_index(target))
            holes = {"_BASE": self._value(target.value), "_INDEX": self._index(target.slice)}
            return self._fill(f"_M.assign_element({site}, _BASE, _INDEX, _VALUE)", at, **holes, _VALUE=value)
        self._refuse(target, "a kernel cannot assign to attributes")

    def _assign_tuple(self, target, value, at):
        if any(isinstance(part, ast.Starred) for part in target.elts):
            self._refuse(target, "a starred target is not supported in a kernel")
        name = f"_v{self._number()}"
        new = self._fill(f"{name} = _M.unpack(_VALUE, {len(target.elts)})", at, _VALUE=value)
        for position, part in enumerate(target.elts):
            new += self._assign(part, self._expression(f"{name}[{position}]", at), at)
        return new

    def _assign_name(self, name, value, at):
        scope = self.scopes.scope(name)
        if scope == self.regions[-1] and not self.scopes.jumps(scope):
            return self._fill(f"{name} = _VALUE", at, _VALUE=value)
        return self._fill(f"{name} = _M.assign(_VALUE, {name}, {_region(scope)})", at, _VALUE=value)

    def _do_AugAssign(self, node):
        if isinstance(node.target, ast.Subscript):
            return self._augment_element(node)
        if not isinstance(node.target, ast.Name):
            self._refuse(node, "a kernel cannot assign to attributes")
        name = node.target.id
        reductions = self.batch_test.reductions.get(id(node))
        if reductions and isinstance(node.op, ast.Add):
            x, y = self._factors(node.value)
            site, region = self._site(node, "add"), _region(self.scopes.scope(name))
            loops = tuple(self.scopes.loop_name[loop] for loop in reductions)
            line = f"{name} = _M.accumulate({site}, {name}, _X, _Y, {loops!r}, {region})"
            return self._fill(line, node, _X=x, _Y=y)
        return self._assign_name(name, self._value(self._spelled_out(node, name)), node)

    def _spelled_out(self, node, name):
        """``name op value`` for ``name op= value``, always the same tree."""
        if id(node) not in self.spelled_out:
            old = ast.copy_location(ast.Name(name, ast.Load()), node)
            self.spelled_out[id(node)] = ast.copy_location(ast.BinOp(old, node.op, node.value), node)
        return self.spelled_out[id(node)]

    def _factors(self, node):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return self._value(node.left), self._value(node.right)
        return self._value(node), ast.Constant(None)

    def _augment_element(self, node):
        target = node.target
        static = self._static_index(target)
        load, store = self._site(target, "load", "load", static), self._site(target, "store", "store", static)
        holes = {"_BASE": self._value(target.value), "_INDEX": self._index(target.slice)}
        operation = self._site(node, "arithmetic")
        if isinstance(node.op, ast.Add):
            holes["_X"], holes["_Y"] = self._factors(node.value)
            line = f"_M.accumulate_element({store}, {load}, {operation}, _BASE, _INDEX, _X, _Y)"
            return self._fill(line, node, **holes)
        self.locals.add("_old")
        new = self._value(self._spelled_out(node, "_old"))
        return self._fill(
            f"_M.update({store}, {load}, _BASE, _INDEX, lambda _old: _NEW)", node, **holes, _NEW=new
        )

    # ---- branches ----

    def _do_If(self, node):
        number = self._number()
        new = self._fill(
            f"_c{number} = _M.truth(_TEST)\n_s{number} = _M.mask", node, _TEST=self._value(node.test)
        )
        new.append(ast.If(self._expression(f"_M.enter(_c{number})", node), self._inside(node.body, node), []))
        if node.orelse:
            test = self._expression(f"_M.otherwise(_s{number}, _c{number})", node)
            new.append(ast.If(test, self._inside(node.orelse, node), []))
        if jumps_out(node):
            return new + self._code(f"_M.leave(_s{number}, {self._frame()}, {self._loop()})", node)
        return new + self._code(f"_M.mask = _s{number}", node)

    def _frame(self) -> str:
        return "_f" if self.returns_early else "None"

    def _loop(self) -> str:
        return self.loops[-1] if self.loops else "None"

    def _do_Return(self, node):
        nothing = node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)
        if not (nothing or self.device):
            self._refuse(node, "a kernel cannot return a value; it writes its results to arrays")
        value = ast.Constant(None) if nothing else self._owned(node.value)
        if not self.returns_early:
            return [ast.Return(value)]
        return self._fill("_M.return_(_f, _VALUE)", node, _VALUE=value)

    def _do_Break(self, node):
        return self._code(f"_M.break_({self.loops[-1]})", node)

    def _do_Continue(self, node):
        return self._code(f"_M.continue_({self.loops[-1]})", node)

    # ---- loops ----

    def _do_For(self, node):
        if node.orelse:
            self._refuse(node, "else after a loop is not supported in a kernel")
        if not isinstance(node.target, ast.Name):
            self._refuse(node, "a for loop in a kernel must have a single variable")
        touched = self.batch_test.examine(node, node.target.id, node.body)
        loop = self._open_loop(node)
        new = self._code(f"{loop} = _M.loop({node.lineno}, {self._frame()})", node)
        iterations = self._expression(
            f"_M.iterate({loop}, {loop!r}, _VALUES, _TOUCHED)",
            node,
            _VALUES=self._iterable(node.iter),
            _TOUCHED=self._arrays(touched),
        )
        private = None if touched is None else self._private(node.body)
        static, self.static = self.static, self._static_inside(node)
        new.append(self._for(loop, iterations, node.target.id, node.body, node, private))
        self.static = static
        self.loops.pop()
        new += self._code(f"_M.finish({loop})", node)
        return new if private is None else new + self._forget({*private, node.target.id}, node)

    def _static_inside(self, node) -> set:
        """Names known at compile time in a loop's body, with the variable of a loop of known length."""
        bounds = self._range_bounds(node.iter)
        if bounds is None or node.target.id in assigned_names(node.body):
            return self.static
        known = all(is_static(bound, self.static) for bound in bounds)
        return self.static | {node.target.id} if known else self.static

    def _private(self, body) -> set:
        """The variables of a body whose iterations may run at once: each is local to an iteration."""
        reductions = {
            s.target.id for top in body for s in ast.walk(top) if id(s) in self.batch_test.reductions
        }
        return assigned_names(body) - reductions

    def _forget(self, variables, at) -> list:
        """Drop the values, so that no later assignment under a narrower mask is merged with them."""
        return self._code(f"{' = '.join(sorted(variables))} = _M.unbound", at) if variables else []

    def _iterable(self, node):
        bounds = self._range_bounds(node)
        if bounds is None:
            if _base_names(node) & set(self.parameters):
                self._refuse(node, "a loop over an array is not supported in a kernel; loop over its indices")
            return self._value(node)
        if not isinstance(node, ast.Call) or not bounds or len(bounds) > 3:
            self._refuse(node, "range() takes one to three numbers")
        return self._expression("_M.range_of(_BOUNDS)", node, _BOUNDS=[self._value(b) for b in bounds])

    def _arrays(self, touched):
        if touched is None:
            return ast.Constant(None)
        return ast.Tuple(
            [ast.Name(name, ast.Load()) for name in sorted(touched.names) if name in self.locals], ast.Load()
        )

    def _open_loop(self, node) -> str:
        loop = self.scopes.loop_name.setdefault(id(node), f"_l{self._number()}")
        self.loops.append(loop)
        return loop

    def _for(self, loop, iterations, variable, body, at, private):
        """``private``: the body's own variables if its iterations may run at once, else None."""
        region = (*self.regions[-1], self.scopes.number[id(body[0])])
        self.regions.append(region)
        iteration = f"_v{self._number()}"
        new = self._code(f"{_region(region)} = _M.mask", at)
        if private is None:
            new += self._assign_name(variable, self._expression(iteration, at), at)
        else:
            new += self._code(f"{variable} = {iteration}", at) + self._forget(private - {variable}, at)
        new += self._block(body) + self._folded(loop, body, at)
        self.regions.pop()
        return ast.copy_location(ast.For(ast.Name(iteration, ast.Store()), iterations, new, []), at)

    def _folded(self, loop, body, at):
        """Let the machine skip iterations while it only counts."""
        state = sorted(assigned_names(body))
        if not state:
            return self._code(f"if _M.folding: _M.fold({loop}, ())", at)
        variables = ", ".join(state) + ","
        return self._code(f"if _M.folding: ({variables}) = _M.fold({loop}, ({variables}))", at)

    def _do_While(self, node):
        if node.orelse:
            self._refuse(node, "else after a loop is not supported in a kernel")
        counted = self._counted(node)
        loop = self._open_loop(node)
        new = self._code(f"{loop} = _M.loop({node.lineno}, {self._frame()})", node)
        one_by_one = self._while(loop, node)
        if counted is None:
            new.append(one_by_one)
        else:
            new += self._all_at_once(loop, node, *counted, one_by_one)
        self.loops.pop()
        return new + self._code(f"_M.finish({loop})", node)

    def _while(self, loop, node):
        region = (*self.regions[-1], self.scopes.number[id(node.body[0])])
        test = self._expression(
            f"_M.again({loop}) and _M.test({loop}, _TEST)", node, _TEST=self._value(node.test)
        )
        self.regions.append(region)
        body = (
            self._code(f"{_region(region)} = _M.mask", node)
            + self._block(node.body)
            + self._folded(loop, node.body, node)
        )
        self.regions.pop()
        return ast.copy_location(ast.While(test, body, []), node)

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
        batched = [
            self._for(loop, iterations, counter, node.body[:-1], node, private),
            *self._forget(private, node),
        ]
        batched += self._code(f"{counter} = {count}[-1] + {count}.step", node)
        test = self._expression(
            f"{count} is not None and _M.may_batch({count}, _TOUCHED)", node, _TOUCHED=self._arrays(touched)
        )
        return [*new, ast.copy_location(ast.If(test, batched, [one_by_one]), node)]

    def _counted(self, node):
        """(counter, stop, step, arrays) of a ``while counter < stop`` whose iterations may run at once.

        Its last line must be ``counter += step``.
        """
        test, last = node.test, node.body[-1]
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Lt)):
            return None
        if not (isinstance(last, ast.AugAssign) and isinstance(last.op, ast.Add)):
            return None
        if not isinstance(test.left, ast.Name):
            return None
        counter = test.left.id
        if not (isinstance(last.target, ast.Name) and last.target.id == counter) or len(node.body) < 2:
            return None
        changed = assigned_names(node.body)
        fixed = (test.comparators[0], last.value)
        if counter in assigned_names(node.body[:-1]) or any(_all_names(part) & changed for part in fixed):
            return None
        if any(isinstance(n, (ast.Call, ast.Subscript)) for e in fixed for n in ast.walk(e)):
            return None
        touched = self.batch_test.examine(node, counter, node.body[:-1])
        return None if touched is None else (counter, *fixed, touched)

    # ---- expressions ----

    def _value(self, node):
        method = getattr(self, f"_of_{type(node).__name__}", None)
        if method is None:
            self._refuse(
                node, f"{_EXPRESSIONS.get(type(node), type(node).__name__)} is not supported in a kernel"
            )
        return ast.copy_location(method(node), node)

    def _of_Constant(self, node):
        if not isinstance(node.value, (bool, int, float, type(None))):
            self._refuse(node, f"a kernel computes with numbers; {node.value!r} is not a number")
        return ast.Constant(node.value)

    def _of_Name(self, node):
        if node.id in self.locals:
            return ast.Name(node.id, ast.Load())
        return self._outside(node)

    def _of_Tuple(self, node):
        return ast.Tuple([self._value(part) for part in node.elts], ast.Load())

    def _of_Attribute(self, node):
        if self._chain(node) is not None:
            return self._outside(node)
        if node.attr not in _ATTRIBUTES:
            self._refuse(node, f".{node.attr} is not supported in a kernel")
        return self._expression(f"_M.attribute(_VALUE, {node.attr!r})", node, _VALUE=self._value(node.value))

    def _of_Subscript(self, node):
        site = self._site(node, "load", "load", self._static_index(node))
        base, index = self._value(node.value), self._index(node.slice)
        return self._expression(f"_M.subscript({site}, _BASE, _INDEX)", node, _BASE=base, _INDEX=index)

    def _index(self, node):
        if isinstance(node, ast.Slice):
            bounds = (node.lower, node.upper, node.step)
            arguments = [ast.Constant(None) if b is None else self._value(b) for b in bounds]
            return self._expression("slice(_ARGUMENTS)", node, _ARGUMENTS=arguments)
        if isinstance(node, ast.Tuple):
            return ast.copy_location(ast.Tuple([self._index(part) for part in node.elts], ast.Load()), node)
        return self._value(node)

    def _static_index(self, node) -> bool:
        return is_static(node.slice, self.static) and (
            not isinstance(node.value, ast.Subscript) or self._static_index(node.value)
        )

    def _of_UnaryOp(self, node):
        if isinstance(node.op, ast.UAdd):
            return self._value(node.operand)
        if isinstance(node.op, ast.Not):
            return self._expression("_M.not_(_A)", node, _A=self._value(node.operand))
        number = isinstance(node.operand, ast.Constant) and node.operand.value is not None
        if isinstance(node.op, ast.USub) and number:
            return ast.Constant(-self._of_Constant(node.operand).value)
        name = "neg" if isinstance(node.op, ast.USub) else "invert"
        return self._expression(
            f"_M.{name}({self._site(node, 'arithmetic')}, _A)", node, _A=self._value(node.operand)
        )

    def _of_BinOp(self, node):
        fused = self._fused(node)
        if fused is not None:
            return fused
        site = self._site(node, "arithmetic")
        operands = {"_A": self._value(node.left), "_B": self._value(node.right)}
        if type(node.op) in _BITS:
            return self._expression(f"_M.bits({site}, {_BITS[type(node.op)]!r}, _A, _B)", node, **operands)
        if type(node.op) not in _BINARY:
            self._refuse(node, "the operator @ is not supported in a kernel: write the product as loops")
        return self._expression(f"_M.{_BINARY[type(node.op)]}({site}, _A, _B)", node, **operands)

    def _fused(self, node):
        """x * y + z and similar, which the compiler turns into one fused multiply-add."""
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
        return self._expression(f"_M.{name}({site}, {order})", node, **holes)

    def _of_BoolOp(self, node):
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        result = self._value(node.values[-1])
        for part in reversed(node.values[:-1]):
            result = self._expression(f"_M.{name}(_A, lambda: _B)", node, _A=self._value(part), _B=result)
        return result

    def _of_Compare(self, node):
        if any(type(op) not in _COMPARE for op in node.ops):
            self._refuse(node, "'is' and 'in' are not supported in a kernel")
        operands = [self._value(node.left)] + [self._value(c) for c in node.comparators]
        if len(node.ops) == 1:
            return self._expression(
                f"_M.compare({_COMPARE[type(node.ops[0])]!r}, _A, _B)", node, _A=operands[0], _B=operands[1]
            )
        return self._chained(node, operands)

    def _chained(self, node, operands):
        """``a < b < c``: b is evaluated once, and c only where a < b holds."""
        if len(node.ops) > 2:  # a walrus inside a lambda is local to it
            self._refuse(node, "the emulator supports chained comparisons of at most three values")
        (first, second), (left, middle, right) = (_COMPARE[type(op)] for op in node.ops), operands
        name = f"_v{self._number()}"
        kept = ast.NamedExpr(ast.Name(name, ast.Store()), middle)
        step = self._expression(f"_M.compare({first!r}, _A, _B)", node, _A=left, _B=kept)
        rest = self._expression(f"_M.compare({second!r}, {name}, _B)", node, _B=right)
        return self._expression("_M.and_(_A, lambda: _B)", node, _A=step, _B=rest)

    def _of_IfExp(self, node):
        literal = next((b for b in (node.body, node.orelse) if isinstance(b, ast.Constant)), None)
        dtype = ast.Constant(None) if literal is None else self._expression(_literal_type(literal), node)
        test, then, otherwise = (self._value(part) for part in (node.test, node.body, node.orelse))
        holes = {"_TEST": test, "_THEN": then, "_ELSE": otherwise, "_DTYPE": dtype}
        return self._expression("_M.select(_TEST, lambda: _THEN, lambda: _ELSE, _DTYPE)", node, **holes)

    def _of_Call(self, node):
        callee = self._resolve(node.func)
        if self._chain(node.func) is None:
            self._refuse(node, "a kernel can only call functions that are defined outside it")
        function = self._outside(node.func)
        if getattr(callee, "kind", "") == "range":
            self._refuse(node, "range() can only be used in a for loop")
        if not callable(callee) and not isinstance(callee, Callee):
            self._refuse(node, f"{ast.unparse(node.func)} is not a function")
        for part in node.args:
            if isinstance(part, ast.Starred):
                self._refuse(node, "a starred argument is not supported in a kernel")
        kind = getattr(callee, "kind", "")
        if kind in ("shared_array", "local_array"):
            self._check_shape(node, kind)
        site = self._site(node, *self._call_site(node, callee))
        arguments = [self._argument(a, callee) for a in node.args]
        call = self._expression(
            f"_M.call({site}, _FUNCTION, _ARGUMENTS)", node, _FUNCTION=function, _ARGUMENTS=arguments
        )
        call.keywords = [ast.keyword(k.arg, self._value(k.value)) for k in node.keywords]
        return call

    def _check_shape(self, node, kind):
        given = (*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "shape"))
        shape = next(iter(given), None)
        if shape is not None and not is_static(shape, self.static):
            self._refuse(
                node,
                "the shape of a shared or local array must be known when the kernel is compiled: a number, "
                "or a constant of the module or of the enclosing function, not a value that is only known "
                "when the kernel runs",
            )
        computed = computed_size(shape, self.definition) if shape is not None else None
        if computed is not None:
            self._refuse(
                node,
                f"`{ast.unparse(computed)}` is computed inside the kernel, and Numba does not accept such a "
                "size for a shared or local array: compute it outside the kernel and use its name",
            )
        if kind == "local_array" and shape is not None and not names_in(shape) & self.locals:
            expression = ast.Expression(_plain_arithmetic(shape, self._outside))
            _place_all(expression, node.lineno)
            self.local_shapes.append(compile(expression, self.filename, "eval"))

    def _argument(self, node, callee):
        text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if text and getattr(callee, "kind", "") == "intrinsic":
            return ast.Constant(node.value)  # print("...")
        return self._owned(node) if isinstance(callee, Callee) else self._value(node)

    def _call_site(self, node, callee):
        """The name of a call's site: the variable for which an array is declared, or load or store."""
        kind = getattr(callee, "kind", "")
        if kind in ("shared_array", "local_array", "view"):
            return self.scopes.declared.get(id(node), kind.replace("_", " ")), "call"
        writes = getattr(callee, "writes", ())
        op = "store" if writes and not getattr(callee, "reads", ()) else "atomic" if writes else "load"
        fragments = getattr(callee, "fragments", ())
        if fragments:
            views = [a for i, a in enumerate(node.args) if i in fragments and isinstance(a, ast.Subscript)]
            return op, "call", all(self._static_index(view) for view in views)
        arrays = [
            i for i in (*getattr(callee, "reads", ()), *writes) if self._may_be_local(node.args[i : i + 1])
        ]
        index = [node.args[i + 1] for i in arrays if i + 1 < len(node.args)]
        return op, "call", all(is_static(i, self.static) for i in index)

    def _may_be_local(self, given) -> bool:
        """May an argument, if given, be a local array? A kernel's parameters are not."""
        names = set().union(*map(_base_names, given)) if given else set()
        return self.device or not names <= {*self.parameters, *self.shared}


def _place(node, at):
    """Give a new node the position of an old one, so that a traceback shows the learner's line."""
    if "lineno" in node._attributes:
        node.lineno, node.col_offset = at.lineno, at.col_offset


def _place_all(node, line: int):
    """Give every node a line: its own, or that of the enclosing node."""
    if "lineno" in node._attributes:
        line = node.lineno = node.end_lineno = getattr(node, "lineno", line)
        node.col_offset = node.end_col_offset = 0
    for child in ast.iter_child_nodes(node):
        _place_all(child, line)


class _Filler(ast.NodeTransformer):
    """Puts expressions in place of the names in capital letters."""

    def __init__(self, holes):
        self.holes = holes

    def visit_Name(self, node):
        return self.holes.get(node.id, node)

    def visit_Call(self, node):
        self.generic_visit(node)
        node.args = [part for a in node.args for part in (a if isinstance(a, list) else [a])]
        return node


class _Scopes:
    """The scope of each variable: the innermost block with all its uses. Also names for loops and arrays."""

    def __init__(self, definition):
        self.number: dict[int, int] = {}
        self.paths: dict[str, list] = {}
        self.blocks: dict[tuple, list] = {(): definition.body}
        self.loop_name: dict[int, str] = {}
        self.declared: dict[int, str] = {}
        self.jumping: dict[tuple, bool] = {}
        for argument in definition.args.args:
            self.paths[argument.arg] = [()]
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
        for node in ast.walk(expression):
            if isinstance(node, ast.Name):
                self.paths.setdefault(node.id, []).append(path)

    def _note_declaration(self, node):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            return
        if isinstance(node.targets[0], ast.Name):
            self.declared[id(node.value)] = node.targets[0].id

    def scope(self, name) -> tuple:
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
    """Is there a return anywhere but in the last line?"""
    if not body:
        return False
    inside = any(isinstance(node, ast.Return) for statement in body[:-1] for node in ast.walk(statement))
    return inside or (not isinstance(body[-1], ast.Return) and contains_jump(body[-1]))


def _region(path: tuple) -> str:
    return "_r" + "_".join(map(str, path)) if path else "_r0"


def _base_names(node) -> set:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        if isinstance(node, ast.Attribute) and node.attr in ("shape", "ndim", "size"):
            return set()
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def _bare_names(node) -> set:
    if isinstance(node, ast.Tuple):
        return set().union(*map(_bare_names, node.elts)) if node.elts else set()
    if isinstance(node, ast.IfExp):
        return _bare_names(node.body) | _bare_names(node.orelse)
    return {node.id} if isinstance(node, ast.Name) else set()


def _plain_arithmetic(node, outside):
    """A copy of a constant expression, with names from outside the kernel bound as in the new code."""

    class Binder(ast.NodeTransformer):
        def visit_Name(self, name):
            return outside(name)

    return Binder().visit(ast.parse(ast.unparse(node), mode="eval").body)


def _all_names(node) -> set:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _literal_type(node) -> str:
    return "_M.literal_types[" + {bool: "0", int: "1", float: "2"}.get(type(node.value), "2") + "]"
