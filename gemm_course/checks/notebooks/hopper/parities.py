"""Checks ``parities``: which slot a step uses, and which parity each role waits for."""

from gemm_course.checks.engines.tables import Slip, names_without_effect, table_exercise, whole_numbers

CASES = ((0, 4), (1, 4), (3, 4), (4, 4), (6, 4), (8, 4), (11, 4), (5, 3), (6, 3), (7, 2), (2, 1), (3, 1))


def _slip(message, slot, consumer, producer):
    """Return a slip, computed from the step, SLOTS, and the number of times round the ring."""
    return Slip(
        message,
        lambda step, SLOTS: tuple(part(step, SLOTS, step // SLOTS) for part in (slot, consumer, producer)),
    )


def _slot(step, SLOTS, times):
    return step % SLOTS


def _parity(step, SLOTS, times):
    return times % 2


def _other(step, SLOTS, times):
    return 1 - times % 2


SLIPS = (
    _slip(
        "The slot is one too far: steps count from 0, so step 0 uses slot 0.",
        lambda step, SLOTS, times: (step + 1) % SLOTS,
        _parity,
        _other,
    ),
    _slip(
        "The slot counts from 1 here. The ring's slots are 0 to SLOTS - 1.",
        lambda step, SLOTS, times: step % SLOTS + 1,
        _parity,
        _other,
    ),
    _slip(
        "Producer and consumer name the same parity. But they wait for different things: the consumer for "
        "this time round the ring, the producer for the end of the time before.",
        _slot,
        _parity,
        _parity,
    ),
    _slip(
        "The first time round the producer must not wait, and it names parity 0: phase 0 is running, so it "
        "would. Which parity passes on a new barrier?",
        _slot,
        _parity,
        lambda step, SLOTS, times: 1 - times % 2 if times else 0,
    ),
    _slip(
        "The two parities are swapped: the first consumer would not wait at all, and the first producer for "
        "ever.",
        _slot,
        _other,
        _parity,
    ),
    _slip(
        "The parity changes with every step here. A slot's barrier ends one phase each time round the ring.",
        _slot,
        lambda step, SLOTS, times: step % 2,
        lambda step, SLOTS, times: 1 - step % 2,
    ),
    _slip(
        "The parity never changes: the second time round, the waits would return at once.",
        _slot,
        lambda step, SLOTS, times: 0,
        lambda step, SLOTS, times: 1,
    ),
    _slip(
        "These are numbers of phases. A wait names only the parity: 0 for even ones, 1 for odd ones.",
        _slot,
        lambda step, SLOTS, times: times,
        lambda step, SLOTS, times: times - 1,
    ),
    _slip(
        "These are numbers of phases, and the producer's is one too large: it waits for the phase before, "
        "and names a parity, 0 or 1.",
        _slot,
        lambda step, SLOTS, times: times,
        lambda step, SLOTS, times: times + 1,
    ),
    _slip(
        "The slots do not go round: after slot SLOTS - 1 comes slot 0 again.",
        lambda step, SLOTS, times: step,
        _parity,
        _other,
    ),
    _slip(
        "Which slot is it, and which time round? `step // SLOTS` is the time, `step % SLOTS` the slot.",
        lambda step, SLOTS, times: times,
        lambda step, SLOTS, times: step % SLOTS % 2,
        lambda step, SLOTS, times: 1 - step % SLOTS % 2,
    ),
    _slip(
        "The parity changes one step too early: step number SLOTS is the first of the second time round.",
        _slot,
        lambda step, SLOTS, times: (step + 1) // SLOTS % 2,
        lambda step, SLOTS, times: 1 - (step + 1) // SLOTS % 2,
    ),
)


_NUMBERS = whole_numbers("slot", "consumer", "producer")


def _read(answer):
    """Return the three numbers. A parity may be a truth value, as ``not`` gives it."""
    if isinstance(answer, (tuple, list)) and len(answer) == 3:
        answer = (answer[0], *(int(each) if isinstance(each, bool) else each for each in answer[1:]))
    return _NUMBERS(answer)


@table_exercise(
    start="write down slot and phase for the first steps of a ring of four: 0 to 3 are the first time round, "
    "4 to 7 the second.",
    hints=(
        "The slot is `step % SLOTS`; how many times round the ring is `step // SLOTS`.",
        "The consumer waits at `full[slot]` for phase number `step // SLOTS`. Its parity is the last bit.",
        "The producer waits at `empty[slot]` for the phase before. The first time that would be phase -1, "
        "which counts as completed; its parity is 1.",
    ),
    cases=CASES,
    slips=SLIPS,
    read=_read,
    otherwise=names_without_effect("step", "SLOTS"),
    passed="Right for rings of 1 to 4 slots. The kernels need no division: they count the slot up, and flip "
    "the parity where it goes back to 0.",
)
def parities(step, SLOTS):
    """parities(step, SLOTS) -> (slot, parity the consumer waits for, parity the producer waits for)."""
    return step % SLOTS, step // SLOTS % 2, 1 - step // SLOTS % 2
