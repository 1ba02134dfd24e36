"""Collects what forked processes of a program find. Each has its own copy of the session.

A worker of ``multiprocessing`` may be ended without notice, so it tells of each launch at once: it adds a
line to a file of its own in a folder that all share.
"""

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

from .errors import NOT_INITIALIZED, DriverError

_all: "weakref.WeakSet[Workers]" = weakref.WeakSet()


class Workers:
    """The processes that were forked while a session was active."""

    def __init__(self):
        self._process = os.getpid()
        self._folder: Path | None = None
        self._user: int | None = None
        _all.add(self)

    def use_gpu(self):
        """Note that this process uses the GPU.

        Raises DriverError in a process that was forked after another had used it.
        """
        if self._user is None:
            self._user = os.getpid()
        if self._user != os.getpid():
            raise DriverError(
                NOT_INITIALIZED,
                "CUDA initialized before forking: the process that forked this one had used the GPU already. "
                "Use it in the forked processes only, or start them with `spawn`",
            )

    def prepare(self):
        """Make the folder before the first fork. The process that made it removes it."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="lockstep-workers-"))
            weakref.finalize(self, _remove, self._folder, self._process)

    def tell(self, launches: Sequence, found_in: Callable):
        """Write down, in a forked process, what was found in these launches."""
        if self._folder is None or os.getpid() == self._process:
            return
        found = [vars(one) for one in found_in(launches)]
        with (self._folder / str(os.getpid())).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"launches": len(launches), "findings": found}, default=str) + "\n")

    def told(self) -> list[dict]:
        """Return what the workers have written down, an entry per launch."""
        if self._folder is None or os.getpid() != self._process:
            return []
        return [
            json.loads(line)
            for file in sorted(self._folder.glob("*"))
            for line in file.read_text(encoding="utf-8").splitlines()
        ]


def _remove(folder: Path, process: int):
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _before_fork():
    for each in list(_all):
        each.prepare()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)
