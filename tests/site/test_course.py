"""The course's own site: complete, every link right, small, and nothing loaded from elsewhere."""

import re

import pytest

from gemm_course import checks, road
from tests.site import pages

pytestmark = [
    pytest.mark.full(reason="builds the whole site"),
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:.* is deprecated"),
]
LARGEST = 60e6  # bytes


@pytest.fixture(scope="module")
def found(course_site):
    return pages.read(course_site)


def test_nothing_is_warned_of(course_site):
    assert (course_site.parent / "warnings").read_text(encoding="utf-8") == ""


def test_every_link_leads_to_a_place(found):
    assert len(found) >= 14 and pages.broken(found) == []


def test_side_trips_have_pages_under_a_heading_of_their_own(course_site):
    home = (course_site / "index.html").read_text(encoding="utf-8")
    below = home[home.index(">Side trips<") :]
    for trip in road.SIDE_TRIPS:
        assert (course_site / "notebooks" / f"{trip.name}.html").is_file()
        assert f"notebooks/{trip.name}.html" in below


def test_no_page_loads_anything_from_another_host(found):
    assert pages.foreign(found) == []


def test_the_site_is_small_enough_for_any_host(course_site):
    assert sum(file.stat().st_size for file in course_site.rglob("*") if file.is_file()) <= LARGEST


def test_every_exercise_has_its_hints_and_its_solution(course_site, subtests):
    for exercise in (getattr(checks, name) for name in checks.exercises()):
        with subtests.test(exercise.number):
            path = course_site / "notebooks" / f"{road.notebook_of(exercise.name).name}.html"
            text = path.read_text(encoding="utf-8")
            not_yet = re.search(rf"Not (tried )?yet · Exercise {exercise.number}", text).end()
            passed = text.index(f"Passed · Exercise {exercise.number}", not_yet)
            assert text.count(">Hint ", not_yet, passed) == len(exercise.hints)
            assert f'id="ex-{exercise.name}-solution"' in text[not_yet:passed]
