"""A plain interpreter of kernels, one thread after another: the reference for the emulator.

It walks the syntax tree with one value per name, NumPy scalars of the types that Numba itself infers for each
operation. Threads of a block are generators that pause at `cuda.syncthreads()`. There are no warps while it
runs: every access is recorded with its thread and with the iteration of each enclosing loop, and afterwards
the accesses of one warp in one iteration form one request. It shares no code with the emulator.
"""

import ast
import builtins
import inspect
import itertools
import math
import operator
import textwrap
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numba import cuda

from lockstep.intrinsics import load4, store4

WARP, SECTOR, LINE = 32, 32, 128
BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
COMPARE = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
CALLABLE = {math.sqrt: np.sqrt, math.exp: np.exp, math.sin: np.sin, abs: np.abs, min: min, max: max}


class NotCovered(Exception):
    """The kernel uses something this interpreter does not support."""


@dataclass
class Memory:
    """An array in one of the memories; `data` holds the values of a block, a thread or the whole grid."""

    name: str
    space: str
    data: np.ndarray

    @property
    def shape(self):
        return tuple(np.int64(size) for size in self.data.shape)


@dataclass(frozen=True)
class Touch:
    """One access of one thread to one element. `interval` counts the barriers that its block has passed."""

    block: tuple[int, int, int]
    thread: int
    interval: int
    op: str
    line: int

    def races_with(self, other, space):
        """Whether the two are unordered and at least one of them writes."""
        if (self.block, self.thread) == (other.block, other.thread):
            return False
        if self.op == other.op and self.op in ("load", "atomic"):
            return False
        return self.interval == other.interval if self.block == other.block else space == "global"


