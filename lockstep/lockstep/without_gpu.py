"""Lets kernels with signatures, as in ``@cuda.jit("void(float32[:])")``, be defined without a GPU.

numba.cuda compiles a kernel with a signature where it is defined, and raises CudaSupportError if there is no
driver. The emulator needs no compiled code, so after ``import lockstep`` such a kernel only keeps its
signature. It raises the error when it is launched on a GPU that is not there.

This module is imported with the package, so it needs only the standard library and :mod:`.frozen`.
"""

import importlib.util
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from types import SimpleNamespace
from typing import Any

from lockstep.frozen import freeze_definition

_DISPATCHER = "numba.cuda.dispatcher"


class NotCompiled:
    """A replacement for a signature's compiled code. Any access to the code raises the error."""

    def __init__(self, error: Exception, return_type: Any):
        self._error, self.signature = error, SimpleNamespace(return_type=return_type)

    def __getattr__(self, name: str) -> Any:
        raise self._error


def accept_signatures() -> None:
    """Let kernels with signatures be defined without a GPU, now or when numba.cuda is imported."""
    if _DISPATCHER in sys.modules:
        _patch(sys.modules[_DISPATCHER])
    elif not any(isinstance(finder, _WhenImported) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WhenImported())


class _WhenImported(MetaPathFinder):
    """An import hook that patches numba.cuda's dispatcher module once it has been loaded."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != _DISPATCHER:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_patch(module):
                load(module)
                _patch(module)

            spec.loader.exec_module = load_and_patch
        return spec


def _patch(module: Any) -> None:
    kind = getattr(module, "CUDADispatcher", None)  # Numba's simulator has no such class.
    if not hasattr(kind, "compile") or hasattr(kind.compile, "waits"):
        return
    for name in ("compile", "compile_device"):
        setattr(kind, name, _waiting(getattr(kind, name), module.sigutils.normalize_signature))


def _waiting(compile_it: Callable, normalized: Callable) -> Callable:
    """Wrap a method that compiles, so that without a GPU it only notes the signature."""
    from numba.cuda.cudadrv.error import CudaSupportError

    def compile_or_wait(self, types, return_type=None, **options):
        freeze_definition(self)
        try:
            given = () if return_type is None else (return_type,)
            return compile_it(self, types, *given, **options)
        except CudaSupportError as error:
            if not isinstance(types, tuple):
                types, return_type = normalized(types)
            waiting = self.overloads[types] = NotCompiled(error, return_type)
            # A launch asks this replacement for compiled code, and gets the error.
            return waiting

    compile_or_wait.waits = True
    return compile_or_wait
