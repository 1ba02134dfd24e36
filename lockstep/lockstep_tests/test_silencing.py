"""Findings that are silenced by a comment or an argument, and counted."""

import linecache

import pytest
from numba import cuda

from lockstep import LaunchError, UnsupportedKernel, emulate
from lockstep_tests.corpus import ramp, zeros


@cuda.jit
def last_one_wins(x, out):
    i = cuda.grid(1)
    out[0] = x[i]  # emulator: allow global_race
    out[1] = x[i]


def test_a_comment_silences_a_finding_in_its_line():
    report = emulate(last_one_wins, 2, 32, ramp(64), zeros(2))
    line = last_one_wins.py_func.__code__.co_firstlineno + 3
    assert [(f.kind, f.line) for f in report.findings] == [("global_race", line + 1)]
    assert [(f.kind, f.line, f.count) for f in report.silenced] == [("global_race", line, 63)]
    assert f"silenced: global_race in line {line} (63 times)" in str(report)
    assert "silenced: global_race" in report._repr_html_()


def test_an_argument_silences_a_kind():
    report = emulate(last_one_wins, 2, 32, ramp(64), zeros(2), allow="global_race")
    assert report.ok and len(report.silenced) == 2
    report = emulate(last_one_wins, 2, 32, ramp(64), zeros(2), allow=("shared_race", "out_of_bounds"))
    assert not report.ok and len(report.silenced) == 1


def test_a_comment_that_silences_nothing_is_advised_against():
    report = emulate(last_one_wins, 1, 1, ramp(1), zeros(2))
    (finding,) = report.findings
    assert finding.kind == "unused_allowance" and finding.severity == "advice" and report.ok
    assert finding.line == last_one_wins.py_func.__code__.co_firstlineno + 3
    assert not emulate(last_one_wins, 1, 1, ramp(1), zeros(2), counts_only=True).findings


SOURCE = """
@cuda.jit
def kernel(out):
    out[0] = cuda.grid(1)
"""


def in_a_cell(source, number):
    """The kernel that a notebook cell defines; each cell has a file name of its own."""
    name, space = f"<cell of test_silencing {number}>", {"cuda": cuda}
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    exec(compile(source, name, "exec"), space)
    return space["kernel"]


def test_a_comment_that_is_added_in_a_notebook_silences_as_well():
    silenced = SOURCE.rstrip() + "  # emulator: allow global_race\n"
    oks = [emulate(in_a_cell(text, at), 1, 2, zeros(1)).ok for at, text in enumerate((SOURCE, silenced))]
    assert oks == [False, True]


def test_unknown_kinds_are_refused():
    @cuda.jit
    def kernel(out):
        out[0] = 1  # emulator: allow globalrace

    with pytest.raises(UnsupportedKernel, match="no kind of finding named 'globalrace'; the kinds are"):
        emulate(kernel, 1, 1, zeros(1))
    with pytest.raises(LaunchError, match="no kind of finding named 'races'"):
        emulate(last_one_wins, 1, 1, ramp(1), zeros(2), allow="races")


def test_a_comment_in_a_device_function_and_several_kinds():
    @cuda.jit(device=True)
    def store(out, value):
        out[0] = value  # emulator: allow global_race, out_of_bounds

    @cuda.jit
    def kernel(x, out):
        text = 1  # not one: "emulator: allow nothing"
        store(out, x[cuda.grid(1)] + text - text)

    assert emulate(kernel, 2, 32, ramp(64), zeros(1)).ok
    assert emulate(kernel, 2, 32, ramp(64), zeros(0)).ok


def test_an_atomic_and_a_plain_read_are_told_apart():
    @cuda.jit
    def kernel(low, x):
        i = cuda.grid(1)
        if x[i] < low[0]:
            cuda.atomic.min(low, 0, x[i])

    messages = [str(f) for f in emulate(kernel, 4, 64, ramp(1) + 100, ramp(256)[::-1].copy()).errors]
    assert any("updates low[0], and thread" in text and "reads it" in text for text in messages), messages
