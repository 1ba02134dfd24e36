"""Provides TMA: one thread requests a whole tile, and a separate unit (the Tensor Memory Accelerator) copies
it.

The unit needs a description of the matrix: a *tensor map*, 128 bytes that the host makes from the matrix's
address, its shape, its row length and the shape of a tile, the *box*. Then

    tma_load(As, (slot, 0, 0), A, (row0, k0), full, slot)

copies the box whose first element is A[row0, k0] to As[slot, 0, 0] and reports its bytes to the mbarrier
full[slot]. Elements outside the matrix arrive as zeros and are not stored, so the kernel clips nothing. A
store has one exception. It writes whole pieces of 16 bytes, so it may write up to seven FP16 values beyond
the end of a row whose length is not a multiple of eight.

Reading a tile by columns of 16 bytes would hit the same banks again and again. So the unit can *swizzle*:
within each 128 bytes by eight rows it permutes the 16-byte chunks. Here the rows of a box are 32, 64 or 128
bytes long. The length selects the swizzle, as wgmma expects it:

| row of the box | position of chunk c of row r in its row |
|---|---|
| 128 bytes, 64 FP16 values | c ^ (r % 8) |
| 64 bytes, 32 FP16 values | c ^ (r // 2 % 4) |
| 32 bytes, 16 FP16 values | c ^ (r // 4 % 2) |

Compute capability 9.0.
"""

from dataclasses import dataclass

import numpy as np

from lockstep.registry import emulates
from lockstep.waiting.tensor_copies import MatrixMap

from ._codegen import global_address, inline_ptx, intrinsic, types
from ._hopper import literal, no_operands, require_hopper, shared_operand

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

# A row of a box has one of these numbers of bytes.
SWIZZLED_ROWS = (32, 64, 128)
MAX_ROWS = 256
# The matrix must start at a multiple of ALIGNMENT bytes, and so must each of its rows.
ALIGNMENT = 16


class NoTensorMap(RuntimeError):
    """An error that says, in one sentence, why no tensor map can be made on this machine."""


# ---- on the host ----


@dataclass(frozen=True)
class TensorMap:
    """A tensor map for the emulator, with the matrix itself.

    array: the buffer of the matrix, (rows, row length). shape: the matrix's own rows and columns. box: rows
    and columns of a tile.
    """

    array: np.ndarray
    shape: tuple[int, int]
    box: tuple[int, int]

    def of(self, matrix):
        """Return the same map for a copy of the matrix on the GPU, as an array of 16 uint64 there."""
        return tensor_map(matrix, self.shape, self.box)

    def in_kernel(self, array) -> MatrixMap:
        """Return what an emulated kernel gets instead; `array` is the machine's copy of the matrix."""
        return MatrixMap(array, self.shape, self.box)


