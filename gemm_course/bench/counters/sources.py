"""Where cases come from: stages of the ladder, a Python file, single shared-memory instructions."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gemm_course.bench.counters.case import Case
from gemm_course.bench.counters.patterns import wavefront_cases
from gemm_course.kernels import LADDER, Stage, tiles_text
from gemm_course.kernels.parts.own import own_stage
from gemm_course.kernels.variants import called, variants
from gemm_course.records import parse_tiles


@dataclass(frozen=True)
class Source:
    """Where cases come from, as text that can be passed to another process.

    kind "stages": stages by name (empty: the whole ladder) at `shapes`, with `tiles` changed from the
    defaults; "module": a Python file that exposes CASES, objects with .name .kernel .grid .block .make_args()
    .shared_bytes; "pickled": one launch that `pickled` has written into the file `module`; "own": the stage
    of one's own in the file `module`, at `shapes`, with `tiles`; "wavefronts": one shared-memory instruction
    per case, including those of the records in `module`.
    only: words of the names of a module's cases to take; empty: all. betas: of a stage's cases; empty: 0,
    and 0.5 beside it unless the shape is a cube.
    """

    kind: str
    stages: tuple[str, ...] = ()
    shapes: tuple[tuple[int, int, int], ...] = ()
    module: str = ""
    seed: int = 1
    only: tuple[str, ...] = ()
    tiles: str = ""
    betas: tuple[float, ...] = ()

    def as_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Source:
        fields = json.loads(text)
        fields |= {name: tuple(fields[name]) for name in ("stages", "only", "betas")}
        fields["shapes"] = tuple(tuple(shape) for shape in fields["shapes"])
        return cls(**fields)

    def cases(self) -> list[Case]:
        """The cases, in an order that is the same in every process."""
        if self.kind == "stages":
            return stage_cases(self.stages, self.shapes, parse_tiles(self.tiles), self.betas)
        if self.kind == "module":
            return module_cases(Path(self.module), self.only)
        if self.kind == "own":
            stage, tiles = own_stage(self.module), parse_tiles(self.tiles)
            return [_stage_case(stage, shape, 0.0, stage.complete(tiles)) for shape in self.shapes]
        if self.kind == "pickled":
            return [unpickled(Path(self.module))]
        if self.kind == "wavefronts":
            return wavefront_cases(self.seed, Path(self.module) if self.module else None)
        raise ValueError(f"no kind of source is called {self.kind!r}")


def stage_named(name: str) -> Stage:
    """A stage of the ladder or a variant of one. Raises ValueError for an unknown name."""
    stage = called(name)
    if stage is None:
        known = ", ".join(one.name for one in (*LADDER, *variants()))
        raise ValueError(f"no stage is called {name}; there is {known}")
    return stage


def stage_cases(
    names: Sequence[str],
    shapes: Sequence[tuple[int, int, int]],
    tiles: Mapping[str, int] | None = None,
    betas: Sequence[float] = (),
) -> list[Case]:
    """Stages with tiles changed from the defaults; without betas, 0, and 0.5 for shapes other than cubes."""
    stages = [stage_named(name) for name in names] if names else list(LADDER)
    return [
        _stage_case(stage, shape, beta, stage.complete(tiles))
        for stage in stages
        for shape in shapes
        for beta in (betas or ((0.0,) if len(set(shape)) == 1 else (0.0, 0.5)))
    ]


def _stage_case(stage: Stage, shape: tuple[int, int, int], beta: float, tiles: Mapping[str, int]) -> Case:
    m, n, k = shape

    def arguments() -> tuple:
        standard = gemm_args(shape, stage.alignment, beta, stage.dtype)
        return stage.arguments(*standard, *stage.example_extras(m, n), tiles=tiles)

    return Case(
        name=f"{stage.name} {m}x{n}x{k}" + (f" beta={beta:g}" if beta else ""),
        kernel=stage.kernel(tiles),
        grid=stage.grid(m, n, tiles),
        block=stage.block(tiles),
        make_args=arguments,
        shared_bytes=stage.shared_bytes(tiles),
        setting={"m": m, "n": n, "k": k, "tiles": tiles_text(tiles)},
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


def pickled(configured: Any, args: Sequence[Any], path: Path) -> Source:
    """Write a configured kernel, `my_kernel[grid, block]`, and its arguments into a file for another process.

    The kernel is written with all that it uses, device functions and constants, so it may come from a
    notebook. Its signatures, if it was defined with some, are compiled again there.
    """
    from numba.cuda import serialize

    kernel = configured.dispatcher
    signatures = [] if kernel._can_compile else list(kernel.overloads)
    sizes = [tuple(int(part) for part in given) for given in (configured.griddim, configured.blockdim)]
    path.write_bytes(serialize.dumps((kernel, signatures, *sizes, int(configured.sharedmem), tuple(args))))
    return Source("pickled", module=str(path))


def unpickled(path: Path) -> Case:
    """The case in a file of `pickled`."""
    from numba.cuda import serialize

    kernel, signatures, grid, block, shared_bytes, args = serialize.loads(path.read_bytes())
    for types in signatures:
        kernel.compile(types)
    kernel.disable_compile(bool(signatures))
    return Case(kernel.py_func.__name__, kernel, grid, block, lambda: args, shared_bytes)
