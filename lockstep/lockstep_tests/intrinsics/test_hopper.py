"""mbarriers, TMA and wgmma: the same kernels on the emulator and, where there is one, on a Hopper GPU."""

from typing import ClassVar

import numpy as np
import pytest
from numba import cuda, float32, uint64
from numba.types import float16

from lockstep import Deadlock, KernelStopped, emulate
from lockstep.errors import KernelTypeError
from lockstep.intrinsics import (
    carve,
    fence_async,
    mbarrier_arrive,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_wait,
    registers_down,
    registers_up,
    stmatrix_x4,
    tensor_map,
    tma_acquire,
    tma_commit,
    tma_load,
    tma_store,
    tma_wait_read,
    u32,
    unroll,
    wgmma,
    wgmma_commit,
    wgmma_fence,
    wgmma_wait,
)
from lockstep.intrinsics.tma import NoTensorMap
from lockstep_tests.launching import launch
from lockstep_tests.plugin import why_no_gpu

BOTH = pytest.mark.parametrize("backend", ["emulator", pytest.param("gpu", marks=pytest.mark.gpu)])


@pytest.fixture(autouse=True)
def hopper_for_the_gpu(request):
    """A GPU of another generation cannot run these."""
    asked = getattr(request.node, "callspec", None)
    if asked and asked.params.get("backend") == "gpu" and why_no_gpu() is None:
        device = cuda.get_current_device()
        if device.compute_capability[0] != 9:
            pytest.skip(f"needs a Hopper GPU, and this is a {device.name.decode()}")


def sound(done):
    """The launch, if the emulator found nothing wrong."""
    assert done.report is None or done.report.findings == []
    return done


def random_float16(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float16)


