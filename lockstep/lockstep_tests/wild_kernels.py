"""Random kernels and launches, of all that the emulator accepts and of much that it must refuse.

A kernel is source text, drawn from a grammar that knows Python's syntax but no types: most kernels have a
mistake somewhere. `random` is a `random.Random`, or hypothesis's stand-in for it, which lets hypothesis
shrink a kernel that fails.
"""

import importlib.util
import itertools
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lockstep import Watch

HEADER = """\
import math
import numba
import numpy as np
from numba import cuda, float32, float64, int8, int32, int64, uint8, uint32, uint64, types
from lockstep.intrinsics import load4, store4, u32, unroll

SIZE, HALF, PAIR, TEXT = 8, 0.5, (2, 3), "text"
NUMBERS = np.arange(6, dtype=np.int32)


@cuda.jit(device=True)
def picked(a, b, c):
    if c % 3 == 0:
        return a
    return a + b if c % 3 == 1 else b


@cuda.jit(device=True)
def stored(array, i, value=1):
    array[i] = value
    return i


@cuda.jit(device=True)
def counted(n):
    for j in range(n):
        if j > 4:
            return j
    return n


@cuda.jit
def kernel(x, a, k, n, r, out):
"""
INDENT = "    "
NAMES = "p q u v t i n r x a k out tile own row missing".split()
NUMBERS = "0 1 2 3 7 -1 31 0.5 2.0 1e30 True SIZE HALF 2**31 2**63 -2**63".split()
ODD = """\
None|'text'|...|TEXT|PAIR|NUMBERS|[1, 2]|{}|{1: 2}|1j|f'{i}'|()|(i,)|lambda z: z|[z for z in range(3)]|np|\
math|cuda|\
float32|undefined|2**200|float('inf')""".split("|")
INDICES = "threadIdx blockIdx blockDim gridDim".split()
ATTRIBUTES = "shape shape ndim size dtype strides T x y w foo sum real".split()
BINARY = "+ - * / // % ** & | ^ << >>".split()
COMPARE = "< <= > >= == !=".split()
BUILTINS = "abs min max len int float bool pow round divmod sum range isinstance print".split()
TYPES = "float32 float64 int8 int32 int64 uint8 uint32 uint64 np.float32 types.int16 u32".split()
MATH = """
    sqrt exp log sin cos tanh floor ceil fabs pow atan2 isnan isinf erf fmod hypot gamma ldexp frexp
    trunc copysign
    degrees""".split()
FUNCTIONS = """
    picked stored counted load4 store4 unroll kernel cuda.grid cuda.gridsize np.sin np.sqrt np.arange x n TEXT
    undefined""".split()
WARP = """\
shfl_sync(0xFFFFFFFF, {}, {})|shfl_down_sync(0xFFFFFFFF, {}, {})|ballot_sync(0xFFFFFFFF, {})|\
any_sync(0xFFFFFFFF, {})|\
all_sync({}, {})|activemask()|syncthreads_count({})|popc({})|clz({})|ffs({})|selp({}, {}, {})|\
fma({}, {}, {})|\
lanemask_lt()|brev({})|cbrt({})|nanosleep({})""".split("|")
ATOMICS = "add sub max min and_ or_ xor exch inc dec nanmax cas".split()
BASES = "x x x a a k out tile own row NUMBERS PAIR t n cuda".split()
INDEX = "i|i|0|i % 8|i % SIZE|i % x.shape[0]|i % n|-1|i % 3, t|i % 3, 0|i % 3, i % 5|i % 2, q".split("|")
SLICES = "i:|:3|i:i + 2|::2|:|0, :|:, 1|..., 0|None|1:n".split("|")
TARGETS = "p|q|u|v|i|n|row|t|p, q|(p, q)|u, (v, q)|out[i % 8], p|*p, q|out.shape|x|cuda.y".split("|")
VALUES = """\
range(3)|range(n)|range(i % 4)|range(1, 5, 2)|range(4, i % 3, -1)|unroll(range(2))|range(0)|range(2, 9, n)|\
range(len(x))|range(1, 2, 0)|range({})|range({})|x|a|(1, 2, 3)|zip(x, k)|enumerate(x)|n|x.shape|range(*t)|\
own""".split("|")
PLAIN = """\
cuda.syncthreads()|cuda.syncwarp()|cuda.threadfence()|pass|return|'text'|own[:] = 0|row = a[i % 3]|\
row = tile|\
row = x[1:]|cuda.atomic.add(out, i % 8, 1)|stored(out, i % 8)|stored(out, value=2, i=i % 8)|p, q = q, p|\
row = a[0] if i % 2 else x|own[i % 4] += 1|tile[cuda.threadIdx.x % 8] = {}|{}""".split("|")
RARE = """\
assert i >= 0|raise ValueError|del p|global SIZE|import math|return i|x = k|nonlocal_ = 1|_hidden = 2|\
print(i, p)|print('text', i)|x, k = k, x|p = q = i|tile = cuda.shared.array(SIZE + 1, float32)|\
own = cuda.local.array(n, float32)|late = cuda.shared.array((2, 3), int32)|\
late = cuda.shared.array(0, uint8)|\
late = cuda.const.array_like(NUMBERS)|late = cuda.local.array(4, 'float32')|def f(): pass|with x: pass|\
class C: pass|yield i""".split("|")
DTYPES = "bool int8 uint8 int16 int32 int64 uint32 uint64 float16 float32 float64".split()
_numbers = itertools.count()


