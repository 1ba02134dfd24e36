"""Compiles a kernel for its arguments, tells its needs, and launches it with any amount of shared memory."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from gemm_course.device.facts import gpu_facts
from lockstep.limits import MAX_STATIC_SHARED_BYTES

# Numba warns about small grids when a kernel is configured, but a course begins with small grids.
warnings.filterwarnings("ignore", message=".*Grid size .* low occupancy")


@dataclass(frozen=True)
class Resources:
    """The needs of a compiled kernel: registers and local bytes per thread, static shared bytes per block."""

    registers: int
    local_bytes: int
    static_shared_bytes: int
    max_threads: int


def launch(kernel, grid, block, args: Sequence, shared_bytes: int = 0) -> None:
    """Launch a `cuda.jit` kernel on device arrays and scalars, and return before it has run.

    Raise ValueError if a block cannot have that much shared memory on this GPU.
    """
    if shared_bytes and must_opt_in(shared_bytes, compile_for(kernel, args)):
        allow_shared_memory(kernel, shared_bytes)
    kernel[grid, block, 0, shared_bytes](*args)


def must_opt_in(dynamic_bytes: int, compiled: Resources) -> bool:
    """Tell whether a block needs more shared memory, static arrays included, than without opting in."""
    return dynamic_bytes + compiled.static_shared_bytes > MAX_STATIC_SHARED_BYTES


def compile_for(kernel, args: Sequence) -> Resources:
    """Compile a kernel for the types of these arguments, unless that has been done. Return its resources.

    A kernel that was defined with signatures is compiled already, and cannot be compiled for other types.
    """
    types = tuple(kernel.typeof_pyval(arg) for arg in args)
    if types not in kernel.overloads and kernel._can_compile:
        kernel.compile(types)
    return resources(kernel)


def resources(kernel) -> Resources:
    """Return a kernel's resources, according to the driver.

    Raise ValueError if it has not been compiled yet.
    """
    if not kernel.overloads:
        raise ValueError("the kernel has not been compiled yet: launch it, or call compile_for")
    compiled = list(kernel.overloads.values())[-1]
    return Resources(
        registers=compiled.regs_per_thread,
        local_bytes=compiled.local_mem_per_thread,
        static_shared_bytes=compiled.shared_mem_per_block,
        max_threads=compiled.max_threads_per_block,
    )


def allow_shared_memory(kernel, dynamic_bytes: int) -> None:
    """Let a compiled kernel use more than 48 KB of dynamic shared memory per block.

    numba-cuda has no call for this. So this function, and nothing else, uses the private handle of each
    compiled version. Raise ValueError if the GPU has less, and RuntimeError if the driver refuses.
    """
    most = gpu_facts().shared_bytes_per_block
    if dynamic_bytes > most:
        raise ValueError(
            f"a block needs {dynamic_bytes} bytes of shared memory; this GPU has {most} per block"
        )
    from cuda.bindings import driver
    from numba import cuda

    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    device = cuda.get_current_device().id
    for compiled in kernel.overloads.values():
        handle = compiled._codelibrary.get_cufunc().handle
        if isinstance(handle, driver.CUkernel):
            (status,) = driver.cuKernelSetAttribute(attribute, dynamic_bytes, handle, device)
        else:
            (status,) = driver.cuFuncSetAttribute(handle, attribute, dynamic_bytes)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"the driver refused {dynamic_bytes} bytes of shared memory: {status.name}")