def swizzle(tile: np.ndarray) -> np.ndarray:
    """A float16 tile in its layout in shared memory, by the table in the docstring of `tma`."""
    rows, length = tile.shape
    chunks = tile.reshape(rows, length // 8, 8)
    stretch = {64: 1, 32: 2, 16: 4}[length]  # rows with the same number to XOR with
    moved = np.empty_like(chunks)
    for row in range(rows):
        for chunk in range(length // 8):
            moved[row, chunk ^ (row // stretch % (length // 8))] = chunks[row, chunk]
    return moved.reshape(rows, length)


# ---- mbarriers ----


@BOTH
def test_warps_pass_numbers_through_mbarriers(backend):
    """Warp 0 writes and arrives, warp 1 waits, reads and arrives; three times."""

    @cuda.jit
    def relay(out):
        box = cuda.shared.array(1, float32)
        bars = cuda.shared.array(2, uint64)
        tid = u32(cuda.threadIdx.x)
        if tid == 0:
            mbarrier_init(bars, 0, 1)
            mbarrier_init(bars, 1, 1)
            fence_async()
        cuda.syncthreads()
        if tid == 0:
            for i in range(3):
                mbarrier_wait(bars, 1, (i + 1) % 2)  # at first as if the box had been emptied
                box[0] = i + 10
                mbarrier_arrive(bars, 0)
        if tid == 32:
            for i in range(3):
                mbarrier_wait(bars, 0, i % 2)
                out[i] = box[0]
                mbarrier_arrive(bars, 1)

    done = sound(launch(relay[1, 64], np.zeros(3, np.float32), backend=backend))
    assert done.arrays["out"].tolist() == [10, 11, 12]


@BOTH
def test_a_barrier_waits_for_all_its_arrivals(backend):
    @cuda.jit
    def gather(out):
        box = cuda.shared.array(96, float32)
        bars = cuda.shared.array(1, uint64)
        tid = u32(cuda.threadIdx.x)
        if tid == 0:
            mbarrier_init(bars, 0, 96)
            fence_async()
        cuda.syncthreads()
        if tid >= 32:
            box[tid - 32] = tid
            mbarrier_arrive(bars, 0)
        else:
            mbarrier_wait(bars, 0, 0)
            out[tid] = box[tid] + box[tid + 32] + box[tid + 64]

    done = sound(launch(gather[1, 128], np.zeros(32, np.float32), backend=backend))
    assert done.arrays["out"].tolist() == [3 * tid + 32 + 64 + 96 for tid in range(32)]


def waiting(init, arrive, announce):
    @cuda.jit
    def wait(out):
        bars = cuda.shared.array(1, uint64)
        tid = u32(cuda.threadIdx.x)
        if init and tid == 0:
            mbarrier_init(bars, 0, 2)
            fence_async()
        cuda.syncthreads()
        if tid < arrive:
            mbarrier_arrive(bars, 0)
        if tid == 40:
            mbarrier_expect(bars, 0, announce)
            mbarrier_wait(bars, 0, 0)
            out[0] = 1

    return wait


def test_an_mbarriers_index_does_not_count_from_the_end():
    """On a GPU element -1 is the memory before the array: the intrinsics compute an address, no more."""

    @cuda.jit
    def before(step):
        bars = cuda.shared.array(2, uint64)
        if cuda.threadIdx.x == 0:
            mbarrier_init(bars, 0, 1)
            mbarrier_init(bars, 1, 1)
            mbarrier_arrive(bars, step - 1)

    assert emulate(before, 1, 32, 2).findings == []
    (finding,) = emulate(before, 1, 32, 0).findings
    assert finding.kind == "out_of_bounds" and "uses bars[-1], but bars has 2 elements" in finding.message


def test_a_wait_that_never_ends_is_reported_as_a_deadlock():
    out = np.zeros(1, np.float32)
    with pytest.raises(
        Deadlock, match=r"warp 1 waits in line \d+ for phase 0 of bars\[0\].* still needs 1 arrival\."
    ):
        emulate(waiting(True, 0, 0), 1, 64, out)
    with pytest.raises(Deadlock, match="expects 128 bytes more than the copies deliver"):
        emulate(waiting(True, 1, 128), 1, 64, out)
    assert out[0] == 0
    assert emulate(waiting(True, 1, 0), 1, 64, out).findings == []
    assert out[0] == 1


def test_an_mbarrier_must_be_initialised_and_not_get_too_many_arrivals():
    with pytest.raises(KernelStopped, match="before mbarrier_init made it one"):
        emulate(waiting(False, 0, 0), 1, 64, np.zeros(1, np.float32))
    with pytest.raises(KernelStopped, match=r"3 threads arrive at bars\[0\], which was initialised for 2"):
        emulate(waiting(True, 3, 0), 1, 64, np.zeros(1, np.float32))


# ---- TMA ----


def copier(rows, columns):
    """A kernel that loads one box and returns its layout in shared memory."""

    @cuda.jit
    def load(source, row, column, out):
        tile = cuda.shared.array((rows, columns), float16, 1024)
        bars = cuda.shared.array(1, uint64)
        tid = u32(cuda.threadIdx.x)
        if tid == 0:
            tma_acquire(source)
            mbarrier_init(bars, 0, 1)
            fence_async()
            mbarrier_expect(bars, 0, rows * columns * 2)
            tma_load(tile, (0, 0), source, (row, column), bars, 0)
        cuda.syncthreads()
        mbarrier_wait(bars, 0, 0)
        for i in range(tid, rows * columns, 32):
            out[i // columns, i % columns] = tile[i // columns, i % columns]

    return load


@BOTH
@pytest.mark.parametrize("columns", [16, 32, 64])
@pytest.mark.parametrize("corner", [(0, 0), (8, 24), (30, 64), (-3, -8), (100, 0)], ids=str)
def test_a_box_arrives_swizzled_with_zeros_outside(columns, corner, backend):
    source = np.full((40, 96), np.nan, np.float16)
    source[:37, :85] = random_float16(37, 85)
    wide = np.zeros((300, 300), np.float16)
    wide[100:137, 100:185] = source[:37, :85]
    row, column = corner
    expected = wide[100 + row : 116 + row, 100 + column : 100 + column + columns]
    matrix = tensor_map(source, (37, 85), (16, columns))
    out = np.full((16, columns), np.nan, np.float16)
    done = sound(launch(copier(16, columns)[1, 32], matrix, row, column, out, backend=backend))
    np.testing.assert_array_equal(done.arrays["out"], swizzle(expected))


def test_a_load_counts_what_exists_and_fills_the_whole_box():
    matrix = tensor_map(random_float16(40, 96), (37, 85), (16, 64))
    report = emulate(copier(16, 64), 1, 32, matrix, 30, 64, np.zeros((16, 64), np.float16))
    rows = report.accesses.set_index(["space", "op", "array"])["bytes"]
    assert rows["global", "load", "source"] == 7 * 21 * 2
    assert rows["shared", "store", "tile"] == 16 * 64 * 2


@BOTH
@pytest.mark.parametrize("length", [8, 16, 24])
def test_stmatrix_stores_the_lanes_fragments_in_rows(length, backend):
    """Row l of the four matrices goes to lane l's address, here row l; the table is in the docstring."""

    @cuda.jit
    def store_rows(held, out):
        tile = cuda.shared.array((32, length), float16, 16)
        own = cuda.local.array(12, float16)
        lane = u32(cuda.threadIdx.x)
        for e in unroll(range(12)):
            own[e] = held[lane, e]
        stmatrix_x4(tile, (lane, 0), own, 4)
        cuda.syncwarp()
        for x in range(8):
            out[lane, x] = tile[lane, x]

    held = random_float16(32, 12)
    done = launch(store_rows[1, 32], held, np.zeros((32, 8), np.float16), backend=backend)
    expected = np.empty((4, 8, 8), np.float16)
    for lane in range(32):
        for e in range(8):
            expected[e // 2, lane // 4, lane % 4 * 2 + e % 2] = held[lane, 4 + e]
    np.testing.assert_array_equal(sound(done).arrays["out"], expected.reshape(32, 8))
    if done.report:
        stores = done.report.accesses.query("array == 'tile' and op == 'store'")
        # With rows 32 bytes apart, eight rows share the banks of four.
        wavefronts = {8: 4, 16: 8, 24: 4}[length]
        assert stores[["bits", "requests", "wavefronts"]].to_numpy().tolist() == [[128, 1, wavefronts]]


@pytest.mark.gpu
def test_a_tensor_map_keeps_its_matrix():
    encoded = tensor_map(cuda.to_device(random_float16(64, 64)), (64, 64), (64, 64))
    assert encoded.matrix.copy_to_host().shape == (64, 64)


@BOTH
@pytest.mark.parametrize(("columns", "stored"), [(67, 72), (72, 72), (65, 72), (64, 64)])
def test_a_box_is_stored_up_to_the_end_of_the_matrix_in_pieces_of_16_bytes(columns, stored, backend):
    @cuda.jit
    def store(target, C, row, column):
        tile = cuda.shared.array((16, 64), float16, 1024)
        tid = u32(cuda.threadIdx.x)
        for i in range(tid, 16 * 64, 32):
            r, c = i // 64, i % 64
            tile[r, (c // 8 ^ r % 8) * 8 + c % 8] = float16(i)
        fence_async()
        cuda.syncwarp()
        if tid == 0:
            tma_acquire(target)
            tma_store(target, (row, column), tile, (0, 0))
            tma_commit()
            tma_wait_read(0)

    C = np.full((20, 80), np.nan, np.float16)
    done = sound(launch(store[1, 32], tensor_map(C, (18, columns), (16, 64)), C, 8, 8, backend=backend))
    expected = np.full((20, 80), np.nan, np.float16)
    expected[8:18, 8:stored] = np.arange(16 * 64).reshape(16, 64)[:10, : stored - 8]
    np.testing.assert_array_equal(done.arrays["C"], expected)


@pytest.mark.parametrize(
    ("matrix", "shape", "box", "words"),
    [
        (np.zeros((8, 64), np.float32), (8, 64), (8, 64), "must be float16"),
        (np.zeros((8, 60), np.float16), (8, 60), (8, 64), "120 bytes apart.*multiple of 16"),
        (np.zeros((8, 64), np.float16).T, (8, 8), (8, 64), "row-major order"),
        (np.zeros((8, 64), np.float16), (9, 64), (8, 64), "9 by 64 elements do not fit"),
        (np.zeros((8, 64), np.float16), (8, 64), (257, 64), "1 to 256 rows, not 257"),
        (np.zeros((8, 64), np.float16), (8, 64), (8, 128), "32, 64 or 128 bytes .*not 128 float16"),
    ],
)
def test_a_matrix_that_tma_cannot_copy_is_refused_with_a_reason(matrix, shape, box, words):
    with pytest.raises(ValueError, match=words):
        tensor_map(matrix, shape, box)


@pytest.mark.skipif(why_no_gpu() is None, reason="there is a GPU, so there is a driver")
def test_without_a_driver_a_tensor_map_for_the_gpu_is_refused_with_a_reason():
    class OnTheGpu:
        shape, dtype, strides, size = (8, 64), np.dtype(np.float16), (128, 2), 512
        __cuda_array_interface__: ClassVar = {"data": (1 << 20, False)}

    with pytest.raises(NoTensorMap, match="needs the NVIDIA driver, which is not here"):
        tensor_map(OnTheGpu, (8, 64), (8, 64))


def test_tiles_that_do_not_fit_the_box_are_found():
    def loader(columns, start):
        @cuda.jit
        def load(source):
            tile = cuda.shared.array((32, columns), float16, 1024)
            bars = cuda.shared.array(1, uint64)
            if cuda.threadIdx.x == 0:
                mbarrier_init(bars, 0, 1)
                fence_async()
                tma_load(tile, (start, 0), source, (0, 0), bars, 0)

        return load

    matrix = tensor_map(random_float16(64, 64), (64, 64), (16, 64))
    with pytest.raises(KernelTypeError, match="a row of tile has 32 elements, a row of the box 64"):
        emulate(loader(32, 0), 1, 32, matrix)
    with pytest.raises(KernelTypeError, match="needs a tensor map"):
        emulate(loader(64, 0), 1, 32, random_float16(64, 64))
    kinds = [
        [finding.kind for finding in emulate(loader(64, start), 1, 32, matrix).findings]
        for start in (0, 4, 24)
    ]
    assert kinds == [[], ["misaligned_access"], ["out_of_bounds"]]


# ---- wgmma ----


def multiplier(n, depth, length):
    """A kernel for one warpgroup: 64 by n elements, `depth` products each; A's tile has rows of `length`."""
    panels, PER_THREAD = max(1, n // 64), n // 2
    size = depth * 64 * 2 + panels * depth * 64 * 2
    slices = depth // length

    @cuda.jit
    def multiply(A, B, C):
        buffer = cuda.shared.array(0, float16, 1024)
        As = carve(buffer, 0, (slices, 64, length))
        Bs = carve(buffer, depth * 64, (panels, depth, 64))
        bars = cuda.shared.array(1, uint64)
        acc = cuda.local.array(PER_THREAD, float32)
        tid = u32(cuda.threadIdx.x)
        if tid == 0:
            tma_acquire(A)
            tma_acquire(B)
            mbarrier_init(bars, 0, 1)
            fence_async()
            mbarrier_expect(bars, 0, size)
            for i in range(slices):
                tma_load(As, (i, 0, 0), A, (0, i * length), bars, 0)
            for j in range(panels):
                tma_load(Bs, (j, 0, 0), B, (0, j * 64), bars, 0)
        for e in unroll(range(PER_THREAD)):
            acc[e] = e % 2
        cuda.syncthreads()
        mbarrier_wait(bars, 0, 0)
        wgmma_fence()
        for p in unroll(range(0, depth, 16)):
            wgmma(n, acc, As, (p // length, 0, p % length), Bs, (0, p, 0))
        wgmma_commit()
        wgmma_wait(0)
        warp, lane = tid // 32, tid % 32
        for e in unroll(range(PER_THREAD)):
            C[warp * 16 + lane // 4 + e // 2 % 2 * 8, e // 4 * 8 + lane % 4 * 2 + e % 2] = acc[e]

    return multiply, size


def multiply(n, depth, length, backend):
    A, B = random_float16(64, depth), random_float16(depth, n, seed=1)
    arguments = tensor_map(A, A.shape, (64, length)), tensor_map(B, B.shape, (depth, 64))
    C = np.full((64, n), np.nan, np.float32)
    kernel, size = multiplier(n, depth, length)
    done = sound(launch(kernel[1, 128, 0, size], *arguments, C, backend=backend))
    expected = A.astype(np.float64) @ B.astype(np.float64) + np.arange(n) % 2
    return done, expected


@BOTH
@pytest.mark.parametrize("n", [8, 64, 128, 192, 256])
def test_a_warpgroup_multiplies_tiles_of_any_width(n, backend):
    done, expected = multiply(n, 64, 64, backend)
    np.testing.assert_allclose(done.arrays["C"], expected, atol=1e-5)


@BOTH
@pytest.mark.parametrize("length", [16, 32, 64])
def test_every_swizzle_is_reversed(length, backend):
    done, expected = multiply(64, 64, length, backend)
    np.testing.assert_allclose(done.arrays["C"], expected, atol=1e-5)


@pytest.mark.parametrize("length", [16, 32, 64])
def test_swizzled_tiles_are_read_without_bank_conflicts(length):
    done, _ = multiply(128, 64, length, "emulator")
    reads = done.report.accesses.query("space == 'shared' and op == 'load'").set_index("array")
    assert (reads["wavefronts"] == reads["ideal_wavefronts"]).all()
    assert reads["bytes"].to_dict() == {"As": 64 * 64 * 2, "Bs": 64 * 128 * 2}  # As: each warp its own rows
    assert done.report.flops == 2 * 64 * 128 * 64


def test_products_need_whole_tiles_and_a_whole_warpgroup():
    def kernel(row, column, threads):
        @cuda.jit
        def multiply():
            As = cuda.shared.array((1, 64, 64), float16, 1024)
            Bs = cuda.shared.array((1, 16, 64), float16, 1024)
            acc = cuda.local.array(32, float32)
            tid = u32(cuda.threadIdx.x)
            for i in range(tid, 64 * 64, 128):
                As[0, i // 64, i % 64] = 1
            for i in range(tid, 16 * 64, 128):
                Bs[0, i // 64, i % 64] = 1
            for e in unroll(range(32)):
                acc[e] = 0
            fence_async()
            cuda.syncthreads()
            if tid < threads:
                wgmma_fence()
                wgmma(64, acc, As, (0, row, column), Bs, (0, 0, 0))
                wgmma_commit()
                wgmma_wait(0)

        return multiply

    def kinds(*settings):
        return [finding.kind for finding in emulate(kernel(*settings), 1, 128).findings]

    assert kinds(0, 0, 128) == []
    assert kinds(0, 48, 128) == []
    assert kinds(8, 0, 128) == ["out_of_bounds"]
    assert kinds(0, 56, 128) == ["out_of_bounds"]
    assert kinds(0, 0, 96) == ["warp_divergence"]
    assert kinds(0, 0, 112) == ["warp_divergence"]


@BOTH
def test_warpgroups_exchange_registers(backend):
    @cuda.jit(launch_bounds=(256, 1))
    def trade(out):
        tid = u32(cuda.threadIdx.x)
        if tid < 128:
            registers_down(40)
        else:
            registers_up(240)
        out[tid] = tid

    done = sound(launch(trade[1, 256], np.zeros(256, np.float32), backend=backend))
    assert (done.arrays["out"] == np.arange(256)).all()


# ---- refusals, and what the compiler makes of them ----


def test_parts_of_shared_memory_must_exist_and_not_overlap():
    def kernel(first, second):
        @cuda.jit
        def cut(out):
            buffer = cuda.shared.array(0, float16, 1024)
            a = carve(buffer, first, (4, 8))
            b = carve(buffer, second, (4, 8))
            a[0, 0] = b[0, 0] = 1
            out[0] = a[0, 0]

        return cut

    out = np.zeros(1, np.float16)
    assert emulate(kernel(0, 32), 1, 1, out, shared_bytes=128).findings == []
    with pytest.raises(KernelTypeError, match="overlap"):
        emulate(kernel(0, 24), 1, 1, out, shared_bytes=128)
    with pytest.raises(KernelTypeError, match="ask for more at the launch"):
        emulate(kernel(0, 33), 1, 1, out, shared_bytes=128)


@pytest.mark.gpu
def test_compiling_for_an_older_gpu_is_refused():
    @cuda.jit
    def fence():
        wgmma_fence()

    with pytest.raises(Exception, match="wgmma_fence needs compute capability"):
        cuda.compile(fence.py_func, (), cc=(8, 0), device=False, abi="numba")


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("intrinsic", "number"),
    [(registers_up, 30), (registers_down, 264)],
    ids=["registers_up", "registers_down"],
)
def test_register_counts_that_the_hardware_does_not_have_are_refused_by_the_compiler(intrinsic, number):
    @cuda.jit
    def wrong():
        intrinsic(number)

    with pytest.raises(Exception, match="256 registers per thread"):
        wrong[1, 128]()
