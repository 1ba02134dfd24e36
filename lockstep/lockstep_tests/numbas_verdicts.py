"""Small kernels for the question whether Numba compiles them: literals, types, attributes, methods, arguments.

A probe is the body of a kernel. Its parameters are those names of ``ARGUMENTS`` that the body uses; ``i`` is
the number of the thread. Most bodies use or store the value of one expression.
"""

# ruff: noqa: E501  (tables of code, a row a line)

import enum
import linecache
import re
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import count
from typing import Any

import numpy as np

from lockstep_tests.numba_types import for_hopper

LENGTH = 32
REAL = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
NUMBERS = ("b1", *REAL, "c8", "c16")
"""Names of one-dimensional arrays of these dtypes; with ``s_`` before it, of one number."""


class Colour(enum.IntEnum):
    RED = 1


class Shade(enum.Enum):
    DARK = 1


Point = namedtuple("Point", "x y")
RECORD = np.dtype([("a", np.float32), ("b", np.int32)], align=True)


def _arguments() -> dict:
    dtypes = {name: "?" if name == "b1" else name for name in NUMBERS}
    found: dict[str, Any] = {name: np.ones(LENGTH, dtype) for name, dtype in dtypes.items()}
    found |= {f"s_{name}": np.ones(1, dtype)[0] for name, dtype in dtypes.items()}
    matrix = np.ones((4, 8), np.float32)
    found |= {
        "out": np.zeros(LENGTH),
        "n": 1,
        "real": 1.5,
        "truth": True,
        "m": matrix,
        "m8": np.ones((4, 8)),
        "mi": np.ones((4, 8), np.int32),
        "fortran": np.asfortranarray(matrix),
        "stepped": np.ones(2 * LENGTH, np.float32)[::2],
        "cut": np.ones((4, 16), np.float32)[:, :8],
        "cube": np.ones((2, 3, 4), np.float32),
        "point": np.ones((), np.float32),
        "one": np.ones(1, np.float32),
        "fixed": _read_only(np.ones(LENGTH, np.float32)),
        "pair": (1, 2),
        "mixed": (1, 2.5),
        "nested": ((1, 2), 3),
        "empty": (),
        "arrays": (np.ones(LENGTH, np.float32), np.ones(LENGTH, np.float32)),
        "spot": Point(1.0, 2.0),
        "records": np.zeros(LENGTH, RECORD),
        "nothing": None,
    }
    return found


def _read_only(array):
    array.flags.writeable = False
    return array


PRELUDE = """\
import cmath
import math
import operator
import numba
import numpy as np
from numba import cuda, float32, float64, int32, int64, types, uint8, boolean, complex64, void

SIZE = 32
SHAPE = (4, 8)
FLOAT = 2.5
FLAG = True
TEXT = "float32"
DTYPE = np.float32
KIND = np.dtype("float32")
TABLE = np.arange(32, dtype=np.float32)
MATRIX = np.ones((4, 8), np.float32)
COLUMNS = np.asfortranarray(MATRIX)
BIG = np.arange(10000.0)
FULL = np.zeros(8192)
NUMBER = np.int32(4)
NESTED = ((1, 2), (3, 4))
LIST = [1, 2, 3]
MAP = {1: 2}
THREADS = cuda.threadIdx


def plain(x):
    return x + 1


@cuda.jit(device=True)
def twice(x):
    return x * 2


@cuda.jit(device=True)
def scaled(x, factor=2):
    return x * factor


@cuda.jit(device=True)
def either(x, flag=None):
    if flag is None:
        return x
    return x + flag


@cuda.jit(device=True)
def total(*values):
    s = 0.0
    for value in values:
        s += value
    return s


@cuda.jit(device=True)
def first(values):
    return values[0]


@cuda.jit(device=True)
def same(values):
    return values


@cuda.jit(device=True)
def both(x):
    return x, x + 1


@cuda.jit(device=True)
def nothing_of(x):
    x + 1


@cuda.jit(device=True)
def tile_of(size):
    return cuda.local.array(size, float32)


@cuda.jit(device=True)
def grid_of(dimensions):
    return cuda.grid(dimensions)


@cuda.jit(device=True)
def tail(x):
    return x[1:]


@cuda.jit(device=True)
def again(x):
    y = x
    return y


@cuda.jit(device=True)
def pick(x, y, flag):
    if flag:
        return x
    return y


@cuda.jit(device=True)
def pick_in_one(x, y, flag):
    return x if flag else y


@cuda.jit(device=True)
def reset(x):
    x = x
    return x


@cuda.jit(device=True)
def in_a_tuple(x):
    return x[1:], 1


@cuda.jit(device=True)
def hands_on(x):
    return same(x)


@cuda.jit(device=True)
def table():
    return TABLE


@cuda.jit(device=True)
def at(values, k):
    return values[k]


@cuda.jit(device=True)
def now_and_then(x, flag):
    if flag:
        return x
    return x[1:]


@cuda.jit(device=True)
def reshaped(x):
    return x.reshape(4, 8)


@cuda.jit(device=True)
def checked(x):
    if x < 0:
        raise ValueError(x)
    return x


@cuda.jit(device=True)
def through_an_array(x, size):
    t = cuda.local.array((size, 2), float32)
    t[0, 0] = x
    return t[0, 0]


@cuda.jit(device=True)
def through_two(x, size):
    return through_an_array(x, size)


@cuda.jit("float32(float32[::1])", device=True)
def signed_dense(x):
    return x[0]


@cuda.jit("float32(float32)", device=True)
def signed(x):
    return x + float32(1)


@cuda.jit("float32(float32[:])", device=True)
def signed_first(x):
    return x[0]


@cuda.jit(device=True)
def applied(function, x):
    return function(x)


@cuda.jit
def another(x):
    x[0] = 1


@numba.njit
def on_both(x):
    return x + 1
"""


@dataclass(frozen=True)
class Probe:
    """One question to Numba. ``given`` replaces or adds arguments by name."""

    name: str
    body: str
    given: dict = field(default_factory=dict, compare=False)
    parameters: str = ""  # how they are written, if not as their names alone

    def __str__(self):
        return self.name

    @property
    def source(self) -> str:
        body = self.body
        if re.search(r"\bi\b", body):
            body = f"i = cuda.grid(1)\n{body}"
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        return f"def probe({self.parameters or ', '.join(self.arguments())}):\n{lines}"

    def arguments(self) -> dict:
        """Return fresh arguments by name."""
        known = ARGUMENTS | self.given
        used = set(re.findall(r"\b[a-z_]\w*\b", re.sub(r"\.\w+|\w+=|\"[^\"]*\"", "", self.body)))
        set_here = set(re.findall(r"^\s*(?:for )?(\w+)(?: = | in )", self.body, re.M)) - set(self.given)
        return {
            name: value.copy()
            if type(value) is np.ndarray and value.flags.c_contiguous and value.flags.writeable
            else value
            for name, value in known.items()
            if name in self.given or (name in used and name not in set_here)
        }

    def function(self):
        """Return the kernel as a plain function, whose source can be read."""
        path = f"<probe {next(_numbers)}>"
        space = dict(_prelude(), Colour=Colour, Shade=Shade, Point=Point)
        text = self.source
        linecache.cache[path] = len(text), None, text.splitlines(True), path
        exec(compile(text, path, "exec"), space)
        return space["probe"]


_numbers = count()
_space: dict = {}


def _prelude() -> dict:
    if not _space:
        path = "<prelude of the probes>"
        linecache.cache[path] = len(PRELUDE), None, PRELUDE.splitlines(True), path
        with for_hopper():  # functions with signatures are compiled here
            exec(compile(PRELUDE, path, "exec"), _space)
    return _space


ARGUMENTS = _arguments()


# ---- probes by families ----


def _values(family: str, template: str, choices: str, **given) -> Iterator[Probe]:
    """Yield a probe for each of the choices, which are written one a line, in place of ``@``."""
    for choice in filter(None, (line.strip() for line in choices.splitlines())):
        yield Probe(f"{family}: {choice}", template.replace("@", choice), given)


def _bodies(family: str, bodies: str) -> Iterator[Probe]:
    """Yield a probe for each body; ``; `` stands for a new line, and deeper lines are marked with ``>``."""
    for body in filter(None, (line.strip() for line in bodies.splitlines())):
        lines = [line.strip() for line in body.split(" ; ")]
        text = "\n".join("    " * len(re.match(r">*", line)[0]) + line.lstrip("> ") for line in lines)
        yield Probe(f"{family}: {body}", text)


def _products(family: str, template: str, **choices) -> Iterator[Probe]:
    """Yield a probe for each combination of the choices in the template's ``{fields}``."""
    combinations: list[dict] = [{}]
    for name, values in choices.items():
        values = values.split() if isinstance(values, str) else values
        combinations = [{**chosen, name: value} for chosen in combinations for value in values]
    for chosen in combinations:
        body = template.format(**chosen)
        yield Probe(f"{family}: {body}".replace("\n", " ; "), body)


