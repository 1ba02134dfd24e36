"""TMA: one thread asks for a whole tile, and a unit of its own (the Tensor Memory Accelerator) copies it.

The unit has to be told once what the matrix looks like. That is a *tensor map*, 128 bytes that the host makes
from the matrix's address, its extent, its row length and the size of a tile, the *box*. Then

    tma_load(As, (slot, 0, 0), A, (row0, k0), full, slot)

copies the box whose first element is A[row0, k0] to As[slot, 0, 0] and reports its bytes to the mbarrier
full[slot]. What lies outside the matrix arrives as zeros and is not stored: nothing has to be clipped. Only
a store is not that exact: it writes 16 bytes or nothing, so up to seven halves behind a row's end if the
row's length is no multiple of eight.

A tile read by columns of 16 bytes would meet the same banks again and again, so the unit can *swizzle*:
within each 128 bytes by eight rows it exchanges the 16-byte chunks. The rows of a box are 32, 64 or 128
bytes long here and the swizzle is that of their length, as wgmma reads it:

| row of the box | where chunk c of row r of a tile lies in its row |
|---|---|
| 128 bytes, 64 halves | c ^ (r % 8) |
| 64 bytes, 32 halves | c ^ (r // 2 % 4) |
| 32 bytes, 16 halves | c ^ (r // 4 % 2) |

Compute capability 9.0.
"""

from dataclasses import dataclass

import numpy as np

from gemm_course.emulator import MatrixMap, emulates
from gemm_course.intrinsics._codegen import global_address, inline_ptx, intrinsic, types
from gemm_course.intrinsics._hopper import literal, no_operands, require_hopper, shared_operand

__all__ = [
    "NoTensorMap",
    "TensorMap",
    "tensor_map",
    "tma_acquire",
    "tma_commit",
    "tma_load",
    "tma_store",
    "tma_wait_read",
]

SWIZZLED_ROWS = (32, 64, 128)  # bytes
MOST_ROWS = 256
ALIGNMENT = 16  # bytes, of the matrix's start and of its row length


class NoTensorMap(RuntimeError):
    """The driver here cannot make a tensor map; the message is one sentence that says why."""


# ---- on the host ----


@dataclass(frozen=True)
class TensorMap:
    """A tensor map for the emulator: what the unit would know, with the matrix itself.

    array: the matrix in its buffer, (rows, row length). shape: how much of it is the matrix. box: rows and
    columns of a tile.
    """

    array: np.ndarray
    shape: tuple[int, int]
    box: tuple[int, int]

    def of(self, matrix):
        """The same map of a copy of the matrix on the GPU, as 16 uint64 there."""
        return tensor_map(matrix, self.shape, self.box)

    def in_kernel(self, array) -> MatrixMap:
        """What an emulated kernel gets for it: `array` is the matrix as the machine keeps it."""
        return MatrixMap(array, self.shape, self.box)


def tensor_map(matrix, shape: tuple[int, int], box: tuple[int, int]):
    """The tensor map of a row-major matrix, for `tma_load` and `tma_store`.

    matrix: (at least rows, row length), C-contiguous, float16, starting at a multiple of 16 bytes and with
    rows that are a multiple of 16 bytes long; a NumPy array to be emulated, or an array on the GPU. shape:
    (rows, columns) of it that exist; the rest counts as outside. box: (rows, columns) of a tile, at most
    256 rows, of 32, 64 or 128 bytes.

    Returns a TensorMap for a NumPy array, 16 uint64 on the GPU for an array there, to be passed to the
    kernel. Raises ValueError with all that is wrong; NoTensorMap where the driver or the GPU, of compute
    capability 9.0 or newer, is missing.
    """
    problems = _problems(matrix, shape, box)
    if problems:
        raise ValueError("no tensor map can be made: " + "; ".join(problems))
    shape, box = tuple(map(int, shape)), tuple(map(int, box))
    return TensorMap(matrix, shape, box) if isinstance(matrix, np.ndarray) else _encoded(matrix, shape, box)


