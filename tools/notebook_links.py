"""What notebooks have around the lessons: contents, links from one to the next, folded solutions.

A link names a cell by its id, as in ``02_coalesced.ipynb#cell-id=exercise-best_block``. JupyterLab finds such
a cell with the first click, even while it opens the notebook; a heading's name it would not find.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gemm_course import road

CONTENTS_ID, CONTENTS_MARK = "contents", "<!-- contents -->"
SIDE_TRIPS = "Side trips lead from a notebook and back. Nothing on the road needs them."
EXERCISE = re.compile(r"^### Exercise \[\[(\w+)\]\] · ", re.MULTILINE)
_BESIDE = re.compile(r"\]\((?=\w+\.(?:ipynb|md)\b)")
_TITLE = re.compile(r"^# # (S?\d\d · .+)$", re.MULTILINE)
_MINUTES = re.compile(r"Time: about (\d+) minutes to read, (\d+) for the exercises")


@dataclass(frozen=True)
class Listed:
    """A notebook's line in the contents: name of its file, title, minutes for reading and for exercises."""

    name: str
    title: str
    reading: int
    exercises: int


def listed(name: str, source: str) -> Listed:
    """Read a notebook's line of the contents from its source (py:percent text). ``name`` is its file's.

    Raises ValueError if the source has no title or no times.
    """
    source = road.numbered(source)
    title, minutes = _TITLE.search(source), _MINUTES.search(source.replace("\n#", ""))
    if title is None or minutes is None:
        raise ValueError(f"{name}: the first cell says no title, or not how many minutes it takes")
    return Listed(name, title[1], int(minutes[1]), int(minutes[2]))


def file_of(name: str, kind: str) -> str:
    """Return the file name of a notebook of this kind. The kinds differ in it, so that tabs do as well."""
    return f"{name}_solutions.ipynb" if kind == "solutions" else f"{name}.ipynb"


def exercise_id(text: str) -> str | None:
    """Return the id for a cell with which an exercise begins; None for all other cells."""
    found = EXERCISE.match(text)
    return f"exercise-{found[1]}" if found else None


def parts(text: str) -> list[str]:
    """Cut a cell of text where an exercise begins, so that a link can lead there."""
    places = [found.start() for found in EXERCISE.finditer(text)]
    cuts = [0, *places, len(text)]
    pieces = [text[start:end].strip("\n") for start, end in pairwise(cuts)]
    return [piece for piece in pieces if piece] or [text]


def contents(notebooks: Mapping[str, Listed]) -> str:
    """Return the tables of all learner's notebooks, by topic: those of the road, then the side trips."""
    tables = [_table("notebook", [notebooks[each.topic] for each in road.ROAD])]
    if road.SIDE_TRIPS:
        tables += [SIDE_TRIPS, _table("side trip", [notebooks[each.topic] for each in road.SIDE_TRIPS])]
    return "\n\n".join(tables)


def _table(what: str, notebooks: Sequence[Listed]) -> str:
    rows = [
        f"| [{each.title}]({file_of(each.name, 'learner')}) | {each.reading} min | {each.exercises} min |"
        for each in notebooks
    ]
    return "\n".join([f"| {what} | to read | exercises |", "|:---|---:|---:|", *rows])


def top(notebooks: Mapping[str, Listed], topic: str, kind: str) -> str:
    """Return what is above a notebook's title: links to others and, in solutions, a banner."""
    ways = _ways(notebooks, topic, kind)
    if kind == "learner":
        return ways
    here = notebooks[topic]
    return (
        "**This notebook has the solutions**, run once from top to bottom; what you pass here does not count "
        f"as your progress. Your own notebook: [{here.title}](../{file_of(here.name, 'learner')})\n\n{ways}"
    )


def bottom(notebooks: Mapping[str, Listed], topic: str, kind: str) -> str:
    """Return what is at a notebook's end."""
    ways = _ways(notebooks, topic, kind)
    if kind == "solutions":
        return ways
    solutions = f"solutions/{file_of(notebooks[topic].name, 'solutions')}"
    return (
        f"{ways}\n\nEvery solution with what it shows when it runs: [solutions of this notebook]({solutions})"
    )


def from_solutions(text: str, identity: str, name: str) -> str:
    """Return a cell's text for the solutions: its links work from there, and each exercise begins with a link
    to its place in the learner's notebook.
    """
    text = _BESIDE.sub("](../", text)
    if not identity.startswith("exercise-"):
        return text
    back = f"../{file_of(name, 'learner')}#cell-id={identity}"
    return f"{text}\n\n*[This exercise in your own notebook]({back})*"


def folded(source: str, label: str) -> str:
    """Return a solution as text that opens with a click. Every viewer of notebooks can show its code."""
    return f"<details>\n<summary>{label}</summary>\n\n```python\n{source}\n```\n\n</details>"


def _ways(notebooks: Mapping[str, Listed], topic: str, kind: str) -> str:
    """One line of links: previous, contents, glossary, next. Contents and glossary are the learner's."""
    up = "../" if kind == "solutions" else ""
    start = file_of(road.ROAD[0].name, "learner")
    ways = [f"[Contents]({up}{start}#cell-id={CONTENTS_ID})", f"[Glossary]({up}glossary.md)"]
    here = road.notebook(topic)
    if here.beside:
        return " | ".join([_back(notebooks[here.beside], topic, kind), *ways])
    place = road.ROAD.index(here)
    if place > 0:
        before = notebooks[road.ROAD[place - 1].topic]
        ways.insert(0, f"[← {before.title}]({file_of(before.name, kind)})")
    if place + 1 < len(road.ROAD):
        after = notebooks[road.ROAD[place + 1].topic]
        ways.append(f"[{after.title} →]({file_of(after.name, kind)})")
    return " | ".join(ways)


def _back(before: Listed, topic: str, kind: str) -> str:
    """The link from a side trip to the cell of the road that leads to it."""
    return f"[← back to {before.title}]({file_of(before.name, kind)}#cell-id={side_trip_id(topic)})"


def side_trip_id(topic: str) -> str:
    """Return the id of the cell, in a notebook of the road, that leads to a side trip."""
    return f"side-{topic}"
