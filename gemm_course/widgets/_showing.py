"""Shows an explorer as an output of the course's JupyterLab, or as a widget elsewhere."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

# A JupyterLab that has the course's extension sets this variable for its kernels.
LAB = "GEMM_COURSE_LAB"


def show(explorer: Any, call: Any) -> None:
    """Display an explorer. ``call`` made it, and is None if it cannot be repeated in another kernel."""
    output = "_lab_output" if os.environ.get(LAB) else "_widget_output"
    import_module(f"gemm_course.widgets.{output}").show(explorer, call)
