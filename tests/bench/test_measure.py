"""A measurement on a fake GPU: what is launched, with what, and which columns result."""

from types import SimpleNamespace

import pytest

from gemm_course.bench import measure
from gemm_course.bench.measure import Candidate
from gemm_course.device import Resources, Timing
from gemm_course.kernels import LADDER


class Kernel:
    """Records how it was configured and launched."""

    def __init__(self):
        self.configured, self.launched = [], []

    def __getitem__(self, configuration):
        self.configured.append(configuration)
        return lambda *arguments: self.launched.append(arguments)


@pytest.fixture
def pretended(monkeypatch):
    """A GPU on which a stage takes 2 ms, cuBLAS 1 ms and Triton 4 ms."""
    asked = SimpleNamespace(kernel=Kernel(), cublas=[], opted_in=[])

    def in_turn(launchers, budget_ms, most, least):
        for launcher in launchers:
            launcher()
        return [Timing(ms, ms, 3, 1980) for ms in (2.0, 1.0, 4.0)[: len(launchers)]]

    for name, value in {
        "why_too_old": lambda *_: None,
        "compile_for": lambda kernel, arguments: Resources(64, 0, 1024, 1024),
        "allow_shared_memory": lambda kernel, size: asked.opted_in.append(size),
        "time_alternating": in_turn,
    }.items():
        monkeypatch.setattr(measure, name, value)
    monkeypatch.setattr("gemm_course.kernels.parts.base._kernel", lambda stage, tiles: asked.kernel)
    asked.problem = SimpleNamespace(
        shape=(256, 512, 128),
        arguments=lambda alpha, beta: [256, 512, 128, alpha, "A", "B", beta, "C"],
        cublas=lambda accumulate: lambda: asked.cublas.append(accumulate),
    )
    return asked


@pytest.mark.parametrize(("name", "accumulate"), [("wmma", "float32"), ("wmma_fp16_acc", "float16")])
def test_cublas_beside_a_stage_accumulates_in_the_same_dtype(pretended, name, accumulate):
    columns = Candidate(LADDER[name], {}, pretended.problem).measure(1e-4, 40)
    assert pretended.cublas == [accumulate]
    assert columns["ratio_to_cublas"] == 0.5
    assert columns["tflops"] == pytest.approx(2e-9 * 256 * 512 * 128 / 2)
    assert columns["triton_tflops"] is None


def test_a_launch_has_the_stages_configuration(pretended):
    stage = LADDER["mma_sync"]
    candidate = Candidate(stage, {}, pretended.problem)
    columns = candidate.measure(1e-4, 40, triton=lambda: None)
    assert pretended.opted_in == [stage.shared_bytes()]  # more than 48 KB
    assert pretended.kernel.configured == [(stage.grid(256, 512), stage.block(), 0, stage.shared_bytes())]
    assert pretended.kernel.launched == [(256, 512, 128, 1.0, "A", "B", 0.0, "C")]
    assert columns["triton_tflops"] == pytest.approx(columns["tflops"] / 2)
    assert candidate.resource_columns()["shared_bytes"] == 1024 + stage.shared_bytes()
