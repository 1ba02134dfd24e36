"""Random expressions and joins by the hundred: the emulator gives each Numba's type, and the right value.

A case is a few lines of a kernel that end in a store. Every line that stores is compared in every thread: the
type of the stored value with that of Numba's inference, the value with what Numba's typed code computes
(:mod:`lockstep_tests.typed_ir`). The emulator refuses none of them.

`python -m lockstep_tests.test_referee 5000 recorded/emulator_types.csv` compares so many, and writes a table.
"""

import csv
import itertools
import linecache
import multiprocessing
import operator
import platform
import random
import sys
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from importlib.metadata import version
from unittest.mock import patch

import numpy as np
import pytest
from numba.core.errors import TypingError

from lockstep import EmulatorError, KernelTypeError, emulate
from lockstep.machine.machine import Machine
from lockstep.values.dtypes import dtype_of

numba_types = pytest.importorskip(
    "lockstep_tests.numba_types",
    reason="asks numba-cuda's type inference, which the built-in numba.cuda lacks",
    exc_type=ImportError,
)
from lockstep_tests.typed_ir import Thread, Unclear  # noqa: E402

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
DTYPES = ["bool", *INTEGERS, *FLOATS]
LITERALS = {"int64": ["0", "1", "3", "-2", "1000"], "float64": ["0.5", "-1.25", "3.0"], "bool": ["True"]}
LANES = 4
SEEDS = range(60)
PER_KERNEL = 20  # with more, Numba's inference of some kernels does not end
BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift,
    ">>": operator.rshift, "**": operator.pow, "<": operator.lt, "==": operator.eq, ">=": operator.ge,
}  # fmt: skip
UNARY = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "not ": operator.not_}
CALLS = {"abs": abs, "int": int, "float": float, "bool": bool}
NUMBERS = {
    "bool": [False, True, True, False],
    "signed": [3, -1, 0, 100],
    "unsigned": [3, 255, 0, 100],
    "float": [0.1, -3.3, 2.0, 100.7],
}


def array(name):
    """Four numbers of a type, among them the limits of the integers."""
    if name == "bool" or name in FLOATS:
        return np.array(NUMBERS["bool" if name == "bool" else "float"], name)
    values = np.array(NUMBERS["signed" if name[0] == "i" else "unsigned"], name)
    values[1] = np.iinfo(name).min if name[0] == "i" else np.iinfo(name).max
    return values


@cache
def typed(op, *names):
    """The type that Numba gives an operation, None if it accepts no such operands."""
    if op in (operator.not_, bool) and names == ("float16",):
        return None  # Numba types it, and fails when it lowers it.
    names = tuple("boolean" if name == "bool" else name for name in names)
    try:
        found = numba_types.result_type(op, *names)
    except Exception:  # what Numba raises is its own affair
        return None
    return found if found in DTYPES else None


@cache
def unified(a, b):
    """The type that Numba gives a variable that is an ``a`` or a ``b``."""
    types = numba_types.types
    a, b = (types.boolean if name == "bool" else getattr(types, name) for name in (a, b))
    found = str(numba_types.contexts()[0].unify_pairs(a, b))
    return found if found in DTYPES else None


@cache
def numbers_of(*names):
    """The type of the numbers of a range with bounds of these types."""
    given = tuple(getattr(numba_types.types, name) for name in names)
    return str(numba_types.contexts()[0].resolve_function_type(range, given, {}).return_type.dtype)


class NotTyped(Exception):
    """The draft of an expression has operands that Numba does not accept."""


def known(found):
    if found is None:
        raise NotTyped
    return found


@dataclass
class Expression:
    text: str
    dtype: str


@dataclass
class Function:
    """A device function: with two parameters of these types, or of any."""

    name: str
    body: str
    takes: tuple | None
    result: object  # the type it returns, given those of its arguments


