"""Defines the operations of a kernel, for the machine and for the inference of types.

:class:`~lockstep.machine.machine.Machine` carries them out in all lanes.
:class:`~lockstep.types.inference.Typing` only finds the types of what they give.
"""

from types import GeneratorType

import numpy as np

from lockstep.errors import EmulatorError, KernelTypeError
from lockstep.limits import DEFAULT
from lockstep.memory.records import RecordAccess
from lockstep.memory.storage import ARRAYS, Unbound
from lockstep.registry import Emulation
from lockstep.values.chunk import Chunk
from lockstep.values.geometry import Coordinates
from lockstep.values.lanes import Lanes
from lockstep.values.unit import Unit

from .arithmetic import Arithmetic
from .declarations import Declarations
from .elements import Elements
from .failed_calls import what_is_wrong
from .language import Language
from .reductions import Reductions
from .views import Views


class Operations(Arithmetic, Declarations, Elements, Language, RecordAccess, Reductions, Views):
    """The operations on numbers, tuples, arrays and records that the machine and the inference of types
    share.

    A subclass says what an access does (``read``, ``write``, ``atomic``, ``assign_part``,
    ``pick_in_each_lane``), where a part of an array lies (``_linear``, ``_row``, ``_bounds``), what a
    condition is (``truth``, ``select``), what a shape is (``declared_shape``), and what arithmetic costs
    (``count_arithmetic``).
    """

    unbound = Unbound()
    # The launch has to keep the limits of this GPU.
    gpu = DEFAULT
    # In a kernel that is compiled with debug=True, a division by zero raises an exception.
    debug = False
    only_types = False

    def __init__(self, grid, block, shared_bytes, *, sites, findings, log):
        # `grid` is the number of blocks and `block` the number of a block's threads, along x, y and z.
        self.grid, self.block = grid, block
        self.block_dim, self.grid_dim = (Coordinates(*map(np.int32, size)) for size in (block, grid))
        # Each block has `dynamic_shared` bytes of dynamic shared memory.
        self.dynamic_shared = shared_bytes
        # `sites` maps the number of a site to the Site.
        self.sites: dict = sites
        self.findings = findings
        # `log` records what iterations tally. A run that computes values has no log.
        self.log = log
        self.counts_only = log is not None
        # `typing` finds the types of what is called. It is made when a type is first needed.
        self.typing = None
        # `chunk` holds the blocks that run now, and `unit` the lanes of these blocks that run now.
        self.chunk: Chunk | None = None
        self.unit: Unit | None = None

    # ---- calls ----

    def call(self, site, function, /, *arguments, **keywords):
        """Carry out a call in the kernel's source.

        ``machine.site`` tells the function where it was called. Where units wait for each other, what it
        returns may be a generator to run (:mod:`lockstep.types.suspendable`).
        """
        self.unit.site = site
        try:
            return function(self, *arguments, **keywords)
        except (TypeError, AttributeError) as error:
            if isinstance(error, EmulatorError):
                raise
            wrong = what_is_wrong(function, arguments, keywords)
            if wrong is None:
                raise
            raise wrong from None

    @staticmethod
    def waits(returned) -> bool:
        """Tell whether what a call returned is a generator to run, because the call may wait."""
        return type(returned) is GeneratorType

    @staticmethod
    def function_in(value, name):
        """Return the device function or the atomic operation that a variable holds."""
        atomic = isinstance(value, Emulation) and value.reads and value.writes
        if isinstance(value, Emulation) and not atomic:
            raise KernelTypeError(
                f"{name} is a variable that holds a function of Numba or Python, which the emulator calls "
                "only by its own name"
            )
        if not atomic and getattr(value, "kind", None) not in ("device", "type"):
            raise KernelTypeError(f"{name} is a variable, and holds no device function that could be called")
        return value

    def unpack(self, site, values, count):
        """Return the values of ``a, b = values``, a tuple or an array. Its elements are read at ``site``."""
        if isinstance(values, ARRAYS):
            if not self.only_types and np.any(self.plain(self.length(values)) != count):
                raise KernelTypeError(
                    f"{count} values are needed, and this part of {values.name} has not {count}"
                )
            return tuple(self.own(self.subscript(site, values, position)) for position in range(count))
        if not isinstance(values, tuple) or len(values) != count:
            raise KernelTypeError(f"{count} values are needed on the right-hand side of this assignment")
        return values

    @property
    def site(self) -> int:
        """Return the place in the source of the call that is executed."""
        return self.unit.site

    # ---- numbers that must be the same for all lanes ----

    def active_values(self, value) -> np.ndarray:
        """Return an integer's values in all active lanes of all running blocks."""
        mask, shape = self.unit.mask, self.chunk.geometry.shape
        numbers = np.broadcast_to(np.asarray(self.plain(value), np.int64), shape)
        return numbers.reshape(-1) if mask.array is None else numbers[np.broadcast_to(mask.array, shape)]

    def uniform_value(self, number):
        """Return the one value of ``number``, which must be the same in all active lanes."""
        if type(number) is not Lanes:
            return number
        values = np.unique(self.active_values(number))
        if len(values) > 1:
            raise KernelTypeError(
                f"this must be the same for all threads, but is {values[0]} for some, {values[-1]} for others"
            )
        return int(values[0]) if len(values) else 0
