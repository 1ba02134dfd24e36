"""Offers `compiled`, and takes the steps from Python to machine code."""

from __future__ import annotations

import functools
import inspect
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

import numpy as np

from gemm_course.compiler import _numba
from gemm_course.compiler.alike import like_places
from gemm_course.compiler.disassembly import Instruction, instructions
from gemm_course.compiler.limits import shown, why_not, why_too_much
from gemm_course.compiler.nvidia import (
    Usage,
    disassembled,
    linked,
    machine_words,
    optimised,
    require_compiler,
    why_no_compiler,
)
from gemm_course.compiler.reasons import (
    CannotCompile,
    NoCompiler,
    linkers_reason,
    numbas_reason,
    one_of,
    too_much_static,
)
from gemm_course.compiler.record import RECORDED, compiler_text, recorded, versions
from gemm_course.compiler.result import Compiled
from gemm_course.kernels import LADDER, Stage, tiles_text
from lockstep import active, did_you_mean
from lockstep.limits import LIMITS, MAX_STATIC_SHARED_BYTES, MAX_THREADS

# Example matrices have this many rows and columns, but only their types matter.
EXAMPLE = 64
# This many stages with tiles are cached.
KEPT = 64


def compiled(
    kernel_or_stage: Any,
    *args: Any,
    compute_capability: tuple[int, int] | str = (9, 0),
    tiles: Mapping[str, int] | None = None,
) -> Compiled:
    """Compile a kernel as a launch on a GPU of this compute capability would, and return its machine code.

    ``kernel_or_stage`` is a stage of the ladder or its name; or a `cuda.jit` kernel, configured as in
    `my_kernel[grid, block]` or not; or a plain function. ``args`` are a kernel's example arguments, NumPy
    arrays and numbers, of which only the types matter. There are none if the kernel was defined with a
    signature. ``compute_capability`` is one that the course knows, (7, 5) to (12, 0), also as "8.6" or
    "sm_86". ``tiles`` are sizes to change from a stage's defaults.

    This needs no GPU, but the extra `compiler`. Without the extra, a stage at its default tiles is read from
    the record, for 8.0, 8.6 and 9.0. The code is what a launch loads on such a GPU if numba-cuda finds the
    same versions of NVIDIA's NVVM and nvJitLink there.

    Raise CannotCompile, a ValueError, with the reason in a sentence. Raise IllegalTiles for illegal tiles,
    ValueError for a size that the stage does not have, and NoCompiler with what to install.
    """
    capability = _capability(compute_capability)
    if isinstance(kernel_or_stage, (str, Stage)):
        stage = _stage(kernel_or_stage)
        if args:
            raise CannotCompile(f"{stage.name} is a stage of the ladder, which needs no example arguments.")
        return _of_stage(stage, stage.complete(tiles), capability)
    if tiles is not None:
        raise CannotCompile("tiles belong to a stage of the ladder; your own kernel has its sizes built in.")
    asked = _asked(kernel_or_stage)
    return _compile(*_given(asked, args), capability, asked)


def usage_of(kernel: Any, *args: Any, compute_capability: tuple[int, int]) -> Usage:
    """Return the registers and memory that a kernel takes, in half of `compiled`'s time.

    Nothing is disassembled. The arguments and errors are those of `compiled`, but no stage is accepted.
    """
    asked = _asked(kernel)
    image = _image(*_given(asked, args), compute_capability, lines=False)
    _shared_bytes(image.used, asked, compute_capability)
    return image.used


def _given(asked: _Asked, args: Sequence) -> tuple[Any, tuple]:
    """Return numba-cuda's own object for a kernel, and the types of its arguments."""
    require_compiler()
    if active() is not None:
        raise CannotCompile(
            "numba.cuda is emulated at the moment; ask for machine code outside of emulated()."
        )
    dispatcher = _dispatcher(asked.kernel)
    return dispatcher, _types(dispatcher, args)


@dataclass(frozen=True)
class _Asked:
    """A kernel, and what is known of its launch."""

    kernel: Any
    name: str
    tiles: str = ""
    dynamic_shared_bytes: int = 0


# --- what is asked for --------------------------------------------------------------------------------------


