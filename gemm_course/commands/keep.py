"""Keeps a learner's state of a notebook as a dated copy before anything replaces it."""

import shutil
from datetime import datetime
from pathlib import Path


def keep(notebook: Path, folder: Path) -> Path:
    """Copy the notebook into the folder under its name and the time. Return the copy's path.

    No copy ever replaces another, so a second one in the same second gets a number.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{notebook.stem}_{datetime.now():%Y-%m-%d_%H%M%S}"
    copy = folder / f"{stem}.ipynb"
    number = 1
    while copy.exists():
        number += 1
        copy = folder / f"{stem}_{number}.ipynb"
    return Path(shutil.copy2(notebook, copy))
