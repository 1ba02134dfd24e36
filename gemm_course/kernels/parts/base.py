"""Defines what a stage of the ladder is: its tiles, the rules that make them legal, and its launch."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from types import SimpleNamespace

import numpy as np

from lockstep import did_you_mean
from lockstep.limits import (
    MAX_BLOCKS_PER_SM,
    MAX_GRID,
    MAX_REGISTERS,
    MAX_STATIC_SHARED_BYTES,
    MAX_THREADS,
    REGISTERS_PER_SM,
    profile,
)


class IllegalTiles(ValueError):
    """The error for tiles that a stage cannot run.

    stage: the stage. tiles: what was given. broken: a sentence for each rule that the tiles break. nearest:
    the nearest legal choice.
    """

    def __init__(self, stage: Stage, tiles: Mapping[str, int], broken: list[str]):
        self.stage, self.tiles, self.broken = stage, dict(tiles), broken
        self.nearest = stage.nearest_legal(tiles)
        super().__init__(
            f"{stage.name} cannot run with {tiles_text(tiles)}: {'; '.join(broken)}. "
            f"The nearest legal choice is {tiles_text(self.nearest)}."
        )


@dataclass(frozen=True, eq=False)
class KernelLaunch:
    """One launch of a kernel, with its grid, block, dynamic shared memory and arguments."""

    kernel: Callable
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int  # of dynamic shared memory
    arguments: tuple


@dataclass(frozen=True, eq=False)
class Stage:
    """One step of the ladder: a family of kernels for C = alpha * A @ B + beta * C, one for each choice
    of tiles.

    A kernel takes (m, n, k, alpha, A, B, beta, C): A (at least m rows of at least k elements), B (k by
    n), C (m by n), all of `dtype`, two-dimensional and C-contiguous; a row may be longer than the matrix
    is wide, and the kernel does not depend on what its padding holds. alpha and beta are np.float32. Where
    beta == 0, C is not read.
    """

    name: str
    title: str
    document: str  # which of the course's documents it comes from, and that document's name for it
    tiles: Mapping[str, int]  # the defaults
    options: Mapping[str, tuple[int, ...]]  # what the sliders offer
    requirements: Callable[[SimpleNamespace], Iterable[tuple[bool, str]]]  # tiles -> (does it hold, the rule)
    build: Callable[..., Callable]  # tiles -> the kernel as plain Python
    threads: Callable[[SimpleNamespace], tuple[int, ...]]  # (x,) or (x, y)
    blocks: Callable[[int, int, SimpleNamespace], tuple[int, ...]]
    after: str = ""  # the stage that this one changes; the first stage has none
    side: bool = False  # a side branch: no stage follows it
    registers: Callable[[SimpleNamespace], int] = lambda t: MAX_REGISTERS  # the most a thread may use
    dynamic_shared_bytes: Callable[[SimpleNamespace], int] = lambda t: 0
    may_be_zero: frozenset[str] = frozenset()
    alignment: int = 4  # bytes; the start and the leading dimension of every array must be a multiple of it
    compute_capability: tuple[int, int] = (5, 0)
    dtype: str = "float32"  # of A, B and C: "float32" or "float16"
    accumulate: str = "float32"  # dtype of the accumulators
    # (tiles, m, n, k, alpha, A, B, beta, C) -> the kernel's arguments. A stage whose kernel takes something
    # else, such as tensor maps of A and B, defines that here; C keeps its position.
    takes: Callable[..., tuple] = lambda t, *standard: standard
    # The same -> the launches that compute C fastest, where that is not one launch of the stage's own kernel.
    shares: Callable[..., tuple[KernelLaunch, ...]] | None = None
    # (m, n, k, default tiles) -> what to change for C of m by n, where other tiles may be faster.
    suits: Callable[[int, int, int, SimpleNamespace], Mapping[str, int]] | None = None
    # Arrays of `dtype` that the kernel takes after C: name -> shape, of the letters m and n. {"bias": "n"} is
    # an array of n elements.
    extras: Mapping[str, str] = field(default_factory=dict)
    # (alpha * A @ B + beta * C, *extras) -> what the kernel stores in C, in NumPy; None: the product itself.
    epilogue: Callable | None = None

    def __repr__(self) -> str:
        return f"<stage {self.name}>"

    @property
    def itemsize(self) -> int:
        """The number of bytes of an element of A, B or C."""
        return np.dtype(self.dtype).itemsize

    def example_extras(self, m: int, n: int) -> tuple[np.ndarray, ...]:
        """Return random arrays for `extras`, for C of m by n. They are the same in every call."""
        random, sizes = np.random.default_rng(m + n), {"m": m, "n": n}
        return tuple(
            random.standard_normal([sizes[letter] for letter in shape]).astype(self.dtype)
            for shape in self.extras.values()
        )

    def finished(self, product, *extras):
        """Return what the kernel stores in C.

        product: alpha * A @ B + beta * C. extras: the arrays that the kernel takes after C.
        """
        return self.epilogue(product, *extras) if self.epilogue is not None else product

    def complete(self, tiles: Mapping[str, int] | None = None) -> dict[str, int]:
        """Return the default tiles, overridden by the given ones. Raises ValueError for an unknown name.

        The default of BLOCKS is the number of multiprocessors of the GPU at hand.
        """
        unknown = sorted(set(tiles or {}) - set(self.tiles))
        if unknown:
            known = ", ".join(self.tiles)
            raise ValueError(f"{self.name} has no tile size called {', '.join(unknown)}; it has {known}")
        given = {name: int(value) if _is_whole(value) else value for name, value in (tiles or {}).items()}
        if "BLOCKS" in self.tiles and "BLOCKS" not in given:
            given["BLOCKS"] = multiprocessors()
        return {**self.tiles, **given}

    def tiles_for(self, m: int, n: int, k: int, tiles: Mapping[str, int] | None = None) -> dict[str, int]:
        """Return the given tiles, completed by the defaults.

        If none are given, return those that suit an m by n by k problem. Raises ValueError for an unknown
        name.
        """
        if not tiles and self.suits is not None:
            tiles = self.suits(m, n, k, SimpleNamespace(**self.complete()))
        return self.complete(tiles)

    def rules(self, tiles: Mapping[str, int] | None = None) -> list[str]:
        """Return a message for each rule that these tiles break. The list is empty if they are legal.

        The other rules compute with the sizes. So if a size is too small or no whole number, only messages
        about such sizes are returned. Raises ValueError for an unknown name.
        """
        tiles = self.complete(tiles)
        invalid = [
            f"{name} must be a whole number and at least {self._least(name)}, not {value!r}"
            for name, value in tiles.items()
            if not (_is_whole(value) and value >= self._least(name))
        ]
        return invalid or [rule for holds, rule in self.requirements(SimpleNamespace(**tiles)) if not holds]

    def nearest_legal(self, tiles: Mapping[str, int] | None = None) -> dict[str, int]:
        """Return these tiles if they are legal, or else the nearest legal choice that the sliders offer.

        The nearest choice changes few sizes, each by few doublings or halvings.
        """
        wanted = self.complete(tiles)
        if not self.rules(wanted):
            return wanted
        return dict(min(self.legal_choices(), key=lambda choice: _distance(wanted, choice)))

    def legal_choices(self) -> tuple[dict[str, int], ...]:
        """Return every legal combination of what the sliders offer, in the sliders' order."""
        return _legal_choices(self)

    def kernel(self, tiles: Mapping[str, int] | None = None):
        """Return the `cuda.jit` dispatcher for these tiles, the same one whenever the tiles are the same.

        Raises IllegalTiles if they break a rule.
        """
        tiles = self._checked(tiles)
        return _kernel(self, tuple(sorted(tiles.items())))

    def grid(self, m: int, n: int, tiles: Mapping[str, int] | None = None) -> tuple[int, ...]:
        """Return how many blocks a launch has, (x,) or (x, y). A zero means that C has no elements.

        Raises ValueError if C has more tiles in one direction than a grid can have blocks.
        """
        grid = self.blocks(m, n, SimpleNamespace(**self._checked(tiles)))
        for axis, blocks, most in zip("xyz", grid, MAX_GRID, strict=False):
            if blocks > most:
                raise ValueError(
                    f"{self.name} needs {blocks} blocks along {axis} for C of {m} by {n}; "
                    f"a grid has at most {most}"
                )
        return grid

    def block(self, tiles: Mapping[str, int] | None = None) -> tuple[int, ...]:
        """Return how many threads a block has, (x,) or (x, y)."""
        return self.threads(SimpleNamespace(**self._checked(tiles)))

    def shared_bytes(self, tiles: Mapping[str, int] | None = None) -> int:
        """Return the bytes of dynamic shared memory that a launch must request, or 0 if all is static."""
        return self.dynamic_shared_bytes(SimpleNamespace(**self._checked(tiles)))

    def arguments(self, *standard, tiles: Mapping[str, int] | None = None) -> tuple:
        """Return the arguments of the kernel, built from (m, n, k, alpha, A, B, beta, C, *extras).

        A, B and C are NumPy arrays, or arrays on the GPU. Arguments built from NumPy arrays can be emulated;
        `device.on_device` copies them to a GPU.
        """
        return tuple(self.takes(SimpleNamespace(**self._checked(tiles)), *standard))

    def launches(self, *standard, tiles: Mapping[str, int] | None = None) -> tuple[KernelLaunch, ...]:
        """Return the launches that together compute C, in order. Most stages need only one.

        The launch that `alone` returns computes all of C as well, but several launches may be faster. The
        tuple is empty if C has no elements. standard: (m, n, k, alpha, A, B, beta, C, *extras). tiles: as in
        `tiles_for`.
        """
        m, n, k = standard[:3]
        tiles = self.tiles_for(m, n, k, tiles)
        grid = self.grid(m, n, tiles)
        if 0 in grid:
            return ()
        if self.shares is not None:
            return self.shares(SimpleNamespace(**self._checked(tiles)), *standard)
        return (self.alone(*standard, tiles=tiles),)

    def alone(self, *standard, tiles: Mapping[str, int] | None = None) -> KernelLaunch:
        """Return the launch of the stage's own kernel, which computes all of C.

        standard: (m, n, k, alpha, A, B, beta, C, *extras).
        """
        m, n = standard[:2]
        arguments = self.arguments(*standard, tiles=tiles)
        return KernelLaunch(
            self.kernel(tiles), self.grid(m, n, tiles), self.block(tiles), self.shared_bytes(tiles), arguments
        )

    def launch_bounds(self, tiles: Mapping[str, int] | None = None) -> tuple[int, int]:
        """Return, for the compiler, the threads of a block and how many blocks an SM must be able to hold.

        The second number caps the registers per thread. Without a cap the compiler loads far ahead into every
        free register, and the SM then holds too few warps to hide the latency.
        """
        t = SimpleNamespace(**self._checked(tiles))
        threads = math.prod(self.threads(t))
        resident = REGISTERS_PER_SM // (-(-threads // 32) * 32 * self.registers(t))
        return threads, max(1, min(resident, MAX_BLOCKS_PER_SM))

    def leading_dimension_rules(self, **leading_dimensions: int) -> list[str]:
        """Return a message for each matrix whose rows do not start at multiples of `alignment` bytes.

        leading_dimensions: row lengths in elements, as in A=A.shape[1], B=B.shape[1], C=C.shape[1].
        """
        elements = {"float32": "floats", "float16": "FP16 values"}[self.dtype]
        return [
            f"the rows of {matrix} are {length} {elements} long; {self.name} reads {self.alignment} bytes "
            f"at a time and needs a multiple of {self.alignment // self.itemsize}"
            for matrix, length in leading_dimensions.items()
            if length * self.itemsize % self.alignment
        ]

    def _least(self, name: str) -> int:
        return 0 if name in self.may_be_zero else 1

    def _checked(self, tiles: Mapping[str, int] | None) -> dict[str, int]:
        tiles = self.complete(tiles)
        broken = self.rules(tiles)
        if broken:
            raise IllegalTiles(self, tiles, broken)
        return tiles