def _capability(given: Any) -> tuple[int, int]:
    if isinstance(given, str) and (parts := re.fullmatch(r"(?:sm_|cc)?(\d+)\.?(\d)", given.strip().lower())):
        given = (int(parts[1]), int(parts[2]))
    if given not in list(LIMITS):
        known = one_of(map(shown, LIMITS))
        raise CannotCompile(
            f"the compute capability must be {known}, written (9, 0) or '9.0', not {given!r}."
        )
    return given


def _stage(named: str | Stage) -> Stage:
    if isinstance(named, Stage):
        return named
    if named not in LADDER:
        known = [stage.name for stage in LADDER]
        guess = did_you_mean(named, known) or "."
        raise CannotCompile(f"no stage is called {named!r}; the ladder is {', '.join(known)}{guess}")
    return LADDER[named]


def _of_stage(stage: Stage, tiles: dict[str, int], capability: tuple[int, int]) -> Compiled:
    # `why_not` raises IllegalTiles if the tiles break a rule.
    if impossible := why_not(stage, tiles, capability):
        raise CannotCompile(impossible)
    reason = why_no_compiler()
    if reason is None:
        return _compiled_stage(stage, tuple(tiles.items()), capability)
    found = recorded(stage, capability) if tiles == stage.complete() else None
    if found is not None:
        return found
    known = one_of(map(shown, RECORDED))
    raise NoCompiler(
        f"{reason} Without it there is machine code only of the ladder's stages at their default tiles, for "
        f"compute capability {known}."
    )


@functools.lru_cache(maxsize=KEPT)
def _compiled_stage(
    stage: Stage, tiles: tuple[tuple[str, int], ...], capability: tuple[int, int]
) -> Compiled:
    chosen = dict(tiles)
    A, B, C = (np.zeros((EXAMPLE, EXAMPLE), stage.dtype) for _ in range(3))
    extras = stage.example_extras(EXAMPLE, EXAMPLE)
    standard = (EXAMPLE, EXAMPLE, EXAMPLE, np.float32(1), A, B, np.float32(0), C, *extras)
    dispatcher = stage.kernel(chosen)
    types = _types(dispatcher, stage.arguments(*standard, tiles=chosen))
    asked = _Asked(dispatcher, stage.name, tiles_text(chosen), stage.shared_bytes(chosen))
    return _compile(dispatcher, types, capability, asked)


def _asked(given: Any) -> _Asked:
    if all(hasattr(given, name) for name in ("dispatcher", "griddim", "blockdim", "sharedmem")):
        name = given.dispatcher.py_func.__name__
        threads = math.prod(int(size) for size in given.blockdim)
        if threads > MAX_THREADS:
            raise CannotCompile(
                f"{name} is configured with {threads} threads per block; {MAX_THREADS} is the most."
            )
        return _Asked(given.dispatcher, name, dynamic_shared_bytes=int(given.sharedmem))
    function = getattr(given, "py_func", given)
    if not isinstance(function, FunctionType):
        raise CannotCompile(
            "a stage of the ladder, a kernel or a function is needed, such as compiled('vectorized') or "
            f"compiled(my_kernel, A, B), not {given!r}."
        )
    return _Asked(given, function.__name__)


def _dispatcher(kernel: Any) -> Any:
    """Return numba-cuda's own object for a kernel. Raise CannotCompile for what cannot be launched."""
    from numba import cuda

    if isinstance(kernel, FunctionType):
        kernel = cuda.jit(kernel)
    kernel = getattr(kernel, "compiled", kernel)  # The kernel may have been defined under emulation.
    name, options = kernel.py_func.__name__, kernel.targetoptions
    if options.get("device"):
        raise CannotCompile(f"{name} is a device function: compile a kernel that calls it.")
    if options.get("debug"):
        raise CannotCompile(f"{name} has debug=True, which switches the optimiser off: leave it out.")
    return kernel


def _types(dispatcher: Any, args: Sequence) -> tuple:
    """Return the Numba types of a launch with these arguments."""
    function = dispatcher.py_func
    names = list(inspect.signature(function).parameters)
    declared = _numba.declared(dispatcher)
    if len(declared) == 1 and not args:
        return declared[0]
    if len(names) != len(args):
        raise CannotCompile(
            f"{function.__name__} takes {_count(len(names), 'argument')} ({', '.join(names)}); "
            f"{len(args)} {'was' if len(args) == 1 else 'were'} given. Only their types count."
        )
    types = []
    for name, value in zip(names, args, strict=True):
        try:
            types.append(_numba.type_of(value))
        except (ValueError, TypeError, NotImplementedError):
            raise CannotCompile(
                f"Numba has no type for the argument {name}, {_shown(value)}: pass NumPy arrays and numbers."
            ) from None
    if not declared or tuple(types) in declared:
        return tuple(types)
    if len(declared) == 1:
        return declared[0]
    raise CannotCompile(
        f"{function.__name__} was defined with {len(declared)} signatures, and these arguments fit none of "
        "them exactly."
    )


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    return f"{'an' if type(value).__name__[0] in 'aeiou' else 'a'} {type(value).__name__}"


