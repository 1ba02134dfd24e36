"""Keeps a learner's attempts and the messages that they got, if the learner has switched that on.

`attempts.jsonl`, beside the learner's progress, has a line of JSON per attempt: the name of the exercise's
checker, whether it passed, the first sentence of its message, and the time. It has no code, though a message
may quote names from it, and it names no user and no machine. Without the file nothing is kept. `gemm-course
attempts --on` makes it, and `--off` removes it. A teacher gets a summary without times, which the learner
writes and sends. The second edition wrote numbers for names; its lines and summaries are read as well.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from gemm_course import road
from gemm_course.progress import in_a_learners_notebook, progress_folder
from gemm_course.second_edition import name_of

_SENTENCE = re.compile(r".+?[.:!?](?=\s|$)", re.DOTALL)
_FIGURES = re.compile(r"\d+(?:[.,]\d+)*")
# A checker's name, or a number that the second edition wrote.
_EXERCISE = re.compile(r"[A-Za-z]\w{0,80}|\d{2}\.\d{1,2}", re.ASCII)
# No learner tries an exercise more often, and no message is longer.
_MOST_ATTEMPTS, _LONGEST = 10_000, 500


def attempts_file() -> Path | None:
    """Return the file of attempts, or None if progress is switched off altogether."""
    folder = progress_folder()
    return folder.with_name("attempts.jsonl") if folder else None


def note_attempt(name: str, passed: bool, message: str) -> None:
    """Keep one attempt, if this is a learner's notebook and attempts are switched on. Raise nothing."""
    file = attempts_file()
    if file is None or not file.exists() or not in_a_learners_notebook():
        return
    told = {
        "exercise": name,
        "passed": passed,
        "told": "" if passed else first_sentence(message),
        "time": datetime.now().isoformat(timespec="seconds"),
    }
    with contextlib.suppress(OSError), file.open("a", encoding="utf-8") as lines:
        # The line is written in one call, so that lines do not mix.
        lines.write(json.dumps(told, ensure_ascii=False) + "\n")


def first_sentence(message: str) -> str:
    """Return a message's first sentence without its figures, so that the same mistake counts as one."""
    text = " ".join(message.split())
    found = _SENTENCE.match(text)
    return _FIGURES.sub("#", found[0] if found else text)


@dataclass
class Tried:
    """The attempts at one exercise, of one learner or of several.

    ``learners`` is how many tried it, and ``passed`` how many of them passed. ``attempts`` counts all until
    the first pass, or all if there was no pass. ``told`` counts how often each message was given.
    """

    learners: int = 0
    passed: int = 0
    attempts: int = 0
    told: Counter[str] = field(default_factory=Counter)

    def add(self, other: Mapping) -> None:
        """Add one learner's entry for one exercise. Raise ValueError if it is not such an entry."""
        try:
            learners, passed, attempts = (int(other[name]) for name in ("learners", "passed", "attempts"))
            told = {str(message): int(often) for message, often in other["told"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError("this is no summary of attempts") from error
        if learners != 1 or passed not in (0, 1) or not 0 <= attempts <= _MOST_ATTEMPTS:
            raise ValueError("a summary tells of one learner")
        if any(often < 0 for often in told.values()) or sum(told.values()) > attempts:
            raise ValueError("a summary tells of no more messages than attempts")
        self.learners, self.passed = self.learners + learners, self.passed + passed
        self.attempts += attempts
        self.told += Counter({printable(message)[:_LONGEST]: often for message, often in told.items()})


def printable(text: str) -> str:
    """Return a text of somebody else's that is safe to print: a terminal obeys control characters."""
    return "".join(each if each.isprintable() else "?" for each in text)


def summary(file: Path) -> dict[str, Tried]:
    """Return the attempts in a learner's file, by exercise. Damaged lines are skipped."""
    found: dict[str, Tried] = defaultdict(lambda: Tried(learners=1))
    for each in _lines(file):
        tried = found[name_of(str(each["exercise"]))]
        if tried.passed:
            continue  # Attempts after the pass do not count.
        tried.attempts += 1
        tried.passed = int(each["passed"])
        if not each["passed"]:
            tried.told[each["told"]] += 1
    return _in_order(found)


def as_json(found: Mapping[str, Tried]) -> str:
    """Return a summary as text, to be sent and added to others."""
    return json.dumps(
        {name: vars(tried) | {"told": dict(tried.told)} for name, tried in found.items()},
        ensure_ascii=False,
        indent=1,
    )


def added(texts: Iterable[str]) -> dict[str, Tried]:
    """Return several learners' summaries as one. Raise ValueError for a text that is not a summary."""
    total: dict[str, Tried] = defaultdict(Tried)
    for text in texts:
        said = json.loads(text)
        if not isinstance(said, dict):
            raise ValueError("this is no summary of attempts")
        for name, tried in said.items():
            if not _EXERCISE.fullmatch(name):
                raise ValueError("a summary has names of exercises, such as tile_kernel")
            total[name_of(name)].add(tried)
    return _in_order(total)


def table(found: Mapping[str, Tried]) -> str:
    """Return a summary for people to read: a line per exercise, and below it the most frequent messages."""
    lines = []
    for name, tried in found.items():
        often = f"{tried.attempts} attempt{'s' * (tried.attempts != 1)}"
        who = f"{tried.passed} of {tried.learners} passed, " if tried.learners > 1 else ""
        state = "" if tried.learners > 1 else "passed, " if tried.passed else "open, "
        lines.append(f"{_shown(name)}  {who}{state}{often}")
        lines += [f"       {many} x {message}" for message, many in tried.told.most_common(3)]
    return "\n".join(lines) or "No attempts are kept yet."


def _in_order(found: Mapping[str, Tried]) -> dict[str, Tried]:
    """Return the exercises in the order of the road, and then all others."""
    known = [name for name in road.EXERCISES if name in found]
    return {name: found[name] for name in (*known, *sorted(set(found) - set(known)))}


def _shown(name: str) -> str:
    return f"{road.number_of(name)} {name}" if name in road.EXERCISES else name


def _lines(file: Path) -> Iterable[dict]:
    try:
        text = file.read_text("utf-8", "replace")
    except OSError:
        return
    for line in text.splitlines():
        with contextlib.suppress(ValueError, TypeError):
            each = json.loads(line)
            if {"exercise", "passed", "told"} <= set(each):
                yield each
