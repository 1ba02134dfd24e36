"""Where cases come from: stages of the ladder, a Python file, single shared-memory instructions."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from gemm_course.bench.counters.case import Case
from gemm_course.bench.counters.patterns import wavefront_cases
from gemm_course.kernels import LADDER, tiles_text


@dataclass(frozen=True)
class Source:
    """Where cases come from, as text that can be passed to another process.

    kind "stages": stages of the ladder by name (empty: all) at `shapes`, with default tiles; "module": a
    Python file that exposes CASES, objects with .name .kernel .grid .block .make_args() .shared_bytes;
    "wavefronts": one shared-memory instruction per case, including those of the records in `module`.
    only: words of the names of a module's cases to take; empty: all.
    """

    kind: str
    stages: tuple[str, ...] = ()
    shapes: tuple[tuple[int, int, int], ...] = ()
    module: str = ""
    seed: int = 1
    only: tuple[str, ...] = ()

    def as_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Source:
        fields = json.loads(text)
        fields["stages"], fields["only"] = tuple(fields["stages"]), tuple(fields["only"])
        fields["shapes"] = tuple(tuple(shape) for shape in fields["shapes"])
        return cls(**fields)

    def cases(self) -> list[Case]:
        """The cases, in an order that is the same in every process."""
        if self.kind == "stages":
            return stage_cases(self.stages, self.shapes)
        if self.kind == "module":
            return module_cases(Path(self.module), self.only)
        if self.kind == "wavefronts":
            return wavefront_cases(self.seed, Path(self.module) if self.module else None)
        raise ValueError(f"no kind of source is called {self.kind!r}")


def stage_cases(names: Sequence[str], shapes: Sequence[tuple[int, int, int]]) -> list[Case]:
    """The ladder's stages at these shapes, default tiles; shapes other than cubes also with beta = 0.5."""
    stages = [LADDER[name] for name in names] if names else list(LADDER)
    return [
        _stage_case(stage, shape, beta)
        for stage in stages
        for shape in shapes
        for beta in ((0.0,) if len(set(shape)) == 1 else (0.0, 0.5))
    ]


def _stage_case(stage, shape: tuple[int, int, int], beta: float) -> Case:
    m, n, k = shape
    return Case(
        name=f"{stage.name} {m}x{n}x{k}" + (f" beta={beta:g}" if beta else ""),
        kernel=stage.kernel(),
        grid=stage.grid(m, n),
        block=stage.block(),
        make_args=lambda: stage.arguments(*gemm_args(shape, stage.alignment, beta, stage.dtype)),
        shared_bytes=stage.shared_bytes(),
        setting={"m": m, "n": n, "k": k, "tiles": tiles_text(stage.tiles)},
    )


def gemm_args(shape: tuple[int, int, int], alignment: int, beta: float, dtype: str = "float32") -> tuple:
    """(m, n, k, alpha, A, B, beta, C) with random matrices; NaN in the padding, and in C where beta is 0."""
    from gemm_course.device.buffers import leading_dimension, padded

    m, n, k = shape
    random = np.random.default_rng(m + n + k)
    made = (random.standard_normal(size, dtype=np.float32) for size in ((m, k), (k, n), (m, n)))
    A, B, C = (matrix.astype(dtype) for matrix in made)
    if beta == 0:
        C[:] = np.nan
    A, B, C = (
        padded(matrix, leading_dimension(matrix.shape[1], alignment, matrix.itemsize)) for matrix in (A, B, C)
    )
    return m, n, k, np.float32(1), A, B, np.float32(beta), C


def module_cases(path: Path, only: Sequence[str] = ()) -> list[Case]:
    """CASES of a Python file, or those whose names contain one of the words.

    Raises ValueError if the file does not exist or has none.
    """
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    sys.path.insert(0, str(Path.cwd()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    known = list(getattr(module, "CASES", ()))
    if not known:
        raise ValueError(f"{path} has no CASES")
    found = [case for case in known if not only or any(word in case.name for word in only)]
    if not found:
        raise ValueError(f"{path} has no case called {' or '.join(only)}")
    return [
        Case(case.name, case.kernel, case.grid, case.block, case.make_args, getattr(case, "shared_bytes", 0))
        for case in found
    ]
