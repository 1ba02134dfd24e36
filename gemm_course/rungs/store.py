"""Keeps what is known of each rung in small files, in the folder `ladder` beside the learner's progress.

`naive.counted` says that the kernel of the checker `naive` has passed, and what was counted. `naive.bet` is
the learner's bet, and `naive.measured` the speed on the learner's GPU. Each is a file of its own, which is
written whole under another name and then takes its place. So notebooks that run side by side lose nothing,
and no reader sees half a file. A damaged file counts as if it were not there.

Nothing is kept or shown where progress is off, nor in the notebooks with the solutions.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from gemm_course.progress import in_a_learners_notebook, progress_folder

COUNTED, BET, MEASURED = "counted", "bet", "measured"


@dataclass(frozen=True)
class Kept:
    """What is kept of a rung; a figure is None if it is not known.

    ``passed`` tells whether the kernel has passed. ``wavefronts`` are those per multiply-add of a warp.
    ``bet`` and ``measured`` are TFLOPS, the latter on the GPU that ``gpu`` names.
    """

    passed: bool = False
    wavefronts: float | None = None
    bet: float | None = None
    measured: float | None = None
    gpu: str = ""


def ladder_folder() -> Path | None:
    """Return the folder of this learner's ladder, or None where nothing is kept."""
    folder = progress_folder()
    return folder.with_name("ladder") if folder and in_a_learners_notebook() else None


def keep(checker: str, what: str, value: Mapping[str, Any]) -> bool:
    """Keep one thing about a rung, COUNTED, BET or MEASURED. Return whether it is kept. Raise nothing."""
    folder = ladder_folder()
    if folder is None:
        return False
    new = folder / f".{checker}.{what}.{uuid4().hex}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps(value), "utf-8")
        new.replace(folder / f"{checker}.{what}")
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(new)
        return False
    return True


def kept(checker: str) -> Kept:
    """Return what is kept of a rung."""
    counted, bet, measured = (_read(checker, what) for what in (COUNTED, BET, MEASURED))
    gpu = measured.get("gpu") if measured else None
    tflops = _positive(measured, "tflops") if isinstance(gpu, str) and gpu else None
    return Kept(
        passed=counted is not None,
        wavefronts=_positive(counted, "wavefronts"),
        bet=_positive(bet, "tflops"),
        measured=tflops,
        gpu=gpu if tflops else "",
    )


def _read(checker: str, what: str) -> dict | None:
    folder = ladder_folder()
    if folder is None:
        return None
    try:
        value = json.loads((folder / f"{checker}.{what}").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _positive(value: dict | None, name: str) -> float | None:
    """Return a positive number from a file, or None if there is anything else."""
    number = (value or {}).get(name)
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    return float(number) if 0 < number < math.inf else None