def literals() -> Iterator[Probe]:
    """Where Numba wants a literal."""
    dimensions = """
        1
        n
        0
        4
        True
        1.0
        None
        (1,)
        SIZE // 32
        NUMBER
        len(pair)
        f4.ndim
        int(1)
        pair[0]
        np.int32(1)
        FLAG
        -1
        2 - 1
        "1"
    """
    yield from _values("grid", "f8[0] = cuda.grid(@)", dimensions)
    yield from _values("gridsize", "f8[0] = cuda.gridsize(@)", dimensions)
    yield from _bodies(
        "grid",
        """
        k = 1 ; f8[0] = cuda.grid(k)
        k = 2 ; a, b = cuda.grid(k) ; f8[0] = a
        a, b = cuda.grid(2) ; f8[0] = a + b
        a, b, c = cuda.grid(3) ; f8[0] = a + b + c
        a, b = cuda.gridsize(2) ; f8[0] = a + b
        a = cuda.grid(2) ; f8[0] = a[0]
        f8[0] = cuda.grid(2)
        a, b = cuda.grid(1) ; f8[0] = a
        f8[0] = cuda.grid(ndim=1)
        f8[0] = cuda.grid()
        f8[0] = cuda.gridsize()
        f8[0] = cuda.grid(1, 2)
        f8[0] = grid_of(1)
        f8[0] = grid_of(n)
        for k in range(1, 2): ; > f8[0] = cuda.grid(k)
        k = 1 ; k += 0 ; f8[0] = cuda.grid(k)
        k = 1 if n else 1 ; f8[0] = cuda.grid(k)
        k = 1 ; if n > 0: ; > k = 1 ; f8[0] = cuda.grid(k)
        if n > 5: ; > f8[0] = cuda.grid(n)
        """,
    )
    shapes = """
        4
        SIZE
        SHAPE
        (4,)
        (4, 8)
        (SIZE, 2)
        n
        f4.shape
        f4.size
        (n, 2)
        SHAPE[0]
        SIZE + 1
        SIZE * 2
        len(SHAPE)
        4.0
        None
        NUMBER
        pair
        [4]
        "4"
        True
        -4
        ()
        int32(4)
        cuda.blockDim.x
        FLOAT
        Colour.RED
        TABLE.size
        m.shape[0]
        len(pair)
        NESTED
        (4, (2, 2))
        LIST
        cuda.warpsize
        min(4, 8)
    """
    for kind in ("shared", "local"):
        declare = f"t = cuda.{kind}.array"
        use = "\ncuda.syncthreads()\nf8[0] = t.size"
        yield from _values(f"{kind} shape", f"{declare}(@, float32){use}", shapes)
        dtypes = """
            float32
            np.float32
            types.float32
            numba.float32
            "float32"
            "f4"
            TEXT
            DTYPE
            KIND
            f4.dtype
            f4
            None
            float
            int
            bool
            complex
            complex64
            boolean
            np.bool_
            np.complex128
            np.float16
            np.dtype("int32")
            np.dtype(np.int8)
            TABLE.dtype
            1
            4.0
            s_f4.dtype
            uint8
            np.uint64
            types.intp
            void
            "nonsense"
            types.float16
            (float32,)
            types.int8
        """
        yield from _values(f"{kind} dtype", f"{declare}(4, @){use}", dtypes)
        yield from _bodies(
            kind,
            f"""
            {declare}(4, float32, 16) ; f8[0] = t.size
            {declare}(4, float32, alignment=16) ; f8[0] = t.size
            {declare}(4, float32, alignment=None) ; f8[0] = t.size
            {declare}(4, float32, alignment=3) ; f8[0] = t.size
            {declare}(4, float32, alignment=4) ; f8[0] = t.size
            {declare}(4, float32, alignment=0) ; f8[0] = t.size
            {declare}(4, float32, alignment=n) ; f8[0] = t.size
            {declare}(4, float32, alignment=16.0) ; f8[0] = t.size
            {declare}(shape=4, dtype=float32) ; f8[0] = t.size
            {declare}(dtype=float32, shape=4) ; f8[0] = t.size
            {declare}(4) ; f8[0] = t.size
            {declare}() ; f8[0] = t.size
            {declare}(4, float32, size=2) ; f8[0] = t.size
            {declare}(4, float32)[0] ; f8[0] = 1
            k = 4 ; {declare}(k, float32) ; f8[0] = t.size
            k = (4, 8) ; {declare}(k, float32) ; f8[0] = t.size
            k = 4 ; {declare}((k, 2), float32) ; f8[0] = t.size
            k = SIZE ; {declare}(k, float32) ; f8[0] = t.size
            k = 4 ; k = 5 ; {declare}(k, float32) ; f8[0] = t.size
            k = 4 if n else 8 ; {declare}(k, float32) ; f8[0] = t.size
            d = float32 ; {declare}(4, d) ; f8[0] = t.size
            t = cuda.{kind}.zeros(4, float32) ; f8[0] = t.size
            t = cuda.{kind}.array_like(f4) ; f8[0] = t.size
            a = cuda.{kind} ; t = a.array(4, float32) ; f8[0] = t.size
            a = cuda.{kind}.array ; t = a(4, float32) ; f8[0] = t.size
            """,
        )
    yield from _bodies(
        "declared",
        """
        t = tile_of(4) ; f8[0] = t.size
        t = tile_of(n) ; f8[0] = t.size
        t = cuda.shared.array(0, float32) ; f8[0] = t.size
        t = cuda.local.array(0, float32) ; f8[0] = t.size
        t = cuda.shared.array((0, 4), float32) ; f8[0] = t.size
        t = cuda.shared.array(4, float32) ; t = cuda.shared.array(8, float32) ; f8[0] = t.size
        for k in range(1, 3): ; > t = cuda.local.array(k, float32) ; > f8[0] = t.size
        k = 4 ; if n > 0: ; > k = 8 ; t = cuda.local.array(k, float32) ; out[i] = t.size
        d = np.float32 if n else np.float64 ; t = cuda.local.array(4, d) ; f8[0] = t.size
        f8[0] = through_an_array(1, 4)
        f8[0] = through_an_array(1, size=4)
        f8[0] = through_an_array(1, SIZE)
        f8[0] = through_an_array(1, SIZE * 2)
        f8[0] = through_an_array(1, n)
        f8[0] = through_an_array(1, f4.ndim)
        f8[0] = through_an_array(1, int32(4))
        f8[0] = through_an_array(1, SHAPE[0])
        f8[0] = through_an_array(1, len(SHAPE))
        f8[0] = through_an_array(1, len(pair))
        f8[0] = through_two(1, 4)
        f8[0] = through_two(1, n)
        k = 4 ; f8[0] = through_an_array(1, k)
        k = 4 ; k += 1 ; f8[0] = through_an_array(1, k)
        """,
    )


def warps() -> Iterator[Probe]:
    """Calls of a warp: types of masks, values and lanes."""
    scalars = [f"{name}[i]" for name in NUMBERS]
    others = ["True", "1", "1.5", "i", "i > 3", "None", "pair", "f4", '"x"']
    for name in ("all_sync", "any_sync", "eq_sync", "ballot_sync"):
        yield from _products("vote", f"out[i] = cuda.{name}(0xFFFFFFFF, {{value}})", value=scalars + others)
    for name in ("shfl_sync", "shfl_up_sync"):
        yield from _products(
            "shuffle", f"out[i] = cuda.{name}(0xFFFFFFFF, {{value}}, 1)", value=scalars + others
        )
    yield from _products(
        "shuffle", "out[i] = cuda.shfl_down_sync(0xFFFFFFFF, f4[i], {lane})", lane=scalars + others
    )
    yield from _products("match", "out[i] = cuda.match_any_sync(0xFFFFFFFF, {value})", value=scalars + others)
    yield from _products(
        "match", "a, b = cuda.match_all_sync(0xFFFFFFFF, {value})\nout[i] = a", value=scalars + others[:4]
    )
    masks = [
        "-1",
        "0xFFFFFFFFFFFFFFFF",
        "0",
        "1.0",
        "s_u4",
        "s_u8",
        "s_i1",
        "s_f4",
        "s_f8",
        "s_b1",
        "True",
        "None",
        "s_c8",
        "pair",
    ]
    yield from _products("mask", "out[i] = cuda.any_sync({mask}, 1)", mask=masks)
    yield from _products("mask", "out[i] = cuda.shfl_sync({mask}, i, 0)", mask=masks)
    yield from _products("mask", "cuda.syncwarp({mask})\nout[i] = 1", mask=masks)
    for name in ("syncthreads_count", "syncthreads_and", "syncthreads_or"):
        yield from _products("block vote", f"out[i] = cuda.{name}({{value}})", value=scalars + others)
    yield from _bodies(
        "calls",
        """
        cuda.syncthreads(1) ; out[i] = 1
        cuda.syncwarp() ; out[i] = 1
        cuda.syncwarp(mask=0xFFFFFFFF) ; out[i] = 1
        cuda.threadfence(1) ; out[i] = 1
        cuda.threadfence_block() ; out[i] = 1
        cuda.threadfence_system() ; out[i] = 1
        out[i] = cuda.syncthreads()
        a = cuda.syncthreads() ; out[i] = 1
        out[i] = cuda.all_sync(0xFFFFFFFF)
        out[i] = cuda.all_sync(mask=0xFFFFFFFF, predicate=1)
        out[i] = cuda.shfl_sync(mask=0xFFFFFFFF, value=i, src_lane=0)
        out[i] = cuda.shfl_down_sync(0xFFFFFFFF, i, delta=1)
        out[i] = cuda.shfl_xor_sync(0xFFFFFFFF, i, lane_mask=1)
        out[i] = cuda.shfl_sync(0xFFFFFFFF, i)
        out[i] = cuda.shfl_sync(0xFFFFFFFF, i, 1, 32)
        out[i] = cuda.activemask()
        out[i] = cuda.activemask(1)
        out[i] = cuda.lanemask_lt()
        out[i] = cuda.laneid
        out[i] = cuda.laneid()
        out[i] = cuda.warpsize
        out[i] = cuda.warpsize()
        out[i] = cuda.syncthreads_count()
        out[i] = cuda.syncthreads_count(predicate=1)
        out[i] = cuda.syncthreads_count(n)
        out[i] = cuda.ballot(i)
        out[i] = cuda.vote_sync_intrinsic(0xFFFFFFFF, 0, True)[0]
        out[i] = cuda.shfl_sync_intrinsic(0xFFFFFFFF, 0, i, 0, 31)[0]
        cuda.nanosleep(s_u4) ; out[i] = 1
        cuda.nanosleep(1.5) ; out[i] = 1
        cuda.nanosleep(f4[i]) ; out[i] = 1
        cuda.nanosleep(True) ; out[i] = 1
        cuda.nanosleep() ; out[i] = 1
        cuda.nanosleep(None) ; out[i] = 1
        g = cuda.cg.this_grid() ; g.sync() ; out[i] = 1
        g = cuda.cg.this_grid() ; g.sync(1) ; out[i] = 1
        g = cuda.cg.this_grid(1) ; g.sync() ; out[i] = 1
        g = cuda.cg.this_grid() ; out[i] = g.size
        cuda.cg.this_grid().sync() ; out[i] = 1
        breakpoint() ; out[i] = 1
        """,
    )


