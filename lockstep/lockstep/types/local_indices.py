"""Grades how well the compiler knows the indices of local arrays, which decides what stays in registers.

A register has no address. The compiler keeps a local array in registers if it knows, for each access, which
element is meant. Otherwise it puts the array in local memory. It knows more than constants: it unrolls loops,
`while` loops too, and then their counters are numbers. The grades here agree with what the compiler did with
a hundred kernels, for compute capability 8.0, 8.6 and 9.0 (numba-cuda 0.30.4).
They follow from the source alone, so they can be wrong where the compiler decides by the size of the code. On
a GPU, a kernel's ``get_local_mem_per_thread()`` tells what the compiler has done.
"""

import ast
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lockstep.reading.analysis import pairs
from lockstep.reading.trees import walk

from .versions import Version, Versions

# A number is KNOWN if it is a constant once loops are unrolled. It is COUNTED if a loop of unknown length
# counts it up or down.
UNKNOWN, COUNTED, KNOWN = range(3)
# The results of these operations on COUNTED numbers are COUNTED.
KEEP_COUNTING = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)
# If a `for` loop of unknown length adds to an array, 12 elements stay in registers, but not 16.
COUNTED_ELEMENTS = 12


@dataclass(frozen=True)
class Callees:
    """The functions that answer the analysis's questions about calls. Each takes an expression's AST node."""

    # `range_bounds` returns the bounds of `range(...)`, or None for anything else.
    range_bounds: Callable[[ast.expr], list | None]
    # `is_lanewise` tells whether the outcome of a call depends on the values of the arguments alone.
    is_lanewise: Callable[[ast.Call], bool]
    # `is_declaration` tells whether an expression declares a shared or local array.
    is_declaration: Callable[[ast.expr], bool]
    # `loops_over` tells whether an expression is `enumerate(...)` or `zip(...)`.
    loops_over: Callable[[ast.expr], bool]


