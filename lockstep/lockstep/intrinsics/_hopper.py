"""Provides what the intrinsics for Hopper share: a check of the GPU, and operands and code for their PTX."""

from ._codegen import element_pointer, inline_ptx, shared_address, types

try:
    from numba.cuda.core.errors import UnsupportedError
    from numba.cuda.core.targetconfig import ConfigStack
except ImportError:
    from numba.core.errors import UnsupportedError
    from numba.core.targetconfig import ConfigStack

__all__ = ["literal", "no_operands", "require_hopper", "shared_operand"]

HOPPER = (9, 0)


def require_hopper(name: str) -> None:
    """Raise UnsupportedError if the kernel is compiled for a GPU older than Hopper."""
    target = ConfigStack().top().compute_capability
    if target is not None and tuple(target[:2]) < HOPPER:
        raise UnsupportedError(
            f"{name} needs compute capability 9.0 (Hopper), but this kernel is compiled for "
            f"{target[0]}.{target[1]}: run it on the emulator"
        )


def shared_operand(context, builder, array_type, array, index_type, index):
    """Return the address of array[index] in shared memory, as a 32-bit operand of PTX."""
    pointer = element_pointer(context, builder, array_type, array, index_type, index)
    return shared_address(builder, pointer)


def literal(argument) -> int | None:
    """Return the value of an argument if it is a compile-time constant, else None."""
    return argument.literal_value if isinstance(argument, types.IntegerLiteral) else None


def no_operands(instruction: str, name: str):
    """Return the code generator of an intrinsic that is a single PTX instruction without operands."""

    def generate(context, builder, signature, arguments):
        require_hopper(name)
        inline_ptx(builder, instruction, "", [])
        return context.get_dummy_value()

    return generate
