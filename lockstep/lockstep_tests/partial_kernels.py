"""Random kernels whose variables are set by some threads only, and what each thread does on its own.

A kernel is source text with variables ``a`` to ``e``; each may be read before it is set. Its reference runs
the same lines once per thread as plain Python, where a read of an unset variable is noted and gives the
emulator's garbage.
"""

import ast
import itertools
import linecache
import random
from collections import Counter

import numpy as np
from numba import cuda

from lockstep.machine.unset import garbage

THREADS, SLOTS, BLOCK = 24, 12, 8
NAMES = "abcde"
GARBAGE = garbage(np.int64)
_numbers = itertools.count()


class Writer:
    """Writes one kernel. ``wide``: some values are floats, and so a variable may have two types."""

    def __init__(self, seed, wide=False):
        self.random, self.wide = random.Random(seed), wide
        self.lines, self.depth, self.counters, self.slot, self.loops = [], 1, 0, 0, 0

    def put(self, text):
        self.lines.append("    " * self.depth + text)

    def name(self):
        return self.random.choice(NAMES)

    def value(self, depth=1):
        kind = self.random.randrange(9 if depth else 4)
        if kind < 3:
            return self.random.choice(("i", "n", "j", f"x[i % {self.random.randint(2, 9)}]"))
        if kind < 4:
            return str(self.random.randint(0, 9)) + (".5" if self.wide and self.random.random() < 0.4 else "")
        a, b = self.random.choice((self.name(), self.value(0))), self.value(0)
        if kind == 4:
            return f"({a} if {self.test(0)} else {b})"
        if kind == 5 and not self.inside:
            return f"helper({a}, {b}) % 89" if not self.wide else f"helper(int({a}), int({b})) % 89"
        return f"({a} + {b}) % {self.random.randint(7, 97)}" if kind < 8 else a

    inside = False

    def test(self, depth=1):
        kind = self.random.randrange(7 if depth else 4)
        if kind < 3:
            op = self.random.choice(("==", "<", "!="))
            return f"i % {self.random.randint(2, 5)} {op} {self.random.randint(0, 2)}"
        if kind == 3:
            return f"n > {self.random.randint(0, 5)}"
        if kind == 4:
            return f"{self.name()} % 3 == {self.random.randint(0, 2)}"
        return f"({self.test(0)} {self.random.choice(('and', 'or'))} {self.test(0)})"

    def block(self, most, in_loop=False):
        self.depth += 1
        for _ in range(self.random.randint(1, most)):
            self.statement(in_loop)
        self.depth -= 1

    def statement(self, in_loop=False):
        kind = self.random.randrange(20)
        if self.depth > 4:
            kind = min(kind, 8)
        if kind < 4:
            self.put(f"{self.name()} = {self.value()}")
        elif kind == 4:
            self.put(f"{self.name()} += {self.value(0)} % 5")
        elif kind == 5:
            a, b = self.random.sample(NAMES, 2)
            self.put(f"{a}, {b} = {self.value(0)}, {self.random.choice((self.name(), self.value(0)))}")
        elif kind < 9:
            self.store(self.random.choice((self.name(), self.value())))
        elif kind < 14:
            self.put(f"if {self.test()}:")
            self.block(3, in_loop)
            if self.random.random() < 0.4:
                self.put("else:")
                self.block(2, in_loop)
        elif kind < 18:
            self.loop()
        elif kind == 18 and in_loop:
            self.put(f"if {self.test()}:")
            self.put("    " + self.random.choice(("break", "continue")))
        elif kind == 19 and self.depth < 4:
            self.put(f"if {self.test(0)}:")
            self.put("    return" + (f" {self.value(0)}" if self.inside else ""))
        else:
            self.put("cuda.syncwarp()" if self.depth == 1 and not self.inside else "pass")

    def store(self, value):
        if self.inside:
            return self.put(f"{self.name()} = {value}")
        self.slot += 1
        self.put(f"out[i, {self.slot % SLOTS}] = {value}")

    def loop(self):
        kind = self.random.randrange(5)
        times = self.random.choice(
            ("2", "n % 4", "i % 3", "(i + n) % 4", f"x[i % 4] % {self.random.randint(2, 4)}")
        )
        if kind == 0:
            self.loops += 1
            counter = f"w{self.loops}"
            self.put(f"{counter} = 0")
            self.put(f"while {counter} < {times}:")
            self.put(f"    {counter} += 1")
            self.block(3, True)
        elif kind == 1 and not self.wide:
            self.put(f"for {self.name()} in range({times}):")  # later lines may read its variable
            self.block(3, True)
        elif kind == 2 and not self.inside and not self.wide and self.random.random() < 0.4:
            counter = self.name()
            self.put(f"{counter} = 0")
            self.put(f"while {counter} < 3:")  # later lines may read this one too
            self.put(f"    out[i, {counter}] = x[{counter}]")
            self.put(f"    {counter} += 1")
        elif kind == 2 and not self.inside:
            self.loops += 1
            self.put(f"for k{self.loops} in range(3):")  # the emulator may run its iterations at once
            self.put(f"    out[i, k{self.loops}] = x[k{self.loops}] + {self.name()} % 50")
        else:
            self.loops += 1
            self.put(f"for k{self.loops} in range({times}):")
            self.block(3, True)
            if self.random.random() < 0.25:
                self.put("else:")
                self.block(2)

    def function(self, head, most, before=(), last=()):
        self.put(head)
        self.depth += 1
        for line in before:
            self.put(line)
        # Numba wants every variable set further up than it is read. No launch has so large an n.
        self.put(f"if n > 90: {' = '.join(NAMES)} = 0")
        self.beginnings()
        for _ in range(self.random.randint(2, most)):
            self.statement()
        for line in last:
            self.put(line)
        self.put("return i" if self.inside else "pass")
        self.depth -= 1

    def beginnings(self):
        """Set some variables in all threads, others in some, and others in none."""
        for name in NAMES:
            chance = self.random.random()
            if chance < 0.5:
                self.put(f"{name} = {self.value(0)}")
            elif chance < 0.8:
                self.put(f"if {self.test(0)}: {name} = {self.value(0)}")


