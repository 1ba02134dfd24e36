"""Holds what was measured of a kernel on a GPU: where its warps were, and how busy the GPU's parts were."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemm_course.compiler import Compiled
from gemm_course.compiler.disassembly import SIZE, Instruction
from gemm_course.compiler.kinds import KINDS
from gemm_course.kernels import LADDER, Stage, tiles_text
from gemm_course.kernels.variants import called
from gemm_course.profiles.store import COUNTED, FOLDER, TABLE, USUAL, read
from gemm_course.profiles.waits import WAITS, wait_of
from gemm_course.records import Place, folder_of, parse_tiles
from gemm_course.records.columns import PROFILE
from lockstep import did_you_mean

if TYPE_CHECKING:
    import pandas as pd


class NoProfile(LookupError):
    """The error for a kernel without a recorded profile. Its message says which profiles there are."""


@dataclass(frozen=True, eq=False)
class Profile:
    """One launch of a kernel, as Nsight Compute saw it.

    ``name`` is the stage's or the kernel's. ``tiles`` is such as "BM=128 BN=128", or "" for a kernel that
    belongs to no stage. ``measured`` is the row of `records.profiles`: clocks, how busy the parts of the GPU
    were, warps, counters. ``code`` is the machine code that ran. ``content`` is the profile's file, as in
    `store`. ``sources`` maps file -> line -> its text, for the functions that instructions came from.
    """

    name: str
    tiles: str
    measured: Mapping[str, Any]
    code: Compiled
    content: Mapping[str, Any] = field(repr=False)

    @cached_property
    def instructions(self) -> pd.DataFrame:
        """A row for each instruction, as in `Compiled.instructions`, with what was measured of it.

        The column executed says how often warps executed it. threads says how often threads did, without
        those whose predicate was off. global_sectors and shared_wavefronts are those of its accesses. samples
        says how often a sampled warp was there. A column for each of WAITS says how many of these samples are
        of that wait.
        """
        import pandas as pd

        rows = self.code.rows
        waits = {name: [0] * len(rows) for name in WAITS}
        for reason, counts in self.content["samples"].items():
            for place, count in enumerate(counts):
                if count:
                    waits[wait_of(reason, rows, place)][place] += count
        counted = {name: self.content[name] for name in COUNTED}
        frame = pd.concat([self.code.instructions, pd.DataFrame({**counted, **waits})], axis=1)
        frame.insert(frame.columns.get_loc(next(iter(WAITS))), "samples", frame[list(WAITS)].sum(axis=1))
        return frame

    @cached_property
    def samples(self) -> int:
        """The number of samples of all warps together."""
        return int(self.instructions["samples"].sum())

    @cached_property
    def waits(self) -> dict[str, float]:
        """The share of its time that a warp spends on each of WAITS. Together they are 1.

        All are 0 for a launch that was too short for a sample.
        """
        sums = self.instructions[list(WAITS)].sum()
        return {name: float(sums[name] / max(1, self.samples)) for name in WAITS}

    @cached_property
    def executed(self) -> dict[str, int]:
        """The number of instructions that warps executed, by kind: all kinds, in the order of KINDS."""
        sums = self.instructions.groupby("kind")["executed"].sum()
        return {kind: int(sums.get(kind, 0)) for kind in KINDS}

    @cached_property
    def by_line(self) -> pd.DataFrame:
        """A row for each file and line: counts, samples, also by wait, and executed instructions by kind."""
        import pandas as pd

        frame = self.instructions
        place = [frame["file"], frame["line"]]
        sums = frame.groupby(place)[[*COUNTED, "samples", *WAITS]].sum()
        kinds = frame.pivot_table("executed", ["file", "line"], "kind", "sum", fill_value=0)
        return pd.concat([sums, kinds[[kind for kind in KINDS if kind in kinds.columns]]], axis=1)

    @property
    def sources(self) -> dict[str, dict[int, str]]:
        return {
            file: {int(line): text for line, text in lines.items()}
            for file, lines in self.content["sources"].items()
        }

    @property
    def tflops(self) -> float | None:
        """The TFLOPS of the profiled launch.

        It is None for a kernel that is not a matrix multiplication of known size, or whose time was not
        measured. The bench's many launches in a row say better how fast a kernel is.
        """
        row = self.measured
        if row["m"] is None or row["nanoseconds"] is None:
            return None
        return 2 * row["m"] * row["n"] * row["k"] / row["nanoseconds"] / 1000

    def __repr__(self) -> str:
        most = Counter(self.waits).most_common(3)
        spent = ", ".join(f"{name} {share:.0%}" for name, share in most if share)
        row = self.measured
        tiles = f" ({self.tiles})" if self.tiles else ""
        size = "" if row["m"] is None else f" at {row['m']} × {row['n']} × {row['k']}"
        took = f": {row['nanoseconds'] / 1e6:.3g} ms" if row["nanoseconds"] is not None else ""
        return f"{self.name}{tiles}{size} on an {row['gpu']}{took}; a warp's time: {spent or 'not sampled'}"


def recorded(
    stage: Stage | str,
    tiles: Mapping[str, int] | None = None,
    size: int | tuple[int, int, int] = USUAL,
    gpu: str | Place = "h200",
    data: Path | None = None,
) -> Profile:
    """Return the recorded profile of a stage, or of another kernel by the name that the record has.

    ``tiles`` are sizes to change from the stage's defaults. The default of BLOCKS depends on the GPU, and
    here it is that of the recorded GPU. ``size`` is m = n = k, or (m, n, k). ``gpu`` is its name among the
    records. Raise NoProfile, with what was recorded, and UnknownGpu.
    """
    name = stage if isinstance(stage, str) else stage.name
    shape = (size, size, size) if isinstance(size, Integral) else tuple(size)
    known = called(name)
    chosen = known.complete(tiles) if known else dict(tiles or {})
    free = {"BLOCKS"} - (tiles or {}).keys()

    def fixed(sizes: Mapping[str, int]) -> dict[str, int]:
        return {tile: value for tile, value in sizes.items() if tile not in free}

    folder = folder_of(gpu, data) / FOLDER
    rows = _rows(folder / TABLE)
    for row in rows:
        about = (row["stage"], fixed(parse_tiles(row["tiles"])), row["m"], row["n"], row["k"])
        if about == (name, fixed(chosen), *shape):
            return _read(folder / row["file"], tuple(row.items()))
    raise NoProfile(_what_there_is(rows, name, tiles_text(chosen), shape))


def _what_there_is(rows: list[dict], name: str, tiles: str, shape: tuple[int, int, int]) -> str:
    names = list(dict.fromkeys(row["stage"] for row in rows))
    if name not in names:
        if name not in LADDER and not did_you_mean(name, names):
            return (
                f"{name} is no stage of the ladder, and no profile of it was recorded. On a GPU with Nsight "
                f"Compute, `profiled({name})` makes one: `see.limits(profiled({name}))`."
            )
        known = ", ".join(names) or "no other"
        return f"no profile was recorded of {name}, but of {known}{did_you_mean(name, names) or '.'}"
    settings = (_setting(row["tiles"], row["m"], row["n"], row["k"]) for row in rows if row["stage"] == name)
    return (
        f"no profile was recorded of {name} with {_setting(tiles, *shape)}; there is {'; '.join(settings)}."
    )


def _setting(tiles: str, m: int, n: int, k: int) -> str:
    return f"{tiles} at {m} × {n} × {k}"


@functools.lru_cache(maxsize=4)
def _rows(path: Path) -> list[dict[str, Any]]:
    return PROFILE.rows(path)


@functools.lru_cache(maxsize=32)
def _read(path: Path, row: tuple[tuple[str, Any], ...]) -> Profile:
    return profile_of(dict(row), read(path))


def profile_of(measured: Mapping[str, Any], content: Mapping[str, Any]) -> Profile:
    """Return the profile that a row of `records.profiles` and the file beside it, as in `store`, describe."""
    places = zip(content["text"], content["file"], content["line"], strict=True)
    code = Compiled(
        name=measured["stage"],
        tiles=measured["tiles"],
        compute_capability=tuple(content["compute_capability"]),
        registers=measured["registers"],
        spilled_bytes=content["spilled_bytes"],
        local_bytes=measured["local_bytes"],
        shared_bytes=measured["static_shared_bytes"] + measured["dynamic_shared_bytes"],
        static_shared_bytes=measured["static_shared_bytes"],
        seconds=None,
        compiler=content["compiler"],
        rows=[Instruction(SIZE * i, text, file, line) for i, (text, file, line) in enumerate(places)],
    )
    return Profile(measured["stage"], measured["tiles"], measured, code, content)
