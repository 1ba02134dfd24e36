"""Emulates the device arrays that the host side of a program copies, slices and views."""

import contextlib
import ctypes
from collections.abc import Iterator

import numpy as np

from .errors import missing, unsupported
from .heap import extent
from .state import current

NOT_SHARED = "the emulator shares no device memory between processes (get_ipc_handle)"


class DeviceNDArray:
    """An array in device memory. The host can copy it, slice it and access elements, as in numba.cuda."""

    __cuda_memory__ = True
    __cuda_ndarray__ = True

    def __init__(self, shape, strides=None, dtype=np.float64, stream=0, gpu_data=None):
        if gpu_data is None:
            self.memory = current().heap.allocate(shape, dtype, strides)
        else:
            self.memory = current().heap.at(gpu_data.device_pointer, shape, dtype, strides)
        self.stream = stream

    @classmethod
    def of(cls, memory: np.ndarray, stream=0) -> "DeviceNDArray":
        """Return a device array in this memory. Kernels access the memory itself, programs only the array."""
        array = cls.__new__(cls)
        array.memory, array.stream = memory, stream
        return array

    shape = property(lambda self: self.memory.shape)
    strides = property(lambda self: self.memory.strides)
    dtype = property(lambda self: self.memory.dtype)
    ndim = property(lambda self: self.memory.ndim)
    size = property(lambda self: self.memory.size)
    nbytes = property(lambda self: self.memory.nbytes)
    alloc_size = property(lambda self: self.memory.nbytes)

    @property
    def flags(self) -> dict:
        return {name: self.memory.flags[name] for name in ("C_CONTIGUOUS", "F_CONTIGUOUS")}

    @property
    def __cuda_array_interface__(self) -> dict:
        return _interface(self.memory, self.stream)

    @property
    def _numba_type_(self):
        from numba import typeof

        return typeof(self.memory)

    @property
    def gpu_data(self) -> "MemoryPointer":
        return MemoryPointer(self.memory)

    @property
    def device_ctypes_pointer(self) -> ctypes.c_void_p:
        return self.gpu_data.device_ctypes_pointer

    def __repr__(self):
        return f"<array in emulated device memory: shape {self.shape}, {self.dtype}>"

    def __len__(self):
        if not self.shape:
            raise TypeError("a device array without dimensions has no length")
        return self.shape[0]

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("an array in device memory cannot be had on the host without a copy")
        host = self.copy_to_host()
        return host if dtype is None else host.astype(dtype)

    # ---- copies ----

    def copy_to_host(self, ary: np.ndarray | None = None, stream=0) -> np.ndarray:
        """Return a copy on the host, in ``ary`` if given.

        Raises TypeError if ``ary`` has another dtype, ValueError if it has another shape or other strides,
        and NotImplementedError for an array with a negative stride.
        """
        if any(step < 0 for step in self.strides):
            raise NotImplementedError("numba.cuda copies no array to the host that runs backwards")
        if ary is None:
            return self.memory.copy(order="K")
        _check_alike(self, ary)
        _check_strides(self, ary)
        ary[...] = self.memory.reshape(ary.shape)
        size = extent(self.shape, self.strides, self.dtype.itemsize)
        if size > self.memory.nbytes:
            # numba.cuda moves all bytes from the first element to the last, so also those that lie between.
            ctypes.memmove(ary.ctypes.data, self.memory.ctypes.data, size)
        return ary

    def copy_to_device(self, ary, stream=0) -> None:
        """Copy a host or device array of the same shape and dtype into this array.

        Raises TypeError for another dtype, and ValueError for another shape, for other strides of a device
        array, or if this array has gaps.
        """
        if not ary.size:
            return
        _check_contiguous(self.memory)
        source = memory_of(ary) if is_on_device(ary) else np.asanyarray(ary)
        _check_alike(self, source)
        if is_on_device(ary):
            _check_strides(self, source)
        core = _core(self.memory)
        core[...] = _core(source).reshape(core.shape)

    # ---- parts and other views ----

    def __getitem__(self, item):
        _check_index(item)
        found = self.memory[item]
        if isinstance(found, np.void):  # A record stays on the device.
            parts = item if isinstance(item, tuple) else (item,)
            found = self.memory[tuple(slice(i, i + 1 or None) for i in parts)].reshape(())
            return DeviceRecord.of(found, self.stream)
        return self._like(found) if isinstance(found, np.ndarray) else found

    def __setitem__(self, item, value):
        _check_index(item)
        self.memory[item] = memory_of(value) if is_on_device(value) else np.asarray(value)

    def getitem(self, item, stream=0):
        return self[item]

    def setitem(self, item, value, stream=0):
        self[item] = value

    def reshape(self, *newshape, order: str = "C") -> "DeviceNDArray":
        """Return a view of the memory in another shape. Raises NotImplementedError if that needs a copy."""
        if len(newshape) == 1 and isinstance(newshape[0], (tuple, list)):
            newshape = tuple(newshape[0])
        if order not in ("C", "F", "A"):
            raise ValueError(f"order must be C, F or A, not {order!r}")
        return self._like(_uncopied(self.memory.reshape(newshape, order=order), self.memory, "reshape"))

    def ravel(self, order: str = "C", stream=0) -> "DeviceNDArray":
        """Return a view of the memory in one dimension. Raises NotImplementedError if that needs a copy."""
        return self._like(_uncopied(self.memory.ravel(order), self.memory, "ravel"))

    def squeeze(self, axis=None, stream=0) -> "DeviceNDArray":
        return self._like(self.memory.squeeze(axis))

    def view(self, dtype) -> "DeviceNDArray":
        """Return a view of the same bytes in another dtype. Raises ValueError if the sizes do not fit."""
        return self._like(self.memory.view(np.dtype(dtype)))

    def transpose(self, axes=None) -> "DeviceNDArray":
        """Return a transposed copy of a matrix, or the array itself if ``axes`` leaves the axes in order."""
        if axes and tuple(axes) == tuple(range(self.ndim)):
            return self
        if self.ndim != 2:
            raise NotImplementedError("numba.cuda transposes device arrays of two dimensions only")
        if axes is not None and set(axes) != {0, 1}:
            raise ValueError(f"invalid axes {axes!r}")
        copy = device_array(self.shape[::-1], self.dtype)
        copy.memory[...] = self.memory.T
        return copy

    T = property(transpose)

    def split(self, section: int, stream=0) -> "Iterator[DeviceNDArray]":
        """Yield views of ``section`` elements each. The last view may be shorter."""
        if self.ndim != 1 or self.strides[0] != self.dtype.itemsize:
            raise ValueError("only a contiguous array of one dimension can be split")
        for begin in range(0, self.size, section):
            yield self._like(self.memory[begin : begin + section])

    def bind(self, stream=0) -> "DeviceNDArray":
        return DeviceNDArray.of(self.memory, stream)

    def is_c_contiguous(self) -> bool:
        return self.memory.flags.c_contiguous

    def is_f_contiguous(self) -> bool:
        return self.memory.flags.f_contiguous

    def get_ipc_handle(self):
        raise unsupported(NOT_SHARED)

    def _like(self, memory: np.ndarray) -> "DeviceNDArray":
        return DeviceNDArray.of(memory, self.stream)


