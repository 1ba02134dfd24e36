"""Decides whether it is an error that threads miss a barrier, by what they do afterwards.

Since Volta a barrier waits only for the threads that have not ended. So it does no harm if the absent threads
just run to their end, and the emulator only advises against it. It is an error if some threads of a warp miss
the barrier and still access memory: the instruction needs all threads of a warp (PTX, ``bar.sync``), and
NVIDIA's synccheck reports just these cases as errors (``recorded/sanitizer.csv``). It is also an error if
absent threads reach another barrier, because they meet threads that wait elsewhere, and if they use shared
memory, because nothing orders them with the others.
"""

from dataclasses import dataclass

import numpy as np

from lockstep.findings import Finding, thread_name


@dataclass
class Absence:
    """A barrier that some threads of the running blocks have missed.

    ``here``: the lanes at the barrier. ``late``: the lanes that are absent and have not ended. ``busy``: the
    absent lanes that have since accessed global memory. All are booleans, one per lane.
    """

    site: int
    here: np.ndarray
    late: np.ndarray
    busy: np.ndarray | bool = False


class Absences:
    """The missed barriers of the running blocks for which it is still open whether they are errors."""

    def __init__(self, machine):
        self.machine = machine
        self.open: list[Absence] = []
        # `_broken` marks the blocks in which an error was found, in the shape (rows, columns, 1).
        self._broken = np.zeros((1, 1, 1), bool)

    def note(self, site, here, late):
        """Note that the lanes ``late`` miss the barrier where ``here`` are, and have not ended."""
        broken = late & self._broken
        if broken.any():
            report_absent(self.machine, "barrier_divergence", site, here, broken)
            late = late & ~self._broken
        if late.any():
            self._join(Absence(site, here, late))

    def _join(self, new):
        """Keep one entry per barrier in the source, even if a loop comes to it often."""
        for known in self.open:
            if known.site == new.site:
                fresh = new.late.any(axis=2, keepdims=True) & ~known.late.any(axis=2, keepdims=True)
                known.here = np.where(fresh, new.here, known.here)
                known.late = known.late | new.late
                return
        self.open.append(new)

    def at_barrier(self, here):
        """Let lanes come to a barrier, which is an error for those that have missed an earlier one."""
        if self.open:
            self._convict(here)

    def access(self, access):
        """Report lanes that access shared memory after they have missed a barrier."""
        self._convict(_lanes(access), access)

    def global_access(self, access):
        """Note lanes that access global memory after they may have missed a barrier."""
        for absence in self.open:
            absence.busy = absence.busy | (absence.late & _lanes(access))

    def _convict(self, lanes, access=None):
        undecided = []
        for absence in self.open:
            guilty = absence.late & lanes
            if guilty.any():
                report_absent(self.machine, "barrier_divergence", absence.site, absence.here, guilty, access)
                blocks = guilty.any(axis=2, keepdims=True)
                self._broken = self._broken | blocks
                absence.late = absence.late & ~blocks
            if absence.late.any():
                undecided.append(absence)
        self.open = undecided

    def end(self):
        """Report the missed barriers that are still open, now that all threads of the blocks have ended."""
        for absence in self.open:
            site, here, late = absence.site, absence.here, absence.late
            parted = _of_parted_warps(here, late & absence.busy)
            whole = late & ~parted.any(axis=2, keepdims=True)
            if parted.any():
                report_absent(self.machine, "barrier_divergence", site, here, parted, words=_they_part)
            if whole.any():
                report_absent(self.machine, "barrier_in_branch", site, here, whole)
        self.open = []


def _lanes(access):
    """Return the lanes that take part in an access."""
    active = access.mask.array
    if active is None:
        return np.ones((1, 1, 1), bool)
    return active.any(axis=tuple(range(active.ndim - 3)))


def _of_parted_warps(here, late):
    """Return the lanes in ``late`` whose warp also has lanes in ``here``."""
    threads = late.shape[2]
    starts = np.arange(0, threads, 32, dtype=np.intp)
    warps = np.logical_or.reduceat(np.broadcast_to(here, late.shape), starts, axis=2)
    return late & np.repeat(warps, 32, axis=2)[:, :, :threads]


def report_absent(machine, kind, site, here, absent, access=None, words=None):
    """Report the lanes ``absent`` from a barrier.

    access: the access to shared memory that makes it an error. words: what to say instead of the usual.
    """
    at, words = machine.sites[site], words or _SENTENCES[kind]

    def make():
        # In a loop, lanes may be absent in later iterations only, so a lane that never came is the better
        # example.
        never = absent & ~here
        row, column, linear = (int(i[0]) for i in (never if never.any() else absent).nonzero())
        block, who = (
            machine.chunk.block_coordinates(row, column),
            machine.chunk.geometry.thread_coordinates(linear),
        )
        came, threads = int(np.count_nonzero(here[row, column])), machine.chunk.geometry.threads
        count = f"Only {came} of the {threads} threads of a block" if came else "No thread of a block"
        use = None if access is None else (access.name, machine.sites[access.site].line)
        message = f"{count} reach{'es' * (not came)} this barrier; {words(thread_name(who, block), use)}"
        return Finding(kind, at.line, message, None, None, block, [who], at.function, site)

    machine.findings.add((kind, site), int(np.count_nonzero(absent.any(axis=2))), make)


def _they_never_come(who, use):
    instead = "" if use is None else f" and goes on to use {use[0]} in line {use[1]}"
    return (
        f"{who} does not{instead}. All threads of the block must reach it: on a GPU the others may wait "
        "forever."
    )


def _they_part(who, _):
    return (
        f"{who}, of the same warp as some of these, passes it by and goes on. All threads of a warp must "
        "reach a barrier together: otherwise what happens is undefined, and NVIDIA's compute-sanitizer calls "
        "it an error. Let all threads reach the barrier, and guard only loads and stores."
    )


def speaker_is_missing(who, _):
    return (
        f"{who} does not. At a grid barrier the first thread of each block tells the others that its block "
        "has come: without it, on a GPU, they wait forever or not at all. Let all threads go on, and guard "
        "only loads and stores."
    )


def _they_have_exited(who, _):
    return (
        f"the others, {who} among them, have returned before it. Since Volta (2017) a barrier waits only for "
        "the threads that have not returned; on older GPUs what happens is undefined. Let all threads go on, "
        "and guard only loads and stores."
    )


def _they_run_to_their_end(who, _):
    return (
        f"the others, {who} among them, run to their end without another. CUDA allows a barrier in a branch "
        "only where all threads of the block take it; GPUs since Volta wait only for the threads that have "
        "not ended, and on older ones what happens is undefined. Let all threads reach the barrier, and "
        "guard only loads and stores."
    )


_SENTENCES = {
    "barrier_divergence": _they_never_come,
    "barrier_after_exit": _they_have_exited,
    "barrier_in_branch": _they_run_to_their_end,
}