@dataclass
class WildKernel:
    """Source text of a kernel, and one launch of it."""

    source: str
    grid: object
    block: object
    arguments: tuple
    options: dict = field(default_factory=dict)

    def args(self):
        """The arguments, with copies of the arrays."""
        return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in self.arguments)

    def load(self):
        """The kernel, from a file of its own; None if Python itself refuses the source."""
        path = Path(tempfile.mkdtemp(prefix="wild_kernel_")) / "kernel.py"
        path.write_text(self.source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(f"wild_kernel_{next(_numbers)}", path)
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except SyntaxError:
            return None
        return module.kernel

    def __str__(self):
        given = [f"{a.dtype}{a.shape}" if isinstance(a, np.ndarray) else repr(a) for a in self.arguments]
        body = self.source[self.source.index("def kernel") :]
        return f"{body}\ngrid {self.grid}, block {self.block}, arguments {given}, {self.options}"


class WildWriter:
    """Writes one kernel. `wildness`: how often, of 100 times, it writes something that must be refused."""

    def __init__(self, random, wildness=3):
        self.random, self.wildness = random, wildness
        self.lines: list[str] = []
        self.depth = 1
        self.budget = random.randint(2, 14)

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, percent):
        return self.random.randint(0, 99) < percent

    def usually(self, percent):
        """Whether to write what a kernel needs: always, except in kernels that should have mistakes."""
        return not self.wildness or self.chance(percent)

    def put(self, text):
        self.lines.append(INDENT * self.depth + text)

    # --- expressions --------------------------------------------------------------------------------------

    def expression(self, depth=2):
        if self.chance(self.wildness):
            return self.pick(*ODD)
        if depth <= 0 or self.chance(25):
            return self.leaf()
        usual = [self.binary, self.element, self.call]
        other = [
            self.unary,
            self.comparison,
            self.boolean,
            self.conditional,
            self.attribute,
            self.tuple,
            self.warp,
        ]
        return self.pick(*usual, *usual, *other, *([self.walrus] if self.wildness else []))(depth - 1)

    def leaf(self):
        if not self.wildness:
            return self.pick("i", "n", "p", "q", "u", "v", "r", "x[i % 8]", "k[i % 8]", *NUMBERS[:9])
        index = f"cuda.{self.pick(*INDICES)}.{self.pick('x', 'x', 'y', 'z')}"
        return self.pick(self.pick(*NAMES), self.pick("i", "n", "p", "u", "t"), self.pick(*NUMBERS), index)

    def binary(self, depth):
        op = self.pick(*BINARY) if not self.chance(self.wildness) else "@"
        return f"({self.expression(depth)} {op} {self.expression(depth)})"

    def unary(self, depth):
        return f"({self.pick('-', '+', '~', 'not ')}{self.expression(depth)})"

    def comparison(self, depth):
        ops = COMPARE if not self.chance(self.wildness) else ("is", "in", "is not", "not in")
        parts = [self.expression(depth)]
        for _ in range(self.pick(1, 1, 1, 2, 3)):
            parts += [self.pick(*ops), self.expression(depth)]
        return f"({' '.join(parts)})"

    def boolean(self, depth):
        return f"({self.expression(depth)} {self.pick('and', 'or')} {self.expression(depth)})"

    def conditional(self, depth):
        return f"({self.expression(depth)} if {self.expression(depth)} else {self.expression(depth)})"

    def tuple(self, depth):
        return f"({self.expression(depth)}, {self.expression(depth)})"

    def walrus(self, depth):
        return f"(w := {self.expression(depth)})" if self.chance(30) else self.leaf()

    def attribute(self, depth):
        if not self.wildness:
            return self.pick(
                "x.shape[0]", "a.shape[1]", "x.size", "cuda.threadIdx.x", "cuda.blockDim.x", "a.ndim"
            )
        owner = self.pick("x", "a", "out", "tile", "k", "n", "row", "cuda.threadIdx", "cuda", "math", "np")
        found = f"{owner}.{self.pick(*ATTRIBUTES)}"
        return f"{found}[{self.pick('0', '0', '1', '-1', '5', 'i')}]" if self.chance(40) else found

    def index(self, depth):
        if self.usually(70):
            return self.pick(*INDEX[:9] if not self.wildness else INDEX)
        if self.chance(30):
            return self.pick(*SLICES)
        return self.expression(depth) if self.chance(60) else f"{self.expression(0)}, {self.expression(0)}"

    def element(self, depth):
        found = f"{self.pick(*BASES[:3] if not self.wildness else BASES)}[{self.index(depth)}]"
        return f"{found}[{self.index(0)}]" if self.chance(10) else found

    def call(self, depth):
        if not self.wildness:
            one = self.pick("abs", "int", "float", "math.sqrt", "math.floor", "math.sin", *TYPES)
            two = self.pick("min", "max", "pow", "math.fmod", "math.atan2", "divmod", "picked", "counted")
            count = {"picked": 3, "counted": 1}.get(two, 2)
            return self.pick(f"{one}({{}})", f"{two}({', '.join(['{}'] * count)})").format(
                *(self.expression(depth) for _ in range(3))
            )
        names = self.pick(BUILTINS, TYPES, FUNCTIONS, [f"math.{name}" for name in MATH])
        arguments = [self.expression(depth) for _ in range(self.pick(0, 1, 1, 1, 2, 2, 3, 3, 4))]
        if self.chance(5):
            arguments.append(f"{self.pick('value', 'dtype', 'shape', 'c')}={self.expression(0)}")
        elif self.chance(self.wildness):
            arguments.append(self.pick("*t", "**t"))
        return f"{self.pick(*names)}({', '.join(arguments)})"

    def warp(self, depth):
        if self.chance(70):
            return self.binary(depth)
        if self.chance(40):
            array = self.pick("out", "x", "tile", "k", "own", "a", "n")
            values = ", ".join(self.expression(0) for _ in range(self.pick(1, 1, 1, 2)))
            return f"cuda.atomic.{self.pick(*ATOMICS)}({array}, {self.index(0)}, {values})"
        return "cuda." + self.filled(self.pick(*WARP), 0)

    def filled(self, text, depth):
        return text.format(*(self.expression(depth) for _ in range(text.count("{}"))))

    # --- statements ---------------------------------------------------------------------------------------

    def block(self, count=None):
        self.depth += 1
        for _ in range(count or self.pick(1, 1, 2)):
            self.statement()
        self.depth -= 1

    def statement(self):
        if self.budget <= 0 or self.depth > 4:
            return self.put(f"{self.pick('p', 'u', 'out[i % 8]')} = {self.expression(1)}")
        self.budget -= 1
        if self.chance(3 * self.wildness):
            return self.put(self.pick(*RARE))
        usual = [self.assignment, self.assignment, self.store, self.plain]
        self.pick(*usual, *usual, self.branch, self.for_loop, self.while_loop)()

    def assignment(self):
        value = self.expression(3)
        kind = self.random.randint(0, 9)
        if kind < 6:
            self.put(f"{self.pick('p', 'q', 'u', 'v', 'row', 't')} = {value}")
        elif kind < 8:
            self.put(f"{self.pick('p', 'q', 'u', 'i', 'missing')} {self.pick(*BINARY)}= {value}")
        else:
            targets = TARGETS if self.wildness else ("p", "q", "u", "v")
            self.put(f"{self.pick(*targets)} = {value}" if self.usually(80) else f"p: int = {value}")

    def store(self):
        usual = ("out", "own", "tile", "row")
        array = self.pick(*usual, *usual, *(("x", "a", "k", "n", "PAIR") if self.wildness else ("out",)))
        op = self.pick("=", "=", "=", *(f"{op}=" for op in BINARY[:7]))
        self.put(f"{array}[{self.index(1)}] {op} {self.expression(2)}")

    def plain(self):
        self.put(self.filled(self.pick(*PLAIN), 2))

    def branch(self):
        self.put(f"if {self.expression(2)}:")
        self.block()
        if self.chance(50):
            self.put(self.pick("else:", f"elif {self.expression(1)}:"))
            self.block(1)

    def looped(self):
        self.block()
        if self.chance(40):
            self.depth += 1
            self.put(f"if {self.expression(1)}:")
            self.put(INDENT + self.pick("break", "continue", "return"))
            self.depth -= 1
        if self.chance(self.wildness):
            self.put("else:")
            self.block(1)

    def for_loop(self):
        variable = self.pick("j", "j", "j", "i", "p", "p, q", "out[0]") if self.wildness else "j"
        values = VALUES if self.wildness else VALUES[:7]
        self.put(f"for {variable} in {self.filled(self.pick(*values), 1)}:")
        self.looped()

    def while_loop(self):
        counter = self.pick("p", "q")
        self.put(f"{counter} = {self.pick('0', 'i % 5', 'n', '0.0')}")
        tests = "{0} < 4", "{0} < i % 7", "{0} < 3 and x[{0}] < 5", "True"
        self.put(f"while {self.pick(*tests).format(counter)}:")
        self.put(INDENT + f"{counter} += {self.pick('1', '1', '2', 'n')}")
        self.looped()

    def kernel(self):
        self.put("i = cuda.grid(1)")
        if self.chance(60):
            self.put("if i >= out.shape[0]:")
            self.put(INDENT + "return")
        if self.usually(60):
            shape = self.pick("SIZE", "8", "(4, 2)", "0") if self.wildness else "SIZE"
            self.put(f"tile = cuda.shared.array({shape}, {self.pick(*TYPES[:8])})")
        if self.usually(60):
            shape = self.pick("SIZE", "4", "(2, 2)") if self.wildness else "4"
            self.put(f"own = cuda.local.array({shape}, {self.pick(*TYPES[:8])})")
        if self.usually(70):
            self.put("p = q = 1")
            self.put("u, v, t = 0.5, float32(2), (i, 3)")
            self.put("row = a[0] if n else x" if self.chance(10) else "row = a[0]")
        for _ in range(self.random.randint(1, 5)):
            self.statement()
        self.put(f"out[i % 8] = {self.expression(2)}")
        return HEADER + "\n".join(self.lines) + "\n"