class LocalIndices:
    """The grades of the indices in one function: UNKNOWN, COUNTED or KNOWN.

    constants: the names from outside and the parameters whose values the compiler knows. Raises NoVersions
    if a variable cannot be followed.
    """

    def __init__(self, definition: ast.FunctionDef, constants: set[str], callees: Callees):
        self.constants, self.callees = constants, callees
        self.versions = Versions(definition, lambda test: False)
        self.sources: dict[Version, tuple[str, Any]] = {}
        # `asked` holds the ids of the loops whose bounds are being examined.
        self.asked: set[int] = set()
        # `followed` holds the variables of which it is being examined whether a loop counts them.
        self.followed: set[Version] = set()
        self._find_sources(definition)
        self.grades = dict.fromkeys(self.versions.all, KNOWN)
        self._lower()

    def of(self, index: ast.expr) -> int:
        """Return the grade of an index, or of any other expression."""
        method = getattr(self, f"_of_{type(index).__name__}", None)
        return method(index) if method else UNKNOWN

    # ---- where values come from ----

    def _find_sources(self, definition):
        for node in walk(definition):
            if isinstance(node, ast.Assign):
                for target, value in pairs(node):
                    self._add(target, "value", value)
            elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
                self._add(node.target, "value", node.value)
            elif isinstance(node, ast.AugAssign):
                self._add(node.target, "changed", node)
            elif isinstance(node, ast.For):
                self._add(node.target, "iteration", node)

    def _add(self, target, kind, node):
        if isinstance(target, ast.Name):
            version = self.versions.stores.get(id(target))
            # An assignment that no path reaches has no version.
            if version is not None:
                self.sources[version] = kind, node
        elif isinstance(target, (ast.Tuple, ast.List)):
            for position, part in enumerate(target.elts):
                counts = kind == "iteration" and position == 0 and self._is_enumerate(node.iter)
                self._add(part, "count" if counts else "part" if kind == "value" else kind, node)

    def _is_enumerate(self, node) -> bool:
        return self.callees.loops_over(node) and ast.unparse(node.func) == "enumerate"

    def _lower(self):
        """Lower the grades, which all begin as KNOWN, until nothing changes: a greatest fixed point."""
        changed = True
        while changed:
            changed = False
            for version in self.versions.all:
                grade = min(self.grades[version], self._of_version(version))
                changed |= grade < self.grades[version]
                self.grades[version] = grade

    def _of_version(self, version) -> int:
        if version.sources is not None:
            return self._of_meeting(version)
        if version not in self.sources:
            return KNOWN if version.variable in self.constants else UNKNOWN
        kind, node = self.sources[version]
        if kind in ("value", "part"):
            return self.of(node)
        if kind == "changed":
            return min(self._of_Name(node.target), self.of(node.value))
        if kind == "count":
            return self._length(node.iter)
        return min(self._length(node.iter), self._of_element(node.iter))

    def _of_meeting(self, version) -> int:
        grade = min((self.grades.get(source, UNKNOWN) for source, _ in version.sources), default=UNKNOWN)
        if grade > UNKNOWN and self._wanders(version):
            return UNKNOWN
        nodes = [edge.node for _, edge in version.sources]
        endless = any(isinstance(node, ast.While) and not self._is_bounded(node) for node in nodes)
        sometimes = any(isinstance(node, ast.If) and self.of(node.test) < KNOWN for node in nodes)
        if endless or (sometimes and self._counts_on(version)):
            return min(grade, COUNTED)
        return grade

    def _wanders(self, version) -> bool:
        """Tell whether a loop of unknown length changes the variable by anything but a known step."""
        loop = version.sources[0][1].node if version.sources else None
        rolled = isinstance(loop, ast.For) and self._length(loop.iter) < KNOWN
        rolled = rolled or (isinstance(loop, ast.While) and not self._is_bounded(loop))
        back = [source for source, _ in version.sources[1:] if not self._steps(source, version)]
        return rolled and any(self._depends(source, version) for source in back)

    def _depends(self, version, on) -> bool:
        found, open_ = set(), [version]
        while open_:
            each = open_.pop()
            if each is on:
                return True
            if each not in found:
                found.add(each)
                open_ += [source for source, _ in each.sources or ()] + list(self._used_by(each))
        return False

    def _counts_on(self, version) -> bool:
        """Tell whether one of the values that meet is computed from another, as in ``if ...: i += 1``."""
        others = {source for source, _ in version.sources}
        return any(others & self._used_by(source) for source in others)

    def _used_by(self, version) -> set:
        kind, node = self.sources.get(version, ("", None))
        return self._used(node) if kind in ("value", "part", "changed") else set()

    def _used(self, node) -> set:
        loads = self.versions.loads
        return {loads[id(n)] for n in walk(node) if isinstance(n, ast.Name) and id(n) in loads}

    # ---- loops ----

    def _length(self, node) -> int:
        """Return the grade of how often a loop over ``node`` runs."""
        bounds = self.callees.range_bounds(node)
        if bounds is not None:
            return self._length_of_range(bounds)
        if self.callees.loops_over(node):
            own = node.args[:1] if self._is_enumerate(node) else node.args
            return min(map(self._length, own), default=UNKNOWN)
        if isinstance(node, ast.Tuple) or self._is_tuple(node):
            return KNOWN
        return UNKNOWN  # A loop over an array finds the elements by their addresses.

    def _length_of_range(self, bounds) -> int:
        start, stop, step = self._as_three(bounds)
        if self.of(step) < KNOWN:
            return UNKNOWN
        return COUNTED if any(self._difference(stop, start).values()) else KNOWN

    @staticmethod
    def _as_three(bounds):
        start = bounds[0] if len(bounds) > 1 else ast.Constant(0)
        step = bounds[2] if len(bounds) > 2 else ast.Constant(1)
        return start, bounds[min(1, len(bounds) - 1)], step

    def _is_tuple(self, node) -> bool:
        """Tell whether a node is a name for a tuple, such as ``load4`` returns, and not for an array."""
        if not isinstance(node, ast.Name):
            return False
        version = self.versions.loads.get(id(node))
        if version is None:
            return node.id in self.constants
        kind, value = self.sources.get(version, ("", None))
        return (
            kind == "value"
            and isinstance(value, (ast.Tuple, ast.Call))
            and not self.callees.is_declaration(value)
        )

    def _of_element(self, node) -> int:
        bounds = self.callees.range_bounds(node)
        if bounds is not None:
            return self.of(self._as_three(bounds)[0])
        if self.callees.loops_over(node):
            return min(map(self._of_element, node.args), default=UNKNOWN)
        return self.of(node)

    def _is_bounded(self, loop: ast.While) -> bool:
        """Tell whether the test, or a break, limits a loop to a known number of iterations."""
        if id(loop) in self.asked:
            # The bound depends on itself: assume that the loop is bounded, and let the other parts decide.
            return True
        self.asked.add(id(loop))
        try:
            return self._test_bounds(loop)
        finally:
            self.asked.remove(id(loop))

    def _test_bounds(self, loop) -> bool:
        test = loop.test
        # Only an exit can bound a loop such as `while True`.
        if isinstance(test, ast.Constant):
            return any(map(self._is_bounded_exit, loop.body))
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            return any(map(self._bounds, test.values))
        return self._bounds(test)

    def _is_bounded_exit(self, node) -> bool:
        """Tell whether a statement is an exit with known bounds, such as ``if i == R: break``."""
        breaks = isinstance(node, ast.If) and any(isinstance(n, ast.Break) for n in node.body)
        return breaks and self._bounds(node.test)

    def _bounds(self, test) -> bool:
        """Tell whether all sides of a test are known, or the difference of its two sides."""
        if not isinstance(test, ast.Compare):
            return False
        parts = test.left, *test.comparators
        if all(self.of(part) == KNOWN or self._is_capped(part) for part in parts):
            return True
        return len(parts) == 2 and not any(self._difference(*parts).values())

    def _is_capped(self, node) -> bool:
        """Tell whether an expression is ``min(R, ...)`` with a known R, or a variable that holds it."""
        if isinstance(node, ast.Name):
            kind, value = self.sources.get(self.versions.loads.get(id(node)), ("", None))
            return kind == "value" and not isinstance(value, ast.Name) and self._is_capped(value)
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "min"):
            return False
        return any(self.of(part) == KNOWN for part in node.args)

    # ---- expressions ----

    def _of_Constant(self, node):
        return KNOWN

    def _of_Name(self, node):
        version = self.versions.loads.get(id(node))
        if version is None:
            return KNOWN if node.id in self.constants else UNKNOWN
        return self.grades.get(version, UNKNOWN)

    def _of_BinOp(self, node):
        grades = {self.of(node.left), self.of(node.right)}
        if UNKNOWN not in grades:
            counts = isinstance(node.op, KEEP_COUNTING)
            return KNOWN if grades == {KNOWN} else COUNTED if counts else UNKNOWN
        if isinstance(node.op, (ast.Add, ast.Sub)) and not any(self._terms(node, 1).values()):
            # The unknown terms cancel out, as in `y - y0` in a loop over `range(y0, y0 + TM)`.
            return min(map(self._of_counting, self._used(node)), default=KNOWN)
        return UNKNOWN

    def _of_counting(self, version) -> int:
        """Return the grade of how far a loop has counted a variable, whatever value it begins with."""
        kind, node = self.sources.get(version, ("", None))
        if kind == "iteration":
            return self._length(node.iter)
        loops = [edge.node for _, edge in version.sources or () if isinstance(edge.node, ast.While)]
        return KNOWN if all(map(self._is_bounded, loops)) else COUNTED

    def _of_UnaryOp(self, node):
        return self.of(node.operand)

    def _of_Call(self, node):
        if self._is_length_of_array(node):
            return KNOWN
        known = self.callees.is_lanewise(node) and not node.keywords and self._all_known(node.args)
        return KNOWN if known else UNKNOWN

    def _of_Attribute(self, node):
        return KNOWN if node.attr in ("size", "shape") and self._is_declared(node.value) else UNKNOWN

    def _of_Subscript(self, node):  # Only an element of a tuple can be known.
        return self.of(node.value) if isinstance(node.slice, ast.Constant) else UNKNOWN

    def _of_Slice(self, node):
        parts = [part for part in (node.lower, node.upper, node.step) if part is not None]
        return min(map(self.of, parts), default=KNOWN)

    def _of_Tuple(self, node):
        return min(map(self.of, node.elts), default=KNOWN)

    def _of_IfExp(self, node):
        return min(self.of(node.body), self.of(node.orelse))  # The compiler copies the loop for both values.

    def _of_Compare(self, node):
        return KNOWN if self._all_known((node.left, *node.comparators)) else UNKNOWN

    def _of_BoolOp(self, node):
        return KNOWN if self._all_known(node.values) else UNKNOWN

    def _all_known(self, parts) -> bool:
        return all(self.of(part) == KNOWN for part in parts)

    def _is_length_of_array(self, node: ast.Call) -> bool:
        """Tell whether a call is ``len(acc)`` of a declared array."""
        return ast.unparse(node.func) == "len" and len(node.args) == 1 and self._is_declared(node.args[0])

    def _is_declared(self, node) -> bool:
        if not isinstance(node, ast.Name):
            return False
        version = self.versions.loads.get(id(node))
        if version in self.versions.parameters:
            return version.variable in self.constants  # Each call of a device function knows its array.
        kind, value = self.sources.get(version, ("", None))
        return kind == "value" and self.callees.is_declaration(value)

    # ---- sums ----

    def _terms(self, node, sign: int) -> Counter:
        """Count how often each unknown term is added, with a loop's counter as the value it begins with."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            terms = self._terms(node.left, sign)
            terms.update(self._terms(node.right, sign if isinstance(node.op, ast.Add) else -sign))
            return terms
        if self.of(node) == KNOWN:
            return Counter()
        if isinstance(node, ast.Name):
            return self._terms_of_variable(node, sign)
        return Counter({self._text_and_versions(node): sign})

    def _terms_of_variable(self, node, sign) -> Counter:
        version = self.versions.loads.get(id(node))
        while version is not None and self._begins_as(version) is not None:
            version = self._begins_as(version)
        kind, source = self.sources.get(version, ("", None))
        if kind == "value":
            return self._terms(source, sign)
        bounds = self.callees.range_bounds(source.iter) if kind == "iteration" else None
        if bounds is not None:
            return self._terms(self._as_three(bounds)[0], sign)
        return Counter({(node.id, version): sign})

    def _begins_as(self, version) -> Version | None:
        """Return the version from before the loop if a loop counts the variable up or down, else None."""
        first, *others = [source for source, _ in version.sources or ((None, None),)]
        if not others or version in self.followed:
            return None
        # A step may contain the variable itself, as in `x += y - x`, and such a variable is not counted.
        self.followed.add(version)
        steps = all(self._steps(other, version) for other in others)
        self.followed.discard(version)
        return first if steps else None

    def _steps(self, version, before) -> bool:
        """Tell whether ``version`` is ``before`` plus or minus a known number."""
        kind, node = self.sources.get(version, ("", None))
        parts = {"changed": ("target", "value"), "value": ("left", "right")}.get(kind)
        if parts is None or not isinstance(getattr(node, "op", None), (ast.Add, ast.Sub)):
            return False
        old, step = (getattr(node, part) for part in parts)
        return self.versions.loads.get(id(old)) is before and self.of(step) == KNOWN

    def _difference(self, one, other) -> Counter:
        terms = self._terms(one, 1)
        terms.update(self._terms(other, -1))
        return terms

    def _text_and_versions(self, node) -> tuple:
        """Return an expression's text and its variables' versions. Equal results mean equal values."""
        names = [n for n in walk(node) if isinstance(n, ast.Name)]
        loads = self.versions.loads
        numbers = (loads[id(n)].number if id(n) in loads else None for n in names)
        return ast.unparse(node), tuple(numbers)
