"""What the machine knows: every attribute that its parts share, in one place.

:class:`~lockstep.machine.machine.Machine` sets them; a test compares. ``site`` is always the number of a
place in the source, a key of ``sites``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from lockstep.counts.fold import Log
    from lockstep.counts.lane_counts import LaneCounts
    from lockstep.counts.tally import Tally
    from lockstep.counts.trace import Watcher
    from lockstep.findings import Findings
    from lockstep.memory.storage import DeviceArray
    from lockstep.races.absences import Absences
    from lockstep.races.async_copies import AsyncCopies
    from lockstep.races.exact import ExactRaces, ExactSharedRaces
    from lockstep.races.happens_before import Happened
    from lockstep.races.shadow import Access, GlobalRaces, SharedRaces
    from lockstep.races.vector_clocks import Order
    from lockstep.values.geometry import Coordinates, Geometry
    from lockstep.waiting.mbarriers import MBarriers
    from lockstep.waiting.scheduler import Scheduler
    from lockstep.waiting.tensor_copies import TensorCopies
    from lockstep.waiting.unit import Unit


class State:
    """The machine's attributes; ``_names`` are those that only the machine itself uses."""

    # the launch
    grid: tuple  # blocks along x, y and z
    block: tuple  # threads of a block along x, y and z
    grid_dim: Coordinates  # the same, as the kernel sees them
    block_dim: Coordinates
    dynamic_shared: int  # bytes of a block
    step_limit: int  # iterations that a loop may run
    sites: dict  # number -> Site
    findings: Findings
    report_float64: bool  # whether float64 arithmetic deserves advice: the launch has no float64 array
    typing: object | None  # the machine that finds the types of what this one calls
    warp_by_warp: bool  # the kernel has mbarriers: one block at a time, and one warp of it at a time
    unset_kinds: dict  # site of a variable that may be unset -> its type, as inference.kind_of names it
    exact: frozenset  # "shared", "global": memories whose races are found access by access

    # counting without running
    counts_only: bool
    folding: bool  # iterations may be skipped
    log: Log | None  # what iterations tally; None in a full run

    # the blocks that run together
    geometry: Geometry
    origin: tuple  # (z, y, x) of the first block
    blocks: int  # how many
    thread_index: Coordinates  # of every lane
    block_index: Coordinates
    _thread_ids: np.ndarray | None  # a number for every thread of the grid, from 1
    _geometries: dict  # (rows, columns) -> Geometry
    _memos: dict  # (rows, columns) -> what all blocks of that arrangement share

    # what is executed now
    unit: Unit  # the lanes in lock-step that run now

    # memory
    shared_arrays: dict[object, DeviceArray]  # site, or "dynamic" -> array
    carved: dict  # site -> part of the dynamic shared memory
    _initialised: dict  # serial of a storage -> which of its elements have been written
    async_copies: AsyncCopies  # cp.async in flight

    # order and races
    epoch: int | np.ndarray  # block barriers passed; an array (rows, columns, 1 or lanes) where they differ
    absences: Absences  # barriers that some threads have passed by
    shared_races: SharedRaces | ExactSharedRaces | Order
    global_races: dict[int, GlobalRaces]  # serial of a storage that the kernel may write -> its shadow
    exact_races: dict[int, ExactRaces] | None
    strict: bool  # stores of equal values race as well
    examined: frozenset  # the shared arrays, by their families, of which this holds
    doubts: set[str]  # "shared", "global": memories where it needs the exact way to tell
    suspects: set  # the shared arrays in which there may be races, by their families
    happened: Happened | None  # the order of all accesses, where races are found access by access
    fine_order: bool  # a fence or a flag has been met: only the exact way can tell races

    # lanes that wait for others
    scheduler: Scheduler | None  # runs parts of the grid one at a time; None in lock-step
    apart: bool  # blocks, warps or lanes run apart
    lanes_apart: bool
    asynchronous: bool  # warps with mbarriers, copies and products of their own are running
    mbarriers: MBarriers
    tensor_copies: TensorCopies
    order: Order  # vector clocks of the warps
    changes: int  # of memory so far
    polls: int  # looks, so far, at memory that the kernel may change
    last_poll: Access | None
    last_change: dict[tuple, tuple]  # element -> (thread, site)

    # what is reported
    printed: list[str]  # lines of the kernel's print, shown when the launch has ended
    tallies: Tally
    tally: Callable  # (key, payload): counts one access or operation
    lane_counts: LaneCounts  # accesses of lanes that run apart, until they are counted as those of warps
    tracing: bool  # the watched block is among those that run
    watcher: Watcher | None  # records it
    last_watcher: Watcher | None  # for the report
