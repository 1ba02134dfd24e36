"""Kernels beside the ladder, which notebooks and exercises look at, or which are only measured."""

import functools
import importlib
import pkgutil

from gemm_course.kernels.parts.base import Stage


@functools.cache
def variants() -> tuple[Stage, ...]:
    """Those that are stages: they are launched like the ladder's, but are not in it.

    A file has one, STAGE, several, STAGES, or none.
    """
    modules = (importlib.import_module(f"{__name__}.{file.name}") for file in pkgutil.iter_modules(__path__))
    return tuple(stage for module in modules for stage in _stages(module))


def called(name: str) -> Stage | None:
    """The stage of the ladder, or the one beside it, of this name, or None."""
    from gemm_course.kernels import LADDER  # which is made of modules beside this one

    return next((stage for stage in (*LADDER, *variants()) if stage.name == name), None)


def _stages(module) -> tuple[Stage, ...]:
    return getattr(module, "STAGES", ()) or ((module.STAGE,) if hasattr(module, "STAGE") else ())
