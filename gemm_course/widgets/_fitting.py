"""Which stages a picture can show, and a sentence in its place for those that it cannot."""

from __future__ import annotations

from collections.abc import Callable

from gemm_course.kernels import LADDER, Stage
from gemm_course.widgets._canvas import Canvas, Text


def shown(name: str, subject: Stage | Callable, fits: Callable[[Stage], bool], why: str) -> bool:
    """Return whether ``see.<name>`` can show a stage or a kernel of the learner's; where it cannot, say so.

    ``fits`` tells for a stage, ``why`` ends the sentence "it has no picture of ..., ...". What learners wrote
    themselves always fits.
    """
    if not isinstance(subject, Stage) or fits(subject):
        return True
    others = ", ".join(f"`{stage.name}`" for stage in LADDER if fits(stage))
    words = f"`see.{name}` has no picture of `{subject.name}`: {why}. It can show {others}."
    Canvas().show(Text(f'{words} What `{subject.name}` takes and saves: `see.tiles("{subject.name}")`.'))
    return False
