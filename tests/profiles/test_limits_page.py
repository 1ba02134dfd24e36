"""The page about what limits each stage says what the profiles say."""

from itertools import takewhile
from pathlib import Path

from gemm_course.profiles import WAITS, recorded, verdict
from gemm_course.profiles.words import percent, three_digits
from tests.unmeasured import PROFILES, measured_stages

PAGE = Path(__file__).parents[2] / "docs" / "what_limits_it.md"
HEAD = "| stage | limited by | next | at most | a warp waits most |"


def row_of(stage) -> str:
    profile = recorded(stage)
    found = verdict(profile)
    waits = {name: share for name, share in profile.waits.items() if WAITS[name].waits}
    most = max(waits, key=waits.get)
    limit = f"waiting {found.wait_in_words}" if found.waiting else f"{found.limiter}, {percent(found.share)}"
    after = f"{found.next}, {percent(found.next_share)}"
    longest = f"{most}, {percent(waits[most])}"
    return f"| {stage.name} | {limit} | {after} | {three_digits(found.at_most)} | {longest} |"


def test_the_table_has_the_verdict_of_every_stage():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    table = list(takewhile(lambda line: line.startswith("|"), lines[lines.index(HEAD) + 2 :]))
    assert table == [row_of(stage) for stage in measured_stages(PROFILES)]
