"""How little compiled code may access: small kernels, and an H200's counters of every recorded one.

`python -m lockstep_tests.test_as_compiled` shows the table of the recorded ones.
"""

from collections import Counter

import numpy as np
import pytest
from numba import cuda, float32, uint64

from lockstep import LaunchError, UnknownName, UnsupportedKernel, Watch, emulate, intrinsics
from lockstep.counts import lower_bound as merging
from lockstep.host import emulated as as_a_program
from lockstep_tests import test_program_counters
from lockstep_tests.counter_cases import CASES
from lockstep_tests.counters import emulated, hardware, recorded

PROGRAMS, EXPLAINED = test_program_counters.PROGRAMS, test_program_counters.EXPLAINED
BOUNDED = [
    (f"{space}_{op}_{column}", (column, space, op))
    for space, far in (("global", "sectors"), ("shared", "wavefronts"))
    for op in ("load", "store")
    for column in ("requests", far)
]


# ---- small kernels: what one warp does as written, and at least ----


@cuda.jit
def reads_twice(x, out):
    i = cuda.grid(1)
    out[i] = x[i] * x[i]


@cuda.jit
def reads_in_every_iteration(x, out):
    i = cuda.grid(1)
    total = float32(0)
    for k in range(5):
        total = total * x[i] + float32(k)
    out[i] = total


@cuda.jit
def reads_on_both_sides_of_a_barrier(x, out):
    i = cuda.grid(1)
    first = x[i]
    cuda.syncthreads()
    out[i] = first + x[i]


@cuda.jit
def reads_on_both_sides_of_a_fence(x, out):
    i = cuda.grid(1)
    first = x[i]
    cuda.threadfence()
    out[i] = first + x[i]


@cuda.jit
def reads_what_it_has_stored(x, out):
    i = cuda.grid(1)
    out[i] = float32(2)
    out[i] = out[i] + x[i]


@cuda.jit
def reads_what_nobody_needs(x, out):
    i = cuda.grid(1)
    unused = x[i] + float32(1)
    also_unused = unused * float32(2)  # noqa: F841
    out[i] = float32(0)


@cuda.jit
def reads_for_one_branch(x, out):
    i = cuda.grid(1)
    value = x[i]
    if i < 32:
        out[i] = value


@cuda.jit
def reads_for_both_branches(x, out):
    i = cuda.grid(1)
    value = x[i]
    if i < 7:
        out[i] = value
    else:
        out[i] = -value


@cuda.jit
def reads_in_both_branches(x, out):
    i = cuda.grid(1)
    if i < 7:
        out[i] = x[i] + float32(1)
    else:
        out[i] = x[i] - float32(1)


@cuda.jit
def reads_for_a_condition(x, out):
    i = cuda.grid(1)
    if x[i] < 0:
        out[0] = 1


@cuda.jit
def reads_neighbours(x, out):
    i = cuda.grid(1)
    out[i] = x[2 * i] + x[2 * i + 1]


