"""What goes wrong in a library's device functions is an error at the program's line that calls them."""

import importlib.util
import sys

import numpy as np
import pytest
from numba import cuda, float32
from numba.cuda.random import (
    create_xoroshiro128p_states,
    xoroshiro128p_normal_float32,
    xoroshiro128p_uniform_float32,
    xoroshiro128p_uniform_float64,
)

from lockstep import emulate, emulated
from lockstep.launching import program_findings
from lockstep_tests.corpus import zeros


def line_with(function, text):
    import inspect

    lines, first = inspect.getsourcelines(function)
    return first + next(place for place, line in enumerate(lines) if text in line)


@cuda.jit(device=True)
def drawn(states, i):
    return xoroshiro128p_normal_float32(states, i)  # of the program


@cuda.jit
def directly(states, x):
    i = cuda.grid(1)
    x[i] = xoroshiro128p_uniform_float32(states, i)


@cuda.jit
def through_a_function(states, x):
    i = cuda.grid(1)
    x[i] = drawn(states, i)


@cuda.jit
def in_a_loop(states, x):
    i = cuda.grid(1)
    total = 0.0
    for _ in range(3):
        total += xoroshiro128p_uniform_float64(states, i)
    x[i] = total


@cuda.jit
def by_blocks(states, x):
    i = cuda.grid(1)
    x[i] = xoroshiro128p_uniform_float32(states, cuda.blockIdx.x)


@cuda.jit
def twice(states, x):
    i = cuda.grid(1)
    a = xoroshiro128p_uniform_float32(states, i)
    b = xoroshiro128p_normal_float32(states, i)
    x[i] = a + b


@pytest.mark.many(one_in=3)
@pytest.mark.parametrize(
    ("kernel", "states", "kind", "places"),
    [
        (directly, 100, "out_of_bounds", [("directly", "uniform_float32(states, i)")]),
        (through_a_function, 100, "out_of_bounds", [("drawn", "of the program")]),
        (in_a_loop, 100, "out_of_bounds", [("in_a_loop", "total += ")]),
        (by_blocks, 128, "global_race", [("by_blocks", "blockIdx.x)")]),
        (twice, 100, "out_of_bounds", [("twice", "a = "), ("twice", "b = ")]),
    ],
    ids=["directly", "through a function", "in a loop", "by blocks", "twice"],
)
def test_random_states(kernel, states, kind, places):
    functions = {"drawn": drawn.py_func}
    with emulated() as session:
        kernel[2, 64](create_xoroshiro128p_states(states, seed=1), zeros(128))
    found = [(one.severity, one.kind, one.function, one.line) for one in session.errors]
    assert found == [
        ("error", kind, name, line_with(functions.get(name, kernel.py_func), text)) for name, text in places
    ]
    assert all(one.file == __file__ for one in session.findings)
    message = session.errors[0].message
    assert "in xoroshiro128p_next, which this line calls" in message
    assert ("as many as there are threads" if kind == "out_of_bounds" else "give each thread") in message


def test_enough_states_are_right_and_float64_in_there_is_no_advice():
    with emulated() as session:
        in_a_loop[2, 64](create_xoroshiro128p_states(128, seed=1), zeros(128))
    assert [one for one in session.findings if one.severity == "error"] == []
    assert {one.function for one in session.findings} <= {"in_a_loop"}


def test_the_line_of_the_call_silences():
    @cuda.jit
    def kernel(states, x):
        x[cuda.grid(1)] = xoroshiro128p_uniform_float32(states, 0)  # emulator: allow global_race

    with emulated() as session:
        kernel[1, 64](create_xoroshiro128p_states(1, seed=1), zeros(64))
    assert session.ok


LIBRARY = """
from numba import cuda, float32


@cuda.jit(device=True)
def reversed_in_shared_memory(value):
    tile = cuda.shared.array(64, float32)
    tile[cuda.threadIdx.x] = value
    return tile[63 - cuda.threadIdx.x]


@cuda.jit(device=True)
def last(x):
    return x[x.shape[0]]


@cuda.jit
def kernel(x):
    x[0] = last(x)


@cuda.jit(device=True)
def last_when_all_have_come(x):
    cuda.syncthreads()
    return last(x)
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A package that was installed."""
    file = tmp_path / "site-packages" / "somebodys_kernels.py"
    file.parent.mkdir()
    file.write_text(LIBRARY)
    spec = importlib.util.spec_from_file_location("somebodys_kernels", file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "somebodys_kernels", module)
    spec.loader.exec_module(module)
    folders = program_findings._folders()
    monkeypatch.setattr(program_findings, "_folders", lambda: (*folders, str(file.parent)))
    program_findings.in_library.cache_clear()
    yield module
    program_findings.in_library.cache_clear()


def test_an_installed_package(library):
    last = library.last

    @cuda.jit
    def kernel(x):
        x[cuda.threadIdx.x] = last(x)

    (found,) = emulate(kernel, 1, 64, zeros(64), allow="global_race").errors
    assert (found.kind, found.function) == ("out_of_bounds", "kernel")
    assert found.line == line_with(kernel.py_func, "last(x)")
    assert "line 14 of somebodys_kernels.py, in last" in found.message


def test_a_function_that_waits_for_other_lanes(library):
    last = library.last_when_all_have_come

    @cuda.jit
    def kernel(turn, x):
        while cuda.atomic.add(turn, 0, 0) != cuda.threadIdx.x:
            pass
        cuda.atomic.add(turn, 0, 1)
        x[cuda.threadIdx.x] = last(x)
        x[64] = 0

    found = emulate(kernel, 1, 64, zeros(1, dtype=np.int32), zeros(64), allow="global_race").errors
    ours = [line_with(kernel.py_func, text) for text in ("last(x)", "x[64] = 0")]
    assert [(one.kind, one.function, one.line) for one in found] == [
        ("out_of_bounds", "kernel", line) for line in ours
    ]
    assert "in last" in found[0].message and "in last" not in found[1].message


def test_a_race_that_a_barrier_brings_to_light_is_an_error_where_it_is(library):
    turned = library.reversed_in_shared_memory

    @cuda.jit
    def kernel(x):
        i = cuda.threadIdx.x
        x[i] = turned(float32(i))

    report = emulate(kernel, 1, 64, zeros(64))
    (found,) = report.errors
    assert found.kind == "shared_race" and report.file_of(found) == library.__file__


def test_a_kernel_of_the_library_itself(library):
    report = emulate(library.kernel, 1, 1, zeros(4))
    (found,) = report.errors
    assert found.function == "last" and report.file_of(found) == library.__file__


def test_kernels_of_numba_stay_advice():
    total = cuda.reduce(lambda a, b: a + b)
    with emulated() as session:
        assert total(np.arange(1000.0)) == 499500
    assert session.ok
