"""Maps numba.cuda's names to the objects of the emulator's host side that a program finds in a session."""

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

from . import arguments, arrays, devices, kernels, streams, ufuncs
from .errors import of_numba, refusing, unsupported

NAMES: dict[str, Any] = {
    "jit": kernels.jit,
    "gpus": devices.gpus,
    "current_context": devices.current_context,
    "get_context": devices.current_context,
    "reset": devices.close,
    "vectorize": ufuncs.vectorize,
    "auto_device": arrays.auto_device,
    "_auto_device": arrays.auto_device,
    "require_context": lambda function: function,
    **{
        function.__name__: function
        for function in (
            *(arrays.to_device, arrays.device_array, arrays.device_array_like, arrays.as_cuda_array),
            *(arrays.pinned_array, arrays.pinned_array_like, arrays.mapped_array, arrays.mapped_array_like),
            *(arrays.managed_array, arrays.pinned, arrays.mapped, arrays.from_cuda_array_interface),
            *(arrays.is_cuda_array, arguments.In, arguments.Out, arguments.InOut),
            *(streams.stream, streams.default_stream, streams.legacy_default_stream),
            *(streams.per_thread_default_stream, streams.external_stream),
            *(streams.event, streams.event_elapsed_time),
            *(devices.list_devices, devices.get_current_device, devices.select_device, devices.close),
            *(devices.synchronize, devices.is_available, devices.is_supported_version, devices.cuda_error),
            *(devices.is_float16_supported, devices.is_bfloat16_supported, devices.is_fp8_supported),
            *(devices.detect, devices.defer_cleanup),
            *(devices.profiling, devices.profile_start, devices.profile_stop),
        )
    },
}

REFUSED = {
    "declare_device": "the emulator runs Python only; it cannot call foreign functions (cuda.declare_device)",
    "open_ipc_array": "the emulator shares no device memory between processes (cuda.open_ipc_array)",
    "set_memory_manager": "the emulator's memory has no manager to replace (cuda.set_memory_manager)",
    "guvectorize": "the emulator runs kernels and elementwise ufuncs, no generalised ones (guvectorize)",
    **{
        name: f"the emulator compiles nothing (cuda.{name})"
        for name in (
            *("compile", "compile_ptx", "compile_for_current_device", "compile_ptx_for_current_device"),
            "compile_all",
        )
    },
}


def _guvectorize(*signatures: Any, **options: Any) -> Callable:
    """Return a decorator. Its function may be defined, but calls of it are refused."""

    def refused(function: Callable) -> Callable:
        ufuncs.check_general_options(options)
        return functools.wraps(function)(refusing(REFUSED["guvectorize"]))

    return refused


def _declare_device(*args: Any, **named: Any) -> Any:
    """Refuse the program's foreign functions. Modules of numba-cuda declare theirs when they are loaded."""
    if of_numba(sys._getframe(1).f_code.co_filename):
        return importlib.import_module("numba.cuda.decorators").declare_device(*args, **named)
    raise unsupported(REFUSED["declare_device"])


NAMES |= {name: refusing(sentence) for name, sentence in REFUSED.items()} | {"guvectorize": _guvectorize}
NAMES["declare_device"] = _declare_device

PUBLIC = tuple(name for name in NAMES if name not in ("_auto_device", "auto_device", "get_context", "reset"))

# Programs test for these classes with isinstance.
ARRAY_CLASSES = {
    "DeviceNDArray": arrays.DeviceNDArray,
    "MappedNDArray": arrays.SharedWithHost,
    "ManagedNDArray": arrays.SharedWithHost,
}
