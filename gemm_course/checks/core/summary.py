"""Shows which exercises are done and which comes next, notebook by notebook, as text and as a table."""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemm_course.figures.colours import EDGE
from gemm_course.places import BROUGHT

_EXERCISE = re.compile(r"exercise (\d\d\.\d+)")


@dataclass(frozen=True)
class Chapter:
    """The numbers of a notebook's exercises, in the order in which they stand there.

    number: the notebook's number, such as "03". title: its title, such as "shared memory tiles".
    """

    number: str
    title: str
    passed: Sequence[str]
    open: Sequence[str]

    @property
    def name(self) -> str:
        return f"{self.number} {self.title}"

    @property
    def score(self) -> str:
        return f"{len(self.passed)} of {len(self.passed) + len(self.open)}"


@dataclass(frozen=True, repr=False)
class Progress:
    """What a learner has passed so far, as text and as HTML. ``following``: what to do next, a sentence."""

    chapters: Sequence[Chapter]
    following: str

    @property
    def heading(self) -> str:
        passed = sum(len(chapter.passed) for chapter in self.chapters)
        return f"{passed} of {passed + sum(len(chapter.open) for chapter in self.chapters)} exercises passed"

    def __str__(self) -> str:
        names = [chapter.name for chapter in self.chapters]
        wide = max(map(len, names), default=0)
        rows = [
            f"{name:<{wide}}  {chapter.score:>8}  {_listed('open:', chapter.open)}".rstrip()
            for name, chapter in zip(names, self.chapters, strict=True)
        ]
        return "\n".join([self.heading, *rows, self.following])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the table in the theme's colours; every exercise is a link to its place."""
        cell = f'style="text-align:left;vertical-align:top;padding:3px 10px;border-bottom:1px solid {EDGE}"'
        head = "".join(
            f'<th scope="col" {cell}>{words}</th>' for words in ("Notebook", "Passed", "Still open")
        )
        rows = "".join(
            f'<tr><th scope="row" {cell}>{_link(html.escape(chapter.name), chapter.number)}</th>'
            f"<td {cell}>{_linked(chapter.passed) or 'none yet'}</td>"
            f"<td {cell}>{_linked(chapter.open) or 'nothing'}</td></tr>"
            for chapter in self.chapters
        )
        following = _EXERCISE.sub(lambda found: _link(found[0], found[1]), html.escape(self.following))
        return (
            '<div style="font-size:14px;max-width:56em"><table style="border-collapse:collapse">'
            f'<caption style="text-align:left;font-weight:700;color:inherit">{self.heading}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
            f'<p style="margin:8px 0 0">{following}</p></div>'
        )


def summary(names: Mapping[str, str], done: Mapping[str, str]) -> Progress:
    """Make the table. names: number -> checker, in the course's order. done: what has passed, by number."""
    chapters = []
    for chapter in dict.fromkeys(number[:2] for number in names):
        numbers = _by_place(chapter, [number for number in names if number.startswith(f"{chapter}.")])
        parts = (
            [number for number in numbers if number in done],
            [each for each in numbers if each not in done],
        )
        chapters.append(Chapter(chapter, _title(chapter), *parts))
    following = next((number for chapter in chapters for number in chapter.open), None)
    return Progress(chapters, _next(following, names) if following else "All exercises are passed.")


def _by_place(chapter: str, numbers: Sequence[str]) -> list[str]:
    """Sort exercises as they stand in their notebook: one that is moved keeps its number."""
    file = _notebook(chapter)
    text = file.read_text("utf-8") if file else ""
    return sorted(numbers, key=lambda number: text.find(f'"exercise-{number.replace(".", "-")}"'))


def _next(number: str, names: Mapping[str, str]) -> str:
    file = _notebook(number[:2])
    where = f" in notebooks/{file.name}" if file else ""
    return f"Next: exercise {number}, check.{names[number]}{where}."


def _title(chapter: str) -> str:
    file = _notebook(chapter)
    return file.stem[3:].replace("_", " ") if file else ""


def _notebook(chapter: str) -> Path | None:
    return next(iter(sorted(BROUGHT.glob(f"{chapter}_*.ipynb"))), None)


def _linked(numbers: Sequence[str]) -> str:
    return ", ".join(_link(number, number) for number in numbers)


def _link(shown: str, number: str) -> str:
    """Return ``shown`` as a link to an exercise ("03.2") or notebook ("03"), if that lies beside this one.

    The fragment names the cell that the exercise begins with; tools/build_notebooks.py gives it this id.
    """
    file, here = _notebook(number[:2]), Path.cwd()
    place = f"#cell-id=exercise-{number.replace('.', '-')}" if "." in number else ""
    for folder, way in ((here, ""), (here.parent, "../")):
        if file is not None and (folder / file.name).is_file():
            return f'<a href="{way}{file.name}{place}">{shown}</a>'
    return shown


def _listed(before: str, numbers: Sequence[str]) -> str:
    return " ".join([before, ", ".join(numbers)]).strip() if numbers else ""
