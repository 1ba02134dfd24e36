"""The ladder: every kernel of the course in teaching order, each one idea away from an earlier one.

The files are in that order, and there is no other list of stages: a for the arithmetic units that every GPU
has, b for Tensor Cores, c for Hopper. `parts` holds what several stages share, `variants` kernels beside the
ladder.

A file that cannot be imported, or whose stage breaks a rule of the ladder, is left out with a warning:
everything else still works. `LADDER.left_out` says why, and a test fails as long as it says anything.
"""

import importlib
import pkgutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

from gemm_course.kernels.parts.base import IllegalTiles, KernelLaunch, Ladder, Stage, tiles_text
from gemm_course.kernels.parts.own_rules import broken_rules

TAKEN = ("m", "n", "k", "alpha", "A", "B", "beta", "C")  # by every kernel

__all__ = ["LADDER", "IllegalTiles", "KernelLaunch", "Ladder", "Stage", "tiles_text"]


def _ladder() -> Ladder:
    """The stages of all files, in the order of the files' names."""
    ladder, first = Ladder(), None
    for name in sorted(file.name for file in pkgutil.iter_modules(__path__) if not file.ispkg):
        try:
            for stage in stages_of(importlib.import_module(f"{__name__}.{name}"), name):
                ladder.add(stage)
        except Exception as error:  # whatever a stage's file raises
            first = first or error
            ladder.left_out.append(f"{_where(name, error)}. {name}.py is left out of the ladder.")
            warnings.warn(ladder.left_out[-1], stacklevel=2)
    if first and not len(ladder):  # the machine is at fault, not a stage
        raise first
    return ladder


def stages_of(module, file: str) -> tuple[Stage, ...]:
    """The stages of a file: it has one, STAGE, unless STAGES says otherwise.

    Raises ValueError, with what to do, if a stage cannot be what the whole ladder counts on.
    """
    stages = getattr(module, "STAGES", None) or (getattr(module, "STAGE", None),)
    if not all(isinstance(stage, Stage) for stage in stages):
        raise ValueError("it has no STAGE: at its end must stand STAGE = Stage(...)")
    name = file.partition("_")[2] or file
    if stages[0].name != name:
        raise ValueError(f"its stage is called {stages[0].name}: write name={name!r}, as the file is called")
    for stage in stages:
        if broken := next(_broken_rules(stage, name), None):
            raise ValueError(f"{stage.name}: {broken}")
    return stages


def _broken_rules(stage: Stage, name: str) -> Iterator[str]:
    yield from broken_rules(stage)
    if illegal := stage.rules(stage.tiles):
        yield f"its default tiles are not legal: {'; '.join(illegal)}"
    for size, value in stage.tiles.items():
        if value not in stage.options.get(size, (value,)):
            yield f"its default, {size}={value}, must be among its options"
    kernel = stage.build(**stage.tiles)
    if not isinstance(kernel, FunctionType):
        yield f"its build must return the kernel, a function; it returns {type(kernel).__name__}"
    elif kernel.__name__ != name:
        yield f"its kernel's function is called {kernel.__name__}: call it {name}, as the file is called"
    elif kernel.__code__.co_varnames[: len(TAKEN)] != TAKEN:
        yield f"its kernel must take {', '.join(TAKEN)}, and more only after them"


def _where(name: str, error: Exception) -> str:
    """The file, the line of it that was at work, and the error."""
    from gemm_course.kernels.parts.own import in_file

    return in_file(Path(__path__[0]) / f"{name}.py", error)


LADDER = _ladder()
