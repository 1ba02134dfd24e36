"""How a GPU multiplies matrices: kernels, an emulator that counts their accesses, figures and exercises.

``from gemm_course import run, emulate, check, LADDER``. Each name is loaded when it is first asked for, so
that ``import gemm_course`` alone costs next to nothing.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["LADDER", "check", "emulate", "run"]

_HOMES = {"LADDER": "gemm_course.kernels", "emulate": "gemm_course.emulator"}


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


class _Package(ModuleType):
    """Keeps ``gemm_course.run`` the function, though a module of the same name stands beside it.

    Importing ``gemm_course.run`` makes Python bind the module to that name; the setter declines.
    """

    @property
    def run(self) -> Any:
        return import_module("gemm_course.run").run

    @run.setter
    def run(self, module: ModuleType) -> None:
        pass


sys.modules[__name__].__class__ = _Package
