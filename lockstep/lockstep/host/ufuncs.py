"""Emulates ``vectorize(target="cuda")``, which turns a function of elements into a kernel over arrays."""

import functools
import inspect
import itertools
import linecache
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import cuda

from lockstep.errors import ArgumentError, DataDependent
from lockstep.launching.launch import emulate
from lockstep.library import signatures as signed

from .arrays import (
    DeviceNDArray,
    as_cuda_array,
    auto_device,
    device_array,
    is_cuda_array,
    is_on_device,
    memory_of,
)
from .errors import launch_error, unsupported
from .kernels import OF_ELEMENTS, Kernel

KERNEL = """\
def {name}({inputs}, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = core({elements})
"""
IDENTITIES = (0, 1, None, "reorderable")


_numbers = itertools.count(1)


def vectorize(ftylist_or_function: Any = (), target: str = "cuda", **options: Any) -> Any:
    """Return a ufunc for a function, or a decorator for signatures, as ``cuda.vectorize`` does."""
    if target != "cuda":
        raise ValueError(f"Unsupported target: {target}")
    if callable(ftylist_or_function) and not signed.is_signature(ftylist_or_function):
        return Ufunc(ftylist_or_function, [])
    one = isinstance(ftylist_or_function, str) or not hasattr(ftylist_or_function, "__iter__")
    given = [ftylist_or_function] if one else list(ftylist_or_function)

    def decorated(function: Callable) -> Ufunc:
        _check_options(dict(options))
        return Ufunc(function, given)

    return decorated


def _check_options(options: dict[str, Any]) -> None:
    """Raise what numba.cuda raises for an option that its ``vectorize`` does not take."""
    identity = options.pop("identity", None)
    _check_cache(options)
    for name in options:
        if name != "nopython":
            raise KeyError(f"Unrecognized options. cuda vectorize target does not support option: {name!r}")
        warnings.warn("nopython kwarg for cuda target is redundant", RuntimeWarning, stacklevel=3)
    _check_identity(identity)


def check_general_options(options: dict[str, Any]) -> None:
    """Raise what numba.cuda raises for an option that its ``guvectorize`` does not take."""
    options = dict(options)
    identity, writable = options.pop("identity", None), options.pop("writable_args", ())
    _check_cache(options)
    if writable:
        raise TypeError("writable_args are not supported")
    if not options.pop("nopython", True):
        raise TypeError("nopython flag must be True")
    if options:
        names = ", ".join(map(repr, options))
        raise TypeError(f"The following target options are not supported: {names}")
    _check_identity(identity)


def _check_cache(options: dict[str, Any]) -> None:
    if options.pop("cache", False):
        raise TypeError("caching is not supported")


def _check_identity(identity: Any) -> None:
    if identity not in IDENTITIES:
        raise ValueError(f"Invalid identity value {identity!r}")