class Ladder:
    """The stages in teaching order: iterate over them, or look one up by name or index.

    They form a tree: each stage but the first follows an earlier one, and none follows a side branch.
    left_out: a sentence for each file whose stage is left out of the ladder, with the reason.
    """

    def __init__(self, stages: Iterable[Stage] = ()):
        self._stages: dict[str, Stage] = {}
        self.left_out: list[str] = []
        for stage in stages:
            self.add(stage)

    def __iter__(self) -> Iterator[Stage]:
        return iter(self._stages.values())

    def __len__(self) -> int:
        return len(self._stages)

    def __contains__(self, name: object) -> bool:
        return name in self._stages

    def __getitem__(self, key: str | int) -> Stage:
        if isinstance(key, int):
            return list(self._stages.values())[key]
        if key not in self._stages:
            guess = did_you_mean(str(key), self._stages)
            raise KeyError(
                f"no stage is called {key!r}; the ladder is {', '.join(self._stages)}{guess}"
                + "".join(f" {sentence}" for sentence in self.left_out)
            )
        return self._stages[key]

    def path(self, name: str) -> tuple[Stage, ...]:
        """Return the stages from the first to this one. Each follows the one before it. Raises KeyError."""
        stage = self[name]
        return (*self.path(stage.after), stage) if stage.after else (stage,)

    def followers(self, name: str) -> tuple[Stage, ...]:
        """Return the stages that follow this one directly, in teaching order. Raises KeyError."""
        return tuple(stage for stage in self if stage.after == self[name].name)

    def add(self, stage: Stage) -> None:
        """Add the next stage. Raises ValueError, with what to do, if it breaks a rule of the ladder."""
        if stage.name in self._stages:
            raise ValueError(f"two stages are called {stage.name}: give the new one another name")
        if stage.after not in (self._stages or ("",)):  # the first stage follows no other
            raise ValueError(
                f"{stage.name} follows {stage.after!r}, but no earlier stage is called that: "
                "`after` must name a stage whose file comes before"
            )
        if stage.after and self._stages[stage.after].side:
            raise ValueError(
                f"{stage.name} follows {stage.after}, but nothing follows a side branch: "
                f"remove side=True from {stage.after}, or name another stage in `after`"
            )
        self._stages[stage.name] = stage


