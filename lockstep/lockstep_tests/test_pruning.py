"""Branches that Numba leaves out when it compiles: the emulator looks at nothing in them, like Numba."""

import math
from types import FunctionType

import numpy as np
import pytest
from numba import config, cuda

from lockstep import UnsupportedKernel, emulate
from lockstep_tests.corpus import zeros

UNTYPED = object()  # what no kernel can use
OFF, ON, NOTHING, NAME, FIVE, ZERO, SMALL = False, True, None, "x", 5, 0.0, np.int32(0)


@cuda.jit(device=True)
def negated(x):
    return -x


def left_out():
    """Kernels that store 1 to out[0], and something that no kernel can use in a branch without a chance."""
    if OFF:
        unset = 1
    off, nothing, axis, size, sign = False, None, "x", 5, negated

    def a_global(out):
        out[0] = 1
        if OFF:
            out[0] = UNTYPED

    def a_variable_of_the_function_around(out):
        out[0] = 1
        if off:
            out[0] = UNTYPED

    def a_variable_without_a_value(out):
        out[0] = 1
        if off:
            out[0] = unset

    def not_true(out):
        out[0] = 1
        if not ON:
            out[0] = UNTYPED

    def is_not_none(out):
        out[0] = 1
        if nothing is not None:
            nothing(out)

    def unlike_none(out):
        out[0] = 1
        if nothing != None:  # noqa: E711 - as people write it
            nothing(out)

    def strings(out):
        if axis == "y":
            out[0] = UNTYPED
        elif axis == "x":
            out[0] = 1
        else:
            out[0] = UNTYPED

    def a_string(out):
        if NAME:
            out[0] = 1
        else:
            out[0] = UNTYPED

    def in_a_string(out):
        if axis in NAME:
            out[0] = 1
        else:
            out[0] = UNTYPED

    def a_float_and_an_integer_of_32_bits(out):
        out[0] = 1
        if ZERO:
            out[0] = UNTYPED
        if SMALL:
            out[0] = UNTYPED

    def numbers(out):
        out[0] = 1
        if size < 3 or size == -1 or not size == 5:
            out[0] = UNTYPED

    def a_remainder(out):
        out[0] = 1
        if size % 5:
            out[0] = UNTYPED

    def a_chain(out):
        out[0] = 1
        if 0 < size < 3:
            out[0] = UNTYPED

    def none_and_a_string(out):
        out[0] = 1
        if axis is None or NAME == 3:
            out[0] = UNTYPED

    def a_function(out):
        out[0] = UNTYPED if sign is None else -sign(1)

    def two_of_them(out):
        out[0] = 1
        if OFF and out[0] > 0:
            out[0] = UNTYPED
        if out[0] > 0 and axis == "y":
            out[0] = UNTYPED

    def either_of_them(out):
        if ON or out[0] > 0:
            out[0] = 1
        else:
            out[0] = UNTYPED
        if out[0] < 0 or axis == "x":
            out[0] = 1
        else:
            out[0] = UNTYPED

    def nested(out):
        out[0] = 1
        if out[0] > 0 and not (ON or out[0] < 0):
            out[0] = UNTYPED

    def a_conditional_expression(out):
        out[0] = UNTYPED if OFF else 1

    def an_operand(out):
        out[0] = 1 + (OFF and UNTYPED)

    def a_while_loop(out):
        out[0] = 1
        while OFF:
            out[0] = UNTYPED

    def after_a_return(out):
        out[0] = 1
        if ON:
            return
        out[0] = UNTYPED

    def after_a_continue(out):
        for i in range(2):
            out[0] = 1
            if ON:
                continue
            out[i] = UNTYPED

    def a_literal(out):
        out[0] = 1
        if 0:
            out[0] = UNTYPED
        if None is None and not "":
            out[0] += 0
        else:
            out[0] = UNTYPED

    def a_function_inside(out):
        def chosen(x):
            if OFF:
                return UNTYPED
            return x

        out[0] = chosen(1)

    def a_function_inside_that_is_left_out(out):
        out[0] = 1
        if OFF:

            def other(x):
                return UNTYPED

            out[0] = other(1)

    def a_variable_of_a_branch(out):
        out[0] = 1
        if off:
            more = UNTYPED
        for i in range(1):
            if off and more > 0:
                out[i] = more

    return list(locals().values())


