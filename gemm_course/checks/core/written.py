"""Reads the source of a learner's kernel or function, in the terms in which exercises ask about it.

    written = Written(kernel)
    written.stores("C")                                       # every `C[row, col] = ...`, as it is read
    [loop for loop in written.loops if loop.calls("wmma_store")]
    any("min(" in store.index.text for store in written.stores("C"))

All that is found is a :class:`Part`. A part knows its text, its line and the parts around it, and answers
the same questions about itself. No other module of the checkers knows Python's syntax tree.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple


class Part:
    """A part of the source, from a name to the whole function. Parts are equal however they were found."""

    def __init__(self, node: ast.AST | None = None, filename: str = "", around: tuple[Part, ...] = ()):
        self.node = ast.Module([], []) if node is None else node
        self.filename = filename
        # These parts enclose this one, the innermost first.
        self.around = around

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self.node is other.node

    def __hash__(self) -> int:
        return hash(self.node)

    # ---- what it is

    @cached_property
    def text(self) -> str:
        """The part as Python writes it: without comments, with one space around a sign."""
        return ast.unparse(self.node)

    @property
    def line(self) -> int:
        """The number of its first line in the file or cell; 0 for what has none."""
        return getattr(self.node, "lineno", 0)

    @property
    def lines(self) -> range:
        """All its lines: ``finding.line in loop.lines``."""
        return range(self.line, (getattr(self.node, "end_lineno", None) or self.line) + 1)

    @property
    def where(self) -> str:
        """Its line as a verdict shows it."""
        return source_line(self.filename, self.line)

    @property
    def number(self) -> int | float | None:
        """The value of a bare number; None for all else."""
        value = getattr(self.node, "value", None) if isinstance(self.node, ast.Constant) else None
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    @property
    def items(self) -> list[Part]:
        """The parts of a tuple; [] for all else."""
        return self._parts(self.node.elts) if isinstance(self.node, ast.Tuple) else []

    # ---- what stands in it

    @cached_property
    def parts(self) -> list[Part]:
        """The part itself and all parts in it, in the order of reading."""
        return [self, *(part for each in ast.iter_child_nodes(self.node) for part in self._part(each).parts)]

    @property
    def texts(self) -> set[str]:
        """Each of the parts as text: ``"cuda.threadIdx.x" in written.texts``."""
        return {part.text for part in self.parts}

    @property
    def names(self) -> set[str]:
        """The names in it, but not those behind a point."""
        return {part.node.id for part in self.parts if isinstance(part.node, ast.Name)}

    @property
    def names_set(self) -> set[str]:
        """The names that are given a value in it, also those that a loop counts."""
        named = (part.node for part in self.parts if isinstance(part.node, ast.Name))
        return {node.id for node in named if isinstance(node.ctx, ast.Store)}

    def calls(self, *names: str) -> list[Call]:
        """Return the calls of these functions, or all: "shared.array" also finds `cuda.shared.array`."""
        return [
            call
            for call in self._of(Call)
            if not names or any(f".{call.name}".endswith(f".{name}") for name in names)
        ]

    def elements(self, *arrays: str) -> list[Element]:
        """Return the elements of these arrays, or of all, loaded or stored."""
        return [element for element in self._of(Element) if not arrays or element.array in arrays]

    def loads(self, *arrays: str) -> list[Element]:
        return [element for element in self.elements(*arrays) if isinstance(element.node.ctx, ast.Load)]

    def stores(self, *arrays: str) -> list[Element]:
        return [element for element in self.elements(*arrays) if isinstance(element.node.ctx, ast.Store)]

    @property
    def functions(self) -> list[Function]:
        return self._of(Function)

    @property
    def loops(self) -> list[Loop]:
        return self._of(Loop)

    @property
    def branches(self) -> list[Branch]:
        """Every `if`, without the choices."""
        return [branch for branch in self._of(Branch) if isinstance(branch.node, ast.If)]

    @property
    def choices(self) -> list[Branch]:
        """Every `a if b else c`."""
        return [branch for branch in self._of(Branch) if isinstance(branch.node, ast.IfExp)]

    @property
    def comparisons(self) -> list[Comparison]:
        return self._of(Comparison)

    def operations(self, *signs: str) -> list[Operation]:
        """Return the operations with one of these signs, or all: ``written.operations("//", "%")``."""
        return [operation for operation in self._of(Operation) if not signs or operation.sign in signs]

    @property
    def assignments(self) -> list[Assignment]:
        """Every value with what it is assigned to; `a, b = 1, 2` are two, `x, y = cuda.grid(2)` is one."""
        found = []
        for part in self.parts:
            match part.node:
                case ast.Assign(targets=[*targets], value=value) | ast.AnnAssign(target=targets, value=value):
                    if value is not None:
                        for target in targets if isinstance(targets, list) else [targets]:
                            found += _paired(part._part(target), part._part(value))
        return found

    @property
    def updated(self) -> list[Part]:
        """What stands on the left of every `+=` and the like."""
        return [part._part(part.node.target) for part in self.parts if isinstance(part.node, ast.AugAssign)]

    @property
    def returns(self) -> list[Part]:
        return [part for part in self.parts if isinstance(part.node, ast.Return)]

    def made_from(self, name: str) -> set[str]:
        """Return ``name`` and all variables whose values come from it, over however many steps."""
        given = [(each.target.names_set, each.value.names) for each in self.assignments]
        given += [
            (loop._part(loop.node.target).names, loop.over.names) for loop in self.loops if loop.variable
        ]
        made, before = {name}, set()
        while made != before:
            before = set(made)
            made.update(*(targets for targets, sources in given if sources & made))
        return made

    # ---- how it is found

    def _of(self, kind: type) -> list[Any]:
        return [part for part in self.parts if isinstance(part, kind)]

    def _part(self, node: ast.AST) -> Part:
        return _KINDS.get(type(node), Part)(node, self.filename, (self, *self.around))

    def _parts(self, nodes: Iterable[ast.AST]) -> list[Part]:
        return [self._part(node) for node in nodes]

    def _block(self, given: ast.AST | list[ast.stmt]) -> Part:
        """Return a block of statements as one part."""
        return self._part(ast.Module(given, []) if isinstance(given, list) else given)


class Written(Part):
    """The source of a kernel, device function or plain function; empty where Python finds none."""

    def __init__(self, function: Any):
        self.function = getattr(function, "py_func", function)
        tree = _tree(function)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                # A decorator such as `@cuda.jit(device=True)` must not count as a call.
                node.decorator_list = []
        super().__init__(tree, getattr(getattr(self.function, "__code__", None), "co_filename", ""))

    @property
    def outside(self) -> dict[str, Any]:
        """What the names stand for that the function uses and that come from outside of it."""
        used = inspect.getclosurevars(self.function)
        return {**used.globals, **used.nonlocals}

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names that the learner gave the arguments."""
        return parameter_names(self.function)


