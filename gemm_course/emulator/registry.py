"""What a kernel may call besides plain arithmetic: each function with its emulation.

An intrinsic registers its emulation beside its device code::

    @emulates(load4)
    def _load4(machine, array, index):
        return machine.read(machine.site, array, as_index(index), width=4)

``machine`` is the running :class:`~gemm_course.emulator.machine.Machine`. ``reads`` and ``writes`` name the
positions of the array arguments that the call loads from and stores to; with them the emulator knows which
arrays may change before a kernel runs.
"""

from collections.abc import Callable
from dataclasses import dataclass

_emulations: dict = {}


@dataclass(frozen=True)
class Emulation:
    """A function of (machine, *arguments), and which of the arguments are arrays that it accesses.

    An array in ``reads`` or ``writes`` is followed by its index, unless it is in ``fragments``: then it is a
    local array, accessed as a whole.
    """

    function: Callable
    reads: tuple = ()
    writes: tuple = ()
    elementwise: bool = True  # may run for all iterations of a loop at once
    kind: str = "intrinsic"
    fragments: tuple = ()
    warp_by_warp: bool = False  # warps that call it may wait for each other, so they run one at a time
    needs: tuple = (0, 0)  # compute capability
    meets_grid: bool = False  # all blocks of the grid may wait for each other

    def __call__(self, machine, /, *args, **kwargs):
        return self.function(machine, *args, **kwargs)


def emulates(device_object, **properties):
    """Decorator: the function runs in place of ``device_object`` where a kernel calls that.

    ``properties``: fields of :class:`Emulation` that differ from its defaults.
    """

    def register(function):
        _emulations[id(device_object)] = (device_object, Emulation(function, **properties))
        return function

    return register


def emulation_of(device_object) -> Emulation | None:
    known = _emulations.get(id(device_object))
    return known[1] if known is not None else None


def name_of(emulation) -> str | None:
    """The name of the device object that ``emulation`` stands for."""
    for device_object, known in _emulations.values():
        if known is emulation:
            return getattr(device_object, "__name__", None) or getattr(device_object, "_name", None)
    return None


def as_index(index) -> tuple:
    """An index as a tuple, as the machine expects it."""
    return index if isinstance(index, tuple) else (index,)
