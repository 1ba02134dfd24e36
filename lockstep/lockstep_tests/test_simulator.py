"""The emulator compared with Numba's own CUDA simulator, on kernels that both can run."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lockstep import emulate
from lockstep_tests.simulator_twins import arguments, full_twins, small_twins

ROOT = Path(__file__).parents[1]
SIZE = 20, 17, 13


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """{twin: C} from the simulator, in a separate process."""
    output = tmp_path_factory.mktemp("simulator") / "results.npz"
    subprocess.run(
        [sys.executable, "-m", "lockstep_tests.simulator_twins", str(output), *map(str, SIZE)],
        cwd=ROOT,
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        check=True,
        timeout=120,
    )
    return np.load(output)


@pytest.mark.many(one_in=3)
@pytest.mark.parametrize("twin", small_twins(), ids=lambda twin: twin.name)
def test_same_numbers_as_the_simulator(twin, simulated):
    given = arguments(*SIZE)
    report = emulate(twin.kernel, twin.grid(*SIZE[:2]), twin.block, *given)
    assert report.ok, [str(finding) for finding in report.findings]
    np.testing.assert_allclose(given[-1], simulated[twin.name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("twin", full_twins(), ids=lambda twin: twin.name)
@pytest.mark.parametrize("size", [(128, 128, 128), (130, 97, 33)], ids=str)
def test_same_numbers_as_numpy(twin, size):
    given = arguments(*size)
    _, _, _, alpha, A, B, beta, C = arguments(*size)
    wanted = alpha * (A.astype(np.float64) @ B) + beta * C.astype(np.float64)
    report = emulate(twin.kernel, twin.grid(*size[:2]), twin.block, *given)
    assert report.ok, [str(finding) for finding in report.findings]
    np.testing.assert_allclose(given[-1], wanted, rtol=1e-4, atol=1e-4)
