"""The quick run's sample: fixed, evenly spread, never empty; --all, --lf and a name on the command line."""

import re

import pytest

from lockstep_tests import sampling
from lockstep_tests.plugin import slow_ones_first
from tests.inner import Suite

SUITE = """
import pytest
from lockstep_tests import sampling

@pytest.mark.many(one_in=5)
@pytest.mark.parametrize("case", range(23))
def test_many(case):
    assert case >= 0

@pytest.mark.full(reason="slow")
def test_full():
    pass

def test_looping(sample):
    assert len(sample(range(40), one_in=8)) == (40 if sampling.everything else 5)
"""


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(sampling, "everything", False)


def test_one_of_each_group_is_taken(quick):
    taken = sampling.sample(range(23), 5, seed="x")
    assert [case // 5 for case in taken] == [0, 1, 2, 3, 4]
    assert taken == sampling.sample(range(23), 5, seed="x") != sampling.sample(range(23), 5, seed="y")


def test_a_regular_pattern_is_seen_whole(quick):
    taken = sampling.sample(range(400), 4, seed="x")
    assert {case % 4 for case in taken} == {0, 1, 2, 3}


def test_all_takes_all(monkeypatch):
    monkeypatch.setattr(sampling, "everything", True)
    assert sampling.sample(range(23), 5, seed="x") == list(range(23))
    assert sampling.examples(80, one_in=4) == 80


def test_of_what_machines_make_all_takes_a_sample_too(monkeypatch):
    monkeypatch.setattr(sampling, "everything", True)
    taken = sampling.sample(range(24), 8, seed="x", with_all=3)
    assert [case // 3 for case in taken] == list(range(8))


def test_random_cases_are_fewer(quick):
    assert (sampling.examples(80, one_in=4), sampling.examples(3, one_in=4)) == (20, 1)


@pytest.fixture
def suite(tmp_path) -> Suite:
    return Suite(tmp_path, SUITE)


@pytest.mark.many(one_in=2)
@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["in a row", "in parallel"])
def test_a_quick_run_says_how_much_it_left_out(suite, parallel):
    assert suite.run(*parallel) == {"passed": 5 + 1, "more": 18 + 1} | (
        {} if parallel else {"deselected": 19}
    )


def test_with_all_a_part_can_be_left_out_and_is_told(suite):
    suite.write(SUITE.replace("one_in=5", "one_in=5, with_all=2").replace("one_in=8", "one_in=8, with_all=4"))
    suite.write((suite.folder / "test_it.py").read_text().replace("40 if", "10 if"))
    assert suite.run("--all") == {"passed": 12 + 1 + 1, "more": 11, "deselected": 11}


@pytest.mark.full(reason="runs a suite of its own in parallel")
def test_all_of_it_runs_in_parallel_as_well(suite):
    assert suite.run("--all", "-n", "2") == {"passed": 23 + 1 + 1}


def test_what_is_named_runs_and_runs_whole(suite):
    suite.write(SUITE.replace("(40 if sampling.everything else 5)", "40"))
    named = ("test_full", "test_many[7]", "test_many[8]", "test_looping")
    assert suite.run(*(f"test_it.py::{name}" for name in named)) == {"passed": 4}


def test_a_narrow_selection_is_not_left_empty(suite):
    assert suite.run("-k", "test_many[1] or test_many[8]")["passed"] == 1


def test_what_is_selected_with_all_runs_whole(suite):
    suite.write(SUITE.replace("one_in=5", "one_in=5, with_all=2").replace("one_in=8", "one_in=8, with_all=4"))
    assert suite.run("--all", "-k", "many or looping") == {"passed": 23 + 1, "deselected": 1}


def test_what_waits_comes_first(suite):
    suite.write(
        "import pytest\ndef test_a(): pass\n@pytest.mark.waits\ndef test_b(): pass\ndef test_c(): pass\n"
    )
    suite.run("-v")
    assert re.findall(r"::test_(\w)", suite.said) == ["b", "a", "c"]


class Item:
    """A test with one marker, or with none, in a file; "site" uses the fixture of that name."""

    def __init__(self, marker, path=None):
        self.marker, self.path = marker, path
        self.fixturenames = ["course_site"] if marker == "site" else []

    def get_closest_marker(self, name):
        return self.marker if self.marker == name else None


@pytest.mark.parametrize(
    ("workers", "expected"),
    [(1, "wwlfl......"), (2, "wll...wf..."), (3, "wf..wl..l..")],
)
def test_each_worker_begins_with_slow_ones(workers, expected):
    markers = {"w": "waits", "l": "long", "f": "full", ".": None}
    items = [Item(markers[letter]) for letter in ".l.w..f.wl."]
    ordered = slow_ones_first(items, workers)
    assert set(ordered) == set(items)
    assert "".join((item.marker or ".")[0] for item in ordered) == expected


@pytest.mark.parametrize(("workers", "expected"), [(1, "sswll...."), (2, "ss...wll."), (3, "ss.wl.l..")])
def test_one_worker_has_all_tests_of_the_site(workers, expected):
    markers = {"w": "waits", "l": "long", "s": "site", ".": None}
    ordered = slow_ones_first([Item(markers[letter]) for letter in ".s.lw.sl."], workers)
    assert "".join((item.marker or ".")[0] for item in ordered) == expected


def test_browser_tests_of_a_file_go_to_one_worker():
    files = "a.abb.c.cc.."
    ordered = slow_ones_first([Item("browser" if f != "." else None, f) for f in files], workers=2)
    assert "".join(item.path for item in ordered) == "aaccc.bb...."


def test_what_failed_under_all_is_run_again_by_lf(suite):
    suite.write(SUITE.replace("case >= 0", "case != 3"))
    assert suite.run("--all")["failed"] == 1
    assert suite.run("--lf")["failed"] == 1
