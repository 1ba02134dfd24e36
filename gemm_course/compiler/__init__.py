"""Does the compiler's work without a GPU: finds a kernel's machine code, registers and memory.

    from gemm_course import compiled

    compiled("vectorized")                            # a stage of the ladder
    compiled("vectorized", tiles={"TN": 8})
    compiled(my_kernel, A, B, C)                      # the types matter, the values do not
    compiled(my_kernel[grid, block], A, B, C, compute_capability=(8, 6)).loop

:func:`compiled` (:mod:`.compile`) does what a launch on a GPU does: Numba translates the kernel into LLVM's
intermediate code (:mod:`._numba`), NVIDIA's optimiser and linker turn that into machine code, and NVIDIA's
disassembler prints it with the lines of the source (:mod:`.nvidia`). :mod:`.disassembly` reads the text,
:mod:`.loops` finds the loops, :mod:`.kinds` says what each instruction does, :mod:`.result` holds the result,
and :mod:`.reasons` says in a sentence why there is none. :mod:`.record` keeps the ladder's machine code for
computers without NVIDIA's tools.
"""

from gemm_course.compiler.compile import compiled
from gemm_course.compiler.kinds import KINDS, kind_of
from gemm_course.compiler.reasons import CannotCompile, NoCompiler
from gemm_course.compiler.record import recorded
from gemm_course.compiler.result import Compiled, Loop

__all__ = ["KINDS", "CannotCompile", "Compiled", "Loop", "NoCompiler", "compiled", "kind_of", "recorded"]
