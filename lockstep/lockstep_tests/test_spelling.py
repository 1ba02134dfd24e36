"""Names that nothing has: in a kernel, in what a report is asked for, and of GPUs."""

import math

import numpy as np
import pytest
from numba import cuda, float32

from lockstep import EmulatorError, LaunchError, RefusedLine, UndefinedName, UnknownName, emulate
from lockstep.limits import profile


def _own_variable(out):
    index = cuda.grid(1)  # noqa: F841
    out[indx] = 1  # noqa: F821


def _builtin(out):
    for i in rnage(3):  # noqa: F821
        out[i] = i


def _module(out):
    out[0] = maths.sqrt(2.0)  # noqa: F821


def _member_of_cuda(out):
    out[cuda.gridd(1)] = 1


def _member_of_math(out):
    out[0] = math.sqr(2.0)


def _deep_member(out):
    cuda.atomic.addd(out, 0, 1)


def _nothing_like_it(out):
    out[0] = zebra(3)  # noqa: F821


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (_own_variable, "the name indx is not defined; did you mean index?"),
        (_builtin, "the name rnage is not defined; did you mean range?"),
        (_module, "the name maths is not defined; did you mean math?"),
        (_member_of_cuda, "cuda has no gridd; did you mean grid?"),
        (_member_of_math, "math has no sqr; did you mean sqrt?"),
        (_deep_member, "cuda.atomic has no addd; did you mean add?"),
        (_nothing_like_it, "the name zebra is not defined"),
    ],
)
def test_a_name_that_is_not_defined(kernel, sentence):
    with pytest.raises(UndefinedName) as refused:
        emulate(kernel, 1, 1, np.zeros(4, np.float32))
    error = refused.value
    assert isinstance(error, NameError) and error.sentence == sentence
    assert error.line > kernel.__code__.co_firstlineno and error.filename == __file__


def test_what_exists_and_is_not_supported_is_no_undefined_name():
    def kernel(out):
        out[0] = np.arange(2)[1]

    with pytest.raises(RefusedLine, match=r"the emulator does not support np\.arange") as refused:
        emulate(kernel, 1, 1, np.zeros(4, np.float32))
    assert not isinstance(refused.value, UndefinedName)


@pytest.fixture(scope="module")
def report():
    @cuda.jit
    def kernel(image, unused, pair):
        tile = cuda.shared.array(4, float32)
        spare = cuda.shared.array(4, float32)  # noqa: F841
        tile[0] = pair[0][0]
        image[0] = tile[0]

    x = np.zeros(4, np.float32)
    return emulate(kernel, 1, 1, x, x.copy(), (x.copy(), x.copy()))


@pytest.mark.parametrize(
    ("column", "where", "sentence"),
    [
        ("sector", {}, "no count named 'sector'; it has requests, .*; did you mean sectors\\?"),
        ("sectors", {"array": "imag"}, "no array named 'imag'; it has image, unused, .*; did you mean image"),
        ("sectors", {"space": "globl"}, "no space named 'globl'; .*; did you mean global"),
        ("sectors", {"op": "read"}, "no op named 'read'; it has load, store, atomic"),
        ("sectors", {"name": "image"}, "no column to select by named 'name'; it has function, line"),
        ("sectors", {"function": "kernl"}, "no function named 'kernl'; it has kernel; did you mean kernel"),
    ],
)
def test_a_report_says_what_it_does_not_have(report, column, where, sentence):
    with pytest.raises(UnknownName, match=sentence) as told:
        report.total(column, **where)
    assert isinstance(told.value, ValueError) and isinstance(told.value, EmulatorError)


def test_what_was_not_accessed_counts_as_nothing(report):
    assert report.total("sectors", array="image", op="store") == 1
    for array in ("unused", "spare", "pair", "pair[1]"):
        assert report.total("sectors", array=array) == report.total("lanes", array=array, op="load") == 0
    assert report.total("sectors", array="pair[0]") == 1 and report.total("sectors", line=1) == 0
    assert report.sectors_per_request(array="image") == 1
    with pytest.raises(UnknownName, match="leave out space"):
        report.sectors_per_request(space="global")


@pytest.mark.parametrize("name, meant", [("H20", "H200"), ("hoper", "hopper"), ("RTX 409", "RTX 4090")])
def test_a_gpu_that_is_not_known(name, meant):
    with pytest.raises(
        LaunchError, match=f"knows no GPU named '{name}'; it knows H200, .*; did you mean {meant}"
    ):
        profile(name)
