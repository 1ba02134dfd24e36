"""Records alone and in parts of arrays, fields that are records or arrays, and records in every memory."""

import numba
import numpy as np
import pytest
from numba import cuda, int32

from lockstep import EmulatorError, emulate, emulated

POINT = np.dtype([("x", np.float32), ("y", np.int32)], align=True)
BODY = np.dtype(
    [("pos", POINT), ("v", "f4", (3,)), ("m", "f8", (2, 2)), ("id", "i8"), ("z", "c16")], align=True
)
POINT_TYPE = numba.from_dtype(POINT)
TABLE = np.array([(0.5, 1), (1.5, 2), (2.5, 3)], POINT)
FIELD = "y"


def bodies(length: int) -> np.ndarray:
    made, random = np.zeros(length, BODY), np.random.default_rng(length)
    made["pos"]["x"], made["pos"]["y"] = random.random(length), np.arange(length)
    made["v"], made["m"] = random.random((length, 3)), random.random((length, 2, 2))
    made["id"], made["z"] = 10 * np.arange(length), 1 + 2j
    return made


def points(*shape: int) -> np.ndarray:
    made = np.zeros(shape, POINT)
    made["y"] = np.arange(made.size).reshape(shape)
    made["x"] = made["y"] / 4
    return made


# ---- fields that are records or arrays ----


@cuda.jit(device=True)
def moved(body, distance):
    body.pos.x += distance
    body["v"][0] *= 2
    return body.pos


@cuda.jit
def step(all_bodies, count):
    i = cuda.grid(1)
    if i < count:
        position = moved(all_bodies[i], 0.5)
        position.y = -position.y
        all_bodies[i].z = all_bodies[i].z * 1j
        all_bodies[i].m[1, 0] = len(all_bodies[i].v) + all_bodies[i].m.shape[1]


def test_nested_fields():
    given = bodies(8)
    wanted = given.copy()
    wanted["pos"]["x"] += np.float32(0.5)
    wanted["pos"]["y"] *= -1
    wanted["v"][:, 0] *= 2
    wanted["z"] *= 1j
    wanted["m"][:, 1, 0] = 5
    assert emulate(step, 2, 8, given, 8).ok and (given == wanted).all()


@cuda.jit
def copies_of_fields(source, target):
    i = cuda.grid(1)
    target[i].pos = source[i].pos
    target[i].v = source[i].v
    target[i].m[0] = source[i].m[1, 1]
    target[i].v[1:][0] += 1


def test_fields_are_stored_whole():
    source, target = bodies(4), np.zeros(4, BODY)
    assert emulate(copies_of_fields, 1, 4, source, target).ok
    assert (target["pos"] == source["pos"]).all() and (target["v"][:, 0] == source["v"][:, 0]).all()
    assert (target["v"][:, 1] == source["v"][:, 1] + np.float32(1)).all()
    assert (target["m"][:, 0] == source["m"][:, 1, 1:]).all() and (target["m"][:, 1] == 0).all()


@cuda.jit
def fields_as_arrays(given, out):
    i = cuda.grid(1)
    given["id"][i] += given.pos.y[i]
    out[i] = given["v"][i, 2] + given.m[i, 0, 1] + given["pos"][i].x + given.id.size
    cuda.atomic.add(given["m"], (i, 1, 1), 3.0)
    cuda.atomic.add(given[i].v, 1, 1.0)


def test_a_field_of_all_records_is_an_array():
    given, out = bodies(6), np.zeros(6)
    before = given.copy()
    assert emulate(fields_as_arrays, 1, 6, given, out).ok
    assert (given["id"] == before["id"] + before["pos"]["y"]).all()
    assert np.allclose(out, before["v"][:, 2] + before["m"][:, 0, 1] + before["pos"]["x"] + 6)
    assert np.allclose(given["m"][:, 1, 1], before["m"][:, 1, 1] + 3)
    assert np.allclose(given["v"][:, 1], before["v"][:, 1] + 1)


# ---- one record ----


@cuda.jit
def one_record(body, out):
    i = cuda.grid(1)
    out[i] = body.v[i] + body.m[1, 0] + body["pos"].x
    if i == 0:
        body.id = 77
        body.m[0] = 5


@pytest.mark.parametrize("where", ["host", "device", "copied"])
def test_a_record_is_an_argument(where):
    host = bodies(4)
    with emulated() as session:
        device, out = cuda.to_device(host), cuda.device_array(3)
        given = {"host": host[2], "device": device[2], "copied": cuda.to_device(host[2])}[where]
        one_record[1, 3](given, out)
        changed = {"host": host, "device": device.copy_to_host()}.get(where, host)
        assert given["id"] == 77 and given["pos"]["y"] == 2
        assert np.allclose(out.copy_to_host(), host["v"][2] + host["m"][2, 1, 0] + host["pos"]["x"][2])
    assert session.ok
    if where != "copied":
        assert changed["id"].tolist() == [0, 10, 77, 30] and (changed["m"][2, 0] == 5).all()


