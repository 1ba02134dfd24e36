"""Runs NVIDIA's tools: checks that they are there, optimises and links a kernel, and disassembles it."""

from __future__ import annotations

import functools
import io
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gemm_course import places
from gemm_course.compiler.reasons import NoCompiler, linkers_reason, optimisers_reason

_HOW = (
    "`python3 course.py --compiler`, or `pip install -e '.[compiler]'`"
    if (places.COURSE / "course.py").is_file()
    else "`pip install 'gemm-course[compiler]'`"
)
INSTALL = f"install the extra `compiler`: {_HOW}"


@dataclass(frozen=True)
class Usage:
    """The registers and memory that a kernel takes.

    ``registers``, ``local_bytes`` and ``spilled_bytes`` are per thread. ``shared_bytes`` is the shared memory
    of fixed shape per block.
    """

    registers: int
    local_bytes: int
    spilled_bytes: int
    shared_bytes: int


def why_no_compiler() -> str | None:
    """Return why nothing can be compiled here, with what to install, or None if it can."""
    from numba import config

    if config.ENABLE_CUDASIM:
        return "NUMBA_ENABLE_CUDASIM is set, so Numba simulates CUDA instead of compiling."
    return _what_is_missing()


@functools.cache
def _what_is_missing() -> str | None:
    """Return the same as `why_no_compiler`, which is found out once per process."""
    if sys.platform == "darwin":
        return "NVIDIA has no compiler for macOS: machine code can be made on Linux and Windows only."
    if find_spec("numba_cuda") is None:
        return f"numba-cuda is not installed: {INSTALL}."
    from cuda import pathfinder

    missing = []
    for library in ("nvvm", "nvrtc", "nvJitLink"):
        try:
            pathfinder.load_nvidia_dynamic_lib(library)
        except pathfinder.DynamicLibNotFoundError:
            missing.append(library)
    if pathfinder.find_nvidia_binary_utility("nvdisasm") is None:
        missing.append("nvdisasm")
    if find_spec("elftools") is None:
        missing.append("pyelftools")
    return f"NVIDIA's compiler is not installed ({', '.join(missing)}): {INSTALL}." if missing else None


def require_compiler() -> None:
    """Raise NoCompiler, with the reason, if nothing can be compiled here."""
    reason = why_no_compiler()
    if reason is not None:
        raise NoCompiler(reason)


def optimised(
    modules: Sequence[str], architecture: str, options: Mapping[str, int | None], lto: bool, name: str
) -> bytes:
    """Run NVVM, and return LTO-IR, which the linker optimises further, or with lto=False PTX.

    ``modules`` are LLVM's intermediate code. ``architecture`` is such as "86" or "90a". ``options`` are
    NVVM's, by name. ``name`` is the kernel's in messages. Raise CannotCompile.
    """
    from cuda.bindings import nvvm

    chosen = {**options, "arch": f"compute_{architecture}", **({"gen-lto": None} if lto else {})}
    words = [f"-{key}" if value is None else f"-{key}={value}" for key, value in chosen.items()]
    program = nvvm.create_program()
    try:
        try:
            for module in map(str.encode, modules):
                nvvm.add_module_to_program(program, module, len(module), "")
            nvvm.verify_program(program, len(words), words)
            # The library is added after the verifier, which would reject parts of it.
            library = _libdevice()
            nvvm.lazy_add_module_to_program(program, library, len(library), "")
            nvvm.compile_program(program, len(words), words)
        except nvvm.nvvmError as error:
            log = _text(nvvm.get_program_log_size, nvvm.get_program_log, program)
            raise optimisers_reason(log or str(error), name) from None
        return _bytes(nvvm.get_compiled_result_size, nvvm.get_compiled_result, program)
    finally:
        nvvm.destroy_program(program)


@functools.cache
def _libdevice() -> bytes:
    """Return NVIDIA's library of mathematical functions, from which NVVM takes what a kernel calls."""
    from cuda import pathfinder

    return Path(pathfinder.find_bitcode_lib("device")).read_bytes()


def linked(
    codes: Sequence[bytes], architecture: str, name: str, lto: bool, max_registers: int | None, lines: bool
) -> tuple[bytes, Usage]:
    """Link one kernel, and return its machine code as an ELF image, and what it takes. Raise CannotCompile.

    ``codes`` are the kernel, as `optimised` returns it, and what is linked to it, all LTO-IR or all PTX.
    ``max_registers`` is per thread, None for no limit. With ``lines``, line numbers are kept.
    ``architecture``, ``name`` and ``lto`` are as in `optimised`.
    """
    from cuda.bindings import nvjitlink

    # The cache is off, because nvJitLink reports nothing about what it takes from there.
    words = [f"-arch=sm_{architecture}", "-verbose", "-no-cache"]
    words += ["-lineinfo"] if lines else []
    words += ["-lto"] if lto else []
    words += [f"-maxrregcount={max_registers}"] if max_registers else []
    kind = nvjitlink.InputType.LTOIR if lto else nvjitlink.InputType.PTX
    handle = nvjitlink.create(len(words), words)
    try:
        try:
            for code in codes:
                nvjitlink.add_data(handle, kind, code, len(code), "kernel")
            nvjitlink.complete(handle)
        except nvjitlink.nvJitLinkError as error:
            log = _text(nvjitlink.get_error_log_size, nvjitlink.get_error_log, handle)
            raise linkers_reason(log or str(error), name) from None
        image = _bytes(nvjitlink.get_linked_cubin_size, nvjitlink.get_linked_cubin, handle)
        return image, usage(_text(nvjitlink.get_info_log_size, nvjitlink.get_info_log, handle))
    finally:
        nvjitlink.destroy(handle)


def _bytes(size: Callable, read: Callable, handle: Any) -> bytes:
    found = bytearray(size(handle))
    read(handle, found)
    return bytes(found)


def _text(size: Callable, read: Callable, handle: Any) -> str:
    return _bytes(size, read, handle).decode(errors="replace").replace("\0", "").strip()


def usage(log: str) -> Usage:
    """Return what the assembler reports about the one kernel that it has compiled.

    A function that was not inlined has its own stack frame, and then the kernel's line has the sum of all.
    """
    used = re.search(r"Used (\d+) registers.*", log)
    frames = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores", log)
    together = re.search(r"(\d+) bytes cumulative stack size", used[0])
    shared = re.search(r"(\d+) bytes smem", used[0])
    return Usage(
        registers=int(used[1]),
        local_bytes=int(together[1]) if together else sum(int(frame) for frame, _ in frames),
        spilled_bytes=sum(int(stores) for _, stores in frames),
        shared_bytes=int(shared[1]) if shared else 0,
    )


def machine_words(image: bytes) -> dict[str, bytes]:
    """Return the encoded instructions of an ELF image, by the name of their section."""
    from elftools.elf.elffile import ELFFile

    sections = ELFFile(io.BytesIO(image)).iter_sections()
    return {section.name: section.data() for section in sections if section.name.startswith(".text")}


def disassembled(image: bytes) -> str:
    """Return nvdisasm's text for an ELF image, with files and lines, also those of inlined functions."""
    from cuda import pathfinder

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(image)
        command = [pathfinder.find_nvidia_binary_utility("nvdisasm"), "-gi", "-c", str(file)]
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"nvdisasm failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode(errors="replace")
