"""Kernels beside the ladder, which notebooks and exercises look at."""

import functools
import importlib
import pkgutil

from gemm_course.kernels.parts.base import Stage


@functools.cache
def variants() -> tuple[Stage, ...]:
    """Those that are stages: they are launched like the ladder's, but are not in it."""
    modules = (importlib.import_module(f"{__name__}.{file.name}") for file in pkgutil.iter_modules(__path__))
    return tuple(module.STAGE for module in modules if hasattr(module, "STAGE"))
