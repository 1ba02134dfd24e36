"""Carries out atomic operations of many lanes at once, with the result of one lane after another.

Lanes that access different elements do not disturb each other. So the lanes go in turns: the first lane of
each element, then the second of each. Where most lanes access a few elements, running totals do the same.
"""

from collections.abc import Callable

import numpy as np

from lockstep.errors import KernelTypeError

ATOMICS: dict[str, Callable] = {
    "add": lambda old, v, _: old + v,
    "sub": lambda old, v, _: old - v,
    "max": lambda old, v, _: np.where(v > old, v, old),
    "min": lambda old, v, _: np.where(v < old, v, old),
    "nanmax": lambda old, v, _: np.where((v == v) & ~(old >= v), v, old),
    "nanmin": lambda old, v, _: np.where((v == v) & ~(old <= v), v, old),
    "and_": lambda old, v, _: old & v,
    "or_": lambda old, v, _: old | v,
    "xor": lambda old, v, _: old ^ v,
    "exch": lambda old, v, _: v,
    "inc": lambda old, v, _: np.where(old >= v, 0, old + 1),
    "dec": lambda old, v, _: np.where((old == 0) | (old > v), v, old - 1),
    "cas": lambda old, v, compare: np.where(old == compare, v, old),
}
"""Each computes an element's new value from its old one, the lane's value and what cas compares with."""

_TOTALS = {
    "add": np.add,
    "sub": np.subtract,
    "and_": np.bitwise_and,
    "or_": np.bitwise_or,
    "xor": np.bitwise_xor,
}


_INTEGERS = ("int32", "uint32", "int64", "uint64")
_NUMBERS = (*_INTEGERS, "float32", "float64")
_UNSIGNED = ("uint32", "uint64")
_DTYPES = {"inc": _UNSIGNED, "dec": _UNSIGNED}
_DTYPES |= dict.fromkeys(("add", "sub", "max", "min", "nanmax", "nanmin"), _NUMBERS)


def require_dtype(name: str, array):
    """Refuse an array of a dtype for which Numba does not have this operation."""
    dtypes = _DTYPES.get(name, _INTEGERS)
    if array.dtype.name not in dtypes:
        raise KernelTypeError(
            f"cuda.atomic.{name} takes arrays of {', '.join(dtypes)}; {array.name} holds {array.dtype}"
        )


def instead_of(update: str, array: str, dtype: np.dtype) -> str:
    """Return what to write in place of a load, a change and a store of one element by several threads.

    ``update``: the name of the atomic operation that does the same, or "other".
    """
    allowed = _DTYPES.get(update, _INTEGERS) if update in ATOMICS else ()
    if dtype.name in allowed:
        return (
            f"Use an atomic operation, such as cuda.atomic.{update}({array}, ...), or let one thread do it."
        )
    if update in ATOMICS and dtype.kind == "c":
        return f"Use cuda.atomic.{update} on {array}.real and on {array}.imag, or let one thread do it."
    if update in ATOMICS and dtype.itemsize < 4:
        return (
            f"Numba has no atomic operations on {dtype}: give {array} elements of 32 bits and use "
            f"cuda.atomic.{update}({array}, ...), or let one thread do it."
        )
    if dtype.name in _INTEGERS:
        return (
            "No atomic operation does just that: let one thread do it, or repeat "
            f"cuda.atomic.cas({array}, ...) until it succeeds."
        )
    return "No atomic operation does just that: let one thread do it."


def is_loop(name: str, dtype: np.dtype) -> bool:
    """Return whether Numba compiles this as a loop that loads the element and swaps it until that succeeds.

    It does so where a GPU has no such instruction. The emulator counts one attempt: how many a GPU needs
    depends on timing.
    """
    if dtype.kind == "f":
        return name in ("sub", "max", "min", "nanmax", "nanmin")
    return name in ("inc", "dec") and dtype.itemsize == 8


def one_after_another(name: str, memory: np.ndarray, cells, values, compare) -> np.ndarray:
    """Update elements of the flat array ``memory`` and return what each lane found.

    cells, values, compare: one-dimensional, an entry per lane, in the order of the lanes. values and compare
    are cast to the type of the memory, as Numba does.
    """
    values, compare = (np.asarray(v).astype(memory.dtype, copy=False) for v in (values, compare))
    order = np.argsort(cells, kind="stable")
    found = np.empty(len(cells), memory.dtype)
    starts = np.flatnonzero(np.diff(cells[order], prepend=-1))
    lengths = np.diff(starts, append=len(cells))
    if name in _TOTALS and len(starts) < lengths.max(initial=0):
        for start, length in zip(starts, lengths):
            lanes = order[start : start + length]
            found[lanes] = _running_total(_TOTALS[name], memory, cells[lanes[0]], values[lanes])
        return found
    for turn in range(lengths.max(initial=0)):
        lanes = order[starts[lengths > turn] + turn]
        here = cells[lanes]
        found[lanes] = memory[here]
        memory[here] = ATOMICS[name](memory[here], values[lanes], compare[lanes])
    return found


def _running_total(ufunc, memory, cell, values) -> np.ndarray:
    """Update one element for several lanes, and return what each of them finds in it."""
    steps = np.concatenate([memory[cell : cell + 1], values])
    totals = ufunc.accumulate(steps, dtype=memory.dtype)
    memory[cell] = totals[-1]
    return totals[:-1]