def atomics() -> Iterator[Probe]:
    """Atomics: dtypes of arrays, indices, values."""
    names = "add sub max min nanmax nanmin and_ or_ xor exch inc dec"
    kinds = "b1 i1 i2 i4 i8 u2 u4 u8 f2 f4 f8 c8".split()
    yield from _products("atomic", "cuda.atomic.{name}({array}, 0, 1)", name=names, array=kinds)
    yield from _products("cas", "cuda.atomic.cas({array}, 0, 1, 2)", array=kinds)
    yield from _products("compare_and_swap", "cuda.atomic.compare_and_swap({array}, 1, 2)", array=kinds)
    indices = "i (i,) s_u1 s_u8 s_f4 s_b1 True 1.0 None (0,0) (0,) -1 pair s_c8 f4 0:1".split()
    yield from _products("atomic index", "cuda.atomic.add(f4, {index}, 1)", index=indices[:-1])
    yield from _products(
        "atomic index",
        "cuda.atomic.add(m, {index}, 1)",
        index="0 (0,0) (0,) (0,0,0) pair (s_f4,0) (s_u1,s_i8) (True,0) s_i4 mixed".split(),
    )
    yield from _products(
        "cas index", "cuda.atomic.cas(mi, {index}, 1, 2)", index="0 (0,0) (0,) pair (s_f4,0)".split()
    )
    values = [*(f"s_{name}" for name in NUMBERS), "True", "1.5", "None", "pair", "f4", "1j", '"x"']
    yield from _products(
        "atomic value", "cuda.atomic.add({array}, 0, {value})", array="f4 i4 u8".split(), value=values
    )
    yield from _products("atomic value", "cuda.atomic.exch(i4, 0, {value})", value=values)
    yield from _products("atomic value", "cuda.atomic.cas(i4, 0, {value}, 1)", value=values)
    yield from _bodies(
        "atomic",
        """
        cuda.atomic.add(f4, 0)
        cuda.atomic.add(f4, 0, 1, 2)
        cuda.atomic.add(ary=f4, idx=0, val=1)
        cuda.atomic.add(f4[0], 0, 1)
        cuda.atomic.add(s_f4, 0, 1)
        cuda.atomic.add(f4[1:], 0, 1)
        cuda.atomic.add(m[1], 0, 1)
        cuda.atomic.add(m[:, 1], 0, 1)
        cuda.atomic.add(m.T, (0, 0), 1)
        cuda.atomic.add(pair, 0, 1)
        cuda.atomic.add(arrays[0], 0, 1)
        cuda.atomic.add(fixed, 0, 1)
        cuda.atomic.add(point, (), 1)
        cuda.atomic.add(point, 0, 1)
        cuda.atomic.add(TABLE, 0, 1)
        cuda.atomic.add(records, 0, 1)
        cuda.atomic.add(None, 0, 1)
        t = cuda.shared.array(4, float32) ; t[0] = 0 ; cuda.atomic.add(t, 0, 1)
        t = cuda.local.array(4, float32) ; t[0] = 0 ; cuda.atomic.add(t, 0, 1)
        out[i] = cuda.atomic.add(f4, 0, 1)
        out[i] = cuda.atomic.max(f4, 0, 1)
        cuda.atomic.compare_and_swap(mi, 1, 2)
        cuda.atomic.compare_and_swap(mi[0], 1, 2)
        cuda.atomic.compare_and_swap(i4[1:], 1, 2)
        cuda.atomic.compare_and_swap(i4, 0, 1, 2)
        cuda.atomic.mul(f4, 0, 1)
        cuda.atomic.cas(i4, 0, 1)
        a = cuda.atomic ; a.add(f4, 0, 1)
        a = cuda.atomic.add ; a(f4, 0, 1)
        """,
    )


def numbers() -> Iterator[Probe]:
    """Functions of numbers: cuda's own, math's, NumPy's, Python's, and casts."""
    single = [f"{name}[i]" for name in NUMBERS]
    odd = ["True", "1", "1.5", "None", "pair", "f4", '"x"', "1j"]
    yield from _products(
        "bits", "out[i] = cuda.{name}({value})", name="popc clz ffs brev cbrt", value=single + odd
    )
    yield from _products(
        "fma",
        "out[i] = cuda.fma({a}, {b}, 1)",
        a="f2[i] f4[i] f8[i] c8[i] b1[i] None".split(),
        b="f4[i] f8[i] u8[i] 1".split(),
    )
    yield from _products(
        "selp",
        "out[i] = cuda.selp({test}, {a}, {b})",
        test="b1[i] i4[i] True 1.5".split(),
        a="i4[i] f8[i] 1".split(),
        b="i4[i] f8[i] 2".split(),
    )
    names = "sqrt exp floor isnan fabs trunc log2 erf lgamma tanh ceil isfinite degrees cbrt"
    yield from _products(
        "math",
        "out[i] = math.{name}({value})",
        name=names,
        value=[*single[:1], *single[3:4], single[9], single[10], single[12], "None", "f4", "True"],
    )
    yield from _products(
        "math",
        "out[i] = math.{name}({a}, {b})",
        name="pow atan2 fmod copysign hypot ldexp nextafter gcd remainder dist",
        a="f4[i] i4[i] u8[i] b1[i] f2[i]".split(),
        b="f4[i] i8[i] b1[i] 2 2.5".split(),
    )
    yield from _products(
        "math",
        "out[i] = math.{call}",
        call="pi e inf nan tau sqrt() sqrt(1,2) log(2.5,2.0) log(4,2) factorial(3) prod(pair) fsum(pair) isclose(1.0,1.0) sumprod(pair,pair) comb(4,2) ulp(1.0) cbrt(8.0) exp2(3.0) frexp(2.0)[0] modf(2.5)[1] isqrt(9) lcm(2,3) perm(3) hypot(1.0,2.0,3.0) hypot(3.0)".split(),
    )
    yield from _products(
        "cmath",
        "c16[i] = cmath.{name}({value})",
        name="sqrt exp phase isnan log10",
        value="c8[i] c16[i] f4[i] f8[i] i4[i] b1[i] True".split(),
    )
    casts = "int float bool complex float32 np.float32 np.int8 np.uint64 np.bool_ types.int16 boolean np.complex64 np.float16 complex64 abs round str np.dtype".split()
    arguments = [
        *single[:1],
        *single[4:5],
        *single[8:10],
        single[12],
        "None",
        "pair",
        "f4",
        '"1"',
        '"x"',
        "cuda.threadIdx",
        "point",
        "one",
    ]
    yield from _products("cast", "out[i] = {cast}({value})", cast=casts, value=arguments)
    yield from _bodies(
        "cast",
        """
        c16[i] = complex(1, 2)
        c16[i] = complex(f4[i], i4[i])
        c16[i] = complex(real=1.0, imag=2.0)
        c16[i] = complex(c8[i], 1)
        c16[i] = complex("1j")
        c16[i] = complex()
        out[i] = int()
        out[i] = float()
        out[i] = bool()
        out[i] = int("12")
        out[i] = int(1.5, 2)
        out[i] = int("12", 3)
        out[i] = float("inf")
        out[i] = float("-nan")
        out[i] = float(TEXT)
        out[i] = float32()
        out[i] = float32(1, 2)
        out[i] = np.int32(value=1)
        out[i] = f4.dtype.type(1)
        out[i] = f4[i].dtype.type(1)
        out[i] = KIND.type(1)
        out[i] = DTYPE(1)
        out[i] = f4.dtype(1)
        k = float32 ; out[i] = k(1)
        out[i] = s_f4.astype(np.int32)
        out[i] = s_f4.view(np.int32)
        out[i] = s_i4.view(np.float32)
        out[i] = s_i4.view(np.float64)
        out[i] = f4[i].view(np.int32)
        out[i] = f4[i].item()
        out[i] = f8[i].is_integer()
        out[i] = s_f8.conjugate()
        out[i] = s_i4.bit_count()
        out[i] = i.bit_length()
        out[i] = i.bit_count()
        out[i] = f4[i].real
        out[i] = i.real
        out[i] = i.imag
        out[i] = i.numerator
        out[i] = i.denominator
        out[i] = s_b1.real
        out[i] = c8[i].conjugate().real
        out[i] = c8[i].real + c8[i].imag
        out[i] = f4[i].dtype
        out[i] = f4[i].ndim
        out[i] = f4[i].shape
        out[i] = f4[i].size
        out[i] = f4[i].T
        out[i] = f4[i].itemsize
        out[i] = i.dtype
        out[i] = 1.5.real
        out[i] = f4[i].sum()
        out[i] = s_f4[()]
        out[i] = s_f4[0]
        out[i] = i[0]
        """,
    )
    yield from _products(
        "python",
        "out[i] = {call}",
        call=[
            "abs(i)", "abs(c8[i])", "abs(b1[i])", "abs(f4)", "min(i, 2)", "min(i)", "min(f4)", "min(pair)", "min(mixed)", "min(i, 2.5)", "min(1, 2, 3)",
            "min(i, b1[i])", "min(b1[i], b1[i])", "max(True, False)", "max(1, True, 2)", "min(c8[i], c8[i])", "max(f4[i], u8[i])", "max()", "max(empty)", "max(i, 1, key=abs)", "max(i, default=1)", "max((i, 2))", "max(pair, pair)[0]",
            "sum(pair)", "sum(mixed)", "sum(f4)", "sum(empty)", "sum(pair, 1)", "sum((i, 2.5))", "sum(range(4))", "len(pair)", "len(f4)", "len(m)", "len(i)", 'len("abc")',
            "len(TEXT)", "len(range(4))", "len(point)", "len(spot)", "len(empty)", "len(TABLE)", "len(LIST)", "len(MAP)", "len(records)", "pow(i, 2)", "pow(2.5, 2)", "pow(i, 2, 3)",
            "pow(f4[i], i)", "pow(b1[i], 2)", "divmod(i, 3)[0]", "divmod(f4[i], 2)[1]", "divmod(c8[i], 2)[0]", "round(f4[i])", "round(f4[i], 2)", "round(i)", "round(c8[i])", "round(f4[i], None)",
            "round(f4[i], 1.5)", "round(f2[i])", "all(pair)", "any(pair)", "all(f4)", "any(f4 > 1)", "sorted(pair)[0]", "ord('a')", "chr(97) == 'a'", "hash(i)", "id(f4)",
            "isinstance(i, int)", "isinstance(f4[i], float)", "isinstance(i, (int, float))", "isinstance(pair, tuple)", "type(i) == int", "callable(i)", "hasattr(f4, 'shape')", "hasattr(i, 'shape')", "getattr(f4, 'size')", "getattr(f4, 'nope', 1)",
            "bin(i)", "hex(i)", "repr(i)", "str(i) == '1'", "tuple(pair)[0]", "tuple(f4)[0]", "list(pair)[0]", "set(pair)", "dict()", "slice(1, 2).start", "range(4)[2]", "range(4).stop", "range(i)[0]",
            "reversed(pair)[0]", "map(twice, pair)", "filter(None, pair)", "iter(pair)", "next(iter(pair))", "zip(pair, pair)", "enumerate(pair)", "sum(zip(pair, pair))", "input()", "open('x')", "vars()", "globals()", "eval('1')", "super()", "print(1)", "operator.add(i, 1)",
            "operator.truediv(i, 2)", "operator.getitem(f4, 0)", "operator.itemgetter(0)(pair)", "operator.neg(i)", "operator.abs(i)", "operator.index(i)", "operator.is_(nothing, None)", "operator.contains(pair, 1)", "operator.iadd(i, 1)", "operator.matmul(m, m)", "operator.concat(pair, pair)[0]", "operator.truth(i)", "operator.not_(i)", "operator.xor(i, 1)",
            "min(f2[i], f2[i])", "max(i8[i], u8[i])", "min(f4[i], None)", "min('a', 'b')", "abs(-i4[i])", "abs(u4[i])", "abs(True)",
        ],
    )  # fmt: skip


