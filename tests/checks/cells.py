"""The exercises' cells in the sources of the notebooks: stubs and solutions, run as a notebook runs them."""

import ast
from pathlib import Path

import jupytext

SOURCES = sorted((Path(__file__).parents[2] / "notebooks" / "source").glob("[0-9]*.py"))
IMPORTS = "import numpy as np\nfrom numba import cuda, float32\nfrom gemm_course import check\n"
IMPORTS += "from numba.types import float16\nfrom gemm_course.intrinsics import load4, store4\n"
IMPORTS += "from gemm_course.intrinsics import COL_MAJOR, ROW_MAJOR, wmma_load_a, wmma_load_b, wmma_mma\n"
IMPORTS += "from gemm_course.intrinsics import wmma_store\n"
IMPORTS += "from gemm_course.checks.warp_parts import parts\n"


def checked_cells(tag: str) -> dict[str, str]:
    """The code cells with this tag that call a checker, by the exercise's name."""
    cells = {}
    for source in SOURCES:
        for cell in jupytext.read(source).cells:
            name = _checked_in(cell.source) if cell.cell_type == "code" else None
            if name and tag in cell.metadata.get("tags", []):
                cells[name] = cell.source
    return cells


def _checked_in(source: str) -> str | None:
    called = [
        node.func.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value) == "check"
    ]
    return called[-1] if called else None


def verdict_of(source: str, path: Path):
    """Run a cell from a file at ``path``, as kernels need a source; its last expression is the answer."""
    path.write_text(IMPORTS + source, encoding="utf-8")
    tree = ast.parse(IMPORTS + source)
    *body, last = tree.body
    space = {"__name__": "cell"}
    exec(compile(ast.Module(body, []), str(path), "exec"), space)
    return eval(compile(ast.Expression(last.value), str(path), "eval"), space)
