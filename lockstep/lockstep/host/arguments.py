"""Copies a launch's host arrays to the device before the kernel runs, and back afterwards."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import typeof
from numba.core.errors import NumbaError

from lockstep.launching.launch import refuse_masked

from .arrays import DeviceRecord, as_cuda_array, auto_device, is_cuda_array, is_on_device, memory_of
from .streams import default_stream


class ArgumentHint:
    """An array argument with a hint about which of its two copies, in and back, the kernel needs."""

    copied_in = copied_back = True

    def __init__(self, value):
        self.value = value

    @property
    def _numba_type_(self):
        return type_of(self.value)


class In(ArgumentHint):
    """An array that is copied to the device, but not back, so what the kernel writes is lost."""

    copied_back = False


class Out(ArgumentHint):
    """An array that is only copied back, so the kernel finds garbage in it."""

    copied_in = False


class InOut(ArgumentHint):
    """An array that is copied both ways, as without a hint."""


def on_device(value, back: list[Callable[[], None]]):
    """Return an argument as the emulator takes it. Append to ``back`` what copies it back later."""
    if isinstance(value, ArgumentHint):
        return _copied(value, back)
    if isinstance(value, DeviceRecord):
        return value.memory[()]
    if is_on_device(value):
        return memory_of(value)
    refuse_masked(value)
    if isinstance(value, np.ndarray):
        return _copied(InOut(value), back)
    if isinstance(value, tuple):
        parts = [on_device(part, back) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return as_cuda_array(value).memory if hasattr(value, "__cuda_array_interface__") else value


def type_of(value) -> Any:
    """Return the Numba type of an argument, or its Python type if Numba cannot take it."""
    if is_cuda_array(value) and not is_on_device(value):
        value = as_cuda_array(value)
    try:
        return typeof(value)
    except (ValueError, TypeError, NumbaError):
        return type(value)


def _copied(hint: ArgumentHint, back: list[Callable[[], None]]) -> np.ndarray:
    host = hint.value
    if not isinstance(host, np.ndarray):
        return on_device(host, back)
    if host.dtype.hasobject:
        return host  # No device memory holds Python objects. The launch refuses them, by the argument's name.
    device, _ = auto_device(host, copy=hint.copied_in)
    memory = device.memory
    if not host.flags.writeable:
        memory.flags.writeable = False
    elif hint.copied_back:
        back.append(lambda: np.copyto(host, memory))
    return memory


def through_extensions(extensions, value, back: list[Callable[[], None]]):
    """Pass an argument through the extensions of ``cuda.jit(extensions=...)``, the last one first."""
    kind = type_of(value) if extensions else None
    for extension in reversed(extensions):
        kind, value = extension.prepare_args(kind, value, stream=default_stream(), retr=back)
    return value
