"""Checks ``consumer``: the consumers of a ring, which multiply by wgmma and give the slots back."""

import re
from typing import Any

from gemm_course.checks.core import device_function_of, exercise
from gemm_course.checks.kits import given_producer, two_roles
from gemm_course.checks.notebooks.hopper.roles import Product, Role, box, hold, tiles_of
from lockstep import Finding

PARAMETERS = ("full", "empty", "As", "Bs", "acc", "lane", "steps", "slots")
_EARLY = (
    "`wgmma_wait(1)` leaves the last group running. What is complete is the step before: give back its slot, "
    "not this one's, and wait for all after the loop."
)
# One wgmma takes 16 steps along k.
DEPTH = 16


@exercise(
    start="in the loop: wait until the slot is full, fence, four products, commit, wait for them, give the "
    "slot back, and on to the next.",
    hints=(
        "Consumers wait at `full`, with `parity` as it is. `wgmma_fence()` comes before the first product.",
        "`for p in unroll(range(0, 64, 16))`: A's part is columns p to p + 15 of its tile, from "
        "`(slot, 0, p)` on; B's is rows p to p + 15, from `(slot, p, 0)` on.",
        "`wgmma_commit()` closes the group, `wgmma_wait(0)` waits for it. Only then may lane 0 call "
        "`mbarrier_arrive(empty, slot)`.",
        "To leave a group running: `wgmma_wait(1)`, then give back the slot of the step before, if there is "
        "one; and `wgmma_wait(0)` after the loop.",
    ),
)
def consumer(consume):
    """A device function (full, empty, As, Bs, acc, lane, steps, slots): multiplies each tile of the ring."""
    function = device_function_of(consume, PARAMETERS)
    role = Role(function, lambda slots, mine: two_roles(slots, given_producer, mine))
    role.check_begun(("mbarrier_", "wgmma"))
    hold(role, _explain, LIKELY, OTHERWISE)
    waits = {call.at(0) for call in role.of("wgmma_wait")}
    told = (
        "Right with 2, 3 and 4 slots: no barrier of the block in the loop, no load of an operand, no tile "
        "overwritten too early."
    )
    if "1" in waits:
        return told + " And while one step's products run, the next step's are queued."
    return told + (
        " For more: `wgmma_wait(1)` keeps the Tensor Cores supplied; then give back the slot of the step "
        "before."
    )


def _explain(role: Role, message: str, finding: Finding | None) -> str:
    waits = role.of("mbarrier_wait")
    if "uses empty[-" in message:
        return (
            "Before slot 0 comes the last slot, and an index of -1 is not that one here: on a GPU it is the "
            "memory before `empty`. Keep the number of the slot before in a variable."
        )
    if re.search(r"uses (empty|full)\[", message):
        return "`slot` runs past the ring. After the last slot, `slots - 1`, comes slot 0 again."
    if not waits:
        return "The consumers never wait: they multiply before the tile has come. Wait at `full[slot]` first."
    if waits[0].at(0) == "empty":
        return "The consumers wait at `empty`, which is for the producer. That a tile has come says `full`."
    if role.of("syncthreads") and finding is None:
        return (
            "`cuda.syncthreads()` waits for all warps of the block, and the producer never comes to it. "
            "`full` says that a tile is there, and that is enough."
        )
    if "multiple of 1024 bytes" in message:
        return "A product takes 16 steps of k: let p go in steps of 16, `range(0, 64, 16)`."
    if finding is not None and finding.kind == "missing_fence":
        return (
            "`wgmma_fence()` must come before the first product of a step: until then wgmma may not see what "
            "is in the accumulators."
        )
    if not role.of("wgmma_commit"):
        return (
            "`wgmma_commit()` is missing. `wgmma_wait` counts groups, and products in none are waited for "
            "by nobody."
        )
    if not role.of("wgmma_wait"):
        return "Nobody waits for the products: `wgmma` only queues them, and `wgmma_wait` is missing."
    return _of_arrivals(role, message) or _of_the_ring(role, message, finding)


