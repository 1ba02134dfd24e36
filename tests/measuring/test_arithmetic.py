"""The flat roofs: each kernel does the number of operations that its speed is computed from."""

import numpy as np
import pytest

from lockstep import emulate
from measuring import arithmetic
from measuring.arithmetic import THREADS, UNITS


@pytest.mark.parametrize("unit", UNITS)
def test_kernels_do_as_many_operations_as_their_speed_assumes(unit):
    """Two runs of different length differ only in their iterations."""
    build, _, dtype, _, flops = UNITS[unit]
    numbers = np.random.default_rng(0).standard_normal(4096).astype(dtype) / 64
    done = [emulate(build(), 1, THREADS, numbers, np.zeros(1, np.float32), n).flops for n in (1, 3)]
    assert done[1] - done[0] == 2 * flops


@pytest.mark.gpu
def test_no_unit_is_faster_than_its_data_sheet(tmp_path):
    from gemm_course.device import gpu_facts

    found = arithmetic.measure_arithmetic(tmp_path / "roofs.csv", "test")
    assert 0.8 < found["FP32"] / gpu_facts().peak_fp32_tflops < 1.02
    if "wgmma FP16" in found:
        assert found["FP32"] < found["mma FP16"] < found["wgmma FP16"]
