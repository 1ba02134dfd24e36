"""The tile explorer: is the choice legal, what does it take, what does it save, and what was measured for"
" it."""

from __future__ import annotations

import math
from functools import lru_cache

import ipywidgets as widgets
import numpy as np
from IPython.display import display

from gemm_course import records
from gemm_course.device import gpu_available
from gemm_course.emulator import emulate
from gemm_course.figures import charts
from gemm_course.figures import tiles as figure
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER, Stage, describe
from gemm_course.model import occupancy
from gemm_course.run import run
from gemm_course.widgets._canvas import Canvas, Text
from gemm_course.widgets._charts import roofs
from gemm_course.widgets._explorer import Explorer

WIDE = 1024  # columns of the matrices that one block's accesses are counted on
SIZE = 4096  # the matrices that the sweep measured


def tiles(name: str) -> None:
    """Show sliders for the tile sizes of a stage, what they imply, and where they stand on the roofline."""
    stage = LADDER[name]
    controls = {size: (size, options, stage.tiles[size]) for size, options in stage.options.items()}
    pictures = [lambda **chosen: draw(stage, chosen), lambda **chosen: on_roofline(stage, chosen)]
    explorer = Explorer(pictures, controls)
    explorer.show()
    if gpu_available():
        _offer_to_measure(stage, explorer)


def _offer_to_measure(stage: Stage, explorer: Explorer) -> None:
    """Put a button under the pictures that runs the chosen tiles on this machine's GPU."""
    button = widgets.Button(description="Measure here", tooltip="Run these tiles on this machine's GPU")
    canvas = Canvas()
    display(button)
    canvas.show(Text("Not measured on this machine yet."))
    button.on_click(lambda _: canvas.show(Text(measured_here(stage, explorer.controls.values()))))


def measured_here(stage: Stage, chosen: dict[str, int]) -> str:
    """Run a choice of tiles on this machine's GPU, SIZE³, and say how fast it was, or why it cannot run."""
    if stage.rules(chosen):
        return f"{describe(chosen)} cannot run."
    A, B = (np.random.default_rng(seed).random((SIZE, SIZE), np.float32) for seed in (1, 2))
    result = run(stage, A, B, tiles=chosen, backend="gpu")
    return f"{describe(chosen)}: {result.tflops:.3g} TFLOPS on this machine ({SIZE}³, FP32)."


def draw(stage: Stage, chosen: dict[str, int]) -> Picture:
    """Draw one choice of tiles to scale beside what it takes and saves; broken rules in words."""
    broken = stage.rules(chosen)
    if broken:
        nearest = describe(stage.nearest_legal(chosen))
        facts = [("the nearest choice that can", nearest)]
        return figure.choice(chosen, f"{describe(chosen)} cannot run", facts, broken)
    return figure.choice(chosen, f"{describe(chosen)} can run", _facts(stage, chosen), [])


def on_roofline(stage: Stage, chosen: dict[str, int]) -> Picture:
    """Draw where a choice of tiles stands on the H200's roofline, with measured TFLOPS if there are any."""
    legal = not stage.rules(chosen)
    cost = _cost(stage.name, tuple(chosen.items())) if legal else None
    best = _best(stage.name)
    points = []
    if best and best != chosen:
        points.append(_point("best measured", stage, best, False))
    if cost:
        points.append(_point("this tile", stage, chosen, True))
    measured = [point for point in points if point.now and point.tflops]
    title = (
        f"{stage.name}: {measured[0].tflops:.3g} TFLOPS measured with these tiles"
        if measured
        else f"{stage.name}: not measured with these tiles"
        if legal
        else f"{stage.name}: these tiles cannot run"
    )
    return charts.roofline(*roofs(), points, title, _source())


def _point(label: str, stage: Stage, chosen: dict[str, int], now: bool) -> charts.Point:
    row = _measured(stage.name, tuple(chosen.items()))
    return charts.Point(label, _cost(stage.name, tuple(chosen.items())).intensity, row.get("tflops"), now)


