"""Arrays of records, and numba.cuda.random, which keeps its states in one."""

import math

import numpy as np
import pytest
from numba import cuda
from numba.cuda import random as numba_random

from lockstep import EmulatorError, KernelTypeError, emulate
from lockstep_tests.corpus import zeros

PAIR = np.dtype([("first", np.float32), ("second", np.float32)])
MIXED = np.dtype([("count", np.int32), ("weight", np.float32)])
WHOLE = 2**64 - 1


def pairs(length):
    records = np.zeros(length, PAIR)
    records["first"], records["second"] = np.arange(length), 10 * np.arange(length)
    return records


@cuda.jit
def fields(records, out):
    i = cuda.grid(1)
    record = records[i]
    out[i] = records[i]["first"] + record.second + len(records) + records.shape[0]
    records[i]["first"] = 7
    record["second"] += 1


@cuda.jit
def copied(source, target):
    i = cuda.grid(1)
    target[i] = source[len(source) - 1 - i]


@cuda.jit
def chosen(records, out):
    i = cuda.grid(1)
    record = records[0]
    if i % 2:
        record = records[i]
    out[i] = record["second"]


@cuda.jit
def all_to_the_first(records):
    records[0]["first"] = cuda.grid(1)


@cuda.jit
def mixed(records, out):
    i = cuda.grid(1)
    records[i].count = records[i]["count"] - 5
    out[i] = records[i].weight * records[i].count


def test_fields():
    records, out = pairs(8), zeros(8)
    report = emulate(fields, 1, 8, records, out)
    assert report.ok and (out == 11 * np.arange(8) + 16).all()
    assert (records["first"] == 7).all() and (records["second"] == 10 * np.arange(8) + 1).all()


def test_a_request_covers_every_other_word():
    report = emulate(fields, 1, 32, pairs(32), zeros(32))
    loads = report.accesses.query("array == 'records' and op == 'load'")
    assert loads["sectors"].tolist() == [8] * 3 and loads["bits"].tolist() == [32] * 3


def test_records_are_copied_whole():
    source, target = pairs(8), np.zeros(8, PAIR)
    assert emulate(copied, 1, 8, source, target).ok
    assert (target == source[::-1]).all()


def test_records_that_differ_between_lanes():
    out = zeros(8)
    emulate(chosen, 1, 8, pairs(8), out)
    assert out.tolist() == [10 * i if i % 2 else 0 for i in range(8)]


def test_fields_of_different_types():
    records, out = np.zeros(4, MIXED), zeros(4)
    records["count"], records["weight"] = np.arange(4), 0.5
    emulate(mixed, 1, 4, records, out)
    assert records["count"].tolist() == [-5, -4, -3, -2]
    assert out.tolist() == [-2.5, -2, -1.5, -1]


def test_race_for_a_field():
    assert "global_race" in {f.kind for f in emulate(all_to_the_first, 1, 64, pairs(4)).findings}


LAST, FIRST_NUMBER = -1, 0


def test_fields_by_their_numbers():
    @cuda.jit
    def numbered(records, out):
        i = cuda.grid(1)
        second = 1
        record = records[i]
        out[i] = records[i][FIRST_NUMBER] + 2 * record[LAST] + 100 * record[second] + record[0]
        records[i][-2] = 7
        record[1] += 1

    records, out = np.zeros(4, MIXED), zeros(4)
    records["count"], records["weight"] = np.arange(4), 0.5
    assert emulate(numbered, 1, 4, records, out).ok
    assert out.tolist() == [51, 53, 55, 57]
    assert records["count"].tolist() == [7] * 4 and records["weight"].tolist() == [1.5] * 4


def wrong_kernels():
    def number_too_large(records, out):
        out[0] = records[0][2]

    def number_too_small(records, out):
        records[0][-3] = 1

    def number_that_is_computed(records, out):
        out[0] = records[0][FIRST_NUMBER + 1]

    def number_that_changes(records, out):
        for i in range(2):
            out[i] += records[0][i]
            cuda.syncthreads()

    def number_of_a_thread(records, out):
        out[0] = records[0][cuda.threadIdx.x]

    def no_such_field(records, out):
        out[0] = records[0]["third"]

    def without_a_field(records, out):
        out[0] = records[0]

    def attribute_of_an_array(records, out):
        out.first = 3

    return list(locals().values())


