"""`unroll`: the `#pragma unroll` that Numba does not have.

Registers have no addresses. An array of accumulators stays in registers only if every index into it is a
compile-time constant, so each loop over it must be fully unrolled. The compiler does that by itself only for
short loops; longer ones put the array into local memory, which is device memory.
"""

import re

from gemm_course.emulator import emulates
from gemm_course.intrinsics._codegen import intrinsic, ir

__all__ = ["unroll"]

NUMBAS_BLOCK = re.compile(r"B\d+")  # as Numba names its own; others are "B8.endif"


class _FullUnroll:
    """Watches the code generation of one function and marks the loops that `unroll` announced.

    LLVM's loop hints belong on the jump that closes the loop, which Numba emits long after it has evaluated
    the iterable. So the first jump to a Python basic block after the announcement identifies the loop's
    header, and a later jump back to it closes the loop.
    """

    def __init__(self, builder):
        self.builder = builder
        self.headers = set()
        self.announced = False
        self.branch = builder.branch
        builder.branch = self

    def __call__(self, target):
        jump = self.branch(target)
        if target in self.headers and target.instructions:
            jump.set_metadata("llvm.loop", self.hint())
        elif self.announced and NUMBAS_BLOCK.fullmatch(target.name):
            self.headers.add(target)
            self.announced = False
        return jump

    def hint(self):
        module = self.builder.module
        full = module.add_metadata([ir.MetaDataString(module, "llvm.loop.unroll.full")])
        loop = ir.MDValue(module, [full], name=str(len(module.metadata)))
        loop.operands = (loop, full)  # its first operand is itself, which keeps it distinct from other loops'
        return loop


@intrinsic
def unroll(typing_context, iterable):
    """`for i in unroll(range(4)):` compiles to four copies of the loop's body.

    iterable: a `range` whose bounds are compile-time constants. Returns it unchanged. LLVM's loop hint
    `llvm.loop.unroll.full`; every compute capability.
    """

    def generate(context, builder, signature, arguments):
        watch = builder.branch if isinstance(builder.branch, _FullUnroll) else _FullUnroll(builder)
        watch.announced = True
        return arguments[0]

    return iterable(iterable), generate


@emulates(unroll)
def _emulate_unroll(machine, iterable):
    return iterable  # the emulator emits no code, so there is nothing to unroll
