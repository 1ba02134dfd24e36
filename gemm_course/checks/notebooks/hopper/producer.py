"""Checks ``producer``: the producer of a ring, which waits for empty slots and has TMA fill them."""

import re
from typing import Any

from gemm_course.checks.core import Refused, device_function_of, exercise
from gemm_course.checks.kits import given_consumer, patient_consumer, two_roles
from gemm_course.checks.notebooks.hopper.roles import BOX_BYTES, Product, Role, box, hold, tiles_of
from lockstep import Finding

_NEVER_FLIPPED = (
    "The wait at `empty` does not wait the second time round: the parity must change each time `slot` goes "
    "back to 0."
)
AT_MOST = {1: "one tile is", 2: "two tiles are"}
PARAMETERS = ("full", "empty", "As", "Bs", "A", "B", "row0", "col0", "steps", "slots")


@exercise(
    start="four calls in the loop: wait until the slot is empty, expect the bytes, request the tile of A, "
    "request the tile of B. Then the next slot.",
    hints=(
        "The producer waits at `empty`, with the parity that [[parities]] gives the producer: `parity ^ 1`.",
        "`mbarrier_expect(full, slot, ...)` with the bytes of both boxes, 64 × 64 values of 2 bytes each. It "
        "is an arrival, too, the only one that `full` waits for.",
        "`tma_load(As, (slot, 0, 0), A, (row0, step * 64), full, slot)`; B's box begins at row `step * 64`, "
        "column `col0`.",
        "`slot += 1`; where that is `slots`, `slot = 0` and `parity ^= 1`.",
    ),
)
def producer(produce):
    """A device function (full, empty, As, Bs, A, B, row0, col0, steps, slots) that fills the ring."""
    function = device_function_of(produce, PARAMETERS)
    role = Role(function, lambda slots, mine: two_roles(slots, mine, given_consumer))
    role.check_begun(("mbarrier_", "tma_"))
    hold(role, _explain, LIKELY, OTHERWISE)
    _check_that_it_runs_ahead(role)
    return (
        "Right with 2, 3 and 4 slots, with more steps than slots and with fewer, and where k ends in the "
        "middle of a box. One thread of yours keeps 128 others supplied."
    )


def _check_that_it_runs_ahead(role: Role) -> None:
    """Refuse a producer that waits for a tile to come, or to be read, before it asks for the next."""
    for wait in role.of("mbarrier_wait"):
        if wait.at(0) == "full" and role.in_a_loop(wait):
            raise Refused(
                "The numbers are right, but you wait at `full` until the tile has come, and only then ask "
                "for the next one: one tile is under way, however many slots there are. `full` is for "
                "consumers; ask, and go on.",
                wait.where + ".",
            )
    ahead = _tiles_under_way(role, 3)
    if ahead < 3:
        raise Refused(
            "The numbers are right, but the producer does not fill the ring: it waits for a tile to be read "
            f"before it asks for the next one. In a ring of 3 slots {AT_MOST[ahead]} under way. With "
            "consumers that begin when all 3 slots are full, both stand still. Wait for the slot that is to "
            "be filled, not for the one that was.",
            role.of("mbarrier_wait")[-1].where + ".",
        )


def _tiles_under_way(role: Role, slots: int) -> int:
    """Return how many tiles the producer requests, at most, before one has been read."""
    for tiles in range(2, slots + 1):
        patient = Role(
            role.function, lambda slots, mine, n=tiles: two_roles(slots, mine, patient_consumer(n))
        )
        try:
            patient.launch(slots, 64, 64, 320)
        except Refused:
            return tiles - 1
    return slots


def _bytes_announced(role: Role) -> int | None:
    """Return the bytes that `mbarrier_expect` gets, if the source tells."""
    calls = role.of("mbarrier_expect")
    if len(calls) != 1 or not re.fullmatch(r"[\d\s()*+-]+", calls[0].at(2)) or "**" in calls[0].at(2):
        return None
    try:
        # The text has only digits, brackets and operators, so `eval` can do no harm.
        return int(eval(calls[0].at(2), {"__builtins__": {}}))
    except (ArithmeticError, SyntaxError, TypeError):
        return None


def _explain(role: Role, message: str, finding: Finding | None) -> str:
    waits, loads = role.of("mbarrier_wait"), role.of("tma_load")
    if not loads:
        return "Nothing is ever copied: `tma_load` is missing."
    if not waits:
        return (
            "The producer never waits. The first time round the ring that is right, for all slots are empty; "
            "the second time it overwrites tiles that are still needed. Wait at `empty[slot]` first."
        )
    if waits[0].at(0) == "full":
        return "The producer waits at `full`, which says that a tile has come. It needs room: `empty`."
    if any(call.at(0) == "full" for call in role.of("mbarrier_arrive")) and not role.of("mbarrier_expect"):
        return (
            "You arrive at `full`, but promise no bytes: its phase ends before the tiles have come. "
            "`mbarrier_expect` is both, the promise and the arrival."
        )
    if not role.of("mbarrier_expect"):
        return (
            "`mbarrier_expect` is missing: nobody arrives at `full`, so its phase never ends, though the "
            "tiles have come."
        )
    if role.of("mbarrier_expect")[0].at(0) == "empty":
        return "The bytes are announced to `empty`. The copies report to `full`, and it must expect them."
    if any(load.at(4) == "empty" for load in loads):
        return "A copy reports to `empty`. The consumers wait at `full`, and there its bytes must count."
    if any(call.at(0) == "full" for call in role.of("mbarrier_arrive")):
        return (
            "`mbarrier_expect` is an arrival already, and `full` was initialised for one. Another "
            "`mbarrier_arrive` is one too many."
        )
    return _of_order(role, finding) or _of_bytes(role, message) or _of_the_ring(role, message)