_ARRAYS = ("f4", "m", "fortran", "stepped", "TABLE")


def arrays() -> Iterator[Probe]:
    """Attributes and methods of arrays."""
    attributes = "ndim size shape strides dtype itemsize nbytes flags T flat real imag base data ctypes device alignment layout mT flags.c_contiguous flags.contiguous flags.f_contiguous flags.writeable flags.owndata dtype.itemsize dtype.kind dtype.name dtype.type dtype.char ctypes.data shape[0] shape.count strides[0] T.shape T.ndim flat[0] size.real __len__ nope".split()
    yield from _products(
        "attribute", "v = {array}.{name}\nout[i] = 1", array="f4 m TABLE".split(), name=attributes
    )
    yield from _products(
        "attribute",
        "v = {array}.{name}\nout[i] = 1",
        array="fortran stepped c8 cube point records b1".split(),
        name="T flat real imag nbytes strides dtype itemsize size".split(),
    )
    for kind in ("shared", "local"):
        for name in "ndim size shape strides dtype itemsize nbytes T flat real imag flags ctypes".split():
            yield Probe(
                f"attribute of {kind}: {name}",
                f"t = cuda.{kind}.array((4, 8), float32)\nv = t.{name}\nout[i] = 1",
            )
    methods = """ravel() ravel("C") ravel(order="F") flatten() reshape(4, 8) reshape((4, 8)) reshape(32) reshape(-1) reshape(-1, 8) reshape((8, -1)) reshape(4, 8, 1)
        reshape((4,8),order="C") reshape(shape=(4,8)) reshape(4.0, 8) reshape("x") reshape() reshape(pair) reshape(n, 32) reshape((n, 32)) reshape(SHAPE) reshape(f4.shape)
        transpose() transpose(0) transpose((0,)) transpose(1, 0) transpose((1, 0)) transpose(n, 0) transpose(None) transpose(0, 0) T.copy() swapaxes(0, 1) squeeze() diagonal()
        copy() astype(np.int32) astype("int32") astype(int32) astype(np.float32) view(np.int32) view(np.int8) view(np.float64) view("int32") view(int32) view(n) view() view(KIND) view(np.complex64) view(np.bool_) view(dtype=np.int32)
        sum() sum(0) sum(axis=0) mean() min() max() argmin() argmax() prod() cumsum() cumprod() any() all() std() var() ptp() dot(f4) sort() argsort() searchsorted(1.0) nonzero() take(0) repeat(2) clip(0, 1) round() fill(0) fill(value=1) item() item(0) itemset(0, 1)
        tolist() tobytes() tostring() conj() conjugate() byteswap() resize(4) put(0, 1) setfield() compress(b1) choose(f4) partition(2) trace() newbyteorder() __getitem__(0) __len__() nope() data() flat() shape() size() dtype() ndim()"""
    calls = re.findall(r"\S+\(.*?\)(?=\s|$)", methods)
    calls = [call for call in calls if call.count("(") == call.count(")")] + [
        "reshape((4, 8))",
        "reshape((8, -1))",
    ]
    yield from _products(
        "method", "v = {array}.{call}\nout[i] = 1", array="f4 m".split(), call=sorted({*calls})
    )
    views = [
        "ravel()",
        "reshape(32)",
        "reshape((4, 8))",
        "transpose()",
        "view(np.int32)",
        "view(np.int8)",
        "copy()",
        "item()",
        "view(np.float64)",
        "flatten()",
        "T",
        "flat",
        "conj()",
    ]
    others = "fortran stepped cut cube point one fixed TABLE MATRIX COLUMNS c8 records b1 m[1] m[:,1] m[1:3] m[1:,1:] f4[::2] f4[1:] f4[::-1] m.T cube[0] cube[...,0]".split()
    yield from _products("view", "v = {array}.{call}\nout[i] = 1", array=others, call=views[:6] + views[7:8])
    for kind in ("shared", "local"):
        for call in views:
            yield Probe(
                f"view of {kind}: {call}", f"t = cuda.{kind}.array((4, 8), float32)\nv = t.{call}\nout[i] = 1"
            )
    yield from _bodies(
        "views",
        """
        y = m.ravel() ; y[0] = 1
        y = f4.reshape(4, 8) ; y[0, 0] = 1
        y = f4.reshape((4, 8))[1] ; y[0] = 1
        y = f4.T ; y[0] = 1
        y = m.T ; y[0, 0] = 1
        y = m.transpose() ; y[0, 0] = 1
        y = f4.view(np.int32) ; y[0] = 1
        f4.view(np.int32)[0] = 1
        m.ravel()[0] = 1
        out[i] = m.ravel()[i]
        out[i] = m.reshape(32)[i]
        out[i] = m.reshape(-1)[i]
        m.flat[0] = 1
        out[i] = m.flat[i]
        for v in m.flat: ; > out[i] += v
        out[i] = m.T[1, 2]
        c8.real[i] = 1
        c8.imag[i] = 1
        c8[i].real = 1
        f4.real[i] = 1
        out[i] = f4.imag[i]
        f4.shape = (4, 8)
        f4.flags.writeable = True
        f4.dtype = np.int32
        f4.T = 1
        y = np.ravel(m) ; out[i] = y[0]
        y = np.reshape(f4, (4, 8)) ; out[i] = y[0, 0]
        y = np.reshape(m, 32) ; out[i] = y[0]
        y = np.transpose(m) ; out[i] = y[0, 0]
        y = same(m.T) ; out[i] = y[0, 0]
        y = same(m).ravel() ; out[i] = y[0]
        out[i] = first(m.ravel())
        out[i] = first(m.reshape(32))
        out[i] = first(m[0])
        y = m.ravel ; out[i] = 1
        y = f4.sum ; out[i] = 1
        y = m if n else m.T ; out[i] = y[0, 0]
        y = f4 if n else stepped ; out[i] = y[0]
        y = f4 ; y = stepped ; out[i] = y[0]
        """,
    )


def indexing() -> Iterator[Probe]:
    """Indices, slices and assignments to them."""
    indices = "0 -1 i s_u1 s_u8 s_f4 s_b1 True 1.0 1.5 None ... 1: :1 ::2 ::-1 1:n s_u1:4 1.0:2 s_f4: None:2 (0,) (0,0) 0,0 0,0,0 ...,0 0,... ...,... None,0 0,None :,0 0,: :,: pair mixed s_c8 i4 b1 f4 m (i4,) i4,0 (pair,0) 'a' [0] slice(1) slice(1,2) slice(None,2) np.newaxis i4[i] f4>0 0,True () empty np.int8(1) np.float32(1) cuda.threadIdx.x cuda.threadIdx Colour.RED :n:n ::s_u1".split()
    yield from _products(
        "index", "v = {array}[{index}]\nout[i] = 1", array="f4 m TABLE".split(), index=indices
    )
    yield from _products(
        "index",
        "v = {array}[{index}]\nout[i] = 1",
        array="cube point records stepped pair mixed".split(),
        index="0 i n -1 ... : 1: () 0,0 (0,0,0) None 'a' True 1.0 s_u8 :,0 i,0".split(),
    )
    yield from _products("store", "{array}[{index}] = {value}", array=["f4"], index=indices[:30], value=["1"])
    values = [f"s_{n}" for n in NUMBERS] + [
        "True",
        "None",
        "pair",
        "f4",
        "m",
        "1j",
        '"x"',
        "1.5",
        "records",
        "twice",
        "float32",
        "(1,)",
        "[1]",
        "point",
        "one",
        "cuda.threadIdx",
    ]
    yield from _products("store", "{array}[i] = {value}", array="f4 i4 u1 b1 c8".split(), value=values)
    yield from _products(
        "part",
        "{array}[{part}] = {value}",
        array="f4 m fixed".split(),
        part=": 0 1: ...".split(),
        value="1 s_f8 f4 m f8 i4 m[0] TABLE pair mixed 1j None True c8 (1,) point m8 m.T stepped".split(),
    )
    yield from _products(
        "augmented",
        "{target} {op}= {value}",
        target="f4[i] i4[i] f4[:] m[0] b1[i] n real pair c8[i]".split(),
        op="+ - * / // % ** & << @".split(),
        value=["2"],
    )


