"""The model's GPUs beside the emulator's."""

from gemm_course.model.gpus import GPUS
from lockstep.limits import PROFILES


def test_the_model_computes_with_the_same_gpus():
    missing = list(PROFILES - GPUS.keys())
    assert not missing, f"add the rates of {missing} to _RATES in gemm_course/model/gpus.py"
    for name, gpu in GPUS.items():
        assert vars(PROFILES[name]).items() <= vars(gpu).items()
        assert gpu.limits is PROFILES[name].limits