# --- from Python to machine code ----------------------------------------------------------------------------


def _compile(dispatcher: Any, types: tuple, capability: tuple[int, int], asked: _Asked) -> Compiled:
    begun = time.perf_counter()
    image = _image(dispatcher, types, capability, lines=True)
    # In stages, line numbers change no instruction. A test compares the code of each stage at its default
    # tiles with a launch's code. At other tiles, a profile is kept only if its instructions are the same
    # (bench.profile.join).
    launched = image if asked.tiles else _image(dispatcher, types, capability, lines=False)
    rows = _rows(launched, image)
    seconds = time.perf_counter() - begun
    return Compiled(
        name=asked.name,
        tiles=asked.tiles,
        compute_capability=capability,
        registers=launched.used.registers,
        spilled_bytes=launched.used.spilled_bytes,
        local_bytes=launched.used.local_bytes,
        shared_bytes=_shared_bytes(launched.used, asked, capability),
        static_shared_bytes=launched.used.shared_bytes,
        seconds=seconds,
        compiler=compiler_text(versions()),
        rows=rows,
    )


def _shared_bytes(used: Usage, asked: _Asked, capability: tuple[int, int]) -> int:
    """Return the shared memory per block in bytes, including what the launch requests.

    Raise CannotCompile if it is too much.
    """
    # The assembler does not complain for 9.0, so the bytes are checked here.
    if used.shared_bytes > MAX_STATIC_SHARED_BYTES:
        raise too_much_static(asked.name, used.shared_bytes)
    shared = used.shared_bytes + asked.dynamic_shared_bytes
    if impossible := why_too_much(asked.name, shared, capability):
        raise CannotCompile(impossible)
    return shared


@dataclass(frozen=True)
class _Image:
    """Machine code as the linker makes it, with the registers and memory that it takes."""

    elf: bytes
    used: Usage
    entry: str
    kernel: str
    files: Mapping[str, str]

    def rows(self) -> list[Instruction]:
        return instructions(disassembled(self.elf), self.entry, self.kernel, self.files)


def _image(dispatcher: Any, types: tuple, capability: tuple[int, int], lines: bool) -> _Image:
    """Compile with all line numbers, or as a launch does."""
    options, function = dispatcher.targetoptions, dispatcher.py_func
    name, target, lto = function.__name__, _numba.architecture(capability), bool(options.get("lto", True))
    try:
        code = _numba.lowered(dispatcher, types, capability, lines)
    except Exception as error:  # Numba's passes may raise anything, and the learner needs a sentence.
        raise numbas_reason(error, function) from error
    if code.others:
        raise CannotCompile(f"{name} is linked with {', '.join(code.others)}, which is done on a GPU only.")
    parts = [optimised(code.modules, target, _numba.nvvm_options(options), lto, name)]
    for source in code.sources:
        try:
            parts.append(_numba.compiled_source(*source, capability, lto))
        except Exception as error:  # cuda.core and cuda.bindings have several errors for NVRTC.
            raise linkers_reason(str(error), name) from error
    lines = lines or bool(options.get("lineinfo"))
    elf, used = linked(parts, target, name, lto, options.get("max_registers"), lines)
    return _Image(elf, used, code.name, name, _numba.file_names(code.files))


def _rows(launched: _Image, with_lines: _Image) -> list[Instruction]:
    """Return a launch's instructions, with their lines from the code that was compiled with line numbers.

    Line numbers do not change what a kernel computes, but they sometimes change the order of instructions.
    """
    lined = with_lines.rows()
    if launched is with_lines or machine_words(launched.elf) == machine_words(with_lines.elf):
        return lined
    rows = launched.rows()
    places = like_places([row.opcode for row in rows], [row.opcode for row in lined])
    return [
        replace(row, file=lined[place].file, line=lined[place].line)
        for row, place in zip(rows, places, strict=True)
    ]