@dataclass
class Writer:
    """Writes cases; it keeps to what Numba can type, and asks Numba for every operation."""

    random: random.Random
    lines: list = field(default_factory=list)
    names: int = 0

    def pick(self, choices):
        return self.random.choice(list(choices))

    def leaf(self) -> Expression:
        if self.random.random() < 0.25:
            dtype = self.pick(LITERALS)
            return Expression(self.pick(LITERALS[dtype]), dtype)
        dtype = self.pick(DTYPES)
        return Expression(f"x_{dtype}[{self.pick(['i', 'i', '2', '(n - 3)'])}]", dtype)

    def expression(self, depth=2, leaf=None) -> Expression:
        for _ in range(100):
            try:
                return self.draft(depth, leaf or self.leaf)
            except NotTyped:
                continue
        return self.leaf()

    def draft(self, depth, leaf):
        if depth == 0:
            return leaf()
        kind = self.random.random()
        a = self.draft(depth - 1 if self.random.random() < 0.5 else 0, leaf)
        if kind < 0.12:
            op = self.pick(UNARY)
            return Expression(f"({op}{a.text})", known(typed(UNARY[op], a.dtype)))
        if kind < 0.24:
            return self.call_of(a)
        b = self.draft(0, leaf)
        if kind < 0.34:
            name = self.pick(["min", "max"])
            if "bool" in (a.dtype, b.dtype):
                raise NotTyped
            return Expression(
                f"{name}({a.text}, {b.text})", known(typed({"min": min, "max": max}[name], a.dtype, b.dtype))
            )
        if kind < 0.46:
            return self.choice_of(a, b)
        op = self.pick(BINARY)
        return Expression(f"({a.text} {op} {b.text})", known(typed(BINARY[op], a.dtype, b.dtype)))

    def call_of(self, a):
        if self.random.random() < 0.5:
            name = self.pick(CALLS)
            return Expression(f"{name}({a.text})", known(typed(CALLS[name], a.dtype)))
        dtype = self.pick(DTYPES[1:])
        if a.dtype in FLOATS and dtype not in FLOATS:
            raise NotTyped  # mostly beyond the integers
        return Expression(f"{dtype}({a.text})", dtype)

    def choice_of(self, a, b):
        dtype = known(unified(a.dtype, b.dtype))
        if self.random.random() < 0.5:
            if "x_" not in a.text and "v" not in a.text:
                raise NotTyped  # a constant: Python and Numba drop the other part, with its type
            known(typed(bool, a.dtype))
            return Expression(f"({a.text} {self.pick(['and', 'or'])} {b.text})", dtype)
        return Expression(f"({a.text} if {self.condition()} else {b.text})", dtype)

    def condition(self):
        return self.pick(
            ["n > 3", "n < 5", "n == 0", "i < 2", "i == 1", "x_int32[i] > 1", "x_float32[i] < 1"]
        )

    # ---- cases ----

    def put(self, *lines):
        self.lines += ["    " + line for line in lines]

    def variable(self):
        self.names += 1
        return f"v{self.names}"

    def case(self):
        kinds = [self.branch, self.loop, self.call, self.numbers, self.nested, self.exchange, self.inside]
        self.pick([self.plain] * 5 + kinds)()

    def plain(self):
        self.put(f"out[i] = {self.expression(3).text}")

    def stored(self, name, dtype):
        """A use of a variable."""
        if dtype is None:
            raise NotTyped
        use = self.expression(1, lambda: self.random.choice([Expression(name, dtype), self.leaf()]))
        self.put(f"out[i] = {name}", f"out[i] = {use.text}")

    def branch(self):
        name, a, b = self.variable(), self.expression(1), self.expression(1)
        if unified(a.dtype, b.dtype) is None:
            return self.plain()
        if self.random.random() < 0.5:
            self.put(
                f"{name} = {a.text}",
                f"if {self.condition()}:",
                f"    {name} = {b.text}",
                f"    out[i] = {name}",
            )
        else:
            self.put(f"if {self.condition()}:", f"    {name} = {a.text}", f"    out[i] = {name}")
            self.put("else:", f"    {name} = {b.text}")
        return self.stored(name, unified(a.dtype, b.dtype))

    def loop(self):
        """A variable that a loop changes; its type at the loop's head is found as Numba finds it."""
        name, first = self.variable(), self.expression(1)
        op, other = self.pick(["+", "-", "*"]), self.leaf()
        if first.dtype == "bool":  # Numba may refuse it for what it is before it grows
            return self.plain()
        head, body = first.dtype, None
        for _ in range(8):
            body = typed(BINARY[op], head, other.dtype)
            wider = body and unified(head, body)
            if wider in (None, head):
                break
            head = wider
        else:
            wider = None
        if body is None or wider is None:
            return self.plain()
        times = self.pick(["n - 5", "2", "i", "n % 3"])
        left = self.pick(["break", "continue", None])
        self.put(f"{name} = {first.text}", f"for _ in range({times}):", f"    out[i] = {name}")
        if left:
            self.put(f"    if {self.condition()}:", f"        {left}")
        self.put(f"    {name} = {name} {op} {other.text}", f"    out[i] = {name}")
        return self.stored(name, head)

    def numbers(self):
        """A loop whose variable is of any of the types that a range may have."""
        name, other = self.variable(), self.leaf()
        types = [self.pick(INTEGERS) for _ in range(self.pick([1, 1, 2, 3]))]
        low = "n - 4" if not any(dtype[0] == "u" for dtype in types) else "n - 3"
        bounds = [self.pick(["n - 1", "i", low, "2"]) for _ in types]
        bounds[2:] = ["n - 2"] * len(bounds[2:])  # a step that is not 0
        given = ", ".join(f"{dtype}({bound})" for dtype, bound in zip(types, bounds))
        dtype = numbers_of(*types)
        op = self.pick(["+", "-", "*"])
        known(typed(BINARY[op], dtype, other.dtype))
        self.put(
            f"for {name} in range({given}):", f"    out[i] = {name}", f"    out[i] = {name} {op} {other.text}"
        )

    def nested(self):
        """A variable that branches in a loop change, with `+=` and the like."""
        name, first, a, b = self.variable(), self.expression(1), self.leaf(), self.leaf()
        if "bool" in (first.dtype, a.dtype, b.dtype):
            raise NotTyped
        op, head = self.pick(["+", "-", "*"]), first.dtype
        for _ in range(8):
            grown = known(typed(BINARY[op], head, a.dtype))
            wider = known(unified(known(unified(head, grown)), b.dtype))
            if wider == head:
                break
            head = wider
        else:
            raise NotTyped
        self.put(f"{name} = {first.text}", f"for _ in range({self.pick(['n - 3', '2', 'i'])}):")
        self.put(f"    if {self.condition()}:", f"        {name} {op}= {a.text}", f"        out[i] = {name}")
        self.put(f"    elif {self.condition()}:", f"        {name} = {b.text}", f"    out[i] = {name}")
        self.stored(name, head)

    def exchange(self):
        """Two variables of different types that a branch exchanges."""
        one, other, a, b = self.variable(), self.variable(), self.leaf(), self.leaf()
        both = known(unified(a.dtype, b.dtype))
        self.put(f"{one}, {other} = {a.text}, {b.text}", f"if {self.condition()}:")
        self.put(f"    {one}, {other} = {other}, {one}", f"    out[i] = {one}", f"out[i] = {other}")
        self.stored(one, both)

    def inside(self):
        """A function or lambda inside the kernel, called with arguments of different types."""
        name, outer, given = self.variable(), self.variable(), self.leaf()
        op, fixed, first = self.pick(["+", "-", "*"]), self.leaf(), self.pick(["a", "b", "v", "leaf"])
        calls = [(self.leaf(), self.leaf()) for _ in range(2)]
        for a, b in calls:
            types = {"a": a.dtype, "b": b.dtype, "v": given.dtype, "leaf": fixed.dtype}
            known(unified(types[first], known(typed(BINARY[op], a.dtype, given.dtype))))
        then = {"v": outer, "leaf": fixed.text}.get(first, first)
        self.put(f"{outer} = {given.text}")
        if self.random.random() < 0.3:
            self.put(f"{name} = lambda a, b: {then} if {self.condition()} else a {op} {outer}")
        elif self.random.random() < 0.5:
            self.put(f"def {name}(a, b):", f"    if {self.condition()}:", f"        return {then}")
            self.put(f"    return a {op} {outer}")
        else:
            self.put(
                f"def {name}(a, b):", f"    c = {then}", f"    for _ in range({self.pick(['n - 4', 'i'])}):"
            )
            self.put(f"        c = a {op} {outer}", "    return c")
        for a, b in calls:
            self.put(f"out[i] = {name}({a.text}, {b.text})")

    def call(self):
        function = self.pick(FUNCTIONS)
        a, b = self.leaf(), self.leaf()
        if function.takes is None:  # each combination of types is compiled: a few are enough
            a.dtype, b.dtype = self.pick(COMPILED)
            a.text, b.text = f"x_{a.dtype}[i]", f"x_{b.dtype}[i]"
        elif "float" in a.dtype + b.dtype and "int" in "".join(function.takes):
            return self.plain()
        self.put(f"out[i] = {function.name}({a.text}, {b.text})")
        return None


