"""Draws what a warp waits for in stages of the ladder and in a learner's own kernel, by recorded profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise

from gemm_course.compiler.kinds import TENSOR_CORE
from gemm_course.compiler.work import LANES, multiply_adds
from gemm_course.figures import waits as figure
from gemm_course.figures.picture import Picture
from gemm_course.figures.waits import GOOD, TENSOR_CORES, Bar, arrows, milliseconds, percent, rate
from gemm_course.kernels.variants import called
from gemm_course.profiles import WAITS, Profile, verdict
from gemm_course.profiles.store import USUAL
from gemm_course.profiles.verdict import of_active_clocks
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets._explorer import Explorer
from gemm_course.widgets._gpus import of_gpus, shown
from gemm_course.widgets._labels import labels
from gemm_course.widgets._profiled import Kernel, having, note, profiles_of, unprofiled, unusual_tiles

PRECISIONS = {"float32": "FP32", "float16": "FP16"}
# Only this many waits are told with all their shares.
TOLD = 2
# A wait whose share changes by less than this is not told.
LEAST = 0.05


@of_gpus
def waits(
    *kernels: Kernel, size: int | tuple[int, int, int] = USUAL, meanings: bool = True, on: str | None = None
) -> Explorer | Picture:
    """Draw what a warp spends its time on, a bar for each kernel, and how busy the hardware was meanwhile.

    ``kernels`` are stages of the ladder or their names, with default tiles; ("vectorized", {"TM": 8}) or
    {"vectorized": {"TM": 8}} for other tiles; or profiles, such as that of your own kernel. Without any, all
    stages with a profile are drawn. ``size`` is m = n = k, or (m, n, k), of what is recorded. With
    ``meanings``, the picture says how a bar is read and what each wait means. Leave it out where that was
    said above.

    ``on`` is the GPU that was profiled, such as "rtx_3060". Without it, it can be chosen where there are
    several.

    Raise NoProfile, a LookupError, with what is recorded. Raise ValueError for a profile without samples, and
    for an unknown GPU.
    """
    # Profiles settle the GPU, so none can be chosen.
    if kernels and all(isinstance(kernel, Profile) for kernel in kernels):
        return draw(kernels, size, meanings)
    return shown(lambda on: draw(kernels, size, meanings, on), on, having=having)


def draw(
    kernels: Sequence[Kernel], size: int | tuple[int, int, int], meanings: bool, on: Place = SHIPPED
) -> Picture:
    """Draw kernels as they were profiled on a GPU."""
    profiles = profiles_of(kernels, size, on)
    bars = [_bar(profile, label) for profile, label in zip(profiles, labels(profiles), strict=True)]
    if len(bars) > figure.DETAILED:
        bars = [replace(bar, tiles=unusual_tiles(one)) for bar, one in zip(bars, profiles, strict=True)]
    remarks = [_changes(bars)] if 1 < len(bars) <= figure.DETAILED else []
    below = note(profiles) + unprofiled(kernels, on) + _roots(profiles)
    return figure.waits(bars, _answer(bars), list(filter(None, remarks)), below, meanings=meanings)


# --- what is drawn ------------------------------------------------------------------------------------------


def _bar(profile: Profile, label: str) -> Bar:
    row = profile.measured
    tensor = profile.code.work == TENSOR_CORE
    stage = called(profile.name)
    unit = "tensor_pipe" if tensor else "fma_pipe"
    took = row["nanoseconds"] / 1e6 if row.get("nanoseconds") is not None else None
    return Bar(
        label=label,
        tiles=profile.tiles,
        shares=profile.waits,
        milliseconds=took,
        warps=row.get("warps_active"),
        instructions=_instructions(profile),
        issues=of_active_clocks(row, "issue_slots"),
        computing=TENSOR_CORES if tensor else "multiply-add units",
        units=of_active_clocks(row, unit),
        computes=None if took is None or row.get(unit) is None else took * row[unit] / 100,
        limit=_limit(profile),
        precision=PRECISIONS.get(stage.dtype, "") if stage and profile.tiles else "",
    )


def _instructions(profile: Profile) -> float | None:
    """Return the executed instructions of threads per multiply-add, or None if their number is not known."""
    frame, work = profile.instructions, profile.code.work
    done = 0
    for opcode, executed in frame.loc[frame["kind"] == work, ["opcode", "executed"]].itertuples(index=False):
        per = multiply_adds(opcode)
        if per is None:
            return None
        done += per * executed
    return LANES * sum(profile.executed.values()) / done if done else None


def _limit(profile: Profile) -> str:
    """Say what limits the kernel. Return "" if that was not measured."""
    try:
        found = verdict(profile)
        return f"{found.heading}: {found.limit_in_words}"
    except ValueError:
        # Too little was measured.
        return ""


# --- what is said -------------------------------------------------------------------------------------------


def _answer(bars: Sequence[Bar]) -> str:
    """Return the title: what limits one kernel, or why times differ.

    Without times, the title says what a warp waits for.
    """
    if len(bars) == 1:
        return _of_one(bars[0])
    measured = all(None not in (bar.milliseconds, bar.units, bar.issues) for bar in bars)
    if not measured:
        return _largest_change(bars)
    return _series(bars) if len(bars) <= figure.DETAILED else _from_to(bars)


def _of_one(bar: Bar) -> str:
    name = max(_waits(bar), key=_waits(bar).__getitem__)
    most = f"{percent(bar.shares[name])} {WAITS[name].waits}"
    told = f"{bar.label}: a warp waits {percent(bar.waiting)} of its time, {most}"
    return (
        told if bar.issues is None else f"{told}; its scheduler issues in {percent(bar.issues)} of the clocks"
    )


def _series(bars: Sequence[Bar]) -> str:
    """Return the times and what explains them: instructions and their issue, or busy Tensor Cores."""
    times = f"{arrows(milliseconds(bar.milliseconds) for bar in bars)} ms"
    if len({bar.computing for bar in bars}) > 1 or any(bar.instructions is None for bar in bars):
        return f"{times}; schedulers issue in {arrows(percent(bar.issues) for bar in bars)} of the clocks"
    if bars[0].computing == TENSOR_CORES:
        busy = arrows(milliseconds(bar.computes) for bar in bars)
        return f"{times}, of which Tensor Cores compute for {busy} ms"
    counts = arrows(rate(bar.instructions) for bar in bars)
    issues = arrows(percent(bar.issues) for bar in bars)
    return f"{times}: {counts} instructions per multiply-add, issued in {issues} of the clocks"


def _from_to(bars: Sequence[Bar]) -> str:
    """Return the times of each group's slowest and fastest kernel, and how busy their units were."""
    told = []
    for name, group in groupby(bars, key=lambda bar: bar.group):
        ordered = sorted(group, key=lambda bar: -bar.milliseconds)
        ends = ordered[0], ordered[-1]
        times = arrows(milliseconds(bar.milliseconds) for bar in ends)
        told.append(f"{name}: {times} ms, units busy {arrows(percent(bar.units) for bar in ends)}")
    return "; ".join(told)


