"""Joins the accesses of lanes that run one at a time into accesses of warps, and counts those.

The lanes of a warp execute an instruction together unless something has separated them. So the n-th
execution of a line by each of a warp's lanes counts as one request. Lanes that have left a loop one by one,
each because it has taken a lock, go on alone until they meet again at a barrier or a syncwarp.
"""

from collections import Counter

import numpy as np

from lockstep.values.lanes import Pattern

from .tally import AccessKey


class LaneCounts:
    """The accesses of single lanes in the running blocks, each under the access of the warp to which it
    belongs.
    """

    def __init__(self, machine):
        self.machine = machine
        # `accesses` maps a warp and the number of its access to (array, thread -> element).
        self.accesses: dict[tuple, tuple] = {}

    def add(self, kind, site, array, pattern, offset, width):
        """Note that the running lane accesses an element."""
        unit = self.machine.unit
        what = kind, site, array.storage.slot, width
        unit.executed[what] += 1
        warp = self.machine.chunk.origin, unit.number // 32, unit.segment
        _, elements = self.accesses.setdefault((*warp, unit.executed[what], what), (array, {}))
        index = pattern.array if pattern.array.size == 1 else pattern.array[..., unit.number]
        elements[unit.number] = int(index.flat[0]) + offset

    def separate(self, unit, segment):
        """From now on, join a lane's accesses only with those of lanes in the same segment."""
        unit.segment, unit.executed = segment, Counter()

    def settle(self):
        """Tally the accesses of the running block, which has ended."""
        machine = self.machine
        here = [key for key in self.accesses if key[0] == machine.chunk.origin]
        for key in here:
            array, elements = self.accesses.pop(key)
            kind, site, slot, width = key[-1]
            index, there = (
                np.zeros(machine.chunk.geometry.shape, np.int64),
                np.zeros(machine.chunk.geometry.shape, bool),
            )
            threads = list(elements)
            index[0, 0, threads], there[0, 0, threads] = list(elements.values()), True
            pattern, mask = Pattern(index), machine.chunk.geometry.mask(there)
            serial = 0 if array.space == "local" else pattern.serial
            what = AccessKey(array.space, kind, site, slot, serial, 0, mask.serial, width, ())
            machine.tally(what, (array, pattern, 0, mask))
