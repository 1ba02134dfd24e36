"""The ladder: every kernel of the course in teaching order, each one idea away from an earlier one.

The files are in that order, and there is no other list of stages: a for the arithmetic units that every GPU
has, b for Tensor Cores, c for Hopper. `parts` holds what several stages share, `variants` kernels beside the
ladder.
"""

import importlib
import pkgutil

from gemm_course.kernels.parts.base import IllegalTiles, KernelLaunch, Ladder, Stage, tiles_text

__all__ = ["LADDER", "IllegalTiles", "KernelLaunch", "Ladder", "Stage", "tiles_text"]


def _stages():
    """The stages of each file, in the order of the files' names; a file has one unless it says otherwise."""
    for file in sorted(file.name for file in pkgutil.iter_modules(__path__) if not file.ispkg):
        module = importlib.import_module(f"{__name__}.{file}")
        yield from getattr(module, "STAGES", None) or (module.STAGE,)


LADDER = Ladder(_stages())