COMPILED = [("float32", "int64"), ("uint32", "int8"), ("bool", "float16"), ("uint64", "uint8")]
FUNCTIONS = [
    Function("plain_sum", "return a + b", None, None),
    Function("first_or_half", "return a if b else 0.5", None, None),
    Function("larger", "if a > b:\n        return a\n    return b", None, None),
    Function("grown", "for _ in range(2):\n        a = a - b\n    return a", None, None),
    Function("to_float32", "return a * b", ("float32", "float32"), "float32"),
    Function("to_uint8", "return a + b", ("uint8", "int16"), "uint8"),
    Function("to_float64", "return a - b", ("float16", "int32"), "float64"),
    Function("to_int64", "return a - b", ("uint32", "uint32"), "int64"),
]
HEADER = "from numba import cuda\nfrom numba.cuda.types import " + ", ".join(DTYPES[1:]) + "\n"
PARAMETERS = ", ".join(["n", *(f"x_{name}" for name in DTYPES), "out"])


def device_functions() -> str:
    source = ""
    for function in FUNCTIONS:
        types = f'"{function.result}({", ".join(function.takes)})", ' if function.takes else ""
        source += f"\n@cuda.jit({types}device=True)\ndef {function.name}(a, b):\n    {function.body}\n"
    return source


