"""Shows an explorer as an output of the course's JupyterLab, or as a widget elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

# A JupyterLab that has the course's extension sets this variable for its kernels.
LAB = "GEMM_COURSE_LAB"
_in_a_fold: ContextVar[bool] = ContextVar("_in_a_fold", default=False)


def show(explorer: Any, call: Any) -> None:
    """Display an explorer. ``call`` made it, and is None if it cannot be repeated in another kernel."""
    show_bundle(import_module("gemm_course.widgets._lab_output").bundle(explorer, call))


def show_bundle(bundle: dict[str, Any]) -> None:
    """Display the output of an explorer or of a fold, given by MIME type."""
    _output().show(bundle)


def _output() -> Any:
    # A fold takes the outputs of the course's JupyterLab, and turns them into one that fits the place.
    is_widget = not os.environ.get(LAB) and not _in_a_fold.get()
    return import_module(f"gemm_course.widgets.{'_widget_output' if is_widget else '_lab_output'}")


@contextmanager
def in_a_fold() -> Iterator[None]:
    """Let explorers that are shown in the block be parts of a fold."""
    before = _in_a_fold.set(True)
    try:
        yield
    finally:
        _in_a_fold.reset(before)
