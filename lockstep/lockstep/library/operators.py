"""Emulates the functions of Python's ``operator`` module, such as ``operator.mod(a, b)``."""

import operator

from lockstep.registry import emulates

_ARITHMETIC = {
    operator.add: "add",
    operator.sub: "sub",
    operator.mul: "mul",
    operator.truediv: "div",
    operator.floordiv: "floordiv",
    operator.mod: "mod",
    operator.pow: "pow",
    operator.neg: "neg",
    operator.invert: "invert",
    operator.iadd: "add",
    operator.isub: "sub",
    operator.imul: "mul",
    operator.itruediv: "div",
    operator.ifloordiv: "floordiv",
    operator.imod: "mod",
    operator.ipow: "pow",
}
_BITS = {
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.iand: "&",
    operator.ior: "|",
    operator.ixor: "^",
    operator.ilshift: "<<",
    operator.irshift: ">>",
}
_COMPARISONS = {
    operator.lt: "<",
    operator.le: "<=",
    operator.eq: "==",
    operator.ne: "!=",
    operator.gt: ">",
    operator.ge: ">=",
}


def _register():
    for function, name in _ARITHMETIC.items():
        emulates(function)(lambda machine, *x, name=name: getattr(machine, name)(machine.site, *x))
    for function, sign in _BITS.items():
        emulates(function)(lambda machine, a, b, sign=sign: machine.bits(machine.site, sign, a, b))
    for function, sign in _COMPARISONS.items():
        emulates(function)(lambda machine, a, b, sign=sign: machine.compare(sign, a, b))
    emulates(operator.pos)(lambda machine, a: machine.pos(a))
    emulates(operator.not_)(lambda machine, a: machine.not_(a))
    emulates(operator.is_)(lambda machine, a, b: machine.identical(a, b))
    emulates(operator.contains)(lambda machine, values, value: machine.contained(value, values))


_register()
