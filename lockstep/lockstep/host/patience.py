"""Says on the standard error where a long launch is, so that nobody wonders whether it hangs."""

import sys
import threading
import time
from typing import NamedTuple, TextIO

from .summary import short


class Running(NamedTuple):
    """A launch that is under way: its kernel, as (name, file, line), and when it began."""

    kernel: tuple[str, str, int]
    began: float


class Patience:
    """A thread that watches a session's launches while a program runs.

    It tells of a launch after ``first`` seconds, and again each time that the launch has run twice as long.
    """

    def __init__(self, session, first: float = 8.0, out: TextIO | None = None):
        self._session, self._first, self._out = session, first, out or sys.stderr
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._over.set()
        self._thread.join()

    def _watch(self):
        told, due = None, self._first
        while not self._over.wait(self._first / 16):
            running = self._session.running
            if running is not told:
                told, due = running, self._first
            if running is None or time.monotonic() - running.began < due:
                continue
            self._tell(running)
            due *= 2

    def _tell(self, running: Running):
        (name, file, line), seconds = running.kernel, time.monotonic() - running.began
        at = _line_in(file, name)
        where = f" and is in line {at}" if at is not None else ""
        print(
            f"{name} ({short(file)}:{line}) has run for {seconds:.0f} s{where}. Ctrl-C stops it and shows "
            "what was found until then.",
            file=self._out,
            flush=True,
        )


def _line_in(file: str, name: str) -> int | None:
    """Return the line of a kernel that some Python thread is carrying out, or None."""
    for frame in sys._current_frames().values():
        while frame is not None:
            if frame.f_code.co_filename == file and frame.f_code.co_name == name:
                return frame.f_lineno
            frame = frame.f_back
    return None
