"""Where NVIDIA's compiler is missing: the record, and else one sentence that says what to install."""

import sys

import numpy as np
import pytest

from gemm_course import LADDER, compiled
from gemm_course.compiler import CannotCompile, NoCompiler, nvidia, recorded
from gemm_course.compiler.compile import _compiled_stage

X = np.zeros(4, np.float32)


def kernel(x):
    x[0] = 1


@pytest.fixture(autouse=True)
def fresh_answer():
    """Clear the cached answers, before and after."""
    nvidia._what_is_missing.cache_clear()
    _compiled_stage.cache_clear()
    yield
    nvidia._what_is_missing.cache_clear()


def no_tools(monkeypatch):
    pathfinder = pytest.importorskip("cuda.pathfinder")

    def missing(name):
        raise pathfinder.DynamicLibNotFoundError(name)

    monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", missing)
    monkeypatch.setattr(pathfinder, "find_nvidia_binary_utility", lambda name: None)


def no_numba_cuda(monkeypatch):
    monkeypatch.setattr(nvidia, "find_spec", lambda name: None)


def macos(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")


def simulator(monkeypatch):
    from numba import config

    monkeypatch.setattr(config, "ENABLE_CUDASIM", 1)


@pytest.mark.parametrize(
    ("why", "words"),
    [
        (
            no_tools,
            "NVIDIA's compiler is not installed (nvvm, nvrtc, nvJitLink, nvdisasm): install the extra",
        ),
        (
            no_numba_cuda,
            "numba-cuda is not installed: install the extra `compiler`: `python3 course.py --comp",
        ),
        (macos, "NVIDIA has no compiler for macOS"),
        (simulator, "NUMBA_ENABLE_CUDASIM is set"),
    ],
)
def test_a_sentence_says_what_to_install_unless_there_is_a_record(monkeypatch, why, words):
    why(monkeypatch)
    reason = nvidia.why_no_compiler()
    assert reason.startswith(words) and reason.endswith(".") and "\n" not in reason
    with pytest.raises(NoCompiler) as refused:
        compiled(kernel, X)
    assert str(refused.value) == reason
    for asked in ({"tiles": {"BK": 8}}, {"compute_capability": (12, 0)}):
        with pytest.raises(NoCompiler) as refused:
            compiled("warp_tiled", **asked)
        assert str(refused.value).startswith(reason) and "8.0, 8.6 or 9.0" in str(refused.value)

    assert compiled("warp_tiled").text == recorded("warp_tiled", (9, 0)).text
    defaults = dict(LADDER["warp_tiled"].tiles)
    found = compiled(LADDER["warp_tiled"], tiles=defaults, compute_capability=(8, 6))
    assert found.compute_capability == (8, 6) and found.seconds is None


def test_what_no_gpu_could_run_is_said_without_the_compiler_too(monkeypatch):
    no_tools(monkeypatch)
    with pytest.raises(CannotCompile, match="Hopper"):
        compiled("persistent", compute_capability=(8, 0))
    with pytest.raises(CannotCompile, match="did you mean"):
        compiled("vectorised")