def parts() -> Iterator[Probe]:
    """Yield assignments to parts of arrays."""
    yield from _bodies(
        "parts",
        """
        f4[0:8] = m[0]
        f4[0:1] = one
        m[0] = f4[0:8]
        m[:, 0] = f4[0:4]
        t = cuda.local.array(4, float32) ; t[:] = f4[0:4] ; out[i] = t[0]
        t = cuda.shared.array(4, float32) ; t[:] = f4[0:4] ; out[i] = t[0]
        t = cuda.local.array(4, float32) ; t[:] = 0 ; f4[0:4] = t
        t = cuda.local.array(2, float32) ; t[:] = (1, 2) ; out[i] = t[0]
        f4[0:2] = pair
        m[0, 0:2] = pair
        m[0:2, 0] = (1.5, 2)
        m[0, ...] = 1
        f4[None] = 1
        f4[i] = f4[i:i+1]
        f4[i] = one
        f4[i] = point
        i4[i] /= 2
        i4[i] /= 2.0
        i4[i] /= n
        i4[i] = i4[i] / 2
        u1[i] /= i4[i]
        n /= 2 ; out[i] = n
        t = cuda.local.array(2, int32) ; t[0] = 4 ; t[0] /= 2 ; out[i] = t[0]
        """,
    )


def constants() -> Iterator[Probe]:
    """Arrays from outside, and constant memory."""
    yield from _bodies(
        "constant",
        """
        c = cuda.const.array_like(TABLE) ; out[i] = c[i]
        c = cuda.const.array_like(MATRIX) ; out[i] = c[0, 0]
        c = cuda.const.array_like(COLUMNS) ; out[i] = c[0, 0]
        c = cuda.const.array_like(BIG) ; out[i] = c[i]
        c = cuda.const.array_like(FULL) ; out[i] = c[i]
        c = cuda.const.array_like(f4) ; out[i] = c[i]
        c = cuda.const.array_like(m[0]) ; out[i] = c[0]
        c = cuda.const.array_like(SHAPE) ; out[i] = c[0]
        c = cuda.const.array_like(LIST) ; out[i] = c[0]
        c = cuda.const.array_like(1) ; out[i] = c
        c = cuda.const.array_like(arr=TABLE) ; out[i] = c[0]
        c = cuda.const.array_like(ndarray=TABLE) ; out[i] = c[0]
        c = cuda.const.array_like(TABLE[1:]) ; out[i] = c[0]
        c = cuda.const.array_like(TABLE) ; c[0] = 1
        c = cuda.const.array_like() ; out[i] = 1
        c = TABLE ; out[i] = c[i]
        out[i] = TABLE[i]
        out[i] = BIG[i]
        TABLE[0] = 1
        MATRIX[0, 0] = 1
        TABLE[:] = 1
        TABLE[0] += 1
        out[i] = MATRIX[1][2]
        out[i] = LIST[0]
        out[i] = len(LIST)
        out[i] = MAP[1]
        out[i] = NESTED[1][0]
        out[i] = NESTED[i][0]
        out[i] = SHAPE[i % 2]
        out[i] = TEXT == "float32"
        out[i] = 1 if TEXT == "float32" else 2
        out[i] = KIND.itemsize
        out[i] = DTYPE.itemsize
        out[i] = FLAG
        out[i] = THREADS.x
        t = THREADS ; out[i] = t.x
        t = cuda.threadIdx ; out[i] = t.x
        out[i] = cuda.threadIdx.w
        out[i] = cuda.threadIdx[0]
        a, b, c = cuda.threadIdx ; out[i] = a
        out[i] = len(cuda.threadIdx)
        cuda.threadIdx.x = 1
        t = cuda ; out[i] = t.threadIdx.x
        t = math ; out[i] = t.pi
        out[i] = first(cuda.threadIdx)
        out[i] = same(cuda.blockDim).x
        out[i] = cuda.blockDim.x + cuda.gridDim.y + cuda.blockIdx.z
        out[i] = Colour.RED
        out[i] = Colour.RED.value
        out[i] = Colour.RED + 1
        out[i] = Colour(1)
        out[i] = Shade.DARK
        out[i] = Shade.DARK.value
        out[i] = Shade.DARK == Shade.DARK
        out[i] = 1 if Shade.DARK is Shade.DARK else 0
        c = cuda.to_device(f4) ; out[i] = 1
        out[i] = cuda.is_available()
        out[i] = cuda.get_current_device().id
        cuda.synchronize()
        c = cuda.device_array(4)
        out[i] = cuda.nope
        out[i] = cuda.float32(1)
        out[i] = cuda.types.float32(1)
        out[i] = numba.cuda.threadIdx.x
        out[i] = numba.float32(1)
        out[i] = np.pi + np.e
        out[i] = np.inf
        out[i] = np.nope
        out[i] = math.nope
        out[i] = np.float32.nope
        out[i] = float32.bitwidth
        out[i] = np.newaxis is None
        out[i] = np.euler_gamma
        out[i] = __name__ == "x"
        out[i] = NOPE
        """,
    )


def numpy_functions() -> Iterator[Probe]:
    """NumPy's functions in kernels."""
    names = """sin cos exp log sqrt abs absolute fabs power add subtract multiply divide floor ceil maximum minimum fmin fmax
        sign square negative hypot arctan2 isnan isinf isfinite logical_and logical_not bitwise_and invert left_shift mod remainder fmod floor_divide rint trunc clip round around
        where sum mean min max amin amax prod dot any all argmin argmax std cumsum sort zeros ones empty full zeros_like empty_like ones_like array arange linspace asarray
        ravel reshape transpose copy concatenate stack append flip roll diff interp real imag angle conj conjugate cbrt expm1 log1p log2 log10 exp2 sinh tanh arcsin deg2rad
        matmul outer cross vdot linalg.norm random.rand unique searchsorted nonzero isclose allclose array_equal ndim shape size ndindex ndenumerate int32 float64 sinc heaviside gcd signbit copysign
        nan_to_num count_nonzero may_share_memory broadcast_to atleast_1d expand_dims squeeze diag eye trace bincount histogram median polyval iscomplex isreal isscalar dtype finfo iinfo issubdtype""".split()
    yield from _products("numpy", "v = np.{name}({value})\nout[i] = 1", name=names, value=["f8[i]", "f8"])
    yield from _products(
        "numpy",
        "v = np.{name}({value})\nout[i] = 1",
        name="sin exp sqrt abs isnan logical_not invert conj real angle log10 deg2rad".split(),
        value="i4[i] u1[i] b1[i] f2[i] f4[i] c8[i] None pair".split(),
    )
    two = "power add divide maximum fmin hypot arctan2 logical_and bitwise_and left_shift mod floor_divide fmod copysign dot where less equal".split()
    yield from _products(
        "numpy",
        "v = np.{name}({a}, {b})\nout[i] = 1",
        name=two,
        a="f8[i] i4[i] f8".split(),
        b="f4[i] 2 f8".split(),
    )
    yield from _products(
        "numpy",
        "v = np.{call}\nout[i] = 1",
        call="sin(f8,out) sin(f8[i],out) sin(f8[i],f8[i]) sin() sin(x=f8[i]) add(f8[i],1,out) add(f8,f8,out) where(b1[i],1,2) where(i>2,f4[i],i) where(b1,f4,f4) clip(f8[i],0,1) clip(i,0,1) round(f8[i],2) zeros(4) zeros((2,2),np.float32) full(4,1.0) array([1.0]) array((1,2)) arange(4) empty(4,np.int32) zeros(SIZE) zeros_like(f4) reshape(f4,(4,8)) reshape(f4,32) dot(f4,f4) dot(m,m) sum(m,axis=0) isnan(f8) real(c8[i]) imag(c8[i]) real(c8) conj(c8[i]) sinc(f8[i]) sign(f8[i]) finfo(np.float32).eps finfo(np.float32).max iinfo(np.int32).max dtype('float32') float32(1.5).view(np.int32) ndim(f4) shape(f4) size(m) size(m,0) transpose(m) copy(f4) asarray(f4) ascontiguousarray(m.T) nan==np.nan isscalar(i) sqrt(f8[i],dtype=np.float32) add.reduce(f8) random.random() linalg.inv(m) datetime64('2020-01-01') newaxis max(pair) min(f8) broadcast_to(f4,(2,32)) nditer(f4) ndindex(2,2) ndenumerate(f4) bool_(i) intp(i) longdouble(1) bitwise_not(i) array_equal(f4,f4) ravel(m)".split(),
    )


