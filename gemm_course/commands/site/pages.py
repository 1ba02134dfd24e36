"""Decides which pages the site has, and writes the sources from which Sphinx makes them."""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

import nbformat
from docutils.nodes import make_id

from gemm_course.commands.errors import CourseError
from gemm_course.commands.site.links import Target, places, rewritten, rewritten_html, slug
from gemm_course.commands.site.notebooks import page_of

README, HOME = "README.md", "index.md"
REFERENCE = (
    "notebooks/glossary.md",
    "docs/what_limits_it.md",
    "docs/open_questions.md",
    "lockstep/README.md",
    "lockstep/REFERENCE.md",
)
_LINKED_FILE = re.compile(r"\]\(([^)\s#:]+)")
_ROW_OF_A_CHAPTER = re.compile(r"^\| (S?\d\d) \|", re.MULTILINE)
_TITLE = re.compile(r"^# (.+)", re.MULTILINE)
_BEGIN = """
<div class="course-begin">

[Begin: {title}]({first})

</div>

This website is the whole course to read: pictures move, quizzes answer, and each exercise has its solution
folded below it. To run its cells and have your own kernels checked, [get the course running](#two-commands).
"""
_CONTENTS = """
```{{toctree}}
:caption: {caption}
:hidden:

{pages}
```
"""


class Course:
    """The course's files on the site, at the same paths as in the course. README.md is the home page."""

    def __init__(self, root: Path):
        """Read the places that links may lead to. Raise CourseError if ``root`` has no built notebooks."""
        self.root = root
        self.chapters = [path.relative_to(root).as_posix() for path in sorted(root.glob("notebooks/*.ipynb"))]
        self.chapter_of = {
            path.relative_to(root).as_posix(): chapter
            for chapter in self.chapters
            for path in root.glob(f"notebooks/solutions/{PurePosixPath(chapter).stem}*.ipynb")
        }
        if not self.chapters or set(self.chapter_of.values()) != set(self.chapters):
            raise CourseError(
                f"The built notebooks are not in {root}: the site needs the course's whole folder."
            )
        self._places = {path: places(self.notebook(path)) for path in (*self.chapters, *self.chapter_of)}

    def notebook(self, path: str) -> nbformat.NotebookNode:
        """Return the notebook at ``path`` in the course."""
        return nbformat.read(self.root / path, 4)

    def write_sources(self, folder: Path) -> list[str]:
        """Write Sphinx's sources into ``folder``, and return the paths of all pages in order.

        Markdown files that a page links to become pages as well, and other files are copied.
        """
        for solutions, chapter in self.chapter_of.items():
            self._write_chapter(chapter, solutions, folder / chapter)
        texts = self._texts()
        for path, text in texts.items():
            if path != README:
                _write(folder / path, rewritten(text, path, self.lead))
        others = [path for path in texts if path not in (README, *REFERENCE)]
        road = [chapter for chapter in self.chapters if _number(chapter).isdigit()]
        side_trips = [chapter for chapter in self.chapters if chapter not in road]
        pages = {"Chapters": road, "Side trips": side_trips}
        parts = pages | {"Reference": REFERENCE, "About the course": others}
        _write(folder / HOME, rewritten(self._home(texts[README]), README, self.lead) + _contents(parts))
        for path in {path for page, text in texts.items() for path in self._linked(page, text)} - set(texts):
            _copy(self.root / path, folder / path)
        return [HOME, *self.chapters, *REFERENCE, *others]

    def lead(self, target: Target) -> Target | None:
        """Return where a place of the course is on the site, or None if path and name are the same there."""
        path, place = target
        if path == README:
            return HOME, place
        if path in self._places:
            heading = self._places[path].get(unquote(place))
            return self.chapter_of.get(path, path), place if heading is None else slug(heading)
        return None

    def _id_of(self, target: Target) -> Target:
        """Return the target of a link in HTML, which is the page and the id that the place has on it."""
        path, place = target
        heading = self._places.get(path, {}).get(unquote(place), place)
        return self.chapter_of.get(path, path), make_id(heading)

    def _write_chapter(self, chapter: str, solutions: str, file: Path) -> None:
        page = page_of(self.notebook(chapter), self.notebook(solutions), _number(chapter))
        for cell in page.cells:
            if cell.cell_type == "markdown":
                cell.source = rewritten(cell.source, chapter, self.lead)
            for data in (output.get("data", {}) for output in cell.get("outputs", [])):
                if "text/html" in data:
                    data["text/html"] = rewritten_html(data["text/html"], chapter, self._id_of)
        _write(file, nbformat.writes(page))

    def _texts(self) -> dict[str, str]:
        """Return the text of every page that is not a notebook, in the order in which pages are linked."""
        waiting, found = [README, *REFERENCE], {}
        for path in waiting:
            found[path] = (self.root / path).read_text(encoding="utf-8")
            linked = (other for other in self._linked(path, found[path]) if other.endswith(".md"))
            waiting += [other for other in dict.fromkeys(linked) if other not in waiting]
        return found

    def _linked(self, page: str, text: str) -> list[str]:
        """Return the files that the Markdown ``text`` of ``page`` links to, without notebooks."""
        named = (
            posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
            for path in _LINKED_FILE.findall(text)
        )
        return [path for path in named if (self.root / path).is_file() and not path.endswith(".ipynb")]

    def _home(self, readme: str) -> str:
        """Return README.md with a beginning for readers of the site, and links to its chapters."""
        by_number = {_number(chapter): chapter for chapter in self.chapters}
        linked = _ROW_OF_A_CHAPTER.sub(lambda row: f"| [{row[1]}]({by_number[row[1]]}) |", readme)
        first = self.chapters[0]
        texts = "\n".join(cell.source for cell in self.notebook(first).cells if cell.cell_type == "markdown")
        before, picture, rest = linked.partition("\n![")
        return before + _BEGIN.format(title=_TITLE.search(texts)[1], first=first) + picture + rest


def _number(chapter: str) -> str:
    return PurePosixPath(chapter).name.partition("_")[0]


def _contents(parts: dict[str, list[str]]) -> str:
    return "".join(
        _CONTENTS.format(
            caption=caption, pages="\n".join(f"/{posixpath.splitext(page)[0]}" for page in pages)
        )
        for caption, pages in parts.items()
        if pages
    )


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _copy(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)
