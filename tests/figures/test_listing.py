"""Kernels are shown from their own source."""

import html
import re

import pytest

from gemm_course.figures import listing
from gemm_course.kernels import LADDER

V00, V01 = (LADDER[name].kernel() for name in ("naive_uncoalesced", "naive_coalesced"))


def test_a_listing_is_the_source_without_its_indentation():
    text = listing.listing(V00).text
    assert text.startswith("def naive_uncoalesced(m, n, k, alpha, A, B, beta, C):")
    assert "    if row < m and col < n:\n" in text


def test_a_listing_numbers_lines_as_findings_do():
    first = V00.py_func.__code__.co_firstlineno
    assert f"{first:4d}  </span>" in listing.listing(V00).markup


def test_a_difference_marks_removed_and_added_lines():
    change = listing.difference(V00, V01)
    kinds = {line[0] for line in change.text.splitlines()}
    assert kinds == {"+", "-", " "}
    assert "<del" in change.markup and "<ins" in change.markup
    unchanged = [line for line in change.text.splitlines() if line.startswith("  ")]
    assert any("acc += A[row, p] * B[p, col]" in line for line in unchanged)


def test_markup_is_escaped():
    words = re.sub(r"<[^<>]*>", "", listing.difference(V00, V01).markup)
    assert "row &lt; m" in words and "<" not in words


def test_a_line_that_was_only_indented_is_not_marked():
    def before(a, n):
        a[n] = 0

    def after(a, n):
        for _ in range(3):
            a[n] = 0

    lines = listing.difference(before, after).text.splitlines()
    assert "+     for _ in range(3):" in lines
    assert "          a[n] = 0" in lines


def test_a_line_of_which_only_the_comment_changed_is_not_marked():
    def before(a, n):
        # the first way
        a[n] = "#"  # was said like this
        a[0] = 1

    def after(a, n):
        a[n] = "#"
        # the second way
        a[0] = 1  # is said like this

    lines = listing.difference(before, after).text.splitlines()
    assert [line for line in lines if line[0] != " "] == ["- def before(a, n):", "+ def after(a, n):"]
    assert lines[2:] == ['      a[n] = "#"', "      # the second way", "      a[0] = 1  # is said like this"]


def test_a_number_sign_in_a_text_begins_no_comment():
    def before(a):
        a[0] = "a # b"

    def after(a):
        a[0] = "a # c"

    assert listing.difference(before, after).text.count('a[0] = "a #') == 2


def test_a_difference_has_the_colours_of_the_listing():
    whole, change = listing.listing(V01).markup, listing.difference(V00, V01).markup
    for word in ("while", "def", "if"):
        (coloured,) = set(re.findall(rf"<span style=[^>]*>{word}</span>", whole))
        assert coloured in change


@pytest.mark.parametrize(
    "shown", [listing.listing(V00), listing.difference(V00, V01)], ids=["listing", "diff"]
)
def test_lines_stay_whole_words_in_the_font_of_code_without_a_style_sheet(shown):
    box, *lines = re.findall(r'<(?:pre|span|ins|del) style="((?:display|background)[^"]*)"', shown.markup)
    assert "font-family:'DejaVu Sans Mono'" in box and "white-space:pre-wrap" in box
    assert "word-break:normal" in box and "overflow-wrap:normal" in box
    assert len(lines) == len(shown.text.splitlines())
    for style in lines:
        (right,), (left,) = (
            re.findall(r"padding-left:(\d+)ch", style),
            re.findall(r"text-indent:-(\d+)ch", style),
        )
        assert right == left, "a line begins at the margin, and goes on further right"


def test_the_text_can_be_copied_line_by_line():
    markup = listing.listing(V00).markup
    words = html.unescape(re.sub(r"<[^>]*>", "", markup))
    assert [line[6:] for line in words.splitlines()] == listing.listing(V00).text.splitlines()