def values() -> Iterator[Probe]:
    """Tuples, text, None, loops, calls of functions."""
    yield from _bodies(
        "tuple",
        """
        a, b = pair ; out[i] = a + b
        a, b, c = pair ; out[i] = a
        a, = pair ; out[i] = a
        (a, b), c = nested ; out[i] = a + b + c
        [a, b] = pair ; out[i] = a
        a, *b = pair ; out[i] = a
        out[i] = pair[0]
        out[i] = pair[i % 2]
        out[i] = mixed[i % 2]
        out[i] = mixed[n]
        out[i] = nested[0][1]
        out[i] = nested[i % 2]
        out[i] = arrays[0][i]
        out[i] = arrays[i % 2][i]
        out[i] = arrays[n][i]
        for a in arrays: ; > out[i] = a[i]
        for a in pair: ; > out[i] = a
        for a in mixed: ; > out[i] = a
        for a in nested: ; > out[i] = 1
        for a in empty: ; > out[i] = a
        for a in (1, 2, 3): ; > out[i] += a
        for a in (1, 2.5): ; > out[i] += a
        for a in (f4, f8): ; > out[i] += a[i]
        for a in literal_unroll(mixed): ; > out[i] += a
        for a in numba.literal_unroll(mixed): ; > out[i] += a
        for a in ((1, 2), (3, 4)): ; > out[i] += a[0]
        for a, b in ((1, 2), (3, 4)): ; > out[i] += a * b
        t = pair + pair ; out[i] = t[3]
        t = pair + mixed ; out[i] = t[3]
        t = pair + (1,) ; out[i] = t[2]
        t = pair * 2 ; out[i] = t[0]
        t = pair + n ; out[i] = 1
        t = pair[1:] ; out[i] = t[0]
        t = mixed[1:] ; out[i] = t[0]
        t = pair[n:] ; out[i] = t[0]
        t = pair[::-1] ; out[i] = t[0]
        out[i] = pair[2]
        out[i] = pair[-1]
        out[i] = pair[-3]
        out[i] = pair == (1, 2)
        out[i] = pair < (1, 2)
        out[i] = pair == mixed
        out[i] = pair == 1
        out[i] = pair != (1, 2, 3)
        out[i] = 1 in pair
        out[i] = 1 in mixed
        out[i] = n not in pair
        out[i] = 1 in f4
        out[i] = pair is pair
        out[i] = pair.count(1)
        out[i] = pair.index(1)
        out[i] = spot.x + spot.y
        out[i] = spot[0]
        out[i] = spot.z
        a, b = spot ; out[i] = a
        spot.x = 1
        p = Point(1, 2) ; out[i] = p.x
        p = Point(x=1, y=2) ; out[i] = p.y
        p = Point(1) ; out[i] = p.x
        p = Point(1, 2.5) ; out[i] = p.y
        p = Point(1, 2)._replace(x=3) ; out[i] = p.x
        out[i] = spot._fields
        pair[0] = 1
        k = 0 ; out[i] = mixed[k]
        k = 0 ; k = 1 ; out[i] = mixed[k]
        for k in range(2): ; > out[i] += mixed[k]
        out[i] = mixed[SHAPE[0] - 4]
        out[i] = mixed[0 if n else 0]
        out[i] = mixed[FLAG]
        out[i] = mixed[1:][0]
        out[i] = mixed[-1]
        out[i] = mixed[1 - 1]
        t = (1, 2) if n else (3, 4) ; out[i] = t[0]
        t = (1, 2) if n else (3, 4.5) ; out[i] = t[0]
        t = (1, 2) if n else (3,) ; out[i] = t[0]
        t = (1, 2) ; t = (1, 2.5) ; out[i] = t[0]
        t = (i, f4[i]) ; out[i] = t[1]
        t = () ; out[i] = len(t)
        t = (f4, 1) ; out[i] = t[0][i] + t[1]
        t = (*pair, 1) ; out[i] = t[2]
        t = tuple(f4) ; out[i] = t[0]
        if pair: ; > out[i] = 1
        if empty: ; > out[i] = 1
        out[i] = not pair
        a = b = pair ; out[i] = a[0]
        a, b = b1[i], f4[i] ; out[i] = b
        a, b = f4 ; out[i] = a
        a, b = 1 ; out[i] = a
        a, b = m[0], m[1] ; out[i] = a[0]
        f4[0], f4[1] = f4[1], f4[0]
        out[i] = max(pair) + min(pair)
        t = ((1, 2), (3, 4)) ; out[i] = t[n][0]
        t = (1, (2, 3)) ; a, (b, c) = t ; out[i] = c
        out[i] = hash(pair)
        out[i] = -pair
        out[i] = abs(pair)
        """,
    )
    yield from _bodies(
        "text and None",
        """
        s = "abc" ; out[i] = len(s)
        s = "abc" ; out[i] = s == "abc"
        s = "abc" ; out[i] = s[0] == "a"
        s = "abc" + "d" ; out[i] = 1
        out[i] = "a" in "abc"
        out[i] = "a" < "b"
        if "abc": ; > out[i] = 1
        s = "%d" % i ; out[i] = 1
        s = "abc".upper() ; out[i] = 1
        s = str(1) ; out[i] = 1
        s = "a" if n else "b" ; out[i] = s == "a"
        print("text")
        print("text", i, f4[i])
        print(i, sep=",")
        print(end="")
        print()
        print(pair)
        print(mixed)
        print(f4)
        print(None)
        print(True)
        print(b1[i])
        print(c8[i])
        print(f2[i])
        print(TEXT)
        print(cuda.threadIdx)
        print(cuda.threadIdx.x)
        print("a" + "b")
        print("%d" % 1)
        print(f"{i}")
        print("a", "b", sep="")
        print(m[0])
        print(*pair)
        print(spot)
        print(1j)
        print(u1[i], i8[i], u8[i])
        print(empty)
        print(nested)
        print("")
        print(float32)
        print(twice)
        if nothing is None: ; > out[i] = 1
        if nothing: ; > out[i] = 1
        if nothing == None: ; > out[i] = 1
        if not nothing: ; > out[i] = 1
        out[i] = nothing is None
        out[i] = f4 is None
        out[i] = f4 is not None
        out[i] = i is None
        out[i] = None is None
        out[i] = None == None
        out[i] = i == None
        out[i] = f4 == None
        out[i] = nothing + 1
        out[i] = nothing[0]
        out[i] = nothing
        out[i] = nothing.shape
        out[i] = len(nothing)
        a = None ; out[i] = a is None
        a = None ; if n > 0: ; > a = 1 ; out[i] = a
        a = None ; if n > 0: ; > a = 1 ; if a is not None: ; > out[i] = a
        a = None ; if n > 0: ; > a = 1 ; out[i] = a + 1
        a = None ; if n > 0: ; > a = f4 ; out[i] = a[0]
        a = None ; if n > 0: ; > a = 1 ; out[i] = -a
        a = None ; if n > 0: ; > a = 1 ; out[i] = max(a, 2)
        a = None ; if n > 0: ; > a = 1 ; if a: ; > out[i] = 1
        a = None ; if n > 0: ; > a = 1 ; out[i] = f4[a]
        a = None ; if n > 0: ; > a = 1.5 ; out[i] = math.sqrt(a)
        a = None ; if n > 0: ; > a = 1.5 ; out[i] = int(a)
        a = None ; if n > 0: ; > a = pair ; out[i] = a[0]
        a = None ; a = 1 ; out[i] = a
        a = 1 if n else None ; out[i] = a
        a = None if n else None ; out[i] = a is None
        out[i] = (n or None)
        out[i] = n and 1.5
        out[i] = (f4 and 1)
        out[i] = not f4
        if f4: ; > out[i] = 1
        if one: ; > out[i] = 1
        if f4 > 0: ; > out[i] = 1
        while nothing: ; > out[i] = 1
        assert f4[i] > 0
        assert f4[i] > 0, "text"
        assert f4
        assert pair
        assert nothing is None
        assert f4[i] > 0, i
        """,
    )
    yield from _bodies(
        "loop",
        """
        for k in range(4): ; > out[i] += k
        for k in range(n): ; > out[i] += k
        for k in range(s_u8): ; > out[i] += k
        for k in range(s_u1, 4): ; > out[i] += k
        for k in range(s_f4): ; > out[i] += k
        for k in range(2.0): ; > out[i] += k
        for k in range(True): ; > out[i] += k
        for k in range(s_b1): ; > out[i] += k
        for k in range(None): ; > out[i] += k
        for k in range(1, 2, 3, 4): ; > out[i] += k
        for k in range(): ; > out[i] += k
        for k in range(0, 4, 0): ; > out[i] += k
        for k in range(stop=4): ; > out[i] += k
        for k in range(pair): ; > out[i] += k
        for k in range(*pair): ; > out[i] += k
        for k in range(4)[1:]: ; > out[i] += k
        for k in reversed(range(4)): ; > out[i] += k
        r = range(4) ; for k in r: ; > out[i] += k
        r = range(4) ; out[i] = r[1]
        r = range(4) ; out[i] = len(r)
        r = range(4) ; out[i] = 2 in r
        for k in f4: ; > out[i] += k
        for k in m: ; > out[i] += k[0]
        for k in point: ; > out[i] += k
        for k in i: ; > out[i] += k
        for k in "abc": ; > out[i] += 1
        for k in None: ; > out[i] += 1
        for k in TABLE: ; > out[i] += k
        for k in LIST: ; > out[i] += k
        for k in [1, 2]: ; > out[i] += k
        for k in records: ; > out[i] += k.a
        for k in f4[1:3]: ; > out[i] += k
        for k in f4.shape: ; > out[i] += k
        for k in cuda.threadIdx: ; > out[i] += k
        for k, v in enumerate(f4): ; > out[i] += k * v
        for k, v in enumerate(pair): ; > out[i] += k * v
        for k, v in enumerate(pair, 2): ; > out[i] += k * v
        for k, v in enumerate(f4, start=2): ; > out[i] += k * v
        for k, v in enumerate(f4, 1.5): ; > out[i] += k * v
        for k, v in enumerate(mixed): ; > out[i] += k
        for k, v in enumerate(range(3)): ; > out[i] += k
        for k, (a, b) in enumerate(zip(pair, pair)): ; > out[i] += k
        for a, b in zip(f4, f8): ; > out[i] += a * b
        for a, b in zip(pair, f4): ; > out[i] += a * b
        for a, b in zip(range(2), f4): ; > out[i] += a * b
        for a in zip(f4): ; > out[i] += a[0]
        for a in zip(): ; > out[i] += 1
        for a, b in zip(f4, f4, strict=True): ; > out[i] += a
        e = enumerate(f4) ; for k, v in e: ; > out[i] += v
        z = zip(f4, f4) ; for a, b in z: ; > out[i] += b
        for k in sorted(f4): ; > out[i] += k
        for k in map(twice, f4): ; > out[i] += k
        for k in np.ndindex(2, 2): ; > out[i] += k[0]
        for k in np.ndindex(m.shape): ; > out[i] += k[0]
        for k, v in np.ndenumerate(f4): ; > out[i] += v
        for k in np.nditer(f4): ; > out[i] += k
        for k in m.flat: ; > out[i] += k
        for k in np.arange(4): ; > out[i] += k
        for k in prange(4): ; > out[i] += k
        for k in numba.prange(4): ; > out[i] += k
        for k in iter(f4): ; > out[i] += k
        for k in (x for x in pair): ; > out[i] += k
        for f4[0] in range(4): ; > out[i] += 1
        for k in range(4): ; > continue ; else: ; > out[i] = 1
        for k in range(n, s_u4): ; > out[i] += k
        for k in range(s_i4, s_i8, s_u8): ; > out[i] += k
        for k in range(i4[0]): ; > out[i] += k
        for k in range(f4.size): ; > out[i] += k
        for k in range(len(pair)): ; > out[i] += pair[k]
        for k in range(int(f4[0])): ; > out[i] += k
        """,
    )
    yield from _bodies(
        "call",
        """
        out[i] = twice(i)
        out[i] = twice(x=i)
        out[i] = twice()
        out[i] = twice(1, 2)
        out[i] = twice(y=1)
        out[i] = twice(*pair)
        out[i] = twice(*(i,))
        out[i] = twice(None)
        out[i] = twice(f4)
        out[i] = twice("a")
        out[i] = twice(pair)
        out[i] = twice(pair)[3]
        out[i] = twice(c8[i]).real
        out[i] = twice(b1[i])
        out[i] = scaled(i)
        out[i] = scaled(i, 3)
        out[i] = scaled(i, factor=3)
        out[i] = scaled(factor=3, x=i)
        out[i] = scaled(factor=3)
        out[i] = scaled(i, 3, factor=3)
        out[i] = either(i)
        out[i] = either(i, 1)
        out[i] = either(i, None)
        out[i] = either(i, flag=1.5)
        out[i] = total(1, 2, 3)
        out[i] = total()
        out[i] = total(*pair)
        out[i] = total(*mixed)
        out[i] = total(1, *pair)
        out[i] = total(1, 2.5)
        out[i] = total(f4)
        out[i] = first(f4)
        out[i] = first(pair)
        out[i] = first(mixed)
        out[i] = first(arrays)[0]
        out[i] = first(i)
        out[i] = first(TABLE)
        out[i] = first(f4[1:])
        out[i] = same(i)
        out[i] = same(pair)[0]
        out[i] = same(f4)[0]
        out[i] = same(None)
        out[i] = same(twice)(1)
        out[i] = same("a") == "a"
        out[i] = same(float32)(1)
        a, b = both(i) ; out[i] = a + b
        out[i] = both(i)
        out[i] = both(i)[0]
        out[i] = nothing_of(i)
        a = nothing_of(i) ; out[i] = 1
        out[i] = nothing_of(i) is None
        out[i] = signed(f4[i])
        out[i] = signed(f8[i])
        out[i] = signed(i)
        out[i] = signed(b1[i])
        out[i] = signed(c8[i])
        out[i] = signed(f4)
        out[i] = signed(x=f4[i])
        out[i] = signed()
        out[i] = signed(None)
        out[i] = signed_dense(f4)
        out[i] = signed_dense(stepped)
        out[i] = signed_dense(f4[1:])
        out[i] = signed_dense(f4[::2])
        out[i] = tail(f4)[0]
        out[i] = again(f4)[0]
        out[i] = pick(f4, stepped, n)[0]
        out[i] = pick(f4, f4, n)[0]
        out[i] = pick_in_one(f4, f4, n)[0]
        out[i] = reset(f4)[0]
        a, b = in_a_tuple(f4) ; out[i] = a[0]
        out[i] = hands_on(f4)[0]
        out[i] = table()[0]
        out[i] = at(mixed, 0)
        out[i] = at(mixed, n)
        out[i] = at(pair, 0)
        out[i] = at(pair, n)
        out[i] = now_and_then(f4, n)[0]
        out[i] = reshaped(f4)[0, 0]
        out[i] = checked(i)
        def inner(x): ; > return x[1:] ; out[i] = inner(f4)[0]
        inner = lambda x: x[1:] ; out[i] = inner(f4)[0]
        out[i] = signed_first(f4)
        out[i] = signed_first(f8)
        out[i] = signed_first(stepped)
        out[i] = signed_first(m)
        out[i] = signed_first(fixed)
        out[i] = applied(twice, i)
        out[i] = applied(signed, f4[i])
        out[i] = applied(math.sqrt, f4[i])
        out[i] = applied(float32, i)
        out[i] = applied(plain, i)
        out[i] = applied(abs, i)
        out[i] = applied(np.sin, f8[i])
        out[i] = applied(i, i)
        out[i] = plain(i)
        out[i] = on_both(i)
        out[i] = another(f4)
        another(f4) ; out[i] = 1
        another[1, 1](f4)
        probe(out)
        a = twice ; out[i] = a(i)
        a = twice if n else scaled ; out[i] = a(i)
        a = lambda v: v + 1 ; out[i] = a(i)
        out[i] = (lambda v: v + 1)(i)
        out[i] = (lambda v, w=2: v + w)(i)
        out[i] = (twice)(i)
        out[i] = twice.py_func(i)
        out[i] = (twice, scaled)[0](i)
        def inner(v): ; > return v + n ; out[i] = inner(i)
        def inner(v, w=1): ; > return v + w ; out[i] = inner(i)
        def inner(v): ; > return v + n ; out[i] = applied(inner, i)
        out[i] = i()
        out[i] = f4(0)
        out[i] = 1()
        out[i] = pair()
        out[i] = math(1)
        return 1
        return None
        return
        return f4[0]
        return out
        yield i
        raise ValueError
        raise ValueError("a")
        raise ValueError(i)
        raise ValueError(SIZE)
        raise ValueError(TEXT)
        raise ValueError("a", 1)
        raise ValueError(-1)
        raise ValueError(f4[0])
        raise ValueError("a" + "b")
        raise ValueError("%d" % 1)
        assert f4[i] > 0, TEXT
        assert f4[i] > 0, ("a", 1)
        assert f4[i] > 0, f"{i}"
        raise nothing
        raise 1
        del i
        pass
        out[i] = (k := i)
        x: int = 1 ; out[i] = x
        x: float32 = 1 ; out[i] = x
        out[i] = [1, 2][0]
        out[i] = {1: 2}[1]
        out[i] = len({1, 2})
        out[i] = [k for k in range(3)][0]
        out[i] = 1 if f4 else 2
        out[i] = f4 + 1
        v = f4 + 1 ; out[i] = 1
        v = f4 + f4 ; out[i] = 1
        v = f4 > 1 ; out[i] = 1
        v = -f4 ; out[i] = 1
        v = f4 @ f4 ; out[i] = 1
        v = f4 == f4 ; out[i] = 1
        f4 += 1
        f4[:] += 1
        f4[:] = f4 + 1
        f4 = f4[1:] ; out[i] = f4[0]
        f4 = 1 ; out[i] = f4
        n = 1.5 ; out[i] = n
        n = f4 ; out[i] = n[0]
        n = pair ; out[i] = n[0]
        n = None ; out[i] = 1
        a = 1 ; a = f4 ; out[i] = a[0]
        if n: ; > a = 1 ; else: ; > a = f4 ; out[i] = 1
        if n: ; > a = 1 ; else: ; > a = 1.5 ; out[i] = a
        if n: ; > a = 1 ; else: ; > a = True ; out[i] = a
        if n: ; > a = 1 ; else: ; > a = 1j ; out[i] = a.real
        if n: ; > a = 1 ; else: ; > a = (1, 2) ; out[i] = 1
        if n: ; > a = f4 ; else: ; > a = f8 ; out[i] = a[0]
        if n: ; > a = f4 ; else: ; > a = m ; out[i] = 1
        if n: ; > a = "a" ; else: ; > a = 1 ; out[i] = 1
        if n: ; > a = twice ; else: ; > a = scaled ; out[i] = a(1)
        with n: ; > out[i] = 1
        try: ; > out[i] = 1 ; except: ; > out[i] = 2
        try: ; > out[i] = 1 ; finally: ; > out[i] = 2
        while True: ; > break
        while i < 3: ; > i += 1 ; else: ; > out[i] = 1
        global SIZE ; SIZE = 1
        import math ; out[i] = 1
        class A: ; > pass
        match n: ; > case 1: ; >> out[i] = 1 ; > case _: ; >> out[i] = 2
        out[i] = i if i > 1 else 1.5
        out[i] = f4[i] if i > 1 else f4
        out[i] = 1 < i < 3
        out[i] = i < 1j
        out[i] = c8[i] < 1
        out[i] = c8[i] == 1
        out[i] = i is i
        out[i] = i is 1
        out[i] = f4 is f4
        out[i] = f4 is f8
        out[i] = ~b1[i]
        out[i] = ~f4[i]
        out[i] = not i
        out[i] = -b1[i]
        out[i] = +b1[i]
        out[i] = f4[i] & 1
        out[i] = f4[i] << 1
        out[i] = b1[i] & True
        out[i] = b1[i] + b1[i]
        out[i] = i @ i
        out[i] = i ** -1
        out[i] = 2 ** i
        out[i] = f4[i] ** 2
        out[i] = c8[i] % 2
        out[i] = c8[i] // 2
        """,
    )


