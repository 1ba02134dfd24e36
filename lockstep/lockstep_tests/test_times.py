"""Dates and spans of time in kernels: datetime64 and timedelta64."""

import numpy as np
import pytest
from numba import cuda

from lockstep import EmulatorError, emulate, emulated

DAYS = np.arange("2020-02-27", "2020-03-06", dtype="datetime64[D]")
SECONDS = DAYS.astype("M8[s]") + np.timedelta64(90, "s")
SPANS = np.array([3, -5, "NaT", 0, 7, -8, 2, 1], "m8[D]")
START, WEEK = np.datetime64("2020-03-01"), np.timedelta64(7, "D")
EVENT = np.dtype([("at", "M8[s]"), ("value", "f4")], align=True)


def kernels():
    def days_between(a, b, spans, out):
        i = cuda.grid(1)
        out[i] = b[i] - a[i]

    def added(a, b, spans, out):
        i = cuda.grid(1)
        out[i] = a[i] + spans[i] - WEEK - START

    def scaled(a, b, spans, out):
        i = cuda.grid(1)
        out[i] = 3 * spans[i] * 1.5 / 2 - spans[i] // 2 + abs(spans[i]) / 1.5

    def ratio(a, b, spans, out):
        i = cuda.grid(1)
        out[i] = spans[i] / WEEK

    def order(a, b, spans, out):
        i = cuda.grid(1)
        out[i] = (a[i] < START) + 2 * (a[i] <= b[i]) + 4 * (spans[i] == -spans[i]) + 8 * np.isnat(spans[i])

    def latest(a, b, spans, out):
        i = cuda.grid(1)
        best = a[0]
        for k in range(i):
            if a[k] > best:
                best = a[k]
        out[i] = max(best, START) - a[0]

    def chosen(a, b, spans, out):
        i = cuda.grid(1)
        out[i] = spans[i] if spans[i] > spans[3] else WEEK

    def total(a, b, spans, out):
        i = cuda.grid(1)
        sum_ = spans[3]
        for k in range(4, 8):
            sum_ += spans[k]
        out[i] = sum_

    def whole(a, b, spans, out):
        i = cuda.grid(1)
        out[i] = int(spans[3] + WEEK)

    return list(locals().values())


ZERO = np.timedelta64(0, "D")
WANTED = {
    "days_between": SECONDS - DAYS,
    "added": DAYS + SPANS - WEEK - START,
    "scaled": 3 * SPANS * 1.5 / 2 - SPANS / 2 + abs(SPANS) / 1.5,
    "ratio": SPANS / WEEK,
    "order": (DAYS < START) + 2 * (DAYS <= SECONDS) + 4 * (SPANS == -SPANS) + 8 * np.isnat(SPANS),
    "latest": np.maximum(np.maximum.accumulate(np.roll(DAYS, 1)[[1, *range(1, 8)]]), START) - DAYS[0],
    "chosen": np.where(SPANS > ZERO, SPANS, WEEK),
    "total": np.full(8, SPANS[4:].sum()),
    "whole": np.full(8, 7),
}


@pytest.mark.parametrize("kernel", kernels(), ids=lambda kernel: kernel.__name__)
def test_values(kernel):
    wanted = WANTED[kernel.__name__]
    out = np.zeros(8, wanted.dtype)
    assert emulate(kernel, 2, 4, DAYS, SECONDS, SPANS, out).ok
    np.testing.assert_array_equal(out, wanted)


def test_arguments_records_and_device_arrays():
    @cuda.jit
    def kernel(events, since, span, out):
        i = cuda.grid(1)
        if i < events.size and events[i].at >= since:
            events[i].at += span
            out[i] = events[i].at

    events = np.zeros(8, EVENT)
    events["at"] = SECONDS
    with emulated() as session:
        device, out = cuda.to_device(events), cuda.to_device(np.zeros(8, "M8[s]"))
        kernel[1, 32](device, SECONDS[3], np.timedelta64(5, "s"), out)
        changed = device.copy_to_host()["at"]
    assert session.ok and (changed[3:] == SECONDS[3:] + np.timedelta64(5, "s")).all()
    assert (changed[:3] == SECONDS[:3]).all() and (out.copy_to_host()[3:] == changed[3:]).all()


def test_no_arithmetic_is_counted():
    report = emulate(kernels()[0], 1, 8, DAYS, SECONDS, SPANS, np.zeros(8, "m8[s]"))
    assert report.arithmetic.empty and report.total("bytes", array="a") == 64


def refused_kernels():
    def dates_added(a, spans, out):
        out[0] = a[0] + a[1]

    def a_number_added(a, spans, out):
        out[0] = spans[0] + 1

    def other_unit(a, spans, out):
        out[0] = spans[0]

    def a_number_stored(a, spans, out):
        out[0] = 5

    def remainder(a, spans, out):
        out[0] = spans[0] % spans[1]

    def truth(a, spans, out):
        if spans[0]:
            out[0] = out[1]

    def in_shared_memory(a, spans, out):
        cuda.shared.array(8, a.dtype)

    def both_in_a_variable(a, spans, out):
        one = a[0]
        if cuda.grid(1) > 1:
            one = spans[0]
        out[0] = one - one

    def as_a_float(a, spans, out):
        out[0] = float(spans[0])

    def atomic(a, spans, out):
        cuda.atomic.max(a, 0, a[1])

    return list(locals().values())


REFUSED = {
    "dates_added": "Numba has no + of datetime64[D] and datetime64[D]",
    "a_number_added": "Numba has no + of timedelta64[D] and int64",
    "other_unit": "Numba stores no timedelta64[D] in out, which holds timedelta64[s]",
    "a_number_stored": "Numba stores no int64 in out, which holds timedelta64[s]",
    "remainder": "Numba has no % of timedelta64[D] and timedelta64[D]",
    "truth": "Numba has no != of timedelta64[D] and int64",
    "in_shared_memory": "Numba makes no shared or local arrays of datetime64[D]: use int64",
    "both_in_a_variable": "Numba has no type that holds both",
    "as_a_float": "Numba converts no timedelta64[D] to float64",
    "atomic": "cuda.atomic.max takes arrays of",
}


@pytest.mark.parametrize("kernel", refused_kernels(), ids=lambda kernel: kernel.__name__)
def test_what_numba_refuses(kernel):
    with pytest.raises(EmulatorError) as refused:
        emulate(kernel, 1, 4, DAYS.copy(), SPANS, np.zeros(8, "m8[s]"))
    assert REFUSED[kernel.__name__] in str(refused.value)
