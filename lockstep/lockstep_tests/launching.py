"""One launch on the emulator or on a GPU, for tests that compare the two."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import cuda

from lockstep import emulate
from lockstep.intrinsics import TensorMap

WITHOUT_OPTING_IN = 48 * 1024  # bytes of dynamic shared memory


@dataclass(frozen=True)
class Launch:
    """The arrays after a launch by parameter name, and the report if the emulator ran it."""

    arrays: Mapping[str, np.ndarray]
    report: Any = None


def launch(configured: Any, *arguments: Any, backend: str) -> Launch:
    """Launch ``kernel[grid, block, 0, shared_bytes]`` on "emulator" or "gpu"; inputs are copied."""
    kernel, shared = configured.dispatcher, configured.sharedmem
    copies = _copied(arguments)
    if backend == "emulator":
        report = emulate(kernel, configured.griddim, configured.blockdim, *copies, shared_bytes=shared)
    else:
        report, copies = None, _on_the_gpu(configured, copies)
    names = kernel.py_func.__code__.co_varnames
    return Launch({n: a for n, a in zip(names, copies) if isinstance(a, np.ndarray)}, report)


def _copied(arguments):
    """The arguments with copies of all arrays; a tensor map becomes the map of a copy of its matrix."""
    copies: dict[int, np.ndarray] = {}

    def copy(array):
        return copies.setdefault(id(array), array.copy())

    def convert(argument):
        if isinstance(argument, TensorMap):
            return replace(argument, array=copy(argument.array))
        return copy(argument) if isinstance(argument, np.ndarray) else argument

    return [convert(argument) for argument in arguments]


def _on_the_gpu(configured, arguments):
    there: dict[int, Any] = {}

    def sent(array):
        return there.setdefault(id(array), cuda.to_device(array))

    given = [
        each.of(sent(each.array))
        if isinstance(each, TensorMap)
        else sent(each)
        if isinstance(each, np.ndarray)
        else each
        for each in arguments
    ]
    if configured.sharedmem > WITHOUT_OPTING_IN:
        _opt_in(configured.dispatcher, given, configured.sharedmem)
    configured(*given)
    return [there[id(a)].copy_to_host() if isinstance(a, np.ndarray) else a for a in arguments]


def _opt_in(kernel, arguments, size):
    """Ask the driver for more than 48 KB of dynamic shared memory, because Numba has no call for that."""
    from cuda.bindings import driver

    kernel.compile(tuple(kernel.typeof_pyval(each) for each in arguments))
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    for compiled in kernel.overloads.values():
        handle = compiled._codelibrary.get_cufunc().handle
        if isinstance(handle, driver.CUkernel):
            device = cuda.get_current_device().id
            (status,) = driver.cuKernelSetAttribute(attribute, size, handle, device)
        else:
            (status,) = driver.cuFuncSetAttribute(handle, attribute, size)
        assert status == driver.CUresult.CUDA_SUCCESS, status.name
