"""Defines the host side's errors: numba.cuda's kinds of errors, with a sentence and the program's line."""

import contextlib
import functools
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from numba.cuda.cudadrv.driver import CudaAPIError

from lockstep.errors import DEBUG, EmulatorError, LaunchError, UnsupportedKernel
from lockstep.launching.faults import frames_where

try:
    from cuda.core._utils.cuda_utils import CUDAError
except ImportError:  # numba-cuda, which brings cuda.core, is not installed on macOS.
    from numba.cuda.cudadrv.error import CudaDriverError as CUDAError

# The driver has these numbers for its errors.
OUT_OF_MEMORY, NOT_INITIALIZED, INVALID_HANDLE = 2, 3, 400


class UnsupportedCall(UnsupportedKernel, NotImplementedError):
    """An error for a part of numba.cuda that the emulator does not have.

    ``filename`` and ``line`` give the place in the program.
    """


class MissingAttribute(UnsupportedCall, AttributeError):
    """An error for an attribute of numba.cuda's objects that the emulator does not have.

    It is an AttributeError too, so that ``hasattr`` says False.
    """


class DriverError(LaunchError, CudaAPIError):
    """An error for a call that the CUDA driver would refuse. ``code`` is the driver's number for it."""

    def __init__(self, code: int, sentence: str):
        Exception.__init__(self, code, sentence)
        self.code, self.msg = code, sentence

    def __str__(self):
        return self.msg


class RefusedLaunch(LaunchError, CUDAError):
    """An error for a launch that the CUDA driver would refuse. numba.cuda launches by cuda.core."""


def unsupported(sentence: str) -> UnsupportedCall:
    """Return the error to raise for a refused call. It has the program's file and line."""
    return UnsupportedCall(sentence, *place())


def missing(sentence: str) -> MissingAttribute:
    """Return the error to raise for a missing attribute. It has the program's file and line."""
    return MissingAttribute(sentence, *place())


def refusing(sentence: str) -> Callable:
    """Return a function that raises the error of :func:`unsupported` when it is called."""

    def refuse(*args: Any, **named: Any) -> None:
        raise unsupported(sentence)

    return refuse


@functools.cache
def launch_error(kind: type[Exception]) -> type[LaunchError]:
    """Return a class that is both a LaunchError and ``kind``, the class that numba.cuda raises."""
    return type(kind.__name__, (LaunchError, kind), {})


def place() -> tuple[str, int]:
    """Return (file, line) of the running program's innermost frame outside numba and this package."""
    innermost = frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame = frame.f_back
    frame = frame or innermost
    return frame.f_code.co_filename, frame.f_lineno


def without_our_frames(error: BaseException) -> None:
    """Shorten the traceback of an emulator error to the lines of the program and of its kernels."""
    if os.environ.get(DEBUG):
        return
    package = os.path.dirname(os.path.dirname(__file__)) + os.sep
    inside = (package, *_INSIDE)
    while error is not None:
        if isinstance(error, EmulatorError):
            kept = frames_where(error.__traceback__, lambda code: not code.co_filename.startswith(inside))
            error.__traceback__ = kept
        error = None if error.__suppress_context__ else error.__context__


def of_numba(filename: str) -> bool:
    """Tell whether a file is one of Numba's own, and not one of its tests."""
    inside = filename.startswith(_INSIDE[1:]) and not filename.startswith("<")
    return inside and f"{os.sep}tests{os.sep}" not in filename


def _folders() -> tuple[str, ...]:
    """Return the folders and files whose code does not belong to the program."""
    specs = [find_spec(name) for name in ("numba", "numba_cuda")]
    places = [place for spec in specs if spec is not None for place in spec.submodule_search_locations]
    ours = (place + os.sep for place in (os.path.dirname(__file__), *places))
    return (*ours, contextlib.__file__, "<frozen importlib")


_INSIDE = _folders()