class DeviceRecord(DeviceNDArray):
    """One record in device memory, which kernels take as a record."""

    @property
    def _numba_type_(self):
        from numba import typeof

        return typeof(self.memory[()])

    def __getitem__(self, item):
        found = self.memory[item]
        if found.dtype.names is not None:
            return DeviceRecord.of(found, self.stream)
        return self._like(found) if found.ndim else found[()]

    def _like(self, memory: np.ndarray) -> DeviceNDArray:
        return DeviceNDArray.of(memory, self.stream)


class MemoryPointer:
    """The address of an array on the emulated GPU. Only the emulator can use it."""

    def __init__(self, memory: np.ndarray):
        self._memory = memory  # This reference keeps the memory alive.
        self.size = memory.nbytes
        self.device_pointer = self.device_pointer_value = memory.ctypes.data if memory.size else 0
        self.device_ctypes_pointer = ctypes.c_void_p(self.device_pointer)

    def __int__(self):
        return self.device_pointer

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        raise missing(f"the emulator does not support {name} of a pointer to device memory")


class SharedWithHost(np.ndarray):
    """Mapped or managed memory, which the host and the device access as one array."""

    __cuda_memory__ = True
    __cuda_ndarray__ = True

    @property
    def __cuda_array_interface__(self) -> dict:
        return _interface(self, 0)

    def copy_to_host(self, ary: np.ndarray | None = None, stream=0) -> np.ndarray:
        return DeviceNDArray.of(memory_of(self)).copy_to_host(ary)

    def copy_to_device(self, ary, stream=0) -> None:
        DeviceNDArray.of(memory_of(self)).copy_to_device(ary)

    def get_ipc_handle(self):
        raise unsupported(NOT_SHARED)


