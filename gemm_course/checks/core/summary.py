"""Shows which exercises are done and which comes next, notebook by notebook, as text and as a table."""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemm_course import road
from gemm_course.figures.colours import EDGE
from gemm_course.places import BROUGHT

_EXERCISE = re.compile(r"exercise ([\w.]+), check\.(\w+)")


@dataclass(frozen=True)
class Entry:
    """An exercise: its number, the name of its checker, and whether it has passed."""

    number: str
    name: str
    passed: bool


@dataclass(frozen=True)
class Chapter:
    """A notebook's exercises in the order in which they stand there.

    number: the notebook's number, such as "03". title: its title, such as "shared memory tiles". file: the
    name of its file, or "" for exercises that are in no notebook of the course.
    """

    number: str
    title: str
    file: str
    exercises: Sequence[Entry]

    @property
    def name(self) -> str:
        return f"{self.number} {self.title}".rstrip()

    @property
    def passed(self) -> list[Entry]:
        return [each for each in self.exercises if each.passed]

    @property
    def open(self) -> list[Entry]:
        return [each for each in self.exercises if not each.passed]

    @property
    def score(self) -> str:
        return f"{len(self.passed)} of {len(self.exercises)}"


@dataclass(frozen=True, repr=False)
class Progress:
    """What a learner has passed so far, as text and as HTML: the road, a teacher's own exercises, side trips.

    Only the road has to be complete: nothing depends on a side trip.
    """

    road: Sequence[Chapter]
    own: Sequence[Chapter] = ()
    side_trips: Sequence[Chapter] = ()

    @property
    def chapters(self) -> list[Chapter]:
        return [*self.road, *self.own, *self.side_trips]

    @property
    def heading(self) -> str:
        parts = {"road": self.road, "own exercises": self.own, "side trips": self.side_trips}
        told = [f"{name} {_score(chapters)}" for name, chapters in parts.items() if chapters]
        return f"Passed: {', '.join(told)}"

    @property
    def following(self) -> str:
        """What to do next, a sentence."""
        for chapter in self.chapters:
            for each in chapter.open:
                where = f" in notebooks/{chapter.file}" if chapter.file else ""
                return f"{self._so_far(chapter)}exercise {each.number}, check.{each.name}{where}."
        return "All exercises are passed."

    def _so_far(self, chapter: Chapter) -> str:
        return "The road is complete. A side trip, if you like: " if chapter in self.side_trips else "Next: "

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
            f'<tr><th scope="row" {cell}>{_link(html.escape(chapter.name), chapter.file)}</th>'
            f"<td {cell}>{_linked(chapter.passed, chapter) or 'none yet'}</td>"
            f"<td {cell}>{_linked(chapter.open, chapter) or 'nothing'}</td></tr>"
            for chapter in self.chapters
        )
        following = _EXERCISE.sub(self._next_linked, html.escape(self.following))
        return (
            '<div style="font-size:14px;max-width:56em"><table style="border-collapse:collapse">'
            f'<caption style="text-align:left;font-weight:700;color:inherit">{self.heading}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
            f'<p style="margin:8px 0 0">{following}</p></div>'
        )

    def _next_linked(self, found: re.Match) -> str:
        file = next(each.file for each in self.chapters if found[2] in [one.name for one in each.exercises])
        return f"{_link(f'exercise {found[1]}', file, found[2])}, check.{found[2]}"


def summary(numbers: Mapping[str, str], done: Mapping[str, str]) -> Progress:
    """Make the table. numbers: checker -> number, of all exercises. done: what has passed, by checker."""
    own = {name: number for name, number in numbers.items() if name not in road.EXERCISES}
    return Progress(
        [_of_the_course(notebook, done) for notebook in road.ROAD],
        [_own(chapter, own, done) for chapter in sorted({number[:2] for number in own.values()})],
        [_of_the_course(notebook, done) for notebook in road.SIDE_TRIPS if notebook.exercises],
    )


def _of_the_course(notebook: road.Notebook, done: Mapping[str, str]) -> Chapter:
    entries = [Entry(notebook.number_of(each), each, each in done) for each in notebook.exercises]
    file = f"{notebook.name}.ipynb"
    return Chapter(notebook.number, notebook.title, file if (BROUGHT / file).is_file() else "", entries)


def _own(chapter: str, numbers: Mapping[str, str], done: Mapping[str, str]) -> Chapter:
    """Return the chapter "50" of a teacher's own exercises."""
    entries = [Entry(number, name, name in done) for name, number in numbers.items()]
    return Chapter(chapter, "", "", [each for each in entries if each.number[:2] == chapter])


def _score(chapters: Sequence[Chapter]) -> str:
    passed, all_of_them = (
        sum(len(part) for part in parts)
        for parts in ([each.passed for each in chapters], [each.exercises for each in chapters])
    )
    return f"{passed} of {all_of_them}"


def _linked(exercises: Sequence[Entry], chapter: Chapter) -> str:
    return ", ".join(_link(each.number, chapter.file, each.name) for each in exercises)


def _link(shown: str, file: str, exercise: str = "") -> str:
    """Return ``shown`` as a link to a notebook, or to an exercise in it, if it lies beside this one.

    The fragment names the cell that the exercise begins with; tools/build_notebooks.py gives it this id.
    """
    here = Path.cwd()
    place = f"#cell-id=exercise-{exercise}" if exercise else ""
    for folder, way in ((here, ""), (here.parent, "../")):
        if file and (folder / file).is_file():
            return f'<a href="{way}{file}{place}">{shown}</a>'
    return shown


def _listed(before: str, exercises: Sequence[Entry]) -> str:
    return f"{before} {', '.join(each.number for each in exercises)}" if exercises else ""
