"""Uses the insides of numba-cuda that compiling without a GPU needs, which no other module touches.

numba-cuda compiles for the GPU at hand. It asks the driver which one that is, and caches what it compiles.
`cuda.compile` compiles a kernel for any GPU, but the kernel's device functions are still compiled for the GPU
at hand, and cached. So three things are changed during Numba's part of the work, for this thread alone:

- `numba.cuda.dispatcher.get_current_device` answers with the compute capability that is compiled for.
- Device functions forget their compiled versions, and get them back afterwards. These may be for another
  compute capability, or, without a GPU, mere signatures that wait to be compiled (lockstep.without_gpu).
- Device functions are compiled with line numbers, as with `lineinfo=True`, if the caller asks for that.

Numba's compiler lock is held meanwhile. Everything else does what `numba.cuda.dispatcher._Kernel` does at a
launch, as of numba-cuda 0.30, the version that pyproject.toml asks for.
"""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from lockstep import as_defined
from lockstep.intrinsics import TensorMap

HOPPER = (9, 0)
LIBRARIES = ("numba", "numba_cuda")


@dataclass(frozen=True)
class Lowered:
    """A kernel in LLVM's intermediate code, as Numba hands it to NVIDIA's optimiser.

    ``name`` is the kernel's mangled name. ``files`` are those of the kernel and its device functions, as
    their code objects name them. ``sources`` are CUDA C++ that must be linked, as (name, text), such as
    float16's arithmetic. ``others`` are names of what must be linked and is not a source.
    """

    modules: tuple[str, ...]
    name: str
    files: tuple[str, ...]
    sources: tuple[tuple[str, str], ...]
    others: tuple[str, ...]


def architecture(capability: tuple[int, int]) -> str:
    """Return the target that numba-cuda chooses for a GPU of this compute capability: "86", "90a"."""
    major, minor = capability
    return f"{major}{minor}{'a' if capability >= HOPPER else ''}"


def lowered(dispatcher: Any, types: tuple, capability: tuple[int, int], lines: bool) -> Lowered:
    """Do Numba's part of compiling a kernel for arguments of these Numba types. Raise what Numba raises.

    With ``lines``, include all line numbers. Otherwise include those that a launch would have, which are none
    without lineinfo=True.
    """
    from numba.cuda import types as numba_types
    from numba.cuda.compiler import compile_cuda, kernel_fixup
    from numba.cuda.cudadrv import nvvm

    options = dispatcher.targetoptions
    function = as_defined(dispatcher) or dispatcher.py_func
    with _compiling_for(capability, lines) as device_functions:
        result = compile_cuda(
            function,
            numba_types.void,
            types,
            lineinfo=lines or bool(options.get("lineinfo")),
            forceinline=bool(options.get("forceinline")),
            fastmath=bool(options.get("fastmath")),
            # The caller of this function calls NVVM itself, so Numba needs no options for NVVM.
            nvvm_options={},
            cc=capability,
        )
        library = result.library
        kernel = library.get_function(result.fndesc.llvm_func_name)
        kernel_fixup(kernel, False)
        nvvm.set_launch_bounds(kernel, options.get("launch_bounds"))
        # NVVM reads a dialect of its own.
        modules = tuple(nvvm.llvm_replace(module) for module in library.llvm_strs)
    files = [function.__code__.co_filename, *(one.py_func.__code__.co_filename for one in device_functions)]
    sources, others = _to_link(library, options, modules)
    # NVRTC marks the version of debug information by another kind of flag, so the modules get this kind, too.
    if sources:
        modules = tuple(
            re.sub(r'i32 \d+, (!"Debug Info Version")', r"i32 4, \1", module) for module in modules
        )
    return Lowered(modules, kernel.name, tuple(dict.fromkeys(files)), sources, others)


def _to_link(library: Any, options: dict, modules: tuple[str, ...]) -> tuple[tuple, tuple]:
    """Return what must be linked: sources in CUDA C++, and the names of what is not a source."""
    from numba.cuda import dispatcher

    wanted = [*(options.get("link") or ()), *library._linking_files]
    if any(name in module for name in dispatcher.reshape_funcs for module in modules):
        wanted.append(str(Path(dispatcher.__file__).with_name("reshape_funcs.cu")))
    sources, others = [], ["cudadevrt, for a barrier of the whole grid"] if library.use_cooperative else []
    for one in dict.fromkeys(wanted):
        if isinstance(one, str) and one.endswith(".cu"):
            sources.append((os.path.basename(one), Path(one).read_text(encoding="utf-8")))
        elif getattr(one, "kind", "") == "cu":
            text = one.data if isinstance(one.data, str) else one.data.decode()
            sources.append((one.name, text))
        else:
            others.append(one if isinstance(one, str) else one.name)
    return tuple(sorted(sources, key=lambda source: source[1])), tuple(others)


