"""The pytest plugin: off unless asked for; then a test fails where a kernel has an error."""

import os
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import lockstep.host.session  # noqa: F401 (before the first run: what is loaded in one is not kept)
from lockstep_tests import processes

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
INSTALLED = any(point.value == "lockstep.host.plugin" for point in entry_points(group="pytest11"))

PLUGIN = () if INSTALLED else ("-p", "lockstep.host.plugin")

TESTS = """
import numpy as np
import pytest
from numba import cuda
from numba.cuda import to_device

@cuda.jit
def shifted(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i + 1]

@cuda.jit
def copied(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i]

def launched(kernel):
    x, out = np.arange(32, dtype=np.float32), cuda.device_array(32, np.float32)
    kernel[1, 32](to_device(x), out)
    return out.copy_to_host()

"""


@pytest.fixture
def run(pytester):
    """Run pytest on a file with these tests -> its exit code and what it wrote."""

    def run(tests: str, *options: str):
        pytester.makepyfile(TESTS + tests)
        done = pytester.runpytest_inprocess(*PLUGIN, "-p", "no:cacheprovider", "-p", "no:xdist", *options)
        return done.ret, done.stdout.str() + done.stderr.str()

    return run


def test_a_refusal_shows_the_lines_of_the_test_alone(run):
    _, output = run(
        """
from lockstep import emulate

@cuda.jit
def worded(out):
    out[0] = "seven"

def test_refused(emulated_cuda):
    worded[1, 1](cuda.device_array(1, np.float32))

def test_refused_directly():
    emulate(worded, 1, 1, np.zeros(1, np.float32))

def test_not_a_size(emulated_cuda):
    copied[1, 4096](cuda.device_array(1), cuda.device_array(1))
"""
    )
    assert "3 failed" in output and output.count("\n>  ") == 3
    assert "/lockstep/lockstep/" not in output.replace(str(ROOT), "")
    assert "worded[1, 1](cuda" in output and "def launch(" not in output


def test_nothing_changes_unless_asked(tmp_path):
    (tmp_path / "test_it.py").write_text(
        """
import sys
from numba import cuda

def test_it():
    assert not cuda.is_available() and "lockstep.launching" not in sys.modules
"""
    )
    command = [sys.executable, "-m", "pytest", *PLUGIN, "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = processes.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stdout


def test_the_option_runs_all_tests_on_the_emulator(run):
    code, told = run(
        """
def test_right():
    assert launched(copied)[5] == 5

def test_wrong():
    assert launched(shifted)[5] == 6

@pytest.mark.xfail(strict=True)
def test_known_to_be_wrong():
    launched(shifted)

@cuda.jit("void(float32[:])")
def signed(x):
    x[cuda.grid(1)] = 1

def test_signature():
    signed[1, 32](np.zeros(32, np.float32))
""",
        "--emulate-cuda",
        "--emulate-gpu=ada",
    )
    assert code == 1 and "1 failed, 2 passed, 1 xfailed" in told, told
    assert "in shifted: Thread (31, 0, 0) of block (0, 0, 0) reads x[32]" in told
    assert "numba.cuda ran on an emulated NVIDIA GeForce RTX 4090" in told


def test_a_marker_or_a_fixture_asks_for_one_test(run):
    code, told = run("""
@pytest.mark.emulate_cuda(gpu="turing")
def test_marked():
    assert cuda.get_current_device().compute_capability == (7, 5)
    launched(shifted)

def test_fixture(emulated_cuda):
    launched(copied)
    (launch,) = emulated_cuda.launches
    assert launch.kernel == "copied" and emulated_cuda.ok

def test_neither():
    assert not cuda.is_available()
""")
    assert code == 1 and "1 failed, 2 passed" in told, told
    assert "reads x[32]" in told


def test_what_fails_by_itself_shows_the_findings_too(run):
    code, told = run("def test_it(emulated_cuda):\n    assert launched(shifted)[31] == 99\n")
    assert code == 1 and "assert" in told and "reads x[32]" in told and "1 failed" in told


def test_launches_of_fixtures_count(run):
    code, told = run("""
@pytest.fixture
def data():
    return launched(shifted)

def test_it(emulated_cuda, data):
    assert data.size == 32
""")
    assert code == 1 and "1 error" in told and "reads x[32]" in told, told


def test_launches_at_import_fail_the_run(run):
    code, told = run("launched(shifted)\n\ndef test_it():\n    pass\n", "--emulate-cuda")
    assert code == 1 and "1 passed" in told and "reads x[32]" in told, told


def test_a_gpu_that_is_not_known(run):
    code, told = run("def test_it():\n    pass\n", "--emulate-cuda", "--emulate-gpu=voodoo")
    assert code == pytest.ExitCode.USAGE_ERROR and "no GPU named 'voodoo'" in told
    code, told = run("@pytest.mark.emulate_cuda('voodoo')\ndef test_it():\n    pass\n")
    assert code == pytest.ExitCode.USAGE_ERROR and "test_it: the emulator knows no GPU named 'voodoo'" in told
    code, told = run("@pytest.mark.emulate_cuda(gp='ada')\ndef test_it():\n    pass\n")
    assert code == pytest.ExitCode.USAGE_ERROR and "takes one argument, gpu" in told
