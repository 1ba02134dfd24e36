"""Writes the file of a learner's own stage for `python3 course.py new`, as a copy of a ladder's stage."""

from __future__ import annotations

import difflib
import importlib.machinery
import inspect
import re
import sys
from pathlib import Path

from gemm_course.kernels import LADDER, Stage
from gemm_course.kernels.parts.own import OwnKernelError

USUAL = "thread_tiled_2d"
# Modules that people install later, and that must then be found.
OTHERS = {"cupy", "jax", "tensorflow", "torch", "triton"}
HEAD = """\
# A kernel of your own. It began as the ladder's {start}: everything in it may be changed.
#
#   build         makes the kernel for one choice of tiles. What it must keep: it takes (m, n, k, alpha, A, B,
#                 beta, C) and computes C = alpha * A @ B + beta * C, for any m, n and k. Rows may be longer
#                 than the matrix is wide. With beta = 0, C must not be read.
#   requirements  the rules that tiles must keep, each with the sentence that is said when it is broken.
#   STAGE         tiles: the defaults. options: what the sliders offer. threads and blocks: of a launch.
#                 registers: the most that a thread may use. dtype: "float32" or "float16".
#
# More than a product, such as a bias for each column and ReLU: let the kernel take `bias` after C, and tell
# STAGE what it does:  extras={{"bias": "n"}}, epilogue=lambda C, bias: np.maximum(C + bias, 0)
#
#   python3 course.py check {file}       odd shapes, padding full of NaN, races; needs no GPU
#   python3 course.py compile {file}     registers and machine code; needs no GPU
#   python3 course.py card {file}        a picture and a line of text, to show others
#   python3 course.py bench {file}       on your GPU, beside cuBLAS
#   python3 course.py profile {file}     on your GPU, with Nsight Compute
#
# In a notebook:  mine = own("{file}"); mine.check(); see.card(mine); see.tiles(mine); mine(A, B, out=C)
"""


def write_new(name: str, folder: Path, start: str = USUAL) -> Path:
    """Write NAME.py, a learner's stage that begins as a stage of the ladder, and return its path.

    Raise OwnKernelError if the file exists, if the name cannot be imported or is the ladder's, or if no stage
    is called `start`.
    """
    name = name.removesuffix(".py")
    if not name.isidentifier():
        raise OwnKernelError(
            f"{name!r} cannot be imported: a name has letters, digits and _, as in my_kernel."
        )
    if name in LADDER:
        raise OwnKernelError(f"{name} is a stage of the ladder: choose another name.")
    if _is_somebodys(name):
        raise OwnKernelError(
            f"{name} is a module already, and {name}.py would stand before it wherever its folder comes "
            "first: choose another name."
        )
    if start not in LADDER:
        names = [stage.name for stage in LADDER]
        near = [name for name in names if start in name] or difflib.get_close_matches(start, names)
        known = f"did you mean {' or '.join(near)}?" if near else f"the ladder is {', '.join(names)}."
        raise OwnKernelError(f"no stage is called {start!r}; {known}")
    path = folder / f"{name}.py"
    if path.exists():
        raise OwnKernelError(f"{path} exists already, and nothing was written: choose another name.")
    path.write_text(_text(LADDER[start], name, path.name), encoding="utf-8")
    return path


def _is_somebodys(name: str) -> bool:
    """Tell whether Python or a package has a module of this name."""
    return (
        name in sys.stdlib_module_names | OTHERS or importlib.machinery.PathFinder.find_spec(name) is not None
    )


def _text(stage: Stage, name: str, file: str) -> str:
    module = inspect.getmodule(stage.build)
    if getattr(module, "STAGE", None) is not stage:  # The stage reuses the build of another stage.
        module = inspect.getmodule(stage.requirements)
    text = inspect.getsource(module)
    for old, new in (
        (rf'name="{stage.name}"', f'name="{name}"'),
        (r'title="[^"]*"', 'title="A kernel of my own"'),
        (r'after="[^"]*"', f'after="{stage.name}"'),
        (r'document="[^"]*"', 'document=""'),
    ):
        text = re.sub(rf"^    {old},$", f"    {new},", text, flags=re.MULTILINE)
    stages = getattr(module, "STAGES", (module.STAGE,))
    if module.STAGE is not stage:
        text += f"STAGE = STAGES[{stages.index(stage)}]\n"
    return f"{HEAD.format(start=stage.name, file=file)}{text}"
