"""Finds stages by name, those of the ladder and the variants that notebooks show."""

from __future__ import annotations

from gemm_course.kernels import LADDER, Stage
from gemm_course.kernels.variants import variants


def stage_of(name: str) -> Stage:
    """Return the stage of the ladder with this name, or else the variant. Raise KeyError if there is none."""
    beside = {stage.name: stage for stage in variants()} if name not in LADDER else {}
    return beside[name] if name in beside else LADDER[name]