class Ufunc:
    """A function of elements that takes arrays. If one of them is on the device, so is the result."""

    def __init__(self, function: Callable, given: list):
        functools.update_wrapper(self, function)
        self.py_func = function
        if not function.__name__.isidentifier():
            raise unsupported("numba.cuda makes no ufunc of a lambda: write it as a function with a name")
        declared = [signed.declaration(one, True) for one in given]
        if not given or any(one.returned is None for one in declared):
            raise unsupported(
                'the emulator needs the types of a ufunc, as in vectorize(["float32(float32)"])'
            )
        kernels = _kernels(function, given)
        # `_loops` maps the dtypes of the inputs to the result's dtype and the kernel, as Numba's table does.
        self._loops = {
            tuple(map(signed.dtype_of_type, one.types)): (signed.dtype_of_type(one.returned), kernel)
            for one, kernel in zip(declared, kernels)
        }
        for types, (result, kernel) in self._loops.items():
            _check_types(kernel, (*types, result))

    def __call__(self, *args: Any, out: Any = None, stream: Any = 0, **unknown: Any) -> Any:
        if unknown:
            warnings.warn(f"unrecognized keywords: {', '.join(unknown)}", stacklevel=2)
        arrays = [_as_array(arg) for arg in args]
        dtypes = self._dtypes(args, arrays)
        result, kernel = self._loops[dtypes]
        arrays = [
            np.array([arg], dtype) if array is None else array
            for arg, array, dtype in zip(args, arrays, dtypes)
        ]
        inputs = _broadcast(arrays)
        shape = inputs[0].shape
        if len(shape) > 1:
            inputs = [_flat(array, stream) for array in inputs]
        self._check_sizes(inputs[0].shape, result, out)
        there = any(map(is_on_device, inputs))
        inputs = [auto_device(array, stream)[0] for array in inputs]
        target = self._target(inputs[0].shape, result, out, stream)
        kernel.forall(inputs[0].shape[0], stream=stream)(*inputs, target)
        if out is None:
            return (target if there else target.copy_to_host()).reshape(shape)
        return (target if is_cuda_array(out) else target.copy_to_host(out)).reshape(shape)

    def reduce(self, arg: Any, stream: Any = 0) -> Any:
        """Fold an array of one dimension, half onto half, until one element is left. Return the element.

        A device array is folded in place, as by numba.cuda. Raises TypeError for an empty array, and for a
        dtype that no signature takes.
        """
        name = self.py_func.__name__
        if len(next(iter(self._loops))) != 2:
            raise launch_error(AssertionError)(f"{name} must take two numbers to reduce an array")
        if arg.ndim != 1:
            raise launch_error(AssertionError)(
                f"{name} reduces arrays of one dimension, and this one has {arg.ndim}"
            )
        if not arg.shape[0]:
            raise ArgumentError(f"{name} reduces no empty array: there is no element to return")
        if arg.shape[0] == 1:
            return arg[0]
        memory = DeviceNDArray.of(memory_of(arg)) if is_on_device(arg) else auto_device(arg, stream)[0]
        return self._folded(memory, stream).copy_to_host()[0].astype(arg.dtype)

    def _folded(self, memory: DeviceNDArray, stream: Any) -> DeviceNDArray:
        """Fold an array of two or more elements in place. Return its first element, which has the result."""
        size = memory.shape[0]
        if size % 2:
            most, last = memory.split(size - 1)
            first = self._folded(most, stream)
            return self(first, last, out=first, stream=stream)
        left, right = memory.split(size // 2)
        self(left, right, out=left, stream=stream)
        return left if size == 2 else self._folded(left, stream)

    def _dtypes(self, args: Sequence[Any], arrays: Sequence[Any]) -> tuple[np.dtype, ...]:
        """Return the dtypes of the signature that fits the arrays exactly.

        A signature that fits the scalars exactly too comes first. Otherwise scalars are cast. Raises
        ArgumentError unless one signature fits.
        """
        name = self.py_func.__name__
        number = len(next(iter(self._loops)))
        if len(args) != number:
            raise ArgumentError(f"{name} takes {number} argument{'s' * (number != 1)}, not {len(args)}")
        given = [(np.asarray(arg) if array is None else array).dtype for arg, array in zip(args, arrays)]
        of_arrays = [None if array is None else array.dtype for array in arrays]
        fitting = self._loops_for(given) or self._loops_for(of_arrays)
        if len(fitting) != 1:
            number = "several signatures that take" if fitting else "no signature that takes"
            shown = ", ".join(map(str, given))
            raise ArgumentError(f"{name} has {number} ({shown}), without a cast of arrays")
        return fitting[0]

    def _loops_for(self, dtypes: Sequence[np.dtype | None]) -> list[tuple[np.dtype, ...]]:
        return [
            loop for loop in self._loops if all(x is None or x == wanted for x, wanted in zip(dtypes, loop))
        ]

    def _check_sizes(self, shape: tuple, result: np.dtype, out: Any) -> None:
        """Raise what numba.cuda raises if no array has a dimension, or if ``out`` is wrong."""
        name, has_shape = self.py_func.__name__, hasattr(out, "shape")
        if not shape:
            raise launch_error(IndexError)(
                f"{name} got arrays without dimensions only, and numba.cuda takes them only beside others"
            )
        if out is None or is_cuda_array(out):
            return
        if not has_shape or out.shape != shape or out.dtype != result:
            raise launch_error(AssertionError if has_shape else AttributeError)(
                f"the out of {name} must be {result} of the shape {shape} if it is an array of the host: "
                "numba.cuda flattens the inputs, and not this array"
            )

    def _target(self, shape: tuple, result: np.dtype, out: Any, stream: Any) -> DeviceNDArray:
        """Return the device array that the kernel stores to, in one dimension."""
        if out is None or not is_cuda_array(out):
            return device_array(shape, result, stream=stream)
        there = as_cuda_array(out)
        return _flat(there, stream) if there.ndim > 1 else there


def _check_types(kernel: Kernel, dtypes: Sequence[np.dtype]) -> None:
    """Raise what the emulator raises for a function that Numba would not compile for these dtypes.

    Numba compiles a ufunc when it is defined. Counting without running finds the types, and no values.
    """
    try:
        emulate(kernel.py_func, 1, 1, *(np.zeros(1, dtype) for dtype in dtypes), counts_only=True)
    except DataDependent:
        pass


def _as_array(arg: Any) -> Any:
    """Return an argument as an array, on the device if it is there, or None for a scalar."""
    if is_cuda_array(arg):
        return as_cuda_array(arg)
    if isinstance(arg, (int, float, complex, np.number)):
        return None
    try:
        return np.asarray(arg)
    except ValueError as error:
        raise launch_error(ValueError)(str(error)) from None


def _broadcast(arrays: Sequence[Any]) -> list:
    """Return views of the arrays, broadcast to one shape. Raises ValueError if that is impossible."""
    shapes = [array.shape for array in arrays]
    for number in range(1, len(shapes)):
        try:
            np.broadcast_shapes(*shapes[: number + 1])
        except ValueError:
            shown = " and ".join(map(str, shapes))
            raise ValueError(f"failed to broadcast argument #{number}: the shapes are {shown}") from None
    shape = np.broadcast_shapes(*shapes)
    for number, array in enumerate(arrays):
        if array.size > 1 and array.ndim < len(shape):
            raise unsupported(
                f"numba.cuda repeats the first element of argument #{number} of a ufunc where NumPy "
                f"broadcasts it, as it has fewer dimensions, {array.ndim}, than the result, {len(shape)}: "
                f"reshape it to {(1,) * (len(shape) - array.ndim) + array.shape}"
            )
    return [array if array.shape == shape else _repeated(array, shape) for array in arrays]


def _repeated(array: Any, shape: tuple) -> Any:
    memory = array.memory if is_on_device(array) else array
    strides = np.broadcast_to(memory, shape).strides
    view = np.lib.stride_tricks.as_strided(memory, shape, strides)
    return DeviceNDArray.of(view) if is_on_device(array) else view


def _flat(array: Any, stream: Any) -> Any:
    """Return an array in one dimension. On the device, one with gaps is copied."""
    try:
        return array.ravel()
    except NotImplementedError:
        return auto_device(array.copy_to_host().ravel(), stream)[0]


def _kernels(function: Callable, given: list) -> list[Kernel]:
    """Make a kernel for each signature of a function, and register their source with ``linecache``."""
    inputs = [f"x{number}" for number in range(len(inspect.signature(function).parameters))]
    name = function.__name__
    elements = ", ".join(f"{one}[i]" for one in inputs)
    text = KERNEL.format(name=name, inputs=", ".join(inputs), elements=elements)
    filename = f"<vectorize of {function.__name__}, {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    code, made = compile(text, filename, "exec"), []
    for signature in given:
        space = {"cuda": cuda, "core": Kernel(function, [signature], device=True)}
        exec(code, space)
        setattr(space[name], OF_ELEMENTS, function)
        made.append(Kernel(space[name], None))
    return made


def for_targets(real: Callable, for_cuda: Callable) -> Callable:
    """Wrap ``numba.vectorize`` or ``guvectorize`` so that ``for_cuda`` handles the target "cuda" alone."""

    @functools.wraps(real)
    def chosen(*args: Any, **options: Any) -> Any:
        if options.get("target") != "cuda":
            return real(*args, **options)
        return for_cuda(*args, **{name: value for name, value in options.items() if name != "target"})

    return chosen
