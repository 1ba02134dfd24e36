"""README.md and REFERENCE.md: every block of them runs, and shows what comes out."""

import contextlib
import doctest
import io
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from lockstep import cli, emulate
from lockstep.limits import PROFILES, profile
from lockstep_tests.host.test_plugin import PLUGIN

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
PAGE = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "REFERENCE.md"))
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def alike(shown: str, written: str) -> bool:
    """Whether something was written as it is shown; `...` stands for anything."""
    checker = doctest.OutputChecker()
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return checker.check_output(shown.strip() + "\n", written.strip() + "\n", options)


@pytest.fixture
def folder(pytester, monkeypatch):
    """An empty folder with the page's files, from which Python imports."""
    monkeypatch.syspath_prepend(pytester.path)
    for kind, text in BLOCKS:
        named = re.match(r"# (\w+\.py)\n", text)
        if kind == "python" and named:
            (pytester.path / named[1]).write_text(text, encoding="utf-8")
    return pytester


def run(command: str, pytester) -> str:
    program, *arguments = command.split()
    if program == "lockstep":
        with contextlib.redirect_stdout(io.StringIO()) as written, contextlib.redirect_stderr(written):
            with pytest.raises(SystemExit):
                cli.main(arguments)
        return written.getvalue()
    return str(pytester.runpytest_inprocess(*PLUGIN, "-p", "no:xdist", *arguments).stdout)


@pytest.mark.parametrize("block", [text for kind, text in BLOCKS if kind == "console"])
def test_commands_write_what_is_shown(folder, block):
    command, shown = block.removeprefix("$ ").split("\n", 1)
    written = run(command, folder)
    assert alike(shown, written), written


def test_python_writes_what_is_shown(folder, capsys):
    shown = next(text for kind, text in BLOCKS if kind == "output")
    code = next(text for kind, text in BLOCKS if kind == "python" and not text.startswith("#"))
    exec(code, {})
    written = capsys.readouterr().out
    assert alike(shown, written), written


def test_the_other_test_passes(folder):
    assert "1 passed" in run("pytest test_counts.py", folder)


def test_the_example_of_counts_as_compiled_shows_what_it_says(folder, capsys):
    runpy.run_path(str(folder.path / "smooth_rows.py"), run_name="__main__")
    assert "global loads: 4 requests as written, at least 1 as compiled; " in capsys.readouterr().out


def test_the_gpus_it_names_are_those_that_there_are():
    line = re.search(r"The GPUs are (.*?)\n\n", PAGE, re.DOTALL)[1].replace("\n", " ")
    first, rest = line.split("You can also say")
    assert all(name in first for name in PROFILES)
    for name in re.findall(r"`([\w.]+)`", rest):
        profile(name)


@pytest.mark.parametrize("left_out", [None, 0, 1])
def test_both_fences_of_the_example_are_needed(left_out, tmp_path):
    text = next(text for _, text in BLOCKS if text.startswith("# handing_over.py"))
    parts = text.split("cuda.threadfence()")
    calls = ["pass" if number == left_out else "cuda.threadfence()" for number in range(2)]
    (tmp_path / "handing_over.py").write_text(
        "".join(map("".join, zip(parts, [*calls, ""]))), encoding="utf-8"
    )
    kernel = runpy.run_path(str(tmp_path / "handing_over.py"))["hand_over"]
    value, flag, out = (np.zeros(1, np.int32) for _ in range(3))
    report = emulate(kernel, 2, 1, value, flag, out)
    assert out[0] == 42 and {finding.kind for finding in report.errors} == (
        set() if left_out is None else {"global_race"}
    )
