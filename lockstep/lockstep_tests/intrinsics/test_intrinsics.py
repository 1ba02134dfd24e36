"""The intrinsics: imports anywhere, the effect on the emulator, the instruction on a GPU."""

import re

import numpy as np
import pytest
from numba import cuda, float32

import lockstep.intrinsics as intrinsics
from lockstep import KernelTypeError, emulate
from lockstep.intrinsics import (
    copy16,
    cp_async4,
    cp_async16,
    cp_async_commit,
    cp_async_wait,
    load4,
    rest,
    store2,
    store4,
    u32,
)


def test_every_intrinsic_is_one_documented_object():
    others = ("u32", "ROW_MAJOR", "COL_MAJOR")  # a type and two constants
    functions = [getattr(intrinsics, name) for name in intrinsics.__all__ if name not in others]
    assert len(set(functions)) == len(functions)
    for function in functions:
        assert "compute capability" in " ".join(function.__doc__.split()).lower(), function


def test_wide_loads_and_stores_move_four_neighbours():
    @cuda.jit
    def move(source, target):
        i = u32(cuda.threadIdx.x) * 4
        a, b, c, d = load4(source, (1, i))
        store4(target, (0, i), (d, c, b, a))

    source, target = np.arange(64, dtype=np.float32).reshape(2, 32), np.zeros((1, 32), np.float32)
    report = emulate(move, 1, 8, source, target)
    assert (target[0].reshape(8, 4)[:, ::-1] == source[1].reshape(8, 4)).all()
    assert list(report.accesses["bits"]) == [128, 128]
    assert list(report.accesses["requests"]) == [1, 1]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_two_neighbours_are_stored_in_one_access(dtype):
    @cuda.jit
    def fill(target, value):
        i = u32(cuda.threadIdx.x) * 2
        store2(target, i, (value, -value))

    target = np.zeros(64, dtype)
    report = emulate(fill, 1, 32, target, np.float32(3))
    assert (target.reshape(32, 2) == (3, -3)).all()
    assert list(report.accesses["bits"]) == [2 * 8 * target.itemsize]
    assert list(report.accesses["requests"]) == [1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int8])
def test_copy16_moves_16_bytes_of_any_type(dtype):
    @cuda.jit
    def move(source, target):
        copy16(target, 0, source, 16)

    source = np.arange(32).astype(dtype)
    target = np.zeros(16, dtype)
    emulate(move, 1, 1, source, target)
    width = 16 // source.itemsize
    assert (target[:width] == source[16 : 16 + width]).all()
    assert (target[width:] == 0).all()


def test_a_misaligned_access_is_found():
    @cuda.jit
    def move(source, target):
        store4(target, 0, load4(source, 1))

    report = emulate(move, 1, 1, np.zeros(8, np.float32), np.zeros(8, np.float32))
    assert [finding.kind for finding in report.findings] == ["misaligned_access"]


@cuda.jit
def copy_from(source, target, first, row):
    """target = (row-th of source's rows from `first` on, and of these the element `row` + threadIdx.x)."""
    part = rest(source, first)
    i = u32(cuda.threadIdx.x)
    target[0, i] = part[row, i]
    target[1, i] = rest(part[row], row)[i]


def rows_and_elements(launch):
    source, target = np.arange(5 * 40, dtype=np.float32).reshape(5, 40), np.zeros((2, 32), np.float32)
    target = launch(source, target)
    assert (target[0] == source[3, :32]).all()
    assert (target[1] == source[3, 1:33]).all()


def test_the_rest_of_an_array_begins_at_a_row_or_an_element():
    def launch(source, target):
        report = emulate(copy_from, 1, 32, source, target, 2, 1)
        assert report.findings == []
        return target

    rows_and_elements(launch)


def test_reading_beyond_the_rest_of_an_array_is_found():
    found = emulate(copy_from, 1, 32, np.zeros((5, 40), np.float32), np.zeros((2, 32), np.float32), 4, 1)
    assert {finding.kind for finding in found.errors} == {"out_of_bounds"}


@cuda.jit
def copy_where_some_threads_have_returned(source, target, first):
    x, start = cuda.threadIdx.x, 0
    if x >= 16:
        return
    while start < first:
        start += 1 + x % 16 // 16  # 1, as a value per lane in the emulator
    if first < 0:
        start = x
    target[x] = rest(source, start)[x]


def test_the_rest_must_be_the_same_for_all_active_threads():
    source, target = np.arange(64, dtype=np.float32), np.zeros(16, np.float32)
    assert emulate(copy_where_some_threads_have_returned, 1, 32, source, target, 3).findings == []
    assert target.tolist() == list(range(3, 19))
    with pytest.raises(
        KernelTypeError, match="must be the same for all threads, but is 0 for some, 15 for others"
    ):
        emulate(copy_where_some_threads_have_returned, 1, 32, source, target, -1)


