"""The command line: what it offers, and how it says that something is amiss."""

import subprocess
import sys

import pytest

from gemm_course import cli


def gemm_course(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "gemm_course.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_help_lists_every_command():
    told = gemm_course("--help").stdout
    assert {"lab", "test", "doctor", "update", "reset", "progress", "bench"} <= set(cli.command_names())
    assert all(f" {name} " in told for name in cli.command_names())


@pytest.mark.parametrize("arguments", [[], ["lab"], ["bench"], ["progress"]], ids=" ".join)
def test_help_loads_nothing_heavy(arguments):
    code = f"import sys; sys.argv = ['x', *{arguments}, '--help']\nfrom gemm_course import cli\n"
    code += "try: cli.main()\nexcept SystemExit: pass\nprint(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numba", "numpy", "pandas", "matplotlib", "jupyterlab"} & set(told.splitlines()[-1].split())


def test_what_a_learner_can_put_right_is_one_sentence():
    done = gemm_course("reset", "77")
    assert done.returncode == 1
    assert done.stderr.startswith("There is no notebook 77") and len(done.stderr.splitlines()) == 1
