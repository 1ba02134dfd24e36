"""Emulates instructions that a whole warp executes together, such as those of the Tensor Cores.

Each of the 32 lanes provides a part of the operands, and gets a part of the result in its own registers, a
*fragment*. So all lanes of a warp must reach the instruction. They must pass the same value for an operand
that the whole warp shares. The functions here take the running machine, and the intrinsics call them.
"""

import numpy as np

from lockstep.counts.counting import MATRIX_LOAD
from lockstep.errors import KernelTypeError
from lockstep.findings import Finding, thread_name
from lockstep.machine.words import kind_of
from lockstep.memory.storage import DeviceArray, wrong_number_of_indices
from lockstep.values.dtypes import BOOL, FLOAT32, dtype_of, name_of
from lockstep.values.geometry import WARP
from lockstep.values.lanes import Lanes


class Layout:
    """An assignment of the elements of a matrix of ``shape`` to the lanes of a warp.

    rows, columns: (32, elements per lane). Every element of the matrix is in at least one lane.
    """

    def __init__(self, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]):
        self.rows, self.columns, self.shape = rows, columns, shape
        self.per_lane = rows.shape[1]
        self._element = rows * shape[1] + columns
        _, self._place = np.unique(self._element, return_index=True)

    def matrices(self, fragments: np.ndarray) -> np.ndarray:
        """Turn fragments, (..., lanes, per_lane), into matrices, (..., warps, rows, columns)."""
        warps = fragments.reshape(*fragments.shape[:-2], -1, WARP * self.per_lane)
        return warps[..., self._place].reshape(*warps.shape[:-1], *self.shape)

    def fragments(self, matrices: np.ndarray) -> np.ndarray:
        """Turn matrices, (..., warps, rows, columns), into fragments, (..., lanes, per_lane)."""
        held = matrices.reshape(*matrices.shape[:-2], -1)[..., self._element]
        return held.reshape(*held.shape[:-3], -1, self.per_lane)


# ---- requirements ----


def require_whole_warps(machine, instruction: str):
    """Report the warps of which only some lanes reach the instruction."""
    mask = machine.unit.mask
    if mask.array is None or not mask.any:
        return
    if "partial warps" not in mask.memo:
        mask.memo["partial warps"] = _partial_warps(mask.array, machine.chunk.geometry)
    if mask.memo["partial warps"] is not None:
        _report(
            machine,
            mask.memo["partial warps"],
            lambda who, present: (
                f"Only {present} of the 32 lanes of a warp reach this {instruction}, {who} among them. The "
                "whole warp must execute it together; otherwise its result is undefined."
            ),
        )


def _partial_warps(active: np.ndarray, geometry) -> np.ndarray | None:
    """Return, as booleans, the active lanes of warps in which other lanes are idle, or None without any."""
    shape = np.broadcast_shapes(active.shape, geometry.shape)
    warps = np.broadcast_to(active, shape).reshape(*shape[:-1], -1, WARP)
    partial = (warps & ~warps.all(axis=-1, keepdims=True)).reshape(shape)
    return partial if partial.any() else None


def require_uniform(machine, instruction: str, what: str, *values):
    """Report the warps whose lanes pass different values for an operand that the whole warp shares."""
    for value in values:
        if (
            type(value) is Lanes
            and (partial := _differing_lanes(value, machine.unit.mask, machine.chunk.geometry)) is not None
        ):
            _report(
                machine,
                partial,
                lambda who, present: (
                    f"The lanes of a warp, {who} among them, pass different {what} to this {instruction}, "
                    "which takes one for the whole warp."
                ),
            )
            return


def _differing_lanes(value: Lanes, mask, geometry) -> np.ndarray | None:
    """Return, as booleans, the active lanes of warps whose active lanes hold different numbers, or None."""
    shape = np.broadcast_shapes(value.shape, geometry.shape)
    active = np.broadcast_to(True if mask.array is None else mask.array, shape).reshape(-1, WARP)
    numbers = np.broadcast_to(value.pattern.array, shape).reshape(-1, WARP)
    first = np.take_along_axis(numbers, active.argmax(axis=1)[:, None], axis=1)
    partial = active & (active & (numbers != first)).any(axis=1, keepdims=True)
    return partial.reshape(shape) if partial.any() else None


