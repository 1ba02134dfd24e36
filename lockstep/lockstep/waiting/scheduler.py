"""Runs parts of a grid one at a time, for kernels that lock-step cannot run.

Where some threads wait for others, lock-step never ends: it runs one branch to its end before the other.
Such kernels run in *units*: whole blocks (several in lock-step) where only the grid meets, the warps of
a block where warps wait for each other, single lanes where those of one warp do. Every unit that has
begun is a generator (:mod:`lockstep.types.suspendable`). A unit runs until it has to wait, and then yields
the next one that can continue. If none can, the kernel would hang on a GPU, and the emulator stops it with
a message.
"""

from collections import Counter
from collections.abc import Callable, Generator
from itertools import groupby

import numpy as np

from lockstep.errors import Deadlock, KernelStopped, KernelTypeError
from lockstep.findings import thread_name
from lockstep.races.absences import report_absent
from lockstep.values.geometry import WARP
from lockstep.values.lanes import Lanes, from_values
from lockstep.values.unit import Unit

# A unit is a chunk of blocks, a warp or a lane.
CHUNKS, WARPS, LANES = "chunks", "warps", "lanes"
FINER = {CHUNKS: WARPS, WARPS: LANES}
# At most MOST_WAITING units may have begun and not ended, because each keeps its variables.
MOST_WAITING = 4096
# So many blocks begin before a unit looks at memory again that it has looked at in vain.
MOST_AHEAD = MOST_WAITING // 2


class NeedsFinerUnits(Exception):
    """A signal that units of this size stand still. The launch starts again with the smaller ``units``."""

    def __init__(self, units: str):
        self.units = units


class WaitingUnit(Unit):
    """A unit that may have to wait for others. It knows its place in its block, and what it waits for."""

    def __init__(self, block, number, lanes):
        super().__init__(lanes)
        self.block, self.number = block, number
        self.meeting: Meeting | None = None
        self.ready: Callable[[], bool] | None = None
        self.what: Callable[[], str] | None = None
        # `waits_at` is the site in the source at which the unit waits.
        self.waits_at: int | None = None
        self.begun = self.done = self.patient = False
        # `in_vain` tells whether the unit has looked at memory again where it waits, and still has to wait.
        self.in_vain = False
        # LaneCounts tells by `segment` and `executed` which lanes make an access together.
        self.segment, self.executed = (0,), Counter()
        # `steps` is the generator that runs the unit, once it has begun.
        self.steps: Generator | None = None

    @property
    def first_thread(self) -> int:
        """Return the first thread of a warp, or the thread of a lane."""
        return self.number * WARP if self.block.split == WARPS else self.number

    def can_continue(self) -> bool:
        return not self.patient and self.ready()


class Block:
    """A block whose units run one at a time, or several blocks that run in lock-step as one unit.

    ``start()`` prepares the machine for the block. It is None if the machine is prepared already.
    """

    def __init__(self, split, start=None):
        self.split, self.start = split, start
        self.units: list[WaitingUnit] = []
        # The block begins with unit 0, so unit 1 is the next to begin.
        self.unbegun = 1
        self.waiting: dict[WaitingUnit, None] = {}
        # `left` counts the units that have not ended.
        self.left = 0
        # When the block has begun, `chunk` is the chunk that the machine made for it.
        self.chunk = None
        # `at_barrier` maps the units at the barrier to their lanes there.
        self.at_barrier: dict[int, object] = {}
        self.at_grid_barrier: dict[int, object] = {}
        # `passed` counts the barriers that the whole block has passed.
        self.passed = 0
        self.votes: dict[int, list] = {}
        self.meetings: dict[tuple, Meeting] = {}

    def open(self, machine):
        if self.start is not None:
            self.start()
        self.chunk = machine.chunk
        masks = _masks(self.chunk.geometry, self.split)
        self.units = [WaitingUnit(self, number, mask) for number, mask in masks]
        self.left = len(self.units)


