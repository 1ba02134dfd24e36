"""Single findings in detail: the element, the block and the threads that they name."""

from itertools import count

import numpy as np
import pytest
from numba import cuda, float32

from lockstep import emulate
from lockstep.types import translation as translate
from lockstep_tests.corpus import ramp, zeros


def only(report, kind):
    """The one finding of this kind."""
    found = [finding for finding in report.findings if finding.kind == kind]
    assert len(found) == 1, [(finding.kind, finding.line, finding.message) for finding in report.findings]
    return found[0]


@cuda.jit
def copy_all(x, out):
    i = cuda.grid(1)
    out[i] = x[i]


def test_out_of_bounds_names_element_block_thread_and_how_often():
    finding = only(emulate(copy_all, 3, 32, ramp(70), zeros(96)), "out_of_bounds")
    assert finding.array == "x"
    assert finding.block == (2, 0, 0)
    assert finding.element == (70,)
    assert finding.threads[0] == (6, 0, 0)
    assert finding.count == 26
    assert "x" in finding.message and "70" in finding.message


@cuda.jit
def two_races(out):
    first = cuda.shared.array(64, float32)
    second = cuda.shared.array(64, float32)
    i = cuda.threadIdx.x
    first[i] = i
    second[i] = i
    out[i] = second[63 - i] + first[63 - i]


def test_races_are_reported_in_the_order_of_the_stores_whatever_was_emulated_before(monkeypatch):
    """Arrays are numbered through all kernels of a process, and a set lists 8 n + 8 before 8 n + 7."""
    monkeypatch.setattr(translate, "_site_numbers", count(8 * 10**7 + 7))
    findings = emulate(two_races, 1, 64, zeros(64)).findings
    assert [finding.array for finding in findings] == ["first", "second"]


@cuda.jit
def copy_columns(a, out):
    col, row = cuda.grid(2)
    out[row, col] = a[row, col]


def test_out_of_bounds_in_one_dimension_names_both_indices():
    finding = only(emulate(copy_columns, 1, (8, 4), ramp(4, 6), zeros(4, 8)), "out_of_bounds")
    assert finding.element in [(row, col) for row in range(4) for col in (6, 7)]
    assert finding.threads[0][0] == finding.element[1]
    assert finding.count == 8


def test_an_access_outside_writes_nothing_anywhere_else():
    out = zeros(70)
    before = ramp(70)
    emulate(copy_all, 3, 32, before, out)
    assert (before == ramp(70)).all()
    guarded = np.full(80, -1, np.float32)
    emulate(copy_all, 3, 32, ramp(96), guarded[:70])
    assert (guarded[70:] == -1).all() and (guarded[:70] == ramp(70)).all()


