"""Emulates ``cuda.jit``, the kernels that it makes, and their launches."""

import functools
import inspect
import math
import numbers
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import cuda
from numba.types import Type

from lockstep.errors import ArgumentError, KernelTypeError, LaunchError, RefusedLine
from lockstep.frozen import as_defined, closure_of, freeze_definition, frozen, globals_of
from lockstep.launching.launch import bind
from lockstep.library import signatures as signed
from lockstep.limits import MAX_STATIC_SHARED_BYTES, MAX_THREADS

from .arguments import on_device, through_extensions, type_of
from .arrays import DeviceNDArray
from .errors import DriverError, RefusedLaunch, missing, place, refusing, unsupported
from .state import active, current

# These options concern compiled code: its speed, its rounding, its debug information.
WITHOUT_EFFECT = {
    *("inline", "forceinline", "debug", "opt", "lineinfo", "cache", "lto", "fastmath", "max_registers"),
    *("shared_memory_carveout", "nopython", "fma", "ftz", "prec_div", "prec_sqrt"),
}
WITH_EFFECT = {"device", "link", "boundscheck", "extensions", "launch_bounds"}
CARVEOUTS = ("default", "maxl1", "maxshared")
OF_OLD = ("argtypes", "restype", "bind")
# These methods tell of compiled code, so they are refused when they are called.
INSPECTING = (
    *("inspect_asm", "inspect_llvm", "inspect_lto_ptx", "inspect_sass", "inspect_sass_cfg", "inspect_types"),
)
COMPILED = (
    *(*INSPECTING, "inspect_cfg", "inspect_disasm_cfg", "get_regs_per_thread", "get_const_mem_size"),
    *("get_shared_mem_per_block", "get_local_mem_per_thread", "get_metadata", "get_compile_result"),
    *("get_annotation_info", "compile", "compile_device", "recompile"),
)
# These attributes tell of compiled code too. As they are not called, it is reading them that is refused.
ATTRIBUTES = ("stats", "nopython_signatures")
OF_DISPATCHERS = (*COMPILED, *ATTRIBUTES, "call", "doc", "func_code", "disable_compile")
# A ufunc's kernel keeps the program's function of elements in this attribute.
OF_ELEMENTS = "_lockstep_of_elements"


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
    """Wrap a method of a kernel. Outside of sessions, numba.cuda's own kernel gets the call instead."""

    @functools.wraps(method)
    def chosen(kernel: "Kernel", *args: Any, **named: Any) -> Any:
        if active() is None:
            return getattr(kernel.compiled, method.__name__)(*args, **named)
        return method(kernel, *args, **named)

    return chosen


def _check_function(function: Any) -> None:
    if inspect.isroutine(function) and hasattr(function, "__code__"):
        return
    name = getattr(function, "__name__", repr(function))
    kind = type(function).__name__
    sentence = f"cuda.jit takes a function that is written in Python, and {name} is of the type {kind}"
    raise missing(sentence) if callable(function) else ArgumentError(sentence)


def _is_carveout(value: Any) -> bool:
    return value.lower() in CARVEOUTS if isinstance(value, str) else -1 <= value <= 100


