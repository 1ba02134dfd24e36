"""Provides the part of Numba's extension API that the intrinsics use, and the LLVM idioms they share.

numba-cuda has its own types and code generator. Numba's built-in `numba.cuda` (the only one on macOS, where
no kernel is ever compiled) uses those of Numba. Of the intrinsics, only this module and :mod:`._hopper` know
the difference.
"""

from llvmlite import ir
from numba.cuda.extending import intrinsic

try:
    from numba.cuda import cgutils, types
    from numba.cuda.core.errors import TypingError
except ImportError:
    from numba.core import cgutils, types
    from numba.core.errors import TypingError

__all__ = [
    "TypingError",
    "check_fragment",
    "element_pointer",
    "global_address",
    "inline_ptx",
    "intrinsic",
    "ir",
    "pack",
    "ptx_results",
    "read_registers",
    "row_length",
    "shared_address",
    "types",
    "unpack",
    "vector_of",
    "write_registers",
]


_BYTE, _WORD, _REGISTER = ir.IntType(8), ir.IntType(64), ir.IntType(32)
# NVVM numbers the address spaces like this.
_SHARED, _GLOBAL = 3, 1

unpack = cgutils.unpack_tuple
pack = cgutils.pack_array


def element_pointer(context, builder, array_type, array, index_type, index):
    """Return a pointer to array[index]. Negative indices do not wrap around, and nothing is checked.

    Every index but the last is multiplied as 32 by 32 bits, which takes one hardware instruction. Numba's own
    64 by 64 bits take four. So indices must be below 2**32, and so must their strides in bytes.
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


def vector_of(count, element):
    """Return LLVM's type for `count` neighbouring elements, which NVVM moves in one instruction."""
    return ir.VectorType(element, count)


def _address(builder, pointer, space, bits):
    generic = builder.bitcast(pointer, _BYTE.as_pointer())
    return builder.ptrtoint(builder.addrspacecast(generic, _BYTE.as_pointer(space)), ir.IntType(bits))


def shared_address(builder, pointer):
    """Return the 32-bit address within the block's shared memory that PTX's `.shared` operands take."""
    return _address(builder, pointer, _SHARED, 32)


def row_length(context, builder, array_type, array):
    """Return the number of elements from one row of an array to the next, as 32 bits."""
    struct = context.make_array(array_type)(context, builder, value=array)
    stride = unpack(builder, struct.strides, array_type.ndim)[-2]
    size = context.get_abi_sizeof(struct.data.type.pointee)
    return builder.trunc(builder.udiv(stride, stride.type(size)), _REGISTER)


def global_address(builder, pointer):
    """Return the 64-bit address that PTX's `.global` operands take."""
    return _address(builder, pointer, _GLOBAL, 64)


def inline_ptx(builder, text, constraints, operands):
    """Emit PTX that returns nothing, accesses memory and must not be moved."""
    signature = ir.FunctionType(ir.VoidType(), [operand.type for operand in operands])
    builder.call(
        ir.InlineAsm(signature, text, f"{constraints},~{{memory}}".lstrip(","), side_effect=True), operands
    )


def ptx_results(builder, text, constraints, operands, results, memory=True):
    """Emit PTX with results of one LLVM type, in the placeholders from $0 on, and return their values.

    results: (LLVM type, how many). memory: whether the PTX accesses memory and must therefore not be moved.
    """
    kind, count = results
    signature = ir.FunctionType(ir.LiteralStructType([kind] * count), [operand.type for operand in operands])
    constraints = f"{constraints},~{{memory}}" if memory else constraints
    values = builder.call(ir.InlineAsm(signature, text, constraints, side_effect=memory), operands)
    return [builder.extract_value(values, i) for i in range(count)]


def check_fragment(instruction, array, *dtypes):
    """Raise TypingError unless an operand is a one-dimensional array of one of these types."""
    if not isinstance(array, types.Array) or array.ndim != 1 or array.dtype not in dtypes:
        wanted = " or ".join(str(dtype) for dtype in dtypes)
        raise TypingError(f"{instruction} takes a thread's own array of {wanted} as a fragment, not {array}")


def _register_pointers(context, builder, array_type, array, count, kind):
    struct = context.make_array(array_type)(context, builder, value=array)
    first = builder.bitcast(struct.data, kind.as_pointer())
    return [builder.gep(first, [_REGISTER(i)]) for i in range(count)]


def read_registers(context, builder, array_type, array, count, kind=_REGISTER):
    """Return the first `count` 32-bit registers of a thread's array, as values of the LLVM type `kind`."""
    align = array_type.dtype.bitwidth // 8
    pointers = _register_pointers(context, builder, array_type, array, count, kind)
    return [builder.load(pointer, align=align) for pointer in pointers]


def write_registers(context, builder, array_type, array, values):
    """Write 32-bit values to a thread's array, from its start on."""
    align = array_type.dtype.bitwidth // 8
    pointers = _register_pointers(context, builder, array_type, array, len(values), values[0].type)
    for pointer, value in zip(pointers, values, strict=True):
        builder.store(value, pointer, align=align)
