"""Shows a progress bar for long runs, in a terminal or a notebook, and nothing elsewhere.

In a notebook the bar is a display that is updated in place. Rich would use a live widget there, which needs a
thread beside the kernel's and leaves a dead widget in the saved notebook.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

# In a notebook, updates of the bar are at least this many seconds apart.
PAUSE = 0.2
EMPTY = {"text/plain": ""}


@contextmanager
def progress_bar(doing: str, unit: str, console: Console | None = None) -> Iterator[Callable[..., None]]:
    """Yield ``show(done, total, note="")``, which moves the bar. The bar is gone when the block ends.

    ``doing`` is the activity, such as "emulating". ``unit`` is what is counted, such as "blocks". ``console``
    is by default standard error.
    """
    console = console or Console(stderr=True)
    columns = (
        TextColumn(doing),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_interactive)
    task = bar.add_task(doing, total=None, note="")

    def show(done: int, total: int, note: str = "") -> None:
        bar.update(task, completed=done, total=total, note=note)

    if console.is_jupyter:
        with _notebook_display(bar) as update:
            yield lambda *progress: (show(*progress), update())
    else:
        with bar:
            yield show


@contextmanager
def _notebook_display(bar: Progress) -> Iterator[Callable[[], None]]:
    from IPython.display import display

    handle, last = display(bar, display_id=True), time.monotonic()

    def update() -> None:
        nonlocal last
        if time.monotonic() - last > PAUSE:
            handle.update(bar)
            last = time.monotonic()

    try:
        yield update
    finally:
        handle.update(EMPTY, raw=True)
