"""The part of Numba's extension API that the intrinsics stand on, and the few LLVM idioms they share.

numba-cuda brings its own types and code generator; Numba's built-in `numba.cuda` (all there is on macOS,
where no kernel is ever compiled) uses Numba's. Only this module knows the difference.
"""

from llvmlite import ir
from numba.cuda.extending import intrinsic

try:
    from numba.cuda import cgutils, types
except ImportError:
    from numba.core import cgutils, types

__all__ = [
    "element_pointer",
    "global_address",
    "inline_ptx",
    "intrinsic",
    "ir",
    "pack",
    "shared_address",
    "types",
    "unpack",
    "vector4",
]


_BYTE, _WORD = ir.IntType(8), ir.IntType(64)
_SHARED, _GLOBAL = 3, 1  # NVVM's address spaces

unpack = cgutils.unpack_tuple
pack = cgutils.pack_array


def element_pointer(context, builder, array_type, array, index_type, index):
    """Pointer to array[index]; a negative index is not wrapped around, nothing is checked.

    Every index but the last is multiplied as 32 by 32 bits, which the hardware does in one instruction, where
    Numba's own 64 by 64 takes four: indices stay below 2**32, and so do the bytes from one to the next.
    """
    if isinstance(index_type, types.Integer):
        index_types, indices = [index_type], [index]
    else:
        index_types, indices = list(index_type), unpack(builder, index, len(index_type))
    struct = context.make_array(array_type)(context, builder, value=array)
    strides = unpack(builder, struct.strides, array_type.ndim)
    offset = _WORD(0)
    for value, kind, stride in zip(indices[:-1], index_types[:-1], strides[:-1], strict=True):
        steps = context.cast(builder, value, kind, types.uint32)
        stride = builder.trunc(stride, steps.type)
        step = builder.mul(builder.zext(steps, _WORD), builder.zext(stride, _WORD))
        offset = builder.add(offset, step)
    last = context.cast(builder, indices[-1], index_types[-1], types.intp)
    size = context.get_abi_sizeof(struct.data.type.pointee)
    offset = builder.add(offset, builder.mul(last, _WORD(size)))
    start = builder.bitcast(struct.data, _BYTE.as_pointer())
    return builder.bitcast(builder.gep(start, [offset]), struct.data.type)


def vector4(element):
    """LLVM's type of four neighbouring elements, which NVVM moves in one instruction."""
    return ir.VectorType(element, 4)


def _address(builder, pointer, space, bits):
    generic = builder.bitcast(pointer, _BYTE.as_pointer())
    return builder.ptrtoint(builder.addrspacecast(generic, _BYTE.as_pointer(space)), ir.IntType(bits))


def shared_address(builder, pointer):
    """The 32-bit address within the block's shared memory that PTX's `.shared` operands take."""
    return _address(builder, pointer, _SHARED, 32)


def global_address(builder, pointer):
    """The 64-bit address that PTX's `.global` operands take."""
    return _address(builder, pointer, _GLOBAL, 64)


def inline_ptx(builder, text, constraints, operands):
    """Emit PTX that returns nothing, touches memory and must stay where it is."""
    signature = ir.FunctionType(ir.VoidType(), [operand.type for operand in operands])
    builder.call(
        ir.InlineAsm(signature, text, f"{constraints},~{{memory}}".lstrip(","), side_effect=True), operands
    )
