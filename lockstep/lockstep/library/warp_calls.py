"""Emulates the calls that the lanes of a warp make together: shuffles, votes, matches and syncwarp.

Each call takes a mask that names lanes of the warp. All lanes in the mask, except those that have exited,
must execute the same call with the same mask. A lane may only make the call if the mask names that lane.
Anything else is reported. A result depends only on the lanes that the mask names and that take part.
"""

import inspect
from typing import NamedTuple

import numpy as np

from lockstep.errors import KernelTypeError
from lockstep.findings import Finding, thread_name
from lockstep.machine.words import kind_of
from lockstep.memory.garbage import garbage
from lockstep.memory.storage import Unknown
from lockstep.registry import Emulation
from lockstep.values.dtypes import BOOL, dtype_of
from lockstep.values.geometry import WARP
from lockstep.values.lanes import Lanes, Pattern, from_values

EVERYONE = 0xFFFFFFFF
_INT32 = np.dtype(np.int32)
_BITS = 1 << np.arange(WARP, dtype=np.int64)
_SHUFFLED = ("int32", "int64", "float32", "float64")


class Call(NamedTuple):
    """A call that the lanes of a warp make together: its site and its name."""

    site: int
    name: str


def _called_by_warp(name, function, mask_of, operands=(), named=False):
    """Return the emulation of ``function(machine, call, mask, *operands)``.

    ``mask_of(machine, name, mask)`` checks the mask and returns it. ``operands``: the names of the arguments
    after the mask. ``named``: whether Numba takes these and the mask as keyword arguments too.
    """
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if named else inspect.Parameter.POSITIONAL_ONLY
    signature = inspect.Signature([inspect.Parameter(each, kind) for each in ("machine", "mask", *operands)])

    def together(*given, **keywords):
        if keywords or len(given) != 2 + len(operands):
            given = signature.bind(*given, **keywords).args
        machine, mask, *values = given
        mask = mask_of(machine, name, mask)
        return machine.together(Call(machine.site, name), function, mask, tuple(values))

    together.__signature__ = signature
    return Emulation(together, elementwise=False)


def _whole_word(machine, name, value, what="mask"):
    """Return an integer of 32 or 64 bits, which needs no cast. Raises KernelTypeError for any other value."""
    dtype = dtype_of(value)
    if dtype is None or dtype.kind not in "iu" or dtype.itemsize < 4:
        raise KernelTypeError(
            f"{name}() takes an integer of 32 or 64 bits as its {what}, not {kind_of(value)}"
        )
    return value


def _cast_word(machine, name, value):
    """Return an integer mask as it is, and any other real number cast to an int32, as Numba does."""
    dtype = dtype_of(value)
    if dtype is None or dtype.kind == "c":
        raise KernelTypeError(f"{name}() takes a real number as its mask, not {kind_of(value)}")
    return value if dtype.kind in "iu" else machine.cast(_INT32, value)


# ---- who takes part ----


def _per_warp(values, shape) -> np.ndarray:
    """Return the values of all lanes with the shape (..., warps, 32)."""
    return np.broadcast_to(values, shape).reshape(*shape[:-1], -1, WARP)


def _as_bits(booleans: np.ndarray) -> np.ndarray:
    """Turn (..., warps, 32) booleans into one number per warp, (..., warps, 1)."""
    return (booleans * _BITS).sum(axis=-1, dtype=np.int64, keepdims=True)


def _named(machine, mask) -> np.ndarray | int:
    """Return the bits of the mask that the lanes pass: one number for all lanes, or a number per lane."""
    return np.asarray(machine.plain(mask)).astype(np.int64) & EVERYONE


def _shape(machine, *values) -> tuple:
    return np.broadcast_shapes(
        machine.chunk.geometry.shape, np.shape(machine.unit.mask.array), *map(np.shape, values)
    )


def _active(machine, shape) -> np.ndarray:
    return _per_warp(True if machine.unit.mask.array is None else machine.unit.mask.array, shape)


def _members(machine, call, mask, *values):
    """Return (shape of all lanes, active lanes, bits of the active lanes that each lane's mask names).

    The last two have the shape (..., warps, 32). Report calls that break the rules of a mask.
    """
    named = _named(machine, mask)
    shape = _shape(machine, named, *values)
    active = _active(machine, shape)
    bits = _per_warp(named, shape)
    if machine.log is None:
        _check(machine, call, bits, active)
    return shape, active, bits & _as_bits(active)


