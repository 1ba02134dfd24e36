"""A lock-step SIMT machine: it runs ``numba.cuda`` kernels without a GPU and counts every access.

It knows kernels in general and nothing about matrix multiplication. Start reading at :mod:`.launch`; then
:mod:`.translate` (a kernel's source rewritten), :mod:`.lanes` (integers that differ from lane to lane),
:mod:`.counting` (what an access costs) and :mod:`.shadow` (races). Kernels whose warps wait for each
other leave lock-step: :mod:`.scheduler` runs them, and :mod:`.order` finds their races.
"""

from .counting import wavefronts
from .errors import (
    DataDependent,
    Deadlock,
    EmulatorError,
    KernelStopped,
    KernelTypeError,
    LaunchError,
    UnsupportedKernel,
)
from .findings import ADVICE, ERRORS, Finding
from .launch import emulate
from .registry import as_index, emulates
from .report import Report
from .tensor_copies import MatrixMap
from .trace import Watch

__all__ = [
    "ADVICE",
    "ERRORS",
    "DataDependent",
    "Deadlock",
    "EmulatorError",
    "Finding",
    "KernelStopped",
    "KernelTypeError",
    "LaunchError",
    "MatrixMap",
    "Report",
    "UnsupportedKernel",
    "Watch",
    "as_index",
    "emulate",
    "emulates",
    "wavefronts",
]
