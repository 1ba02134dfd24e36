"""Queues wgmma's matrix products, which run asynchronously on tiles in shared memory.

A product is computed when it is waited for, no sooner: a kernel that overwrites a tile too early, or reads
its accumulators too early, gets wrong results here as well.
"""

from collections.abc import Callable

# The four warps of a warpgroup execute a wgmma together.
WARPGROUP = 4


class Products:
    """The products that one warp has queued, and the accumulators that it must not touch meanwhile."""

    def __init__(self, machine):
        self.machine = machine
        self.open: list[Callable[[], None]] = []
        self.groups: list[list] = []
        # `pending` maps the serial number of the accumulators to the number of products in flight.
        self.pending: dict[int, int] = {}
        # `touched` has the serial numbers of the local arrays that threads have written since the last fence.
        self.touched: set[int] = set()
        self.fenced = False
        self.queued, self.last_site = 0, None

    def queue(self, site, acc, finish: Callable[[], None]):
        """Queue a product; ``finish()`` computes it and adds it to ``acc``, a local array."""
        serial = acc.storage.serial
        if not self.fenced or serial in self.touched:
            self._report_fence(site, acc)
        self.pending[serial] = self.pending.get(serial, 0) + 1
        self.queued, self.last_site = self.queued + 1, site

        def complete():
            finish()
            self.pending[serial] -= 1

        self.open.append(complete)

    def fence(self):
        self.fenced = True
        self.touched.clear()

    def commit(self):
        self.groups.append(self.open)
        self.open = []

    def wait(self, pending: int):
        finished = self.groups[: max(len(self.groups) - pending, 0)]
        self.groups = self.groups[len(finished) :]
        for product in (product for group in finished for product in group):
            product()

    def end(self):
        """Finish the products that nobody waited for, because the warp ends."""
        self.commit()
        self.wait(0)

    def busy(self, storage) -> bool:
        return self.pending.get(storage.serial, 0) > 0

    def _report_fence(self, site, acc):
        why = "before the first product" if not self.fenced else "since the kernel itself wrote to it"
        self.machine.reporter.thread(
            "missing_fence",
            site,
            f"wgmma adds to {acc.name} with no wgmma_fence() {why}: it may not see what the thread wrote "
            "there.",
            acc,
        )

    def report_busy(self, site, acc, verb):
        self.machine.reporter.thread(
            "async_read_too_early",
            site,
            f"A thread {verb} {acc.name} while products are still being added to it: wgmma_wait(0) must come "
            "first.",
            acc,
        )