def is_on_device(value) -> bool:
    """Tell whether kernels can access this object's memory without a copy."""
    return isinstance(value, (DeviceNDArray, SharedWithHost))


def memory_of(value) -> np.ndarray:
    """Return the device memory of an object for which :func:`is_on_device` holds."""
    return value.memory if isinstance(value, DeviceNDArray) else value.view(np.ndarray)


# --- functions that programs call ---------------------------------------------------------------------------


def to_device(obj, stream=0, copy=True, to=None) -> DeviceNDArray:
    """Copy a host array to device memory, or to the device array ``to``, and return the device array.

    A device array is returned as it is, unless ``to`` is given.
    """
    if to is not None:
        if copy:
            to.copy_to_device(np.asanyarray(obj) if not is_on_device(obj) else obj, stream)
        return to
    return auto_device(obj, stream, copy)[0]


def auto_device(obj, stream=0, copy=True, user_explicit=False) -> tuple:
    """Return (the object in device memory, whether this call allocated that memory)."""
    if is_on_device(obj):
        return obj, False
    if hasattr(obj, "__cuda_array_interface__"):
        return as_cuda_array(obj), False
    if isinstance(obj, np.void):
        memory = current().heap.allocate((), obj.dtype)
        if copy:
            memory[()] = obj
        return DeviceRecord.of(memory, stream), True
    host = np.asanyarray(obj)
    _check_contiguous(host)
    memory = current().heap.allocate(host.shape, host.dtype, host.strides)
    if copy and host.size:
        _core(memory)[...] = _core(host)
    return DeviceNDArray.of(memory, stream), True


def device_array(shape, dtype=np.float64, strides=None, order="C", stream=0) -> DeviceNDArray:
    """Return an array of new device memory. It holds garbage: NaN for floats, large numbers for integers."""
    return DeviceNDArray.of(current().heap.allocate(shape, dtype, strides, order), stream)


def pinned_array(shape, dtype=np.float64, strides=None, order="C") -> np.ndarray:
    return current().heap.allocate(shape, dtype, strides, order)


def mapped_array(shape, dtype=np.float64, strides=None, order="C", stream=0, portable=False, wc=False):
    return current().heap.allocate(shape, dtype, strides, order).view(SharedWithHost)


def managed_array(shape, dtype=np.float64, strides=None, order="C", stream=0, attach_global=True):
    return current().heap.allocate(shape, dtype, strides, order).view(SharedWithHost)


def device_array_like(ary, stream=0) -> DeviceNDArray:
    return device_array(ary.shape, ary.dtype, **_layout_of(ary), stream=stream)


def pinned_array_like(ary) -> np.ndarray:
    return pinned_array(ary.shape, ary.dtype, **_layout_of(ary))


def mapped_array_like(ary, stream=0, portable=False, wc=False):
    return mapped_array(ary.shape, ary.dtype, **_layout_of(ary))


def _layout_of(ary) -> dict:
    """Return the keywords ``order`` or ``strides`` for an array like this: no gaps, same order of axes."""
    if ary.flags["C_CONTIGUOUS"] or ary.flags["F_CONTIGUOUS"] or ary.ndim <= 1:
        fortran = ary.flags["F_CONTIGUOUS"] and not ary.flags["C_CONTIGUOUS"]
        return {"order": "F" if fortran else "C"}
    strides, step = [0] * ary.ndim, ary.dtype.itemsize
    for axis in sorted(range(ary.ndim), key=lambda axis: ary.strides[axis]):
        strides[axis] = step
        step *= ary.shape[axis]
    return {"strides": tuple(strides)}


