"""Measures one stage with one choice of tiles: checks its result, then times it beside cuBLAS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gemm_course.bench.cublas import cublas_version, cupy
from gemm_course.bench.problem import Problem
from gemm_course.device import compile_for, gpu_facts, launch, time_alternating, why_too_old
from gemm_course.device.buffers import on_device
from gemm_course.device.launch import Resources, allow_shared_memory, must_opt_in
from gemm_course.kernels import KernelLaunch, Stage, tiles_text
from gemm_course.records import origin
from gemm_course.records.columns import LADDER, SHORT_DTYPES

# Each scaling is (alpha, beta).
SCALINGS = ((1.0, 0.0), (1.25, -0.5))
MOST_ROUNDS = 60


class TooOld(RuntimeError):
    """The error for a GPU that lacks something that a stage needs. Its message says what."""


class Candidate:
    """A stage with tiles, compiled for a problem's arguments."""

    def __init__(self, stage: Stage, tiles: Mapping[str, int], problem: Problem):
        """Compile the stage's kernels. The problem must have the stage's dtype.

        Raise TooOld, IllegalTiles, or ValueError if the stage needs more shared memory than there is.
        """
        reason = why_too_old(stage.name, stage.compute_capability)
        if reason:
            raise TooOld(reason)
        self.stage, self.tiles, self.problem = stage, stage.tiles_for(*problem.shape, tiles), problem
        self.extras = tuple(on_device(stage.example_extras(*problem.shape[:2])))
        for each in self.launches():  # Only the resources of the last launch are kept.
            self.resources, self.dynamic_shared_bytes = _prepared(each), each.shared_bytes

    def launches(self, alpha: float = 1.0, beta: float = 0.0) -> tuple[KernelLaunch, ...]:
        """Return what the stage launches for this problem."""
        return self.stage.launches(*self._arguments(alpha, beta), tiles=self.tiles)

    def _arguments(self, alpha: float, beta: float) -> list:
        return [*self.problem.arguments(alpha, beta), *self.extras]

    def launch(self, alpha: float = 1.0, beta: float = 0.0) -> None:
        """Queue the launches. Their arguments stay alive until the next call."""
        self._given = self.launches(alpha, beta)
        for each in self._given:
            launch(each.kernel, each.grid, each.block, each.arguments, each.shared_bytes)

    def launch_alone(self, alpha: float = 1.0, beta: float = 0.0) -> None:
        """Queue the stage's own kernel, which computes all of C."""
        each = self.stage.alone(*self._arguments(alpha, beta), tiles=self.tiles)
        self._given = (each,)
        launch(each.kernel, each.grid, each.block, each.arguments, each.shared_bytes)

    def ready(self) -> Callable[[], None]:
        """Return a function that queues the launches.

        Kernels are configured before it is called, which saves time on the host.
        """
        configured = [
            (each.kernel[each.grid, each.block, 0, each.shared_bytes], each.arguments)
            for each in self.launches()
        ]

        def go() -> None:
            for kernel, arguments in configured:
                kernel(*arguments)

        return go

    def check(self, scalings=SCALINGS) -> float:
        """Return the largest relative error against float64. Raise WrongResult if it is too large.

        If a stage may launch several kernels, its own kernel alone is checked as well.
        """
        ways = [self.launch] if self.stage.shares is None else [self.launch, self.launch_alone]
        accumulate = self.stage.accumulate
        return max(
            self.problem.error_of(way, alpha, beta, accumulate, self._finished)
            for way in ways
            for alpha, beta in scalings
        )

    def _finished(self, product):
        return self.stage.finished(product, *map(cupy().asarray, self.extras))

    def measure(
        self,
        error: float,
        budget_ms: float,
        least: int = 3,
        most: int = MOST_ROUNDS,
        triton: Callable[[], None] | None = None,
    ) -> dict[str, Any]:
        """Time the stage in turn with cuBLAS, and with Triton if given. Return the columns of a measurement.

        cuBLAS accumulates in the same dtype as the stage. ``error`` is the relative error that `check` found.
        """
        launchers = [self.ready(), self.problem.cublas(self.stage.accumulate), *([triton] if triton else [])]
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
            "shared_bytes": self.resources.static_shared_bytes + self.dynamic_shared_bytes,
            "local_bytes": self.resources.local_bytes,
        }


def _prepared(each: KernelLaunch) -> Resources:
    """Compile a launch's kernel, allow the shared memory that it needs, and return its resources."""
    found = compile_for(each.kernel, each.arguments)
    if must_opt_in(each.shared_bytes, found):
        allow_shared_memory(each.kernel, each.shared_bytes)
    return found


def row_of(
    stage: Stage, tiles: Mapping[str, int], shape: tuple[int, int, int], command: str
) -> dict[str, Any]:
    """Return a row of the ladder with everything that is known before measuring."""
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
        "tiles": tiles_text(stage.tiles_for(m, n, k, tiles)),
        **origin(gpu.name, gpu.driver, gpu.cuda, command),
        "cublas": cublas_version(),
    }


def _tflops(m: int, n: int, k: int, milliseconds: float) -> float:
    return 2e-9 * m * n * k / milliseconds
