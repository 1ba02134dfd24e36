"""Treats a learner's own kernel as a stage of the ladder.

from gemm_course import own

mine = own("mine.py")              # reads the file again each time; `python3 course.py new mine` writes it
mine.check()                       # on the emulator, at odd shapes
compiled(mine), profiled(mine), run(mine, A, B), see.tiles(mine), see.card(mine)
mine(A, B, out=C)                  # on arrays of CuPy, PyTorch or NumPy
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemm_course.kernels import LADDER
from gemm_course.kernels.parts.own import OwnKernelError, OwnStage, own_stage, where
from gemm_course.own_kernel.calling import multiplied
from gemm_course.own_kernel.checking import Checked, checked
from gemm_course.own_kernel.writing import write_new

__all__ = ["Checked", "Mine", "OwnKernelError", "own", "own_with"]


@dataclass(frozen=True, eq=False, repr=False)
class Mine(OwnStage):
    """A learner's own stage, which `run`, `compiled`, `profiled` and `see` treat as one of the ladder's."""

    def check(
        self,
        tiles: Mapping[str, int] | None = None,
        shapes: Sequence[tuple[int, int, int]] | None = None,
    ) -> Checked:
        """Run the stage on the emulator, at odd shapes and at whole tiles, and say what is wrong, with lines.

        The padding of A, B and C holds NaN, and so does C if beta is 0. Results are compared with float64,
        and races, missing barriers and accesses out of bounds are found. ``tiles`` are sizes to change from
        the defaults. ``shapes`` are (m, n, k) instead of the usual five, which follow from the tiles,
        whatever their names, and from the blocks of a launch. Return what was found, with `.ok` and
        `.problems`.
        """
        return checked(self, tiles, shapes)

    def __call__(
        self,
        A: Any,
        B: Any,
        out: Any = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        tiles: Mapping[str, int] | None = None,
        **extras: Any,
    ) -> Any:
        """Compute out = alpha * A @ B + beta * out, and the epilogue, if it has one, on the caller's arrays.

        A is (m, k), B is (k, n) and out is (m, n), of the stage's dtype. All are CuPy arrays or PyTorch
        tensors on one GPU, other arrays with `__cuda_array_interface__` or `__dlpack__`, or NumPy arrays. On
        a GPU nothing is copied: the kernel reads and writes the caller's memory, on the current stream of
        CuPy or PyTorch, and the call returns before it has run. NumPy arrays go to the GPU and back, or to
        the emulator. ``extras`` are arguments after C, by name, such as bias=bias. ``tiles`` are sizes to
        change from the defaults.

        Return out, or without out a new array of A's library. Raise ValueError with everything that is wrong:
        shapes, dtypes, rows whose elements are not neighbours (such as those of a transposed matrix), rows
        that do not begin at multiples of the stage's alignment.
        """
        return multiplied(self, A, B, out, alpha, beta, tiles, extras)


def own(file: str | Path, *, otherwise: str | None = None) -> Mine:
    """Read your own stage from a Python file, as the file is now.

    ``file`` is such as "mine.py", which `python3 course.py new mine` writes. Like the files of the ladder it
    defines STAGE. Call this again after an edit. ``otherwise`` is a stage of the ladder. If there is no such
    file, what `new` would write from that stage is read in its place, and no file is made.

    Raise OwnKernelError, a ValueError, with the line that is wrong, or if the file has the name of a stage of
    the ladder.
    """
    path = where(file)
    if otherwise is not None and not path.exists():
        path = write_new(path.stem, Path(_until_the_end().name), otherwise)
    mine = own_stage(path, Mine)
    if mine.name in LADDER:
        raise OwnKernelError(f"{mine.name} is a stage of the ladder: give the file another name.")
    return mine


def own_with(start: str, *changes: tuple[str, str], name: str = "mine") -> Mine:
    """Return the stage that a new file would hold, begun as ``start`` and changed.

    No file of yours is touched. Each change is (old text, new text), and the old text must occur once. Raise
    OwnKernelError if it does not, or if the result is no stage.
    """
    path = write_new(name, Path(_until_the_end().name), start)
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        if text.count(old) != 1:
            raise OwnKernelError(f"{path.name} has {text.count(old)} times, not once: {old!r}")
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    return own(path)


def _until_the_end() -> tempfile.TemporaryDirectory:
    """Make a folder that stays as long as this process, because the emulator reads the source in it."""
    folder = tempfile.TemporaryDirectory(prefix="gemm-course-own-")
    _FOLDERS.append(folder)
    return folder


_FOLDERS: list[tempfile.TemporaryDirectory] = []
