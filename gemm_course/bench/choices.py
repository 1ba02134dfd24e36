"""Decides which tile choices a sweep measures, which it has measured already, and which comes next."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemm_course.kernels import Stage, tiles_text
from gemm_course.records import parse_tiles
from gemm_course.records.columns import SHORT_DTYPES, SWEEP

# A task is a stage's name and its tiles.
Task = tuple[str, dict[str, int]]
# Choices near a stage's fastest ones are promising, and this many count as the fastest.
FASTEST = 5
# As a guess, each doubling or halving of a size keeps this share of the speed.
KEPT_PER_STEP = 0.85
# One choice in this many is the next in the given order, promising or not.
EXPLORE = 3


def choices(stages: Sequence[Stage], seed: int = 0) -> list[Task]:
    """Return what to measure, with stages in turn, the default tiles first and then legal choices at random.

    The order is the same every time, so a part of it is a fair sample.
    """
    columns = []
    for stage in stages:
        legal = [choice for choice in stage.legal_choices() if choice != stage.complete()]
        random.Random(f"{seed} {stage.name}").shuffle(legal)
        columns.append([(stage.name, tiles) for tiles in [stage.complete(), *legal]])
    rows = itertools.zip_longest(*columns)
    return [task for row in rows for task in row if task is not None]


def rows_at(shape: tuple[int, int, int], path: Path) -> list[dict[str, Any]]:
    """Return the rows of the file at this shape, after removing a line that an interruption cut short."""
    SWEEP.cut_partial_line(path)
    return [row for row in SWEEP.rows(path) if (row["m"], row["n"], row["k"]) == tuple(shape)]


def remaining(tasks: Iterable[Task], rows: Iterable[Mapping[str, Any]]) -> list[Task]:
    """Return the tasks that have no row yet."""
    listed = {(row["stage"], row["tiles"]) for row in rows}
    return [(stage, tiles) for stage, tiles in tasks if (stage, tiles_text(tiles)) not in listed]


def forget(stages: Iterable[str], shape: tuple[int, int, int], path: Path) -> int:
    """Drop the rows of stages whose kernels have changed, at this shape.

    Return the number of dropped rows.
    """
    SWEEP.cut_partial_line(path)
    rows, names = SWEEP.rows(path), set(stages)
    kept = [
        row for row in rows if row["stage"] not in names or (row["m"], row["n"], row["k"]) != tuple(shape)
    ]
    if len(kept) < len(rows):
        SWEEP.write(path, kept)
    return len(rows) - len(kept)


class Queue:
    """A queue of tasks, which gives them out in the given order or the most promising first.

    A choice is promising if it is near fast ones. Its expected speed is that of one of the stage's fastest
    choices so far, less a share for each size in which the two differ. Every third choice of a stage is still
    the next in the given order, and so is every choice before one of the stage has been measured.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        rows: Iterable[Mapping[str, Any]] = (),
        most: int | None = None,
        promising: bool = False,
    ):
        """Take over ``rows``, which were measured already.

        ``most`` limits the rows per stage, including these.
        """
        self.promising = promising
        self.waiting: dict[str, list[dict[str, int]]] = {}
        self.fastest: dict[str, list[tuple[float, dict[str, int]]]] = {}
        self.taken: dict[str, int] = {}
        rows = list(rows)
        listed = [row["stage"] for row in rows]
        for stage, tiles in tasks:
            self.waiting.setdefault(stage, []).append(tiles)
        self.quota = {
            stage: len(tiles) if most is None else min(len(tiles), max(0, most - listed.count(stage)))
            for stage, tiles in self.waiting.items()
        }
        for row in rows:
            self.learn(row)

    def __len__(self) -> int:
        return sum(self.quota.values())

    def take(self) -> Task:
        """Return the next task, with stages in turn. Raise IndexError if there is none."""
        stage = min(
            (stage for stage, left in self.quota.items() if left),
            key=lambda stage: self.taken.get(stage, 0),
            default=None,
        )
        if stage is None:
            raise IndexError("no tile choice is left")
        self.taken[stage] = number = self.taken.get(stage, 0) + 1
        self.quota[stage] -= 1
        return stage, self.waiting[stage].pop(self._place(stage, number))

    def put_back(self, task: Task) -> None:
        """Put back a task that was not done. It comes first again."""
        stage, tiles = task
        self.waiting[stage].insert(0, tiles)
        self.quota[stage] += 1
        self.taken[stage] -= 1

    def learn(self, row: Mapping[str, Any]) -> None:
        """Count a measured row among the speeds that decide which choices are promising."""
        if self.promising and row["tflops"]:
            speeds = self.fastest.setdefault(row["stage"], [])
            speeds.append((row["tflops"], parse_tiles(row["tiles"])))
            speeds.sort(key=lambda speed: -speed[0])
            del speeds[FASTEST:]

    def _place(self, stage: str, number: int) -> int:
        fastest = self.fastest.get(stage)
        if not fastest or number % EXPLORE == 0:
            return 0
        waiting = self.waiting[stage]
        return max(range(len(waiting)), key=lambda place: _promise(waiting[place], fastest))


