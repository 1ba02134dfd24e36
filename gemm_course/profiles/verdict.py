"""Tells what keeps a kernel busiest, from its profile alone.

A part of the GPU that has been busy for most of the clocks may be the limit, because the kernel cannot take
much less time than this part needs. Whether it is, only an experiment shows, which takes a part of its work
away. If no part has been that busy, the warps have waited too much.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gemm_course.compiler.kinds import MULTIPLY_ADD, TENSOR_CORE
from gemm_course.profiles.profile import Profile
from gemm_course.profiles.waits import WAITS
from gemm_course.profiles.words import percent, three_digits

# A part that is busy for a smaller share of the clocks than this is rarely the bottleneck.
LIMIT = 0.70
# Multiprocessors that are idle for this share of the launch or more are mentioned.
IDLE = 0.02


@dataclass(frozen=True)
class Part:
    """A part of the GPU that can be the limit.

    ``measures`` are columns of `records.profiles`, of which the highest counts. ``busy`` is the
    word before "in 91 % of the clocks". ``are`` is the verb, "are" for units and slots, "is" for a memory.
    """

    name: str
    measures: tuple[str, ...]
    busy: str = "busy"
    are: str = "are"


_ALL = (
    Part("issue slots", ("issue_slots",), busy="taken"),
    Part("multiply-add units", ("fma_pipe",)),
    Part("integer units", ("alu_pipe",)),
    Part("Tensor Cores", ("tensor_pipe",)),
    Part("L1 and shared memory", ("l1_data", "l1_writeback", "l1_requests", "lsu_pipe"), are="is"),
    Part("L2", ("l2", "l2_to_sm"), are="is"),
    Part("DRAM", ("dram",), are="is"),
)
PARTS = {part.name: part for part in _ALL}
_SLOTS, _MULTIPLY_ADDS, _TENSOR_CORES = "issue slots", "multiply-add units", "Tensor Cores"


@dataclass(frozen=True)
class Verdict:
    """The limit of a kernel in one launch. Shares are from 0 to 1.

    ``busy`` has each part that was measured, the busiest first, with the share of the clocks in which it was
    busy. Clocks are those in which a multiprocessor has work. ``work`` is the part that does the kernel's
    work, Tensor Cores or multiply-add units. ``wait`` is what a warp waits for longest, one of WAITS, and
    ``waited`` the share of its time. ``multiply_adds`` is their share of all executed instructions. ``idle``
    is the share of the launch in which a multiprocessor has no work, because its blocks end before those of
    others.
    """

    name: str
    busy: Mapping[str, float] = field(repr=False)
    work: str
    wait: str
    waited: float
    multiply_adds: float
    idle: float

    @property
    def waiting(self) -> bool:
        """True if waiting is the limit, because no part is busy enough."""
        return next(iter(self.busy.values())) < LIMIT

    @property
    def limiter(self) -> str:
        """The name of one of PARTS or, if waiting is the limit, of one of WAITS."""
        return self.wait if self.waiting else next(iter(self.busy))

    @property
    def share(self) -> float:
        """The limiter's share of the clocks or, if waiting is the limit, the share of a warp's time."""
        return self.waited if self.waiting else self.busy[self.limiter]

    @property
    def next(self) -> str:
        """The part that would be the limit if this limit, a part or waiting, were gone."""
        return list(self.busy)[0 if self.waiting else 1]

    @property
    def next_share(self) -> float:
        return self.busy[self.next]

    @property
    def at_most(self) -> float:
        """The factor by which the kernel could be faster if the limit were gone.

        Other parts keep their clocks. The part that does the work cannot go. If it is the limit, it would
        then be busy in every clock.
        """
        return 1 / (self.share if self.working else self.next_share)

    @property
    def working(self) -> bool:
        """True if the part that does the work is the limit."""
        return not self.waiting and self.limiter == self.work

    @property
    def sentences(self) -> tuple[str, ...]:
        """The limit, what would be next, the longest wait, and idle multiprocessors if there are many."""
        told = [self._limit(), self._next()]
        if not self.waiting:
            told.append(f"A warp waits {percent(self.waited)} of its time {self.wait_in_words}.")
        if self.idle >= IDLE:
            told.append(f"Multiprocessors have no work for {percent(self.idle)} of the launch.")
        return tuple(told)

    @property
    def wait_in_words(self) -> str:
        """The rest of "a warp waits ...", such as "at barriers"."""
        return WAITS[self.wait].waits

    @property
    def limit_in_words(self) -> str:
        """The limit in words.

        It is such as "L2, busy in 91 % of the clocks" or "waiting, 60 % of a warp's time at barriers".
        """
        if self.waiting:
            return f"waiting, {percent(self.waited)} of a warp's time {self.wait_in_words}"
        return f"{self.limiter}, {PARTS[self.limiter].busy} in {percent(self.share)} of the clocks"

    @property
    def heading(self) -> str:
        """What stands before ``limit_in_words``: what is busiest, or that warps wait."""
        return "Warps wait" if self.waiting else "Busiest"

    def _limit(self) -> str:
        if self.waiting:
            return (
                f"A warp waits {percent(self.waited)} of its time {self.wait_in_words}, and every part is "
                f"busy in less than {percent(LIMIT)} of the clocks."
            )
        work = f", {percent(self.multiply_adds)} of them by multiply-adds" if self.limiter == _SLOTS else ""
        return f"{self.heading}: {self.limit_in_words}{work}."

    def _next(self) -> str:
        faster = f"at most {three_digits(self.at_most)} times as fast"
        after = f"Next: {self.next}, {percent(self.next_share)}"
        if self.waiting:
            return (
                f"If warps never waited, {self.next} would be full first, busy in "
                f"{percent(self.next_share)} of the clocks now: {faster}."
            )
        if self.working:
            return f"They do the work, so {faster}. {after}."
        return f"{after}, so {faster}."

    def __str__(self) -> str:
        return " ".join(self.sentences)


def verdict(profile: Profile) -> Verdict:
    """Return what limits a kernel, from one launch of it.

    Raise ValueError for a profile without clocks, or with fewer than two parts measured.
    """
    row = profile.measured
    busy = _busy(row)
    if len(busy) < 2:
        raise ValueError(f"it was not measured how busy the parts of the GPU were with {profile.name}.")
    waits = {name: share for name, share in profile.waits.items() if WAITS[name].waits}
    longest = max(waits, key=waits.__getitem__)
    executed = profile.executed
    return Verdict(
        name=profile.name,
        busy=busy,
        work=_TENSOR_CORES if executed.get(TENSOR_CORE) else _MULTIPLY_ADDS,
        wait=longest,
        waited=waits[longest],
        multiply_adds=executed[MULTIPLY_ADD] / max(1, sum(executed.values())),
        idle=1 - row["active_clocks"] / row["clocks"],
    )


def _busy(row: Mapping[str, float | None]) -> dict[str, float]:
    """Return the parts that were measured, the busiest first, with the share of the clocks of each."""
    found = {}
    for part in PARTS.values():
        shares = [of_active_clocks(row, name) for name in part.measures]
        measured = [share for share in shares if share is not None]
        if measured:
            found[part.name] = max(measured)
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def of_active_clocks(row: Mapping[str, float | None], name: str) -> float | None:
    """Return how busy a part was, 0 to 1, in clocks in which multiprocessors had work.

    ``name`` is a column of PROFILE_BUSY. Return None if that was not measured.
    """
    share, clocks, active = row.get(name), row.get("clocks"), row.get("active_clocks")
    return None if share is None or not clocks or not active else share / 100 * clocks / active
