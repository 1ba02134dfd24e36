"""Profiles many kernels, one after the other, and keeps what was measured."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gemm_course.bench.profile.measure import Launch, NotProfiled, profile_content, profile_row, watch
from gemm_course.bench.profile.ncu import find_ncu
from gemm_course.bench.profile.wanted import Wanted
from gemm_course.compiler import compiled
from gemm_course.compiler.nvidia import require_compiler
from gemm_course.device import gpu_facts, require_gpu
from gemm_course.profiles import store
from gemm_course.records.columns import PROFILE

# This many threads read reports while the GPU runs the next kernel.
READERS = 2


@dataclass
class Done:
    """The result of profiling: how many kernels were profiled, had a profile, or are left for lack of time.

    ``failed`` has a line for each kernel that could not be profiled.
    """

    profiled: int = 0
    there: int = 0
    left: int = 0
    failed: list[str] = field(default_factory=list)


def record_profiles(
    wanted: Sequence[Wanted],
    folder: Path,
    command: str,
    again: bool = False,
    until: float = math.inf,
    progress: Callable[[int, int, str], None] = lambda done, total, note: None,
) -> Done:
    """Profile the wanted kernels of which a GPU's folder has no profile, or with `again` all of them.

    ``until`` is a `time.monotonic()` after which no kernel is begun. ``progress`` is called with how many
    have been launched, of how many, and which comes next. A kernel that fails does not stop the others. Raise
    NoGpu, NoProfiler or NoCompiler.
    """
    require_gpu()
    require_compiler()
    find_ncu()
    keeper = _Keeper(folder / store.FOLDER)
    todo = [one for one in wanted if again or not keeper.has(one)]
    done = Done(there=len(wanted) - len(todo))
    reading: list[tuple[Wanted, Future]] = []
    with ThreadPoolExecutor(READERS) as readers:
        for number, one in enumerate(todo):
            progress(number, len(todo), str(one))
            if time.monotonic() > until:
                done.left = len(todo) - number
                break
            try:
                read = watch(one.source)
            except NotProfiled as reason:
                done.failed.append(f"{one}: {reason}")
            else:
                reading.append((one, readers.submit(_finish, one, read, keeper, command)))
        for one, future in reading:
            if error := future.exception():
                done.failed.append(f"{one}: {error or type(error).__name__}")
            else:
                done.profiled += 1
    return done


def _finish(one: Wanted, read: Callable[[], Launch], keeper: _Keeper, command: str) -> None:
    launch = read()
    with keeper.compiling:
        code = compiled(one.stage, tiles=one.tiles, compute_capability=gpu_facts().compute_capability)
    keeper.keep(one, profile_row(launch, one.about, command), profile_content(launch, code))


class _Keeper:
    """The folder of profiles of one GPU, to which several threads write."""

    def __init__(self, folder: Path):
        self.folder, self.table = folder, folder / store.TABLE
        self.compiling, self._writing = threading.Lock(), threading.Lock()
        PROFILE.cut_partial_line(self.table)

    def has(self, one: Wanted) -> bool:
        listed = {(_key(row), row["file"]) for row in PROFILE.rows(self.table)}
        return (one.key, one.file) in listed and (self.folder / one.file).exists()

    def keep(self, one: Wanted, row: dict[str, Any], content: dict[str, Any]) -> None:
        """Write the profile's file, and its row in place of one of the same stage, tiles and size.

        A row that names the same file is removed as well, because its tiles were the stage's default once.
        """
        with self._writing:
            store.write(self.folder / one.file, content)
            rows = [
                old for old in PROFILE.rows(self.table) if _key(old) != one.key and old["file"] != one.file
            ]
            PROFILE.write(self.table, store.in_order([*rows, row]))


def _key(row: dict[str, Any]) -> tuple:
    return tuple(row[name] for name in store.KEY)
