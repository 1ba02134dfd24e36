"""What limits a kernel, told from its profile alone.

A part of the GPU that has been busy for most of the clocks is the limit: the kernel cannot take much less
time than this part needs. If no part has been that busy, the warps have waited too much.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemm_course.compiler.kinds import MULTIPLY_ADD
from gemm_course.profiles.profile import Profile
from gemm_course.profiles.waits import WAITS

LIMIT = 0.70  # of the clocks; a part that is less busy hardly is what everybody waits for
IDLE = 0.02  # of the launch: what is said of multiprocessors without work


@dataclass(frozen=True)
class Part:
    """A part of the GPU that can be the limit.

    busy: completes "... in 91 % of the clocks". measures: columns of `records.profiles`; the highest counts.
    """

    name: str
    busy: str
    measures: tuple[str, ...]


PARTS = (
    Part("issue slots", "the schedulers issue an instruction", ("issue_slots",)),
    Part("multiply-add units", "they compute", ("fma_pipe",)),
    Part("integer units", "they compute", ("alu_pipe",)),
    Part("Tensor Cores", "they compute", ("tensor_pipe",)),
    Part(
        "L1 and shared memory",
        "this memory is busy",
        ("l1_data", "l1_writeback", "l1_requests", "lsu_pipe"),
    ),
    Part("L2", "this memory is busy", ("l2", "l2_to_sm")),
    Part("DRAM", "this memory is busy", ("dram",)),
)


@dataclass(frozen=True)
class Verdict:
    """What limits a kernel now.

    limiter: the name of one of PARTS, or, with `waiting`, of one of WAITS, where no part is busy in LIMIT of
    the clocks. share: of the clocks in which the part was busy, or of its time that a warp spends on this
    wait, 0 to 1; clocks are those in which a multiprocessor has work. next: the part that would be the limit
    if this one were gone, next_share how busy it is, and at_most how many times as fast the kernel could be
    then. idle: the part of the launch for which a multiprocessor has no work, because the blocks do not come
    out even.
    """

    name: str
    limiter: str
    waiting: bool
    share: float
    next: str
    next_share: float
    idle: float
    sentence: str

    @property
    def at_most(self) -> float:
        return 1 / self.next_share

    def __str__(self) -> str:
        return self.sentence


def verdict(profile: Profile) -> Verdict:
    """What limits a kernel, from one launch of it; see :class:`Verdict`."""
    row = profile.measured
    idle = 1 - row["active_clocks"] / row["clocks"]
    busy = {part: max(row[name] or 0.0 for name in part.measures) / 100 / (1 - idle) for part in PARTS}
    first, second = sorted(busy, key=lambda part: -busy[part])[:2]
    wait, waited = max(
        ((name, share) for name, share in profile.waits.items() if WAITS[name].waits), key=lambda one: one[1]
    )
    waiting = f"a warp waits {_percent(waited)} of its time {WAITS[wait].waits}"
    if busy[first] < LIMIT:
        told = f"Waiting: {waiting}, and no part is busy in more than {_percent(busy[first])} of the clocks"
        return _verdict(profile.name, (wait, True, waited), (first.name, busy[first]), idle, told)
    told = f"{_begun(first.name)}: {first.busy} in {_percent(busy[first])} of the clocks"
    told += f"{_of_what(first, profile)}; {waiting}"
    return _verdict(profile.name, (first.name, False, busy[first]), (second.name, busy[second]), idle, told)


def _of_what(part: Part, profile: Profile) -> str:
    """For issue slots: how many of them the work took."""
    if part.name != "issue slots":
        return ""
    executed = profile.executed
    return f", {_percent(executed[MULTIPLY_ADD] / sum(executed.values()))} of them for multiply-adds"


def _verdict(
    name: str, limit: tuple[str, bool, float], after: tuple[str, float], idle: float, told: str
) -> Verdict:
    sentence = (
        f"{told}. Without that limit, {after[0]} would be the next, busy in {_percent(after[1])} of the "
    )
    sentence += f"clocks now: at most {1 / after[1]:.3g} times as fast."
    if idle >= IDLE:
        sentence += f" Multiprocessors have no work for {_percent(idle)} of the launch."
    return Verdict(name, *limit, *after, idle, sentence)


def _begun(text: str) -> str:
    return text[0].upper() + text[1:]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
