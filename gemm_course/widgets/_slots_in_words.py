"""Says whether more warps could help a kernel, as far as that was measured."""

from __future__ import annotations

from collections.abc import Mapping

from gemm_course import records
from gemm_course.kernels import Stage
from gemm_course.model import GPUS
from gemm_course.profiles import NoProfile, Profile, recorded, verdict
from gemm_course.profiles.verdict import PARTS
from gemm_course.widgets._block_resources import OfCode, OfStage
from gemm_course.widgets._gpus import hardware

FEW_WARPS = "Few warps are no fault: more would help only in clocks in which none of these can issue."


def busy_in_words(subject: OfStage | OfCode, gpu: str, tiles: Mapping[str, int]) -> str:
    """Say that few warps are no fault, and how busy the busiest part is if that was profiled on this GPU."""
    if not isinstance(subject, OfStage):
        return FEW_WARPS
    profile = _profile_on(subject.stage, gpu, tiles)
    if profile is None:
        return FEW_WARPS
    # The busiest part comes first.
    part, share = next(iter(verdict(profile).busy.items()))
    busy = min(100, round(100 * share))
    taken = f"{part} {PARTS[part].busy} in {busy} % of the clocks, more than any other part"
    return (
        f"{FEW_WARPS} Measured on the {gpu} with these tiles: {taken}, so more warps could save at most "
        f"{100 - busy} % of the time."
    )


def _profile_on(stage: Stage, gpu: str, tiles: Mapping[str, int]) -> Profile | None:
    """Return the profile of a stage on a GPU of the course's table, or None if none was recorded."""
    for on in records.places():
        known = hardware(on)
        if gpu in GPUS and known is not None and known.name == GPUS[gpu].name:
            try:
                return recorded(stage, tiles, gpu=on)
            except NoProfile:
                continue
    return None
