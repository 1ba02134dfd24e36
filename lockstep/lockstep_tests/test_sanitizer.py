"""compute-sanitizer's verdicts on the corpus, recorded on a GPU, against what the emulator must find."""

import csv
from collections import defaultdict
from pathlib import Path

import pytest

from lockstep_tests import corpus

RECORDED = Path(__file__).parents[1] / "recorded" / "sanitizer.csv"
COLUMNS = ("kernel", "kind", "tool", "verdict", "message", "gpu", "driver", "date", "command")
SEES = {
    "memcheck": {"out_of_bounds", "misaligned_access"},
    "racecheck": {"shared_race", "async_read_too_early"},
    "initcheck": set(),
    "synccheck": {"barrier_divergence", "barrier_in_branch", "warp_divergence"},
}
# numba-cuda 0.30.4 could not link float16 arithmetic there (nvJitLink: conflicting debug information)
NOT_LINKED = {"half_precision"}
# ldmatrix takes an address from every lane: memcheck rejects those of lanes that do not exist
SEEN_AS_SOMETHING_ELSE = {("ldmatrix_behind_a_guard_of_the_last_block", "memcheck")}


def all_cases():
    """The whole corpus by name."""
    return corpus.cases("broken") | corpus.cases("sound")


@pytest.fixture(scope="module")
def verdicts():
    """{(kernel, tool): row}."""
    with RECORDED.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    return {(row["kernel"], row["tool"]): row for row in rows}


def test_every_kernel_was_checked_with_every_tool(verdicts):
    assert set(verdicts) == {(name, tool) for name in all_cases() for tool in SEES}
    assert all(row["kind"] == (all_cases()[name].kind or "sound") for (name, _), row in verdicts.items())


def test_sound_kernels_are_clean(verdicts):
    for name in corpus.cases("sound"):
        for tool in SEES:
            row = verdicts[name, tool]
            assert row["verdict"] == ("failed" if name in NOT_LINKED else "clean"), row


def test_the_sanitizer_and_the_corpus_agree_on_the_kind(verdicts):
    for (name, tool), row in verdicts.items():
        if row["verdict"] == "error":
            case = all_cases()[name]
            named = {kind for mark in case.marks for kind in mark.kinds}
            assert bool(named & SEES[tool]) != ((name, tool) in SEEN_AS_SOMETHING_ELSE), row
    assert all(verdicts[place]["verdict"] == "error" for place in SEEN_AS_SOMETHING_ELSE)


def test_each_kind_the_sanitizer_can_see_it_saw_several_times(verdicts):
    seen = defaultdict(set)
    for (name, tool), row in verdicts.items():
        if row["verdict"] == "error":
            seen[tool].add(name)
    assert len(seen["memcheck"]) >= 10
    assert len(seen["racecheck"]) >= 10
    assert len(seen["synccheck"]) >= 3
