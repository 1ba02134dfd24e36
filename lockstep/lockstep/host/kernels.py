"""Emulates ``cuda.jit``, the kernels that it makes, and their launches."""

import functools
import inspect
import numbers
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import cuda, typeof
from numba.types import Type

from lockstep.frozen import as_defined, closure_of, freeze_definition, frozen, globals_of
from lockstep.library import signatures as signed
from lockstep.limits import MAX_STATIC_SHARED_BYTES, MAX_THREADS

from .arguments import on_device, through_extensions
from .errors import INVALID_VALUE, DriverError, place, unsupported
from .state import active, current

# These options concern compiled code: its speed, its rounding, its debug information.
WITHOUT_EFFECT = {
    *("inline", "forceinline", "debug", "opt", "lineinfo", "cache", "lto", "fastmath", "max_registers"),
    *("shared_memory_carveout", "nopython", "fma", "ftz", "prec_div", "prec_sqrt"),
}
WITH_EFFECT = {"device", "link", "boundscheck", "extensions", "launch_bounds"}
CARVEOUTS = ("default", "maxl1", "maxshared")
OF_OLD = ("argtypes", "restype", "bind")
# Only compiled code has these attributes.
COMPILED = (
    *("inspect_asm", "inspect_llvm", "inspect_lto_ptx", "inspect_ptx", "inspect_sass", "inspect_sass_cfg"),
    *("inspect_types", "inspect_cfg", "inspect_disasm_cfg", "get_regs_per_thread", "get_const_mem_size"),
    *("get_shared_mem_per_block", "get_max_threads_per_block", "get_local_mem_per_thread", "get_metadata"),
    *("compile", "compile_device", "recompile", "ptx", "definition", "definitions"),
)
OF_DISPATCHERS = (
    *COMPILED,
    "overloads",
    "typeof_pyval",
    "call",
    "stats",
    "nopython_signatures",
    "enable_caching",
)


def jit(func_or_sig: Any = None, device: bool = False, **options: Any) -> Any:
    """Return a kernel for a function, or a decorator for options or signatures, as ``cuda.jit`` does."""
    _check_options(options)
    if isinstance(func_or_sig, list):
        given = func_or_sig
    elif func_or_sig is not None and signed.is_signature(func_or_sig):
        given = [func_or_sig]
    elif func_or_sig is None:
        given = None
    else:
        return Kernel(func_or_sig, None, device=device, **options)
    return lambda function: Kernel(function, given, device=device, **options)


def _check_options(options: dict[str, Any]) -> None:
    bounds = options.get("launch_bounds")
    if isinstance(bounds, (tuple, list)) and not 1 <= len(bounds) <= 3:
        raise ValueError(f"launch_bounds are one to three numbers, not {len(bounds)}")
    if options.get("link"):
        raise unsupported("the emulator runs Python only; it cannot link other code to a kernel (link=...)")
    if options.get("boundscheck"):
        raise NotImplementedError("numba.cuda has no boundscheck; the emulator checks bounds without it")
    for name in OF_OLD:
        if options.get(name) is not None:
            raise TypeError(f"{name} is no longer an option of cuda.jit: pass a signature instead")
    carveout = options.get("shared_memory_carveout")
    if carveout is not None and not _is_carveout(carveout):
        raise ValueError(f"shared_memory_carveout is -1 to 100, or one of {CARVEOUTS}; not {carveout!r}")
    if unknown := options.keys() - WITHOUT_EFFECT - WITH_EFFECT - set(OF_OLD):
        raise KeyError(f"cuda.jit has no option {', '.join(sorted(unknown))}")


def _emulated(method: Callable) -> Callable:
    """Wrap a method so that, outside of sessions, it calls that of the kernel that numba.cuda compiles."""

    @functools.wraps(method)
    def chosen(kernel: "Kernel", *args: Any, **named: Any) -> Any:
        if active() is None:
            return getattr(kernel.compiled, method.__name__)(*args, **named)
        return method(kernel, *args, **named)

    return chosen


def _is_carveout(value: Any) -> bool:
    return value.lower() in CARVEOUTS if isinstance(value, str) else -1 <= value <= 100


