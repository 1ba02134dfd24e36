"""The shortcuts of the translator and of integer lanes give what the long way gives."""

import ast
import inspect

import numpy as np
import pytest

from lockstep.reading import trees
from lockstep.types import translation as translate
from lockstep.values import lanes
from lockstep.values.lanes import Lanes, Pattern

_LEFT_OUT = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)


def test_a_walk_finds_what_that_of_python_finds():
    tree = ast.parse(inspect.getsource(translate))
    expected = [node for node in ast.walk(tree) if not isinstance(node, _LEFT_OUT)]
    assert list(map(id, trees.walk(tree))) == list(map(id, expected))


def test_a_copy_is_equal_and_shares_nothing_that_can_change():
    tree = ast.parse(inspect.getsource(translate))
    copy = trees.copied(tree)
    assert ast.dump(copy, include_attributes=True) == ast.dump(tree, include_attributes=True)
    assert not set(map(id, trees.walk(copy))) & set(map(id, trees.walk(tree)))


def test_holes_are_filled_in_a_copy_of_the_text():
    at = ast.Pass(lineno=7, col_offset=4)
    for name in ("x", "y"):
        given = {"_NAME": name, "_SITE": 3, "_ARGUMENTS": [ast.Name("a", ast.Load()), ast.Constant(None)]}
        (new,) = trees.filled("_NAME = _M.call(_SITE, _ARGUMENTS)", at, given)
        assert ast.unparse(new) == f"{name} = _M.call(3, a, None)"
        assert new.lineno == new.value.func.lineno == 7


@pytest.mark.parametrize("shift", [0, 5, -5, 2**31, 2**62])
@pytest.mark.parametrize("largest", [9, 2**31, 2**32, 2**62])
def test_products_and_remainders_of_lanes_wrap_around_as_int64(largest, shift):
    random = np.random.default_rng(1)
    a, b = (random.integers(-largest, largest, (1, 1, 64)) for _ in range(2))
    b[b == 0] = 1
    x, y = Lanes(Pattern(a), shift), Lanes(Pattern(b))
    a = a + shift
    np.testing.assert_array_equal(lanes.multiply(x, y).values(), a * b)
    np.testing.assert_array_equal(lanes.multiply(x, x).values(), a * a)
    np.testing.assert_array_equal(lanes.modulo(x, y).values(), a % b)


def test_a_hole_without_a_place_gets_that_of_the_line():
    at, bare = ast.Pass(lineno=7, col_offset=4), ast.Constant(5)
    (new,) = trees.filled("_M.f(x=[_VALUE])", at, {"_VALUE": bare})
    assert bare.lineno == 7
    (again,) = trees.filled("_M.f(x=[_VALUE])", at, {"_VALUE": bare})
    assert ast.unparse(again) == ast.unparse(new) == "_M.f(x=[5])"
    assert again.value.keywords[0].value is not new.value.keywords[0].value
