"""Narrows a loop to the lanes that are left when most lanes have left it.

In lock-step a loop lasts as long as its slowest lane, and every iteration computes with arrays over all lanes
of a chunk, however few of them are still active. Once at most half of the lanes are active,
:meth:`Narrowing.narrow` copies their values side by side into short arrays. After the loop
:meth:`Narrowing.widen` puts the values back in their places. :class:`FewLanes` knows which lanes form a warp,
so that counts and findings stay the same.

The translator offers only loops that touch nothing but global memory
(:class:`~lockstep.reading.analysis.NarrowTest`).
"""

import numpy as np

from lockstep.memory.storage import ChosenArray, DeviceArray, Unbound
from lockstep.values.geometry import WARP, Geometry
from lockstep.values.lanes import Lanes, Mask, Pattern

# A value of these types is the same for all lanes, so narrowing does not change it.
_AS_IT_IS = (bool, int, float, complex, np.generic, Unbound, type(None))


class FewLanes(Geometry):
    """A geometry that has only some lanes of a wider geometry, in the same order.

    ``chosen``: the positions of these lanes among those of ``wide``, ascending.
    """

    def __init__(self, wide: Geometry, chosen: np.ndarray):
        self.block, self.threads = wide.block, wide.threads
        self.width = self.lanes = len(chosen)
        self.shape = (1, 1, self.width)
        self.no_threads = Mask(self, np.zeros((1, 1, 1), bool))
        self.all_threads = Mask(self, np.ones(self.shape, bool))
        self.rows_of, self.columns_of, self.linear_of = (part[chosen] for part in wide.places())
        self.linear = self.linear_of.reshape(self.shape)
        block = self.rows_of * (int(self.columns_of.max()) + 1) + self.columns_of
        warp = block * (-(-self.threads // WARP)) + self.linear_of // WARP
        warps, ranks = np.unique(warp, return_inverse=True)
        self._slots = ranks * WARP + self.linear_of % WARP
        self._padded = len(warps) * WARP
        self._batches, self.units = {}, {}

    def places(self):
        return self.rows_of, self.columns_of, self.linear_of

    def place(self, row, column, lane):
        return int(self.rows_of[lane]), int(self.columns_of[lane]), int(self.linear_of[lane])

    def warps(self, values, active):
        values = values.reshape(-1, self.width)
        active = np.ones(values.shape, bool) if active is None else active.reshape(-1, self.width)
        padded = np.zeros((len(values), self._padded), values.dtype)
        present = np.zeros(padded.shape, bool)
        padded[:, self._slots], present[:, self._slots] = values, active
        return padded.reshape(-1, WARP), present.reshape(-1, WARP)


class Aside:
    """The values that a loop has put aside, with the geometry of all lanes."""

    def __init__(self, machine, loop, state):
        self.geometry, self.ids = machine.chunk.geometry, machine.chunk.thread_ids()
        self.shape = self.geometry.shape
        self.chosen = np.flatnonzero(np.broadcast_to(loop.live.array, self.shape))
        self.wide = state
        self.broken, self.items = loop.broken, loop.items
        self.returned, self.value = (loop.frame.returned, loop.frame.value) if loop.frame else (None, None)

    # ---- from wide to narrow ----

    def few(self, value):
        """Return a value for the chosen lanes alone.

        Raise _Unknown for what is neither a number nor an array.
        """
        if isinstance(value, _AS_IT_IS):
            return value
        if type(value) is Lanes:
            array = value.pattern.array
            return value if array.size == 1 else Lanes(Pattern(self._few(array)), value.offset, value.dtype)
        if type(value) is np.ndarray:
            return value if value.size == 1 else self._few(value)
        if type(value) is tuple:
            return tuple(map(self.few, value))
        if type(value) is DeviceArray and value.space in ("global", "constant"):
            return value.in_each_lane(self.few)
        if type(value) is ChosenArray:
            return ChosenArray(tuple(map(self.few, value.arrays)), self.few(Lanes(value.which)).pattern)
        raise _Unknown

    def _few(self, array):
        if array.ndim > 3:
            raise _Unknown
        return np.broadcast_to(array, self.shape).reshape(-1)[self.chosen].reshape(1, 1, -1)

    # ---- from narrow to wide ----

    def spread(self, value):
        """Return a value with the chosen lanes at their places.

        The other lanes get the first lane's value.
        """
        if type(value) is Lanes:
            array = value.pattern.array
            return (
                value if array.size == 1 else Lanes(Pattern(self._spread(array)), value.offset, value.dtype)
            )
        if type(value) is np.ndarray:
            return value if value.size == 1 else self._spread(value)
        if type(value) is DeviceArray:
            return value.in_each_lane(self.spread)
        if type(value) is ChosenArray:
            return ChosenArray(tuple(map(self.spread, value.arrays)), self.spread(Lanes(value.which)).pattern)
        return tuple(map(self.spread, value)) if type(value) is tuple else value

    def _spread(self, array):
        wide = np.full(self.shape, array.flat[0], array.dtype)
        wide.reshape(-1)[self.chosen] = array.reshape(-1)
        return wide

    def mask(self, narrow: Mask | None) -> Mask:
        """Return the lanes of a narrow mask in the wide geometry."""
        wide = np.zeros(self.shape, bool)
        if narrow is not None:
            wide.reshape(-1)[self.chosen] = np.broadcast_to(narrow.array, narrow.geometry.shape).reshape(-1)
        return self.geometry.mask(wide)


class _Unknown(Exception):
    """An error for a value that cannot be narrowed."""


class Narrowing:
    """The part of the machine that narrows a loop to the lanes that are left, and widens it afterwards."""

    # With fewer lanes than `fewest_lanes`, short arrays save hardly any time.
    fewest_lanes = 1024
    # A loop counts the lanes that are left every `look_every` iterations.
    look_every = 8

    def few_are_left(self, loop) -> bool:
        """Return whether it is time to put aside the lanes that have left the loop."""
        loop.look_at = loop.iterations + self.look_every
        if self.log is not None or self.chunk.tracing or self.scheduler is not None or self.unit.batch:
            return False
        # Blocks that have passed different barriers need an epoch each, which narrow arrays have no place
        # for.
        if type(self.chunk.epoch) is not int:
            return False
        mask, lanes = self.unit.mask, self.chunk.geometry.lanes
        return mask.array is not None and lanes >= self.fewest_lanes and 2 * mask.active() <= lanes

    def narrow(self, loop, state: tuple) -> tuple:
        """Return the variables of a loop for its active lanes alone, at the top of an iteration."""
        loop.sparse = False
        if self.unit.batch:
            return state
        if loop.aside is not None:
            state = self.widen(loop, state)
        aside = Aside(self, loop, state)
        try:
            few, items = aside.few(state), aside.few(loop.items)
        except _Unknown:
            loop.look_at = None
            return state
        self.chunk.geometry = FewLanes(aside.geometry, aside.chosen)
        self.chunk.ids = aside.ids.reshape(-1)[aside.chosen].reshape(1, 1, -1)
        self.unit.mask = loop.live = self.chunk.geometry.all_threads
        loop.aside, loop.broken, loop.items = aside, None, items
        if loop.frame is not None:
            loop.frame.returned = loop.frame.value = None
        aside.narrow = few
        return few

    def widen(self, loop, state: tuple) -> tuple:
        """Return the variables of a narrowed loop for all lanes again."""
        aside, loop.aside = loop.aside, None
        live, broken = aside.mask(loop.live), aside.mask(loop.broken)
        self.chunk.geometry, self.chunk.ids = aside.geometry, aside.ids
        if loop.frame is not None:
            self._widen_frame(loop.frame, aside)
        everyone = np.zeros(aside.shape, bool)
        everyone.reshape(-1)[aside.chosen] = True
        self.unit.mask = self.chunk.geometry.mask(everyone)
        state = tuple(
            wide if new is narrow else self.merge(aside.spread(new), wide)
            # An iteration's own value stands at the end of aside.narrow. zip() drops it, as nothing needs it
            # any more.
            for new, narrow, wide in zip(state, aside.narrow, aside.wide)
        )
        loop.items = aside.items if loop.items is None else aside.spread(loop.items)
        loop.broken = broken if aside.broken is None else aside.broken.plus(broken)
        self.unit.mask = loop.live = live
        return state

    def _widen_frame(self, frame, aside):
        returned, value = aside.mask(frame.returned), aside.spread(frame.value)
        if aside.returned is None:
            frame.returned, frame.value = (returned, value) if returned.any else (None, None)
            return
        self.unit.mask = returned
        frame.returned = aside.returned.plus(returned)
        frame.value = self.merge(value, aside.value) if returned.any else aside.value
