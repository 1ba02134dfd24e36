"""Provides cp.async, which copies from global to shared memory while the thread computes.

An ordinary copy is two instructions, a load into a register and a store from it, and the thread waits for
the load before it can store. cp.async is one instruction. It needs no register, and the thread continues at
once. The price is that the thread must say when it needs the data. It commits its copies in groups, and
`cp_async_wait(n)` waits until at most the n newest groups are still in flight. The thread then sees its own
copies. A barrier makes them visible to the block.

Compute capability 8.0 and newer.
"""

from lockstep.registry import as_index, emulates

from ._codegen import (
    element_pointer,
    global_address,
    inline_ptx,
    intrinsic,
    shared_address,
    types,
)

__all__ = ["cp_async4", "cp_async16", "cp_async_commit", "cp_async_wait"]


def _start_copy(context, builder, signature, arguments, instruction, size):
    """Emit one cp.async of `size` bytes for (destination, its index, source, its index, valid bytes)."""
    destination, destination_index, source, source_index, valid = signature.args
    into = element_pointer(context, builder, destination, arguments[0], destination_index, arguments[1])
    out_of = element_pointer(context, builder, source, arguments[2], source_index, arguments[3])
    read = context.cast(builder, arguments[4], valid, types.int32)
    operands = [shared_address(builder, into), global_address(builder, out_of), read]
    inline_ptx(builder, f"{instruction}.shared.global [$0], [$1], {size}, $2;", "r,l,r", operands)
    return context.get_dummy_value()


@intrinsic
def cp_async4(typing_context, destination, destination_index, source, source_index, valid_bytes):
    """Start copying 4 bytes from source[source_index] (global) to destination[destination_index] (shared).

    valid_bytes: how many of the 4 bytes are read, 0 to 4. The rest is filled with zeros. At 0 the source is
    not accessed. Both addresses must be multiples of 4 bytes. PTX `cp.async.ca.shared.global`; compute
    capability 8.0.
    """

    def generate(context, builder, signature, arguments):
        return _start_copy(context, builder, signature, arguments, "cp.async.ca", 4)

    return types.void(destination, destination_index, source, source_index, valid_bytes), generate


@intrinsic
def cp_async16(typing_context, destination, destination_index, source, source_index, valid_bytes):
    """Start copying 16 bytes from source[source_index] (global) to destination[destination_index] (shared).

    valid_bytes: how many of the 16 bytes are read, 0 to 16. The rest is filled with zeros. At 0 the source is
    not accessed. Both addresses must be multiples of 16 bytes. PTX `cp.async.cg.shared.global`, which
    bypasses the L1 cache; compute capability 8.0.
    """

    def generate(context, builder, signature, arguments):
        return _start_copy(context, builder, signature, arguments, "cp.async.cg", 16)

    return types.void(destination, destination_index, source, source_index, valid_bytes), generate


@intrinsic
def cp_async_commit(typing_context):
    """Commit the copies that this thread started since its last commit as one group, even if it is empty.

    PTX `cp.async.commit_group`; compute capability 8.0.
    """

    def generate(context, builder, signature, arguments):
        inline_ptx(builder, "cp.async.commit_group;", "", [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def cp_async_wait(typing_context, pending):
    """Wait until at most `pending` of this thread's newest groups are unfinished; 0 waits for all.

    pending: a compile-time constant. The data is then visible to this thread only. A barrier makes it visible
    to the block.
    PTX `cp.async.wait_group`; compute capability 8.0.
    """
    if not isinstance(pending, types.IntegerLiteral):
        return None

    def generate(context, builder, signature, arguments):
        inline_ptx(builder, f"cp.async.wait_group {pending.literal_value};", "", [])
        return context.get_dummy_value()

    return types.void(pending), generate


def _start(size):
    def start(machine, destination, destination_index, source, source_index, valid_bytes):
        width = size // source.dtype.itemsize
        into, out_of = as_index(destination_index), as_index(source_index)
        machine.start_copy(machine.site, destination, into, source, out_of, width, valid_bytes)

    return start


for _copy, _size in ((cp_async4, 4), (cp_async16, 16)):
    emulates(_copy, reads=(2,), writes=(0,), needs=(8, 0))(_start(_size))


@emulates(cp_async_commit, elementwise=False, needs=(8, 0))
def _commit(machine):
    machine.chunk.async_copies.commit()


@emulates(cp_async_wait, elementwise=False, needs=(8, 0))
def _wait(machine, pending):
    machine.chunk.async_copies.wait(pending)