@cuda.jit
def keeps_what_is_there(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    out[i] = out[i]


@cuda.jit
def reads_for_a_shuffle(x, out):
    i = cuda.grid(1)
    value = x[i]
    value += cuda.shfl_down_sync(0xFFFFFFFF, value, 16)
    if i == 0:
        out[0] = value


@cuda.jit
def adds_up_for_a_branch(x, out):
    total = float32(0)
    for k in range(4):
        total += x[k * 32 + cuda.threadIdx.x]
    if cuda.threadIdx.x < 32:
        out[cuda.threadIdx.x] = total


@cuda.jit(device=True)
def difference(x, i, y):
    return x[i] - y


@cuda.jit
def reads_in_a_function(x, out):
    i = cuda.grid(1)
    out[i] = difference(x, i, x[i + 64])


@cuda.jit
def calls_a_function_for_nothing(x, out):
    i = cuda.grid(1)
    difference(x, i, x[i])
    out[i] = difference(x, i + 32, x[i + 64])


@cuda.jit(device=True)
def sum_of_first(x, n):
    if n == 0:
        return x[0]
    return x[n] + sum_of_first(x, n - 1)


@cuda.jit
def calls_what_calls_itself(x, out):
    if cuda.grid(1) == 0:
        out[0] = sum_of_first(x, np.int64(3))


@cuda.jit
def reads_beyond_the_end(x, out):
    out[0] = x[x.size + cuda.grid(1)]


def signals(x, out):
    bars = cuda.shared.array(1, uint64)
    intrinsics.mbarrier_init(bars, 0, 1)


@cuda.jit
def exchanges_neighbours(x, out):
    tile = cuda.shared.array((32, 4), float32)
    unread = cuda.shared.array(32, float32)
    i = cuda.grid(1)
    for k in range(4):
        tile[i, k] = x[i]
    unread[i] = x[i]
    cuda.syncthreads()
    for k in range(4):
        out[i] = out[i] + tile[31 - i, k]


GLOBAL, STORES = ("global", "load"), ("global", "store")
WRITTEN_AND_LEAST = [  # requests as written, and at least as compiled
    (reads_twice, {GLOBAL: (2, 1), STORES: (1, 1)}),
    (reads_in_every_iteration, {GLOBAL: (5, 1)}),
    (reads_on_both_sides_of_a_barrier, {GLOBAL: (2, 2)}),
    (reads_on_both_sides_of_a_fence, {GLOBAL: (2, 2)}),
    (reads_what_it_has_stored, {GLOBAL: (2, 1), STORES: (2, 1)}),
    (reads_what_nobody_needs, {GLOBAL: (1, 0)}),
    (reads_for_one_branch, {GLOBAL: (1, 0), STORES: (1, 1)}),
    (reads_for_both_branches, {GLOBAL: (1, 1), STORES: (2, 1)}),
    (reads_in_both_branches, {GLOBAL: (2, 1), STORES: (2, 1)}),
    (reads_for_a_condition, {GLOBAL: (1, 1)}),
    (reads_neighbours, {GLOBAL: (2, 2)}),
    (keeps_what_is_there, {GLOBAL: (2, 1), STORES: (2, 1)}),
    (reads_for_a_shuffle, {GLOBAL: (1, 1)}),
    (adds_up_for_a_branch, {GLOBAL: (4, 4)}),
    (reads_in_a_function, {GLOBAL: (2, 2)}),
    (calls_a_function_for_nothing, {GLOBAL: (4, 1)}),  # of x[i + 64] alone is it certain
    (reads_beyond_the_end, {GLOBAL: (0, 0)}),
    (calls_what_calls_itself, {STORES: (1, 1)}),
    (exchanges_neighbours, {("shared", "store"): (5, 1), ("shared", "load"): (4, 1), STORES: (4, 1)}),
]


def launch(kernel, **options):
    return emulate(kernel, 1, 32, np.ones(128, np.float32), np.zeros(32, np.float32), **options)


@pytest.mark.parametrize(
    "kernel, expected", WRITTEN_AND_LEAST, ids=lambda each: getattr(each, "__name__", "")
)
def test_what_a_compiler_may_merge_or_leave_out(kernel, expected):
    report = launch(kernel, as_compiled=True)
    found = {
        (space, op): (report.total("requests", space=space, op=op), report.at_least("requests", space, op))
        for space, op in expected
    }
    assert found == expected


def test_a_report_shows_both():
    report = launch(reads_twice, as_compiled=True)
    (row,) = report.as_compiled.query("op == 'load'").to_dict("records")
    assert (row["array"], row["sectors"], row["at_least_sectors"]) == ("x", 8, 4)
    assert report.at_least("sectors", "global", "load", array="x") == 4
    sentence = "global loads: 2 requests as written, at least 1 as compiled; 8 sectors as written, at least 4"
    assert sentence in str(report) and sentence in report._repr_html_()
    with as_a_program(as_compiled=True) as session:
        reads_twice[1, 32](np.ones(32, np.float32), np.zeros(32, np.float32))
    assert session.launches[0].report.at_least("requests", "global", "load") == 1


def test_what_was_not_asked_for_is_not_there():
    report = launch(reads_twice)
    assert "as compiled" not in str(report)
    with pytest.raises(AttributeError, match="pass as_compiled=True"):
        report.at_least("requests", "global", "load")
    with pytest.raises(UnknownName, match="no space named 'local'"):
        launch(reads_twice, as_compiled=True).at_least("requests", "local", "load")


def test_what_cannot_be_followed_is_refused(monkeypatch):
    for other in ({"counts_only": True}, {"watch": Watch()}):
        with pytest.raises(LaunchError, match=f"without {next(iter(other))}"):
            launch(reads_twice, as_compiled=True, **other)
    with pytest.raises(UnsupportedKernel, match="mbarriers"):
        launch(signals, as_compiled=True)
    monkeypatch.setattr(merging, "MOST", 100)
    with pytest.raises(LaunchError, match="follows up to 100 accesses"):
        launch(reads_in_every_iteration, as_compiled=True)


# ---- recorded kernels ----

# Stores of the blocks' places, which are in the order of their arrival: no launch is like another.
IN_ANY_ORDER = {("compact_with_one_counter_per_block_and_one_for_all", "global_store_sectors")}


def intervals(case, row):
    """(counter, at least, measured, as written) of each count of loads and stores that is not 0."""
    report = emulate(
        case.kernel,
        *(case.grid, case.block),
        *case.make_args(),
        shared_bytes=case.shared_bytes,
        as_compiled=True,
    )
    written, measured = emulated(report), hardware(row)
    for name, what in BOUNDED:
        if written[name] or measured[name]:
            yield name, report.at_least(*what), measured[name], written[name]


def place(name, counter, least, measured, written) -> str:
    """Where the hardware's count lies; one outside must be explained."""
    assert least <= written, counter
    if measured == written:
        return "equal"
    if least <= measured <= written:
        return "within"
    assert counter in EXPLAINED[name], f"{counter}: {measured} is not within {least}..{written}"
    assert measured > written or (name, counter) in IN_ANY_ORDER, f"{counter}: {measured} < {least}"
    return "outside"


@pytest.mark.many(one_in=5)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_hardware_stays_within_or_it_is_explained(name):
    for counter, *counts in intervals(PROGRAMS[name], recorded("program_cases")[name]):
        place(name, counter, *counts)


@pytest.mark.many(one_in=5)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernels_written_for_counting_stay_within(case):
    for counter, least, measured, written in intervals(case, recorded("counter_cases")[case.name]):
        assert least <= measured == written, counter


def table() -> Counter:
    """How many counters of loads and stores lie where; prints those outside."""
    found = Counter()
    for name, case in PROGRAMS.items():
        for counter, *counts in intervals(case, recorded("program_cases")[name]):
            where = place(name, counter, *counts)
            found[where] += 1
            if where == "outside":
                reason = EXPLAINED[name][counter].reason
                print(f"{name}: {counter}: {counts[1]} not in {counts[0]}..{counts[2]}: {reason}")
    return found


if __name__ == "__main__":
    print(*(f"{where} {count}" for where, count in table().items()), sep=", ")
