"""Teaches how a GPU multiplies matrices: kernels, an emulator that counts accesses, figures and exercises.

``from gemm_course import run, launch, emulate, emulated, compiled, profiled, check, LADDER``. Each name is
loaded when it is first used, so that ``import gemm_course`` alone takes almost no time.
"""

from importlib import import_module
from typing import Any

import lockstep  # noqa: F401 (lets kernels with signatures be defined where there is no GPU)

__all__ = ["LADDER", "check", "compiled", "emulate", "emulated", "launch", "own", "profiled", "run"]

_HOMES = {
    "LADDER": "gemm_course.kernels",
    "compiled": "gemm_course.compiler",
    "emulate": "lockstep",
    "emulated": "lockstep",
    "launch": "gemm_course.launching",
    "own": "gemm_course.own_kernel",
    "profiled": "gemm_course.bench.profile",
    "run": "gemm_course.launching",
}


def __getattr__(name: str) -> Any:
    if name == "check":
        return import_module("gemm_course.checks")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
