"""Whether more warps could help a kernel, as far as that was measured."""

from __future__ import annotations

from collections.abc import Mapping

from gemm_course.model import GPUS
from gemm_course.profiles import NoProfile, recorded, verdict
from gemm_course.profiles.verdict import PARTS
from gemm_course.widgets._taken import OfCode, OfStage

FEW_WARPS = "Few warps are no fault: more would help only in clocks in which none of these can issue."


def busy_in_words(subject: OfStage | OfCode, gpu: str, tiles: Mapping[str, int]) -> str:
    """Return what warps are for and, if this was profiled on this GPU, how busy its busiest part is."""
    if not isinstance(subject, OfStage):
        return FEW_WARPS
    try:
        profile = recorded(subject.stage, tiles)
    except NoProfile:
        return FEW_WARPS
    if profile.measured["gpu"] != GPUS[gpu].name:
        return FEW_WARPS
    part, share = next(iter(verdict(profile).busy.items()))  # the busiest
    busy = min(100, round(100 * share))
    taken = f"{part} {PARTS[part].busy} in {busy} % of the clocks, more than any other part"
    return (
        f"{FEW_WARPS} Measured on the {gpu} with these tiles: {taken}, so more warps could save at most "
        f"{100 - busy} % of the time."
    )