def _problems(matrix, shape, box) -> list[str]:
    if len(matrix.shape) != 2 or matrix.dtype != np.float16:
        return [f"the matrix must be float16 with two dimensions, not {matrix.dtype} of shape {matrix.shape}"]
    itemsize = matrix.dtype.itemsize
    row, column_step = matrix.strides
    problems = []
    repeated = row == column_step == 0  # a broadcast view, for counting without running
    if matrix.size and not repeated and (row % ALIGNMENT or column_step != itemsize):
        problems.append(
            f"its rows are {row} bytes apart; TMA needs rows side by side and a multiple of {ALIGNMENT} bytes"
        )
    if matrix.size and not isinstance(matrix, np.ndarray) and _address(matrix) % ALIGNMENT:
        problems.append(f"it must start at a multiple of {ALIGNMENT} bytes")
    if not (0 <= shape[0] <= matrix.shape[0] and 0 <= shape[1] <= matrix.shape[1]):
        problems.append(f"{shape[0]} by {shape[1]} elements do not fit into a buffer of shape {matrix.shape}")
    if not 1 <= box[0] <= MOST_ROWS:
        problems.append(f"a box has 1 to {MOST_ROWS} rows, not {box[0]}")
    if box[1] * itemsize not in SWIZZLED_ROWS:
        problems.append(
            f"a row of the box must be 32, 64 or 128 bytes (16, 32 or 64 halves), not {box[1]} halves"
        )
    return problems


def _address(matrix) -> int:
    return matrix.__cuda_array_interface__["data"][0]


