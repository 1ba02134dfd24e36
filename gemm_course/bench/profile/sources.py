"""Describes as text which kernels are profiled, for the process that launches them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gemm_course.kernels import LADDER, Stage, tiles_text
from gemm_course.kernels.parts.own import own_stage
from gemm_course.kernels.variants import called, variants
from gemm_course.records import parse_tiles


@dataclass(frozen=True)
class Case:
    """A launch of a kernel.

    `make_args()` returns NumPy arrays and scalars. ``shared_bytes`` is dynamic shared memory. ``setting`` has
    m, n, k and tiles if the case is a GEMM.
    """

    name: str
    kernel: Any
    grid: Any
    block: Any
    make_args: Callable[[], Sequence[Any]]
    shared_bytes: int = 0
    setting: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """A source of cases, in a form that can be passed to another process as text.

    ``kind`` says what the other fields mean. "stages": the named `stages`, or the whole ladder if empty, at
    `shapes`, with `tiles` changed from the defaults. "pickled": the launch that `pickled` has written into
    the file `module`. "own": the stage in the learner's file `module`, at `shapes`, with `tiles`. ``betas``
    are those of a stage's cases. If empty, they are 0, and 0.5 as well unless the shape is a cube.
    """

    kind: str
    stages: tuple[str, ...] = ()
    shapes: tuple[tuple[int, int, int], ...] = ()
    module: str = ""
    tiles: str = ""
    betas: tuple[float, ...] = ()

    @property
    def program(self) -> list[str]:
        """The arguments with which Python launches the cases. The path of the report must follow them."""
        return ["-m", "gemm_course.bench.profile.child", self.as_text()]

    def as_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Source:
        fields = json.loads(text)
        fields |= {name: tuple(fields[name]) for name in ("stages", "betas")}
        fields["shapes"] = tuple(tuple(shape) for shape in fields["shapes"])
        return cls(**fields)

    def cases(self) -> list[Case]:
        """Return the cases, in an order that is the same in every process."""
        if self.kind == "stages":
            return stage_cases(self.stages, self.shapes, parse_tiles(self.tiles), self.betas)
        if self.kind == "own":
            stage, tiles = own_stage(self.module), parse_tiles(self.tiles)
            return [_stage_case(stage, shape, 0.0, stage.complete(tiles)) for shape in self.shapes]
        if self.kind == "pickled":
            return [unpickled(Path(self.module))]
        raise ValueError(f"no kind of source is called {self.kind!r}")


def stage_named(name: str) -> Stage:
    """Return a stage of the ladder or a variant of one. Raise ValueError for an unknown name."""
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
    """Return a case for each stage, shape and beta.

    Without ``betas``, they are 0, and 0.5 as well unless the shape is a cube.
    """
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
    """Return (m, n, k, alpha, A, B, beta, C) with random matrices.

    The padding holds NaN, and so does C if beta is 0.
    """
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


def pickled(configured: Any, args: Sequence[Any], path: Path) -> Source:
    """Write a configured kernel, `my_kernel[grid, block]`, and its arguments into a file for another process.

    The file holds the kernel's code with the device functions and constants that it uses, so the kernel may
    come from a notebook. The other process compiles a kernel that was defined with signatures for them again.
    """
    from numba.cuda import serialize

    kernel = configured.dispatcher
    signatures = [] if kernel._can_compile else list(kernel.overloads)
    sizes = [tuple(int(part) for part in given) for given in (configured.griddim, configured.blockdim)]
    path.write_bytes(serialize.dumps((kernel, signatures, *sizes, int(configured.sharedmem), tuple(args))))
    return Source("pickled", module=str(path))


def unpickled(path: Path) -> Case:
    """Return the case that `pickled` has written into this file."""
    from numba.cuda import serialize

    kernel, signatures, grid, block, shared_bytes, args = serialize.loads(path.read_bytes())
    for types in signatures:
        kernel.compile(types)
    kernel.disable_compile(bool(signatures))
    return Case(kernel.py_func.__name__, kernel, grid, block, lambda: args, shared_bytes)
