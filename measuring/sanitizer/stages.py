"""Runs `python -m measuring sanitize`: every stage under every tool of compute-sanitizer, at odd shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from gemm_course.device import gpu_facts
from gemm_course.kernels import Stage, tiles_text
from gemm_course.records import origin
from gemm_course.records.columns import SANITIZER
from measuring.sanitizer.tool import TOOLS, Outcome, run_under, sanitizer_version

# The shapes are one element, one step more than a tile's depth, k = 0, edges on every side, and whole tiles.
SHAPES = ((1, 1, 1), (129, 131, 17), (67, 130, 0), (63, 65, 9), (300, 77, 103), (256, 512, 128))
SECONDS = 240  # seconds; a program that takes longer counts as hanging
Task = tuple[Stage, Mapping[str, int], str]  # stage, tiles to change, tool


def sanitize_stages(
    stages: Sequence[Stage],
    tiles: Sequence[Mapping[str, int]],
    path: Path,
    tools: Sequence[str] = TOOLS,
    shapes: Sequence[tuple[int, int, int]] = SHAPES,
    workers: int = 1,
    progress: Callable[[str], None] = lambda line: None,
) -> list[dict[str, Any]]:
    """Write a row per stage, choice of tiles, tool and shape, in place of rows of the same stage and tool.

    Return the rows. ``tiles`` are what to change from a stage's default, and an empty mapping is the default
    itself. All shapes run in one process. If that is not clean, each shape runs again by itself, to find the
    culprit. ``progress`` is called with a line for each task that has ended. Raise NoSanitizer or
    IllegalTiles.
    """
    sanitizer_version()  # This fails before any process is started if there is no compute-sanitizer.
    tasks = [(stage, stage.complete(change), tool) for stage in stages for change in tiles for tool in tools]
    for stage, change, _ in tasks:
        stage.block(change)  # This raises IllegalTiles.
    rows, earlier = [], SANITIZER.rows(path)
    with ThreadPoolExecutor(workers) as pool:
        running = [pool.submit(_rows, task, shapes, progress) for task in tasks]
        for ended in as_completed(running):
            rows += ended.result()
            done = {(row["stage"], row["tool"]) for row in rows}
            kept = [row for row in earlier if (row["stage"], row["tool"]) not in done]
            SANITIZER.write(path, kept + rows)
    return rows


def _rows(task: Task, shapes, progress) -> list[dict[str, Any]]:
    outcome, command = _run(task, shapes)
    progress(f"{task[0].name} {task[2]}: {outcome.verdict}")
    if outcome.verdict == "clean":
        return [_row(task, shape, outcome, command) for shape in shapes]
    return [_row(task, shape, *_run(task, [shape])) for shape in shapes]


def _run(task: Task, shapes) -> tuple[Outcome, str]:
    stage, tiles, tool = task
    program = ["-m", "measuring.sanitizer.child", stage.name, tiles_text(tiles)]
    return run_under(tool, [*program, *("x".join(map(str, shape)) for shape in shapes)], SECONDS)


def _row(task: Task, shape, outcome: Outcome, command: str) -> dict[str, Any]:
    stage, tiles, tool = task
    gpu = gpu_facts()
    return {
        "stage": stage.name,
        "tiles": tiles_text(tiles),
        **dict(zip("mnk", shape, strict=True)),
        "tool": tool,
        "verdict": outcome.verdict,
        "errors": outcome.errors,
        "message": outcome.message,
        "compute_sanitizer": sanitizer_version(),
        **origin(gpu.name, gpu.driver, gpu.cuda, command),
    }