WRONG = {
    "number_too_large": "a record of records has 2 fields, and none has the number 2",
    "number_too_small": "a record of records has 2 fields, and none has the number -3",
    "number_that_is_computed": "Numba must know which field of records this is",
    "number_that_changes": "Numba must know which field of records this is",
    "number_of_a_thread": "Numba must know which field of records this is",
    "no_such_field": "the records of records have the fields first, second, not third",
    "without_a_field": "only numbers can be stored",
    "attribute_of_an_array": "a kernel cannot assign to attributes",
}


@pytest.mark.parametrize("kernel", wrong_kernels(), ids=lambda kernel: kernel.__name__)
def test_what_records_do_not_have(kernel):
    out = zeros(4)
    with pytest.raises(EmulatorError) as refused:
        emulate(kernel, 1, 1, pairs(4), out)
    assert WRONG[kernel.__name__] in str(refused.value)
    assert (out == 0).all()


SIZES = np.dtype([("flag", "?"), ("small", "i2"), ("mass", "f4"), ("z", "c8"), ("w", "c16")], align=True)
GAPS = np.dtype({"names": ["mass", "key"], "formats": ["f8", "i4"], "offsets": [8, 4], "itemsize": 24})


@cuda.jit
def every_size(records, out):
    i = cuda.grid(1)
    record = records[i]
    if record.flag:
        record.small = record.small - 1
        record.z = record.z * 2 + record.mass
        records[i]["w"] = record.z * 1j
    out[i] = record.small + record.w.imag


def test_fields_of_every_size():
    records, out = np.zeros(8, SIZES), zeros(8)
    records["flag"], records["small"], records["mass"] = np.arange(8) % 2, np.arange(8) - 4, 0.5
    records["z"], records["w"] = np.arange(8) * (1 + 2j), 3j
    wanted = records.copy()
    odd = wanted[1::2]
    odd["small"] -= 1
    odd["z"] = odd["z"] * 2 + odd["mass"]
    odd["w"] = odd["z"] * 1j
    report = emulate(every_size, 1, 8, records, out)
    assert report.ok and (records == wanted).all()
    np.testing.assert_array_equal(out, wanted["small"] + wanted["w"].imag)
    assert set(report.accesses.query("array == 'records'")["bits"]) == {8, 16, 32, 64}


@cuda.jit
def masses(records, out):
    i = cuda.grid(1)
    out[i] = records[i].mass + records[i].key


@pytest.mark.parametrize("dtype, sectors", [(GAPS, 24 + 24), ([("mass", "f8"), ("key", "i4")], 12 + 12)])
def test_bytes_at_their_addresses(dtype, sectors):
    """Records of 24 and of 12 bytes: a field of every record is in so many sectors."""
    records, out = np.zeros(32, dtype), zeros(32)
    records["mass"], records["key"] = np.arange(32) / 4, -np.arange(32)
    report = emulate(masses, 1, 32, records, out)
    assert (out == np.float32(-0.75) * np.arange(32)).all()
    assert report.total("bytes", array="records") == 32 * 12
    assert report.total("sectors", array="records") == sectors


def test_one_kernel_for_records_of_several_types():
    for mass in ("f4", "f8"):
        records, out = np.zeros(4, [("mass", mass), ("key", "i4")]), np.zeros(4)
        records["mass"] = 0.1
        report = emulate(masses, 1, 4, records, out)
        assert (out == np.dtype(mass).type(0.1)).all()
        assert set(report.arithmetic["dtype"].astype(str)) == {"float64"}


def test_a_field_that_is_not_aligned():
    with pytest.raises(EmulatorError, match="the field key of records begins at byte 1 of a record"):
        emulate(masses, 1, 1, np.zeros(4, [("mass", "u1"), ("key", "i4")]), zeros(4))


# --- numba.cuda.random ----------------------------------------------------------------------------------


