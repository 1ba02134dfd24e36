"""Decides which profiles to make: those of the ladder and of `cases`, or those that a command names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gemm_course.bench.profile.cases import ASKED
from gemm_course.bench.profile.sources import Source, stage_named
from gemm_course.kernels import LADDER, Stage, tiles_text
from gemm_course.profiles.store import KEY, SUFFIX, USUAL, file_name
from gemm_course.records import parse_tiles

Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Wanted:
    """A profile to make, which is that of a stage with all its tiles at a shape (m, n, k)."""

    stage: Stage
    tiles: Mapping[str, int]
    shape: Shape

    @property
    def about(self) -> dict[str, Any]:
        """The columns that say which case a row is."""
        m, n, k = self.shape
        return {
            "stage": self.stage.name,
            "tiles": tiles_text(self.tiles),
            "m": m,
            "n": n,
            "k": k,
            "file": self.file,
        }

    @property
    def key(self) -> tuple:
        return tuple(self.about[name] for name in KEY)

    @property
    def file(self) -> str:
        return file_name(self.stage, self.tiles, self.shape) + SUFFIX

    @property
    def source(self) -> Source:
        tiles = tiles_text(self.tiles)
        return Source("stages", (self.stage.name,), (self.shape,), tiles=tiles, betas=(0.0,))

    def __str__(self) -> str:
        m, n, k = self.shape
        return f"{self.stage.name} {tiles_text(self.tiles)} at {m}x{n}x{k}"


def wanted(stages: Iterable[str], tiles: Sequence[str], shapes: Iterable[Shape]) -> list[Wanted]:
    """Return each stage or variant with each change of tiles at each shape.

    Raise ValueError for an unknown name, and IllegalTiles for tiles that break a rule.
    """
    shapes = list(shapes)
    return [_wanted(name, text, shape) for name in stages for text in (tiles or ("",)) for shape in shapes]


def recorded_ones(stages: Sequence[str] = ()) -> list[Wanted]:
    """Return the profiles of the records: the ladder at default tiles and the usual size, and `cases.ASKED`.

    ``stages`` are names, to get the profiles of these alone. A stage without any in the records gets one at
    its default tiles. Raise ValueError for an unknown name.
    """
    ladder = wanted((stage.name for stage in LADDER), (), [(USUAL,) * 3])
    asked = [_wanted(one.stage, one.tiles, (size,) * 3) for one in ASKED for size in one.sizes]
    found = {one.key: one for one in [*ladder, *asked]}.values()
    if not stages:
        return list(found)
    of_stages = [one for one in found if one.stage.name in stages]
    others = [name for name in stages if name not in {one.stage.name for one in of_stages}]
    return [*of_stages, *wanted(others, (), [(USUAL,) * 3])]


def _wanted(name: str, tiles: str, shape: Shape) -> Wanted:
    stage = stage_named(name)
    chosen = stage.complete(parse_tiles(tiles))
    # This call raises IllegalTiles if the tiles break a rule.
    stage.grid(*shape[:2], chosen)
    return Wanted(stage, chosen, shape)
