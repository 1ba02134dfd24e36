"""The commands on the page of open questions name stages, tiles and programs that there are."""

import re
import shlex
from itertools import pairwise

import pytest

from gemm_course.bench.profile.sources import stage_named
from tests.notebooks.builder import ROOT

PAGE = (ROOT / "docs" / "open_questions.md").read_text("utf-8")
COMMANDS = re.findall(r"^    (\S.*)$", PAGE, re.MULTILINE)


def test_every_question_has_its_command():
    assert len(COMMANDS) == len(re.findall(r"^\*\*", PAGE, re.MULTILINE)) >= 8


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_what_there_is(command):
    program, *words = shlex.split(command)
    if program == "python":
        assert (ROOT / f"{words[1].replace('.', '/')}.py").is_file()
        return
    assert (program, words[0]) in [("gemm-course", "profile"), ("gemm-course", "bench")]
    stages = [stage_named(word) for word in words[1:] if re.fullmatch(r"[a-z]\w+", word)]
    choices = [word for before, word in pairwise(words) if before == "--tiles"] or [""]
    assert stages
    for stage in stages:
        for choice in choices:
            tiles = {name: int(size) for name, size in (each.split("=") for each in choice.split())}
            assert not list(stage.rules(stage.complete(tiles))), (stage.name, choice)