class Meeting:
    """A meeting of lanes of a warp, which wait for each other at a call that they execute together."""

    def __init__(self, call, function):
        self.call, self.function = call, function
        # `arrived` maps a thread to (mask, operands).
        self.arrived: dict[int, tuple] = {}
        self.named = 0
        self.done = self.forced = False
        self.result = None
        self.phase = 0


class Scheduler:
    """A scheduler that runs the units of blocks, and lets them wait for each other.

    ``steps()`` makes a generator that runs the kernel for a unit. When the unit has to wait, the generator
    yields the unit to run instead. Each method here that may have to wait is such a generator as well.

    ``room()``: how many blocks may be under way at the same time; ``ended()``: what to do after each block.
    """

    def __init__(self, machine, steps, blocks, room=lambda: 1, ended=lambda: None):
        self.machine, self.steps, self.ended = machine, steps, ended
        self.coming = list(reversed(blocks))
        self.room, self.total = room, len(blocks)
        self.under_way: list[Block] = []
        self.current: WaitingUnit = None
        self.grid_passed = self.finished = 0
        # `_begun` has the units that have begun and not ended, in the order in which they began.
        self._begun: dict[WaitingUnit, None] = {}

    @property
    def warps(self) -> list[WaitingUnit]:
        """Return the warps of the running block."""
        return self.current.block.units

    def run(self):
        """Run all units to their end; raise what any of them raised."""
        if not self.under_way:
            self.begin_block()
        unit = self.under_way[0].units[0]
        try:
            while unit is not None:
                self._resume(unit)
                if not unit.begun:
                    self._begin(unit)
                try:
                    unit = next(unit.steps)
                except StopIteration:
                    del self._begun[unit]
                    unit = self._after(unit)
        finally:
            for each in self._begun:
                each.steps.close()

    def _begin(self, unit):
        if len(self._begun) > MOST_WAITING:
            raise KernelStopped(
                f"more than {MOST_WAITING:,} threads of this kernel wait for each other at the same time; "
                "the emulator cannot run so many: launch fewer"
            )
        unit.begun, unit.steps = True, self.steps()
        self._begun[unit] = None

    def begin_block(self) -> WaitingUnit:
        """Prepare the next block and return its first unit."""
        block = self.coming.pop()
        block.open(self.machine)
        self.under_way.append(block)
        self.current = self.current or block.units[0]
        return block.units[0]

    def _after(self, unit) -> WaitingUnit | None:
        """Note that a unit has ended; return the next one to run, or None if all have ended."""
        machine, block = self.machine, unit.block
        if machine.asynchronous:
            machine.warp_ends(unit)
        unit.done, block.left = True, block.left - 1
        if block.at_barrier:
            self._try_release(block, block.units[next(iter(block.at_barrier))].waits_at)
        if not block.left:
            self.ended()
            self.under_way.remove(block)
            self.finished += 1
            if not self.under_way and not self.coming:
                return None
        if self._everyone_at_grid_barrier():
            self._release_grid()
        return self._next() or self._stand_still()

    def _resume(self, unit):
        self.current = self.machine.unit = unit
        self.machine.chunk = unit.block.chunk

    # ---- waiting ----

    def wait(self, site, ready: Callable[[], bool], what: Callable[[], str], polls: bool = False):
        """Let the running unit wait until ``ready()``. ``what()`` says what it waits for. Raise Deadlock.

        ``polls``: the unit then looks at memory, and may have to wait again at this site.
        """
        unit = self.current
        unit.in_vain = polls and unit.waits_at == site
        unit.ready, unit.what, unit.waits_at = ready, what, site
        while not ready():
            yield from self._let_others_run(unit)
        unit.ready = None

    def let_others_run(self):
        """Let the other units run first, because the running one may be waiting for something."""
        unit = self.current
        unit.patient = True
        yield from self._let_others_run(unit)
        unit.patient = False

    def _let_others_run(self, unit):
        unit.block.waiting[unit] = None
        successor = self._next() or self._stand_still()
        if successor is not unit:
            left_at = unit.seconds()
            yield successor
            unit.away += unit.seconds() - left_at
        del unit.block.waiting[unit]

    def _next(self) -> WaitingUnit | None:
        """Return the next unit that can continue. If none can, begin another block.

        A unit that has looked at memory in vain looks again only after many of the blocks that have room have
        begun: it may be waiting for one of them, and it would take long if many looked each time.
        """
        here, number = self.current.block, self.current.number
        if here.unbegun < len(here.units):
            here.unbegun += 1
            return here.units[here.unbegun - 1]
        for unit in sorted(here.waiting, key=lambda unit: (unit.number <= number, unit.number)):
            if not unit.in_vain and unit.can_continue():
                return unit
        elsewhere = [unit for block in self.under_way if block is not here for unit in block.waiting]
        for unit in elsewhere:
            if not unit.in_vain and unit.can_continue():
                return unit
        may_begin = self.coming and len(self.under_way) < self.room()
        if may_begin and len(self.under_way) < MOST_AHEAD:
            return self.begin_block()
        for unit in (*here.waiting, *elsewhere):
            if unit.can_continue():
                return unit
        if may_begin:
            return self.begin_block()
        return next((unit for block in self.under_way for unit in block.waiting if unit.patient), None)

    def _stand_still(self) -> WaitingUnit:
        """Return the unit that continues anyway where none can; raise if there is none."""
        for block in self.under_way:
            for unit in block.waiting:
                if unit.meeting is not None:
                    unit.meeting.forced = True
                    return unit
        split = self.current.block.split
        missed = self.finished and any(block.at_grid_barrier for block in self.under_way)
        if split in FINER and not self.machine.asynchronous and not missed:
            raise NeedsFinerUnits(FINER[split])
        raise Deadlock(self._deadlock())

    # ---- the barrier of a block ----

    def barrier(self, site):
        """Carry out ``cuda.syncthreads()``: wait for all other units of the block."""
        block, unit = self.current.block, self.current
        block.at_barrier[unit.number] = self.machine.unit.mask
        generation = block.passed
        unit.waits_at = site
        if not self._try_release(block, site):
            others = "the other warps" if block.split == WARPS else "the other threads of its block"
            yield from self.wait(site, lambda: block.passed != generation, lambda: f"{others} at a barrier")
        self._rejoin(unit, (block.passed,))

    def _rejoin(self, unit, moment):
        """Let the lanes of a warp make their next calls together again, because their units have met."""
        if len(moment) == 1:
            self.machine.unit.phase = 0
        if self.machine.lanes_apart:
            self.machine.lane_counts.separate(unit, moment)

    def _try_release(self, block, site) -> bool:
        """Release the barrier if every unit that has not ended has come to it."""
        if len(block.at_barrier) < block.left:
            return False
        self._report_two_barriers(block, block.at_barrier)
        self.machine.all_units_arrived(site, list(block.at_barrier.values()))
        block.at_barrier = {}
        block.passed += 1
        return True

    def _report_two_barriers(self, block, arrived):
        """Report threads of a block that wait at different barriers of the source, if there are any."""
        places = {number: block.units[number].waits_at for number in arrived}
        if len(set(places.values())) == 1 or self.machine.asynchronous:
            return
        first = min(places.values())
        here, elsewhere = np.zeros((2, *self.machine.chunk.geometry.shape), bool)
        for number, mask in arrived.items():
            lanes = here if places[number] == first else elsewhere
            lanes |= True if mask.array is None else mask.array
        report_absent(self.machine, "barrier_divergence", first, here, elsewhere)

    def vote(self, site, votes) -> list:
        """Meet the block's other units at a barrier; return what all of them have voted, lane by lane."""
        block = self.current.block
        generation = block.passed
        ballot = block.votes.setdefault(generation, [np.zeros_like(vote) for vote in votes])
        for position, vote in enumerate(votes):
            ballot[position] = ballot[position] | vote
        yield from self.barrier(site)
        block.votes.pop(generation - 1, None)
        return ballot

    def exited(self) -> np.ndarray | None:
        """Return the lanes of the running block that have returned from the kernel, or None."""
        here = None
        for unit in self.current.block.units:
            if unit.exits is not None and unit.exits.returned is not None:
                gone = unit.exits.returned.array
                gone = np.broadcast_to(True if gone is None else gone, self.machine.chunk.geometry.shape)
                here = gone & _lanes_of(unit) if here is None else here | gone & _lanes_of(unit)
        return here

    # ---- the barrier of the grid ----

    def grid_barrier(self, site):
        """Carry out ``this_grid().sync()``: wait for all other units of the grid."""
        unit, generation = self.current, self.grid_passed
        unit.block.at_grid_barrier[unit.number] = self.machine.unit.mask
        unit.waits_at = site
        if self._everyone_at_grid_barrier():
            self._release_grid()
        else:
            yield from self.wait(site, lambda: self.grid_passed != generation, self._missing_at_grid_barrier)
        self._rejoin(unit, (-self.grid_passed,))

    def _everyone_at_grid_barrier(self) -> bool:
        there = all(len(block.at_grid_barrier) == block.left for block in self.under_way)
        return there and bool(self.under_way) and not self.coming and not self.finished

    def _release_grid(self):
        running = self.current
        for block in self.under_way:
            self._resume(block.units[0])
            self._report_two_barriers(block, block.at_grid_barrier)
            site = min(block.units[number].waits_at for number in block.at_grid_barrier)
            self.machine.all_units_arrived(site, list(block.at_grid_barrier.values()), of_grid=True)
            block.at_grid_barrier = {}
        self._resume(running)
        self.machine.races.pass_grid_barrier()
        self.grid_passed += 1

    def _missing_at_grid_barrier(self) -> str:
        if self.finished:
            ended = "1 block has" if self.finished == 1 else f"{self.finished} blocks have"
            return f"all blocks of the grid at a grid barrier, but {ended} ended"
        return "all threads of the grid at a grid barrier"

    # ---- calls that the lanes of a warp execute together ----

    def together(self, call, function, mask, operands):
        """Let a lane arrive at a call, which the last of the lanes that it names executes for all."""
        machine, unit, block = self.machine, self.current, self.current.block
        key = unit.number // WARP, call
        meeting = block.meetings.get(key)
        if meeting is None:
            meeting = block.meetings[key] = Meeting(call, function)
        meeting.arrived[unit.number] = mask, operands
        meeting.phase = max(meeting.phase, machine.unit.phase)
        named = np.broadcast_to(np.asarray(machine.plain(mask)), (1, 1, machine.chunk.geometry.width))
        meeting.named |= int(named[0, 0, unit.number]) & 0xFFFFFFFF

        def complete():
            return meeting.done or meeting.forced or self._all_there(block, meeting)

        unit.meeting = meeting
        yield from self.wait(call.site, complete, lambda: f"other lanes of its warp at {call.name}")
        unit.meeting = None
        if not meeting.done:
            self._hold(block, key, meeting)
        machine.unit.phase = meeting.phase
        if call.name == "syncwarp":
            self._rejoin(unit, (block.passed, machine.unit.phase))
        return meeting.result

    def _all_there(self, block, meeting) -> bool:
        first = next(iter(meeting.arrived)) // WARP * WARP
        for unit in block.units[first : first + WARP]:
            if meeting.named >> unit.number % WARP & 1 and not unit.done:
                if unit.number not in meeting.arrived:
                    return False
        return True

    def _hold(self, block, key, meeting):
        """Execute the call for all lanes that have arrived."""
        machine, saved = self.machine, self.machine.unit.mask
        machine.unit.phase = meeting.phase
        there = np.zeros(machine.chunk.geometry.shape, bool)
        there[0, 0, list(meeting.arrived)] = True
        machine.unit.mask = machine.chunk.geometry.mask(there)
        masks, operands = zip(*meeting.arrived.values())
        threads = list(meeting.arrived)
        joined = [_joined(machine, threads, values) for values in zip(*operands)]
        meeting.result = meeting.function(machine, meeting.call, _joined(machine, threads, masks), *joined)
        meeting.phase, meeting.done = machine.unit.phase, True
        machine.unit.mask = saved
        del block.meetings[key]

    # ---- standstill ----

    def _deadlock(self) -> str:
        units = [unit for block in self.under_way for unit in block.waiting]
        waiting = [(unit.what(), unit.waits_at, unit) for unit in units]
        parts = []
        ordered = sorted(waiting, key=lambda entry: (entry[0], entry[1]))
        # If the kernel calls functions, a line alone does not say where the threads wait.
        several = len({site.function for site in self.machine.sites.values()}) > 1
        for (what, site), group in groupby(ordered, key=lambda entry: entry[:2]):
            members = [unit for _, _, unit in group]
            verb = "wait" if len(members) > 1 else "waits"
            line, function = self.machine.sites[site].line, self.machine.sites[site].function
            where = f"line {line}{f' of {function}' if several else ''}"
            parts.append(f"{self._named(members)} {verb} in {where} for {what}")
        if self.coming and self.total > 1:
            parts.append(
                f"{len(self.coming)} of the {self.total} blocks have not begun, because a GPU holds "
                f"{self.room()} of them at a time"
            )
        who = "warp of the block" if self.machine.asynchronous else "thread"
        return f"No {who} can continue, so a GPU would hang: " + "; ".join(parts) + "."

    def _named(self, units) -> str:
        """Return units in words: ``warps 0 to 3``, ``thread (1, 0, 0) of block (0, 0, 0) and 30 others``."""
        if self.machine.asynchronous:
            return _named([unit.number for unit in units])
        first = units[0]
        x, y, z = _position(first)
        others = f" and {len(units) - 1} other{'s' * (len(units) > 2)}" if len(units) > 1 else ""
        if first.block.split == CHUNKS:
            return f"block ({x}, {y}, {z}){others}"
        thread = self.machine.chunk.geometry.thread_coordinates(first.first_thread)
        return thread_name(thread, (x, y, z)) + others


