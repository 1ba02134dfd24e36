"""The profiles that a picture is asked for, in each of the ways to name them, and where they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gemm_course import records
from gemm_course.kernels import LADDER, Stage, tiles_text
from gemm_course.kernels.variants import called
from gemm_course.profiles import NoProfile, Profile, recorded

FEW = 2500  # samples; with fewer, a share can be wrong by a point and more: 1 / (2 √samples)

Kernel = str | Stage | Profile | tuple[str | Stage, Mapping[str, int]] | Mapping[str, Mapping[str, int]]


def profiles_of(kernels: Sequence[Kernel], size: int | tuple[int, int, int]) -> list[Profile]:
    """The profiles of kernels; without any, of all stages of which there is one at this size.

    kernels: stages or their names, with default tiles; ("vectorized", {"TM": 8}) or
    {"vectorized": {"TM": 8}}; profiles. size: m = n = k, or (m, n, k), of what is recorded.

    Raises NoProfile with what is recorded; ValueError for a profile without samples.
    """
    found = [profile for kernel in kernels for profile in _profiles(kernel, size)] or _whole_ladder(size)
    for profile in found:
        if not profile.samples:
            raise ValueError(f"no warp of {profile.name} was sampled: it ran for too short a time.")
    return found


def _profiles(kernel: Kernel, size: int | tuple[int, int, int]) -> Iterator[Profile]:
    if isinstance(kernel, Profile):
        yield kernel
    elif isinstance(kernel, Mapping):
        for stage, tiles in kernel.items():
            yield recorded(stage, tiles, size)
    elif isinstance(kernel, tuple):
        yield recorded(*kernel, size)
    else:
        yield recorded(kernel, None, size)


def _whole_ladder(size: int | tuple[int, int, int]) -> list[Profile]:
    found = []
    for stage in LADDER:
        try:
            found.append(recorded(stage, None, size))
        except NoProfile:  # the others are worth seeing; without any, the message below says so
            continue
    if not found:
        raise NoProfile(f"no profile was recorded of any stage at {_size_text(size)}.")
    return found


def unusual_tiles(profile: Profile) -> str:
    """A profile's tiles, "" if they are its stage's usual ones: for pictures with little room."""
    stage = called(profile.name)
    usual = stage is not None and profile.tiles == tiles_text(stage.complete())
    return "" if usual else profile.tiles


def note(profiles: Sequence[Profile]) -> str:
    """Size, GPU, versions and dates; whether there are few samples."""
    import pandas as pd

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
