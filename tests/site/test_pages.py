"""The pages of a small course: all that it has, every link right, nothing loaded from elsewhere."""

import re

import pytest

from gemm_course.commands.errors import CourseError
from gemm_course.commands.site.build import build
from gemm_course.commands.site.pages import Course
from tests.site import pages, small_course

# of the packages that make the pages, said to their authors
pytestmark = pytest.mark.filterwarnings("ignore:.* is deprecated")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The small course's site, what was said while it was built, and what was warned of."""
    folder, said = tmp_path_factory.mktemp("site"), []
    warnings = build(folder, small_course.write(tmp_path_factory.mktemp("course")), said.append)
    return folder, said, warnings


def test_every_file_that_is_linked_is_there_and_markdown_is_a_page(built):
    folder, _, warnings = built
    made = {path.relative_to(folder).as_posix() for path in pages.read(folder)}
    expected = {
        "index",
        "notebooks/00_dots",
        "notebooks/glossary",
        "docs/what_limits_it",
        "docs/open_questions",
        "lockstep/README",
        "lockstep/REFERENCE",
        "RULES",
    }
    assert made == {f"{name}.html" for name in (*expected, "search")}
    assert list(folder.rglob("LICENSE")) and list(folder.rglob("dot.png"))
    assert warnings == []


def test_every_link_leads_to_a_place(built):
    found = pages.read(built[0])
    assert pages.broken(found) == []
    addresses = {address for page in found.values() for _, address in page.links}
    assert {"00_dots.html#exercise-00-1-what-is-a-dot", "index.html#two-commands"} <= addresses


def test_a_link_that_leads_nowhere_is_warned_of(tmp_path):
    course = small_course.write(tmp_path / "course")
    with (course / "notebooks/glossary.md").open("a") as file:
        file.write("\n[lost](00_dots.ipynb#cell-id=no-such-cell)\n")
    warnings = build(tmp_path / "site", course, lambda _: None)
    assert any("glossary.md" in warning and "no-such-cell" in warning for warning in warnings)


def test_nothing_is_loaded_from_another_host(built):
    assert pages.foreign(pages.read(built[0])) == []


def test_mathematics_is_mathml(built):
    text = (built[0] / "notebooks/00_dots.html").read_text(encoding="utf-8")
    assert len(re.findall(r"<math ", text)) == 2 and 'display="block"' in text
    assert "window.MathJax" not in text


def test_the_home_page_is_the_readme_and_leads_to_the_chapters(built):
    home = pages.read(built[0])[built[0] / "index.html"]
    assert "It begins here." in home.text and "This website is the whole course" in home.text
    assert home.text.index("Begin: 00 · Dots") < home.text.index("Run it.")
    assert ("a", "notebooks/00_dots.html") in home.links


def test_github_shows_folders_that_begin_with_an_underscore(built):
    assert (built[0] / ".nojekyll").exists() and (built[0] / "_static").is_dir()


def test_progress_is_said(built):
    said = built[1]
    assert said[0].startswith("Reading 1 notebook") and re.fullmatch(
        r"8 pages, [\d.]+ MB, in \d+ s\.", said[-1]
    )


def test_a_folder_that_holds_no_course_is_refused(tmp_path):
    with pytest.raises(CourseError, match="built notebooks are not in"):
        Course(tmp_path)


def test_a_chapter_without_its_solutions_is_refused(tmp_path):
    course = small_course.write(tmp_path)
    next(course.glob("notebooks/solutions/*.ipynb")).unlink()
    with pytest.raises(CourseError, match="built notebooks are not in"):
        Course(course)


def test_mathematics_that_cannot_be_written_stops_the_build(tmp_path):
    course = small_course.write(tmp_path / "course")
    (course / "lockstep/README.md").write_text("# The emulator\n\n$\\nonsense{1}$\n")
    with pytest.raises(Exception, match="nonsense"):
        build(tmp_path / "site", course, lambda _: None)