class Arguments:
    """Draws arguments, most of them as the kernel needs them."""

    def __init__(self, random, wildness):
        self.random, self.wildness = random, wildness

    def pick(self, *choices):
        return self.random.choice(choices)

    def array(self, *shape):
        dtype = self.pick("float32", "float32", "int32", *DTYPES)
        values = np.random.default_rng(self.random.randint(0, 9)).integers(0, 9, shape).astype(dtype)
        kind = self.random.randint(0, 19)
        if kind == 0:
            return np.asfortranarray(values)
        if kind == 1:
            return values[::-1]
        if kind == 2:
            return np.repeat(values, 2, axis=-1)[..., ::2]
        if kind == 3:
            values.flags.writeable = False
        return values[:0] if kind == 4 else values

    def odd(self):
        whole = None, "text", [1.0], {}, 1j, np.float16(2), True, 2**70, -1, (1, 2), object(), slice(3), print
        arrays = np.array(3.0), np.zeros((2, 2, 2)), np.array(["a"]), np.zeros(4, complex), (np.zeros(3), 1)
        return self.pick(*whole, *arrays, np.datetime64("2020-01-01"), np.ma.masked_array([1.0, 2.0]))

    def scalar(self):
        return self.pick(3, 0, 7, 2.5, True, np.int32(4), np.float32(1.5), np.uint64(2**63), np.int64(5), -2)

    def all(self):
        given = [
            self.array(16),
            self.array(4, 5),
            self.array(16),
            self.scalar(),
            self.scalar(),
            self.array(40),
        ]
        if not self.wildness:
            return tuple(given)
        if self.random.randint(0, 9) == 0:
            given[self.random.randint(0, 5)] = self.odd()
        if self.random.randint(0, 39) == 0:
            given.pop()
        if self.random.randint(0, 9) == 0:
            given[0] = given[-1]
        return tuple(given)


def wild_kernel(random, wildness=3) -> WildKernel:
    """A WildKernel drawn with `random`."""
    choose = Arguments(random, wildness)
    grid, block = choose.pick((1, 8), (2, 8), (1, 40), ((2, 2), (3, 2)), (1, (4, 2, 2)), (5, 8))
    if wildness and random.randint(0, 29) == 0:
        grid, block = choose.pick((0, 8), (1, 2000), (1.5, 8), ((), 8), (1, (2, 2, 2, 2)), ("1", 8), (-1, 1))
    options = {"step_limit": 60}
    if random.randint(0, 5) == 0:
        options |= choose.pick({"counts_only": True}, {"shared_bytes": 64}, {"watch": Watch()})
    source = WildWriter(random, wildness).kernel()
    return WildKernel(source, grid, block, choose.all(), options)
