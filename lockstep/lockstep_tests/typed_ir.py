"""Runs a kernel as Numba has typed it: the reference for types and values that needs no GPU.

It walks Numba's own intermediate code with NumPy scalars, for one thread at a time. Each operation casts its
operands to the types of the signature that Numba chose, and each assignment casts to the variable's type.
"""

import math
import operator
from functools import cache

import numpy as np
from numba import cuda
from numba.cuda import types
from numba.cuda.core import ir

from lockstep_tests.numba_types import infer

HALF = 2**63
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
BUILTIN = {abs: np.abs, math.sqrt: np.sqrt, math.fabs: np.abs, math.floor: np.floor}


class Unclear(Exception):
    """The value is not defined, or not NumPy's.

    CUDA does not define an integer cast of too large a float, nor the smaller of two NaNs. Compiled code has
    another remainder than NumPy where the quotient has more digits than the float. NumPy itself may have two
    powers, one of numbers and one of arrays, which differ in the last digit.
    """


@cache
def inferred(function, *numpy_types):
    """The types that Numba infers in a device function that gets numbers of these types."""
    return infer(function, *(t(0) for t in numpy_types), returns=None)


def numpy_type(numba_type):
    """The NumPy scalar type of a number's type; None for anything else."""
    plain = types.unliteral(numba_type)
    if isinstance(plain, types.Boolean):
        return np.bool_
    return np.dtype(str(plain)).type if isinstance(plain, types.Number) else None


def cast(value, to):
    """A number as this NumPy type; a tuple and anything else as it is."""
    if to is None or isinstance(value, to):
        return value
    if issubclass(to, np.integer):
        if isinstance(value, (float, np.floating)):
            if not -HALF <= float(value) < HALF or not np.iinfo(to).min <= int(value) <= np.iinfo(to).max:
                raise Unclear
        bits = np.iinfo(to).bits
        number = int(value) % 2**bits
        return to(number - 2**bits if number > np.iinfo(to).max else number)
    return to(value)


def integer_operation(operation, a, b, to):
    """Compute an operation of two integers, whose result wraps around as its type does."""
    x, y = int(a), int(b)
    name = operation.__name__.strip("_").removeprefix("i") if operation is not operator.inv else "inv"
    if name in ("floordiv", "mod"):
        result = 0 if y == 0 else x // y if name == "floordiv" else x % y
    elif name in ("lshift", "rshift"):
        far = not 0 <= y < 64
        result = (-1 if x < 0 and name == "rshift" else 0) if far else x << y if name == "lshift" else x >> y
    elif name == "pow":
        result = pow(x, y, 2**64) if y >= 0 else (-HALF if x == 0 else x**-y if abs(x) == 1 else 0)
    else:
        result = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_,
                  "or": operator.or_, "xor": operator.xor}[name](x, y)  # fmt: skip
    return cast(result, to)


def binary(operation, signature, a, b):
    takes, gives = [numpy_type(t) for t in signature.args], numpy_type(signature.return_type)
    if issubclass(gives, np.integer):
        return integer_operation(operation, cast(a, gives), cast(b, gives), gives)
    a, b = cast(a, takes[0]), cast(b, takes[1])
    if operation in COMPARISONS:
        return np.bool_(operation(a.item(), b.item()))
    operation = _float_operation(operation)
    if operation is operator.mod and np.isfinite(a / b) and abs(a / b) * np.finfo(takes[0]).eps > 0.5:
        raise Unclear
    result = operation(a, b)
    if operation is operator.pow:
        in_array = np.power(np.full(4, a), np.full(4, b))[0]
        if result != in_array and result == result:
            raise Unclear
    return cast(result, gives)


def _float_operation(operation):
    in_place = {operator.iadd: operator.add, operator.isub: operator.sub, operator.imul: operator.mul}
    return in_place.get(operation, operation)