def _position(unit) -> tuple:
    z, y, x = unit.block.chunk.origin
    return x, y, z


def _lanes_of(unit) -> np.ndarray | bool:
    return True if unit.lanes.array is None else unit.lanes.array


def _joined(machine, threads, values):
    """Return one value for several lanes, each of which has its own value at its place."""
    first = values[0]
    if type(first) in (bool, int) and all(type(v) is type(first) and v == first for v in values):
        return first
    plain = [np.asarray(machine.plain(value)) for value in values]
    if plain[0].dtype.kind not in "biuf":
        raise KernelTypeError("the lanes of a warp can only exchange numbers")
    whole = np.zeros(machine.chunk.geometry.shape, plain[0].dtype)
    for thread, value in zip(threads, plain):
        whole[0, 0, thread] = np.broadcast_to(value, whole.shape)[0, 0, thread]
    return from_values(whole) if any(type(v) in (bool, int, Lanes) for v in values) else whole


def _masks(geometry, split) -> list:
    """Yield (number, mask) of each unit of a block."""
    if split == CHUNKS:
        return [(0, geometry.all_threads)]
    if geometry.units.get(split) is None:
        width = WARP if split == WARPS else 1
        lane = np.arange(geometry.width, dtype=np.int64)
        exists, unit = lane < geometry.threads, lane // width
        count = -(-geometry.threads // width)
        geometry.units[split] = [
            (number, geometry.mask((exists & (unit == number)).reshape(1, 1, -1))) for number in range(count)
        ]
    return geometry.units[split]


def _named(numbers: list[int]) -> str:
    """Return the numbers in words: ``warp 4``, ``warps 0 to 3``, ``warps 0, 5``."""
    if len(numbers) == 1:
        return f"warp {numbers[0]}"
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"warps {numbers[0]} to {numbers[-1]}"
    return "warps " + ", ".join(map(str, numbers))
