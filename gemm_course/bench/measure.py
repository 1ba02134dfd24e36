"""Measures one stage with one choice of tiles: checks its result, then times it beside cuBLAS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gemm_course.bench.cublas import cublas_version
from gemm_course.bench.problem import Problem
from gemm_course.device import compile_for, gpu_facts, launch, time_alternating, why_too_old
from gemm_course.device.launch import Resources, allow_shared_memory, must_opt_in
from gemm_course.kernels import Stage, tiles_text
from gemm_course.records import origin
from gemm_course.records.columns import LADDER, SHORT_DTYPES

SCALINGS = ((1.0, 0.0), (1.25, -0.5))  # alpha, beta
MOST_ROUNDS = 60


class TooOld(RuntimeError):
    """The GPU lacks something that a stage needs; the message says what."""


class Candidate:
    """A stage with tiles, compiled for a problem's arguments."""

    def __init__(self, stage: Stage, tiles: Mapping[str, int], problem: Problem):
        """Compile. problem: of the stage's dtype.

        Raises TooOld; IllegalTiles; ValueError if it needs more shared memory than there is.
        """
        reason = why_too_old(stage.name, stage.compute_capability)
        if reason:
            raise TooOld(reason)
        self.stage, self.tiles, self.problem = stage, stage.complete(tiles), problem
        m, n, _ = problem.shape
        self.kernel = stage.kernel(tiles)
        self.geometry = (stage.grid(m, n, tiles), stage.block(tiles))
        self.shared_bytes = stage.shared_bytes(tiles)
        self.resources: Resources = compile_for(self.kernel, self.arguments())
        if must_opt_in(self.shared_bytes, self.resources):
            allow_shared_memory(self.kernel, self.shared_bytes)

    def arguments(self, alpha: float = 1.0, beta: float = 0.0) -> list:
        """The arguments of the stage's kernel for this problem."""
        return list(self.stage.arguments(*self.problem.arguments(alpha, beta), tiles=self.tiles))

    def launch(self, alpha: float = 1.0, beta: float = 0.0) -> None:
        """Queue one launch; its arguments stay alive until the next one."""
        self._given = self.arguments(alpha, beta)
        launch(self.kernel, *self.geometry, self._given, self.shared_bytes)

    def check(self, scalings=SCALINGS) -> float:
        """The largest relative error against float64. Raises WrongResult."""
        accumulate = self.stage.accumulate
        return max(self.problem.error_of(self.launch, alpha, beta, accumulate) for alpha, beta in scalings)

    def measure(
        self,
        error: float,
        budget_ms: float,
        least: int = 3,
        most: int = MOST_ROUNDS,
        triton: Callable[[], None] | None = None,
    ) -> dict[str, Any]:
        """Time it in turn with cuBLAS, and with Triton if given -> the columns that a measurement fills.

        cuBLAS has accumulators of the stage's dtype.
        """
        arguments = self.arguments()
        ready = self.kernel[(*self.geometry, 0, self.shared_bytes)]  # queues a launch with the least overhead

        def go():
            ready(*arguments)

        launchers = [go, self.problem.cublas(self.stage.accumulate), *([triton] if triton else [])]
        own, cublas, *others = time_alternating(launchers, budget_ms, most, least)
        m, n, k = self.problem.shape
        return {
            "milliseconds": own.median_ms,
            "tflops": _tflops(m, n, k, own.median_ms),
            "cublas_tflops": _tflops(m, n, k, cublas.median_ms),
            "ratio_to_cublas": cublas.median_ms / own.median_ms,
            "triton_tflops": _tflops(m, n, k, others[0].median_ms) if others else None,
            "relative_error": error,
            "sm_clock_mhz": own.sm_clock_mhz,
        }

    def resource_columns(self) -> dict[str, int]:
        return {
            "registers": self.resources.registers,
            "shared_bytes": self.resources.static_shared_bytes + self.shared_bytes,
            "local_bytes": self.resources.local_bytes,
        }


def row_of(
    stage: Stage, tiles: Mapping[str, int], shape: tuple[int, int, int], command: str
) -> dict[str, Any]:
    """A row of the ladder with everything that is known before measuring."""
    m, n, k = shape
    gpu = gpu_facts()
    return {
        **dict.fromkeys(LADDER.columns),
        "stage": stage.name,
        "dtype": SHORT_DTYPES[stage.dtype],
        "accumulate": SHORT_DTYPES[stage.accumulate],
        "m": m,
        "n": n,
        "k": k,
        "tiles": tiles_text(stage.complete(tiles)),
        **origin(gpu.name, gpu.driver, gpu.cuda, command),
        "cublas": cublas_version(),
    }


def _tflops(m: int, n: int, k: int, milliseconds: float) -> float:
    return 2e-9 * m * n * k / milliseconds
