"""Makes the arrays that a kernel declares: shared, local, and parts of dynamic shared memory."""

import math

import numpy as np

from lockstep.errors import KernelTypeError, LimitExceeded
from lockstep.limits import MAX_LOCAL_BYTES, MAX_STATIC_SHARED_BYTES
from lockstep.memory.records import RecordArray, records_in, units_of
from lockstep.memory.storage import DeviceArray, LocalStorage, SharedStorage

# An element has at most this many bytes.
_LARGEST = 16


class Declarations:
    """The part of the machine that makes the arrays that a kernel declares."""

    def shared_array(self, site, shape, dtype, alignment=None):
        """Make a ``cuda.shared.array``, one per block. A shape of 0 gives the dynamic shared memory."""
        if dtype.names is not None:
            return self._declared_records(self.shared_array, site, shape, dtype, alignment)
        shape = self.declared_shape(shape)
        if shape == (0,):
            return self._dynamic_array(site, dtype, alignment)
        require_elements(shape)
        array = self.chunk.shared_arrays.get(site)
        if array is None:
            self._check_static_limit(_bytes(shape, dtype))
            array = self._declare(SharedStorage, site, shape, dtype)
            array.storage.alignment = alignment or dtype.itemsize
            self.chunk.shared_arrays[site] = array
        return array

    def _check_static_limit(self, more):
        taken, gpu = self.static_shared_bytes() + -(-more // 16) * 16, self.gpu
        if taken > MAX_STATIC_SHARED_BYTES:
            raise LimitExceeded(
                f"the kernel's shared arrays of fixed shape take {taken:,} bytes; "
                f"the limit is {MAX_STATIC_SHARED_BYTES:,} on an {gpu.name}"
            )
        if taken + self.dynamic_shared > gpu.max_shared_bytes:
            raise LimitExceeded(
                f"the shared arrays take {taken:,} bytes and the launch adds {self.dynamic_shared:,}; "
                f"a block of an {gpu.name} has {gpu.max_shared_bytes:,}"
            )

    def _dynamic_array(self, site, dtype, alignment):
        """Return the dynamic shared memory as an array of as many elements as fit whole.

        The storage behind it is longer where the launch asks for an odd number of bytes, so that elements of
        every size fit into it.
        """
        array = self.chunk.shared_arrays.get("dynamic")
        if array is None:
            length = -(-self.dynamic_shared // _LARGEST) * _LARGEST // dtype.itemsize
            array = self.chunk.shared_arrays["dynamic"] = self._declare(SharedStorage, site, (length,), dtype)
            array.storage.alignment = alignment or dtype.itemsize
        if array.dtype != dtype:
            array = self._dynamic_as(site, array, dtype)
        whole = self.dynamic_shared // dtype.itemsize
        return array if array.shape == (whole,) else array.changed(shape=(whole,))

    def _dynamic_as(self, site, array, dtype):
        """Return the dynamic shared memory with elements of another dtype. It is the same memory."""
        if self.warp_by_warp:
            raise KernelTypeError(
                "where warps wait for each other, the emulator supports one dtype for dynamic shared memory"
            )
        storage = array.storage.retyped(dtype)
        return DeviceArray(self.sites[site].op, storage, dtype, storage.shape)

    def static_shared_bytes(self) -> int:
        """Return the bytes of the block's shared arrays of fixed shape, each of which starts at a multiple of
        16.
        """
        fixed = [array for site, array in self.chunk.shared_arrays.items() if site != "dynamic"]
        return sum(-(-a.storage.size * a.dtype.itemsize // 16) * 16 for a in fixed)

    def local_array(self, site, shape, dtype, alignment=None):
        """Make a ``cuda.local.array``, one per thread."""
        if dtype.names is not None:
            return self._declared_records(self.local_array, site, shape, dtype, alignment)
        shape = self.declared_shape(shape)
        require_elements(shape)
        if _bytes(shape, dtype) > MAX_LOCAL_BYTES:
            raise LimitExceeded(
                f"the local array {self.sites[site].op} takes {_bytes(shape, dtype):,} bytes per thread; "
                f"a thread has at most {MAX_LOCAL_BYTES:,} bytes of local memory"
            )
        return self._declare(LocalStorage, site, shape, dtype)

    def _declared_records(self, declare, site, shape, record, alignment) -> RecordArray:
        """Make an array of records by ``declare``, which makes an array of their units."""
        shape, (unit, count) = self.declared_shape(shape), units_of(record)
        if shape == (0,) and declare == self.shared_array:
            whole = self._dynamic_array(site, unit, alignment)
            units = whole.changed(shape=(whole.size // count, count), strides=(count, 1))
        else:
            units = declare(site, (*shape, count), unit, alignment)
        return RecordArray(records_in(units, record), record)

    def _declare(self, kind, site, shape, dtype):
        storage = kind(dtype, shape, self.counts_only)
        storage.slot = site
        return DeviceArray(self.sites[site].op, storage, dtype, shape)

    def carve(self, site, buffer, start, shape) -> DeviceArray:
        """Return a part of dynamic shared memory as a separate array."""
        array = self.chunk.carved.get(site)
        if array is None:
            array = self.chunk.carved[site] = self._carve(site, buffer, start, shape)
        return array

    def _carve(self, site, buffer, start, shape) -> DeviceArray:
        shape = shape if isinstance(shape, tuple) else (shape,)
        if getattr(buffer, "space", "") != "shared" or not all(type(part) is int for part in (start, *shape)):
            raise KernelTypeError(
                "carve takes a shared array, and a start and a shape that are known at compile time"
            )
        storage = SharedStorage(buffer.dtype, shape, self.counts_only)
        if start < 0 or start + storage.size > buffer.size:
            raise KernelTypeError(
                f"{self.sites[site].op} takes elements {start:,} to {start + storage.size - 1:,} of shared "
                f"memory that has {buffer.size:,}: ask for more at the launch"
            )
        for other in self.chunk.carved.values():
            if (
                start < other.storage.start + other.storage.size
                and other.storage.start < start + storage.size
            ):
                raise KernelTypeError(f"{self.sites[site].op} and {other.name} overlap in shared memory")
        storage.slot, storage.start = site, start
        storage.alignment = int(np.gcd(buffer.storage.alignment, start * buffer.dtype.itemsize))
        return DeviceArray(self.sites[site].op, storage, buffer.dtype, shape)


def _bytes(shape, dtype) -> int:
    return math.prod(map(int, shape)) * dtype.itemsize


def require_elements(shape: tuple):
    """Refuse a shape without elements."""
    if min(shape, default=1) < 1:
        raise KernelTypeError(
            f"the shape of a shared or local array must be positive, not {shape}; only `cuda.shared.array(0, "
            "dtype)` means something, the dynamic shared memory"
        )


def whole_shape(shape) -> tuple:
    """Return the shape of a declaration as integers. Raise KernelTypeError if they are not known."""
    shape = shape if isinstance(shape, tuple) else (shape,)
    for extent in shape:
        if type(extent) is not int and not isinstance(extent, np.integer):
            raise KernelTypeError(
                "the shape of a shared or local array must be known when the kernel is compiled: "
                "a number, or a constant of the module or of the enclosing function"
            )
    return tuple(int(extent) for extent in shape)