class Function(Part):
    """A function, `def name(...):`, either the whole source or defined in it."""

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def statements(self) -> list[Part]:
        """What it does, line by line, without its docstring."""
        start = 0 if ast.get_docstring(self.node) is None else 1
        return self._parts(self.node.body[start:])


class Call(Part):
    """A call, `name(args, ...)`."""

    @property
    def name(self) -> str:
        """The name of the function that is called, as written: `cuda.syncthreads`."""
        return ast.unparse(self.node.func)

    @property
    def args(self) -> list[Part]:
        return self._parts(self.node.args)

    @property
    def keywords(self) -> dict[str, Part]:
        return {word.arg: self._part(word.value) for word in self.node.keywords if word.arg}

    def at(self, place: int) -> str:
        """Return the text of one argument, or ""."""
        return self.args[place].text if place < len(self.args) else ""

    def argument(self, place: int, keyword: str) -> Part | None:
        """Return one argument, passed by its place or by its name."""
        return self.args[place] if place < len(self.args) else self.keywords.get(keyword)


class Element(Part):
    """An element of an array, or a slice, `array[index]`."""

    @property
    def array(self) -> str:
        return ast.unparse(self.node.value)

    @property
    def index(self) -> Part:
        return self._part(self.node.slice)

    @property
    def is_slice(self) -> bool:
        """Whether the index has a `:` in it, and so means many elements."""
        return any(isinstance(part.node, ast.Slice) for part in self.index.parts)