def numbers_of_range(to, bounds):
    """The numbers of ``range(...)``. Like Numba, it counts them with signed numbers of the same size."""
    start, stop, step = ((0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1))[:3]
    start, stop, step = (int(cast(bound, to)) for bound in (start, stop, step))
    signed = np.dtype(to).str.replace("u", "i")
    distance, step = (int(cast(number, np.dtype(signed).type)) for number in (stop - start, step))
    count = max(0, -(-distance // step))
    return [cast(start + step * position, to) for position in range(count)]


class Thread:
    """One thread of a kernel, or one call of a device function."""

    def __init__(self, arguments, like, index=0):
        self.arguments, self.index = arguments, index
        self.typemap, self.calltypes, self.code = like
        self.values, self.stored = {}, {}

    def run(self):
        """Return what the function returns. ``stored``: line -> (type, value) of the last store there."""
        label = min(self.code.blocks)
        while label is not None:
            for statement in self.code.blocks[label].body:
                if isinstance(statement, ir.Return):
                    return self.values[statement.value.name]
                label = self.execute(statement)
        return None

    def execute(self, statement):
        """Return the label of the next block after a jump."""
        if isinstance(statement, ir.Assign):
            name = statement.target.name
            try:
                self.values[name] = cast(self.value(statement.value), numpy_type(self.typemap[name]))
            except Unclear:
                self.values[name] = Unclear
        elif isinstance(statement, ir.SetItem):
            kind = numpy_type(self.typemap[statement.value.name])
            self.stored[statement.loc.line] = np.dtype(kind).name, self.values[statement.value.name]
        elif isinstance(statement, ir.Branch):
            taken = bool(self.known(statement.cond))
            return statement.truebr if taken else statement.falsebr
        elif isinstance(statement, ir.Jump):
            return statement.target
        return None

    def known(self, variable):
        value = self.values[variable.name]
        if value is Unclear:
            raise Unclear
        return value

    def value(self, node):
        if isinstance(node, ir.Var):
            return self.known(node)
        if isinstance(node, (ir.Const, ir.Global, ir.FreeVar)):
            return node.value
        if isinstance(node, ir.Arg):
            return self.arguments[node.index]
        return getattr(self, f"of_{node.op}")(node)

    def of_binop(self, node):
        operation = node.immutable_fn if node.op == "inplace_binop" else node.fn
        return binary(operation, self.calltypes[node], self.known(node.lhs), self.known(node.rhs))

    of_inplace_binop = of_binop

    def of_unary(self, node):
        signature, value = self.calltypes[node], self.known(node.value)
        gives = numpy_type(signature.return_type)
        if node.fn is operator.not_:
            return np.bool_(not value)
        if issubclass(gives, np.integer):
            given = numpy_type(signature.args[0])
            # Numba negates and inverts a number in its own type, and then widens the result.
            inner = gives if given is np.bool_ else given
            number = int(cast(value, inner))
            outcome = {operator.neg: -number, operator.pos: number, operator.invert: ~number}[node.fn]
            return cast(cast(outcome, inner), gives)
        return np.bool_(not value) if node.fn is operator.invert else gives(node.fn(cast(value, gives)))

    def of_cast(self, node):
        return self.known(node.value)

    def of_getattr(self, node):
        return getattr(self.known(node.value), node.attr)

    def of_getitem(self, node):
        return self.known(node.value)[self.known(node.index)]

    def of_static_getitem(self, node):
        index = self.known(node.index_var) if node.index is None else node.index
        return self.known(node.value)[index]

    def of_build_tuple(self, node):
        return tuple(self.known(item) for item in node.items)

    def of_exhaust_iter(self, node):
        return self.known(node.value)

    def of_getiter(self, node):
        return iter(self.known(node.value))

    def of_iternext(self, node):
        found = next(self.known(node.value), None)
        return found, found is not None

    def of_pair_first(self, node):
        return self.known(node.value)[0] or 0

    def of_pair_second(self, node):
        return self.known(node.value)[1]

    def of_call(self, node):
        function, given = self.known(node.func), [self.known(a) for a in node.args]
        signature = self.calltypes[node]
        if function is cuda.grid:
            return np.int64(self.index)
        if function is range:
            return numbers_of_range(numpy_type(signature.return_type.dtype), given)
        given = [cast(value, numpy_type(t)) for value, t in zip(given, signature.args, strict=True)]
        gives = numpy_type(signature.return_type)
        if hasattr(function, "py_func"):
            types_of = inferred(function.py_func, *(value.dtype.type for value in given))
            return cast(Thread(given, types_of).run(), gives)
        return cast(self.number(function, given, gives), gives)

    @staticmethod
    def number(function, given, gives):
        if function in (min, max):
            given = [cast(value, gives) for value in given]
            if any(np.isnan(value) for value in given):
                raise Unclear
            return function(given)
        if function is bool:
            return bool(given[0])
        if function is abs and issubclass(gives, np.integer):
            return abs(int(given[0]))
        if function in BUILTIN:
            return BUILTIN[function](given[0])
        return given[0]  # int, float and types are casts