def _facts(stage: Stage, chosen: dict[str, int]) -> list[tuple[str, str]]:
    threads = math.prod(stage.block(chosen))
    cost = _cost(stage.name, tuple(chosen.items()))
    row = _measured(stage.name, tuple(chosen.items()))
    held = occupancy(threads, row.get("registers", 0), cost.shared_bytes)
    registers = f"{row['registers']} a thread" if "registers" in row else "not known without compiling"
    return [
        ("threads a block", f"{threads} = {-(-threads // 32)} warps"),
        ("shared memory a block", f"{cost.shared_bytes} bytes"),
        ("registers", registers),
        ("an SM holds" if "registers" in row else "an SM holds at most", _held(held)),
        ("global loads a multiply-add", f"{cost.loads:.4g} (naive: 2)"),
        ("sectors a load request", f"{cost.sectors:.3g}"),
        ("shared wavefronts a warp-wide FMA", f"{cost.wavefronts:.3g}"),
        (f"measured on an H200, {SIZE}³", _speed(stage, row)),
    ]


def _held(held) -> str:
    if not held.blocks:
        return f"no block: too many {held.limited_by[0]}"
    blocks = "1 block" if held.blocks == 1 else f"{held.blocks} blocks"
    return f"{blocks} = {held.warps} of {held.most_warps} warps, limited by {' and '.join(held.limited_by)}"


def _speed(stage: Stage, row: dict) -> str:
    best = _best(stage.name)
    if "tflops" not in row:
        return row.get("reason") or "not measured"
    if not best:
        return f"{row['tflops']:.3g} TFLOPS"
    top = _measured(stage.name, tuple(best.items()))["tflops"]
    return f"{row['tflops']:.3g} TFLOPS; best: {top:.3g} with {describe(best)}"


class Cost:
    """What one block does for one step of its tiles along k, from the emulator, for each multiply-add."""

    def __init__(self, report, fma: int):
        self.shared_bytes = report.shared_bytes
        requests = report.total("requests", space="global", op="load")
        moved = report.total("sectors", space="global", op="load")
        self.loads = report.total("lanes", space="global", op="load") / fma
        self.sectors = moved / requests
        self.wavefronts = 32 * report.total("wavefronts", space="shared", op="load") / fma
        self.intensity = 2 * fma / (32 * moved)


@lru_cache(1024)
def _cost(name: str, chosen: tuple[tuple[str, int], ...]) -> Cost:
    stage, sizes = LADDER[name], dict(chosen)
    m, n, k = sizes["BM"], sizes["BN"], sizes.get("BK", 8)
    A, B, C = (np.broadcast_to(np.float32(0), (WIDE, WIDE)) for _ in range(3))
    launch = (stage.kernel(sizes), stage.grid(m, n, sizes), stage.block(sizes))
    problem = (m, n, k, np.float32(1), A, B, np.float32(0), C)
    report = emulate(*launch, *problem, shared_bytes=stage.shared_bytes(sizes), counts_only=True)
    return Cost(report, m * n * k)


@lru_cache
def _source() -> str:
    """Return where the measured figures come from, in one line."""
    return f"FP32, {SIZE}³; {records.provenance(records.sweep())}"


@lru_cache
def _best(name: str) -> dict[str, int] | None:
    return records.best_tiles(name)


@lru_cache
def _sweep():
    """Return the recorded sweep by (stage, tiles)."""
    rows = records.sweep()
    rows = rows[(rows["m"] == SIZE) & (rows["n"] == SIZE) & (rows["k"] == SIZE)]
    return {(row["stage"], row["tiles"]): row for row in rows.to_dict("records")}


def _measured(name: str, chosen: tuple[tuple[str, int], ...]) -> dict:
    """Return what was recorded for these very tiles, without the fields that are missing."""
    row = _sweep().get((name, records.tiles_text(dict(chosen))), {})
    kept = {key: row[key] for key in ("tflops", "registers", "reason") if key in row}
    return {key: value for key, value in kept.items() if value not in ("", None) and value == value}