def source(seed, wide=False) -> str:
    """The text of a device function and a kernel that calls it, perhaps with a function inside."""
    w = Writer(seed, wide)
    w.depth, w.inside = 0, True
    w.put("@cuda.jit(device=True)")
    w.function("def helper(i, n):", 5, ("x = (4, 1, 7, 3, 2, 5, 0, 8, 6)", "j = 3"))
    w.put("@cuda.jit")
    w.inside = False
    w.function("def kernel(x, n, out):", 12, ("i = cuda.grid(1)", "j = i // 3"), (f"out[i, 0] = {w.name()}",))
    return "\n".join(w.lines) + "\n"


def kernel(text):
    """Compile a source, and return its kernel."""
    path = f"<partial kernel {next(_numbers)}>"
    linecache.cache[path] = len(text), None, text.splitlines(True), path
    space = {"cuda": cuda}
    exec(compile(text, path, "exec"), space)
    return space["kernel"]


class Alone:
    """Runs the threads one by one. ``unset`` counts the reads of unset variables, by line and variable."""

    def __init__(self, text):
        self.unset, self.thread, self.faulty = Counter(), 0, set()
        tree = ast.fix_missing_locations(_Careful().visit(ast.parse(text)))
        self.space = {"cuda": self, "_look": self.look}
        exec(compile(tree, "<alone>", "exec"), self.space)

    def jit(self, function=None, device=False):
        return function if function is not None else lambda function: function

    def grid(self, _):
        return self.thread

    def syncwarp(self):
        pass

    def look(self, read, name, line):
        try:
            return read()
        except NameError:
            self.unset[line, name] += 1
            self.faulty.add(self.thread)
            return GARBAGE

    def run(self, x, n):
        out = np.zeros((THREADS, SLOTS))
        for self.thread in range(THREADS):
            self.space["kernel"]([int(v) for v in x], n, out)
        return out


class _Careful(ast.NodeTransformer):
    """Sends every read of a variable that may be unset through ``_look``."""

    def _look(self, node):
        at = f"_look(lambda: {node.id}, {node.id!r}, {node.lineno})"
        return ast.copy_location(ast.parse(at, mode="eval").body, node)

    def visit_Name(self, node):
        suspect = node.id in NAMES and isinstance(node.ctx, ast.Load)
        return self._look(node) if suspect else node

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        if not (isinstance(node.target, ast.Name) and node.target.id in NAMES):
            return node
        value = ast.BinOp(self._look(node.target), node.op, node.value)
        return ast.copy_location(ast.Assign([node.target], value), node)
