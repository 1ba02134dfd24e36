"""Compares two stages by counts of the emulator, to show what the second one saves."""

from __future__ import annotations

from collections.abc import Mapping

from gemm_course.figures.counts import side_by_side
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER
from gemm_course.widgets import _charts

SIZE = 1024


def compare(before: str, after: str, tiles: Mapping[str, int], *counted: str) -> Picture:
    """Draw counts of two stages with the same tiles, matrices of 1024³, beta = 0, as written in the source.

    ``tiles`` has sizes for both stages. A stage ignores those it does not have, and keeps its default for
    those not given. ``counted`` are names such as "global_load_requests", made of global or shared, load or
    store, and requests, sectors (global) or wavefronts (shared).
    """
    reports = [_report(stage, tiles) for stage in (before, after)]
    rows, gains = [], []
    for name in counted:
        if name not in _charts._SITES:
            raise ValueError(f"there is no count called {name}; there are {', '.join(_charts._SITES)}")
        space, op, column = name.split("_")
        old, new = (report.total(column, space=space, op=op) for report in reports)
        label = name.replace("_", " ")
        rows.append((label, {"before": old, "after": new}))
        gains.append(f"{label} × {new / old:.3g}" if old else f"{label}: {new}")
    note = f"Before is {before}, after {after}, {SIZE}³, counted by the emulator on the source."
    return side_by_side(rows, f"{after}: {', '.join(gains)}", note)


def _report(name: str, tiles: Mapping[str, int]):
    stage = LADDER[name]
    chosen = stage.complete({size: value for size, value in tiles.items() if size in stage.tiles})
    return _charts._counted(name, (SIZE,) * 3, tuple(chosen.items()))
