"""Registers the functions that a kernel may call, each with its emulation.

An intrinsic registers its emulation beside its device code::

    @emulates(load4)
    def _load4(machine, array, index):
        return machine.read(machine.site, array, as_index(index), width=4)

``machine`` is the running :class:`~lockstep.machine.Machine`. ``reads`` and ``writes`` name the
positions of the array arguments that the call loads from and stores to. With them the emulator knows, before
a kernel runs, which arrays may change.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

_emulations: dict = {}
_spellings: dict[int, str] = {}


@dataclass(frozen=True)
class Emulation:
    """A function of (machine, *arguments), with what the emulator must know before it calls the function.

    ``reads`` and ``writes`` are the positions of the arrays that it accesses. The argument after an array is
    its index, unless the array's position is in ``fragments``. A fragment is a local array, accessed as a
    whole.
    """

    function: Callable
    reads: tuple = ()
    writes: tuple = ()
    # `elementwise` tells whether the function may run for all iterations of a loop at once.
    elementwise: bool = True
    kind: str = "intrinsic"
    fragments: tuple = ()
    # Warps that call the function may wait for each other, so they run one at a time.
    warp_by_warp: bool = False
    # `needs` is the lowest compute capability that has the function.
    needs: tuple = (0, 0)
    # `meets_grid` tells whether all blocks of the grid may wait for each other in the function.
    meets_grid: bool = False

    def __call__(self, machine, /, *args, **kwargs):
        return self.function(machine, *args, **kwargs)


class Type:
    """A scalar type such as ``float32``, which is a dtype for arrays and casts a number when it is called."""

    elementwise, reads, writes, kind = True, (), (), "type"

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)

    def __call__(self, machine, value, /):
        return machine.cast(self.dtype, value)


def emulates(device_object, **properties):
    """Register the decorated function, which the emulator runs when a kernel calls ``device_object``.

    ``properties``: fields of :class:`Emulation` that differ from its defaults.
    """

    def register(function):
        _emulations[id(device_object)] = (device_object, Emulation(function, **properties))
        return function

    return register


def emulation_of(device_object) -> Emulation | None:
    known = _emulations.get(id(device_object))
    return known[1] if known is not None else None


def spelled(names: Mapping[str, object]) -> None:
    """Note how a kernel's source spells what it calls, for messages about failed calls."""
    _spellings.update((id(value), name) for name, value in names.items())


def name_of(emulation) -> str | None:
    """Return the name by which a kernel calls ``emulation``, or None if no name is registered."""
    if id(emulation) in _spellings:
        return _spellings[id(emulation)]
    for device_object, known in _emulations.values():
        if known is emulation:
            return getattr(device_object, "__name__", None) or getattr(device_object, "_name", None)
    return None


def as_index(index) -> tuple:
    """Return an index as a tuple, as the machine expects it."""
    return index if isinstance(index, tuple) else (index,)
