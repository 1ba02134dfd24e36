"""How a verdict looks, as HTML and as text."""

import re

import pytest

from gemm_course import check, road
from gemm_course.checks.core.verdict import Verdict

WRONG = Verdict(
    "00.9", "thing", False, "`a < b` is *not* so.", ("nudge", "two <b>", "answer"), "Line 3: `x & y`"
)
RIGHT = Verdict("00.9", "thing", True, "All 5 are right.", ("one", "two"))


def test_the_headings_say_passed_or_not_yet():
    for verdict, word in ((WRONG, "Not yet"), (RIGHT, "Passed")):
        assert str(verdict).startswith(word) and repr(verdict) == str(verdict)
        assert word in verdict._repr_html_()
        assert bool(verdict) is verdict.passed


def test_html_is_escaped_and_marked():
    html = WRONG._repr_html_()
    assert "a &lt; b</code> is <em>not</em> so." in html
    assert "two &lt;b&gt;" in html
    assert "x &amp; y</code>" in html


def test_each_hint_opens_by_itself_and_only_before_it_is_solved():
    html = WRONG._repr_html_()
    assert re.findall(r"<summary[^>]*>(Hint \d)</summary>", html) == ["Hint 1", "Hint 2", "Hint 3"]
    assert html.count("<details") == 3 and "open" not in html
    assert "<details" not in RIGHT._repr_html_()


def test_text_keeps_the_hints_back_but_says_how_to_get_them():
    assert not any(hint in str(WRONG) for hint in WRONG.hints)
    assert "3 hints" in str(WRONG) and "check.thing(...).hints[0]" in str(WRONG)


def test_not_yet_is_said_once():
    stub = Verdict("00.9", "thing", False, "Not yet: write something.", ("one", "two"))
    assert str(stub).count("Not yet") == stub._repr_html_().count("Not yet") == 1
    assert "Write something." in str(stub)


def test_what_nobody_has_tried_is_quiet_and_takes_the_themes_colours():
    answered, untried = check.blocks_for(lambda n, threads: 7), check.blocks_for(None)
    assert (
        answered.heading == f"Not yet · Exercise {road.number_of('blocks_for')}"
        and "#FFF1D6" in answered._repr_html_()
    )
    assert (
        untried.heading == f"Not tried yet · Exercise {road.number_of('blocks_for')}" and not untried.passed
    )
    box = untried._repr_html_()
    assert "background:transparent;color:inherit" in box and box.count("<details") == len(untried.hints)
    assert not re.search(r"background:#|(?<!-)color:#", box), "not one colour of its own, but for the edge"


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("verdict", (WRONG, RIGHT), ids=("wrong", "right"))
def test_text_is_readable_in_any_theme(verdict):
    for style in re.findall(r'style="([^"]*)"', verdict._repr_html_()):
        ground = re.search(r"background:(#\w{6})", style)
        ink = re.search(r"(?<![-\w])color:(#\w{6})", style)
        if ground:
            light, dark = sorted((_luminance(ground[1]), _luminance(ink[1])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 7
    sizes = [int(size) for size in re.findall(r"font-size:(\d+)px", verdict._repr_html_())]
    assert sizes and min(sizes) >= 12  # pixels: 9 points


def test_exercises_are_listed_in_the_order_of_the_course():
    names = check.exercises()
    assert names == list(road.EXERCISES)
    assert {"where", "naive"} <= set(names)
    assert all(2 <= len(getattr(check, name).hints) <= 4 for name in names)