def _encoded(matrix, shape, box):
    """The driver's 128 bytes, copied to the GPU. A map must be of something: of nothing, it is one zero's."""
    from numba import cuda

    if 0 in shape:
        matrix, shape = cuda.to_device(np.zeros((1, ALIGNMENT // 2), np.float16)), (1, 1)
    words = _driver_map(_address(matrix), matrix.strides[0], shape, box)
    encoded = cuda.to_device(np.array(words, np.uint64))
    encoded.matrix = matrix  # the map holds its address only: it must not be freed before the map
    return encoded


def _driver_map(address: int, row_bytes: int, shape, box) -> list[int]:
    """What the driver makes of it, 16 words. Raises NoTensorMap."""
    try:
        from cuda.bindings import driver

        status, encoded = _encode(driver, address, row_bytes, shape, box)
    except (ImportError, RuntimeError) as missing:
        raise NoTensorMap(f"TMA needs the NVIDIA driver, which is not here: {missing}") from None
    if status != driver.CUresult.CUDA_SUCCESS:
        raise NoTensorMap(f"the driver made no tensor map, which needs a Hopper GPU: {status.name}.")
    return [int(word) for word in encoded.opaque]


def _encode(driver, address: int, row_bytes: int, shape, box):
    """cuTensorMapEncodeTiled: innermost dimension first; a dimension of the matrix may not be 0."""
    swizzle = getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{box[1] * 2}B")
    return driver.cuTensorMapEncodeTiled(
        driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        2,
        address,
        [driver.cuuint64_t(max(extent, 1)) for extent in (shape[1], shape[0])],
        [driver.cuuint64_t(row_bytes)],
        [driver.cuuint32_t(extent) for extent in (box[1], box[0])],
        [driver.cuuint32_t(1), driver.cuuint32_t(1)],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        swizzle,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )


# ---- in the kernel ----


def _is_map(kind) -> bool:
    return isinstance(kind, types.Array) and kind.dtype == types.uint64 and kind.ndim == 1


def _is_pair(kind) -> bool:
    return isinstance(kind, types.BaseTuple) and len(kind) == 2


def _map_operand(context, builder, kind, array):
    return global_address(builder, context.make_array(kind)(context, builder, value=array).data)


def _coordinates(context, builder, kind, pair):
    """PTX's order, columns first, as 32-bit operands."""
    row, column = (builder.extract_value(pair, i) for i in range(2))
    return [context.cast(builder, value, kind[i], types.int32) for i, value in ((1, column), (0, row))]


@intrinsic
def tma_acquire(typing_context, tensor_map):
    """Let this thread use a tensor map that the host put into global memory; once, before the first copy.

    PTX `fence.proxy.tensormap::generic.acquire.sys`; compute capability 9.0.
    """
    if not _is_map(tensor_map):
        return None

    def generate(context, builder, signature, arguments):
        require_hopper("tma_acquire")
        operand = _map_operand(context, builder, tensor_map, arguments[0])
        inline_ptx(builder, "fence.proxy.tensormap::generic.acquire.sys [$0], 128;", "l", [operand])
        return context.get_dummy_value()

    return types.void(tensor_map), generate


@intrinsic
def tma_load(typing_context, tile, tile_index, tensor_map, corner, barriers, barrier):
    """Start copying the box at `corner` = (row, column) of a matrix (global) to tile[tile_index] on (shared).

    One thread calls it, and goes on at once; barriers[barrier] hears of the box's bytes when they have
    landed, and must be told to expect them (`mbarrier_expect`). corner may lie outside, also below zero;
    what is outside arrives as zeros. The tile's rows are the box's, back to back, swizzled; its array has
    rows of that length or one dimension. It must start at a multiple of 1024 bytes for boxes with rows of 128
    bytes, of 512 for 64, of 256 for 32. PTX `cp.async.bulk.tensor.2d.shared::cluster.global`; compute
    capability 9.0.
    """
    if not (_is_map(tensor_map) and _is_pair(corner)):
        return None

    def generate(context, builder, signature, arguments):
        require_hopper("tma_load")
        kinds = signature.args
        operands = [
            shared_operand(context, builder, kinds[0], arguments[0], kinds[1], arguments[1]),
            _map_operand(context, builder, kinds[2], arguments[2]),
            *_coordinates(context, builder, kinds[3], arguments[3]),
            shared_operand(context, builder, kinds[4], arguments[4], kinds[5], arguments[5]),
        ]
        text = (
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
            "[$0], [$1, {$2, $3}], [$4];"
        )
        inline_ptx(builder, text, "r,l,r,r,r", operands)
        return context.get_dummy_value()

    return types.void(tile, tile_index, tensor_map, corner, barriers, barrier), generate


@intrinsic
def tma_store(typing_context, tensor_map, corner, tile, tile_index):
    """Start copying tile[tile_index] on (shared) to the box at `corner` = (row, column) of a matrix (global).

    One thread calls it, after `fence_async` by those that filled the tile and a barrier among them. What lies
    outside the matrix is left out, by 16 bytes: those in which a row of the matrix ends are stored whole.
    Layout and alignment as for `tma_load`. PTX `cp.async.bulk.tensor.2d.global.shared::cta`; compute
    capability 9.0.
    """
    if not (_is_map(tensor_map) and _is_pair(corner)):
        return None

    def generate(context, builder, signature, arguments):
        require_hopper("tma_store")
        kinds = signature.args
        operands = [
            _map_operand(context, builder, kinds[0], arguments[0]),
            *_coordinates(context, builder, kinds[1], arguments[1]),
            shared_operand(context, builder, kinds[2], arguments[2], kinds[3], arguments[3]),
        ]
        text = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [$0, {$1, $2}], [$3];"
        inline_ptx(builder, text, "l,r,r,r", operands)
        return context.get_dummy_value()

    return types.void(tensor_map, corner, tile, tile_index), generate


@intrinsic
def tma_commit(typing_context):
    """Close the stores this thread started since its last commit into one group.

    PTX `cp.async.bulk.commit_group`; compute capability 9.0.
    """
    return types.void(), no_operands("cp.async.bulk.commit_group;", "tma_commit")


@intrinsic
def tma_wait_read(typing_context, pending):
    """Wait until at most `pending` of this thread's newest groups of stores still read shared memory.

    pending: a compile-time constant. The tiles may then be filled anew; what was stored reaches global memory
    by the end of the launch. PTX `cp.async.bulk.wait_group.read`; compute capability 9.0.
    """
    if literal(pending) is None:
        return None
    text = f"cp.async.bulk.wait_group.read {literal(pending)};"
    return types.void(pending), no_operands(text, "tma_wait_read")


# ---- on the emulator ----


@emulates(tma_acquire, elementwise=False, warp_by_warp=True)
def _acquire(machine, tensor_map):
    return None  # what the host wrote is there from the start


@emulates(tma_load, reads=(2,), writes=(0,), elementwise=False, warp_by_warp=True)
def _load(machine, tile, tile_index, tensor_map, corner, barriers, barrier):
    machine.tensor_copies.load(machine.site, tile, tile_index, tensor_map, corner, barriers, barrier)


@emulates(tma_store, reads=(2,), writes=(0,), elementwise=False, warp_by_warp=True)
def _store(machine, tensor_map, corner, tile, tile_index):
    machine.tensor_copies.store(machine.site, tensor_map, corner, tile, tile_index)


@emulates(tma_commit, elementwise=False, warp_by_warp=True)
def _commit(machine):
    machine.tensor_copies.commit()


@emulates(tma_wait_read, elementwise=False, warp_by_warp=True)
def _wait_read(machine, pending):
    machine.tensor_copies.wait(pending)
