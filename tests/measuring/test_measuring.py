"""`python -m measuring`: its commands without a GPU or Triton, and what learners do not get."""

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from gemm_course.device import presence
from measuring.cli import _command, app

runner = CliRunner()
README = Path(__file__).parents[2] / "data" / "README.md"


@pytest.fixture
def no_gpu(monkeypatch):
    from gemm_course.device import facts

    facts.gpu_facts.cache_clear()
    monkeypatch.setattr(presence, "why_no_gpu", lambda: "There is no GPU here.")
    yield
    facts.gpu_facts.cache_clear()


@pytest.mark.parametrize("command", ["sanitize", "counters", "counters --wavefronts", "roofs", "triton"])
def test_without_a_gpu_each_command_says_so_in_a_sentence(no_gpu, command):
    done = runner.invoke(app, command.split())
    assert done.exit_code == 1
    assert done.output.strip() == "There is no GPU here. This command measures on one."


def test_records_name_the_command_without_the_folder(monkeypatch):
    monkeypatch.setattr("sys.argv", ["measuring/__main__.py", "roofs", "--folder", "/tmp/new"])
    assert _command() == "python -m measuring roofs"


def test_without_triton_there_is_a_sentence(monkeypatch):
    from measuring.triton_peer import NoTriton, triton_launcher

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(NoTriton, match="needs PyTorch as well"):
        triton_launcher(None)


def test_what_made_the_records_exists():
    text = README.read_text(encoding="utf-8")
    commands = set(re.findall(r"python -m measuring ([a-z]+)", text))
    assert commands == set(typer.main.get_group(app).commands)
    for module in set(re.findall(r"python -m (measuring\.[a-z_.]+)", text)):
        assert find_spec(module), module