@contextlib.contextmanager
def pinned(*arrays) -> Iterator[None]:
    """Do nothing, because the emulator need not page-lock host arrays."""
    yield


@contextlib.contextmanager
def mapped(*arrays, stream=0) -> Iterator:
    """Yield device arrays in the memory of host arrays: one, or a list of several."""
    views = [DeviceNDArray.of(array, stream) for array in arrays]
    yield views[0] if len(views) == 1 else views


def as_cuda_array(obj, sync=True) -> DeviceNDArray:
    """Return the device array that an object's ``__cuda_array_interface__`` describes, without a copy.

    Raises TypeError if the object has no such attribute.
    """
    if isinstance(obj, DeviceNDArray):
        return obj
    interface = getattr(obj, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"a {type(obj).__name__} has no __cuda_array_interface__")
    return from_cuda_array_interface(interface)


def from_cuda_array_interface(desc, owner=None, sync=True) -> DeviceNDArray:
    if desc.get("mask") is not None:
        raise NotImplementedError("numba.cuda supports no masked arrays")
    address, _ = desc["data"]
    memory = current().heap.at(address, desc["shape"], desc["typestr"], desc.get("strides"))
    return DeviceNDArray.of(memory, desc.get("stream") or 0)


def is_cuda_array(obj) -> bool:
    return hasattr(obj, "__cuda_array_interface__")


# --- rules of numba.cuda ------------------------------------------------------------------------------------


def _interface(memory: np.ndarray, stream) -> dict:
    return {
        "shape": memory.shape,
        "strides": None if memory.flags.c_contiguous else memory.strides,
        "data": (memory.ctypes.data if memory.size else 0, False),
        "typestr": memory.dtype.str,
        "stream": int(stream) or None,
        "version": 3,
    }


def _core(array: np.ndarray) -> np.ndarray:
    """Return an array without the axes along which broadcasting repeats it."""
    if 0 not in array.strides or not array.size:
        return array
    return array[(*(0 if step == 0 else slice(None) for step in array.strides), Ellipsis)]


def _check_contiguous(array: np.ndarray) -> None:
    flags = _core(array).flags
    if not (flags.c_contiguous or flags.f_contiguous):
        raise ValueError(
            "numba.cuda copies contiguous arrays only, and this one has gaps between its elements: "
            "use np.ascontiguousarray() on the host"
        )


def _check_alike(device: DeviceNDArray, host) -> None:
    if device.dtype != host.dtype:
        raise TypeError(f"incompatible dtype: {device.dtype} vs. {host.dtype} (device array, the other)")
    if _squeezed(device.shape) != _squeezed(host.shape):
        raise ValueError(f"incompatible shape: {device.shape} vs. {host.shape} (device array, the other)")


def _check_strides(device: DeviceNDArray, other) -> None:
    steps = [
        [step for step, extent in zip(array.strides, array.shape) if extent != 1] for array in (device, other)
    ]
    if device.size and steps[0] != steps[1]:
        raise ValueError(
            f"incompatible strides: {device.strides} vs. {other.strides} (device array, the other): "
            "numba.cuda copies between arrays that lie in memory in the same order"
        )


def _squeezed(shape: tuple) -> tuple:
    return tuple(extent for extent in shape if extent != 1)


def _check_index(item) -> None:
    for part in item if isinstance(item, tuple) else (item,):
        whole = isinstance(part, (int, np.integer)) and not isinstance(part, bool)
        if not whole and not isinstance(part, (slice, str)) and part is not Ellipsis:
            raise TypeError(f"a device array takes integers and slices as an index on the host, not {part!r}")


def _uncopied(made: np.ndarray, memory: np.ndarray, what: str) -> np.ndarray:
    if memory.size and not np.may_share_memory(made, memory):
        raise NotImplementedError(f"this {what} would need a copy, which numba.cuda does not make")
    return made
