"""Checks ``standstill``: how far the consumers come before a ring with too few slots stands still."""

from gemm_course.checks.engines.tables import Slip, a_whole_number, names_without_effect, table_exercise

# The cases are (SLOTS, late, steps).
CASES = (
    (4, 1, 64),
    (2, 1, 64),
    (1, 1, 64),
    (1, 0, 64),
    (2, 0, 64),
    (1, 1, 1),
    (2, 2, 64),
    (3, 2, 64),
    (2, 3, 64),
    (3, 3, 2),
    (3, 3, 64),
    (4, 3, 3),
    (4, 6, 5),
)

SLIPS = (
    Slip(
        "With as many slots as steps late it stands still, too: the consumer holds them all, and waits for "
        "one more.",
        lambda SLOTS, late, steps: steps if SLOTS >= late else min(SLOTS, steps),
    ),
    Slip(
        "A short k has fewer steps than the ring has slots: then every tile has a slot of its own, and "
        "nobody waits for one to be given back.",
        lambda SLOTS, late, steps: steps if SLOTS > late else SLOTS,
    ),
    Slip(
        "One slot more than it gives back late is enough: then a slot comes back before the next is needed.",
        lambda SLOTS, late, steps: steps if SLOTS > late + 1 else min(SLOTS, steps),
    ),
    Slip(
        "One step too far: steps 0 to SLOTS - 1 have their tiles, and step SLOTS waits for a slot.",
        lambda SLOTS, late, steps: steps if SLOTS > late else min(SLOTS + 1, steps),
    ),
    Slip(
        "It comes a step further: before it stands still it multiplies every tile that the ring can hold.",
        lambda SLOTS, late, steps: steps if SLOTS > late else min(SLOTS - 1, steps),
    ),
    Slip(
        "Not so far: the tile of step SLOTS needs a slot, and none is given back before that.",
        lambda SLOTS, late, steps: steps if SLOTS > late else min(late, steps),
    ),
    Slip(
        "Not every ring stands still: with slots to spare all steps are multiplied.",
        lambda SLOTS, late, steps: min(SLOTS, steps),
    ),
    Slip(
        "Not every ring stands still that gives back late: with slots to spare all steps are multiplied.",
        lambda SLOTS, late, steps: min(SLOTS, steps) if late else steps,
    ),
    Slip(
        "A ring can stand still: who gives back the first slot, and when?", lambda SLOTS, late, steps: steps
    ),
    Slip(
        "Where it stands still, something has been multiplied before: the ring was filled once, and every "
        "tile in it can be.",
        lambda SLOTS, late, steps: steps if SLOTS > late else 0,
    ),
)


@table_exercise(
    start="play it with two slots and late = 2: when is slot 0 given back, and what must happen before?",
    hints=(
        "The slot of step 0 is given back after the products of step `late` are queued. So tile `late` must "
        "come first.",
        "The producer can fill SLOTS tiles, 0 to SLOTS - 1, before anybody gives a slot back.",
        "If `late` is among them, slots are given back and it goes on to the end. If not, the consumers "
        "multiply what is in the ring, at most SLOTS tiles, and wait.",
    ),
    cases=CASES,
    slips=SLIPS,
    read=a_whole_number("the number of steps"),
    otherwise=names_without_effect("SLOTS", "late", "steps"),
    passed="Right. It needs one slot more than it gives back late: the kernels below are one step late, and "
    "their rule says that SLOTS must be at least 2.",
)
def standstill(SLOTS, late, steps):
    """standstill(SLOTS, late, steps) -> steps that the consumers multiply before the end or a standstill."""
    given_back, multiplied = 0, 0
    while multiplied < steps and multiplied < given_back + SLOTS:
        multiplied += 1
        given_back = max(0, multiplied - late)
    return multiplied
