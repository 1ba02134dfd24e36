"""Compares each stage's default tiles with the fastest measured ones, from which defaults are chosen."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemm_course.device import compile_for, gpu_facts, require_gpu
from gemm_course.kernels import LADDER, Stage, tiles_text
from gemm_course.records import origin, parse_tiles
from gemm_course.records.columns import COMPILED

# A learner who moves a slider waits at most this many seconds for a compilation.
LONGEST_COMPILATION = 2.0
# Only this many of the fastest choices are tried for one that compiles in time.
TRIED = 8


@dataclass(frozen=True)
class Best:
    """A stage's default beside its best choice. Speeds are shares of cuBLAS's speed.

    The best is the fastest choice that compiles in time, or the fastest of all if none of the fastest few
    does. ``default_share`` is None if the default was not measured. ``compile_seconds`` is None if the
    compiler was not timed.
    """

    stage: str
    default: str
    default_share: float | None
    best: str
    best_share: float
    compile_seconds: float | None

    @property
    def ratio(self) -> float | None:
        """The default's speed divided by the best's, which is 1 if the default is the best."""
        return self.default_share / self.best_share if self.default_share else None


def best_choices(
    stages: Sequence[Stage],
    rows: Sequence[Mapping[str, Any]],
    seconds_of: Callable[[Stage, str], float | None] = lambda stage, tiles: None,
) -> list[Best]:
    """Return the best choice of each stage that has measured rows of one shape, as the sweep writes them.

    ``seconds_of`` tells how long a choice takes to compile, or None if unknown. A choice of unknown time may
    be the best.
    """
    return [found for stage in stages if (found := _best(stage, rows, seconds_of)) is not None]


def _best(stage: Stage, rows, seconds_of) -> Best | None:
    mine = sorted(
        (row for row in rows if row["stage"] == stage.name and row["tflops"]),
        key=lambda row: -row["tflops"],
    )
    default = tiles_text(stage.complete())
    share = next((row["ratio_to_cublas"] for row in mine if row["tiles"] == default), None)
    if not mine:
        return None
    fastest = next((row for row in mine[:TRIED] if in_time(seconds_of(stage, row["tiles"]))), mine[0])
    seconds = seconds_of(stage, fastest["tiles"])
    return Best(stage.name, default, share, fastest["tiles"], fastest["ratio_to_cublas"], seconds)


def in_time(seconds: float | None) -> bool:
    """Tell whether a choice with this time to compile may be a default. An unknown time is accepted."""
    return seconds is None or seconds <= LONGEST_COMPILATION


class CompileTimes:
    """The times that choices take to compile, from the record.

    With ``measure``, missing times are measured and recorded.
    """

    def __init__(self, path: Path, command: str, measure: bool):
        self.path, self.command, self.measure = path, command, measure
        self.known = {(row["stage"], row["tiles"]): row["seconds"] for row in COMPILED.rows(path)}
        if measure:
            # The first compilation in a process takes longer, so it is made before any is timed.
            compile_seconds(LADDER[0], {})

    def __call__(self, stage: Stage, tiles: str) -> float | None:
        key = stage.name, tiles
        if key not in self.known and self.measure:
            gpu = gpu_facts()
            self.known[key] = seconds = compile_seconds(stage, parse_tiles(tiles))
            row = {"stage": stage.name, "tiles": tiles, "seconds": seconds}
            COMPILED.append(self.path, [row | origin(gpu.name, gpu.driver, gpu.cuda, self.command)])
        return self.known.get(key)


def compile_seconds(stage: Stage, tiles: Mapping[str, int]) -> float:
    """Return the seconds that this machine takes to compile a choice for its GPU, without a cache.

    Raise NoGpu if there is none.
    """
    from numba import cuda

    from gemm_course.bench.problem import Problem

    require_gpu()
    arguments = stage.arguments(*Problem(64, 64, 64, dtype=stage.dtype).arguments(), tiles=tiles)
    kernel = cuda.jit(launch_bounds=stage.launch_bounds(tiles))(stage.build(**stage.complete(tiles)))
    start = time.perf_counter()
    compile_for(kernel, arguments)
    return time.perf_counter() - start