@dataclass
class Access:
    """All accesses of one place in the source: (block, warp, iterations) -> [(lane, first byte)]."""

    line: int
    space: str
    op: str
    array: str
    bits: int
    lanes: dict = field(default_factory=lambda: defaultdict(list))

    def counts(self):
        """The figures of a report for this place."""
        groups = self.lanes.values()
        size = self.bits // 8
        found = {"requests": len(groups), "lanes": sum(map(len, groups))}
        found["bytes"] = found["lanes"] * size
        if self.space == "global":
            for name, unit in (("sectors", SECTOR), ("lines", LINE)):
                found[name] = sum(len({address // unit for _, address in group}) for group in groups)
        if self.space == "shared" and self.op != "atomic":
            found["wavefronts"] = sum(self._wavefronts(group) for group in groups)
        return found

    def _wavefronts(self, group):
        words = [-1] * WARP
        for lane, address in group:
            words[lane] = address // 4
        return plain_wavefronts(words, max(self.bits, 32), self.op)


def plain_wavefronts(lanes, bits, op):
    """Wavefronts of one instruction in plain loops, -1 for an idle lane.

    Lanes are served in groups that access 32 words. A wide load serves two groups together if every lane of
    the warp agrees with a neighbour; idle lanes agree with all.
    """
    width = bits // 32
    together = 1

    def neighbours_agree(distance):
        pairs = [(lanes[lane], lanes[lane ^ distance]) for lane in range(WARP)]
        return all(-1 in pair or pair[0] == pair[1] for pair in pairs)

    if op == "load" and width > 1 and (neighbours_agree(1) or neighbours_agree(2)):
        together = 2
    size = WARP // width * together
    return sum(_deepest_bank(lanes, range(first, first + size), width) for first in range(0, WARP, size))


def _deepest_bank(lanes, group, width):
    words = {lanes[lane] + part for lane in group if lanes[lane] >= 0 for part in range(width)}
    return max((sum(word % 32 == bank for word in words) for bank in range(32)), default=0)


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _Return(Exception):
    def __init__(self, value=None):
        self.value = value


@cache
def _signature(operation, *names):
    """(argument types, result type) that Numba chooses, as NumPy types; None if no number results."""
    from lockstep_tests.numba_types import contexts  # needs numba-cuda; the rest of this file does not

    typing_context, _ = contexts()
    types = tuple(_numba_type(name) for name in names)
    chosen = typing_context.resolve_function_type(operation, types, {})
    if chosen is None:
        raise NotCovered(f"{operation} of {names}")
    return tuple(_numpy_type(t) for t in chosen.args), _numpy_type(chosen.return_type)


def _numba_type(name):
    from numba.cuda import types

    return types.boolean if name == "bool" else getattr(types, name)


def _numpy_type(numba_type):
    return np.dtype("bool" if str(numba_type) in ("bool", "boolean") else str(numba_type)).type


def _typed(value):
    """A NumPy scalar of the type Numba gives a Python constant."""
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return np.int64(value)
    return np.float64(value) if isinstance(value, float) else value


def apply(operation, *operands):
    """One operation on NumPy scalars, typed as Numba types it."""
    operands = tuple(map(_typed, operands))
    takes, gives = _signature(operation, *(operand.dtype.name for operand in operands))
    if issubclass(gives, np.integer):
        # Numba casts the operands of an integer operation to its result, but it negates and inverts first.
        own = operation in (operator.neg, operator.invert) and not isinstance(operands[0], np.bool_)
        takes = [type(operands[0]) if own else gives] * len(takes)
    elif operation in COMPARE.values():
        return np.bool_(operation(*(operand.item() for operand in operands)))
    with np.errstate(all="ignore"):
        result = CALLABLE.get(operation, operation)(*(t(o) for t, o in zip(takes, operands, strict=True)))
        return gives(result)


@cache
def _tree(function):
    lines, first = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    return ast.increment_lineno(tree, first - 1)


def _outer_names(function):
    found = inspect.getclosurevars(function)
    return {**vars(builtins), **function.__globals__, **found.nonlocals}


class Launch:
    """One launch: runs every block in turn and keeps what was accessed."""

    def __init__(self, kernel, grid, block, args, shared_bytes=0):
        self.function = getattr(kernel, "py_func", kernel)
        self.grid, self.block, self.shared_bytes = _three(grid), _three(block), shared_bytes
        self.accesses = {}
        self.touches = []
        self.barriers = 0
        if any(hasattr(value, "in_kernel") for value in args):
            raise NotCovered("a tensor map")
        names = inspect.signature(self.function).parameters
        self.args = {
            name: Memory(name, "global", value)
            if isinstance(value, np.ndarray) and value.ndim
            else _typed(value)
            for name, value in zip(names, args, strict=True)
        }

    def run(self):
        """Run all blocks and write the results to the given arrays. Returns self."""
        for z in range(self.grid[2]):
            for y in range(self.grid[1]):
                for x in range(self.grid[0]):
                    self._run_block((x, y, z))
        return self

    def _run_block(self, block):
        shared = {}
        x, y, z = self.block
        everyone = [
            Thread(self, block, (tx, ty, tz), shared) for tz in range(z) for ty in range(y) for tx in range(x)
        ]
        alive = [thread.body() for thread in everyone]
        while alive:  # a barrier waits for the threads that have not ended
            alive = [thread for thread in alive if next(thread, "done") != "done"]
            self.barriers += bool(alive)

    def faults(self):
        """Return (the faults of every order of the threads, those of some orders only).

        Both are sets of (kind, array, lines), with the lines of both accesses of a race in a frozenset.
        Faults are races and reads of shared elements before any write; a read between the same barriers as
        the first write may come before it.
        """
        elements = defaultdict(list)
        for space, name, index, touch in self.touches:
            elements[space, name, index, touch.block if space == "shared" else None].append(touch)
        found, possible = set(), set()
        for (space, name, *_), touches in elements.items():
            for one, other in itertools.combinations(set(touches), 2):
                if one.races_with(other, space):
                    found.add((f"{space}_race", name, frozenset((one.line, other.line))))
            if space == "shared":
                first = min((t.interval for t in touches if t.op == "store"), default=math.inf)
                for touch in touches:
                    if touch.op != "store" and touch.interval <= first:
                        early = found if touch.interval < first else possible
                        early.add(("uninitialised_read", name, frozenset((touch.line,))))
        return found, possible

    def table(self):
        """The counts, summed over the places that share a line, space, op, array and width."""
        summed = defaultdict(lambda: defaultdict(int))
        for access in self.accesses.values():
            key = (access.line, access.space, access.op, access.array, access.bits)
            for name, value in access.counts().items():
                summed[key][name] += value
        return {key: dict(counts) for key, counts in summed.items()}


def _three(size):
    sizes = (size,) if isinstance(size, int) else tuple(size)
    return (*sizes, 1, 1)[:3]


class Thread:
    """One thread: statements are generators that yield at a barrier, expressions are plain calls."""

    def __init__(self, launch, block, thread, shared):
        self.launch, self.block_index, self.thread_index, self.shared = launch, block, thread, shared
        bx, by, _ = launch.block
        self.linear = thread[0] + bx * (thread[1] + by * thread[2])
        self.values = dict(launch.args)
        self.outer = _outer_names(launch.function)
        self.iterations = []
        self.interval = 0

    def body(self):
        """Run the kernel; yields at every barrier."""
        try:
            yield from self.statements(_tree(self.launch.function).body)
        except _Return:
            return

    # --- statements ---------------------------------------------------------------------------------------

    def statements(self, nodes):
        for node in nodes:
            method = getattr(self, f"do_{type(node).__name__}", None)
            if method is None:
                raise NotCovered(f"line {node.lineno}: {type(node).__name__}")
            yield from method(node) or ()

    def do_Pass(self, node):
        pass

    def do_Expr(self, node):
        if isinstance(node.value, ast.Call) and self.called(node.value) == "syncthreads":
            yield "barrier"
            self.interval += 1
        elif not isinstance(node.value, ast.Constant):
            self.value(node.value)

    def do_Assign(self, node):
        value = self.value(node.value)
        for target in node.targets:
            name = target.id if isinstance(target, ast.Name) else None
            if name and isinstance(value, Memory) and value.space != "global":
                value = self.named(name, value, node)
            self.assign(target, value)

    def do_AugAssign(self, node):
        operation = BINARY[type(node.op)]
        if isinstance(node.target, ast.Name):
            value = self.values[node.target.id]
            self.values[node.target.id] = apply(operation, value, self.value(node.value))
            return
        array, index = self.place(node.target)
        old = self.access(node.target, array, index, "load")
        self.access(node.target, array, index, "store", apply(operation, old, self.value(node.value)))

    def do_If(self, node):
        yield from self.statements(node.body if self.value(node.test) else node.orelse)

    def do_For(self, node):
        start, stop, step = self.range_of(node.iter)
        yield from self.loop(node, ((np.int64(i),) for i in range(start, stop, step)))

    def do_While(self, node):
        yield from self.loop(node, None)

    def loop(self, node, items):
        self.iterations.append(0)
        try:
            while True:
                if items is None:
                    if not self.value(node.test):
                        return
                else:
                    item = next(items, None)
                    if item is None:
                        return
                    self.assign(node.target, item[0])
                try:
                    yield from self.statements(node.body)
                except _Continue:
                    pass
                self.iterations[-1] += 1
        except _Break:
            pass
        finally:
            self.iterations.pop()

    def do_Break(self, node):
        raise _Break

    def do_Continue(self, node):
        raise _Continue

    def do_Return(self, node):
        raise _Return(None if node.value is None else self.value(node.value))

    def assign(self, target, value):
        if isinstance(target, ast.Name):
            self.values[target.id] = value
        elif isinstance(target, ast.Tuple):
            for part, item in zip(target.elts, value, strict=True):
                self.assign(part, item)
        else:
            array, index = self.place(target)
            self.access(target, array, index, "store", value)

    # --- expressions --------------------------------------------------------------------------------------

    def value(self, node):
        method = getattr(self, f"of_{type(node).__name__}", None)
        if method is None:
            raise NotCovered(f"line {node.lineno}: {type(node).__name__}")
        return method(node)

    def of_Constant(self, node):
        return _typed(node.value)

    def of_Name(self, node):
        if node.id in self.values:
            return self.values[node.id]
        return _typed(self.outer[node.id])

    def of_Tuple(self, node):
        return tuple(self.value(part) for part in node.elts)

    def of_Attribute(self, node):
        base = self.value(node.value)
        if base is cuda:
            triples = {
                "threadIdx": self.thread_index,
                "blockIdx": self.block_index,
                "blockDim": self.launch.block,
                "gridDim": self.launch.grid,
            }
            if node.attr in triples:
                return dict(zip("xyz", map(np.int32, triples[node.attr]), strict=True))
        if isinstance(base, dict):
            return base[node.attr]
        return getattr(base, node.attr)

    def of_BinOp(self, node):
        return apply(BINARY[type(node.op)], self.value(node.left), self.value(node.right))

    def of_UnaryOp(self, node):
        operand = self.value(node.operand)
        return np.bool_(not operand) if isinstance(node.op, ast.Not) else apply(UNARY[type(node.op)], operand)

    def of_BoolOp(self, node):
        for part in node.values:
            value = self.value(part)
            if bool(value) != isinstance(node.op, ast.And):
                break
        return value

    def of_Compare(self, node):
        left = self.value(node.left)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self.value(part)
            if not apply(COMPARE[type(op)], left, right):
                return np.bool_(False)
            left = right
        return np.bool_(True)

    def of_IfExp(self, node):
        return self.value(node.body if self.value(node.test) else node.orelse)

    def of_Subscript(self, node):
        base = self.value(node.value)
        if isinstance(base, tuple):
            return base[int(self.value(node.slice))]
        array, index = self.place(node)
        return self.access(node, array, index, "load")

    # --- memory -------------------------------------------------------------------------------------------

    def place(self, node):
        array = self.value(node.value)
        index = self.value(node.slice)
        return array, self.wrapped(array, index)

    def wrapped(self, array, index):
        index = index if isinstance(index, tuple) else (index,)
        whole = tuple(
            int(i) + (size if i < 0 else 0) for i, size in zip(index, array.data.shape, strict=True)
        )
        assert all(0 <= i < size for i, size in zip(whole, array.data.shape, strict=True)), (
            array.name,
            whole,
        )
        return whole

    def access(self, node, array, index, op, value=None, width=1):
        """One access of one thread to `width` neighbouring elements; returns what was there before."""
        site = (id(node), op)
        bits = array.data.dtype.itemsize * 8
        known = self.launch.accesses.setdefault(
            site, Access(node.lineno, array.space, op, array.name, bits * width)
        )
        address = int(np.ravel_multi_index(index, array.data.shape)) * bits // 8
        key = (self.block_index, self.linear // WARP, tuple(self.iterations))
        known.lanes[key].append((self.linear % WARP, address))
        if array.space != "local":
            touch = Touch(self.block_index, self.linear, self.interval, op, node.lineno)
            self.launch.touches.append((array.space, array.name, index, touch))
        if width > 1:
            index = (*index[:-1], slice(index[-1], index[-1] + width))
        old = tuple(array.data[index]) if width > 1 else array.data[index]
        if op == "store":
            array.data[index] = value
        elif op == "atomic":
            array.data[index] = old + value
        return old

    def named(self, name, value, node):
        """Name a shared or local array; a shared one is made once per block."""
        if value.space == "shared":
            return self.shared.setdefault(id(node), Memory(name, "shared", value.data))
        return Memory(name, value.space, value.data)

    def new_array(self, space, shape, dtype):
        shape = tuple(int(n) for n in shape) if isinstance(shape, tuple) else (int(shape),)
        dtype = np.dtype(_numpy_type(dtype))
        if shape == (0,):
            shape = (self.launch.shared_bytes // dtype.itemsize,)
        return Memory("", space, np.zeros(shape, dtype))

    # --- calls --------------------------------------------------------------------------------------------

    def called(self, node):
        """The name of the called function, if it belongs to numba.cuda."""
        function = node.func
        if isinstance(function, ast.Attribute):
            try:
                base = self.value(function.value)
            except NotCovered:
                return None
            if base is cuda:
                return function.attr
            if base in (getattr(cuda, part) for part in ("shared", "local", "atomic")):
                return f"{function.value.attr}.{function.attr}"
        return None

    def range_of(self, node):
        function = self.value(node.func)
        if getattr(function, "__name__", getattr(function, "_name", "")) == "unroll":
            return self.range_of(node.args[0])
        if function is not range:
            raise NotCovered(f"line {node.lineno}: a loop over something other than range")
        bounds = [int(self.value(argument)) for argument in node.args]
        return (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]

    def of_Call(self, node):
        name = self.called(node)
        if name is not None:
            return self.call_cuda(name, node)
        function = self.value(node.func)
        arguments = [self.value(argument) for argument in node.args]
        if hasattr(function, "py_func"):
            self.iterations.append(node.col_offset + 1000 * node.lineno)  # two calls are two instructions
            try:
                return self.call_device(function.py_func, arguments)
            finally:
                self.iterations.pop()
        if function is load4:
            array, index = arguments
            return self.access(node, array, self.wrapped(array, index), "load", width=4)
        if function is store4:
            array, index, values = arguments
            return self.access(node, array, self.wrapped(array, index), "store", values, width=4)
        if hasattr(function, "bitwidth"):  # a Numba number type
            return _numpy_type(function)(arguments[0])
        if function in CALLABLE:
            return apply(function, *arguments)
        raise NotCovered(f"line {node.lineno}: a call of {function}")

    def call_cuda(self, name, node):
        if name in ("grid", "gridsize"):
            return self.grid(name, int(ast.literal_eval(node.args[0])))
        if name in ("shared.array", "local.array"):
            given = [self.value(argument) for argument in node.args]
            given += [self.value(keyword.value) for keyword in node.keywords if keyword.arg != "alignment"]
            return self.new_array(name.split(".")[0], *given[:2])
        if name == "atomic.add":
            array, index, value = (self.value(argument) for argument in node.args)
            return self.access(node, array, self.wrapped(array, index), "atomic", value)
        raise NotCovered(f"line {node.lineno}: cuda.{name}")

    def grid(self, name, dimensions):
        per_axis = zip(self.block_index, self.launch.block, self.thread_index, self.launch.grid, strict=True)
        both = [(b * size + t, grid * size) for b, size, t, grid in per_axis]
        chosen = tuple(np.int64(pair[name == "gridsize"]) for pair in both[:dimensions])
        return chosen[0] if dimensions == 1 else chosen

    def call_device(self, function, arguments):
        tree = _tree(function)
        kept = self.values, self.outer
        self.values = dict(zip((a.arg for a in tree.args.args), arguments, strict=True))
        self.outer = _outer_names(function)
        try:
            for _ in self.statements(tree.body):
                raise NotCovered("a barrier in a device function")
        except _Return as returned:
            return returned.value
        finally:
            self.values, self.outer = kept
        return None