def tensor_map(matrix, shape: tuple[int, int], box: tuple[int, int]):
    """Return the tensor map of a row-major matrix, for `tma_load` and `tma_store`.

    matrix: (at least rows, row length), C-contiguous, float16, starting at a multiple of 16 bytes and with
    rows that are a multiple of 16 bytes long; a NumPy array for the emulator, or an array on the GPU. shape:
    the (rows, columns) of the matrix that exist; TMA treats the rest as outside. box: (rows, columns) of a
    tile, at most 256 rows of 32, 64 or 128 bytes.

    The kernel gets the returned value: a TensorMap for a NumPy array, 16 uint64 on the GPU for an array
    there. Raises ValueError with everything that is wrong, and NoTensorMap if there is no driver, or no GPU
    of compute capability 9.0 or newer.
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
    repeated = row == column_step == 0  # A broadcast view serves to count without running.
    if matrix.size and not repeated and (row % ALIGNMENT or column_step != itemsize):
        problems.append(
            f"its rows are {row} bytes apart; TMA needs row-major order and a multiple of {ALIGNMENT} bytes"
        )
    if matrix.size and not isinstance(matrix, np.ndarray) and _address(matrix) % ALIGNMENT:
        problems.append(f"it must start at a multiple of {ALIGNMENT} bytes")
    if not (0 <= shape[0] <= matrix.shape[0] and 0 <= shape[1] <= matrix.shape[1]):
        problems.append(f"{shape[0]} by {shape[1]} elements do not fit into a buffer of shape {matrix.shape}")
    if not 1 <= box[0] <= MAX_ROWS:
        problems.append(f"a box has 1 to {MAX_ROWS} rows, not {box[0]}")
    if box[1] * itemsize not in SWIZZLED_ROWS:
        problems.append(
            f"a row of the box must be 32, 64 or 128 bytes (16, 32 or 64 float16), not {box[1]} float16"
        )
    return problems


def _address(matrix) -> int:
    return matrix.__cuda_array_interface__["data"][0]


def _encoded(matrix, shape, box):
    """Return the driver's 128 bytes, copied to the GPU. An empty matrix gets the map of a single zero."""
    from numba import cuda

    if 0 in shape:
        matrix, shape = cuda.to_device(np.zeros((1, ALIGNMENT // 2), np.float16)), (1, 1)
    words = _driver_map(_address(matrix), matrix.strides[0], shape, box)
    encoded = cuda.to_device(np.array(words, np.uint64))
    # The map holds only the address of the matrix, so this reference keeps the matrix alive.
    encoded.matrix = matrix
    return encoded


def _driver_map(address: int, row_bytes: int, shape, box) -> list[int]:
    """Return the driver's encoding as 16 words. Raises NoTensorMap if the driver is missing or refuses."""
    try:
        from cuda.bindings import driver

        status, encoded = _encode(driver, address, row_bytes, shape, box)
    except (ImportError, RuntimeError) as missing:
        raise NoTensorMap(f"TMA needs the NVIDIA driver, which is not here: {missing}") from None
    if status != driver.CUresult.CUDA_SUCCESS:
        raise NoTensorMap(f"the driver made no tensor map; TMA needs a Hopper GPU: {status.name}.")
    return [int(word) for word in encoded.opaque]


def _encode(driver, address: int, row_bytes: int, shape, box):
    """Return the status and the map of cuTensorMapEncodeTiled.

    That function takes the innermost dimension first, and no dimension of 0.
    """
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
    """Return (row, column) as 32-bit operands in PTX's order, the column first."""
    row, column = (builder.extract_value(pair, i) for i in range(2))
    return [context.cast(builder, value, kind[i], types.int32) for i, value in ((1, column), (0, row))]


@intrinsic
def tma_acquire(typing_context, tensor_map):
    """Let this thread use a tensor map that the host wrote to global memory.

    The thread calls it once, before any copy. PTX `fence.proxy.tensormap::generic.acquire.sys`; compute
    capability 9.0.
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
    """Start copying the box at `corner` = (row, column) of a matrix (global) to tile[tile_index] (shared).

    One thread calls it, and continues at once. The box's bytes are reported to barriers[barrier] when they
    have landed. That barrier must expect them (`mbarrier_expect`). corner may lie outside the matrix, also
    below zero. Elements outside the matrix arrive as zeros. The tile holds the box's rows back to back,
    swizzled. Its array has rows of the box's row length, or one dimension. The tile must start at a multiple
    of 1024 bytes for boxes with rows of 128 bytes, of 512 for 64, of 256 for 32. PTX
    `cp.async.bulk.tensor.2d.shared::cluster.global`; compute capability 9.0.
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
    """Start copying tile[tile_index] (shared) to the box at `corner` = (row, column) of a matrix (global).

    One thread calls it, after the threads that filled the tile have called `fence_async` and met at a
    barrier. Elements outside the matrix are not stored. But the store writes whole pieces of 16 bytes, also
    the piece in which a row of the matrix ends. Layout and alignment are those of `tma_load`. PTX
    `cp.async.bulk.tensor.2d.global.shared::cta`; compute capability 9.0.
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
    """Commit the stores that this thread started since its last commit as one group.

    PTX `cp.async.bulk.commit_group`; compute capability 9.0.
    """
    return types.void(), no_operands("cp.async.bulk.commit_group;", "tma_commit")


@intrinsic
def tma_wait_read(typing_context, pending):
    """Wait until at most `pending` of this thread's newest groups of stores still read shared memory.

    pending: a compile-time constant. The tiles of the other groups may then be filled again. Their stores
    reach global memory by the end of the launch. PTX `cp.async.bulk.wait_group.read`; compute capability 9.0.
    """
    if literal(pending) is None:
        return None
    text = f"cp.async.bulk.wait_group.read {literal(pending)};"
    return types.void(pending), no_operands(text, "tma_wait_read")


# ---- on the emulator ----


@emulates(tma_acquire, elementwise=False, warp_by_warp=True, needs=(9, 0))
def _acquire(machine, tensor_map):
    return None  # The emulator's map is visible from the start.


@emulates(tma_load, reads=(2,), writes=(0,), elementwise=False, warp_by_warp=True, needs=(9, 0))
def _load(machine, tile, tile_index, tensor_map, corner, barriers, barrier):
    machine.chunk.tensor_copies.load(machine.site, tile, tile_index, tensor_map, corner, barriers, barrier)


@emulates(tma_store, reads=(2,), writes=(0,), elementwise=False, warp_by_warp=True, needs=(9, 0))
def _store(machine, tensor_map, corner, tile, tile_index):
    machine.chunk.tensor_copies.store(machine.site, tensor_map, corner, tile, tile_index)


@emulates(tma_commit, elementwise=False, warp_by_warp=True, needs=(9, 0))
def _commit(machine):
    machine.chunk.tensor_copies.commit()


@emulates(tma_wait_read, elementwise=False, warp_by_warp=True, needs=(9, 0))
def _wait_read(machine, pending):
    machine.chunk.tensor_copies.wait(pending)
