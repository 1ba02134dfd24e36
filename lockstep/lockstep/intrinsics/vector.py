"""Moves 16 bytes in one instruction (`load4`, `store4`, `copy16`), or two neighbouring elements (`store2`).

A thread that moves four neighbouring floats with one 128-bit instruction instead of four 32-bit ones
issues a quarter of the instructions. A warp's request then covers 512 bytes. The address must be a
multiple of 16 bytes. So for A[row, column] the array must start at such an address, and its leading
dimension and the column must be multiples of four floats. A misaligned access stops the kernel with an error.
"""

from lockstep.errors import KernelTypeError
from lockstep.machine.words import kind_of
from lockstep.registry import as_index, emulates

from ._codegen import element_pointer, intrinsic, ir, pack, types, unpack, vector_of

__all__ = ["copy16", "load4", "store2", "store4"]

_ALIGNMENT = 16


def _wide_store(count):
    """Return the code generator that stores a tuple of `count` values, each cast to the array's type."""

    def generate(context, builder, signature, arguments):
        array, index, values = signature.args
        pointer = element_pointer(context, builder, array, arguments[0], index, arguments[1])
        element = pointer.type.pointee
        wide = ir.Constant(vector_of(count, element), ir.Undefined)
        for i, (value, kind) in enumerate(zip(unpack(builder, arguments[2], count), values, strict=True)):
            value = context.cast(builder, value, kind, array.dtype)
            wide = builder.insert_element(wide, value, ir.IntType(32)(i))
        alignment = count * context.get_abi_sizeof(element)
        builder.store(wide, builder.bitcast(pointer, wide.type.as_pointer()), align=alignment)
        return context.get_dummy_value()

    return generate


@intrinsic
def load4(typing_context, array, index):
    """Load array[index] and its three right neighbours in one 128-bit load. Return a tuple of four values.

    array: global, shared or local, C-contiguous, of a 4-byte type. index: an integer or a tuple of
    integers, none of them negative; the address must be a multiple of 16 bytes. PTX `ld.global.v4.f32`,
    `ld.shared.v4.f32`; every compute capability.
    """

    def generate(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, array, arguments[0], index, arguments[1])
        wide = builder.bitcast(pointer, vector_of(4, pointer.type.pointee).as_pointer())
        values = builder.load(wide, align=_ALIGNMENT)
        return pack(builder, [builder.extract_element(values, ir.IntType(32)(i)) for i in range(4)])

    return types.UniTuple(array.dtype, 4)(array, index), generate


@intrinsic
def store4(typing_context, array, index, values):
    """Store a tuple of four values to array[index] and its three right neighbours, in one 128-bit store.

    array: global, shared or local, C-contiguous, of a 4-byte type. index: an integer or a tuple of
    integers, none of them negative; the address must be a multiple of 16 bytes. PTX `st.global.v4.f32`,
    `st.shared.v4.f32`; every compute capability.
    """
    return types.void(array, index, values), _wide_store(4)


@intrinsic
def store2(typing_context, array, index, values):
    """Store a tuple of two values to array[index] and its right neighbour, in one store.

    array: global, shared or local, C-contiguous, of a type of 2 or 4 bytes. index: an integer or a tuple of
    integers, none of them negative; the address must be a multiple of two elements. PTX `st.v2`; every
    compute capability.
    """
    return types.void(array, index, values), _wide_store(2)


def _copy_words(context, builder, into, out_of):
    """Copy 16 bytes of small elements as four words, which the compiler merges into one access.

    The compiler would move a vector of eight float16 in two pieces. With a vector of words it would put a
    local array of float16 into local memory.
    """
    word = ir.IntType(32)
    from_words, to_words = (builder.bitcast(pointer, word.as_pointer()) for pointer in (out_of, into))
    places = [(word(i), _ALIGNMENT >> (0, 2, 1, 2)[i]) for i in range(4)]
    words = [builder.load(builder.gep(from_words, [i]), align=aligned) for i, aligned in places]
    for (i, aligned), value in zip(places, words, strict=True):
        builder.store(value, builder.gep(to_words, [i]), align=aligned)
    return context.get_dummy_value()


@intrinsic
def copy16(typing_context, destination, destination_index, source, source_index):
    """Copy 16 bytes from source[source_index] to destination[destination_index].

    Both arrays have the same element type, of 1 to 16 bytes, and may be in any memory. Both addresses must be
    multiples of 16 bytes. The copy takes one 128-bit load and one 128-bit store (an array in registers needs
    neither); every compute capability.
    """

    def generate(context, builder, signature, arguments):
        into = element_pointer(context, builder, destination, arguments[0], destination_index, arguments[1])
        out_of = element_pointer(context, builder, source, arguments[2], source_index, arguments[3])
        element = into.type.pointee
        if context.get_abi_sizeof(element) < 4:
            return _copy_words(context, builder, into, out_of)
        wide = ir.VectorType(element, _ALIGNMENT // context.get_abi_sizeof(element)).as_pointer()
        values = builder.load(builder.bitcast(out_of, wide), align=_ALIGNMENT)
        builder.store(values, builder.bitcast(into, wide), align=_ALIGNMENT)
        return context.get_dummy_value()

    return types.void(destination, destination_index, source, source_index), generate


@emulates(load4, reads=(0,))
def _emulate_load4(machine, array, index):
    return machine.read(machine.site, array, as_index(index), width=4)


@emulates(store4, writes=(0,))
def _emulate_store4(machine, array, index, values):
    machine.write(machine.site, array, as_index(index), _checked("store4", values, 4), width=4)


@emulates(store2, writes=(0,))
def _emulate_store2(machine, array, index, values):
    machine.write(machine.site, array, as_index(index), _checked("store2", values, 2), width=2)


def _checked(name: str, values, count: int) -> tuple:
    """Return the values that a store takes; refuse anything but a tuple of so many numbers."""
    if not isinstance(values, tuple) or len(values) != count:
        given = f"a tuple of {len(values)}" if isinstance(values, tuple) else kind_of(values)
        raise KernelTypeError(
            f"{name} stores a tuple of {count} numbers, such as `load4` returns; this is {given}"
        )
    return values


@emulates(copy16, reads=(2,), writes=(0,))
def _emulate_copy16(machine, destination, destination_index, source, source_index):
    width = 16 // source.dtype.itemsize
    values = machine.own(machine.read(machine.site, source, as_index(source_index), width))
    machine.write(machine.site, destination, as_index(destination_index), values, width)
