"""Draws what limits stages of the ladder, or a learner's own kernel, from recorded profiles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from gemm_course.figures import limits as figure
from gemm_course.figures.limits import Row
from gemm_course.figures.picture import Picture
from gemm_course.figures.waits import percent
from gemm_course.profiles import Profile, Verdict, verdict
from gemm_course.profiles.store import USUAL
from gemm_course.profiles.verdict import LIMIT, PARTS
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets._explorer import Explorer
from gemm_course.widgets._gpus import of_gpus, shown
from gemm_course.widgets._labels import labels
from gemm_course.widgets._profiled import Kernel, having, note, profiles_of, unprofiled, unusual_tiles

# More changes of the limit than these are told without the kernels' names.
RUNS = 3
# A limit of less than this share of the kernels is told last.
RARE = 1 / 6


@of_gpus
def limits(
    *kernels: Kernel, size: int | tuple[int, int, int] = USUAL, on: str | None = None
) -> Explorer | Picture:
    """Draw how busy each part of the GPU is with each kernel, what limits it and what would be next.

    ``kernels`` and ``size`` are as in `waits`. Without any kernel, all stages with a profile are drawn.

    ``on`` is the GPU that was profiled, such as "rtx_3060". Without it, it can be chosen where there are
    several.

    Raise NoProfile, a LookupError, with what is recorded. Raise ValueError for a profile without samples, and
    for an unknown GPU.
    """
    # Profiles settle the GPU, so none can be chosen.
    if kernels and all(isinstance(kernel, Profile) for kernel in kernels):
        return draw(kernels, size)
    return shown(lambda on: draw(kernels, size, on), on, having=having)


def draw(kernels: Sequence[Kernel], size: int | tuple[int, int, int], on: Place = SHIPPED) -> Picture:
    """Draw kernels as they were profiled on a GPU."""
    profiles = profiles_of(kernels, size, on)
    few = len(profiles) <= figure.DETAILED
    rows = [
        Row(label, one.tiles if few else unusual_tiles(one), one.tflops, verdict(one))
        for label, one in zip(labels(profiles), profiles, strict=True)
    ]
    return figure.limits(rows, _answer(rows), note(profiles) + unprofiled(kernels, on))


def _answer(rows: Sequence[Row]) -> str:
    """Return the title, which is one kernel's limit, or how the limit changes from kernel to kernel."""
    if len(rows) == 1:
        return f"{rows[0].label}: {_limit(rows[0].verdict)}"
    rows, stage = _shorter(rows)
    runs = [(name, list(of_one)) for name, of_one in groupby(rows, key=lambda row: _called(row.verdict))]
    if len(runs) == 1:
        return _same(rows)
    if len(runs) <= RUNS:
        return stage + _moves([f"{name} ({_from_to(of_one)})" for name, of_one in runs], bool(stage))
    if len(rows) <= figure.DETAILED:
        return _moves([name for name, _ in runs])
    return _counted(Counter(_called(row.verdict) for row in rows))


def _counted(counts: Counter[str]) -> str:
    """Count the kernels with each limit.

    The order is that in which limits first come, with rare ones last.
    """
    kernels = counts.total()
    least = min(RARE * kernels, max(counts.values()))
    usual = [name for name in counts if counts[name] >= least]
    rare = [f"{name} ({count})" for name, count in counts.items() if name not in usual]
    first = f"{usual[0]} ({counts[usual[0]]} of {kernels} kernels)"
    others = f"; in others {', '.join(rare)}" if rare else ""
    if len(usual) == 1:
        return f"The busiest part mostly is {first}{others}"
    return _moves([first, *(f"{name} ({counts[name]})" for name in usual[1:])]) + others


def _limit(found: Verdict) -> str:
    if found.waiting:
        return (
            f"no part is busy enough, a warp waits {percent(found.waited)} of its time {found.wait_in_words}"
        )
    part = PARTS[found.limiter]
    return f"{part.name} {part.are} the busiest, {part.busy} in {percent(found.share)} of the clocks"


def _called(found: Verdict) -> str:
    return "waiting" if found.waiting else found.limiter


def _same(rows: Sequence[Row]) -> str:
    """Return the title for kernels with the same limit."""
    found = [row.verdict for row in rows]
    if found[0].waiting:
        return f"In all of them warps wait: no part is busy in {percent(LIMIT)} of the clocks"
    part = PARTS[found[0].limiter]
    shares = [percent(share) for share in sorted(one.share for one in found)]
    between = shares[0] if shares[0] == shares[-1] else f"{shares[0]} to {shares[-1]}"
    return f"In all of them {part.name} {part.are} the busiest, {part.busy} in {between} of the clocks"


def _from_to(rows: Sequence[Row]) -> str:
    return rows[0].label if len(rows) == 1 else f"{rows[0].label} to {rows[-1].label}"


def _shorter(rows: Sequence[Row]) -> tuple[Sequence[Row], str]:
    """Shorten the labels of three or more choices of tiles of one stage to their tiles.

    Return the rows, and the stage's name for the title, or "" if nothing was shortened.
    """
    names, tiles = zip(*(row.label.partition(" ")[::2] for row in rows), strict=True)
    if len(rows) < 3 or len(set(names)) > 1 or not all(tiles):
        return rows, ""
    return [replace(row, label=own) for row, own in zip(rows, tiles, strict=True)], f"{names[0]}: "


def _moves(stops: Sequence[str], after_a_name: bool = False) -> str:
    begins = f"{'the' if after_a_name else 'The'} busiest part moves from {stops[0]}"
    return f"{begins} to {', then '.join(stops[1:])}"