class Kernel:
    """A kernel or device function. When it is configured and called, it runs on the emulator.

    After the session it behaves like the kernel that numba.cuda's own ``cuda.jit`` makes.
    """

    def __init__(self, function: Callable, given: list | None, **options: Any):
        function = getattr(function, "py_func", function)
        _check_function(function)
        functools.update_wrapper(self, function)
        self.py_func: Any = function
        self.targetoptions = options
        self._given = given
        self.declared = [signed.declaration(one, options.get("device", False)) for one in given or ()]
        # `launched` maps types of arguments to the function that was compiled for them.
        self.launched: dict[tuple, Any] = {}
        # `specializations` has the copies for one signature each, by compute capability and types.
        self.specializations: dict[tuple, Kernel] = {}
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
        """Return a copy of the kernel with a single signature, the same copy for the same types.

        ``args``: its types, or arguments of these types.
        """
        if self.specialized:
            raise RuntimeError(f"{self.py_func.__name__} is specialized already")
        types = tuple(arg if isinstance(arg, Type) else type_of(arg) for arg in args)
        key = current().gpu.compute_capability, types
        if key not in self.specializations:
            kernel = self.specializations[key] = Kernel(self.py_func, None, **self.targetoptions)
            kernel.targetoptions = self.targetoptions
            kernel.declared = [signed.Declared(types, None)]
            freeze_definition(kernel)
        return self.specializations[key]

    @_emulated
    def get_max_threads_per_block(self, signature: Any = None) -> int | dict[tuple, int]:
        """Return how many threads a block may have, or a dict from the types of arguments to that number."""
        if signature is not None:
            return self.overloads[signature.args].max_threads_per_block
        return self.most_threads if self.specialized else dict.fromkeys(self.overloads, self.most_threads)

    @_emulated
    def typeof_pyval(self, val: Any) -> Any:
        """Return the Numba type of an argument."""
        return type_of(val)

    @_emulated
    def enable_caching(self) -> None:
        """Do nothing, because no compiled code can be kept in a file."""

    def compiled_for(self, types: tuple) -> Callable:
        """Return the function with the values of outside names that Numba would have compiled into it.

        ``types``: those of the arguments.

        With signatures these are the values at the definition, and otherwise those at the first launch with
        arguments of these types.
        """
        if types not in self.launched:
            _check_calls(self.py_func)
            self.launched[types] = (self.declared and as_defined(self)) or frozen(self.py_func)
        return self.launched[types]

    @property
    def overloads(self) -> dict[tuple, "Overload"]:
        """What the kernel is compiled for: its signatures or, without any, the types of its launches."""
        if active() is None:
            return self.compiled.overloads
        types = [declared.types for declared in self.declared] or self.launched
        return {one: Overload(self, one) for one in types}

    @property
    def signatures(self) -> list[tuple]:
        return list(self.overloads)

    @property
    def specialized(self) -> bool:
        return len(self.declared) == 1

    @property
    def most_threads(self) -> int:
        """How many threads a block may have. Registers do not count: how many it needs is unknown."""
        bounds = self.targetoptions.get("launch_bounds")
        most = bounds[0] if isinstance(bounds, (tuple, list)) else bounds
        return min(most or MAX_THREADS, MAX_THREADS)

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
        if name in COMPILED:
            return refusing(_not_compiled(self, name))
        if name in ATTRIBUTES:
            raise missing(_not_compiled(self, name))
        raise AttributeError(f"a kernel has no attribute {name}")


class Overload:
    """A replacement for a kernel compiled for given types. It answers only what needs no compiled code."""

    def __init__(self, kernel: Kernel, types: tuple):
        self._kernel, self.argument_types = kernel, types

    @property
    def max_threads_per_block(self) -> int:
        return self._kernel.most_threads

    @property
    def cooperative(self) -> bool:
        """Whether the kernel waits for all blocks of its grid."""
        return bind(self._kernel.py_func).meets_grid

    def max_cooperative_grid_blocks(self, blockdim: Any, dynsmemsize: int = 0) -> int:
        """Return how many blocks the GPU holds at a time, as limited by threads and shared memory.

        Shared arrays of fixed shape count once the kernel has been launched. Registers do not count, because
        the emulator does not know how many the kernel needs.
        """
        threads = math.prod(_sizes("block", blockdim))
        fixed = current().fixed_shared_bytes(self._kernel.py_func)
        return current().gpu.resident_blocks(threads, fixed + dynsmemsize)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in INSPECTING:
            return refusing(_not_compiled(self._kernel, name))
        raise missing(_not_compiled(self._kernel, name))


def _not_compiled(kernel: Kernel, name: str) -> str:
    return f"the emulator compiles nothing, so {kernel.py_func.__name__} has no {name}"


