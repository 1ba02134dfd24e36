"""mbarrier: barriers that live in shared memory, count arrivals and bytes, and can be waited for later.

`syncthreads` makes everybody wait for everybody. An mbarrier takes that apart: some threads *arrive* and go
on, others *wait*, and a copy can arrive too, with the bytes it brought. It is one 8-byte word of shared
memory, an element of a `uint64` array:

| it holds | what it means |
|---|---|
| pending arrivals | set by `mbarrier_init`; each arrival takes one away |
| pending bytes | added by `mbarrier_expect`, taken away as copies land |
| phase | 0, 1, 2, ...: the next one begins when both are at zero; arrivals are then set anew |

Phases are named by their parity. `mbarrier_wait(barriers, i, 0)` returns once phase 0 is over (or 2, or 4,
...): the first wait on a fresh barrier is for parity 0, the next for parity 1, and so on. Waiting for
parity 1 on a fresh barrier returns at once, as if a phase before the first were over: how a producer starts
with empty tiles.

Compute capability 9.0 (what counts bytes and waits with parity; simpler mbarriers are older).
"""

from gemm_course.emulator import emulates
from gemm_course.intrinsics._codegen import inline_ptx, intrinsic, types
from gemm_course.intrinsics._hopper import no_operands, require_hopper, shared_operand

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
    """Code generation for PTX on the barrier barriers[index], and a number if there is a third argument."""

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
    """Make barriers[index] ready, its phases complete after `arrivals` arrivals each.

    One thread does it. Then `fence_async()`, so that copies know of it, and `cuda.syncthreads()`, so that the
    other threads do. PTX `mbarrier.init`; compute capability 8.0, here 9.0.
    """
    if not _barriers(barriers):
        return None
    text = "mbarrier.init.shared::cta.b64 [$0], $1;"
    return types.void(barriers, index, arrivals), _on_barrier("mbarrier_init", text)


@intrinsic
def mbarrier_arrive(typing_context, barriers, index):
    """Take one pending arrival from barriers[index], for each thread that calls it.

    What the thread read and wrote before is then over for whoever waits. PTX `mbarrier.arrive`; compute
    capability 8.0, here 9.0.
    """
    if not _barriers(barriers):
        return None
    text = "{ .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [$0]; }"
    return types.void(barriers, index), _on_barrier("mbarrier_arrive", text)


@intrinsic
def mbarrier_expect(typing_context, barriers, index, size):
    """Announce `size` more bytes to barriers[index] and arrive: the phase ends when they have landed too.

    size: bytes, those of all copies started for this phase; what a copy fills with zeros counts. PTX
    `mbarrier.arrive.expect_tx`; compute capability 9.0.
    """
    if not _barriers(barriers):
        return None
    text = "{ .reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [$0], $1; }"
    return types.void(barriers, index, size), _on_barrier("mbarrier_expect", text)


@intrinsic
def mbarrier_wait(typing_context, barriers, index, parity):
    """Wait until a phase of this parity (0 or 1) of barriers[index] is over.

    What was written before the arrivals, and by the copies, is then visible. The hardware puts the thread
    to sleep for a while rather than letting it spin. PTX `mbarrier.try_wait.parity`, in a loop; compute
    capability 9.0.
    """
    if not _barriers(barriers):
        return None
    return types.void(barriers, index, parity), _on_barrier("mbarrier_wait", _WAIT)


@intrinsic
def fence_async(typing_context):
    """Show what this thread wrote to shared memory to the units that copy and multiply on their own.

    TMA and wgmma reach shared memory by another path (the async proxy) than the thread's loads and stores,
    and need this fence between the two: after `mbarrier_init`, and after filling a tile that TMA is to store.
    PTX `fence.proxy.async.shared::cta`; compute capability 9.0.
    """
    return types.void(), no_operands("fence.proxy.async.shared::cta;", "fence_async")


@emulates(mbarrier_init, elementwise=False, warp_by_warp=True)
def _init(machine, barriers, index, arrivals):
    machine.mbarriers.init(machine.site, barriers, index, arrivals)


@emulates(mbarrier_arrive, elementwise=False, warp_by_warp=True)
def _arrive(machine, barriers, index):
    machine.mbarriers.arrive(machine.site, barriers, index)


@emulates(mbarrier_expect, elementwise=False, warp_by_warp=True)
def _expect(machine, barriers, index, size):
    machine.mbarriers.arrive(machine.site, barriers, index, size)


@emulates(mbarrier_wait, elementwise=False, warp_by_warp=True)
def _wait(machine, barriers, index, parity):
    machine.mbarriers.wait(machine.site, barriers, index, parity)


@emulates(fence_async, elementwise=False, warp_by_warp=True)
def _fence(machine):
    machine.order.fence()
