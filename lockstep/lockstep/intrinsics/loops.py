"""Provides `unroll`, the `#pragma unroll` that Numba does not have, and `rolled`, the `#pragma unroll 1`.

Registers have no addresses. An array of accumulators stays in registers if the compiler knows every index
into it, and for that it unrolls the loops over it. It does so by itself where a loop runs a constant number
of times and is short. In a kernel with a strip of results per thread it unrolls loops of 64 iterations, but
not loops of 128 (numba-cuda 0.30.4, for an H200). With the longer loop, the array is in local memory, which
is device memory.

Where a loop holds no such array, copies of its body may gain nothing: the producers of the Hopper kernels are
as fast without them, and a kernel's code is up to a fifth shorter.
"""

import re

from lockstep.registry import emulates

from ._codegen import intrinsic, ir

__all__ = ["rolled", "unroll"]

# Numba names a block of bytecode like this. Other blocks have names such as "B8.endif".
NUMBAS_BLOCK = re.compile(r"B\d+")


class _LoopHints:
    """A replacement for the `branch` method of a function's builder that marks announced loops.

    LLVM's loop hints belong on the jump that closes the loop, which Numba emits long after it has evaluated
    the iterable. So the first jump to a Python basic block after the announcement identifies the loop's
    header, and a later jump back to it closes the loop.
    """

    def __init__(self, builder):
        self.builder = builder
        # `headers` maps the header of a loop to LLVM's hint.
        self.headers = {}
        self.announced = None
        self.branch = builder.branch
        builder.branch = self

    def __call__(self, target):
        jump = self.branch(target)
        if target in self.headers and target.instructions:
            jump.set_metadata("llvm.loop", self.metadata(self.headers[target]))
        elif self.announced and NUMBAS_BLOCK.fullmatch(target.name):
            self.headers[target] = self.announced
            self.announced = None
        return jump

    def metadata(self, hint):
        module = self.builder.module
        kind = module.add_metadata([ir.MetaDataString(module, hint)])
        loop = ir.MDValue(module, [kind], name=str(len(module.metadata)))
        # The first operand of the metadata is the metadata itself, so that no two loops share it.
        loop.operands = (loop, kind)
        return loop


def _announce(hint):
    def generate(context, builder, signature, arguments):
        watch = builder.branch if isinstance(builder.branch, _LoopHints) else _LoopHints(builder)
        watch.announced = hint
        return arguments[0]

    return generate


@intrinsic
def unroll(typing_context, iterable):
    """Make the compiler unroll a loop: `for i in unroll(range(4)):` becomes four copies of the loop's body.

    iterable: a `range` whose bounds are compile-time constants; it is returned unchanged. LLVM's loop hint
    `llvm.loop.unroll.full`; every compute capability.
    """
    return iterable(iterable), _announce("llvm.loop.unroll.full")


@intrinsic
def rolled(typing_context, iterable):
    """Keep the compiler from copying a loop's body: `for step in rolled(range(steps)):` has one copy.

    iterable: a `range`; it is returned unchanged. LLVM's loop hint `llvm.loop.unroll.disable`; every compute
    capability.
    """
    return iterable(iterable), _announce("llvm.loop.unroll.disable")


@emulates(unroll)
@emulates(rolled)
def _emulate_loop(machine, iterable):
    return iterable  # The emulator emits no code, so there is nothing to unroll.