def _report(machine, lanes: np.ndarray, sentence):
    """Report the warps of these lanes, given as booleans.

    ``sentence(who, present)`` returns the message about the first lane. ``present`` counts its warp's lanes.
    """
    at = machine.sites[machine.site]

    def make():
        *batch, row, column, linear = (int(i) for i in np.argwhere(lanes)[0])
        warp = slice(linear // WARP * WARP, (linear // WARP + 1) * WARP)
        present = int(np.count_nonzero(lanes[(*batch, row, column, warp)]))
        block, who = (
            machine.chunk.block_coordinates(row, column),
            machine.chunk.geometry.thread_coordinates(linear),
        )
        return Finding(
            kind="warp_divergence",
            line=at.line,
            message=sentence(thread_name(who, block), present),
            block=block,
            threads=[who],
            function=at.function,
            site=machine.site,
        )

    machine.findings.add(("warp_divergence", machine.site), int(np.count_nonzero(lanes)), make)


# ---- registers ----


def read_fragment(machine, instruction: str, fragment, layout: Layout, *dtypes) -> np.ndarray | None:
    """Return the matrices that the lanes hold in fragments, (..., warps, rows, columns).

    Return None when counting.
    """
    _check_fragment(instruction, fragment, layout.per_lane, dtypes)
    values = machine.read(machine.site, fragment, (0,), layout.per_lane, boundary=1)
    if machine.log is not None:
        return None
    return layout.matrices(_side_by_side(values, machine.chunk.geometry.width))


def write_fragment(machine, instruction: str, fragment, layout: Layout, matrices: np.ndarray | None, *dtypes):
    """Write each lane's part of the matrices to its fragment. ``matrices`` is None when counting."""
    _check_fragment(instruction, fragment, layout.per_lane, dtypes)
    if matrices is None:
        values = (fragment.dtype.type(0),) * layout.per_lane
    else:
        held = layout.fragments(matrices)
        values = tuple(held[..., e] for e in range(layout.per_lane))
    machine.write(machine.site, fragment, (0,), values, layout.per_lane, boundary=1)


def _check_fragment(instruction, fragment, per_lane, dtypes):
    right = isinstance(fragment, DeviceArray) and fragment.space == "local" and fragment.shape == (per_lane,)
    if right and name_of(fragment.dtype) in dtypes:
        return
    wanted = f"{instruction} takes a thread's own array of {per_lane} {' or '.join(dtypes)}"
    if not isinstance(fragment, DeviceArray):
        single = isinstance(fragment, (np.ndarray, np.generic, int, float))  # An array has a number per lane.
        given = "a single number" if single else kind_of(fragment)
        raise KernelTypeError(f"{wanted}, cuda.local.array, as a fragment, not {given}")
    if fragment.space != "local":
        raise KernelTypeError(f"{wanted}, cuda.local.array; {fragment.name} is in {fragment.space} memory")
    shape = " by ".join(map(str, fragment.shape))
    raise KernelTypeError(f"{wanted}; {fragment.name} has {shape} {fragment.dtype}")


def require_shared(instruction: str, array, *dtypes):
    """Refuse an array that is not in shared memory or whose dtype is not one of ``dtypes``."""
    if not isinstance(array, DeviceArray) or array.space != "shared" or name_of(array.dtype) not in dtypes:
        given = f"this is {kind_of(array)}"
        if isinstance(array, DeviceArray):
            given = f"{array.name} holds {array.dtype} in {array.space} memory"
        raise KernelTypeError(f"{instruction} needs a shared array of {' or '.join(dtypes)}; {given}")


def require_place(instruction: str, array: DeviceArray, index: tuple):
    """Refuse an index unless it has one integer for each dimension of the array."""
    if len(index) != array.ndim:
        place = "(0, 0)" if array.ndim == 2 else f"{array.ndim} numbers in brackets"
        raise KernelTypeError(
            f"the place that {instruction} takes needs {array.ndim} indices, such as {place}: "
            f"{wrong_number_of_indices(array, index)}"
        )
    for position in index:
        dtype = dtype_of(position)
        if dtype is None or dtype.kind not in "iub":
            raise KernelTypeError(f"an index must be an integer, not {kind_of(position)}")


# ---- arithmetic ----


def multiply_add(machine, a, b, c, dtype: np.dtype):
    """Return a @ b + c with float16 a and b, or None when counting.

    The products are exact, added in float32 and rounded once to ``dtype``. A Tensor Core instead cuts off
    bits to align the products, so the last bits differ.
    """
    if machine.log is not None:
        return None
    product = np.matmul(a.astype(FLOAT32), b.astype(FLOAT32))
    return (c.astype(FLOAT32) + product).astype(dtype)


# ---- rows of shared memory ----

# The 16 bytes at a lane's address are a row of ROW elements, 2 bytes each.
ROW = 8


def load_rows(machine, array: DeviceArray, index: tuple, rows: int) -> np.ndarray | None:
    """Load rows of 8 float16 from the addresses of each warp's first ``rows`` lanes: (..., warps, rows, 8).

    These loads count as 128-bit loads of 8 by 8 matrices. A matrix takes one wavefront if no two of its rows
    share banks. Returns None when counting.
    """
    saved = machine.unit.mask
    if rows < WARP:
        machine.unit.mask = saved.where(_first_lanes(machine.chunk.geometry, rows))
    values = machine.read(machine.site, array, index, ROW, counted_as=MATRIX_LOAD)
    machine.unit.mask = saved
    if machine.log is not None:
        return None
    lanes = _side_by_side(values, machine.chunk.geometry.width)
    return lanes.reshape(*lanes.shape[:-2], -1, WARP, ROW)[..., :rows, :]


def store_rows(machine, array: DeviceArray, index: tuple, layout: Layout, fragments: tuple):
    """Store the matrices that a warp holds in fragments, with a row of 8 elements at each lane's address.

    These stores count as 128-bit stores. 8 lanes take one wavefront if no two of their rows share banks.
    """
    values = (array.dtype.type(0),) * ROW
    if machine.log is None:
        rows = layout.matrices(_side_by_side(fragments, machine.chunk.geometry.width))
        lanes = rows.reshape(*rows.shape[:-3], -1, ROW)
        values = tuple(lanes[..., element] for element in range(ROW))
    machine.write(machine.site, array, index, values, ROW)


def _side_by_side(values: tuple, width: int) -> np.ndarray:
    """Return the elements of all lanes of a block, (..., lanes, elements), from one array per element."""
    held = np.empty((*values[0].shape[:-1], width, len(values)), values[0].dtype)
    for element, value in enumerate(values):
        held[..., element] = value
    return held


def _first_lanes(geometry, count: int) -> Lanes:
    """Return a boolean per lane that tells whether it is among the first ``count`` lanes of its warp."""
    lane = geometry.lane.pattern
    return Lanes(lane.derive(("<", count), lambda: lane.array < count), 0, BOOL)


def by_lane(machine, numbers: np.ndarray) -> Lanes:
    """Return ``numbers``, one integer for each of a warp's 32 lanes, repeated for every warp."""
    key = ("by lane", numbers.tobytes())
    lane = machine.chunk.geometry.lane.pattern
    return Lanes(lane.derive(key, lambda: numbers[lane.array]))


def elements(machine, array: DeviceArray, matrices: np.ndarray | None, rows, columns):
    """Return for each lane i the element [rows[i], columns[i]] of its warp's matrix, or 0 when counting."""
    if matrices is None:
        return array.dtype.type(0)
    held = matrices[..., rows, columns]
    return held.reshape(*held.shape[:-2], -1)
