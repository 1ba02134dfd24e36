"""ldmatrix, mma.sync and WMMA: the same kernels on the emulator and, where there is one, on a GPU."""

import linecache

import numpy as np
import pytest
from numba import cuda, float32
from numba.types import float16

from lockstep import emulate, intrinsics
from lockstep.errors import KernelTypeError
from lockstep.intrinsics import (
    COL_MAJOR,
    ROW_MAJOR,
    copy16,
    ldmatrix_x2,
    ldmatrix_x2_trans,
    ldmatrix_x4,
    ldmatrix_x4_trans,
    mma_m16n8k16,
    u32,
    unroll,
    wmma_load_a,
    wmma_load_b,
    wmma_mma,
    wmma_store,
)
from lockstep_tests.launching import launch

BOTH = pytest.mark.parametrize("backend", ["emulator", pytest.param("gpu", marks=pytest.mark.gpu)])
ACC_TYPES = pytest.mark.parametrize("acc_type", [float32, float16], ids=str)
LANE = np.arange(32)[:, None]
LINE, PAIR = LANE // 4, LANE % 4 * 2  # PTX ISA's "groupID" and twice its "threadID_in_group"


def random_float16(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float16)


def loader(load, count, rows):
    """A kernel that holds 32 rows of 8 float16 in shared memory and returns what each lane loads."""

    @cuda.jit
    def kernel(source, out):
        tile = cuda.shared.array((32, 8), float16, 16)
        fragment = cuda.local.array(count, float16)
        lane = u32(cuda.threadIdx.x)
        copy16(tile, (lane, 0), source, (lane, 0))
        cuda.syncwarp()
        load(fragment, tile, (lane % rows, 0))
        for e in unroll(range(count)):
            out[lane, e] = fragment[e]

    return kernel


