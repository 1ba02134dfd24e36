"""What a checker can ask of a learner's source, and how it is told."""

import ast
import re
from pathlib import Path

import pytest
from numba import cuda, float32

from gemm_course import checks
from gemm_course.checks.core import Element, Part, Written
from gemm_course.checks.core import written as written_module


@cuda.jit(device=True)
def fetch(m, k, A, row0, k0, As, tid):
    row, column = tid // 4, tid % 4 * 4
    here = row0 + row
    below = here + 1
    for step in range(k0, k, 4):
        at = step + column
        if here < m and (0 <= at < k):
            As[at, row] = A[below, at] if at != k0 else float32(0)
        else:
            As[at, row] = 0.5
            continue
    while tid > 0:
        As[0, :] += 1
        cuda.syncthreads()
    return


@pytest.fixture(scope="module")
def written():
    return Written(fetch)


def texts(parts):
    return [part.text for part in parts]


def test_parameters_are_the_learners_names(written):
    assert written.parameters == ("m", "k", "A", "row0", "k0", "As", "tid")


def test_a_decorator_is_no_call(written):
    assert [call.name for call in written.calls()] == ["range", "float32", "cuda.syncthreads"]


@pytest.mark.parametrize("name", ("cuda.syncthreads", "syncthreads"))
def test_a_call_is_found_by_the_end_of_its_name(written, name):
    assert texts(written.calls(name)) == ["cuda.syncthreads()"]
    assert not written.calls("threads")


def test_arguments_by_place_and_by_keyword():
    @cuda.jit
    def kernel(out):
        tile = cuda.shared.array(shape=8, dtype=float32)
        tile[0] = out[0]

    (declared,) = Written(kernel).calls("shared.array")
    assert declared.argument(0, "shape").number == 8
    assert declared.argument(1, "dtype").text == "float32"
    assert declared.argument(2, "alignment") is None
    assert declared.at(0) == ""


def test_stores_and_loads_with_their_indices(written):
    assert texts(written.loads()) == ["A[below, at]"]
    assert texts(written.stores("As")) == ["As[at, row]", "As[at, row]", "As[0, :]"]
    assert texts(written.stores("As")[0].index.items) == ["at", "row"]
    assert [store.is_slice for store in written.stores()] == [False, False, True]
    assert not written.elements("Bs")


def test_loops_and_what_stands_in_them(written):
    counted, open_ended = written.loops
    assert (counted.variable, counted.over.text) == ("step", "range(k0, k, 4)")
    assert (open_ended.variable, open_ended.over.text) == ("", "tid > 0")
    assert texts(open_ended.updated) == ["As[0, :]"]
    assert not counted.calls("syncthreads")
    assert counted.names_set == {"step", "at"}


def test_what_stands_around_a_part(written):
    (choice,) = written.choices
    (branch,) = written.branches
    assert branch in choice.around
    assert written.loops[0] in choice.around
    assert written.loops[1] not in choice.around


def test_both_sides_of_a_branch(written):
    (branch,) = written.branches
    assert branch.test.names == {"here", "m", "at", "k"}
    assert len(branch.body.stores("As")) == len(branch.otherwise.stores("As")) == 1
    assert branch.body.choices[0].otherwise.text == "float32(0)"
    assert "continue" in branch.otherwise.texts


def test_comparisons(written):
    found = [(each.left.text, each.sign, each.right.text) for each in written.comparisons]
    assert found == [("here", "<", "m"), ("0", "<", "k"), ("at", "!=", "k0"), ("tid", ">", "0")]


def test_operations_by_their_signs(written):
    (quotient,) = written.operations("//")
    assert texts(quotient.sides) == ["tid", "4"]
    assert texts(written.operations("%", "*")) == ["tid % 4 * 4", "tid % 4"]


def test_a_tuple_is_assigned_part_by_part(written):
    first, second = written.assignments[:2]
    assert (first.target.text, first.value.text) == ("row", "tid // 4")
    assert (second.target.text, second.value.text) == ("column", "tid % 4 * 4")


def test_one_value_for_several_names_stays_one_assignment():
    @cuda.jit
    def kernel(out):
        x, y = cuda.grid(2)
        both = width = 4
        height: float32 = 2
        out[y, x] = both + width + height

    pairs = [(each.target.text, each.value.text) for each in Written(kernel).assignments]
    assert pairs[:4] == [("(x, y)", "cuda.grid(2)"), ("both", "4"), ("width", "4"), ("height", "2")]


def test_what_a_name_is_made_into_over_any_number_of_steps():
    @cuda.jit
    def kernel(a, out):
        b = c = d = e = a[0]
        for i in range(9):
            e = d
            d = c
            c = b
            b = i
        out[0] = e

    assert Written(kernel).made_from("i") == {"i", "b", "c", "d", "e"}


def test_made_from_keeps_what_is_assigned_together_apart(written):
    assert written.made_from("row0") == {"row0", "here", "below"}
    assert written.made_from("k0") == {"k0", "step", "at"}
    assert "row" in written.made_from("tid")


@pytest.mark.parametrize("number, value", (("2", 2), ("0.5", 0.5), ("True", None), ("x", None), ("-1", None)))
def test_only_a_bare_number_is_a_number(number, value):
    assert Part(ast.parse(number, mode="eval").body).number == value


def test_lines_are_those_of_the_file(written):
    (barrier,) = written.calls("syncthreads")
    start = fetch.py_func.__code__.co_firstlineno
    assert barrier.line == start + 14
    assert barrier.where == f"Line {start + 14}: `cuda.syncthreads()`"
    assert barrier.line in written.loops[1].lines and barrier.line not in written.loops[0].lines


def test_the_same_part_is_equal_however_it_is_found(written):
    store = written.stores("As")[0]
    assert store in written.loops[0].elements("As")
    assert isinstance(store, Element)
    assert store != written.stores("As")[1]


def test_functions_and_what_they_do():
    def factory(R):
        """A factory."""

        def kernel(y):
            """A kernel."""
            y[0] = R
            return

        return kernel

    outer, inner = Written(factory).functions
    assert (outer.name, inner.name) == ("factory", "kernel")
    assert texts(inner.statements) == ["y[0] = R", "return"]
    assert texts(outer.returns) == ["return", "return kernel"]


def test_no_other_module_knows_the_syntax_tree():
    modules = set(Path(checks.__file__).parent.rglob("*.py")) - {Path(written_module.__file__)}
    assert [
        path for path in modules if re.search(r"^(import|from) ast\b", path.read_text("utf-8"), re.M)
    ] == []


def test_nothing_is_found_without_a_source():
    function = eval("lambda: 1")
    assert not Written(function).loops
    assert Written(function).text == ""
    assert not Part().calls()
