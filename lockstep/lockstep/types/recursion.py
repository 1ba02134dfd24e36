"""Refuses a function that calls itself with other types than it was called with, as numba-cuda does.

numba-cuda compiles a function for the types of its arguments, and a literal is a type of its own. A function
that calls itself must call the version that is being compiled. So ``fact(5)`` fails if ``fact`` calls
``fact(n - 1)``: 5 is a literal and ``n - 1`` is not. :mod:`.inference` finds the types, and the translation
tells which arguments are literals.
"""

from typing import NamedTuple

from lockstep.errors import KernelTypeError, UnsupportedKernel


class OtherTypes(KernelTypeError):
    """An error for a function that calls itself with other types than it was called with."""


class Call(NamedTuple):
    """A call of a device function that calls itself, or of one through which such a function is called."""

    callee: object
    # `given` has a mark for each parameter: a Literal, a Passed, or one of the texts below.
    given: tuple
    file: str
    line: int


class Literal(NamedTuple):
    """The mark of an argument that is a literal."""

    kind: type
    value: object


class Passed(NamedTuple):
    """The mark of an argument that is a parameter of the caller."""

    position: int


class Outside(NamedTuple):
    """The mark of an argument that is a name from outside the caller, or an element of a tuple there."""

    name: str
    index: int | None = None

    def mark(self, environment):
        value = environment[self.name]
        if self.index is not None and type(value) is tuple and -len(value) <= self.index < len(value):
            value = value[self.index]
        return Literal(type(value), value) if type(value) in (bool, int) else UNKNOWN


UNKNOWN, LEFT_OUT, COMPUTED = "an argument", "its default", "a value that is no literal"


def refuse_other_types(function, outer, inner):
    """Raise OtherTypes if the kinds of two calls' arguments differ.

    ``outer``: the kinds in the call from outside. ``inner``: the kinds in the function's call of itself.
    """
    if outer == inner:
        return
    names = function.__code__.co_varnames
    name, *kinds = next((name, a, b) for name, a, b in zip(names, inner, outer) if a != b)
    inside, outside = (f"a value of type {kind}" if isinstance(kind, str) else "another" for kind in kinds)
    raise OtherTypes(
        f"{function.__name__} calls itself with {inside} as {name}, and was called with {outside}; "
        "numba-cuda compiles a function that calls itself for one combination of types: convert the "
        "argument in one of the calls"
    )


def refuse_other_literals(bound, given=None, known=None):
    """Raise UnsupportedKernel if a function calls itself with other literals than it was called with.

    ``bound``: a bound function. ``given``: the marks of its arguments. Those of a kernel are no literals.
    """
    given = given or (COMPUTED,) * len(bound.signature.parameters)
    known = set() if known is None else known
    if (id(bound), given) in known:
        return
    known.add((id(bound), given))
    for call in bound.calls:
        inner = tuple(given[mark.position] if isinstance(mark, Passed) else mark for mark in call.given)
        if call.callee is bound:
            _refuse_difference(call, given, inner)
        elif call.callee.casts is not None:  # A signature declares the types, and none is a literal.
            refuse_other_literals(call.callee, None, known)
        else:
            refuse_other_literals(call.callee, inner, known)


def _refuse_difference(call, given, inner):
    for name, *marks in zip(call.callee.signature.parameters, given, inner):
        if UNKNOWN not in marks and marks[0] != marks[1]:
            outside, inside = map(_shown, marks)
            raise UnsupportedKernel(
                f"{call.callee.typed.function.__name__} calls itself with {inside} as {name}, and was called "
                f"with {outside}; for Numba a literal is a type of its own, and numba-cuda compiles a "
                f"function that calls itself for one combination of types: {_cure(*marks)}",
                call.file,
                call.line,
            )


def _shown(mark) -> str:
    return f"the literal {mark.value!r}" if isinstance(mark, Literal) else mark


def _cure(*marks) -> str:
    number = next((mark.value for mark in marks if isinstance(mark, Literal) and mark.kind is int), None)
    if number is not None:
        return f"write np.int64({number}), which is no literal"
    return "give both calls the same kind of argument"