def _changes(bars: Sequence[Bar]) -> str:
    """Name the waits that differ most between any two kernels, with all their shares."""
    shares = {name: [bar.shares.get(name, 0) for bar in bars] for name in WAITS if name not in GOOD}
    spread = {name: max(found) - min(found) for name, found in shares.items()}
    most = [name for name in sorted(spread, key=lambda name: -spread[name])[:TOLD] if spread[name] >= LEAST]
    told = [f"{name} {arrows(percent(share) for share in shares[name])}" for name in most]
    return f"What changes most in a warp's waiting: {'; '.join(told)}." if told else ""


def _largest_change(bars: Sequence[Bar]) -> str:
    changes = [
        (abs(_waits(after)[name] - share), before, after, name)
        for before, after in pairwise(bars)
        for name, share in _waits(before).items()
    ]
    _, before, after, name = max(changes, key=lambda change: change[0])
    return (
        f"A warp waits {WAITS[name].waits}: in {before.label} {percent(before.shares[name])} of its time, in "
        f"{after.label} {percent(after.shares[name])}"
    )


def _waits(bar: Bar) -> dict[str, float]:
    return {name: share for name, share in bar.shares.items() if name not in GOOD}


def _roots(profiles: Sequence[Profile]) -> str:
    """Return a caveat, since the GPU counts waits for slow operations as waits for shared memory.

    Return "" if no kernel has such operations in its loop.
    """
    slow = [one.name for one in profiles if one.code.loop and _has_roots(one)]
    return f" Waits for roots and the like count as shared memory: {', '.join(slow)}." if slow else ""


def _has_roots(profile: Profile) -> bool:
    return any(row.opcode.startswith("MUFU") for row in profile.code.loop.rows)