class Kernel:
    """A kernel or device function. When it is configured and called, it runs on the emulator.

    After the session it behaves like the kernel that numba.cuda's own ``cuda.jit`` makes.
    """

    def __init__(self, function: Callable, given: list | None, **options: Any):
        function = getattr(function, "py_func", function)
        functools.update_wrapper(self, function)
        self.py_func: Any = function
        self.targetoptions = options
        self._given = given
        self.declared = [signed.declaration(one, options.get("device", False)) for one in given or ()]
        # `launched` maps types of arguments to the function that was compiled for them.
        self.launched: dict[tuple, Any] = {}
        self._compiled: Any = None
        if given:
            freeze_definition(self)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __call__(self, *args: Any, **named: Any) -> None:
        raise ValueError(
            f"{self.py_func.__name__} was called without a launch configuration; "
            f"write {self.py_func.__name__}[blocks, threads](...)"
        )

    @_emulated
    def __getitem__(self, configuration: Any) -> Any:
        if not isinstance(configuration, (tuple, list)):
            raise TypeError(
                "a launch needs the number of blocks and of threads per block: kernel[blocks, threads]"
            )
        if len(configuration) not in (2, 3, 4):
            raise ValueError(
                "a launch takes kernel[blocks, threads, stream, shared bytes], the last two optional"
            )
        return self.configure(*configuration)

    @_emulated
    def configure(self, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0) -> "Configured":
        for sizes in (griddim, blockdim):
            # Numba keeps its configurations in a dict, and a list is no key of one.
            if isinstance(sizes, list):
                raise TypeError(f"unhashable type: 'list': write a tuple, {tuple(sizes)}, not {sizes}")
        if griddim is None or blockdim is None:
            raise ValueError(f"{self.py_func.__name__} needs a number of blocks and of threads per block")
        return Configured(self, _sizes("grid", griddim), _sizes("block", blockdim), stream, int(sharedmem))

    @_emulated
    def forall(self, ntasks: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> "ForAll":
        if ntasks < 0:
            raise ValueError(f"forall takes a number of tasks, not {ntasks}")
        return ForAll(self, ntasks, tpb, stream, sharedmem)

    @_emulated
    def specialize(self, *args: Any) -> "Kernel":
        """Return a kernel with a single signature. ``args``: its types, or arguments of these types."""
        if self.specialized:
            raise RuntimeError(f"{self.py_func.__name__} is specialized already")
        kernel = Kernel(self.py_func, None, **self.targetoptions)
        types = tuple(arg if isinstance(arg, Type) else _type(arg) for arg in args)
        kernel.declared = [signed.Declared(types, None)]
        freeze_definition(kernel)
        return kernel

    def compiled_for(self, args: Sequence) -> Callable:
        """Return the function with the values of outside names that Numba would have compiled into it.

        With signatures these are the values at the definition, and otherwise those at the first launch with
        arguments of these types.
        """
        types = tuple(map(_type, args))
        if types not in self.launched:
            _check_calls(self.py_func)
            self.launched[types] = (self.declared and as_defined(self)) or frozen(self.py_func)
        return self.launched[types]

    @property
    def signatures(self) -> list[tuple]:
        return [declared.types for declared in self.declared]

    @property
    def specialized(self) -> bool:
        return len(self.declared) == 1

    @property
    def extensions(self) -> list:
        return self.targetoptions.setdefault("extensions", [])

    @property
    def compiled(self) -> Any:
        """The kernel that numba.cuda itself makes of the function, for use outside of sessions."""
        if self._compiled is None:
            given = self._given[0] if self._given is not None and len(self._given) == 1 else self._given
            make = cuda.jit(**self.targetoptions) if given is None else cuda.jit(given, **self.targetoptions)
            self._compiled = make(self.py_func)
        return self._compiled

    @property
    def _numba_type_(self) -> Any:
        return self.compiled._numba_type_

    def __getattr__(self, name: str) -> Any:
        if active() is None and name in OF_DISPATCHERS:
            return getattr(self.compiled, name)
        if name == "overloads":
            return {types: Overload(self) for types in self.signatures or self.launched}
        if name not in COMPILED:
            raise AttributeError(f"a kernel has no attribute {name}")
        raise unsupported(f"the emulator compiles nothing, so {self.py_func.__name__} has no {name}")


class Overload:
    """A replacement for a kernel compiled for given types. It answers only what needs no compiled code."""

    def __init__(self, kernel: Kernel):
        self._kernel = kernel

    def max_cooperative_grid_blocks(self, blockdim: Any, dynsmemsize: int = 0) -> int:
        """Return how many blocks the GPU holds at a time, as limited by threads and shared memory.

        Shared arrays of fixed shape count once the kernel has been launched. Registers do not count, because
        the emulator does not know how many the kernel needs.
        """
        threads = int(np.prod(_sizes("block", blockdim)))
        fixed = current().fixed_shared_bytes(self._kernel.py_func)
        return current().gpu.resident_blocks(threads, fixed + dynsmemsize)

    def __getattr__(self, name: str) -> Any:
        raise unsupported(f"the emulator compiles nothing, so {self._kernel.py_func.__name__} has no {name}")


class Configured:
    """A kernel with its grid and block: ``kernel[grid, block, stream, shared_bytes]``."""

    def __init__(self, dispatcher: Kernel, griddim: tuple, blockdim: tuple, stream: Any, sharedmem: int):
        self.dispatcher, self.griddim, self.blockdim = dispatcher, griddim, blockdim
        self.stream, self.sharedmem = stream, sharedmem

    def __call__(self, *args: Any) -> None:
        kernel, name = self.dispatcher, self.dispatcher.py_func.__name__
        if kernel.targetoptions.get("device"):
            raise TypeError(f"{name} is a device function: kernels call it, the host cannot launch it")
        if self.sharedmem > MAX_STATIC_SHARED_BYTES:
            raise DriverError(
                INVALID_VALUE,
                f"{name} asks for {self.sharedmem:,} bytes of dynamic shared memory; a kernel must opt in "
                f"to more than {MAX_STATIC_SHARED_BYTES:,}, and numba.cuda has no call for that",
            )
        self._check_launch_bounds()
        back: list[Callable[[], None]] = []
        values = [on_device(through_extensions(kernel.extensions, arg, back), back) for arg in args]
        if kernel.declared:
            values = signed.fitted(name, kernel.signatures, _parameters(kernel.py_func), values)
        current().launch(self, kernel.compiled_for(values), values, place())
        for copy_back in back:
            copy_back()

    def _check_launch_bounds(self) -> None:
        bounds = self.dispatcher.targetoptions.get("launch_bounds")
        most = bounds[0] if isinstance(bounds, (tuple, list)) else bounds
        threads = int(np.prod(self.blockdim))
        if most is not None and threads > most:
            raise DriverError(
                INVALID_VALUE, f"a block of {threads} threads was launched, and launch_bounds allows {most}"
            )


class ForAll:
    """A kernel that is launched with one thread for each of ``ntasks`` tasks."""

    def __init__(self, dispatcher: Kernel, ntasks: int, tpb: int, stream: Any, sharedmem: int):
        self.dispatcher, self.ntasks, self.thread_per_block = dispatcher, ntasks, tpb
        self.stream, self.sharedmem = stream, sharedmem

    def __call__(self, *args: Any) -> None:
        if self.ntasks:
            threads = self.thread_per_block or full_block()
            blocks = -(-self.ntasks // threads)
            self.dispatcher.configure(blocks, threads, self.stream, self.sharedmem)(*args)


def _check_calls(function: Callable) -> None:
    used = (*globals_of(function).values(), *closure_of(function))
    if any(getattr(value, "py_func", None) is function for value in used):
        raise unsupported(f"{function.__name__} calls itself, which only device functions can")


def _type(value: Any) -> Any:
    """Return the Numba type of an argument, or its Python type if Numba cannot take it."""
    try:
        return typeof(value)
    except (ValueError, TypeError):
        return type(value)


def full_block() -> int:
    """Return the largest block size that divides a multiprocessor's threads, as the driver suggests it."""
    held = current().gpu.limits.threads
    return next(size for size in range(MAX_THREADS, 0, -32) if held % size == 0)


def _parameters(function: Callable) -> list[str]:
    return list(inspect.signature(function).parameters)


def _sizes(what: str, given: Any) -> tuple[int, int, int]:
    sizes = list(given) if isinstance(given, (tuple, list)) else [given]
    if len(sizes) > 3:
        raise ValueError(f"a {what} has one to three sizes (x, y, z), not {given!r}")
    for size in sizes:
        if not isinstance(size, numbers.Integral):
            raise TypeError(f"the sizes of a {what} are integers, not {given!r}")
    return tuple(int(size) for size in sizes + [1] * (3 - len(sizes)))