def rotated(x, k):
    return (x << k | x >> 64 - k) & WHOLE


def next_number(state):
    """xoroshiro128+ in Python's integers; changes the state in place."""
    s0, s1 = state
    s1 ^= s0
    result, state[0] = (state[0] + state[1]) & WHOLE, rotated(s0, 55) ^ s1 ^ (s1 << 14 & WHOLE)
    state[1] = rotated(s1, 36)
    return result


def uniform(state):
    return (next_number(state) >> 11) * 2.0**-53


def states(length):
    return np.random.default_rng(1).integers(0, WHOLE, (length, 2), np.uint64)


def as_records(numbers):
    return numbers.copy().view(numba_random.xoroshiro128p_dtype).reshape(-1)


@cuda.jit
def draws(states, out):
    i = cuda.grid(1)
    out[i, 0] = numba_random.xoroshiro128p_uniform_float32(states, i)
    out[i, 1] = numba_random.xoroshiro128p_uniform_float64(states, i)
    out[i, 2] = numba_random.xoroshiro128p_normal_float32(states, i)
    out[i, 3] = cuda.random.xoroshiro128p_normal_float64(states, i)


def test_random_numbers_are_those_of_the_algorithm():
    given, out = states(40), np.zeros((40, 4))
    records = as_records(given)
    report = emulate(draws, 2, 20, records, out)
    assert report.ok
    for row, numbers in enumerate(given.tolist()):
        assert out[row, 0] == np.float32(uniform(numbers))
        assert out[row, 1] == uniform(numbers)
        for column in (2, 3):
            first, second = (np.float32(uniform(numbers)) for _ in range(2))
            normal = math.sqrt(-2 * math.log(first)) * math.cos(2 * math.pi * second)
            assert out[row, column] == pytest.approx(normal, rel=3e-5, abs=1e-6)
        assert records[row].tolist() == tuple(numbers)


def test_loads_and_stores_of_a_state():
    """A step loads both halves of the state and stores them."""
    report = emulate(draws, 1, 32, as_records(states(32)), np.zeros((32, 4)))
    accesses = report.accesses.query("array == 'states'").groupby("op")["requests"].sum()
    assert accesses.to_dict() == {"load": 12, "store": 12}


@cuda.jit
def changes_fields(records, out):
    i = cuda.grid(1)
    records[i].a += 1
    one = records[i]
    one.b *= 2 * i
    one.a -= out[i]
    out[i] = one.a


def test_fields_are_changed_in_place():
    """As Numba compiles them: a load and a store of each field."""
    records = np.zeros(4, [("a", np.float32), ("b", np.int32)])
    records["a"], records["b"] = range(4), 3
    report = emulate(changes_fields, 1, 4, records, out := np.full(4, 0.5))
    assert out.tolist() == [0.5, 1.5, 2.5, 3.5]
    assert records["a"].tolist() == [0.5, 1.5, 2.5, 3.5] and records["b"].tolist() == [0, 6, 12, 18]
    assert report.total("requests", array="records", op="store") == 3


@cuda.jit
def changes_one_field_often(records):
    one = records[cuda.grid(1)]
    one.a += 1
    one.a *= 3
    one.a -= 2
    one.a *= 5
    one.a += 7
    one.a -= 4
    one.a *= 2
    one.a += 6


def test_each_change_of_a_field_is_a_place_of_its_own():
    """The changes are rewritten in memory that is free again: none may be taken for one before it."""
    records = np.zeros(4, [("a", np.float32), ("b", np.int32)])
    report = emulate(changes_one_field_often, 1, 4, records)
    assert records["a"].tolist() == [((((0 + 1) * 3 - 2) * 5 + 7 - 4) * 2) + 6] * 4
    assert report.accesses.groupby("op")["site"].nunique().to_dict() == {"load": 8, "store": 8}


def test_an_array_has_no_fields_to_change():
    @cuda.jit
    def kernel(out):
        out.size += 1

    with pytest.raises(KernelTypeError, match=r"cannot assign to attributes, as to \.size"):
        emulate(kernel, 1, 1, np.zeros(1))