def _of_arrivals(role: Role, message: str) -> str:
    arrivals = role.of("mbarrier_arrive")
    if not arrivals:
        return (
            "No slot is ever given back: `mbarrier_arrive(empty, ...)` is missing. The producer fills the "
            "ring once, then both wait."
        )
    if arrivals[0].at(0) == "full":
        return "The consumers arrive at `full`. They give a slot back at `empty`."
    freed, slot = arrivals[0], role.of("mbarrier_wait")[0].at(1)
    if "empty[" in message and "needs 3 arrivals" in message:
        return (
            "`empty` was initialised for 4 arrivals, one per warp, and one thread of the whole block "
            "arrives. Lane 0 of each warp must: `lane == 0`."
        )
    pending = role.of("wgmma_wait")[0].at(0)
    if _gives_back_early(role, pending):
        return _EARLY
    if freed.at(1) == f"{slot} - 1" and f"{slot} > 0" in role.conditions():
        return (
            f"Where `{slot}` is 0, the step before was in the last slot, and that is never given back. Keep "
            "the number of the slot before in a variable."
        )
    if pending == "1" and freed.at(1) != slot and "step" not in role.conditions():
        return (
            "In step 0 there is no step before: nothing can be given back yet, only from step 1 on. The very "
            "last slot need not be given back at all."
        )
    if "32 threads arrive" in message:
        return "`empty` was initialised for 4 arrivals, one per warp. All 32 lanes arrive: lane 0 is enough."
    return ""


def _of_the_ring(role: Role, message: str, finding: Finding | None) -> str:
    if finding is not None and finding.kind == "out_of_bounds":
        return (
            "B's part of a step is 16 rows, from `(slot, p, 0)` on; A's is 16 columns, from `(slot, 0, p)`."
        )
    wait, first_wait = role.of("mbarrier_wait")[0], role.of("wgmma_wait")[0]
    if not role.moves(wait, 1):
        return "`slot` stays the same: the next tile is in the next slot, and after the last comes slot 0."
    if not role.moves(wait, 2):
        return (
            "The second time round the wait at `full` returns at once: the parity must change each time "
            "`slot` goes back to 0."
        )
    of_read = "which warp" in message or "which an operation" in message
    if "adds to acc" in message or "products are still being added" in message:
        return "After the loop products may still be running: `wgmma_wait(0)` there."
    if re.search(r"wgmma read [AB]s\[[1-9]", message):
        return (
            "The parity changes with every step. It belongs to a time round the ring: change it where `slot` "
            "goes back to 0, and only there."
        )
    if "wgmma read" in message:
        return (
            "The wait at `full` does not wait the first time round: it names the producer's parity. A "
            "consumer's first phase has parity 0."
        )
    if of_read and role.of("mbarrier_arrive")[0].line < first_wait.line:
        return (
            "The slot is given back before its products are complete: `wgmma` still reads it while the "
            "producer refills it. Arrive after `wgmma_wait`."
        )
    return ""


def _gives_back_early(role: Role, pending: str) -> bool:
    """Tell whether one group still runs while this step's slot is given back."""
    return pending == "1" and role.of("mbarrier_arrive")[0].at(1) == role.of("mbarrier_wait")[0].at(1)


def _with(parts: Any) -> Any:
    """Return C if a step multiplies columns pa of A's tile by rows pb of B's, for each (pa, pb) in parts."""

    def one(product: Product, row0: int, col0: int, step: int):
        a, b = box(product.A, row0, step * 64), box(product.B, step * 64, col0)
        return sum(a[:, pa : pa + DEPTH] @ b[pb : pb + DEPTH] for pa, pb in parts)

    return lambda product: tiles_of(product, lambda *at: one(product, *at))


ALL = range(0, 64, DEPTH)
LIKELY = (
    ("Nothing is multiplied: `wgmma` is missing.", lambda product: 0 * product.expected),
    (
        "Only 16 of the 64 steps of a tile are multiplied: one `wgmma` does 16. Four make a tile.",
        _with([(0, 0)]),
    ),
    (
        "Every product takes the first 16 columns of A's tile: `p` is missing in `(slot, 0, p)`.",
        _with([(0, p) for p in ALL]),
    ),
    (
        "Every product takes the first 16 rows of B's tile: `p` is missing in `(slot, p, 0)`.",
        _with([(p, 0) for p in ALL]),
    ),
    (
        "All four products are of the same 16 columns of A and 16 rows of B: `p` belongs in both places.",
        _with([(0, 0)] * 4),
    ),
    ("Each product is added twice.", _with([(p, p) for p in ALL] * 2)),
    (
        "Only the last step counts: the accumulators start anew in each. They are 0 when you get them.",
        lambda product: tiles_of(
            product,
            lambda row0, col0, step: (
                box(product.A, row0, step * 64) @ box(product.B, step * 64, col0)
                if step == (product.A.shape[1] - 1) // 64
                else 0
            ),
        ),
    ),
)
OTHERWISE = (
    "The ring works, but the numbers are wrong: which 16 columns of A and rows of B does a product take?"
)
