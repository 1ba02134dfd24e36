"""Defines cases of one warp and one shared-memory instruction: each lane's word, and the active lanes.

A pattern gives each lane an element of the instruction's width. The word index is the element times its size
in words. The patterns are chosen to distinguish rules: neighbouring lanes that share an address, lanes two
apart that share one, one pair that does not, an inactive partner.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gemm_course.bench.profile.sources import Case
from gemm_course.records.columns import WAVEFRONTS

LANES = np.arange(32)
INACTIVE = -1
WIDTHS = (32, 64, 128)  # bits
MASKS_PER_PATTERN = 4
SHARED_BYTES = 32 * 1024
SEED = 1  # Random patterns and masks must be the same in every process.


@dataclass(frozen=True)
class Instruction:
    """One shared-memory instruction of one warp."""

    pattern: str
    op: str
    bits: int
    word_index: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.pattern} {self.op} {self.bits}"


def instructions(earlier: Path | None = None) -> list[Instruction]:
    """Return all instructions to measure: each pattern with all lanes active and with some of the masks.

    ``earlier`` is a file of wavefront records. If it exists, its instructions are measured again, before
    these.
    """
    known = _recorded(earlier) if earlier and earlier.exists() else []
    distinct = {(one.op, one.bits, one.word_index): one for one in reversed(known + _designed())}
    return list(reversed(distinct.values()))


def _recorded(path: Path) -> list[Instruction]:
    return [
        Instruction(
            row.pattern, row.op, int(row.bits), tuple(int(word) for word in row.lane_word_index.split())
        )
        for row in WAVEFRONTS.read(path).itertuples()
    ]


def _designed() -> list[Instruction]:
    various = [
        _instruction(name, op, bits, elements)
        for name, elements in _masked_patterns(np.random.default_rng(SEED))
        for bits in WIDTHS
        for op in ("load", "store")
    ]
    sharing = [
        _instruction(f"{pattern}, {mask}", "load", bits, np.where(active, elements, INACTIVE))
        for pattern, elements in _shared_addresses().items()
        for mask, active in _systematic_masks(np.random.default_rng(SEED)).items()
        for bits in (64, 128)
    ]
    return various + sharing


def _instruction(pattern: str, op: str, bits: int, elements: np.ndarray) -> Instruction:
    words = np.where(elements < 0, INACTIVE, elements * bits // 32)
    return Instruction(pattern, op, bits, tuple(int(word) for word in words))


def _masked_patterns(random: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    masks = _masks(random)
    for name, elements in _patterns(random).items():
        yield name, elements
        for mask in random.choice(sorted(masks), MASKS_PER_PATTERN, replace=False):
            yield f"{name}, {mask}", np.where(masks[mask], elements, INACTIVE)


def _patterns(random: np.random.Generator) -> dict[str, np.ndarray]:
    pairs, quads = LANES // 2, LANES // 4
    one_pair_apart = pairs.copy()
    one_pair_apart[13] = 40
    return {
        "sequential": LANES,
        "same word": LANES * 0,
        "pairs": pairs,
        "quads": quads,
        "lanes two apart": LANES // 4 * 2 + LANES % 2,
        "lanes four apart": LANES // 8 * 4 + LANES % 4,
        "one pair apart": one_pair_apart,
        "pairs in the first half": np.where(LANES < 16, pairs, LANES + 8),
        "pairs swapped": LANES ^ 1,
        "stride 2": LANES * 2,
        "stride 3": LANES * 3,
        "stride 4": LANES * 4,
        "stride 16": LANES * 16,
        "stride 33": LANES * 33,
        "column of 8 rows": LANES % 8 * 8 + LANES // 8,
        "rows of 8, padded": LANES // 8 * 9 + LANES % 8,
        "pairs 32 apart": pairs * 32,
        "rotated": (LANES + 5) % 32,
        "random of 8": random.integers(0, 8, 32),
        "random of 32": random.integers(0, 32, 32),
        "random of 64": random.integers(0, 64, 32),
        "random of 512": random.integers(0, 512, 32),
        "random of 2048": random.integers(0, 2048, 32),
        "random permutation": random.permutation(32),
        "random pairs": np.repeat(random.integers(0, 64, 16), 2),
        "random lanes two apart": random.integers(0, 64, 16)[LANES // 4 * 2 + LANES % 2],
        "random in bank 0 and 1": random.integers(0, 32, 32) * 32 + random.integers(0, 2, 32),
    }


def _masks(random: np.random.Generator) -> dict[str, np.ndarray]:
    one_off = np.ones(32, bool)
    one_off[13] = False
    return {
        "even lanes": LANES % 2 == 0,
        "odd lanes": LANES % 2 == 1,
        "lanes 0 and 1 of 4": LANES % 4 < 2,
        "first half": LANES < 16,
        "last 8": LANES >= 24,
        "first 5": LANES < 5,
        "lane 17 alone": LANES == 17,
        "all but lane 13": one_off,
        "half at random": random.random(32) < 0.5,
        "most at random": random.random(32) < 0.85,
        "few at random": random.random(32) < 0.2,
        "without lanes 8 to 15": (LANES < 8) | (LANES > 15),
    }


def _shared_addresses() -> dict[str, np.ndarray]:
    """Return patterns in which lanes share addresses, so that loads may be merged. None of them is word 0."""
    return {
        "word 20": LANES * 0 + 5,
        "pairs from 20": LANES // 2 + 5,
        "quads from 20": LANES // 4 + 5,
        "eights from 20": LANES // 8 + 5,
        "two apart from 20": LANES // 4 * 2 + LANES % 2 + 5,
        "sixteens from 20": LANES // 16 + 5,
    }


def _systematic_masks(random: np.random.Generator) -> dict[str, np.ndarray]:
    """Return masks: every choice of lanes modulo 4 and of eights, single lanes off, and some at random."""
    masks = {}
    for choice in range(1, 15):
        bits = f"{choice:04b}"[::-1]
        masks[f"lanes {bits} of 4"] = choice >> LANES % 4 & 1 == 1
        masks[f"eights {bits}"] = choice >> LANES // 8 & 1 == 1
    for lane in (0, 1, 2, 3, 13, 16, 31):
        masks[f"without lane {lane}"] = lane != LANES
    for number in range(8):
        masks[f"at random {number}"] = random.random(32) < 0.3 + 0.08 * number
    return masks


def wavefront_cases(earlier: Path | None = None) -> list[Case]:
    """Return a case for each of `instructions`."""
    return [
        Case(one.name, _kernel(one.op, one.bits), 1, 32, _arguments_of(one), SHARED_BYTES)
        for one in instructions(earlier)
    ]


def _arguments_of(one: Instruction) -> Callable[[], tuple]:
    units = np.array(
        [word if word < 0 else word // _words_per_index(one.bits) for word in one.word_index], np.int32
    )
    dtype = np.float64 if one.bits == 64 else np.float32
    return lambda: (units, np.ones((32, 4), dtype))


def _words_per_index(bits: int) -> int:
    return 2 if bits == 64 else 1  # 128 bits are four float32 from an index on.


@functools.cache
def _kernel(op: str, bits: int):
    """Return the kernel whose only shared-memory instruction has this width.

    Shared memory is dynamic, because the compiler cannot optimise away an array of unknown size.
    """
    from numba import cuda, float32, float64

    from lockstep.intrinsics import load4, store4

    def load_scalar(index, values):
        shared = cuda.shared.array(0, dtype)
        lane = cuda.threadIdx.x
        if index[lane] >= 0:
            values[lane, 0] = shared[index[lane]]

    def store_scalar(index, values):
        shared = cuda.shared.array(0, dtype)
        lane = cuda.threadIdx.x
        if index[lane] >= 0:
            shared[index[lane]] = values[lane, 0]

    def load_wide(index, values):
        shared = cuda.shared.array(0, float32, 16)
        lane = cuda.threadIdx.x
        if index[lane] >= 0:
            store4(values, (lane, 0), load4(shared, index[lane]))

    def store_wide(index, values):
        shared = cuda.shared.array(0, float32, 16)
        lane = cuda.threadIdx.x
        if index[lane] >= 0:
            store4(shared, index[lane], load4(values, (lane, 0)))

    dtype = float64 if bits == 64 else float32
    scalar = {"load": load_scalar, "store": store_scalar}
    wide = {"load": load_wide, "store": store_wide}
    return cuda.jit((wide if bits == 128 else scalar)[op])
