"""Runs `gemm-course attempts`: keeps or forgets attempts, shows them, writes and adds up summaries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gemm_course.attempts import added, as_json, attempts_file, summary, table
from gemm_course.commands.errors import CourseError

# A summary of all exercises has some tens of thousands of bytes.
MOST_BYTES = 1_000_000


def switched(on: bool) -> str:
    """Begin to keep attempts, or remove those that were kept. Return a sentence about it.

    Raise CourseError if the file cannot be written.
    """
    file = _file()
    try:
        if not on:
            file.unlink(missing_ok=True)
            return "Attempts are not kept, and those that were are removed."
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    except OSError as error:
        raise CourseError(f"{file} cannot be written ({error.strerror}).") from error
    return f"What you try is kept in {file} from now on: exercise, verdict, message, time. `--off` ends it."


def written(target: Path) -> str:
    """Write this learner's summary into a new file, and say what is in it. Raise CourseError."""
    file = _file()
    if not file.exists():
        raise CourseError("No attempts are kept here: `gemm-course attempts --on` begins to.")
    if target.exists():
        raise CourseError(f"{target} exists already: name a new file.")
    found = summary(file)
    target.write_text(as_json(found) + "\n", "utf-8")
    return (
        f"{target} says of {len(found)} exercises how often you tried and what you were told. "
        "Read it before you send it."
    )


def show(files: Sequence[Path]) -> str:
    """Return the table of this learner's attempts, or of several learners' summaries. Raise CourseError."""
    if not files:
        file = _file()
        if not file.exists():
            return "No attempts are kept: `gemm-course attempts --on` begins to."
        return table(summary(file))
    texts = []
    for file in files:
        try:
            if file.stat().st_size > MOST_BYTES:
                raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
            texts.append(file.read_text("utf-8"))
            added(texts[-1:])
        except (OSError, ValueError) as error:
            raise CourseError(f"{file} is no summary of attempts ({error}).") from error
    return f"{len(files)} learners\n{table(added(texts))}"


def _file() -> Path:
    file = attempts_file()
    if file is None:
        raise CourseError("Progress is switched off here, and attempts with it (GEMM_COURSE_PROGRESS).")
    return file