def arguments() -> Iterator[Probe]:
    """Types of the arguments of a launch, and how parameters are written."""
    base = np.ones(LENGTH, np.float32)
    rows = {
        "masked": np.ma.array([1.0, 2.0], mask=[0, 1]),
        "masked without a mask": np.ma.array([1.0, 2.0]),
        "matrix": np.asmatrix(np.ones((2, 2))),
        "big-endian": np.ones(4, ">f4"),
        "long double": np.ones(4, np.longdouble),
        "object": np.array([1, None]),
        "text array": np.array(["a"]),
        "bytes array": np.array([b"a"]),
        "text": "a",
        "bytes": b"a",
        "list": [1.0, 2.0],
        "list of arrays": [base],
        "dict": {1: 2},
        "set": {1},
        "range": range(4),
        "slice": slice(1, 2),
        "None": None,
        "bool": True,
        "np.bool": np.True_,
        "float16": np.float16(1),
        "int8": np.int8(1),
        "uint64": np.uint64(1),
        "big int": 2**63,
        "bigger int": 2**64,
        "negative big int": -(2**63) - 1,
        "complex": 1j,
        "complex64": np.complex64(1j),
        "long double number": np.longdouble(1),
        "datetime": np.datetime64("2020-01-01"),
        "timedelta": np.timedelta64(1, "s"),
        "datetime array": np.zeros(4, "M8[s]"),
        "timedelta array": np.zeros(4, "m8[s]"),
        "decimal": Decimal(1),
        "fraction": Fraction(1),
        "enum": Colour.RED,
        "other enum": Shade.DARK,
        "tuple": (1, 2.5),
        "empty tuple": (),
        "tuple of arrays": (base, base),
        "tuple with None": (1, None),
        "tuple with text": (1, "a"),
        "tuple with a list": (1, [2]),
        "nested tuple": ((1, 2), (base, 3)),
        "named tuple": Point(1, 2.0),
        "named tuple of arrays": Point(base, base),
        "zero dimensions": np.ones((), np.float32),
        "no elements": np.ones(0, np.float32),
        "no rows": np.ones((0, 4), np.float32),
        "broadcast": np.broadcast_to(np.float32(1), (4,)),
        "read-only": _read_only(np.ones(4, np.float32)),
        "unaligned": np.zeros(17, np.uint8)[1:].view(np.float32),
        "negative stride": base[::-1],
        "five dimensions": np.ones((1, 1, 1, 1, 2), np.float32),
        "function": len,
        "class": int,
        "dtype": np.dtype("float32"),
        "numpy type": np.float32,
        "module": np,
        "object of a class": object(),
        "memoryview": memoryview(b"abc"),
        "bytearray": bytearray(4),
        "ellipsis": ...,
        "structured": np.zeros(4, RECORD),
        "one record": np.zeros(4, RECORD)[0],
        "packed record": np.zeros(4, np.dtype([("a", "u1"), ("b", "f4")])),
        "record array": np.zeros(4, RECORD).view(np.recarray),
        "nested record": np.zeros(4, np.dtype([("a", RECORD)])),
        "record with an array": np.zeros(4, np.dtype([("a", "f4", 3)])),
        "empty record": np.zeros(4, np.dtype([])),
        "void": np.zeros(4, "V4"),
        "subclass": base.view(type("Own", (np.ndarray,), {})),
        "iterator": iter([1]),
        "generator": (x for x in [1]),
        "frozenset": frozenset({1}),
        "random": np.random.default_rng(1),
        "boolean array": np.ones(4, bool),
        "float16 array": np.ones(4, np.float16),
        "complex array": np.ones(4, np.complex64),
        "not implemented": NotImplemented,
    }
    for name, value in rows.items():
        yield Probe(f"argument: {name}", "out[0] = 1", {"out": np.zeros(LENGTH), "v": value})
    for written in (
        "out, n=1",
        "out, *n",
        "out, **n",
        "out, *, n",
        "out, /, n",
        "out, n=None",
        "out: float, n: int",
        "out, n=(1, 2)",
    ):
        yield Probe(f"parameters: {written}", "out[0] = 1", {"out": np.zeros(LENGTH), "n": 1}, written)