@cuda.jit
def swap_neighbours(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    out[t] = tile[t ^ 32]


def test_race_names_the_element_and_both_threads():
    finding = only(emulate(swap_neighbours, 1, 64, ramp(64), zeros(64)), "shared_race")
    (element,) = finding.element
    assert {thread[0] for thread in finding.threads} == {element, element ^ 32}
    assert finding.count == 64


@cuda.jit
def one_result(x, out):
    if cuda.threadIdx.x == 3:
        out[5] = x[cuda.blockIdx.x]


def test_race_across_blocks_names_the_element():
    finding = only(emulate(one_result, 4, 32, ramp(4), zeros(8)), "global_race")
    assert finding.element == (5,)
    assert (3, 0, 0) in finding.threads


@cuda.jit
def read_back(x, out):
    tile = cuda.shared.array((4, 8), float32)
    t = cuda.threadIdx.x
    if t != 13:
        tile[t // 8, t % 8] = x[t]
    cuda.syncthreads()
    out[t] = tile[t // 8, t % 8]


def test_uninitialised_read_names_the_element():
    finding = only(emulate(read_back, 1, 32, ramp(32), zeros(32)), "uninitialised_read")
    assert finding.element == (1, 5)
    assert finding.threads == [(13, 0, 0)]
    assert finding.count == 1


@cuda.jit
def wait_for_some(x, out):
    t = cuda.threadIdx.x + cuda.threadIdx.y * 8
    if t != 9:
        cuda.syncthreads()
    out[t] = x[t]


def test_a_barrier_in_a_branch_names_a_thread_that_is_missing():
    finding = only(emulate(wait_for_some, 1, (8, 4), ramp(32), zeros(32)), "barrier_divergence")
    assert (1, 1, 0) in finding.threads


def test_a_race_in_many_blocks_is_reported_once():
    report = emulate(swap_in_every_block, 50, 64, ramp(3200), zeros(3200))
    assert only(report, "shared_race").count == 50 * 64


@cuda.jit
def swap_in_every_block(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = x[cuda.grid(1)]
    out[cuda.grid(1)] = tile[t ^ 32]


def test_a_loop_variable_that_is_also_used_elsewhere_is_known_inside_a_loop_of_known_length():
    @cuda.jit
    def add_up(a, out):
        acc = cuda.local.array(4, float32)
        i = cuda.grid(1)
        first = a[i]
        for i in range(4):
            acc[i] = first
        for i in range(4):
            out[cuda.grid(1)] += acc[i]

    assert not emulate(add_up, 1, 32, ramp(32), zeros(32)).findings


def test_a_loop_variable_changed_in_the_loop_is_not_known():
    @cuda.jit
    def add_up(a, out):
        acc = cuda.local.array(4, float32)
        for i in range(4):
            i = cuda.threadIdx.x % 4
            acc[i] = a[i]
        out[cuda.threadIdx.x] = acc[0]

    assert "dynamic_local_index" in {f.kind for f in emulate(add_up, 1, 4, ramp(4), zeros(4)).findings}


# ---- several threads that store to one element ----


@cuda.jit
def raise_flag(value, out):
    out[0] = 7


@cuda.jit
def raise_flag_and_wait(value, out):
    out[0] = 7
    cuda.cg.this_grid().sync()
    out[cuda.grid(1) + 1] = out[0]


@cuda.jit
def raise_flag_twice(value, out):
    out[0] = 7
    out[0] = 8


@cuda.jit
def store_the_value(value, out):
    out[0] = value[cuda.grid(1)]


@cuda.jit
def share_the_value(value, out):
    shared = cuda.shared.array(1, float32)
    shared[0] = value[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = shared[0]


ONE, TWO = np.full(64, 7, np.float32), np.repeat(np.float32([7, 8]), 32)  # for both blocks, one for each
NAN = np.full(64, np.nan, np.float32)
OTHER = np.where(np.arange(64) == 40, 9, ONE).astype(np.float32)


@pytest.mark.parametrize("some", [64, 40])
def test_a_thread_may_load_what_it_and_all_others_have_stored(some):
    @cuda.jit
    def in_global(value, out):
        if cuda.grid(1) < some:
            value[0] = 7
        out[cuda.grid(1)] = value[0]

    @cuda.jit
    def in_shared(value, out):
        shared = cuda.shared.array(1, float32)
        if cuda.threadIdx.x < some:
            shared[0] = value[0]
        out[cuda.threadIdx.x] = shared[0]

    reports = emulate(in_global, 2, 32, zeros(1), zeros(64)), emulate(in_shared, 1, 64, ONE, zeros(64))
    assert [report.ok for report in reports] == [some == 64] * 2
    assert all("reads" in finding.message for report in reports for finding in report.errors)


@pytest.mark.parametrize("fence", [False, True])  # with one, races are found access by access
def test_what_another_thread_stores_later_is_not_the_thread_s_own(fence):
    @cuda.jit
    def kernel(value, out):
        value[0] = 7
        if fence:
            cuda.threadfence()
            cuda.atomic.add(out, 40, 1)
        cuda.syncthreads()
        if cuda.threadIdx.x == 1:
            value[0] = 8
        out[cuda.threadIdx.x] = value[0]

    found = emulate(kernel, 1, 32, zeros(1), zeros(41)).errors
    assert {finding.kind for finding in found} == {"global_race"}
    assert any("reads value[0]" in finding.message for finding in found)


@pytest.mark.parametrize(
    "kernel, value, error, strictly",
    [
        (raise_flag, ONE, None, "global_race"),
        (raise_flag_and_wait, ONE, None, "global_race"),
        (raise_flag_twice, ONE, "global_race", "global_race"),
        (store_the_value, ONE, None, "global_race"),
        (store_the_value, NAN, None, "global_race"),
        (store_the_value, OTHER, "global_race", "global_race"),
        (share_the_value, ONE, None, "shared_race"),
        (share_the_value, TWO, None, "shared_race"),
        (share_the_value, OTHER, "shared_race", "shared_race"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_stores_of_one_value_are_advice_and_of_several_a_race(kernel, value, error, strictly):
    report, strict = (emulate(kernel, 2, 32, value, zeros(65), strict=strict) for strict in (False, True))
    assert {found.kind for found in report.errors} == ({error} if error else set())
    assert {found.kind for found in strict.errors} == {strictly}
    assert report.findings[0].element == (0,)
    if error is None:
        assert "the same value" in only(report, "equal_stores").message
