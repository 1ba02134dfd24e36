"""Shows what kernels read from shared memory as they are written, beside what their machine code reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gemm_course.compiler import CannotCompile, Compiled, NoCompiler, compiled
from gemm_course.compiler.limits import shown as version
from gemm_course.compiler.shared_reads import NotClear, compiled_reads, written_reads
from gemm_course.figures import as_compiled as figure
from gemm_course.kernels import Stage, tiles_text
from gemm_course.kernels.parts.block_tile import named
from gemm_course.kernels.variants import called
from gemm_course.model import occupancy
from gemm_course.model.requests import WARP, Request, requests
from gemm_course.profiles import NoProfile, Profile, recorded
from gemm_course.widgets._errors_in_words import NotShown, learners_name, made_by, parameters_of
from gemm_course.widgets._profiled import note
from gemm_course.widgets._stages import stage_of
from lockstep import Watch, emulate

HOPPER = (9, 0)
# A kernel without tiles along k is counted in steps of this many products.
_DEPTH = 8
# Rows of this many elements begin at a line of memory, as in large matrices.
_ROW = 1024
_ALL = 10_000_000


@dataclass(frozen=True)
class _Subject:
    """A kernel with the sizes of its tiles, ready for one block. ``own`` tells whether a learner wrote it.

    ``results`` is the number per thread.
    """

    name: str
    own: bool
    tiles: Mapping[str, int]
    kernel: Any
    block: tuple[int, ...]
    arguments: Callable[[int], Sequence]
    code: Callable[[], Compiled]
    shared_bytes: int = 0
    profile: Profile | None = None

    @property
    def threads(self) -> int:
        return math.prod(self.block)

    @property
    def results(self) -> int:
        return self.tiles["BM"] * self.tiles["BN"] // self.threads

    @property
    def depth(self) -> int:
        return self.tiles.get("BK", _DEPTH)


def as_compiled(
    *kernels: str | Stage | Callable,
    tiles: Mapping[str, int] | None = None,
    block: tuple[int, int] | None = None,
    reads_only: bool = False,
) -> figure.Table:
    """Tell in a table what a warp of each kernel reads from shared memory per step along k.

    As written, the emulator counts it. As compiled, it is found in the machine code for an H200, which needs
    the extra `compiler` but no GPU. Without the extra, there is machine code of the ladder's kernels where it
    is on record.

    ``kernels`` are FP32 stages of the ladder or their names, and your own: a stage, a factory, or a kernel.
    ``tiles`` are the sizes of all of them, in elements: BM, BN and what else a factory takes. Your kernel's
    blocks are BN / TN by BM / TM threads, unless ``block`` says otherwise, as (x, y). With ``reads_only``
    the table leaves out registers, what is spilled, and blocks per SM.

    Raise IllegalTiles for illegal tiles, and ValueError for no kernel, for sizes that are missing, and for a
    kernel on Tensor Cores.
    """
    if not kernels:
        raise ValueError('pass a kernel, such as see.as_compiled("thread_tiled_2d").')
    columns = [_column(_subject(kernel, tiles, block)) for kernel in kernels]
    return figure.table(columns, reads_only)


# --- what is asked for --------------------------------------------------------------------------------------


def _subject(kernel: Any, tiles: Mapping[str, int] | None, block: tuple[int, int] | None) -> _Subject:
    if isinstance(kernel, str):
        kernel = stage_of(kernel)
    if isinstance(kernel, Stage):
        return _of_stage(kernel, kernel.complete(tiles))
    if tiles is None or not {"BM", "BN"} <= tiles.keys():
        example = '{"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}'
        raise NotShown(f"Say how large the tiles of your kernel are, such as tiles={example}.")
    return _of_learner(kernel, tiles, block)


def _of_stage(stage: Stage, tiles: Mapping[str, int]) -> _Subject:
    if stage.dtype != "float32":
        raise ValueError(f"{stage.name} computes on Tensor Cores, whose reads are not single floats.")
    kernel = stage.kernel(tiles)
    sizes = named(stage, tiles)

    def arguments(k: int) -> Sequence:
        m, n = sizes["BM"], sizes["BN"]
        return stage.arguments(*_standard(m, n, k), *stage.example_extras(m, n), tiles=tiles)

    return _Subject(
        stage.name,
        called(stage.name) is None,
        sizes,
        kernel,
        stage.block(tiles),
        arguments,
        partial(compiled, stage, tiles=tiles, compute_capability=HOPPER),
        stage.shared_bytes(tiles),
        _profile(stage, tiles),
    )


def _of_learner(answer: Any, tiles: Mapping[str, int], block: tuple[int, int] | None) -> _Subject:
    name, made = learners_name(answer), answer
    if not hasattr(answer, "py_func"):
        wanted = parameters_of(answer)
        missing = [size for size in wanted if size not in tiles]
        if missing:
            raise NotShown(f"`{name}` takes {', '.join(missing)} as well: say in `tiles` how large.")
        made = made_by(answer, **{size: tiles[size] for size in wanted})
    threads = block or (tiles["BN"] // tiles.get("TN", 1), tiles["BM"] // tiles.get("TM", 1))
    arguments = partial(_standard, tiles["BM"], tiles["BN"])
    code = partial(compiled, made, *arguments(WARP), compute_capability=HOPPER)
    return _Subject(name, True, tiles, made, threads, arguments, code)


def _standard(m: int, n: int, k: int) -> Sequence:
    A, B, C = (np.zeros((rows, _ROW), np.float32) for rows in (m, k, m))
    return m, n, k, np.float32(1), A, B, np.float32(0), C


def _profile(stage: Stage, tiles: Mapping[str, int]) -> Profile | None:
    try:
        return recorded(stage, tiles)
    except NoProfile:
        return None


# --- what is told -------------------------------------------------------------------------------------------


def _column(subject: _Subject) -> figure.Column:
    short, longer = (_loads(subject, count * subject.depth) for count in (1, 2))
    written = written_reads(short, longer, subject.depth)
    code, why = _code(subject)
    reads = None
    if code is not None:
        try:
            reads = compiled_reads(code, short, subject.results)
        except NotClear as reason:
            why = f"{subject.name}: {reason}"
    return figure.Column(
        subject.name,
        subject.own,
        tiles_text(subject.tiles),
        written,
        reads,
        measured=_measured(subject),
        registers=code and code.registers,
        spilled=code and code.spilled_bytes,
        blocks=code and occupancy(subject.threads, code.registers, code.shared_bytes).blocks,
        threads=subject.threads,
        notes=[words for words in (why, _from(code), _measured_where(subject)) if words],
    )


def _loads(subject: _Subject, k: int) -> list[Request]:
    """Return the first warp's loads from shared memory in a product of one block with this k.

    Raise NotShown if the warp does not store as many results as it should.
    """
    report = emulate(
        subject.kernel,
        1,
        subject.block,
        *subject.arguments(k),
        shared_bytes=subject.shared_bytes,
        watch=Watch(warp=0, limit=_ALL, local=False),
    )
    trace = report.trace
    if subject.own:
        stores = trace[(trace["array"] == "C") & (trace["op"] == "store")]
        stored = {
            (row, column + e)
            for (row, column), bits in zip(stores["element"], stores["bits"], strict=True)
            for e in range(bits // 32)
        }
        own_tile = {(row, column) for row, column in stored if _in_tile(subject, row, column)}
        _check_results(subject, len(own_tile))
    return requests(trace, op="load", space="shared")


def _in_tile(subject: _Subject, row: int, column: int) -> bool:
    return row < subject.tiles["BM"] and column < subject.tiles["BN"]


def _check_results(subject: _Subject, stored: int) -> None:
    if stored != WARP * subject.results:
        x, y, *_ = *subject.block, 1
        raise NotShown(
            f"With blocks of {x} × {y} threads, the first warp of `{subject.name}` stores {stored:,} "
            f"elements of its block's tile, and not {WARP} · {subject.results}. If your blocks have "
            "another shape, say so: block=(x, y)."
        )


def _code(subject: _Subject) -> tuple[Compiled | None, str]:
    """Return a kernel's machine code, compiled here or from the record, and a sentence if there is none."""
    try:
        return subject.code(), ""
    except NoCompiler as reason:
        if subject.profile:
            return subject.profile.code, ""
        return None, f"{subject.name} as compiled: {reason}"
    except CannotCompile as reason:
        return None, f"{subject.name} as compiled: {reason}"


def _measured(subject: _Subject) -> float | None:
    """Return the wavefronts per step of one warp that a GPU counted in the profiled launch, or None."""
    if subject.profile is None:
        return None
    row = subject.profile.measured
    steps = row["m"] * row["n"] * row["k"] / (WARP * subject.results)
    return float(row["shared_load_wavefronts"]) / steps


def _from(code: Compiled | None) -> str:
    return (
        code and f"As compiled: for compute capability {version(code.compute_capability)}, {code.compiler}."
    )


def _measured_where(subject: _Subject) -> str:
    return f"Counted on the GPU: {note([subject.profile])}" if subject.profile else ""
