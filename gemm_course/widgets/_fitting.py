"""Decides which stages a picture can show, and shows a sentence for the others."""

from __future__ import annotations

from collections.abc import Callable

from gemm_course.kernels import LADDER, Stage
from gemm_course.widgets._canvas import Canvas, Text


def shown(name: str, subject: Stage | Callable | None, fits: Callable[[Stage], bool], why: str) -> bool:
    """Tell whether ``see.<name>`` can show a stage or a learner's kernel. If it cannot, show a sentence.

    ``fits`` decides it for a stage. ``why`` ends the sentence "`see.<name>` has no picture of ...: ...".
    Kernels that learners wrote always fit. In place of one that is not written yet, show a sentence.
    """
    if subject is None or subject is Ellipsis:
        Canvas().show(Text(f"Nothing to draw yet: `see.{name}` draws your kernel when it is written."))
        return False
    if not isinstance(subject, Stage) or fits(subject):
        return True
    others = ", ".join(f"`{stage.name}`" for stage in LADDER if fits(stage))
    words = f"`see.{name}` has no picture of `{subject.name}`: {why}. It can show {others}."
    Canvas().show(Text(f'{words} What `{subject.name}` costs and saves: `see.tiles("{subject.name}")`.'))
    return False
