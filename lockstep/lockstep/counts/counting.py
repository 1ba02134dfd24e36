"""Computes what one memory instruction of one warp costs: sectors, cache lines, bank conflicts.

The rules were held against an H200's hardware counters (``lockstep/recorded`` has the measurements):

* A *request* is one instruction of one warp with at least one active lane.
* Global memory moves *sectors* of 32 bytes: all that hold a byte which an active lane accesses.
* Shared memory has 32 *banks*, each one 32-bit word wide. A *wavefront* serves every bank once, so lanes that
  access different words of one bank need several; lanes that read the same word share it.
* A 64-bit access is served in 2 groups of 16 lanes, a 128-bit one in 4 groups of 8, one after the other. A
  *load* serves neighbouring groups together if every lane of the warp reads the same words as lane ^ 1, or
  every lane the same as lane ^ 2; an idle lane agrees with any.

Nsight Compute also shows a figure that it computes from addresses. For wide loads with idle lanes, and for
merged groups that conflict, it differs from what the hardware counts; these rules follow the hardware.
"""

from typing import NamedTuple

import numpy as np

from lockstep.limits import BANKS, LINE, SECTOR, WORD
from lockstep.values.geometry import WARP

# ldmatrix is a load whose matrices are served one by one, even where they are the same.
MATRIX_LOAD = "matrix load"
_NEIGHBOURS = [np.arange(WARP, dtype=np.int64) ^ distance for distance in (1, 2)]
_SECTOR_BITS = SECTOR.bit_length() - 1
# The number of a sector within its line has this number of bits.
_SECTORS_BITS = (LINE // SECTOR).bit_length() - 1


class GlobalCost(NamedTuple):
    requests: int
    lanes: int
    sectors: int
    lines: int


class SharedCost(NamedTuple):
    requests: int
    lanes: int
    wavefronts: int
    ideal: int


def global_cost(
    addresses: np.ndarray, active: np.ndarray | None, size: int, aligned: bool = True
) -> GlobalCost:
    """Return the cost of warps whose lanes access ``size`` bytes at ``addresses`` (warps, 32), in bytes.

    ``aligned``: every address is a multiple of ``size``, so that no access spans two sectors.
    """
    addresses, active = _drop_idle(addresses, active)
    lanes = addresses.size if active is None else int(np.count_nonzero(active))
    requests = len(addresses)
    # The first and the last byte of an access may lie in different sectors.
    if not aligned:
        addresses = np.concatenate([addresses, addresses + size - 1], axis=1)
        active = None if active is None else np.concatenate([active, active], axis=1)
    sectors = addresses >> _SECTOR_BITS
    return GlobalCost(
        requests, lanes, _distinct(sectors, active), _distinct(sectors >> _SECTORS_BITS, active)
    )


def _drop_idle(values: np.ndarray, active: np.ndarray | None):
    """Drop warps without an active lane; ``active`` becomes None if all lanes are active."""
    if active is None or active.all():
        return values, None
    busy = active.any(axis=1)
    return (values, active) if busy.all() else (values[busy], active[busy])


def _distinct(units: np.ndarray, active: np.ndarray | None) -> int:
    """Return the number of different units that the active lanes of each row touch, summed over the rows."""
    if len(units) == 0:
        return 0
    if active is not None:
        units = _fill_idle(units, active)
    if (units[:, 1:] < units[:, :-1]).any():
        units = np.sort(units, axis=1)
    return len(units) + int(np.count_nonzero(units[:, 1:] != units[:, :-1]))


def _fill_idle(units: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Let idle lanes copy an active lane of their warp, so that they add nothing."""
    first = units[np.arange(len(units), dtype=np.int64), active.argmax(axis=1)]
    return np.where(active, units, first[:, None])


def shared_cost(words: np.ndarray, active: np.ndarray | None, bits: int, op: str) -> SharedCost:
    """Return the cost of warps whose lanes access ``bits`` bits from the words ``words`` (warps, 32)."""
    words, active = _drop_idle(words, active)
    if active is None:
        active = np.ones(words.shape, bool)
    total = ideal = 0
    for size, members in _by_group_size(words, active, bits, op):
        depth = _bank_depth(*_words_of_groups(words[members], active[members], bits, size))
        total += int(depth.sum(dtype=np.int64))
        ideal += int(np.count_nonzero(depth))
    return SharedCost(len(words), int(np.count_nonzero(active)), total, ideal)


def sectors_per_warp(addresses: np.ndarray, active: np.ndarray, size: int) -> np.ndarray:
    """Return the sectors that each warp touches, as in :func:`global_cost`. Every warp has an active lane."""
    ends = np.concatenate([addresses, addresses + size - 1], axis=1) >> _SECTOR_BITS
    sectors = np.sort(_fill_idle(ends, np.concatenate([active, active], axis=1)), axis=1)
    return 1 + np.count_nonzero(sectors[:, 1:] != sectors[:, :-1], axis=1)


def wavefronts_per_warp(words: np.ndarray, active: np.ndarray, bits: int, op: str) -> np.ndarray:
    """Return the wavefronts of each warp, as in :func:`shared_cost`."""
    found = np.zeros(len(words), np.int64)
    for size, members in _by_group_size(words, active, bits, op):
        depth = _bank_depth(*_words_of_groups(words[members], active[members], bits, size))
        found[members] = depth.reshape(-1, WARP // size).sum(axis=1, dtype=np.int64)
    return found


def _by_group_size(words, active, bits, op):
    """Yield (number of lanes that are served together, the warps for which that holds)."""
    size = WARP * 32 // max(bits, 32)
    if op != "load" or size == WARP:
        yield size, slice(None)
        return
    merged = np.zeros(len(words), bool)
    for neighbour in _NEIGHBOURS:
        same = (words == words[:, neighbour]) | ~active | ~active[:, neighbour]
        merged |= same.all(axis=1)
    yield size, ~merged
    yield 2 * size, merged


def _words_of_groups(words, active, bits, size):
    """Return all words of each group of lanes, (groups, words), and which of them an active lane accesses."""
    width = max(bits // 32, 1)
    spread = (words[:, :, None] + np.arange(width, dtype=np.int64)).reshape(-1, size * width)
    return spread, np.repeat(active, width, axis=1).reshape(-1, size * width)


def _bank_depth(words: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Return the largest number of different words in one bank, for each group."""
    groups = len(words)
    busy = active.any(axis=1)
    words = np.sort(_fill_idle(words, active), axis=1)
    new = np.ones(words.shape, bool)
    new[:, 1:] = words[:, 1:] != words[:, :-1]
    slots = np.arange(groups, dtype=np.int64)[:, None] * BANKS + words % BANKS
    depth = np.bincount(slots[new], minlength=groups * BANKS).reshape(groups, BANKS).max(axis=1)
    return depth * busy


def matrix_wavefronts(addresses: np.ndarray) -> int:
    """Return the wavefronts of reading matrices of 8 rows of 16 bytes at ``addresses`` (matrices, 8)."""
    words = addresses[:, :, None] // WORD + np.arange(16 // WORD, dtype=np.int64)
    words = words.reshape(len(addresses), BANKS)
    return int(_bank_depth(words, np.ones(words.shape, bool)).sum(dtype=np.int64))


def wavefronts(word_indices, bits: int = 32, op: str = "load") -> int:
    """Return the wavefronts of one shared-memory instruction of one warp.

    ``word_indices``: the first 32-bit word that each of the 32 lanes accesses, -1 for an inactive lane.
    ``bits``: width of each lane's access, 8 to 128. ``op``: "load" or "store".

    >>> wavefronts(range(32))
    1
    >>> wavefronts([32 * lane for lane in range(32)])
    32
    """
    words = np.asarray(list(word_indices), np.int64).reshape(1, -1)
    if words.shape[1] != WARP:
        raise ValueError(f"a warp has {WARP} lanes, but {words.shape[1]} word indices were given")
    if bits not in (8, 16, 32, 64, 128):
        raise ValueError(f"bits must be 8, 16, 32, 64 or 128, not {bits}")
    if op not in ("load", "store"):
        raise ValueError(f'op must be "load" or "store", not {op!r}')
    return shared_cost(words, words >= 0, bits, op).wavefronts
