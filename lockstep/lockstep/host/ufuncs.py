"""Emulates ``vectorize(target="cuda")``, which turns a function of elements into a kernel over arrays."""

import functools
import inspect
import itertools
import linecache
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import cuda

from lockstep.errors import ArgumentError
from lockstep.library import signatures as signed

from .arrays import DeviceNDArray, device_array, is_on_device, memory_of
from .errors import unsupported
from .kernels import Kernel

KERNEL = """\
def {name}({inputs}, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = core({elements})
"""


_numbers = itertools.count(1)


def vectorize(ftylist_or_function: Any = (), **options: Any) -> Any:
    """Return a ufunc for a function, or a decorator for signatures, as ``cuda.vectorize`` does."""
    if callable(ftylist_or_function) and not signed.is_signature(ftylist_or_function):
        return Ufunc(ftylist_or_function, [])
    given = ftylist_or_function if isinstance(ftylist_or_function, list) else [ftylist_or_function]
    return lambda function: Ufunc(function, given if ftylist_or_function else [])


class Ufunc:
    """A function of elements that takes arrays. If one of them is on the device, so is the result."""

    def __init__(self, function: Callable, given: list):
        functools.update_wrapper(self, function)
        self.py_func = function
        self._declared = [signed.declaration(one, True) for one in given]
        if not given or any(declared.returned is None for declared in self._declared):
            raise unsupported(
                'the emulator needs the types of a ufunc, as in vectorize(["float32(float32)"])'
            )
        self._kernel = _kernel(function, given)

    def __call__(self, *args: Any, out: Any = None, stream: Any = 0) -> Any:
        there = any(map(is_on_device, args))
        inputs = [memory_of(arg) if is_on_device(arg) else np.asarray(arg) for arg in args]
        dtypes, result = self._types(args, inputs)
        shape = np.broadcast_shapes(*(array.shape for array in inputs))
        target = device_array(shape, result)
        copies = [_flat(array, shape, dtype) for array, dtype in zip(inputs, dtypes)]
        self._kernel.forall(target.size, stream=stream)(*copies, target.ravel())
        if out is not None:
            (memory_of(out) if is_on_device(out) else out)[...] = target.memory
            return out
        if there:
            return target
        host = target.copy_to_host()
        return host if host.shape else host[()]

    def reduce(self, array: Any, stream: Any = 0) -> Any:
        """Reduce an array of one dimension to a number by calling the function with two numbers at a time."""
        return cuda.Reduce(self.py_func)(array, stream=stream)

    def _types(self, args: Sequence[Any], inputs: Sequence[np.ndarray]) -> tuple[list, np.dtype]:
        """Return the dtypes of the inputs and of the result, from the signature that fits the arrays exactly.

        A signature that fits the scalars exactly too comes first. Otherwise scalars are cast. Raises
        ArgumentError unless one signature fits.
        """
        given = [array.dtype for array in inputs]
        arrays = [None if np.isscalar(arg) else dtype for arg, dtype in zip(args, given)]
        fitting = self._signatures_for(given) or self._signatures_for(arrays)
        if len(fitting) != 1:
            number = "several signatures that take" if fitting else "no signature that takes"
            shown = ", ".join(map(str, given))
            raise ArgumentError(f"{self.py_func.__name__} has {number} ({shown}), without a cast of arrays")
        declared = fitting[0]
        return [*map(signed.dtype_of_type, declared.types)], signed.dtype_of_type(declared.returned)

    def _signatures_for(self, dtypes: Sequence[np.dtype | None]) -> list[signed.Declared]:
        return [
            declared
            for declared in self._declared
            if len(declared.types) == len(dtypes)
            and all(x is None or x == signed.dtype_of_type(kind) for x, kind in zip(dtypes, declared.types))
        ]


def _flat(array: np.ndarray, shape: tuple, dtype: np.dtype) -> DeviceNDArray:
    """Return a copy of an input as the kernel takes it: on the device, broadcast, cast, in one dimension."""
    copy = device_array(shape, dtype)
    copy.memory[...] = array
    return copy.ravel()


def _kernel(function: Callable, given: list) -> Kernel:
    """Make the kernel of a function of elements, and register its source with Python's ``linecache``."""
    inputs = [f"x{number}" for number in range(len(inspect.signature(function).parameters))]
    text = KERNEL.format(
        name=_identifier(function),
        inputs=", ".join(inputs),
        elements=", ".join(f"{name}[i]" for name in inputs),
    )
    filename = f"<vectorize of {function.__name__}, {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    space = {"cuda": cuda, "core": Kernel(function, given, device=True)}
    exec(compile(text, filename, "exec"), space)
    return Kernel(space[_identifier(function)], None)


def _identifier(function: Callable) -> str:
    """Return a name for the kernel's definition: the function's name, or ``element`` for a lambda."""
    return function.__name__ if function.__name__.isidentifier() else "element"


def for_targets(real: Callable, for_cuda: Callable) -> Callable:
    """Wrap ``numba.vectorize`` or ``guvectorize`` so that ``for_cuda`` handles the target "cuda" alone."""

    @functools.wraps(real)
    def chosen(*args: Any, **options: Any) -> Any:
        if options.get("target") != "cuda":
            return real(*args, **options)
        return for_cuda(*args, **{name: value for name, value in options.items() if name != "target"})

    return chosen
