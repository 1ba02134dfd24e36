"""`gemm-course test`: in parallel whatever is selected, GPU tests alone, the user's own options first."""

import pytest

from gemm_course.commands import suite
from gemm_course.commands.errors import CourseError


def options(*arguments: str, has_gpu: bool = False) -> list[list[str]]:
    return [command[3:] for command in suite.commands(arguments, has_gpu)]


@pytest.mark.parametrize("arguments", [(), ("tests/checks", "-k", "05"), ("--lf",), ("--all",)])
def test_whatever_is_selected_runs_in_parallel(arguments):
    assert options(*arguments) == [[*suite.PARALLEL, *arguments]]


def test_a_users_own_number_of_workers_comes_last_and_wins():
    assert options("-n", "3") == [[*suite.PARALLEL, "-n", "3"]]


def test_without_xdist_none_of_its_options_are_given():
    assert options("-p", "no:xdist", "-x") == [["-p", "no:xdist", "-x"]]


def test_tests_on_a_gpu_run_one_by_one_after_the_others():
    apart, on_gpu = options("-k", "tiles", has_gpu=True)
    assert apart == [*suite.PARALLEL, "-k", "tiles", "--gpu=without"]
    assert on_gpu == ["-k", "tiles", "-n", "0", "--gpu=only"]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [((0,), 0), ((0, 0), 0), ((0, 5), 0), ((1, 0), 1), ((0, 1), 1), ((5, 2), 2), ((1, 2), 1), ((5, 5), 5)],
)
def test_the_suite_fails_when_either_half_fails(codes, expected):
    assert suite.verdict(codes) == expected


def test_tests_without_pytest_say_how_to_get_it(monkeypatch):
    monkeypatch.setattr(suite, "find_spec", lambda _: None)
    with pytest.raises(CourseError, match=r"course\.py test"):
        suite.run_tests()