def _check(machine, call, bits, active):
    """Report lanes whose own mask does not name them, lanes that are named but absent, and unequal masks."""
    if active.all() and (bits == EVERYONE).all():
        return
    unnamed = active & (bits & _BITS == 0)
    if unnamed.any():
        _report(machine, call, unnamed, _not_in_own_mask)
    here = _as_bits(active)
    absent = bits & _as_bits(_waited_for(machine, active.shape)) & ~here
    missing = active & (absent != 0)
    if missing.any():
        _report(machine, call, missing, lambda *where: _absent(*where, absent))
        return
    leader = (bits & here & -(bits & here)).astype(np.float64)
    first = np.log2(np.where(leader > 0, leader, 1)).astype(np.int64)
    differing = active & (np.take_along_axis(bits, first, axis=-1) != bits)
    if differing.any():
        _report(machine, call, differing & ~unnamed, _disagree)


def _waited_for(machine, shape) -> np.ndarray:
    """Return which threads exist and have not exited, as (..., warps, 32) booleans."""
    waited = np.ones(machine.chunk.geometry.shape, bool)
    if machine.chunk.geometry.all_threads.array is not None:
        waited &= machine.chunk.geometry.all_threads.array
    exited = machine.exited()
    if exited is not None:
        waited &= ~exited
    waited = waited.reshape(*waited.shape[:-1], -1, WARP)
    return np.broadcast_to(waited, np.broadcast_shapes(waited.shape, shape))


def _report(machine, call, lanes, sentence, kind="warp_divergence"):
    """Report these lanes, (..., warps, 32) booleans.

    ``sentence`` returns the other threads of the finding and the message about the first lane.
    """
    if not lanes.any():
        return
    at = machine.sites[call.site]

    def make():
        where = tuple(int(i) for i in np.argwhere(lanes)[0])
        who, block = _place(machine, where)
        others, message = sentence(machine, where, f"this {call.name}")
        return Finding(
            kind=kind,
            line=at.line,
            message=f"{thread_name(who, block)} {message}".replace("thread", "Thread", 1),
            block=block,
            threads=[who, *others],
            function=at.function,
            site=call.site,
        )

    machine.findings.add((kind, call.site), int(np.count_nonzero(lanes)), make)


def _place(machine, where):
    """Return (thread, block) of a lane, given its position in (..., row, column, warp, lane)."""
    *_, row, column, warp, lane = where
    return machine.chunk.geometry.thread_coordinates(warp * WARP + lane), machine.chunk.block_coordinates(
        row, column
    )


def _not_in_own_mask(machine, where, what):
    return [], (
        f"executes {what}, but its mask does not name lane {where[-1]}, which is the thread's own: the "
        "result is undefined."
    )


def _absent(machine, where, what, absent):
    bits = int(absent[where])
    gone = [lane for lane in range(WARP) if bits >> lane & 1]
    others = [_place(machine, (*where[:-1], lane))[0] for lane in gone]
    lanes = f"lane {gone[0]}" if len(gone) == 1 else f"lanes {_listed(gone)}"
    verb = "is" if len(gone) == 1 else "are"
    return others[:1], (
        f"executes {what} with a mask that names {lanes} of its warp, which {verb} not there "
        f"({thread_name(others[0])}{', for example' if len(gone) > 1 else ''}): all threads that the mask "
        "names must execute it together, or the result is undefined."
    )


def _disagree(machine, where, what):
    return [], (
        f"executes {what} with another mask than a lane that it names: all lanes named in a mask must pass "
        "the same mask, or the result is undefined."
    )


def _of_nobody(machine, where, what):
    return [], (
        f"executes {what}, and takes a value from a lane that the mask does not name or that is not there: "
        "the value is undefined. Here it is NaN or an odd number: a result that depends on it shows it."
    )


def _listed(lanes: list[int]) -> str:
    if lanes == list(range(lanes[0], lanes[-1] + 1)):
        return f"{lanes[0]} to {lanes[-1]}"
    shown = ", ".join(map(str, lanes[:6]))
    return shown if len(lanes) <= 6 else f"{shown}, ..."


# ---- shuffles ----


def _shuffle(name, operand_name, source_lane):
    """Return the emulation of a shuffle.

    Each lane gets the value of the lane ``source_lane(lane, operand)``, or keeps its own if the warp has no
    such lane.
    """

    def shuffle(machine, call, mask, value, operand):
        dtype = machine._dtype(value)
        if dtype is None or dtype.name not in _SHUFFLED:
            raise KernelTypeError(f"{name} takes int32, int64, float32 or float64, not {dtype or 'this'}")
        _whole_word(machine, name, operand, operand_name)
        shape, active, members = _members(machine, call, mask)
        lane = machine.chunk.geometry.linear % WARP
        wanted = source_lane(lane, np.asarray(machine.plain(operand)).astype(np.int64))
        wanted = np.where((wanted >= 0) & (wanted < WARP), wanted, lane)
        source = wanted + machine.chunk.geometry.linear - lane
        if isinstance(value, Unknown):
            return value
        value = np.asarray(machine.plain(value))
        values = np.broadcast_to(value, np.broadcast_shapes(value.shape, source.shape))
        source = np.broadcast_to(source, values.shape[:-1] + source.shape[-1:])
        taken = np.take_along_axis(values, source, axis=-1)
        if machine.log is None:
            shape = np.broadcast_shapes(shape, wanted.shape)
            undefined = active & (members >> _per_warp(wanted, shape) & 1 == 0)
            if undefined.any():
                _report(machine, call, undefined, _of_nobody, "absent_lane")
                taken = np.where(undefined.reshape(shape), garbage(taken.dtype), taken)
        return from_values(taken) if taken.dtype.kind in "biu" else taken

    return _called_by_warp(name, shuffle, _whole_word, ("value", operand_name), named=True)


