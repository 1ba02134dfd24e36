"""hypothesis strategies for small random kernels, and the launches to run them with.

A kernel is source text. It is free of races by construction: a thread stores to its own row of the results
and to its own element of the shared tile, and the tile is only read between barriers. Its results are exact
in any order of summation: floats are small whole numbers, and no product contains a variable.
"""

import importlib.util
import itertools
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

HEADER = """\
from numba import cuda, float32, int32


@cuda.jit(device=True)
def pick(a, b, c):
    if c % 3 == 0:
        return a
    return a + b if c % 3 == 1 else b


@cuda.jit
def kernel(x, a, k, n, reals, wholes, bins):
"""
LENGTH, ROWS, COLUMNS, BINS = 41, 7, 13, 5
SHAPES = [
    ((1,), (32,)),
    ((2,), (40,)),
    ((3,), (7,)),
    ((2, 2), (8, 5)),
    ((2, 1), (33, 2)),
    ((1, 2, 2), (5, 3, 2)),
]
_numbers = itertools.count()


@dataclass(frozen=True)
class RandomKernel:
    """Source text of a kernel and one launch of it."""

    source: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    seed: int

    @property
    def threads(self):
        """Threads of one block."""
        return int(np.prod(self.block))

    def args(self):
        """Fresh arguments: small whole numbers as inputs, and arrays for the results."""
        random = np.random.default_rng(self.seed)
        everyone = self.threads * int(np.prod(self.grid))
        return (
            random.integers(-8, 9, LENGTH).astype(np.float32),
            random.integers(-8, 9, (ROWS, COLUMNS)).astype(np.float32),
            random.integers(0, 100, LENGTH).astype(np.int32),
            np.int64(self.seed % 4),
            np.zeros((everyone, 3), np.float32),
            np.zeros((everyone, 3), np.int64),
            np.zeros(BINS, np.int64),
        )

    def load(self):
        """Load the kernel from a file of its own, so that its source can be read."""
        path = Path(tempfile.mkdtemp(prefix="random_kernel_")) / "kernel.py"
        path.write_text(self.source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(f"random_kernel_{next(_numbers)}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.kernel


class Writer:
    """Writes one kernel. Hypothesis makes every choice, so it can shrink a kernel that fails."""

    def __init__(self, draw, threads):
        self.draw, self.threads = draw, threads
        self.lines = []
        self.depth = 1
        self.loops = 0
        self.counters = []
        self.tile_is_readable = False
        self.budget = draw(st.integers(4, 16))

    def pick(self, *choices):
        return self.draw(st.sampled_from(choices))

    def one_of(self, *writers):
        """Choose a writer, then let only that one choose further."""
        return self.pick(*writers)()

    def number(self, low, high):
        return self.draw(st.integers(low, high))

    def put(self, text):
        self.lines.append("    " * self.depth + text)

    # --- expressions --------------------------------------------------------------------------------------

    def whole(self, depth=2):
        """An integer expression, kept small by a modulus wherever it could grow."""
        leaves = ["i", "t", "p", "q", "n", str(self.number(0, 9)), "cuda.blockIdx.x", *self.counters]
        if depth == 0:
            return self.pick(*leaves)
        a, b = self.whole(depth - 1), self.whole(0)
        return self.one_of(
            lambda: b,
            lambda: f"({a} + {b}) % 97",
            lambda: f"{a} - {b}",
            lambda: f"({a} * {b}) % 89",
            lambda: f"{a} // {self.number(1, 7)}",
            lambda: f"{a} % {self.number(2, 9)}",
            lambda: f"({a} & {b})",
            lambda: f"({a} ^ {self.number(0, 31)}) % 64",
            lambda: f"(abs({a}) % 64 >> {self.number(0, 3)})",
            lambda: f"min({a}, {b})",
            lambda: f"max({a}, {b})",
            lambda: f"({a} if {self.condition(0)} else {b})",
            lambda: f"k[{self.index(LENGTH)}]",
            lambda: f"pick({a}, {b}, {self.whole(0)})",
        )

    def index(self, size, depth=1):
        return f"({self.whole(depth)}) % {size}"

    def leaf(self):
        """A float32 that depends on no variable."""
        choices = [
            lambda: f"x[{self.index(LENGTH)}]",
            lambda: f"a[{self.index(ROWS, 0)}, {self.index(COLUMNS, 0)}]",
            lambda: f"float32({self.number(-4, 4)})",
            lambda: f"local[{self.number(0, 3)}]",
            lambda: f"x[{self.index(LENGTH, 0)}] * a[{self.index(ROWS, 0)}, {self.number(0, COLUMNS - 1)}]",
            lambda: f"(x[{self.index(LENGTH, 0)}] if {self.condition(0)} else float32({self.number(0, 4)}))",
        ]
        if self.tile_is_readable:
            choices += [
                lambda: f"tile[{self.index(self.threads)}]",
                lambda: f"tile[(t + {self.number(1, 40)}) % {self.threads}]",
            ]
        return self.one_of(*choices)

    def real(self):
        """A float32 with at most one variable in it, so that repeated assignment grows slowly."""
        leaf = self.leaf()
        variable = self.pick("u", "v")
        return self.pick(
            leaf, f"{variable} + {leaf}", f"{variable} - {leaf}", f"-{variable}", f"max({variable}, {leaf})"
        )

    def condition(self, depth=1):
        a, b = self.whole(0), self.whole(0)
        simple = self.one_of(
            lambda: f"{a} < {b}",
            lambda: f"{a} % {self.number(2, 4)} == {self.number(0, 1)}",
            lambda: f"0 <= {a} < {b}",
            lambda: f"i % {self.number(2, 7)} != 0",
            lambda: f"k[{self.index(LENGTH, 0)}] > {self.number(10, 90)}",
            lambda: f"x[{self.index(LENGTH, 0)}] >= 0",
            lambda: f"t < n < {self.number(0, 5)}",
            lambda: "cuda.blockIdx.x == 0",
        )
        if depth == 0:
            return simple
        other = self.condition(depth - 1)
        return self.pick(simple, f"{simple} and {other}", f"{simple} or {other}", f"not ({simple})")

    # --- statements ---------------------------------------------------------------------------------------

    def block(self, statements):
        self.depth += 1
        for _ in range(statements):
            self.statement()
        self.depth -= 1

    def statement(self):
        if self.budget <= 0 or self.depth > 4:
            return self.put(f"u += {self.leaf()}")
        self.budget -= 1
        choices = [
            self.assignment,
            self.assignment,
            self.store,
            self.branch,
            self.counted_loop,
            self.free_loop,
        ]
        if self.loops:
            choices.append(self.jump)
        return self.pick(*choices)()

    def assignment(self):
        self.put(
            self.one_of(
                lambda: f"{self.pick('p', 'q')} = {self.whole()}",
                lambda: f"{self.pick('u', 'v')} = {self.real()}",
                lambda: f"{self.pick('u', 'v')} {self.pick('+=', '-=')} {self.leaf()}",
                lambda: f"p, q = q, ({self.whole(1)}) % 50",
                lambda: f"u, v = v, {self.leaf()}",
                lambda: f"d += {self.pick('2', '0.5', 'i')} * {self.leaf()}",
                lambda: f"local[{self.number(0, 3)}] = {self.leaf()}",
                lambda: f"local[{self.index(4)}] += float32(1)",
                lambda: f"cuda.atomic.add(bins, {self.index(BINS)}, {self.number(1, 3)})",
            )
        )

    def store(self):
        column = self.number(0, 2)
        self.put(
            self.one_of(
                lambda: f"reals[i, {column}] = {self.real()}",
                lambda: f"reals[i, {column}] += {self.leaf()}",
                lambda: f"wholes[i, {column}] = {self.whole()}",
                lambda: f"wholes[i, ({self.whole(0)}) % 3] = {self.whole(1)}",
            )
        )

    def branch(self):
        self.put(f"if {self.condition()}:")
        self.block(self.number(1, 2))
        if self.pick(True, False):
            self.put(f"elif {self.condition(0)}:" if self.pick(True, False) else "else:")
            self.block(1)

    def counted_loop(self):
        counter = f"j{self.depth}"
        bounds = self.one_of(
            lambda: str(self.number(0, 4)),
            lambda: "n",
            lambda: f"({self.whole(0)}) % {self.number(2, 4)}",
            lambda: f"k[{self.index(LENGTH, 0)}] % 3",
            lambda: f"t % 3, {self.number(3, 5)}",
            lambda: f"{self.number(3, 6)}, 0, -{self.number(1, 3)}",
            lambda: f"t % 2, 6, {self.number(2, 3)}",
        )
        self.put(f"for {counter} in range({bounds}):")
        self.in_loop(counter)

    def free_loop(self):
        counter = f"w{self.depth}"
        self.put(f"{counter} = {self.pick('0', 't % 4', 'n')}")
        self.put(
            f"while {self.pick(f'{counter} < {self.number(1, 5)}', f'{counter} < 4 and x[{counter}] < 6')}:"
        )
        self.depth += 1
        self.put(f"{counter} += 1")
        self.depth -= 1
        self.in_loop(counter)

    def in_loop(self, counter):
        self.loops += 1
        self.counters.append(counter)
        self.block(self.number(1, 3))
        self.counters.pop()
        self.loops -= 1

    def jump(self):
        self.put(f"if {self.condition(0)}:")
        self.depth += 1
        self.put(self.pick("break", "continue"))
        self.depth -= 1

    def shared_phase(self):
        """Write a phase, perhaps in a loop: all threads fill the tile, and read it between two barriers."""
        looped = self.pick(True, False)
        if looped:
            self.put(f"for step in range({self.pick('2', 'n', 'cuda.blockIdx.x + 1')}):")
            self.depth += 1
        self.put(f"tile[t] = {self.real()}")
        self.put("cuda.syncthreads()")
        self.tile_is_readable = True
        for _ in range(self.number(1, 3)):
            self.statement()
        self.tile_is_readable = False
        self.put("cuda.syncthreads()")
        if looped:
            self.depth -= 1

    def kernel(self, dimensions):
        self.put(f"tile = cuda.shared.array({self.threads}, float32)")
        self.put("local = cuda.local.array(4, float32)")
        self.prologue(dimensions)
        for _ in range(self.number(1, 3)):
            self.pick(self.statement, self.shared_phase)()
        if self.pick(True, False):
            self.put(f"if {self.condition()}:")
            self.depth += 1
            self.put("return")
            self.depth -= 1
        for _ in range(self.number(0, 3)):
            self.statement()
        self.put("reals[i, 0] += u")
        self.put("reals[i, 1] += v + float32(d)")
        self.put("wholes[i, 0] += p")
        self.put("wholes[i, 1] += q")
        return HEADER + "\n".join(self.lines) + "\n"

    def prologue(self, dimensions):
        axes = "xyz"[:dimensions]
        thread = block = ""
        for axis in reversed(axes):
            thread = f"cuda.threadIdx.{axis}" + (f" + cuda.blockDim.{axis} * ({thread})" if thread else "")
            block = f"cuda.blockIdx.{axis}" + (f" + cuda.gridDim.{axis} * ({block})" if block else "")
        self.put(f"t = {thread}")
        self.put(f"i = ({block}) * {self.threads} + t")
        self.put("p = i")
        self.put("q = n")
        self.put(f"u = x[i % {LENGTH}]")
        self.put("v = float32(1)")
        self.put("d = 0.0")
        self.put("for j in range(4):")
        self.put("    local[j] = float32(j)")


class CarelessWriter(Writer):
    """Writes kernels whose barriers, guards and indices may be wrong; no branch depends on what races."""

    def store(self):
        column = self.number(0, 2)
        row = self.pick("i", "i", f"(i + {self.number(1, 40)}) % reals.shape[0]", f"i // {self.number(1, 3)}")
        self.put(f"reals[{row}, {column}] {self.pick('=', '+=')} {self.leaf()}")

    def shared_phase(self):
        looped = self.pick(True, False)
        if looped:
            self.put(f"for step in range({self.pick('2', 'cuda.blockIdx.x + 1')}):")
            self.depth += 1
        self.fill()
        if self.pick(True, True, False):
            self.put("cuda.syncthreads()")
        self.tile_is_readable = True
        self.put(f"u += tile[{self.pick('t', f'(t + {self.number(1, 40)}) % {self.threads}', '0')}]")
        self.statement()
        self.tile_is_readable = False
        if self.pick(True, True, False):
            self.put("cuda.syncthreads()")
        if looped:
            self.depth -= 1

    def fill(self):
        slot = self.pick("t", "t", f"(t + {self.number(1, 40)}) % {self.threads}", "t // 2")
        store = f"tile[{slot}] = {self.real()}"
        if self.pick(True, True, False):
            self.put(store)
        else:
            self.put(f"if {self.condition(0)}:")
            self.put(f"    {store}")


class DivergentWriter(Writer):
    """Writes kernels of loops that the lanes leave one after another, touching only global memory in them."""

    def leaf(self):
        return self.one_of(
            lambda: f"x[{self.index(LENGTH)}]",
            lambda: f"a[{self.index(ROWS, 0)}, {self.index(COLUMNS, 0)}]",
            lambda: f"float32({self.number(-4, 4)})",
            lambda: f"(x[{self.index(LENGTH, 0)}] if {self.condition(0)} else float32({self.number(0, 4)}))",
        )

    def whole(self, depth=2):
        found = super().whole(depth)
        return "q" if "pick" in found else found

    def assignment(self):
        self.put(
            self.one_of(
                lambda: f"{self.pick('p', 'q')} = {self.whole()}",
                lambda: f"{self.pick('u', 'v')} = {self.real()}",
                lambda: f"{self.pick('u', 'v')} {self.pick('+=', '-=')} {self.leaf()}",
                lambda: f"p, q = q, ({self.whole(1)}) % 50",
                lambda: f"d += {self.pick('2', '0.5', 'i')} * {self.leaf()}",
            )
        )

    def statement(self):
        if self.budget <= 0 or self.depth > 4:
            return self.put(f"u += {self.leaf()}")
        self.budget -= 1
        choices = [self.assignment, self.store, self.branch, self.counted_loop, self.free_loop]
        self.pick(*choices, *([self.jump] if self.loops else []))()

    def free_loop(self):
        counter = f"w{self.depth}"
        self.put(f"{counter} = {self.pick('i % 11', 't % 7', 'k[i % 41] % 9')}")
        self.put(f"while {counter} < {self.number(7, 12)}:")
        self.depth += 1
        self.put(f"{counter} += {self.pick('1', '2', '1 + i % 2')}")
        self.depth -= 1
        self.in_loop(counter)

    def counted_loop(self):
        counter = f"j{self.depth}"
        bounds = self.pick("i % 9", "t % 5, 8", "k[i % 41] % 6", "9, i % 8, -2", "6")
        self.put(f"for {counter} in range({bounds}):")
        self.in_loop(counter)

    def kernel(self, dimensions):
        self.prologue(dimensions)
        del self.lines[-2:]  # without the thread's own array
        self.budget = self.number(2, 5)
        self.free_loop()
        self.statement()
        self.put("reals[i, 0] += u")
        self.put("reals[i, 1] += v + float32(d)")
        self.put("wholes[i, 0] += p")
        self.put("wholes[i, 1] += q")
        return HEADER + "\n".join(self.lines) + "\n"


@st.composite
def divergent_kernels(draw):
    """A RandomKernel whose loops end at different times for different lanes."""
    grid, block = draw(st.sampled_from(SHAPES))
    source = DivergentWriter(draw, int(np.prod(block))).kernel(len(block))
    return RandomKernel(source, grid, block, draw(st.integers(0, 2**16)))


@st.composite
def careless_kernels(draw):
    """A RandomKernel that may race or read uninitialised shared memory."""
    grid, block = draw(st.sampled_from(SHAPES))
    source = CarelessWriter(draw, int(np.prod(block))).kernel(len(block))
    return RandomKernel(source, grid, block, draw(st.integers(0, 2**16)))


@st.composite
def random_kernels(draw):
    """A RandomKernel: source, launch geometry and the seed of its inputs."""
    grid, block = draw(st.sampled_from(SHAPES))
    source = Writer(draw, int(np.prod(block))).kernel(len(block))
    return RandomKernel(source, grid, block, draw(st.integers(0, 2**16)))
