"""Finds the profiles that a picture is asked for, in each way to name them, and says where they are from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from gemm_course import records
from gemm_course.kernels import LADDER, Stage, tiles_text
from gemm_course.kernels.variants import called
from gemm_course.profiles import NoProfile, Profile, recorded
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets._gpus import Unmeasured, left_out, to_measure

# With fewer samples a share can be wrong by a percentage point or more, which is 1 / (2 √samples).
FEW = 2500

Kernel = str | Stage | Profile | tuple[str | Stage, Mapping[str, int]] | Mapping[str, Mapping[str, int]]


def profiles_of(
    kernels: Sequence[Kernel], size: int | tuple[int, int, int], on: Place = SHIPPED
) -> list[Profile]:
    """Return the profiles of kernels or, without kernels, of all stages that have one at this size.

    ``kernels`` are stages or their names, with default tiles; ("vectorized", {"TM": 8}) or {"vectorized":
    {"TM": 8}}; or profiles. ``size`` is m = n = k, or (m, n, k), of what is recorded. ``on`` is the GPU that
    was recorded. Raise NoProfile with what is recorded, and ValueError for a profile without samples.
    """
    found = [profile for kernel in kernels for profile in _profiles(kernel, size, on)]
    found = found or _whole_ladder(size, on)
    for profile in found:
        if not profile.samples:
            raise ValueError(f"no warp of {profile.name} was sampled: it ran for too short a time.")
    return found


def _profiles(kernel: Kernel, size: int | tuple[int, int, int], on: Place) -> Iterator[Profile]:
    if isinstance(kernel, Profile):
        yield kernel
    elif isinstance(kernel, Mapping):
        for stage, tiles in kernel.items():
            yield _recorded(stage, tiles, size, on)
    elif isinstance(kernel, tuple):
        yield _recorded(*kernel, size, on)
    else:
        yield _recorded(kernel, None, size, on)


def _recorded(stage: Stage | str, tiles: Mapping | None, size, on: Place) -> Profile:
    name = stage if isinstance(stage, str) else stage.name
    try:
        return recorded(stage, tiles, size, on)
    except NoProfile as reason:
        asked = f" --tiles '{tiles_text(tiles)}'" if tiles else ""
        told = to_measure(f"{name} was", on, f"profile {name}{asked}") if name in LADDER else str(reason)
        if name in LADDER and name not in set(having(on)["stage"]):
            raise Unmeasured(told) from None
        if on == SHIPPED:
            raise
        others = f" {str(reason)[:1].upper()}{str(reason)[1:]}" if "there is" in str(reason) else ""
        raise NoProfile(told + others) from None


def having(on: Place) -> pd.DataFrame:
    """Return what was profiled on a GPU."""
    return records.profiles(on)


def _whole_ladder(size: int | tuple[int, int, int], on: Place) -> list[Profile]:
    found = []
    for stage in LADDER:
        try:
            found.append(_recorded(stage, None, size, on))
        # The other kernels are worth showing. If there are none, the message below says so.
        except NoProfile:
            continue
    if not found:
        where = "" if on == SHIPPED else f" on {on.an}; there, `gemm-course profile` makes them"
        raise NoProfile(f"no profile was recorded of any stage at {_size_text(size)}{where}.")
    return found


def unprofiled(kernels: Sequence[Kernel], on: Place) -> str:
    """Return a sentence after a space on the stages that a picture of the whole ladder lacks, or "" for none.

    The sentence says what measures them. A learner's GPU may lack most of the ladder, and is not mentioned.
    """
    if kernels or on != SHIPPED:
        return ""
    known = set(having(on)["stage"])
    words = left_out([stage for stage in LADDER if stage.name not in known], on, "profile")
    return f" {words}" if words else ""


def unusual_tiles(profile: Profile) -> str:
    """Return a profile's tiles as text, for pictures with little room.

    Return "" for its stage's usual tiles.
    """
    stage = called(profile.name)
    usual = stage is not None and profile.tiles == tiles_text(stage.complete())
    return "" if usual else profile.tiles


def note(profiles: Sequence[Profile]) -> str:
    """Return size, GPU, versions and dates, and say so if there are few samples."""
    rows = pd.DataFrame([dict(profile.measured) for profile in profiles])
    shapes = dict.fromkeys(
        tuple(profile.measured[side] for side in "mnk") for profile in profiles if profile.measured["m"]
    )
    versions = sorted({str(version) for version in rows.get("ncu", ()) if version})
    ncu = f"Nsight Compute {' and '.join(versions)}" if versions else "Nsight Compute"
    few = [profile.name for profile in profiles if profile.samples < FEW]
    doubt = f" Rough, with fewer than {FEW:,} samples: {', '.join(few)}." if few else ""
    told = [*map(_size_text, shapes), f"measured with {ncu}", records.provenance(rows)]
    return f"{'; '.join(told)}.{doubt}"


def _size_text(size: int | tuple[int, int, int]) -> str:
    m, n, k = (size, size, size) if isinstance(size, int) else size
    return f"{m}³" if m == n == k else f"{m} × {n} × {k}"
