"""Says in a line what limits a profiled kernel and how fast it was."""

from __future__ import annotations

from gemm_course.compiler.kinds import TENSOR_CORE
from gemm_course.model.gpus import by_driver
from gemm_course.profiles import Profile, verdict


def limit_in_words(profile: Profile) -> str:
    """Return the first sentence of the verdict, and the speed of the profiled launch.

    Return "" without figures.
    """
    return " ".join(filter(None, (_limit(profile), _speed(profile))))


def _limit(profile: Profile) -> str:
    if not profile.samples:
        return ""
    try:
        return verdict(profile).sentences[0]
    except ValueError:
        # Too little was measured.
        return ""


def _speed(profile: Profile) -> str:
    if profile.measured["m"] is None or not profile.measured.get("nanoseconds"):
        return ""
    speed, (peak, named) = profile.tflops, _peak(profile)
    share = f", {100 * speed / peak:.0f} % of the {named} of {peak:.3g}" if peak else ""
    return f"Speed of the profiled launch: {speed:.3g} TFLOPS{share}."


def _peak(profile: Profile) -> tuple[float | None, str]:
    """Return the peak of the units that compute, in TFLOPS or None if unknown, and its name."""
    gpu = by_driver(profile.measured["gpu"])
    if profile.code.work == TENSOR_CORE:
        return gpu and gpu.fp16_tensor_tflops, "FP16 Tensor Core peak"
    return gpu and gpu.peak_fp32_tflops, "FP32 peak"
