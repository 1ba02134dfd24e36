"""Emulates ``cuda.ldcg(array, i)``, ``cuda.stcs(array, i, value)`` and the like as plain loads and stores.

The hint in such a name says which caches keep the element. Neither values nor counts depend on it.
"""

from lockstep.errors import KernelTypeError
from lockstep.machine.arithmetic import require_fit
from lockstep.machine.words import kind_of
from lockstep.memory.storage import ARRAYS
from lockstep.registry import Emulation, as_index
from lockstep.values.dtypes import BOOL, dtype_of

LOADS = ("ldca", "ldcg", "ldcs", "ldlu", "ldcv")
STORES = ("stcg", "stcs", "stwb", "stwt")


def _checked_index(name: str, array, index) -> tuple:
    """Return the index as a tuple. Raise KernelTypeError for arguments that Numba does not take."""
    if not isinstance(array, ARRAYS) or array.dtype.kind not in "iuf":
        raise KernelTypeError(f"cuda.{name}() takes an array of integers or floats, not {kind_of(array)}")
    if array.space != "global":
        raise KernelTypeError(
            f"cuda.{name}() reaches global memory only, and {array.name} lies in {array.space} memory"
        )
    index = as_index(index)
    if len(index) != array.ndim or any((dtype_of(part) or BOOL).kind not in "iu" for part in index):
        wanted = "an integer" if array.ndim == 1 else f"a tuple of {array.ndim} integers"
        raise KernelTypeError(f"cuda.{name}() takes {wanted} as the index of {array.name}")
    return index


def _load(name: str):
    def load(machine, array, i):
        return machine.read(machine.site, array, _checked_index(name, array, i))

    return load


def _store(name: str):
    def store(machine, array, i, value):
        index = _checked_index(name, array, i)
        given = dtype_of(value)
        if given is None:
            raise KernelTypeError(f"cuda.{name}() stores a number, not {kind_of(value)}")
        require_fit(given, array.dtype)
        machine.write(machine.site, array, index, value)

    return store


CACHE_HINTS = {name: Emulation(_load(name), reads=(0,)) for name in LOADS} | {
    name: Emulation(_store(name), writes=(0,)) for name in STORES
}
"""The functions of numba.cuda by their names."""