@cache
def callable_functions() -> dict:
    space = {}
    with patch("numba.cuda.dispatcher.get_current_device", lambda: numba_types.HOPPER):
        run_source(HEADER + device_functions(), "device_functions", space)
    return space


def run_source(source, name, space):
    file = f"<referee {name}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    exec(compile(source, file, "exec"), space)


def kernel_of(lines, name):
    source = f"def kernel({PARAMETERS}):\n    i = cuda.grid(1)\n" + "\n".join(lines) + "\n"
    space = dict(callable_functions())
    run_source(source, name, space)
    return space["kernel"], source.splitlines()


def arguments(n):
    return [n, *(array(name) for name in DTYPES), np.zeros(LANES)]


class Recorder:
    """Notes the type and the values of every store that the emulator executes."""

    def __init__(self):
        self.stored = {}

    def __call__(self, machine, site, base, index, value):
        shape = machine.chunk.geometry.shape
        values = np.broadcast_to(machine.plain(value), shape)[0, 0]
        active = np.broadcast_to(True if machine.unit.mask.array is None else machine.unit.mask.array, shape)[
            0, 0
        ]
        line = machine.sites[site].line
        for lane in range(LANES):
            if active[lane]:
                self.stored[line, lane] = dtype_of(value).name, values[lane]


def emulated(kernel, n):
    """{(line, lane): (type, value)} of the last stores."""
    recorder = Recorder()
    with patch.object(Machine, "assign_element", lambda *given: recorder(*given)):
        emulate(kernel, 1, LANES, *arguments(n))
    return recorder.stored


def same(got, wanted) -> bool:
    if got == wanted:
        return True
    return got != got and wanted != wanted