class Loop(Part):
    """A loop, `for variable in over:` or `while over:`."""

    @property
    def variable(self) -> str:
        """What a `for` counts with; "" for a `while`."""
        return ast.unparse(self.node.target) if isinstance(self.node, ast.For) else ""

    @property
    def over(self) -> Part:
        return self._part(self.node.iter if isinstance(self.node, ast.For) else self.node.test)


class Branch(Part):
    """A branch, `if test: body, else: otherwise`, or a choice, `body if test else otherwise`."""

    @property
    def test(self) -> Part:
        return self._part(self.node.test)

    @property
    def body(self) -> Part:
        return self._block(self.node.body)

    @property
    def otherwise(self) -> Part:
        """What stands under `else`; empty where there is none."""
        return self._block(self.node.orelse)


class Comparison(Part):
    """A comparison, `left < right`; of `low <= x < high` the sign and the right side are the last."""

    @property
    def sides(self) -> list[Part]:
        return self._parts([self.node.left, *self.node.comparators])

    @property
    def left(self) -> Part:
        return self.sides[0]

    @property
    def right(self) -> Part:
        return self.sides[-1]

    @property
    def sign(self) -> str:
        return _SIGNS.get(type(self.node.ops[-1]), "")


class Operation(Part):
    """An operation, `left + right` or with another sign."""

    @property
    def sides(self) -> tuple[Part, Part]:
        return self._part(self.node.left), self._part(self.node.right)

    @property
    def sign(self) -> str:
        return _SIGNS.get(type(self.node.op), "")


class Assignment(NamedTuple):
    """An assignment, `target = value`."""

    target: Part
    value: Part


def _paired(target: Part, value: Part) -> list[Assignment]:
    if target.items and len(target.items) == len(value.items):
        return [pair for each in zip(target.items, value.items) for pair in _paired(*each)]
    return [Assignment(target, value)]


_KINDS = {
    ast.FunctionDef: Function,
    ast.Call: Call,
    ast.Subscript: Element,
    ast.For: Loop,
    ast.While: Loop,
    ast.If: Branch,
    ast.IfExp: Branch,
    ast.Compare: Comparison,
    ast.BinOp: Operation,
}
_SIGNS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
}


# ---- source, names and lines -------------------------------------------------------------------------------


def _tree(function: Any) -> ast.Module:
    """Return the syntax of a kernel or function, with the line numbers of its file."""
    try:
        lines, start = inspect.getsourcelines(getattr(function, "py_func", function))
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError):
        return ast.Module([], [])
    return ast.increment_lineno(tree, start - 1)


def parameter_names(kernel: Any) -> tuple[str, ...]:
    """Return the names that the learner gave the kernel's arguments; the report has the arrays' by these."""
    code = getattr(kernel, "py_func", kernel).__code__
    return code.co_varnames[: code.co_argcount]


def line_at(kernel: Any, line: int) -> str:
    """Return ``Line 7: `acc += A[row, p]` `` of the learner's file or notebook cell."""
    return source_line(kernel.py_func.__code__.co_filename, line)


def source_line(filename: str, line: int) -> str:
    """Return a line of any file as :func:`line_at` does, or its number alone if it cannot be read."""
    text = linecache.getline(filename, line).strip()
    return f"Line {line}: `{text}`" if text else f"Line {line}"