@BOTH
@pytest.mark.parametrize(
    ("load", "matrices", "transposed"),
    [
        (ldmatrix_x2, 2, False),
        (ldmatrix_x2_trans, 2, True),
        (ldmatrix_x4, 4, False),
        (ldmatrix_x4_trans, 4, True),
    ],
    ids=["x2", "x2_trans", "x4", "x4_trans"],
)
def test_ldmatrix_distributes_8_by_8_matrices(load, matrices, transposed, backend):
    source, count = np.arange(256).astype(np.float16).reshape(32, 8), 2 * matrices
    kernel = loader(load, count, 8 * matrices)
    done = launch(kernel[1, 32], source, np.zeros((32, count), np.float16), backend=backend)
    element = np.arange(count)
    line, pair = LINE + 0 * element, PAIR + element % 2
    row, column = (pair, line) if transposed else (line, pair)
    np.testing.assert_array_equal(done.arrays["out"], source[row + element // 2 * 8, column])
    if done.report:
        assert done.report.findings == []
        shared = done.report.accesses.query("space == 'shared' and op == 'load'")
        assert shared[["bits", "requests", "wavefronts"]].to_numpy().tolist() == [[128, 1, matrices]]


def multiplier(acc_type):
    """A kernel that fills two fragments lane by lane, by the documented table, and multiplies them."""

    @cuda.jit
    def kernel(A, B, C):
        a, b = cuda.local.array(8, float16), cuda.local.array(4, float16)
        acc = cuda.local.array(4, acc_type)
        lane = u32(cuda.threadIdx.x)
        line, pair = lane // 4, lane % 4 * 2
        for e in unroll(range(8)):
            a[e] = A[line + e // 2 % 2 * 8, pair + e % 2 + e // 4 * 8]
        for e in unroll(range(4)):
            b[e] = B[pair + e % 2 + e // 2 * 8, line]
            acc[e] = C[line + e // 2 * 8, pair + e % 2]
        mma_m16n8k16(acc, a, b)
        for e in unroll(range(4)):
            C[line + e // 2 * 8, pair + e % 2] = acc[e]

    return kernel


@BOTH
@ACC_TYPES
def test_mma_multiplies_the_fragments_of_a_warp(acc_type, backend):
    A, B = random_float16(16, 16), random_float16(16, 8, seed=1)
    C = random_float16(16, 8, seed=2).astype(str(acc_type))
    done = launch(multiplier(acc_type)[1, 32], A, B, C, backend=backend)
    expected = A.astype(np.float64) @ B.astype(np.float64) + C
    tolerance = 1e-6 if acc_type is float32 else 4e-3
    assert abs(done.arrays["C"] - expected).max() < tolerance
    if done.report:
        assert done.report.findings == []
        (row,) = done.report.arithmetic.to_dict("records")
        assert (row["op"], row["dtype"], row["lanes"]) == ("mma", str(acc_type), 16 * 8 * 16)
        assert done.report.flops == 2 * 16 * 8 * 16


@BOTH
@pytest.mark.parametrize(
    ("acc_type", "total"), [(float32, 2049), (float16, 2048)], ids=["float32", "float16"]
)
def test_rounding_depends_on_the_type_of_the_accumulator(acc_type, total, backend):
    """2048 + 1 is not a float16: between 2048 and 4096 they are two apart."""
    A, B = np.zeros((16, 16), np.float16), np.zeros((16, 8), np.float16)
    A[0, 0] = B[0, 0] = 1
    C = np.full((16, 8), 2048).astype(str(acc_type))
    C = launch(multiplier(acc_type)[1, 32], A, B, C, backend=backend).arrays["C"]
    assert C[0, 0] == total
    assert (C.reshape(-1)[1:] == 2048).all()


def through_wmma(acc_type, a_order, b_order, c_order):
    @cuda.jit
    def kernel(A, B, C):
        As = cuda.shared.array((16, 24), float16, 32)
        Bs = cuda.shared.array((16, 24), float16, 32)
        Cs = cuda.shared.array((16, 24), acc_type, 32)
        a, b = cuda.local.array(16, float16), cuda.local.array(16, float16)
        acc = cuda.local.array(8, acc_type)
        lane = u32(cuda.threadIdx.x)
        row, column = lane // 2, lane % 2 * 8
        copy16(As, (row, column), A, (row, column))
        copy16(Bs, (row, column), B, (row, column))
        for e in unroll(range(8)):
            acc[e] = 0
        cuda.syncwarp()
        wmma_load_a(a, As, (0, 0), a_order)
        wmma_load_b(b, Bs, (0, 0), b_order)
        wmma_mma(acc, a, b, a_order, b_order)
        wmma_mma(acc, a, b, a_order, b_order)
        wmma_store(Cs, (0, 0), acc, c_order)
        cuda.syncwarp()
        for e in unroll(range(8)):
            C[row, column + e] = Cs[row, column + e]

    return kernel


def stored(matrix, order):
    """The matrix in memory in that order."""
    return np.ascontiguousarray(matrix if order == ROW_MAJOR else matrix.T)


@BOTH
@ACC_TYPES
@pytest.mark.parametrize("c_order", [ROW_MAJOR, COL_MAJOR])
@pytest.mark.parametrize("b_order", [ROW_MAJOR, COL_MAJOR])
@pytest.mark.parametrize("a_order", [ROW_MAJOR, COL_MAJOR])
def test_wmma_multiplies_in_any_order(acc_type, a_order, b_order, c_order, backend):
    A, B = random_float16(16, 16), random_float16(16, 16, seed=1)
    kernel = through_wmma(acc_type, a_order, b_order, c_order)
    C = np.zeros((16, 16), str(acc_type))
    done = launch(kernel[1, 32], stored(A, a_order), stored(B, b_order), C, backend=backend)
    expected = stored(2 * A.astype(np.float64) @ B.astype(np.float64), c_order)
    assert abs(done.arrays["C"] - expected).max() < (1e-6 if acc_type is float32 else 1e-2)
    if done.report:
        assert done.report.findings == []
        assert done.report.flops == 2 * 2 * 16**3


@pytest.mark.parametrize(
    ("acc_type", "order", "bits", "requests", "wavefronts"),
    [
        (float32, ROW_MAJOR, 64, 4, 8),
        (float32, COL_MAJOR, 32, 8, 16),
        (float16, ROW_MAJOR, 32, 4, 4),
        (float16, COL_MAJOR, 32, 4, 4),
    ],
)
def test_the_cost_of_fragment_loads_and_stores(acc_type, order, bits, requests, wavefronts):
    """A load is four 8 by 8 matrices; a store is as many 64- or 32-bit stores as the machine code has."""
    kernel = through_wmma(acc_type, ROW_MAJOR, ROW_MAJOR, order)
    report = launch(
        kernel[1, 32],
        random_float16(16, 16),
        random_float16(16, 16),
        np.zeros((16, 16), str(acc_type)),
        backend="emulator",
    ).report
    shared = report.accesses.query("space == 'shared'").set_index(["array", "op"])
    columns = ["bits", "requests", "wavefronts"]
    assert shared.loc[("As", "load"), columns].tolist() == [128, 1, 4]
    assert shared.loc[("Bs", "load"), columns].tolist() == [128, 1, 4]
    assert shared.loc[("Cs", "store"), columns].tolist() == [bits, requests, wavefronts]


def reader(width, swizzled):
    """A kernel whose warp loads 16 by 16 float16 from rows of `width`."""

    @cuda.jit
    def kernel(source, out):
        tile = cuda.shared.array((16, width), float16, 128)
        fragment = cuda.local.array(8, float16)
        lane = u32(cuda.threadIdx.x)
        for i in range(0, 128, 32):
            row, chunk = (i + lane) // 8, (i + lane) % 8
            place = (chunk ^ (row % 8)) if swizzled else chunk
            copy16(tile, (row, place * 8), source, (row, chunk * 8))
        cuda.syncwarp()
        row, chunk = lane % 16, lane // 16
        ldmatrix_x4(fragment, tile, (row, ((chunk ^ (row % 8)) if swizzled else chunk) * 8))
        for e in unroll(range(8)):
            out[lane, e] = fragment[e]

    return kernel


@BOTH
@pytest.mark.parametrize(
    ("width", "swizzled", "wavefronts"), [(64, False, 32), (72, False, 4), (80, False, 8), (64, True, 4)]
)
def test_rows_of_a_matrix_conflict_unless_they_are_padded_or_swizzled(width, swizzled, wavefronts, backend):
    source = random_float16(16, 64)
    done = launch(reader(width, swizzled)[1, 32], source, np.zeros((32, 8), np.float16), backend=backend)
    element = np.arange(8)
    expected = source[LINE + element // 2 % 2 * 8, PAIR + element % 2 + element // 4 * 8]
    np.testing.assert_array_equal(done.arrays["out"], expected)
    if done.report:
        assert done.report.findings == []
        assert done.report.total("wavefronts", space="shared", op="load") == wavefronts


@ACC_TYPES
def test_counting_without_running_counts_the_same(acc_type):
    from lockstep import emulate

    kernel = through_wmma(acc_type, ROW_MAJOR, COL_MAJOR, ROW_MAJOR)
    reports = [
        emulate(
            kernel,
            1,
            32,
            random_float16(16, 16),
            random_float16(16, 16),
            np.zeros((16, 16), str(acc_type)),
            counts_only=only,
        )
        for only in (False, True)
    ]
    assert reports[0].accesses.equals(reports[1].accesses)
    assert reports[0].arithmetic.equals(reports[1].arithmetic)


# ---- refusals ----


def refused(kernel, *args, block=32):
    with pytest.raises(KernelTypeError) as error:
        launch(kernel[1, block], *args, backend="emulator")
    return str(error.value)


def test_a_fragment_has_the_size_and_type_of_the_instruction():
    @cuda.jit
    def too_short(out):
        tile = cuda.shared.array((8, 8), float16, 16)
        fragment = cuda.local.array(4, float16)
        ldmatrix_x4(fragment, tile, (cuda.threadIdx.x % 8, 0))

    @cuda.jit
    def of_floats(out):
        a = cuda.local.array(8, float32)
        b = cuda.local.array(4, float16)
        acc = cuda.local.array(4, float32)
        mma_m16n8k16(acc, a, b)

    @cuda.jit
    def in_shared_memory(out):
        a, b = cuda.local.array(8, float16), cuda.local.array(4, float16)
        acc = cuda.shared.array(4, float32)
        mma_m16n8k16(acc, a, b)

    out = np.zeros(1, np.float16)
    assert "takes a thread's own array of 8 float16; fragment has 4 float16" in refused(too_short, out)
    assert "a has 8 float32" in refused(of_floats, out)
    assert "acc is in shared memory" in refused(in_shared_memory, out)


def test_matrices_are_loaded_from_shared_memory_only():
    @cuda.jit
    def from_global(A):
        fragment = cuda.local.array(16, float16)
        wmma_load_a(fragment, A, (0, 0), ROW_MAJOR)

    @cuda.jit
    def of_floats(A):
        tile = cuda.shared.array((16, 16), float32, 32)
        fragment = cuda.local.array(16, float16)
        wmma_load_a(fragment, tile, (0, 0), ROW_MAJOR)

    assert "needs a shared array of float16; A holds float16 in global memory" in refused(
        from_global, random_float16(16, 16)
    )
    assert "tile holds float32 in shared memory" in refused(of_floats, random_float16(16, 16))


def found(kernel, *args, block=32):
    report = launch(kernel[1, block], *args, backend="emulator").report
    return {finding.kind: finding for finding in report.findings}


@cuda.jit
def half_a_warp_multiplies(out):
    a, b = cuda.local.array(8, float16), cuda.local.array(4, float16)
    acc = cuda.local.array(4, float32)
    for e in unroll(range(8)):
        a[e] = b[e % 4] = 1
        acc[e % 4] = 0
    lane = cuda.threadIdx.x % 32
    if lane < 16 or cuda.threadIdx.x < 32:
        mma_m16n8k16(acc, a, b)
    out[cuda.threadIdx.x] = acc[0]


def test_an_incomplete_warp_is_found():
    finding = found(half_a_warp_multiplies, np.zeros(64, np.float32), block=64)["warp_divergence"]
    assert finding.threads == [(32, 0, 0)]
    assert finding.message.startswith(
        "Only 16 of the 32 lanes of a warp reach this mma_m16n8k16, thread (32,"
    )


def test_a_block_of_half_a_warp_is_found():
    assert "warp_divergence" in found(half_a_warp_multiplies, np.zeros(16, np.float32), block=16)


def test_lanes_that_load_from_different_places_are_found():
    @cuda.jit
    def kernel(source):
        tile = cuda.shared.array((32, 16), float16, 32)
        fragment = cuda.local.array(16, float16)
        lane = u32(cuda.threadIdx.x)
        copy16(tile, (lane, 0), source, (lane, 0))
        copy16(tile, (lane, 8), source, (lane, 8))
        cuda.syncwarp()
        wmma_load_b(fragment, tile, (lane // 16 * 16, 0), ROW_MAJOR)

    finding = found(kernel, random_float16(32, 16))["warp_divergence"]
    assert "pass different positions to this wmma_load_b" in finding.message


@pytest.mark.parametrize("width", [18, 20])
def test_misaligned_rows_are_found(width):
    @cuda.jit
    def kernel(source):
        tile = cuda.shared.array((16, width), float16, 32)
        fragment = cuda.local.array(16, float16)
        lane = u32(cuda.threadIdx.x)
        for e in range(8):
            tile[lane // 2, lane % 2 * 8 + e] = source[lane // 2, lane % 2 * 8 + e]
        cuda.syncwarp()
        wmma_load_a(fragment, tile, (0, 0), ROW_MAJOR)

    assert found(kernel, random_float16(16, 16))["misaligned_access"].array == "tile"


@pytest.mark.parametrize(
    ("at", "is_found"), [((0, 8), True), ((1, 0), True), ((2, 0), False), ((0, 0), False)]
)
def test_a_fragment_that_starts_at_a_multiple_of_16_bytes_only_is_found(at, is_found):
    @cuda.jit
    def kernel(source):
        tile = cuda.shared.array((32, 24), float16)
        a = cuda.local.array(16, float16)
        for i in range(cuda.threadIdx.x, 32 * 24, 32):
            tile[i // 24, i % 24] = source[i // 24, i % 24]
        cuda.syncwarp()
        wmma_load_a(a, tile, at, ROW_MAJOR)

    assert ("misaligned_access" in found(kernel, random_float16(32, 24))) == is_found


def test_an_uninitialised_fragment_is_found():
    @cuda.jit
    def kernel(out):
        a, b = cuda.local.array(8, float16), cuda.local.array(4, float16)
        acc = cuda.local.array(4, float32)
        for e in unroll(range(8)):
            a[e] = b[e % 4] = 1
        mma_m16n8k16(acc, a, b)
        out[cuda.threadIdx.x] = acc[0]

    assert found(kernel, np.zeros(32, np.float32))["uninitialised_read"].array == "acc"


@pytest.mark.gpu
def test_on_a_gpu_a_wrong_fragment_is_refused_with_a_reason():
    from numba.core.errors import TypingError

    @cuda.jit
    def kernel(out):
        a, b = cuda.local.array(8, float32), cuda.local.array(4, float16)
        acc = cuda.local.array(4, float32)
        mma_m16n8k16(acc, a, b)

    with pytest.raises(TypingError, match="takes a thread's own array of float16 as a fragment"):
        launch(kernel[1, 32], np.zeros(1, np.float32), backend="gpu")


@pytest.mark.parametrize(
    "call",
    (
        "wmma_load_a(pair, tile, 0, ROW_MAJOR)",
        "wmma_load_b(pair, tile, (0,), ROW_MAJOR)",
        "wmma_store(sums, 0, acc, ROW_MAJOR)",
        "ldmatrix_x4(single, tile, 0)",
    ),
)
def test_a_place_with_too_few_indices_is_refused_with_a_reason(call):
    names = vars(intrinsics) | {"cuda": cuda, "float16": float16, "float32": float32}
    lines = (
        "def kernel():",
        "    tile = cuda.shared.array((16, 16), float16, 32)",
        "    sums = cuda.shared.array((16, 16), float32, 32)",
        "    pair, single = cuda.local.array(16, float16), cuda.local.array(8, float16)",
        "    acc = cuda.local.array(8, float32)",
        f"    {call}",
    )
    text, filename = "\n".join(lines), f"<{call}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), names)
    with pytest.raises(KernelTypeError, match="has 2 dimensions, but 1 index is given"):
        emulate(cuda.jit(names["kernel"]), 1, 32)