@cuda.jit((POINT_TYPE,), device=True)
def twice(one):
    return 2 * one.y


@cuda.jit(int32(POINT_TYPE[:], int32), device=True)
def thrice(given, i):
    return 3 * given[i].y


@cuda.jit((POINT_TYPE[:], POINT_TYPE, int32))
def with_signature(given, one, count):
    i = cuda.grid(1)
    if i < count:
        given[i].x = one.x + i + twice(one) + thrice(given, i)


def test_records_in_signatures():
    given, one = points(4), points(3)[2]
    assert emulate(with_signature, 1, 4, given, one, 4).ok
    assert given["x"].tolist() == [0.5 + i + 4 + 3 * i for i in range(4)]
    with pytest.raises(EmulatorError, match="the signature says"):
        emulate(with_signature, 1, 4, bodies(4), one, 4)


# ---- parts of arrays of records ----


def part_kernels():
    def odd(given, out):
        i = cuda.grid(1)
        part = given[1::2]
        if i < len(part):
            out[i] = part[i].y

    def rows(given, out):
        i = cuda.grid(1)
        out[i] = given.reshape(4, 2)[i // 2][i % 2].y + given.reshape((2, 4)).T[i % 4, i // 4].y

    def backwards(given, out):
        i = cuda.grid(1)
        out[i] = given[::-1][i].y + given[None, i:][0, 0].x

    def in_a_loop(given, out):
        i = cuda.grid(1)
        for k, one in enumerate(given):
            if k == i:
                out[i] = one.y

    def conditional(given, out):
        i = cuda.grid(1)
        one = given[i] if i % 2 else given[0]
        if i == 3:
            one = given[1]
        out[i] = one.y

    def by_name(given, out):
        i = cuda.grid(1)
        out[i] = given[i][FIELD] + given[FIELD][0]

    def sizes(given, out):
        i = cuda.grid(1)
        out[i] = given.size + given.ndim + given.strides[0] + given.itemsize + given.nbytes

    return list(locals().values())


Y = np.arange(8)
PARTS = {
    "odd": [1, 3, 5, 7, 0, 0, 0, 0],
    "rows": Y + Y,
    "backwards": 7 - Y + Y / 4,
    "in_a_loop": Y,
    "conditional": [0, 1, 0, 1, 0, 5, 0, 7],
    "by_name": Y,
    "sizes": [8 + 1 + 8 + 8 + 64] * 8,
}


@pytest.mark.parametrize("kernel", part_kernels(), ids=lambda kernel: kernel.__name__)
def test_parts(kernel):
    out = np.zeros(8)
    assert emulate(kernel, 1, 8, points(8), out).ok
    assert out.tolist() == list(PARTS[kernel.__name__])


@cuda.jit
def in_two_dimensions(given, out):
    i, j = cuda.grid(2)
    if i < given.shape[0] and j < given.shape[1]:
        out[i, j] = given[i, j].x + given[i][j].y + given[:, j][i].x + given[..., j][i].y


@pytest.mark.parametrize("given", [points(5, 6), np.asfortranarray(points(5, 6)), points(10, 12)[::2, 1::2]])
def test_arrays_of_several_dimensions_and_strides(given):
    out = np.zeros(given.shape)
    assert emulate(in_two_dimensions, (2, 2), (4, 4), given, out).ok
    assert (out == 2 * given["x"] + 2 * given["y"]).all()


@cuda.jit
def shifted(given):
    given[1:3] = given[:2]


def test_a_record_is_assigned_to_slices():
    @cuda.jit
    def repeated(given, one):
        given[6:] = one

    given = bodies(8)
    wanted = given.copy()
    wanted[6:] = given[5]
    assert emulate(repeated, 1, 1, given, given[5].copy()).ok and (given == wanted).all()


def test_records_are_assigned_to_slices_with_numbas_runtime_only(monkeypatch):
    given = bodies(8)
    wanted = given.copy()
    wanted[1:3] = given[:2]
    with pytest.raises(EmulatorError, match="here the array of records given, to a part of one, here given"):
        emulate(shifted, 1, 1, given)
    monkeypatch.setattr(cuda.config, "CUDA_ENABLE_NRT", True, raising=False)
    assert emulate(shifted, 1, 1, given).ok and (given == wanted).all()


# ---- every memory ----


@cuda.jit
def histogram(given, out):
    counts = cuda.shared.array(4, POINT_TYPE)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if t < 4:
        counts[t].x = counts[t].y = 0
    cuda.syncthreads()
    if i < given.size:
        key = given[i].y % 4
        cuda.atomic.add(counts.y, key, 1)
        cuda.atomic.add(counts["x"], key, given[i].x)
    cuda.syncthreads()
    if t < 4:
        cuda.atomic.add(out["y"], t, counts[t].y)
        cuda.atomic.max(out["x"], t, counts[t].x)


def test_atomics_on_fields_in_shared_memory():
    given, out = points(100), np.zeros(4, POINT)
    report = emulate(histogram, 2, 64, given, out)
    assert report.ok and (out["y"] == 25).all()
    first, second = (np.bincount(part["y"] % 4, part["x"], 4) for part in np.split(given, [64]))
    assert (out["x"] == np.maximum(first, second)).all()


@cuda.jit
def largest(given, out):
    i = cuda.grid(1)
    own = cuda.local.array(3, POINT)
    for k in range(3):
        own[k].x, own[k].y = given[i].v[k], k
    best = own[0]
    for k in range(1, 3):
        if own[k].x > best.x:
            best = own[k]
    out[i] = best


def test_records_in_local_memory():
    given, out = bodies(8), np.zeros(8, POINT)
    assert emulate(largest, 1, 8, given, out).ok
    assert (out["y"] == given["v"].argmax(axis=1)).all() and (out["x"] == given["v"].max(axis=1)).all()


@cuda.jit
def from_outside(out):
    i = cuda.grid(1)
    table = cuda.const.array_like(TABLE)
    out[i] = table[i].x + TABLE[i].y


def test_constant_records():
    out = np.zeros(3)
    assert emulate(from_outside, 1, 3, out).ok
    assert out.tolist() == [1.5, 3.5, 5.5]


@cuda.jit
def in_dynamic_memory(out):
    own, t = cuda.shared.array(0, POINT), cuda.threadIdx.x
    own[t].y = t
    cuda.syncthreads()
    out[t] = own[7 - t].y + len(own)


def test_dynamic_shared_memory():
    out = np.zeros(8)
    assert emulate(in_dynamic_memory, 1, 8, out, shared_bytes=64).ok
    assert out.tolist() == [15 - t for t in range(8)]


# ---- what is found and refused ----


def wrong_accesses():
    def race(given, out):
        given[0].v[1] = cuda.grid(1)

    def race_inside(given, out):
        given[1].pos.x = cuda.grid(1)

    def beyond(given, out):
        out[cuda.grid(1)] = given[cuda.grid(1) + 1].id

    def unset(given, out):
        shared = cuda.shared.array((2, 2), POINT)
        shared[0, 0].x = 1
        out[cuda.grid(1)] = shared[0, 0].y

    def no_barrier(given, out):
        t = cuda.threadIdx.x
        shared = cuda.shared.array(4, POINT)
        shared[t].y = t
        out[t] = shared[3 - t].y

    return list(locals().values())


FOUND = {
    "race": "writes given[0].v[1], and",
    "race_inside": "writes given[1].pos.x, and",
    "beyond": "reads an element of given[4], but given has 4 elements",
    "unset": "reads shared[0, 0].y before anything has been written to it",
    "no_barrier": "reads it in line",
}


@pytest.mark.parametrize("kernel", wrong_accesses(), ids=lambda kernel: kernel.__name__)
def test_findings_name_the_field(kernel):
    report = emulate(kernel, 1, 4, bodies(4), np.zeros(4))
    assert any(FOUND[kernel.__name__] in found.message for found in report.errors), report.errors


def test_a_text_field_may_be_there_but_not_be_used():
    @cuda.jit
    def kernel(given):
        given[0].a += 1

    @cuda.jit
    def uses(given):
        given[0].a = len(given[0].name)

    given = np.zeros(2, [("a", "f4"), ("name", "S4")])
    assert emulate(kernel, 1, 1, given).ok and given["a"].tolist() == [1, 0]
    with pytest.raises(EmulatorError, match=r"the field name of given holds \|S4, and the emulator supports"):
        emulate(uses, 1, 1, given)


def refused_kernels():
    def all_at_once(given, one):
        given["id"] = 3

    def length(given, one):
        given[0].id = len(one)

    def compared(given, one):
        given[0].id = one == given[0]

    def looped(given, one):
        for field in one:
            given[0].id = field

    def atomic_on_records(given, one):
        cuda.atomic.add(given, 0, 1)

    def other_record(given, one):
        given[0] = one.pos

    return list(locals().values())


REFUSED = {
    "all_at_once": "Numba stores to no field of all records at once: store to given[i].id in a loop",
    "length": "a record of one has no length",
    "compared": "a number is needed here, not a record of one",
    "looped": "not over a record of one",
    "atomic_on_records": "an atomic operation needs an array, not the array of records given",
    "other_record": "only a record with the same fields can be stored in given",
}


@pytest.mark.parametrize("kernel", refused_kernels(), ids=lambda kernel: kernel.__name__)
def test_what_numba_refuses(kernel):
    with pytest.raises(EmulatorError) as refused:
        emulate(kernel, 1, 1, bodies(2), bodies(2)[1])
    assert REFUSED[kernel.__name__] in str(refused.value)