def compare(kernel, source):
    """(stores compared, those without a defined value) for two n; raises AssertionError for a difference."""
    like = numba_types.infer(kernel, *arguments(3))
    compared, unclear = 0, 0
    for n in (3, 5):
        stored = emulated(kernel, n)
        for lane in range(LANES):
            thread = Thread(arguments(n), like, lane)
            try:
                thread.run()
            except Unclear:  # The thread branches on a value that is not defined.
                unclear += 1
                continue
            assert {line for line, where in stored if where == lane} == set(thread.stored)
            for line, (dtype, value) in thread.stored.items():
                text = f"{source[line - 1].strip()} in thread {lane} for n = {n}"
                found, number = stored[line, lane]
                assert found == dtype, f"{found}, and Numba's type is {dtype}: {text}"
                assert value is Unclear or same(number, value), f"{number!r}, not {value!r}: {text}"
                compared, unclear = compared + 1, unclear + (value is Unclear)
    return compared, unclear


def written(seed):
    writer = Writer(random.Random(seed))
    for _ in range(PER_KERNEL):
        try:
            writer.case()
        except NotTyped:
            writer.plain()
    return writer.lines


@pytest.mark.many(one_in=30, with_all=2)
@pytest.mark.parametrize("seed", SEEDS)
def test_types_and_values_are_those_of_numba(seed):
    kernel, source = kernel_of(written(seed), seed)
    with np.errstate(all="ignore"):
        compared, unclear = compare(kernel, source)
    assert compared >= 8 * PER_KERNEL
    assert unclear <= compared / 10


REFUSED = {
    f"x[i] {text} y[i]": operation
    for text, operation in BINARY.items()
    if text in ("&", "|", "^", "<<", ">>")
}


@pytest.mark.parametrize("text", REFUSED)
def test_operands_that_numba_refuses_are_refused(text):
    space = {}
    source = f"from numba import cuda\ndef kernel(x, y, out):\n    i = cuda.grid(1)\n    out[i] = {text}\n"
    run_source(source, text, space)
    refused = 0
    for a, b in itertools.product(DTYPES, repeat=2):
        if typed(REFUSED[text], a, b) is None:
            with pytest.raises(KernelTypeError):
                emulate(space["kernel"], 1, LANES, array(a), array(b), np.zeros(LANES))
            refused += 1
    assert refused >= 60


def outcome_of(seed) -> tuple[str, int, int]:
    """("agree", lines that store, values compared), or ("differ" or whoever refuses it, lines, 0)."""
    kernel, source = kernel_of(written(seed), seed)
    lines = sum("out[i] = " in line for line in source)
    try:
        with np.errstate(all="ignore"):
            return "agree", lines, compare(kernel, source)[0]
    except AssertionError as difference:
        outcome, told = "differ", difference
    except EmulatorError as refused:
        outcome, told = "refused by the emulator", refused
    except TypingError as refused:
        outcome, told = "refused by Numba", refused
    print(f"seed {seed}, {outcome}: {str(told).splitlines()[0]}")
    return outcome, lines, 0


def main(wanted, path):
    """Compare so many lines that store; write a row for each outcome."""
    found: dict[str, list] = {
        "agree": [],
        "differ": [],
        "refused by the emulator": [],
        "refused by Numba": [],
    }
    with multiprocessing.Pool(2) as pool:
        for first in itertools.count(0, 16):
            for outcome, *counts in pool.imap(outcome_of, range(first, first + 16)):
                found[outcome].append(counts)
            if sum(lines for lines, _ in found["agree"]) >= int(wanted):
                break
    versions = platform.python_version(), version("numba-cuda"), version("numba"), version("numpy")
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(
            (
                "outcome",
                "kernels",
                "lines",
                "values",
                "python",
                "numba_cuda",
                "numba",
                "numpy",
                "date",
                "command",
            )
        )
        command = f"python -m lockstep_tests.test_referee {wanted} {path}"
        for outcome, counts in found.items():
            sums = len(counts), sum(lines for lines, _ in counts), sum(values for _, values in counts)
            rows.writerow((outcome, *sums, *versions, date.today(), command))


if __name__ == "__main__":
    main(*sys.argv[1:])
