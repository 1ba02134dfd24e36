"""Notes a learner's kernel that has passed: what it reads, and, for this session, the kernel itself."""

from __future__ import annotations

import contextlib
import io
from typing import Any

from .counting import wavefronts_per_multiply_add
from .rung import Rung, rung_of
from .store import COUNTED, keep, ladder_folder

_passed: dict[str, Any] = {}


def note_kernel(checker: str, *answer: Any) -> None:
    """Count a kernel that has just passed, and keep the counts, if its checker belongs to a rung.

    Counting takes some hundredths of a second. Raise nothing: the check has passed, whatever happens here.
    """
    rung = rung_of(checker)
    if rung is None or len(answer) != 1 or ladder_folder() is None:
        return
    _passed[checker] = answer[0]
    keep(checker, COUNTED, {"wavefronts": _counted(rung, answer[0])})


def passed_here(rung: Rung) -> Any:
    """Return the answer that has passed in this process, or None."""
    return _passed.get(rung.checker)


def _counted(rung: Rung, answer: Any) -> float | None:
    """Return the wavefronts per multiply-add, or None if they cannot be counted. Show no prints."""
    said = io.StringIO()
    if rung.reads:
        with (
            contextlib.suppress(Exception),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
        ):
            return wavefronts_per_multiply_add(rung, answer) or None
    return None