def _of_order(role: Role, finding: Finding | None) -> str:
    wait, expects, loads = role.of("mbarrier_wait")[0], role.of("mbarrier_expect"), role.of("tma_load")
    if len(expects) > 1 and all(role.in_a_loop(call) for call in expects):
        return (
            "Each `mbarrier_expect` is an arrival, and `full` was initialised for one: promise the bytes of "
            "both boxes in one call."
        )
    if not any(role.in_a_loop(call) for call in expects):
        return "`mbarrier_expect` stands before the loop. Every step needs its promise, and its arrival."
    moved_on = min(role.changes(wait.at(1)), default=wait.line)
    if role.in_a_loop(wait) and max(call.line for call in loads) < wait.line <= moved_on:
        return (
            "The wait comes after the copies of its step: it waits for readers of the tile that is only "
            "coming. First wait until the slot is empty, then fill it."
        )
    if finding is not None and finding.kind == "missing_wait":
        return (
            "The bytes are announced before the wait at `empty`. That is an arrival at `full`, and the "
            "copies of the time before may still be under way there: first wait, then expect."
        )
    return ""


def _of_bytes(role: Role, message: str) -> str:
    due, announced, loads = 2 * BOX_BYTES, _bytes_announced(role), len(role.of("tma_load"))
    if loads == 1:
        return "Only one `tma_load` per step: a step needs a tile of A and one of B."
    if announced is not None and announced != due:
        return (
            f"You announce {announced:,} bytes, and {due:,} come: two boxes of 64 × 64 values, 2 bytes each. "
            + (
                "The barrier waits for the rest for ever."
                if announced > due
                else "The barrier opens before all of them are there."
                if due % announced == 0
                else "Neither the first box nor both are just that many, so the phase never ends."
            )
        )
    if "bytes more than" in message:
        return "More bytes are announced than come."
    return ""


def _of_the_ring(role: Role, message: str) -> str:
    if re.search(r"uses (empty|full)\[|reaches past|Thread .* uses", message):
        return "`slot` runs past the ring. After the last slot, `slots - 1`, comes slot 0 again."
    if not role.moves(role.of("mbarrier_wait")[0], 2):
        return _NEVER_FLIPPED
    if "phase 0 of empty[0]" in message and "^" not in role.of("mbarrier_wait")[0].at(2):
        return (
            "The producer stands still before the first tile: it waits for a slot to be given back that "
            "nobody has filled yet. On a new barrier the wait for parity 1 returns at once, so name "
            "`parity ^ 1`."
        )
    if "phase 0 of empty[1]" in message:
        return (
            "The parity changes with every step. It belongs to a time round the ring: change it where `slot` "
            "goes back to 0, and only there."
        )
    targets = {load.at(0) for load in role.of("tma_load")}
    if len(targets) == 1:
        return f"Both tiles go to `{targets.pop()}`: A's belongs in `As`, B's in `Bs`."
    if any(load.at(1).startswith("(0,") for load in role.of("tma_load")):
        return "All tiles go to slot 0 of the arrays, whichever slot it is the turn of: `(slot, 0, 0)`."
    if "phase 0 of full[1]" in message:
        return "`slot` stays 0: slot 1 is never filled, and the consumers wait for it."
    if "TMA overwrite" in message:
        return _NEVER_FLIPPED
    return ""


def _with(a: Any, b: Any) -> Any:
    """Return C if A's box begins at a(row0, step) and B's at b(col0, step)."""

    def predicted(product: Product):
        return tiles_of(
            product,
            lambda row0, col0, step: box(product.A, *a(row0, step)) @ box(product.B, *b(col0, step)),
        )

    return predicted


def _right_a(row0, step):
    return row0, step * 64


def _right_b(col0, step):
    return step * 64, col0


LIKELY = (
    (
        "A's box begins at the wrong corner: row and column are swapped. Steps along k are columns of A: "
        "`(row0, step * 64)`.",
        _with(lambda row0, step: (step * 64, row0), _right_b),
    ),
    (
        "B's box begins at the wrong corner: row and column are swapped. Steps along k are rows of B: "
        "`(step * 64, col0)`.",
        _with(_right_a, lambda col0, step: (col0, step * 64)),
    ),
    (
        "A corner is counted in elements, not in tiles: step number `step` begins at `step * 64`.",
        _with(lambda row0, step: (row0, step), lambda col0, step: (step, col0)),
    ),
    (
        "Every step fetches the first tiles again: `step * 64` belongs in both corners.",
        _with(lambda row0, step: (row0, 0), lambda col0, step: (0, col0)),
    ),
    (
        "Every block takes A's rows from the top: its own begin at `row0`.",
        _with(lambda row0, step: (0, step * 64), _right_b),
    ),
    (
        "Every block takes B's columns from the left: its own begin at `col0`.",
        _with(_right_a, lambda col0, step: (step * 64, 0)),
    ),
    (
        "The tile of A has gone to `Bs`, and that of B to `As`.",
        lambda product: tiles_of(
            product,
            lambda row0, col0, step: box(product.B, step * 64, col0) @ box(product.A, row0, step * 64),
        ),
    ),
)
OTHERWISE = "The ring works, but the numbers are wrong: which boxes of A and B does a step need?"
