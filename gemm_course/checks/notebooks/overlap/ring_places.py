"""Checks ``ring_places``: which slot is read and which is filled, and with which tile."""

from gemm_course.checks.engines.tables import Slip, names_without_effect, table_exercise, whole_numbers

CASES = tuple((t, slots) for slots in (2, 3, 4) for t in (0, 1, 2, 5, 11))
READ = whole_numbers("slot read", "slot filled", "tile")
SLIPS = (
    Slip(
        "The slot that is filled is the one that is read in the same iteration. Fill the one that was read "
        "an iteration ago.",
        lambda t, SLOTS: (t % SLOTS, t % SLOTS, t + SLOTS - 1),
    ),
    Slip(
        "The slot that is filled holds the tile that is needed next. With two slots it is the free one; with "
        "more there are tiles on their way in between.",
        lambda t, SLOTS: (t % SLOTS, (t + 1) % SLOTS, t + SLOTS - 1),
    ),
    Slip(
        "That fetches only one tile ahead, however many slots there are. SLOTS - 1 tiles fit beside the one "
        "that is read.",
        lambda t, SLOTS: (t % SLOTS, (t + 1) % SLOTS, t + 1),
    ),
    Slip(
        "Tile t + SLOTS would go into the slot that is read now. The one that is free is one step behind it.",
        lambda t, SLOTS: (t % SLOTS, t % SLOTS, t + SLOTS),
    ),
    Slip(
        "The slots are right, the tile is not: before the loop tiles 0 to SLOTS - 2 were fetched, so at t = "
        "0 the next is SLOTS - 1.",
        lambda t, SLOTS: (t % SLOTS, (t + SLOTS - 1) % SLOTS, t + SLOTS),
    ),
    Slip(
        "The slots are right, but the tile is the one after this one. It has been under way for some time.",
        lambda t, SLOTS: (t % SLOTS, (t + SLOTS - 1) % SLOTS, t + 1),
    ),
    Slip(
        "Slots are counted without end. A ring has SLOTS of them, so take the remainder: `% SLOTS`.",
        lambda t, SLOTS: (t, t + SLOTS - 1, t + SLOTS - 1),
    ),
    Slip(
        "That is right up to the order: first the slot that is read, then the one that is filled.",
        lambda t, SLOTS: ((t + SLOTS - 1) % SLOTS, t % SLOTS, t + SLOTS - 1),
    ),
    Slip(
        "The last two are swapped: first the slot that is filled, then the tile that it is filled with.",
        lambda t, SLOTS: (t % SLOTS, t + SLOTS - 1, (t + SLOTS - 1) % SLOTS),
    ),
    Slip(
        "The third number is the tile itself, not its slot: t + SLOTS - 1, without a remainder.",
        lambda t, SLOTS: (t % SLOTS, (t + SLOTS - 1) % SLOTS, (t + SLOTS - 1) % SLOTS),
    ),
)


def _passed(right) -> str:
    return f"Right for 2 to 4 slots. With 3, iteration 5 reads, fills and fetches {right(5, 3)}."


@table_exercise(
    start="in which slot does tile t lie, if tile 0 lies in slot 0, tile 1 in slot 1, and so on around?",
    hints=(
        "Tile t lies in slot `t % SLOTS`, whichever t. That answers the first question, and with the third "
        "also the second.",
        "Beside the tile that is read, SLOTS - 1 tiles fit: t + 1, ..., t + SLOTS - 1. All but the last were "
        "asked for in earlier iterations.",
    ),
    cases=CASES,
    slips=SLIPS,
    read=READ,
    passed=_passed,
    otherwise=names_without_effect("t", "SLOTS"),
)
def ring_places(t, SLOTS):
    """places(t, SLOTS) -> the slot that iteration t reads, the one that it fills, and with which tile."""
    return t % SLOTS, (t + SLOTS - 1) % SLOTS, t + SLOTS - 1