# ---- votes and matches ----


def _vote(name, outcome, dtype):
    """Return the emulation of a vote.

    ``outcome`` takes the bits of the lanes whose predicate is true, and the bits of all voters.
    """

    def vote(machine, call, mask, predicate):
        kind = dtype_of(predicate)
        if kind is None or kind.kind not in "biu":
            raise KernelTypeError(
                f"cuda.{name}() takes a boolean or an integer, not {kind_of(predicate)}: pass a comparison"
            )
        predicate = machine.truth(predicate)
        true = predicate if type(predicate) is bool else predicate.pattern.array
        shape, active, members = _members(machine, call, mask, true)
        voted = _as_bits(_per_warp(true, shape) & active) & members
        return _for_each_lane(outcome(voted, members), shape, dtype)

    return _called_by_warp(name, vote, _whole_word, ("predicate",))


def _for_each_lane(values, shape, dtype) -> Lanes:
    """Turn (..., warps, 1 or 32) integers or booleans into lanes of ``dtype``."""
    wide = np.broadcast_to(values, (*values.shape[:-1], WARP)).reshape(shape)
    if dtype == BOOL:
        return Lanes(Pattern(wide), 0, BOOL)
    return from_values(wide.astype(np.uint32).view(_INT32) if dtype == _INT32 else wide.astype(dtype))


def _active_lanes(machine) -> Lanes:
    shape = _shape(machine)
    return _for_each_lane(_as_bits(_active(machine, shape)), shape, np.dtype(np.uint32))


def _equal_lanes(machine, call, mask, value):
    """Return (shape, bits of the active lanes that each lane names, bits of those with an equal value)."""
    dtype = dtype_of(value)
    if dtype is None or dtype.kind == "c":
        raise KernelTypeError(f"{call.name}() compares real numbers, not {kind_of(value)}")
    value = np.asarray(machine.plain(value))
    if value.dtype.kind == "f":
        value = value.view(f"i{value.dtype.itemsize}")
    shape, _, members = _members(machine, call, mask, value)
    held = _per_warp(value, shape)
    same = held[..., :, None] == held[..., None, :]
    return shape, members, (same * _BITS).sum(axis=-1, dtype=np.int64) & members


def _match_any(machine, call, mask, value):
    shape, _, same = _equal_lanes(machine, call, mask, value)
    return _for_each_lane(same, shape, _INT32)


def _match_all(machine, call, mask, value):
    shape, members, same = _equal_lanes(machine, call, mask, value)
    agree = same == members
    return _for_each_lane(np.where(agree, members, 0), shape, _INT32), _for_each_lane(agree, shape, BOOL)


# ---- syncwarp ----


def _syncwarp(machine, call, mask):
    _, active, members = _members(machine, call, mask)
    machine.warp_barrier(active, members, _waited_for(machine, active.shape))


def _syncwarp_call(machine, mask=EVERYONE, /):
    mask = _cast_word(machine, "syncwarp", mask)
    return machine.together(Call(machine.site, "syncwarp"), _syncwarp, mask, ())


WARP_CALLS = {
    "shfl_sync": _shuffle("shfl_sync", "src_lane", lambda lane, source: source & 31),
    "shfl_up_sync": _shuffle("shfl_up_sync", "delta", lambda lane, delta: lane - (delta & 31)),
    "shfl_down_sync": _shuffle("shfl_down_sync", "delta", lambda lane, delta: lane + (delta & 31)),
    "shfl_xor_sync": _shuffle("shfl_xor_sync", "lane_mask", lambda lane, bits: lane ^ (bits & 31)),
    "all_sync": _vote("all_sync", lambda true, members: true == members, BOOL),
    "any_sync": _vote("any_sync", lambda true, members: true != 0, BOOL),
    "eq_sync": _vote("eq_sync", lambda true, members: (true == members) | (true == 0), BOOL),
    "ballot_sync": _vote("ballot_sync", lambda true, members: true, _INT32),
    "match_any_sync": _called_by_warp("match_any_sync", _match_any, _cast_word, ("value",)),
    "match_all_sync": _called_by_warp("match_all_sync", _match_all, _cast_word, ("value",)),
    "activemask": Emulation(_active_lanes, elementwise=False),
    "syncwarp": Emulation(_syncwarp_call, elementwise=False, kind="barrier"),
}