def _promise(tiles: Mapping[str, int], fastest: Sequence[tuple[float, Mapping[str, int]]]) -> float:
    """Return the TFLOPS expected of these tiles, as a guess."""
    return max(speed * KEPT_PER_STEP ** steps_between(tiles, known) for speed, known in fastest)


def steps_between(one: Mapping[str, int], other: Mapping[str, int]) -> float:
    """Return the distance of two choices, in doublings plus half a step for each size that differs."""
    doublings = [abs(math.log2(max(one[name], 0.5) / max(other[name], 0.5))) for name in one]
    return sum(steps + (steps > 0) / 2 for steps in doublings)


def illegal_rows(
    stages: Sequence[Stage], shape: tuple[int, int, int], path: Path
) -> Iterator[dict[str, Any]]:
    """Yield a row for every choice of the sliders that breaks a rule and has no row in the file yet.

    The row's reason names the rules.
    """
    listed = {(row["stage"], row["tiles"]) for row in rows_at(shape, path)}
    for stage in stages:
        names = list(stage.tiles)
        for values in itertools.product(*(stage.options.get(name, (stage.tiles[name],)) for name in names)):
            tiles = dict(zip(names, values, strict=True))
            broken = stage.rules(tiles)
            if broken and (stage.name, tiles_text(tiles)) not in listed:
                yield {
                    **dict.fromkeys(SWEEP.columns),
                    **common_columns(stage, shape),
                    "tiles": tiles_text(tiles),
                    "reason": "illegal: " + "; ".join(broken),
                }


def common_columns(stage: Stage, shape: tuple[int, int, int]) -> dict[str, Any]:
    """Return the columns that every row of a stage at a shape has in common."""
    return {
        "stage": stage.name,
        "dtype": SHORT_DTYPES[stage.dtype],
        "accumulate": SHORT_DTYPES[stage.accumulate],
        **dict(zip("mnk", shape, strict=True)),
    }


@dataclass(frozen=True)
class Standing:
    """The progress of the sweep of one stage. Speeds are in TFLOPS."""

    stage: str
    measured: int
    failed: int
    left: int
    best_tiles: str
    best_tflops: float | None


def standings(stages: Sequence[Stage], rows: Sequence[Mapping[str, Any]]) -> list[Standing]:
    """Count each stage's rows. Choices that break a rule count neither as failed nor as left."""
    found = []
    for stage in stages:
        mine = [row for row in rows if row["stage"] == stage.name]
        measured = [row for row in mine if row["tflops"]]
        failed = [row for row in mine if not row["tflops"] and not row["reason"].startswith("illegal")]
        left = len(remaining(choices([stage]), mine))
        best = max(measured, key=lambda row: row["tflops"], default=None)
        found.append(
            Standing(
                stage.name,
                len(measured),
                len(failed),
                left,
                best["tiles"] if best else "",
                best["tflops"] if best else None,
            )
        )
    return found
