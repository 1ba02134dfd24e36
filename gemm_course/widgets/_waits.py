"""What a warp waits for, in stages of the ladder and in a learner's own kernel, from recorded profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from gemm_course.compiler.kinds import TENSOR_CORE
from gemm_course.figures import waits as figure
from gemm_course.figures.picture import Picture
from gemm_course.figures.waits import GOOD, Bar, percent
from gemm_course.profiles import WAITS, Profile
from gemm_course.profiles.store import USUAL
from gemm_course.widgets._labels import labels
from gemm_course.widgets._profiled import Kernel, note, profiles_of, unusual_tiles

PARTS = {  # what can be busy beside the schedulers, as in records.columns.PROFILE_BUSY
    "fma_pipe": "multiply-add units",
    "alu_pipe": "integer units",
    "lsu_pipe": "load-store units",
    "tensor_pipe": "Tensor Cores",
    "uniform_pipe": "uniform units",
    "xu_pipe": "units for roots",
    "l1_data": "L1 and shared memory",
    "l1_writeback": "L1's way to registers",
    "l1_requests": "requests to L1",
    "l2": "L2",
    "l2_to_sm": "L2's way to the SMs",
    "dram": "DRAM",
}


def waits(*kernels: Kernel, size: int | tuple[int, int, int] = USUAL) -> Picture:
    """Draw what a warp spends its time on, a bar for each kernel, and how busy the hardware was meanwhile.

    kernels: stages of the ladder or their names, with default tiles; ("vectorized", {"TM": 8}) or
    {"vectorized": {"TM": 8}} for other tiles; profiles, such as that of your own kernel. Without any, all
    stages of which there is a profile. size: m = n = k, or (m, n, k), of what is recorded.

    Raises NoProfile, a LookupError, with what is recorded; ValueError for a profile without samples.
    """
    profiles = profiles_of(kernels, size)
    bars = [_bar(profile, label) for profile, label in zip(profiles, labels(profiles), strict=True)]
    if len(bars) > figure.DETAILED:
        bars = [replace(bar, tiles=unusual_tiles(one)) for bar, one in zip(bars, profiles, strict=True)]
    return figure.waits(bars, _answer(bars), note(profiles))


# --- what is drawn ------------------------------------------------------------------------------------------


def _bar(profile: Profile, label: str) -> Bar:
    row = profile.measured
    tensor = profile.code.work == TENSOR_CORE
    busy = {words: share for name, words in PARTS.items() if (share := _share(row, name)) is not None}
    busiest = max(busy, key=busy.__getitem__, default=None)
    return Bar(
        label=label,
        tiles=profile.tiles,
        shares=profile.waits,
        milliseconds=row["nanoseconds"] / 1e6 if row.get("nanoseconds") is not None else None,
        warps=row.get("warps_active"),
        issues=_share(row, "issue_slots"),
        computing=PARTS["tensor_pipe" if tensor else "fma_pipe"],
        units=_share(row, "tensor_pipe" if tensor else "fma_pipe"),
        busiest=(busiest, busy[busiest]) if busiest else None,
    )


def _share(row: Mapping[str, Any], name: str) -> float | None:
    """A percentage of the record as a share, None if it was not measured."""
    value = row.get(name)
    return None if value is None else value / 100


# --- what is said -------------------------------------------------------------------------------------------


def _answer(bars: Sequence[Bar]) -> str:
    """For one bar how long a warp waits, for what most, and what its scheduler does; else what changed."""
    if len(bars) == 1:
        (bar,) = bars
        name = max(_waits(bar), key=_waits(bar).__getitem__)
        most = f"{percent(bar.shares[name])} {WAITS[name].waits}"
        told = f"{bar.label}: a warp waits {percent(bar.waiting)} of its time, {most}"
        busy = "" if bar.issues is None else f"; its scheduler issues in {percent(bar.issues)} of all clocks"
        return told + busy
    changes = [
        (abs(_waits(after)[name] - share), before, after, name)
        for before, after in pairwise(bars)
        for name, share in _waits(before).items()
    ]
    _, before, after, name = max(changes, key=lambda change: change[0])
    return (
        f"{after.label}: a warp waits {percent(after.shares[name])} of its time {WAITS[name].waits}; in "
        f"{before.label}, {percent(before.shares[name])}"
    )


def _waits(bar: Bar) -> dict[str, float]:
    return {name: share for name, share in bar.shares.items() if name not in GOOD}
