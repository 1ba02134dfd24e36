"""Kernels are shown from their own source."""

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
    assert "row &lt; m" in listing.difference(V00, V01).markup


def test_a_line_that_was_only_indented_is_not_marked():
    def before(a, n):
        a[n] = 0

    def after(a, n):
        for _ in range(3):
            a[n] = 0

    lines = listing.difference(before, after).text.splitlines()
    assert "+     for _ in range(3):" in lines
    assert "          a[n] = 0" in lines
