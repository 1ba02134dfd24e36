"""Keeps what waiting threads read and who has changed it, for loops that another thread's store ends."""

from collections import Counter

from lockstep.findings import place, thread_name

from .shadow import Access


class Looks:
    """A record of the reads of memory that may change, and of its changes."""

    def __init__(self, machine):
        self.machine = machine
        # `polls` counts the reads so far, and `changes` the changes.
        self.polls = self.changes = 0
        self.last_poll: Access | None = None
        # `last_change` maps an element to the thread and the site that changed it last.
        self.last_change: dict[tuple, tuple] = {}
        # `changes_of` counts the changes of each memory, by the serial number of its storage.
        self.changes_of: Counter[int] = Counter()

    def looked(self, access: Access):
        """Note that a thread has read memory that others may change."""
        self.polls, self.last_poll = self.polls + 1, access
        if self.machine.apart:
            self.machine.unit.looked_at.add(access.storage.serial)

    def seen(self) -> list[tuple[int, int]]:
        """Return what the running unit has looked at since it last asked: (serial, number of changes)."""
        unit = self.machine.unit
        serials, unit.looked_at = unit.looked_at, set()
        return [(serial, self.changes_of[serial]) for serial in serials]

    def have_changed(self, seen: list[tuple[int, int]]) -> bool:
        return any(self.changes_of[serial] != changes for serial, changes in seen)

    def note_change(self, access):
        """Keep who has last changed an element, for messages about threads that wait for it."""
        self.changes_of[access.storage.serial] += 1
        # An access whose lanes are all out of bounds changes nothing.
        if access.storage.space != "local" and access.mask.any:
            where, who = self._first_cells(access)
            self.last_change.update(dict.fromkeys(where, (who, access.site)))

    def _first_cells(self, access):
        """Return (the elements of an access, the number of its first thread)."""
        cells, _ = access.touched(1, 1)
        block = 0 if access.storage.space == "global" else (self.machine.chunk.thread_ids().flat[0] - 1)
        saved, self.machine.unit.mask = self.machine.unit.mask, access.mask
        who = int(self.machine.active_ids()[0])
        self.machine.unit.mask = saved
        return [(access.storage.serial, int(cell), int(block)) for cell in cells], who

    def awaited(self, access: Access) -> str:
        """Return what a loop that reads an element waits for, in words."""
        if access is None or not access.mask.any:
            return "something to change"
        (where, *_), _ = self._first_cells(access)
        what = f"{place(access.name, access.storage.element(where[1]))} to change"
        if where not in self.last_change:
            return f"{what}, which no thread has stored to"
        thread, site = self.last_change[where]
        who = thread_name(*self.machine.chunk.thread_of(thread))
        return f"{what}, which {who} did last in line {self.machine.sites[site].line}"
