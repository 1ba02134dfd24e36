"""Numba's own type inference on a kernel, without a GPU, for tests of the emulator's typing rules.

numba-cuda infers types in Python before any lowering, so its front end needs neither a device nor NVVM.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from unittest.mock import patch

from numba.core.target_extension import target_override
from numba.cuda import types
from numba.cuda.compiler import CUDACompiler, CUDAFlags
from numba.cuda.core import ir
from numba.cuda.core.compiler_machinery import FunctionPass, register_pass
from numba.cuda.descriptor import cuda_target
from numba.cuda.typing.typeof import typeof

HOPPER = SimpleNamespace(compute_capability=(9, 0))


def for_hopper():
    """Let Numba compile device functions without a GPU, within a ``with`` statement."""
    return patch("numba.cuda.dispatcher.get_current_device", lambda: HOPPER)


class _Inferred(Exception):
    """Carries the compiler's state out of the pipeline, before lowering starts."""


@register_pass(mutates_CFG=False, analysis_only=True)
class _StopAfterInference(FunctionPass):
    _name = "stop_after_inference"

    def __init__(self):
        FunctionPass.__init__(self)

    def run_pass(self, state):
        raise _Inferred(state)


class _FrontEnd(CUDACompiler):
    def define_cuda_lowering_pipeline(self, state):
        pipeline = super().define_cuda_lowering_pipeline(state)
        pipeline.passes.insert(0, (_StopAfterInference, "stop after inference"))
        pipeline._finalized = False
        pipeline.finalize()
        return pipeline


@dataclass(frozen=True)
class TypedOperation:
    """One binary operation of a kernel as Numba types it: `dtype` is the type it computes in."""

    line: int
    op: str
    dtype: str


def contexts():
    """Numba's typing and target contexts for CUDA, refreshed."""
    typing_context, target_context = cuda_target.typing_context, cuda_target.target_context
    typing_context.refresh()
    target_context.refresh()
    return typing_context, target_context


def infer(function, *args, returns=types.void):
    """Type a plain function for the given arguments (NumPy arrays and scalars).

    returns: the type of the result, by default that of a kernel; None lets Numba infer it.
    Returns (typemap: IR variable -> type, calltypes: IR expression -> signature, func_ir).
    """
    flags = CUDAFlags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.compute_capability = HOPPER.compute_capability
    typing_context, target_context = contexts()
    compiler = _FrontEnd(
        typing_context, target_context, None, tuple(map(typeof, args)), returns, flags, {}, None, None
    )
    try:
        with for_hopper():  # device functions need a GPU to be compiled for
            compiler.compile_extra(function)
    except _Inferred as stop:
        (state,) = stop.args
        return state.typemap, state.calltypes, state.func_ir
    raise AssertionError("the pipeline went on past type inference")


def binary_operations(function, *args):
    """Every float binary operation of a kernel as Numba types it (a set of TypedOperation)."""
    _, calltypes, func_ir = infer(function, *args)
    found = set()
    for block in func_ir.blocks.values():
        for statement in block.find_insts(ir.Assign):
            expression = statement.value
            if not (isinstance(expression, ir.Expr) and expression.op in ("binop", "inplace_binop")):
                continue
            result = calltypes[expression].return_type
            if isinstance(result, types.Float):
                operation = expression.immutable_fn if expression.op == "inplace_binop" else expression.fn
                name = operation.__name__
                found.add(TypedOperation(statement.loc.line, name, str(result)))
    return found


def result_type(op, *operands):
    """The type Numba gives `op` (from `operator`, or a function) for operand types given by name."""
    typing_context, _ = contexts()
    operands = tuple(getattr(types, name) for name in operands)
    with for_hopper(), target_override("cuda"):  # overloads ask for both
        signature = typing_context.resolve_function_type(op, operands, {})
    return str(signature.return_type)
