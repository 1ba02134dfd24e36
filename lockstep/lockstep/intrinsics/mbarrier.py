"""Provides mbarriers: barriers in shared memory that count arrivals and bytes, and are waited for later.

At `syncthreads` all threads of a block wait for each other. An mbarrier splits that into two: some threads
*arrive* and continue, others *wait*. A copy can arrive too, with the bytes it delivers. An mbarrier is one
8-byte word of shared memory, an element of a `uint64` array:

| it holds | what it means |
|---|---|
| pending arrivals | set by `mbarrier_init`; each arrival subtracts one |
| pending bytes | added by `mbarrier_expect`, subtracted as copies land |
| phase | 0, 1, 2, ...: the next one begins when both are zero; the arrivals are then reset |

A wait names a phase by its parity. `mbarrier_wait(barriers, i, 0)` returns once phase 0 has completed (or 2,
or 4, ...). So the first wait on a new barrier is for parity 0, the next for parity 1, and so on. Waiting for
parity 1 on a new barrier returns at once, as if a phase before the first had completed. That is how a
producer starts with empty slots.

Compute capability 9.0 (for counting bytes and waiting by parity; simpler mbarriers are older).
"""

from lockstep.registry import emulates

from ._codegen import inline_ptx, intrinsic, types
from ._hopper import no_operands, require_hopper, shared_operand

__all__ = ["fence_async", "mbarrier_arrive", "mbarrier_expect", "mbarrier_init", "mbarrier_wait"]

_WAIT = """{
.reg .pred over;
AGAIN:
mbarrier.try_wait.parity.shared::cta.b64 over, [$0], $1;
@over bra DONE;
bra AGAIN;
DONE:
}"""


def _on_barrier(name, text):
    """Return the code generator for PTX whose operands are barriers[index] and a third argument, if any."""

    def generate(context, builder, signature, arguments):
        require_hopper(name)
        barriers, index, *more = zip(signature.args, arguments, strict=True)
        operands = [shared_operand(context, builder, *barriers, *index)]
        operands += [context.cast(builder, value, kind, types.int32) for kind, value in more]
        inline_ptx(builder, text, ",".join("r" * len(operands)), operands)
        return context.get_dummy_value()

    return generate


def _barriers(array) -> bool:
    return isinstance(array, types.Array) and array.dtype == types.uint64


@intrinsic
def mbarrier_init(typing_context, barriers, index, arrivals):
    """Initialise barriers[index]; each of its phases completes after `arrivals` arrivals.

    One thread calls it. Then `fence_async()` makes the barrier visible to copies, and `cuda.syncthreads()`
    makes it visible to the other threads. PTX `mbarrier.init`; compute capability 8.0, here 9.0.
    """
    if not _barriers(barriers):
        return None
    text = "mbarrier.init.shared::cta.b64 [$0], $1;"
    return types.void(barriers, index, arrivals), _on_barrier("mbarrier_init", text)


@intrinsic
def mbarrier_arrive(typing_context, barriers, index):
    """Arrive at barriers[index]; each thread that calls this function subtracts one pending arrival.

    The thread's earlier reads and writes are complete for every thread that waits for the phase. PTX
    `mbarrier.arrive`; compute capability 8.0, here 9.0.
    """
    if not _barriers(barriers):
        return None
    text = "{ .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [$0]; }"
    return types.void(barriers, index), _on_barrier("mbarrier_arrive", text)


@intrinsic
def mbarrier_expect(typing_context, barriers, index, size):
    """Announce `size` more bytes to barriers[index] and arrive; the phase ends only once they have landed.

    size: the bytes of all copies started for this phase, including those filled with zeros. PTX
    `mbarrier.arrive.expect_tx`; compute capability 9.0.
    """
    if not _barriers(barriers):
        return None
    text = "{ .reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [$0], $1; }"
    return types.void(barriers, index, size), _on_barrier("mbarrier_expect", text)


@intrinsic
def mbarrier_wait(typing_context, barriers, index, parity):
    """Wait until a phase of this parity (0 or 1) of barriers[index] has completed.

    The thread then sees what was written before the arrivals, and what the copies wrote. The hardware may
    suspend the thread for a while instead of letting it spin. PTX `mbarrier.try_wait.parity`, in a loop;
    compute capability 9.0.
    """
    if not _barriers(barriers):
        return None
    return types.void(barriers, index, parity), _on_barrier("mbarrier_wait", _WAIT)


@intrinsic
def fence_async(typing_context):
    """Make what this thread wrote to shared memory visible to TMA and wgmma.

    TMA and wgmma access shared memory by another path (the async proxy) than the thread's loads and stores.
    Between the two, a kernel needs this fence: after `mbarrier_init`, and after filling a tile that TMA will
    store. PTX `fence.proxy.async.shared::cta`; compute capability 9.0.
    """
    return types.void(), no_operands("fence.proxy.async.shared::cta;", "fence_async")


@emulates(mbarrier_init, elementwise=False, warp_by_warp=True, needs=(9, 0))
def _init(machine, barriers, index, arrivals):
    machine.chunk.mbarriers.init(machine.site, barriers, index, arrivals)


@emulates(mbarrier_arrive, elementwise=False, warp_by_warp=True, needs=(9, 0))
def _arrive(machine, barriers, index):
    machine.chunk.mbarriers.arrive(machine.site, barriers, index)


@emulates(mbarrier_expect, elementwise=False, warp_by_warp=True, needs=(9, 0))
def _expect(machine, barriers, index, size):
    machine.chunk.mbarriers.arrive(machine.site, barriers, index, size)


@emulates(mbarrier_wait, elementwise=False, warp_by_warp=True, needs=(9, 0))
def _wait(machine, barriers, index, parity):
    return machine.chunk.mbarriers.wait(machine.site, barriers, index, parity)


@emulates(fence_async, elementwise=False, warp_by_warp=True, needs=(9, 0))
def _fence(machine):
    machine.chunk.clocks.fence()