class Configured:
    """A kernel with its grid and block: ``kernel[grid, block, stream, shared_bytes]``."""

    def __init__(self, dispatcher: Kernel, griddim: tuple, blockdim: tuple, stream: Any, sharedmem: int):
        self.dispatcher, self.griddim, self.blockdim = dispatcher, griddim, blockdim
        self.stream, self.sharedmem = stream, sharedmem

    def __call__(self, *args: Any) -> None:
        self.launch(args, self.dispatcher.declared)

    def launch(self, args: Sequence, declared: Sequence[signed.Declared]) -> None:
        """Launch the kernel, with numbers cast to the types of the signature in ``declared`` that fits."""
        kernel, name = self.dispatcher, self.dispatcher.py_func.__name__
        if kernel.targetoptions.get("device"):
            raise TypeError(f"{name} is a device function: kernels call it, the host cannot launch it")
        if self.sharedmem > MAX_STATIC_SHARED_BYTES:
            raise RefusedLaunch(
                f"{name} asks for {self.sharedmem:,} bytes of dynamic shared memory; a kernel must opt in "
                f"to more than {MAX_STATIC_SHARED_BYTES:,}, and numba.cuda has no call for that",
            )
        self._check_launch_bounds()
        wanted = [one.types for one in declared], _parameters(kernel.py_func)
        if len(declared) == 1:
            args = _through_pointers(declared[0], args)
        if declared and all(isinstance(arg, (np.ndarray, np.generic, int, float, complex)) for arg in args):
            signed.fitted(name, *wanted, args)  # A signature is chosen before an array is copied.
        back: list[Callable[[], None]] = []
        values = [on_device(through_extensions(kernel.extensions, arg, back), back) for arg in args]
        if declared:
            values = signed.fitted(name, *wanted, values)
        types = tuple(map(type_of, values))
        known = types in kernel.launched
        try:
            current().launch(self, kernel.compiled_for(types), values, place())
        except (RefusedLine, KernelTypeError, LaunchError) as error:
            # Numba compiles nothing for what is refused. What the driver refuses has been compiled before.
            if not known and not isinstance(error, (DriverError, RefusedLaunch)):
                kernel.launched.pop(types, None)
            raise
        for copy_back in back:
            copy_back()

    def _check_launch_bounds(self) -> None:
        most, threads = self.dispatcher.most_threads, math.prod(self.blockdim)
        if self.dispatcher.targetoptions.get("launch_bounds") is not None and threads > most:
            raise RefusedLaunch(f"a block of {threads} threads was launched, and launch_bounds allows {most}")


class ForAll:
    """A kernel that is launched with one thread for each of ``ntasks`` tasks.

    As in numba.cuda, a copy that is specialized for the arguments is launched.
    """

    def __init__(self, dispatcher: Kernel, ntasks: int, tpb: int, stream: Any, sharedmem: int):
        self.dispatcher, self.ntasks, self.thread_per_block = dispatcher, ntasks, tpb
        self.stream, self.sharedmem = stream, sharedmem

    def __call__(self, *args: Any) -> None:
        if not self.ntasks:
            return
        given = self.dispatcher
        kernel = given if given.specialized else given.specialize(*args)
        threads = self.thread_per_block or kernel.most_threads
        blocks = -(-self.ntasks // threads)
        # The copy has the arguments' own types, so there is nothing to cast.
        declared = given.declared if kernel is given else []
        kernel.configure(blocks, threads, self.stream, self.sharedmem).launch(args, declared)


def _through_pointers(declared: signed.Declared, args: Sequence) -> list:
    """Return the arguments with arrays in place of addresses of device memory."""
    args = list(args)
    for number in declared.pointers:
        if number < len(args) and isinstance(args[number], numbers.Integral):
            dtype = signed.dtype_of_type(declared.types[number].dtype)
            args[number] = DeviceNDArray.of(current().heap.from_address(int(args[number]), dtype))
    return args


def _check_calls(function: Callable) -> None:
    used = (*globals_of(function).values(), *closure_of(function))
    if any(getattr(value, "py_func", None) is function for value in used):
        raise unsupported(f"{function.__name__} calls itself, which only device functions can")


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
