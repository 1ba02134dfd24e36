"""A session in which kernels are edited again and again: nothing in the emulator grows without bound."""

import errno
import gc
import importlib
import linecache
import pkgutil
import tracemalloc

import numpy as np
import pytest
from numba import cuda

import lockstep
from lockstep import emulate
from lockstep.memory.storage import Block
from lockstep.races.shadow import GlobalRaces
from lockstep.reading import inside
from lockstep.types import translation as translate
from lockstep_tests.corpus import ramp, zeros

SOURCE = """\
def kernel(x, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        acc = x[i]
        for j in range(3):
            acc += x[(i + j) % {number}] * 2 - i % 5
        out[i] = acc
"""


def edited(number):
    """A kernel as from a notebook cell that has been edited: new code, under a new file name."""
    filename = f"<cell {number}>"
    text = SOURCE.format(number=number % 7 + 1)
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    space = {"cuda": cuda}
    exec(compile(text, filename, "exec"), space)
    return space["kernel"], filename


def run_edited(numbers):
    for number in numbers:
        kernel, filename = edited(number)
        assert emulate(kernel, 1, 32, ramp(32), zeros(32)).ok
        del linecache.cache[filename]


def modules():
    for found in pkgutil.walk_packages(lockstep.__path__, "lockstep."):
        if not found.name.endswith("__main__"):  # runs the command line
            yield importlib.import_module(found.name)


def sizes():
    """{name: entries} of every container that a module of the emulator holds, and of ZERO's memory."""
    found = {}
    for module in modules():
        for name, value in vars(module).items():
            if isinstance(value, (dict, list, set)) and not name.startswith("__"):
                found[f"{module.__name__}.{name}"] = len(value)
            if isinstance(getattr(value, "memo", None), dict):
                found[f"{module.__name__}.{name}.memo"] = len(value.memo)
    return found


def measured(edits):
    """(bytes, sizes of the modules' containers) after so many more edits."""
    run_edited(edits)
    gc.collect()
    return tracemalloc.get_traced_memory()[0], sizes()


def check_growth(edits, monkeypatch):
    """Nothing grows between the first third of the edits and the last; the cache of translations is full."""
    for module in (inside, translate):
        monkeypatch.setattr(module, "_CACHE_SIZE", edits // 10)
        monkeypatch.setattr(module, "_cache", {})  # not that of other tests, whose memory is not traced
    sizes()  # what it imports is no growth
    tracemalloc.start()
    try:
        third = edits // 3
        before, small = measured(range(third))
        after, large = measured(range(third, edits))
    finally:
        tracemalloc.stop()
    assert small == large
    # Python keeps the file names, and translations differ in size; one takes some 100 KB.
    per_edit = (after - before) / (edits - third)
    assert per_edit < 5000, f"{per_edit:.0f} bytes more per edited kernel"


@pytest.mark.full(reason="sixty kernels are translated and run")
def test_edited_kernels_leave_nothing_behind(monkeypatch):
    check_growth(60, monkeypatch)


ITERATIONS = 200


@cuda.jit
def follows_its_data(x, out):
    i = cuda.grid(1)
    last = i
    for _ in range(ITERATIONS):
        last = (i * 3 - x[last % x.shape[0]]) % (i + 4099)
    out[i] = last


def test_values_of_one_iteration_go_with_it():
    """What is computed from the thread index and from loaded data is kept no longer than the data.

    Only where each iteration read is kept, for the counts.
    """
    lanes = 4096
    x, out = np.random.default_rng(0).integers(0, 10**6, lanes), np.zeros(lanes, np.int64)
    tracemalloc.start()
    try:
        emulate(follows_its_data, 16, 256, x, out)
        peak = tracemalloc.get_traced_memory()[1] / (8 * lanes)
    finally:
        tracemalloc.stop()
    i = last = np.arange(lanes)
    for _ in range(ITERATIONS):
        last = (i * 3 - x[last % lanes]) % (i + 4099)
    assert (out == last).all()
    assert peak < 1.5 * ITERATIONS, f"{peak:.0f} values at the same time"


def test_a_report_does_not_keep_the_arrays():
    import weakref

    x, out = ramp(1024), zeros(1024)
    kernel, filename = edited(3)
    report = emulate(kernel, 8, 128, x, out)
    gone = weakref.ref(x)
    del x, out, linecache.cache[filename]
    gc.collect()
    assert gone() is None
    assert report.total("requests") > 0


@cuda.jit
def uses_a_module(x, out):
    i = cuda.grid(1)
    out[i] = x[i] * errno.ENOENT


def test_a_kernel_that_uses_a_module_is_translated_once(monkeypatch):
    made, original = [], translate.Translator
    monkeypatch.setattr(translate, "Translator", lambda *args: made.append(args) or original(*args))
    monkeypatch.setattr(translate, "_cache", {})
    for _ in range(3):
        emulate(uses_a_module, 1, 8, ramp(8), zeros(8))
    assert len(made) == 1


def test_the_shadow_of_a_cell_takes_as_many_bytes_as_are_reckoned_with():
    races = GlobalRaces(Block(unit=4, nbytes=4000))
    arrays = [value for value in vars(races).values() if isinstance(value, np.ndarray)]
    assert sum(array.nbytes for array in arrays) == 1000 * GlobalRaces.BYTES
