"""What the course's tests may rely on besides lockstep_tests/plugin.py: a browser, NVIDIA's compiler."""

import os
import shutil
import sys

import pytest

from lockstep_tests.plugin import skip

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

os.environ["GEMM_COURSE_PROGRESS"] = "off"  # what passes in tests is no learner's progress
os.environ["GEMM_COURSE_DATA"] = "off"  # nor does a learner's GPU belong into the pictures
# nbformat imports jsonschema, which would compile grammars of internationalised addresses: 3 s per process.
sys.modules.setdefault("rfc3987_syntax", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--screenshots", action="store_true", help="browser tests take them: tests/browser/artefacts"
    )


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
    """Skip what needs a browser or NVIDIA's compiler where there is none, and say so.

    GEMM_COURSE_REQUIRE_BROWSER=1 and GEMM_COURSE_REQUIRE_COMPILER=1 forbid it: then what is missing is a
    failure.
    """
    needs_browser = [item for item in items if item.get_closest_marker("browser")]
    if needs_browser and find_chromium() is None:
        if os.environ.get("GEMM_COURSE_REQUIRE_BROWSER") == "1":
            raise pytest.UsageError("GEMM_COURSE_REQUIRE_BROWSER=1, but there is no Chromium on the PATH.")
        skip(needs_browser, "needs Chromium: install it, or set GEMM_COURSE_CHROMIUM to its path")
    needs_compiler = [item for item in items if item.get_closest_marker("compiler")]
    if needs_compiler and (reason := _why_no_compiler()):
        if os.environ.get("GEMM_COURSE_REQUIRE_COMPILER") == "1":
            raise pytest.UsageError(f"GEMM_COURSE_REQUIRE_COMPILER=1, but: {reason}")
        skip(needs_compiler, reason)


def _why_no_compiler() -> str | None:
    from gemm_course.compiler.nvidia import why_no_compiler

    return why_no_compiler()
