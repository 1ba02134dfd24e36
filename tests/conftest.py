"""What every test may rely on: the gpu and browser markers, and repeatable random cases."""

import os
import shutil

import pytest
from hypothesis import settings

from gemm_course.device import why_no_gpu

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

os.environ["GEMM_COURSE_PROGRESS"] = "off"  # what passes in tests is no learner's progress

settings.register_profile("course", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("course")


def find_chromium() -> str | None:
    """Return the path of a Chromium on this machine; the variable GEMM_COURSE_CHROMIUM names another."""
    named = os.environ.get("GEMM_COURSE_CHROMIUM")
    return named or next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the Chromium that browser tests drive."""
    path = find_chromium()
    if path is None:
        pytest.fail("There is no Chromium here, and a test that needs one lacks the browser marker.")
    return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU or a browser where there is none, and say so.

    GEMM_COURSE_REQUIRE_BROWSER=1 forbids the skip: then a missing browser is a failure.
    """
    needs_gpu = [item for item in items if item.get_closest_marker("gpu")]
    needs_browser = [item for item in items if item.get_closest_marker("browser")]
    if needs_gpu and (reason := why_no_gpu()):
        _skip(needs_gpu, f"needs a GPU. {reason}")
    if needs_browser and find_chromium() is None:
        if os.environ.get("GEMM_COURSE_REQUIRE_BROWSER") == "1":
            raise pytest.UsageError("GEMM_COURSE_REQUIRE_BROWSER=1, but there is no Chromium on the PATH.")
        _skip(needs_browser, "needs Chromium: install it, or set GEMM_COURSE_CHROMIUM to its path")


def _skip(items: list[pytest.Item], reason: str) -> None:
    for item in items:
        item.add_marker(pytest.mark.skip(reason=reason))
