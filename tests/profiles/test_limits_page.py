"""The page about what limits each stage says what the profiles say."""

from pathlib import Path

from gemm_course.kernels import LADDER
from gemm_course.profiles import WAITS, recorded, verdict

PAGE = Path(__file__).parents[2] / "docs" / "what_limits_it.md"
HEAD = "| stage | limited by | next | at most | a warp waits most |"


def row_of(stage) -> str:
    profile = recorded(stage)
    found = verdict(profile)
    waits = {name: share for name, share in profile.waits.items() if WAITS[name].waits}
    most = max(waits, key=waits.get)
    limit = f"waiting for {found.limiter}" if found.waiting else f"{found.limiter}, {100 * found.share:.0f} %"
    after = f"{found.next}, {100 * found.next_share:.0f} %"
    return f"| {stage.name} | {limit} | {after} | {found.at_most:.3g} | {most}, {100 * waits[most]:.0f} % |"


def test_the_table_has_the_verdict_of_every_stage():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    table = lines[lines.index(HEAD) + 2 :][: len(LADDER)]
    assert table == [row_of(stage) for stage in LADDER]
