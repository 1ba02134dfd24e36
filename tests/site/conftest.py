"""The course's own site, built once for all workers of a run."""

from pathlib import Path

import pytest

from gemm_course.commands.site.build import build
from lockstep_tests.processes import wait_for

BUILD = 300  # seconds that a worker waits for another one's build, on a busy machine


@pytest.fixture(scope="session")
def course_site(tmp_path_factory) -> Path:
    """The folder of the built site; ``warnings`` beside it has what was warned of."""
    shared = tmp_path_factory.getbasetemp().parent / "course-site"
    done = shared / "warnings"
    try:
        shared.mkdir()
    except FileExistsError:
        assert wait_for(done.exists, BUILD), "another worker has not built the site"
    else:
        warnings = build(shared / "html", say=lambda _: None)
        done.write_text("\n".join(warnings), encoding="utf-8")
    return shared / "html"
