"""Tells what a GPU of a compute capability can run."""

from __future__ import annotations

from collections.abc import Mapping

from gemm_course.kernels import Stage
from lockstep.limits import LIMITS

# A stage that needs this generation runs on no other, not even on a newer one.
HOPPER = 9


def why_not(stage: Stage, tiles: Mapping[str, int] | None, capability: tuple[int, int]) -> str | None:
    """Return why a GPU of this compute capability cannot run a stage with these tiles, or None if it can."""
    if not has_instructions(stage, capability):
        needed = stage.compute_capability
        known = f"{shown(needed)}{', Hopper' if needed[0] == HOPPER else ' or newer'}"
        return f"{stage.name} needs compute capability {known}, not {shown(capability)}."
    return why_too_much(stage.name, stage.shared_bytes(tiles), capability)


def has_instructions(stage: Stage, capability: tuple[int, int]) -> bool:
    """Tell whether a GPU of this compute capability has all instructions of a stage."""
    needed = stage.compute_capability
    return capability[0] == HOPPER if needed[0] == HOPPER else capability >= needed


def why_too_much(name: str, shared_bytes: int, capability: tuple[int, int]) -> str | None:
    """Return why a block of a kernel cannot have this much shared memory, or None if it can."""
    most = LIMITS[capability].shared_bytes_per_block
    if shared_bytes <= most:
        return None
    return (
        f"a block of {name} needs {shared_bytes:,} bytes of shared memory; with compute capability "
        f"{shown(capability)} it can have {most:,}."
    )


def shown(capability: tuple[int, int]) -> str:
    """Return a compute capability in words, such as "9.0"."""
    return ".".join(map(str, capability))