@pytest.mark.gpu
def test_the_gpu_finds_the_rest_of_an_array_where_the_emulator_does():
    def launch(source, target):
        target = cuda.to_device(target)
        copy_from[1, 32](cuda.to_device(source), target, 2, 1)
        return target.copy_to_host()

    rows_and_elements(launch)


@pytest.mark.parametrize("valid", [0, 4, 8, 12, 16])
def test_an_asynchronous_copy_fills_the_remainder_with_zeros(valid):
    @cuda.jit
    def fetch(source, target, valid):
        tile = cuda.shared.array(4, float32, 16)
        cp_async16(tile, 0, source, 0, valid)
        cp_async_commit()
        cp_async_wait(0)
        store4(target, 0, load4(tile, 0))

    source = np.arange(1, 5, dtype=np.float32)
    source[valid // 4 :] = np.nan  # the copy must not read these
    target = np.full(4, np.nan, np.float32)
    report = emulate(fetch, 1, 1, source, target, valid)
    assert report.findings == []
    assert target.tolist() == source[: valid // 4].tolist() + [0] * (4 - valid // 4)


def test_a_copy_of_zero_bytes_does_not_access_its_source():
    @cuda.jit
    def fetch(source, target):
        tile = cuda.shared.array(4, float32, 16)
        cp_async16(tile, 0, source, 400, 0)
        cp_async_commit()
        cp_async_wait(0)
        store4(target, 0, load4(tile, 0))

    target = np.full(4, np.nan, np.float32)
    assert emulate(fetch, 1, 1, np.zeros(4, np.float32), target).findings == []
    assert (target == 0).all()


def test_a_copys_place_does_not_count_from_the_end():
    """A negative index does in Numba's A[i]; the instruction takes an address."""

    @cuda.jit
    def fetch(source, target, place):
        tile = cuda.shared.array(4, float32)
        cp_async4(tile, place, source, 0, 4)
        cp_async_commit()
        cp_async_wait(0)
        target[0] = tile[3]

    report = emulate(fetch, 1, 1, np.ones(1, np.float32), np.zeros(1, np.float32), -1)
    assert next(iter(report.errors)).kind == "out_of_bounds"


def test_a_copy_is_visible_only_after_the_wait():
    @cuda.jit
    def fetch(source, target, patient):
        tile = cuda.shared.array(32, float32)
        i = u32(cuda.threadIdx.x)
        cp_async4(tile, i, source, i, 4)
        cp_async_commit()
        if patient:
            cp_async_wait(0)
        else:
            cp_async_wait(1)
        target[i] = tile[i]

    source, target = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    assert emulate(fetch, 1, 32, source, target, True).findings == []
    assert (target == source).all()
    early = emulate(fetch, 1, 32, source, target, False).findings
    assert {finding.kind for finding in early} == {"async_read_too_early"}


@pytest.mark.gpu
def test_sixteen_bytes_of_float16_are_moved_at_once():
    @cuda.jit
    def move(target, source):
        i = cuda.threadIdx.x * 8
        copy16(target, i, source, i)

    source, target = np.arange(256, dtype=np.float16), np.zeros(256, np.float16)
    move[1, 32](target, source)
    assert (target == source).all()
    (sass,) = move.inspect_sass().values()
    assert len(re.findall(r"\b(?:LDG|STG)\.E\.128\b", sass)) == 2


def rolled_and_not():
    """Two kernels that differ only in `rolled`."""

    def plain(x, n):
        for i in range(n):
            x[i * 7] = i

    def hinted(x, n):
        for i in intrinsics.rolled(range(n)):
            x[i * 7] = i

    return cuda.jit(plain), cuda.jit(hinted)


def test_a_rolled_loop_does_what_the_loop_does():
    found = []
    for kernel in rolled_and_not():
        x = np.zeros(64, np.float32)
        report = emulate(kernel, 1, 1, x, 9)
        found.append((x.tolist(), report.total("lanes", space="global", op="store")))
    assert found[0] == found[1]


@pytest.mark.gpu
def test_a_rolled_loop_has_one_copy_of_its_body():
    stores = []
    for kernel in rolled_and_not():
        x = np.zeros(64, np.float32)
        kernel[1, 1](x, 9)
        assert x[::7].tolist()[:9] == list(range(9))
        (sass,) = kernel.inspect_sass().values()
        stores.append(len(re.findall(r"\bSTG\b", sass)))
    assert stores[1] == 1 < stores[0]
