"""Changes a few places in a stage's source, to measure what they are worth."""

from __future__ import annotations

import dataclasses
import importlib.util
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from gemm_course.kernels import Stage


def changed(module: ModuleType, name: str, replacements: Mapping[str, str]) -> Stage:
    """Return the stage of a module of ``kernels/``, called ``name``, with pieces of its source replaced.

    ``replacements`` maps each piece to the new one. Raise RuntimeError if a piece is not in the source,
    because then the stage is not the one that was meant.
    """
    source = Path(module.__file__).read_text("utf-8")
    for before, after in replacements.items():
        if before not in source:
            raise RuntimeError(f"{module.__name__} has changed: {before} is not in it")
        source = source.replace(before, after)
    path = Path(tempfile.mkdtemp()) / f"{name}.py"  # Numba must be able to read a kernel's file.
    path.write_text(source, "utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return dataclasses.replace(loaded.STAGE, name=name)