# ---- single expressions ----


def _parts(text: str) -> list[str]:
    """Return the expressions of a text, which stand in lines and between semicolons."""
    return [part.strip() for part in text.replace("\n", ";").split(";") if part.strip()]


def _of(module: str, text: str) -> list[str]:
    return [f"{module}.{part}" for part in _parts(text)]


ATTRIBUTES = (
    "T T.T base ctypes data dtype flags flat imag itemsize nbytes ndim real shape size strides".split()
)
METHODS = """
    all() any() argmax() astype(np.float32) clip(0,1) conj() conjugate() copy() cumsum() dot(m) fill(0)
    flatten()
    max() mean() min() nonzero() prod() ravel() repeat(2) reshape((2,2)) reshape(4) reshape(n) round() sort()
    squeeze() std() sum() swapaxes(0,1) take(0) tolist() transpose() view(np.int64) item()
""".split()
OF_ARRAYS = [f"m.{name}" for name in ATTRIBUTES + METHODS] + [
    f"x.{name}" for name in ("ravel()", "T", "sum()", "reshape(2,2)", "reshape((2,2))", "view(np.int64)")
]
OF_CUDA = _of(
    "cuda",
    """
    grid(1);grid(2);grid(3);grid(4);grid(n);grid(x.ndim);gridsize(1);gridsize(n);threadIdx.w;laneid;warpsize
    syncthreads_count(n);syncthreads_count(x[0]);syncthreads_count(n>0);syncthreads_and(n);syncthreads_and(x[0])
    syncthreads_or(n);syncthreads_or(x[0]);all_sync(0xffffffff,x[0]);all_sync(0xffffffff,n)
    any_sync(0xffffffff,n);any_sync(0xffffffff,x[0]);any_sync(0xffffffff,n>0);eq_sync(0xffffffff,x[0])
    eq_sync(0xffffffff,n);ballot_sync(0xffffffff,x[0]);ballot_sync(0xffffffff,n);ballot_sync(n,n>0)
    match_any_sync(0xffffffff,x[0]);match_all_sync(0xffffffff,x[0]);match_any_sync(0xffffffff,n)
    shfl_sync(0xffffffff,x[0],n);shfl_sync(0xffffffff,n,0);shfl_up_sync(0xffffffff,x[0],1)
    shfl_down_sync(0xffffffff,n,n);shfl_xor_sync(0xffffffff,np.float32(x[0]),1);shfl_sync(0xffffffff,True,0)
    popc(n);popc(x[0]);brev(n);clz(n);clz(x[0]);ffs(n);ffs(x[0]);fma(n,n,n);fma(x[0],x[0],x[0])
    fma(np.float32(x[0]),n,np.float32(1));cbrt(n);cbrt(x[0]);selp(n>0,n,n);selp(n,n,n);selp(n>0,n,x[0])
    nanosleep(n);nanosleep(8);syncwarp();syncwarp(n);activemask();lanemask_lt();threadfence();threadfence_block()
    atomic.add(x,0,n);atomic.add(x,n,1.0);atomic.add(x,x[0],1);atomic.sub(x,0,1);atomic.max(x,0,n)
    atomic.min(x,0,n);atomic.nanmax(x,0,1.0);atomic.and_(x,0,1);atomic.or_(x,0,1);atomic.inc(x,0,1)
    atomic.dec(x,0,1);atomic.exch(x,0,1.0);atomic.cas(x,0,0.0,1.0);atomic.cas(x,0,0,1);atomic.add(n,0,1)
    atomic.add(m,(0,1),1.0);atomic.add(m,0,1.0);atomic.add(m[0],1,1.0);local.array(n,float32)
    local.array(4,float32);local.array(4,'float32');local.array((2,3),np.float32);local.array(4,float)
    local.array(4,int);local.array(x.size,float32);shared.array(n,float32);shared.array(4,np.int8)
    shared.array(0,float32);shared.array((2,n),float32);float32x2(1,2);float32x2(1);float4(1,2,3,4)
    uchar2(1,2);short3(1,2,3);long2(1,2);ulonglong1(1);char4(1,2,3,4);ushort2(n,n);int2(x[0],1);cg.this_grid()
    """,
)
OF_PYTHON = _parts("""
    range(n);len(x);len(m);len((1,2));abs(n);abs(x[0]);round(x[0]);round(x[0],2);min(n,x[0]);max(n,1,2)
    sum((1,2));pow(n,2);divmod(n,3);int(x[0]);float(n);bool(n);complex(n);hash(n);id(n);hex(n);bin(n)
    dict();set();[i for i in range(3)];{1:2};lambda:n;sorted((2,1));reversed((1,2));any((0,1));all((0,1))
    open('f');input();globals();getattr(x,'size');x[0].is_integer();n.bit_length();n.real;x[0].imag
    x['a'];x[0,0];m[0][0];m[0,0,0];m[x[0]];x[n:];x[::2];m[:,0];m[...,0];x[None];x[n>0];m[(0,1)];x[-1]
    x==x;x+1;x+x;x*n;-x;x@x;not x;x and n;x is None;x is x;n in (1,2);n in x;n if n else x[0]
    print(n);print('a',n,x[0]);print(x);str(n)+'a';n<<2;x[0]<<2;x[0]//2;x[0]%2;n**2;x[0]**n;n/0;~n;~x[0]
""")
OF_NUMPY = _of(
    "np",
    """
    abs(n);maximum(n,x[0]);minimum(x[0],1);int32(n);float16(n);float64(n);uint8(n);bool_(n);sin(x[0]);sin(n)
    sin(x);pi;e;inf;isnan(x[0]);isinf(x[0]);sqrt(n);sqrt(x[0]);power(n,2);power(x[0],n);sign(x[0]);floor(x[0])
    ceil(x[0]);rint(x[0]);trunc(x[0]);exp(x[0]);log(x[0]);log2(x[0]);arctan2(x[0],n);hypot(x[0],x[0]);add(n,1)
    multiply(x[0],2);floor_divide(n,2);mod(n,2);bitwise_and(n,1);left_shift(n,1);logical_and(n,1);sort(x)
    unique(x);linalg.norm(x);random.rand();fft.fft(x);float128(n);int32(x);concatenate((x,x));full(3,1)
    """,
)
OF_MATH = _of(
    "math",
    """
    sin(n);sin(x[0]);pow(n,2);pow(x[0],n);fmod(n,2);gcd(n,2);factorial(n);comb(n,2);isqrt(n);hypot(n,n)
    hypot(n,n,n);fabs(n);floor(x[0]);ceil(n);trunc(x[0]);erf(n);erfc(x[0]);gamma(n);lgamma(x[0]);isnan(n)
    isinf(x[0]);isfinite(n);copysign(n,x[0]);ldexp(x[0],n);ldexp(x[0],x[0]);frexp(x[0]);modf(x[0]);log(x[0],2)
    log(n);log1p(n);log2(x[0]);log10(n);exp(n);expm1(x[0]);sqrt(n);radians(n);degrees(x[0]);atan2(n,x[0])
    prod((1,2));dist((1,),(2,));nextafter(x[0],1.0);remainder(x[0],2);pi;tau;inf;nan;sumprod((1,),(2,))
    """,
)


def expressions() -> Iterator[Probe]:
    """Yield single expressions of an array ``x``, one of two dimensions ``m``, and a number ``n``."""
    given = {"x": np.ones(4), "m": np.ones((2, 2)), "n": 1}
    for expression in (*OF_ARRAYS, *OF_CUDA, *OF_PYTHON, *OF_NUMPY, *OF_MATH):
        yield Probe(f"expression: {expression}", f"y = {expression}", given)


FAMILIES = (
    expressions,
    literals,
    warps,
    atomics,
    numbers,
    arrays,
    indexing,
    parts,
    constants,
    numpy_functions,
    values,
    arguments,
)


def probes(family) -> list[Probe]:
    """Return the probes of a family, each once."""
    return list({(p.name, p.body): p for p in family()}.values())
