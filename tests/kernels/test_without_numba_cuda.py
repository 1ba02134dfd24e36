"""The ladder without numba-cuda, as on macOS."""

import os
import subprocess
import sys
import textwrap

import pytest


@pytest.mark.full(reason="every stage of the ladder, in a Python of its own")
def test_kernels_can_be_declared_and_emulated_without_numba_cuda():
    """As on macOS, with only Numba's built-in numba.cuda."""
    script = """
        import sys
        sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "NumbaCudaFinder"]
        import numba.cuda
        assert "numba_cuda" not in numba.cuda.__file__, numba.cuda.__file__
        import numpy as np
        from lockstep import emulate
        from gemm_course.kernels import LADDER
        for stage in LADDER:
            a, c = np.ones((16, 16), stage.dtype), np.zeros((16, 16), stage.dtype)
            one, zero = np.float32(1), np.float32(0)
            arguments = stage.arguments(16, 16, 16, one, a, a, zero, c)
            shared = stage.shared_bytes()
            emulate(stage.kernel(), stage.grid(16, 16), stage.block(), *arguments, shared_bytes=shared)
            assert (c == 16).all(), stage.name
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
