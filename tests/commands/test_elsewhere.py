"""Binder and Codespaces: those of their steps that need no container."""

import json
import os
import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from lockstep_tests import processes
from tests.commands.test_course import Machine
from tests.commands.test_project_files import PROJECT

ROOT = Path(__file__).parents[2]
CODESPACES = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
pytestmark = pytest.mark.skipif(os.name == "nt", reason="both run on Linux")


def binder(*command: str):
    """Run a command as Binder starts its server, in the environment of this Python."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")}
    environment |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("GEMM_COURSE_LAB", None)
    done = processes.run([str(ROOT / "start"), *command], env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.full(reason="starts JupyterLab")
@pytest.mark.waits
def test_on_binder_jupyterlab_finds_the_extension():
    listed = binder("jupyter", "labextension", "list")
    for name in ("gemm-course", "gemm-course-links"):
        (line,) = [line for line in listed.splitlines() if line.split()[:1] == [name]]
        assert "enabled" in line and "OK" in line


def test_on_binder_kernels_know_who_draws_and_arguments_stay_whole():
    told = binder("python", "-c", "import os, sys; print(os.environ['GEMM_COURSE_LAB'], sys.argv[1:])", "a b")
    assert told.splitlines()[-1] == "1 ['a b']"


def test_codespaces_sets_the_course_up_where_vs_code_looks_for_it(tmp_path):
    machine = Machine(tmp_path)
    machine.provide_uv()
    python, script, *arguments = CODESPACES["postCreateCommand"].split()
    assert (python, script) == ("python3", "course.py")
    done = machine.start(*arguments)
    assert done.stdout.splitlines()[-1] == "runs -P -m gemm_course.cli doctor"
    found = CODESPACES["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"]
    assert Path(found.replace("${containerWorkspaceFolder}", str(machine.course))).is_file()
    assert CODESPACES["image"].rpartition(":")[2] in SpecifierSet(PROJECT["requires-python"])
