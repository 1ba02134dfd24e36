"""Looks up the recorded sweep of a GPU by stage and tiles.

Tiles that were not measured have no figures, and none are guessed from neighbours. ``on`` is everywhere the
GPU that was measured.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from gemm_course import records
from gemm_course.kernels import LADDER, Stage
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets._gpus import left_out, remembered

# The sweep measured square matrices of this size.
SIZE = 4096


@dataclass(frozen=True)
class Choice:
    """A choice of tiles and what the sweep recorded for it.

    ``tflops`` is None if the choice could not be measured, and ``reason`` then says why, in words.
    ``shared_bytes`` are the bytes per block, and ``local_bytes`` those of local memory per thread, as the
    driver counts them.
    """

    tiles: Mapping[str, int]
    tflops: float | None
    registers: int | None
    reason: str
    shared_bytes: int | None = None
    local_bytes: int | None = None


def recorded(stage: Stage, tiles: Mapping[str, int], on: Place = SHIPPED) -> Choice | None:
    """Return what was recorded for exactly these tiles, or None."""
    return _known(stage, on).get(_key(stage, tiles))


def speed(stage: Stage, tiles: Mapping[str, int], on: Place = SHIPPED) -> float | None:
    """Return the TFLOPS measured for exactly these tiles, or None."""
    choice = recorded(stage, tiles, on)
    return choice.tflops if choice else None


def measured(stage: Stage, on: Place = SHIPPED) -> list[Choice]:
    """Return every choice of a stage that has TFLOPS."""
    return [choice for choice in _known(stage, on).values() if choice.tflops is not None]


def best(stage: Stage, on: Place = SHIPPED) -> Choice | None:
    """Return the fastest choice that was measured, or None."""
    return max(measured(stage, on), key=lambda choice: choice.tflops, default=None)


def nearest(stage: Stage, tiles: Mapping[str, int], count: int, on: Place = SHIPPED) -> list[Choice]:
    """Return the ``count`` measured choices the fewest slider steps away, without the tiles themselves."""
    away = [(steps(stage, tiles, choice.tiles), choice) for choice in measured(stage, on)]
    away = sorted(((far, -choice.tflops, choice) for far, choice in away if far), key=lambda each: each[:2])
    return [choice for _, _, choice in away[:count]]


def steps(stage: Stage, here: Mapping[str, int], there: Mapping[str, int]) -> int:
    """Count the slider steps between two choices, summed over all sliders."""
    return sum(abs(_place(stage, name, here[name]) - _place(stage, name, there[name])) for name in there)


@remembered
def cublas(stage: Stage, on: Place = SHIPPED) -> float | None:
    """Return the median TFLOPS of cuBLAS in the sweep of a stage, or None if it was not swept."""
    ran = _rows(stage.name, on)["cublas_tflops"].dropna()
    return float(ran.median()) if len(ran) else None


@remembered
def source(stage: Stage, on: Place = SHIPPED) -> str:
    """Return in one line what was measured where, or "" if the stage was not swept."""
    rows = _rows(stage.name, on)
    if rows.empty:
        return ""
    return f"{'/'.join(sorted(set(rows['dtype']))).upper()}, {SIZE}³; {records.provenance(rows)}"


def missing(stage: Stage, on: Place = SHIPPED) -> str:
    """Say that a stage was not swept on a GPU, and, for a stage of the ladder, which command sweeps it."""
    if stage.name not in LADDER:
        return f"{stage.name} has not been measured yet."
    return left_out([stage], on, "sweep")


def _place(stage: Stage, name: str, value: int) -> int:
    return bisect_left(stage.options.get(name, ()), value)


def _key(stage: Stage, tiles: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(stage.complete(tiles).values())


@remembered
def _sweep(on: Place = SHIPPED):
    """Return the rows of the recorded sweep for SIZE."""
    rows = records.sweep(on)
    return rows[(rows["m"] == SIZE) & (rows["n"] == SIZE) & (rows["k"] == SIZE)]


def _rows(name: str, on: Place = SHIPPED):
    rows = _sweep(on)
    return rows[rows["stage"] == name]


def _known(stage: Stage, on: Place = SHIPPED) -> dict[tuple[int, ...], Choice]:
    """Return a stage's recorded choices by their sizes. A learner's own stage has none."""
    return _choices(stage.name, on) if stage.name in LADDER else {}


@remembered
def _choices(name: str, on: Place = SHIPPED) -> dict[tuple[int, ...], Choice]:
    """Return a stage's recorded choices by their sizes, in the order of the stage's tiles.

    Rows from before the stage's tile sizes changed are left out.
    """
    stage, found = LADDER[name], {}
    rows = _rows(name, on)
    columns = ("tiles", "tflops", "registers", "shared_bytes", "local_bytes", "reason")
    for text, tflops, *counts, reason in zip(*(rows[column] for column in columns), strict=True):
        tiles = records.parse_tiles(text)
        if set(tiles) == set(stage.tiles):
            registers, *in_memory = (None if pd.isna(count) else int(count) for count in counts)
            speed = tflops if tflops == tflops else None
            sizes = {size: tiles[size] for size in stage.tiles}
            known = Choice(sizes, speed, registers, reason, *in_memory)
            found[_key(stage, tiles)] = known
    return found
