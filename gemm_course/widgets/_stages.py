"""Stages by name: those of the ladder, and those beside it that notebooks look at."""

from __future__ import annotations

from gemm_course.kernels import LADDER, Stage
from gemm_course.kernels.variants import variants


def stage_of(name: str) -> Stage:
    """The stage of the ladder with this name, or else the one beside it. Raises KeyError."""
    beside = {stage.name: stage for stage in variants()} if name not in LADDER else {}
    return beside[name] if name in beside else LADDER[name]
