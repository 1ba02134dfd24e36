"""Reports what lanes do wrong. A report names the first such lane, its block and the element."""

import numpy as np

from lockstep.findings import Finding, thread_name
from lockstep.values.lanes import Lanes


class Reporter:
    """A writer of findings about the running blocks.

    ``sentence(element, who)`` words a finding: about an element of the array, and the name of a thread.
    """

    def __init__(self, machine):
        self.machine = machine

    def lanes(self, kind, site, array, mask, index, sentence):
        """Report what the active lanes of ``mask`` do, each with the element at its own ``index``."""
        if not mask.any:
            return

        def make():
            where, block, thread = self.first_lane(mask, *(i for i in index or () if type(i) is Lanes))
            element = (
                None if index is None else tuple(self._in_lane(i, where) for i in index if i is not None)
            )
            return self._finding(kind, site, array, element, block, thread, sentence)

        self.machine.findings.add((kind, site, array.name), mask.active(self._mask_batch(mask)), make)

    def cells(self, kind, site, array, mask, pattern, offset, sentence):
        """Report what the active lanes of ``mask`` do, each with the element at its own position in the
        storage.
        """

        def make():
            here = Lanes(pattern, offset)
            where, block, thread = self.first_lane(mask, here)
            element = array.storage.element(self._in_lane(here, where))
            return self._finding(kind, site, array, element, block, thread, sentence)

        self.machine.findings.add((kind, site, array.name), mask.active(self._mask_batch(mask)), make)

    def cells_of_blocks(self, kind, site, array, cells, threads, rows, columns, sentence):
        """Report elements, and the threads that access them; the first block is one of rows x columns."""

        def make():
            storage = array.storage
            block, cell = divmod(int(cells[0]), storage.block.size)
            element = storage.element(storage.element_of_cell(cell))
            thread = self.machine.chunk.geometry.thread_coordinates(int(threads[0]))
            where = self.machine.chunk.block_coordinates(*divmod(block, columns))
            return self._finding(kind, site, array, element, where, thread, sentence)

        self.machine.findings.add(
            (kind, site, array.name), len(cells) * (self.machine.chunk.blocks // (rows * columns)), make
        )

    def _finding(self, kind, site, array, element, block, thread, sentence):
        at = self.machine.sites[site]
        message = sentence(element, thread_name(thread, block))
        message = message[0].upper() + message[1:]
        return Finding(kind, at.line, message, array.name, element, block, [thread], at.function, site)

    def first_lane(self, mask, *positions):
        shape = np.broadcast_shapes(
            self.machine.chunk.geometry.shape, np.shape(mask.array), *(p.shape for p in positions)
        )
        active = np.broadcast_to(True if mask.array is None else mask.array, shape)
        where = np.unravel_index(int(active.argmax()), shape)
        row, column, linear = self.machine.chunk.geometry.place(*where[-3:])
        return (
            where,
            self.machine.chunk.block_coordinates(row, column),
            self.machine.chunk.geometry.thread_coordinates(linear),
        )

    @staticmethod
    def _in_lane(position, where) -> int | str:
        if isinstance(position, slice):
            return ":"
        if type(position) is not Lanes:
            return int(position)
        array = position.pattern.array
        at = tuple(
            0 if extent == 1 else i for i, extent in zip(where[len(where) - array.ndim :], array.shape)
        )
        return int(array[at]) + position.offset

    def _mask_batch(self, mask) -> tuple:
        return self.machine.unit.batch if mask.array is not None and mask.array.ndim > 3 else ()

    def thread(self, kind, site, message, array=None, element=None, *, thread=None, count=1, began=None):
        """Report what a thread (by default the running warp's first) did in the running block.

        ``element``: an index of ``array``, or a position in its storage. ``began``: the site of the earlier
        access, where two are involved.
        """
        at, earlier = self.machine.sites[site], None if began is None else self.machine.sites[began]
        thread = self.machine.unit.first_thread if thread is None else thread

        def make():
            where = array.storage.element(element) if isinstance(element, int) else element
            return Finding(
                kind=kind,
                line=at.line,
                message=message,
                array=array and array.name,
                element=where,
                block=self.machine.chunk.block_coordinates(0, 0),
                threads=[self.machine.chunk.geometry.thread_coordinates(thread)],
                function=at.function,
                site=site,
                other_line=earlier and earlier.line,
                other_function=earlier and earlier.function,
                other_file=earlier and earlier.file,
            )

        self.machine.findings.add((kind, site, array and array.name), count, make)
