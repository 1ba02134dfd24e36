"""Runs whole ``numba.cuda`` programs without a GPU: both their kernels and their host side.

Start reading at :mod:`.session`, which records the launches. :mod:`.replacing` puts the emulator's host side
(:mod:`.host`) in place of numba.cuda's, and restores numba.cuda afterwards. :mod:`.kernels` launches kernels.
:mod:`.plugin` is the pytest plugin.
"""

from importlib import import_module
from typing import Any

__all__ = ["Session", "active", "emulated"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "state" if name == "active" else "session"
    return getattr(import_module(f"{__name__}.{home}"), name)
