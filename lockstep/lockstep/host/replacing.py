"""Puts the emulator's host side in place of numba.cuda's, and restores numba.cuda afterwards.

Three kinds of places change. The first are the names in numba.cuda's own modules. The second are the same
objects in the program's modules, which got them by ``from numba.cuda import jit``. The third are the classes
of kernels that were made before. The code of kernels needs no change, because the emulator recognises
``cuda.grid``, ``cuda.shared.array`` and the other functions of device code itself.
"""

import importlib
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any, NamedTuple

import numba
from numba import config

from lockstep.frozen import as_defined, freeze_definition
from lockstep.library.signatures import declared

from . import devices, host, ufuncs
from .errors import unsupported
from .kernels import COMPILED, Kernel

_MISSING = object()
# The modules of these packages keep their objects.
_KEEP = ("numba", "numba_cuda", "cuda", "llvmlite")
_FACES = ("numba.cuda", "numba.cuda.api", "numba.cuda.cudadrv.devicearray", "numba.cuda.cudadrv.devices")
# Numba's simulator lacks these names in its own versions of the modules.
_INCOMPLETE = {"numba.cuda": host.PUBLIC, "numba.cuda.cudadrv.devicearray": tuple(host.ARRAY_CLASSES)}
_LAUNCHING = ("__getitem__", "__call__", "configure", "forall", "specialize", "get_max_threads_per_block")
_COMPILED_FOR = ("overloads", "signatures")
_kernels: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


_VERSIONS = {"get_version": devices.get_version, "is_supported_version": lambda asked: True}


class _Swap(NamedTuple):
    owner: Any
    name: str
    new: Any
    old: Any


def replace() -> Callable[[], None]:
    """Put the emulator's host side in place of numba.cuda's. Return a function that restores everything."""
    places = [*_modules(), *_classes(), *_versions(), *_driver()]
    swaps = [_Swap(owner, name, new, vars(owner).get(name, _MISSING)) for owner, name, new in places]
    shared = [swap for swap in swaps if isinstance(swap.owner, ModuleType) and callable(swap.old)]
    shared += [swap for swap in swaps if swap.name == "gpus"]
    for swap in swaps:
        setattr(swap.owner, swap.name, swap.new)
    _everywhere({id(swap.old): swap.new for swap in shared})

    def restore() -> None:
        for swap in swaps:
            if swap.old is _MISSING:
                delattr(swap.owner, swap.name)
            else:
                setattr(swap.owner, swap.name, swap.old)
        _everywhere({id(swap.new): swap.old for swap in reversed(shared)})

    return restore


def _everywhere(new: dict[int, Any]) -> None:
    """Replace objects in all loaded modules except those of Numba and of this package.

    ``new``: id of an object -> its replacement.
    """
    for name, module in list(sys.modules.items()):
        if (
            not isinstance(module, ModuleType)
            or name.partition(".")[0] in _KEEP
            or name.startswith(__package__)
        ):
            continue
        names = vars(module)
        for key, value in list(names.items()):
            if id(value) in new:
                names[key] = new[id(value)]


def _modules() -> Iterator[tuple[ModuleType, str, Any]]:
    for path in _FACES:
        module = importlib.import_module(path)
        simulated = config.ENABLE_CUDASIM and path in _INCOMPLETE
        for name, new in (host.NAMES | host.ARRAY_CLASSES).items():
            if name in vars(module) or (simulated and name in _INCOMPLETE[path]):
                yield module, name, new
    for name in ("vectorize", "guvectorize"):
        yield numba, name, ufuncs.for_targets(getattr(numba, name), host.NAMES[name])


def _classes() -> Iterator[tuple[type, str, Callable]]:
    """Yield (class, name, new method) for the kernels that numba.cuda's ``jit`` or its simulator made."""
    for path, name in (
        ("numba.cuda.dispatcher", "CUDADispatcher"),
        ("numba.cuda.simulator.kernel", "FakeCUDAKernel"),
    ):
        kind = getattr(importlib.import_module(path), name, None)
        for method in (*_LAUNCHING, *COMPILED) if kind is not None else ():
            if callable(getattr(kind, method, None)):
                yield kind, method, _through_kernel(method)
        if hasattr(kind, "call"):
            yield kind, "call", _call
        if hasattr(kind, "specialize"):
            yield from ((kind, name, _of_kernel(name)) for name in _COMPILED_FOR)


def _through_kernel(method: str) -> Callable:
    return lambda dispatcher, *args, **named: getattr(_kernel_of(dispatcher), method)(*args, **named)


def _of_kernel(name: str) -> property:
    """Return a property that tells what a kernel was compiled for in the session.

    Numba's own value is still stored in the dispatcher's ``__dict__``, where the session finds it.
    """
    return property(
        lambda dispatcher: getattr(_kernel_of(dispatcher), name),
        lambda dispatcher, value: vars(dispatcher).__setitem__(name, value),
    )


def _call(dispatcher: Any, args: tuple, *configuration: Any) -> None:
    """Launch a kernel that was configured before the session. Numba's configured kernel calls this method."""
    if len(configuration) == 1:
        (of,) = configuration
        configuration = (of.griddim, of.blockdim, 0, of.sharedmem)
    _kernel_of(dispatcher).configure(*configuration)(*args)


def _kernel_of(dispatcher: Any) -> Kernel:
    """Return the emulator's kernel for a kernel of numba.cuda."""
    kernel = _kernels.get(dispatcher)
    if kernel is None:
        options = getattr(dispatcher, "targetoptions", {"device": getattr(dispatcher, "_device", False)})
        kernel = _kernels[dispatcher] = Kernel(dispatcher.py_func, None, **options)
        kernel.declared = declared(dispatcher)
        freeze_definition(kernel, as_defined(dispatcher))
    return kernel


def _versions() -> Iterator[tuple[type, str, Callable]]:
    """Yield (class, name, new method) for the methods that report or check versions of CUDA and its driver.

    Neither CUDA nor the driver needs to be installed.
    """
    for path, name in (("numba.cuda.cudadrv.runtime", "runtime"), ("numba.cuda.cudadrv.driver", "driver")):
        with suppress(ImportError, AttributeError):
            kind = type(getattr(importlib.import_module(path), name))
            for method in ("get_version", "is_supported_version"):
                if hasattr(kind, method):
                    yield kind, method, _VERSIONS[method]


def _driver() -> Iterator[tuple[type, str, Callable]]:
    """Yield (class, name, new method) for a method that refuses all other uses of the driver.

    Yield nothing if the driver already uses a GPU.
    """
    with suppress(ImportError, AttributeError):
        driver = importlib.import_module("numba.cuda.cudadrv.driver").driver
        if not driver.is_initialized or driver.initialization_error is not None:
            yield type(driver), "__getattr__", _refuse_driver


def _refuse_driver(driver: Any, name: str) -> None:
    if not name.startswith("cu"):
        raise AttributeError(name)
    raise unsupported(f"the emulator does not support this part of numba.cuda, which asks the driver: {name}")