def compiled():
    """Kernels of which Numba compiles both branches, though one of them has no chance."""
    size, axis = 5, "x"

    def an_attribute(out):
        if config.ENABLE_CUDASIM:
            out[0] = UNTYPED

    def a_computed_number(out):
        if size % 5 == 1:
            out[0] = UNTYPED

    def a_negative_number(out):
        if -size == 5:
            out[0] = UNTYPED

    def a_comparison_of_a_comparison(out):
        if (size == 4) == ON:
            out[0] = UNTYPED

    def not_in_a_string(out):
        if axis not in NAME:
            out[0] = UNTYPED

    def not_in_a_string_either(out):
        if not axis in NAME:  # noqa: E713
            out[0] = UNTYPED

    def in_a_tuple(out):
        if axis in ("y", "z"):
            out[0] = UNTYPED

    def less_than_a_number(out):
        if axis < 3:
            out[0] = 1

    def a_module(out):
        if math:
            out[0] = 1

    def a_call(out):
        if bool(OFF):
            out[0] = UNTYPED

    def a_variable(out):
        for i in range(3):
            OFF = i > 5
            if OFF:
                out[0] = UNTYPED

    def a_parameter(out, ON=True):
        if not ON:
            out[0] = UNTYPED

    def a_variable_that_is_set_nowhere_else(out):
        if OFF:
            term = 1
        for i in range(3):
            if out[i] > 1:
                out[i] = term

    return list(locals().values())


def kernels(made):
    return pytest.mark.parametrize(
        "function", [f for f in made if isinstance(f, FunctionType)], ids=lambda function: function.__name__
    )


@kernels(left_out())
def test_what_is_left_out_is_not_looked_at(function):
    emulate(cuda.jit(function), 1, 1, out := zeros(4))
    assert out.tolist() == [1, 0, 0, 0]


@kernels(left_out())
def test_with_counts_as_compiled(function):
    emulate(cuda.jit(function), 1, 1, out := zeros(4), as_compiled=True)
    assert out[0] == 1


@kernels(left_out())
def test_numba_leaves_it_out(function):
    numba_types = pytest.importorskip("lockstep_tests.numba_types", exc_type=ImportError)
    numba_types.infer(function, zeros(4))


@kernels(compiled())
def test_what_is_compiled_is_looked_at(function):
    with pytest.raises(UnsupportedKernel):
        emulate(cuda.jit(function), 1, 1, zeros(4))


@kernels(compiled())
def test_numba_compiles_it(function):
    numba_types = pytest.importorskip("lockstep_tests.numba_types", exc_type=ImportError)
    with pytest.raises(Exception, match=r"Untyped|cannot be determined|No implementation|Invalid use"):
        numba_types.infer(function, zeros(4), *[True] * (function.__code__.co_argcount - 1))


def test_the_same_code_with_other_values():
    def make(axis, extra):
        @cuda.jit(device=True)
        def chosen(x):
            return x + extra if extra is not None else x

        @cuda.jit
        def kernel(out):
            if axis == "x":
                out[0] = chosen(1)
            else:
                out[1] = chosen(1)

        return kernel

    results = []
    for values in (("x", None), ("y", None), ("x", 5), ("y", 5), ("x", None)):
        emulate(make(*values), 1, 1, out := zeros(2))
        results.append(out.tolist())
    assert results == [[1, 0], [0, 1], [6, 0], [0, 6], [1, 0]]


def test_a_constant_that_changes_after_the_kernel_was_compiled(monkeypatch):
    @cuda.jit
    def kernel(out):
        if OFF:
            out[0] += 10
        else:
            out[0] += 1

    emulate(kernel, 1, 1, out := zeros(1))
    monkeypatch.setitem(globals(), "OFF", True)
    emulate(kernel, 1, 1, out)
    assert out[0] == 2  # as it was compiled
    emulate(kernel, 1, 1, other := np.zeros(1))
    assert other[0] == 10  # compiled anew, for float64


def test_findings_keep_their_lines_and_comments():
    @cuda.jit
    def kernel(out):
        if OFF:
            out[1] = UNTYPED
        else:
            out[0] = cuda.grid(1)  # emulator: allow global_race

    report = emulate(kernel, 1, 64, zeros(2))
    assert report.ok and [finding.kind for finding in report.silenced] == ["global_race"]
    line = kernel.py_func.__code__.co_firstlineno + 5
    assert set(report.accesses["line"]) == {line}


def test_what_is_left_out_is_not_counted():
    @cuda.jit
    def kernel(x, out):
        if x[0] > 0 and OFF:
            out[0] = x[1]

    accesses = emulate(kernel, 1, 1, zeros(2), zeros(2)).accesses
    assert set(accesses["array"]) == {"x"} and len(accesses) == 1


def test_a_variable_that_only_a_branch_left_out_sets():
    @cuda.jit
    def kernel(out):
        if OFF:
            _term = 1
        out[0] = _term

    with pytest.raises(UnsupportedKernel, match="_term is set only in a branch that Numba leaves out"):
        emulate(kernel, 1, 1, zeros(1))


def test_a_branch_on_an_attribute_has_a_say_in_the_types():
    """Numba compiles the branch that is never taken, so that `v` is float64 there and here."""

    @cuda.jit
    def scaled(x, out):
        v = x[0]
        if config.ENABLE_CUDASIM:
            v = 1.0
        out[0] = v * x[0]

    x, out = np.array([1 + 2**-12], np.float32), np.zeros(1)
    emulate(scaled, 1, 1, x, out)
    assert out[0] == np.float64(x[0]) ** 2 != x[0] * x[0]
