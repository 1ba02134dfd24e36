"""Makes views: parts of dynamic shared memory (`carve`), and a matrix from a given row on (`rest`).

On Hopper a block may have up to 227 KB of shared memory, but only 48 KB of it in arrays of fixed shape. The
launch must request any more. The kernel gets it as one long array, `cuda.shared.array(0, float16, 1024)`.

A loop that runs down a matrix should move the start of a view, not an index. With `part = rest(B, k0)` the
address of part[i, j] takes one addition per iteration, as long as i and j stay the same. The address of
B[k0 + i, j] takes a multiplication as well. Numba's own B[k0:] first checks that row k0 exists, which takes a
dozen instructions.
"""

from lockstep.registry import emulates

from ._codegen import intrinsic, ir, pack, types, unpack

__all__ = ["carve", "rest"]


@intrinsic
def carve(typing_context, buffer, start, shape):
    """Return a C-contiguous array of this shape in the one-dimensional `buffer`, from element `start` on.

    start: an integer. shape: a tuple of integers, known at compile time. The call costs nothing, because the
    array is only an address. Every compute capability.
    """
    if not (isinstance(buffer, types.Array) and buffer.ndim == 1 and isinstance(shape, types.BaseTuple)):
        return None
    array_type = types.Array(buffer.dtype, len(shape), "C")

    def generate(context, builder, signature, arguments):
        source = context.make_array(buffer)(context, builder, value=arguments[0])
        first = builder.gep(source.data, [context.cast(builder, arguments[1], start, types.intp)])
        parts = zip(unpack(builder, arguments[2], len(shape)), shape, strict=True)
        extents = [context.cast(builder, value, kind, types.intp) for value, kind in parts]
        size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(buffer.dtype)))
        strides = [size]
        for extent in reversed(extents[1:]):
            strides.insert(0, builder.mul(strides[0], extent))
        view = context.make_array(array_type)(context, builder)
        context.populate_array(
            view,
            data=first,
            shape=pack(builder, extents),
            strides=pack(builder, strides),
            itemsize=size,
            meminfo=None,
        )
        return view._getvalue()

    return array_type(buffer, start, shape), generate


@emulates(carve, elementwise=False, kind="view")
def _carve(machine, buffer, start, shape):
    return machine.carve(machine.site, buffer, start, shape)


@intrinsic
def rest(typing_context, array, start):
    """Return the array from row `start` on, array[start:]; if it has one dimension, from that element on.

    array: C-contiguous, in any memory. start: an integer, not negative, the same for all threads. Nothing is
    checked, so the kernel must not read beyond the array's end. Every compute capability.
    """
    if not (isinstance(array, types.Array) and isinstance(start, types.Integer)):
        return None

    def generate(context, builder, signature, arguments):
        view = context.make_array(array)(context, builder, value=arguments[0])
        before = context.cast(builder, arguments[1], start, types.intp)
        extents, stride = unpack(builder, view.shape), unpack(builder, view.strides)[0]
        data = builder.bitcast(view.data, ir.IntType(8).as_pointer())
        view.data = builder.bitcast(builder.gep(data, [builder.mul(before, stride)]), view.data.type)
        view.shape = pack(builder, [builder.sub(extents[0], before), *extents[1:]])
        return view._getvalue()

    return array(array, start), generate


@emulates(rest, elementwise=False, kind="view")
def _rest(machine, array, start):
    return machine.view(machine.site, array, slice(machine.uniform_value(start), None))