def compiled_source(name: str, text: str, capability: tuple[int, int], lto: bool) -> bytes:
    """Compile CUDA C++ with NVRTC to LTO-IR or PTX, and return it. Raise what cuda.core raises."""
    from numba.cuda.cudadrv import nvrtc

    suffix = ("a",) if capability >= HOPPER else ()
    code, _ = nvrtc.compile(text, name, (*capability, *suffix), ltoir=lto)
    return bytes(code.code)


def nvvm_options(options: dict) -> dict[str, int | None]:
    """Return NVVM's options for a kernel's `cuda.jit` options, which are in `dispatcher.targetoptions`."""
    fast = {"ftz": 1, "fma": 1, "prec-div": 0, "prec-sqrt": 0} if options.get("fastmath") else {}
    return {"opt": 3 if options.get("opt", True) else 0, **fast}


def type_of(value: Any) -> Any:
    """Return the Numba type that an argument has in a launch on a GPU. Raise ValueError if there is none.

    A tensor map becomes an array of 16 uint64. An array on the host becomes one on the device, which is
    aligned and not read-only.
    """
    from numba.cuda import types
    from numba.cuda.np import numpy_support
    from numba.cuda.typing.typeof import Purpose, typeof

    if isinstance(value, types.Type):
        return value
    if isinstance(value, TensorMap):
        return types.Array(types.uint64, 1, "C")
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise ValueError("Python objects cannot be copied to a GPU")
        flags = value.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return types.Array(numpy_support.from_dtype(value.dtype), value.ndim, layout)
    return typeof(value, Purpose.argument)


def declared(dispatcher: Any) -> list[tuple]:
    """Return the types in the signatures that a kernel was defined with, if any.

    Such a kernel takes no other arguments.
    """
    return [] if dispatcher._can_compile else list(dispatcher.overloads)


@contextmanager
def _compiling_for(capability: tuple[int, int], lines: bool) -> Iterator[list]:
    """Change numba-cuda as the module's docstring says, until the block ends.

    Yield a list, which gets the device functions that are not Numba's own.
    """
    from numba.cuda import dispatcher as module
    from numba.cuda.core.compiler_lock import global_compiler_lock
    from numba.cuda.core.errors import NumbaWarning

    kind, mine = module.CUDADispatcher, _in_this_thread()
    device = SimpleNamespace(compute_capability=capability)
    before: dict[Any, dict] = {}
    own: list = []

    def get_call_template(self, args, kws):
        if mine() and self not in before:
            before[self] = dict(vars(self))
            _forget(self, lines)
            if not _is_numbas(self.py_func):
                own.append(self)
        return resolve(self, args, kws)

    def get_current_device():
        return device if mine() else ask()

    with global_compiler_lock, warnings.catch_warnings():
        # Numba warns of functions without a source, for example.
        warnings.simplefilter("ignore", NumbaWarning)
        # Both functions are read under the lock, because outside the lock they may belong to another thread
        # that compiles.
        resolve, ask = kind.get_call_template, module.get_current_device
        kind.get_call_template, module.get_current_device = get_call_template, get_current_device
        try:
            yield own
        finally:
            kind.get_call_template, module.get_current_device = resolve, ask
            for function, state in before.items():
                _remember(function, state)


def _in_this_thread() -> Callable[[], bool]:
    thread = threading.get_ident()
    return lambda: threading.get_ident() == thread


def _is_numbas(function: Callable) -> bool:
    """Tell whether a function is one of Numba's own, such as its `max`, whose lines nobody asks for."""
    return function.__module__.partition(".")[0] in LIBRARIES


def _forget(function: Any, lines: bool) -> None:
    """Let a device function be compiled again, with line numbers if asked. It keeps its own signatures."""
    signatures = {types: made.signature.return_type for types, made in function.overloads.items()}
    function.overloads = type(function.overloads)()
    function.py_func = as_defined(function) or function.py_func
    if lines:
        function.targetoptions = {**function.targetoptions, "lineinfo": not _is_numbas(function.py_func)}
    if not function._can_compile:
        for types, return_type in signatures.items():
            function.compile_device(types, return_type)


def _remember(function: Any, state: dict) -> None:
    """Restore a device function, and remove from Numba's tables what was compiled in between."""
    for made in function.overloads.values():
        # An interruption may have come before the version was entered there.
        with suppress(KeyError):
            made.target_context.remove_user_function(made.entry_point)
    own = vars(function)
    for name in own.keys() - state.keys():
        del own[name]
    own.update(state)


def file_names(files: tuple[str, ...]) -> dict[str, str]:
    """Return the name to show for each file name in debug information.

    The course's own files are shown from the package's name on.
    """
    package = Path(__file__).parents[1]
    names = {}
    for file in files:
        path = Path(os.path.abspath(file))
        of_course = path.relative_to(package.parent).as_posix() if path.is_relative_to(package) else None
        names[os.path.normcase(path)] = of_course or file
    return names