def tiles_text(tiles: Mapping[str, int]) -> str:
    """Return tiles in one line, as messages and records write them: "BM=128 BN=128 BK=16"."""
    return " ".join(f"{name}={value}" for name, value in tiles.items())


def multiprocessors() -> int:
    """Return how many multiprocessors the GPU at hand has.

    Without a GPU, return the number of the H200, which the emulator imitates.
    """
    from numba import cuda

    gpu = cuda.get_current_device() if cuda.is_available() else None
    return getattr(gpu, "MULTIPROCESSOR_COUNT", profile().multiprocessors)  # Numba's simulator has none


def tiles_over(length: int, tile: int) -> int:
    """Return how many tiles cover a length."""
    return -(-length // tile)


def columns_by_rows(m: int, n: int, t: SimpleNamespace) -> tuple[int, int]:
    """Return the usual grid, in which x numbers the columns of tiles, and y the rows of tiles."""
    return tiles_over(n, t.BN), tiles_over(m, t.BM)


def fits_block(threads: int, shared_bytes: int) -> Iterator[tuple[bool, str]]:
    """Yield the rules for every block: 1 to 1,024 threads, and shared memory that can be static."""
    yield threads >= 1, "the thread tile is larger than the block's tile: the block would have no threads"
    yield (
        threads <= MAX_THREADS,
        f"these tiles make blocks of {threads} threads; the maximum is {MAX_THREADS}",
    )
    yield (
        shared_bytes <= MAX_STATIC_SHARED_BYTES,
        f"As and Bs take {shared_bytes} bytes of shared memory; the maximum is {MAX_STATIC_SHARED_BYTES}",
    )


def fits_registers(rows: int, columns: int) -> Iterator[tuple[bool, str]]:
    """Yield the rule that a thread's results and the operands of a step leave 32 registers free."""
    needed = rows * columns + rows + columns
    yield (
        needed <= MAX_REGISTERS - 32,
        f"{rows} by {columns} results and their operands need {needed} registers; "
        f"{MAX_REGISTERS - 32} are available",
    )


def registers_for(rows: int, columns: int) -> int:
    """Return how many registers a thread with rows by columns results may use.

    This is twice the number of results, but at least 64 and at most MAX_REGISTERS.
    """
    return min(MAX_REGISTERS, max(64, 2 * rows * columns))


def shares_evenly(
    matrix: str, threads: int, rows: tuple, width: tuple, at_once: int = 1
) -> Iterator[tuple[bool, str]]:
    """Yield the rules by which a block can fetch a tile in passes of whole rows, with no thread idle.

    Each thread fetches `at_once` elements in a pass. rows, width: (name, size) of the tile's two sides.
    """
    per_pass = threads * at_once
    yield (
        per_pass % width[1] == 0,
        f"the {per_pass} elements of {matrix} fetched at a time must be whole rows: "
        f"a multiple of {width[0]} ({width[1]})",
    )
    rows_per_pass = max(1, per_pass // width[1])
    yield (
        rows[1] % rows_per_pass == 0,
        f"{rows[0]} ({rows[1]}) must be a multiple of the {rows_per_pass} rows of {matrix} fetched at a time",
    )


def moves_by_fours(**sizes: int) -> Iterator[tuple[bool, str]]:
    """Yield the rule for each size that it is a multiple of 4 floats, as 128-bit accesses need it."""
    for name, size in sizes.items():
        yield size % 4 == 0, f"{name} ({size}) must be a multiple of 4: four floats move at a time"


def moves_by_eights(**sizes: int) -> Iterator[tuple[bool, str]]:
    """Yield the rule for each size that it is a multiple of 8 FP16 values, as 128-bit accesses need it."""
    for name, size in sizes.items():
        yield size % 8 == 0, f"{name} ({size}) must be a multiple of 8: eight FP16 values move at a time"


def fragments_cover_the_tiles(t: SimpleNamespace, rows: int, columns: int) -> Iterator[tuple[bool, str]]:
    """Yield the rules that the tiles consist of whole smaller tiles.

    Whole warp tiles fill the block's tile, and whole fragments of rows by columns results fill a warp's
    tile. BK must consist of whole fragments too.
    """
    yield t.BM % t.WM == 0, f"BM ({t.BM}) must be a multiple of WM ({t.WM}): whole warp tiles"
    yield t.BN % t.WN == 0, f"BN ({t.BN}) must be a multiple of WN ({t.WN}): whole warp tiles"
    yield t.WM % rows == 0, f"WM ({t.WM}) must be a multiple of {rows}: whole fragments"
    yield t.WN % columns == 0, f"WN ({t.WN}) must be a multiple of {columns}: whole fragments"
    yield t.BK % 16 == 0, f"BK ({t.BK}) must be a multiple of 16: whole fragments"


def accumulators_fit_registers(needed: int) -> Iterator[tuple[bool, str]]:
    """Yield the rule that a warp's accumulators, `needed` registers per lane, take at most half of them."""
    most = MAX_REGISTERS // 2 + 1
    yield needed <= most, f"the warp's accumulators take {needed} registers per lane; the maximum is {most}"


def warp_covers_its_tile(t: SimpleNamespace) -> Iterator[tuple[bool, str]]:
    """Yield the rules that whole warp tiles fill the block's tile, and 32 thread tiles a warp's tile."""
    yield t.BM % t.WM == 0, f"BM ({t.BM}) must be a multiple of WM ({t.WM}): whole warp tiles"
    yield t.BN % t.WN == 0, f"BN ({t.BN}) must be a multiple of WN ({t.WN}): whole warp tiles"
    yield t.WM % t.TM == 0, f"WM ({t.WM}) must be a multiple of TM ({t.TM}): whole thread tiles"
    yield t.WN % t.TN == 0, f"WN ({t.WN}) must be a multiple of TN ({t.TN}): whole thread tiles"
    yield (
        t.WM * t.WN == 32 * t.TM * t.TN,
        f"a warp has 32 threads: WM * WN ({t.WM * t.WN}) must be 32 * TM * TN ({32 * t.TM * t.TN})",
    )


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _distance(wanted: Mapping[str, int], choice: Mapping[str, int]) -> float:
    steps = [abs(math.log2(_positive(wanted[name]) / _positive(choice[name]))) for name in choice]
    return sum(step + (step > 0) / 2 for step in steps)


def _positive(value: object) -> float:
    return max(value, 0.5) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.5


@functools.cache
def _legal_choices(stage: Stage) -> tuple[dict[str, int], ...]:
    names = list(stage.tiles)
    offered = [stage.options.get(name, (stage.tiles[name],)) for name in names]
    choices = (dict(zip(names, values, strict=True)) for values in itertools.product(*offered))
    return tuple(choice for choice in choices if not stage.rules(choice))


@functools.cache
def _kernel(stage: Stage, tiles: tuple[tuple[str, int], ...]):
    from numba import cuda

    return cuda.jit(launch_bounds=stage.launch_bounds(dict(tiles)))(stage.build(**dict(tiles)))
