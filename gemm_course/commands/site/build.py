"""Builds the site: reads the course, lets Sphinx make its pages, and puts them where they were asked for."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

from gemm_course.commands.errors import CourseError
from gemm_course.places import COURSE

NEEDED = ("sphinx", "myst_nb", "sphinx_book_theme")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
NOT_FOR_READERS = ("*.map", "*-macros.html", ".buildinfo", "objects.inv")


def build(folder: Path, root: Path = COURSE, say: Callable[[str], None] = print) -> list[str]:
    """Build the course in ``root`` as a website in ``folder``, and return warnings, of which none is usual.

    ``say`` gets a line for each step. Raise CourseError where ``folder`` holds something already, the extra
    "site" is not installed, or ``root`` has no built notebooks.
    """
    begun = time.monotonic()
    _refuse(folder)
    from gemm_course.commands.site.extension import EXPLORERS
    from gemm_course.commands.site.pages import Course

    course = Course(root)
    with tempfile.TemporaryDirectory(prefix="gemm-course-site-") as working:
        sources, made = Path(working, "sources"), Path(working, "html")
        say(f"Reading {len(course.chapters)} notebooks and their solutions ...")
        pages = course.write_sources(sources)
        say(f"Making {len(pages)} pages ...")
        copy_explorers(Path(working, "static", EXPLORERS))
        warnings = _run_sphinx(sources, made, Path(working, "doctrees"), Path(working, "static"))
        _keep_what_readers_need(made)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(made, folder, dirs_exist_ok=True)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    say(f"{len(pages)} pages, {size / 1e6:.1f} MB, in {time.monotonic() - begun:.0f} s.")
    return warnings


def _refuse(folder: Path) -> None:
    """Raise CourseError where the site cannot be built, before any work is done."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise CourseError(
            f"The site is built with packages that are not installed ({', '.join(missing)}): start it with "
            '`python3 course.py site FOLDER`, which installs them, or `pip install -e ".[site]"`.'
        )
    if folder.exists() and not folder.is_dir():
        raise CourseError(f"{folder} is a file: name a folder that is new or empty.")
    if folder.is_dir() and any(folder.iterdir()):
        raise CourseError(f"{folder} is not empty: name a folder that is new or empty.")


def copy_explorers(folder: Path) -> None:
    """Copy the script that draws explorers, and its stored pictures."""
    from gemm_course.widgets._frames import STATIC

    shutil.copytree(STATIC, folder, ignore=shutil.ignore_patterns("lab.js", "*.json"))


def _run_sphinx(sources: Path, made: Path, working: Path, static: Path) -> list[str]:
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace

    from gemm_course.commands.site.extension import SETTINGS, STATIC

    settings = SETTINGS | {"html_static_path": [str(STATIC), str(static)]}
    warnings = StringIO()
    # The next build must not see what this build registers.
    with docutils_namespace():
        application = Sphinx(
            sources,
            None,
            made,
            working,
            "html",
            confoverrides=settings,
            status=None,
            warning=warnings,
            freshenv=True,
        )
        application.build()
    return _COLOUR.sub("", warnings.getvalue()).splitlines()


def _keep_what_readers_need(made: Path) -> None:
    for pattern in NOT_FOR_READERS:
        for file in made.rglob(pattern):
            file.unlink()
    # Without this file GitHub Pages would leave out folders whose names begin with "_".
    (made / ".nojekyll").touch()
