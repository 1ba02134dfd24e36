"""Runs sessions. One is active while a program is emulated, and records its launches, counts and findings."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from numba import cuda
from numba.cuda import kernels

from lockstep.errors import KernelStopped, LimitExceeded
from lockstep.findings import Finding
from lockstep.frozen import original
from lockstep.launching.launch import LOOP_SECONDS, STEP_LIMIT, emulate
from lockstep.launching.report import Report
from lockstep.limits import Profile, profile

from . import replacing, state, summary
from .devices import Context, Device
from .errors import RefusedLaunch
from .heap import Heap
from .kernels import OF_ELEMENTS
from .patience import Running
from .workers import Workers

_OF_NUMBA = {*cuda.__path__, *kernels.__path__}


@dataclass(frozen=True)
class Launch:
    """One emulated launch: its kernel, its place in the program, its sizes, and the emulator's report."""

    kernel: str
    # `file` is the kernel's file.
    file: str
    line: int
    # `launched_in` is the file and the line of the launch.
    launched_in: tuple[str, int]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    # The kernel's shared arrays of fixed shape take `fixed_shared_bytes`.
    fixed_shared_bytes: int
    report: Report = field(repr=False)
    stopped = None

    def found(self) -> list[tuple[Finding, str]]:
        """Return the findings, each with its file."""
        return [(one, self.report.file_of(one)) for one in self.report.findings]


@dataclass(frozen=True)
class StoppedLaunch:
    """A launch that was stopped before its end, with what was found until then. It has no counts."""

    kernel: str
    file: str
    line: int
    launched_in: tuple[str, int]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    findings: tuple
    # `stopped` says why the launch was stopped.
    stopped: str

    def found(self) -> list[tuple[Finding, str]]:
        """Return the findings, each with its file."""
        return [(one, one.file) for one in self.findings]


@dataclass
class Found:
    """A finding of one or more launches.

    ``launches`` is the number of launches, and ``count`` the sum of the findings' counts in them.
    """

    severity: str
    kind: str
    file: str
    line: int
    function: str
    message: str
    array: str | None
    count: int
    launches: int

    def __str__(self):
        where = f"{summary.short(self.file)}, line {self.line}, in {self.function}"
        return f"{self.severity}: {where}: {self.message}"


class Session:
    """An emulated GPU and what has run on it since the session began.

    ``launches`` has a :class:`Launch` for each launch that reached its end, in order, ``stopped`` a
    :class:`StoppedLaunch` for each other that had begun. ``findings`` has a :class:`Found` for each
    problem, errors first. ``gpu`` is the GPU's profile. ``print(session)`` shows a summary.
    """

    def __init__(
        self,
        gpu: str | Profile | None = None,
        step_limit: int = STEP_LIMIT,
        loop_seconds: float = LOOP_SECONDS,
        as_compiled: bool = False,
    ):
        self.gpu, self.as_compiled = profile(gpu), as_compiled
        self.step_limit, self.loop_seconds = step_limit, loop_seconds
        self.launches: list[Launch] = []
        self.stopped: list[StoppedLaunch] = []
        self.running: Running | None = None
        self.workers = Workers()
        # `times_read` tells whether the program asked for the time between events.
        self.times_read = False
        self.heap = Heap(self.gpu.memory_bytes, self.workers.use_gpu)
        self.device = Device(self.gpu)
        self.context = Context(self.device)
        self._one_at_a_time = threading.RLock()

    def launch(
        self, configured: Any, function: Callable, args: Sequence, launched_in: tuple[str, int]
    ) -> None:
        """Emulate one launch and record it.

        Raises what :func:`lockstep.emulate` raises, but RefusedLaunch in place of LimitExceeded.
        """
        self.workers.use_gpu()
        grid, block = configured.griddim, configured.blockdim
        limits = {"gpu": self.gpu, "step_limit": self.step_limit, "loop_seconds": self.loop_seconds}
        debug = bool(configured.dispatcher.targetoptions.get("debug"))
        kernel = _named(function)
        with self._one_at_a_time:
            self.running = Running(kernel, time.monotonic())
            try:
                report = emulate(
                    function,
                    grid,
                    block,
                    *args,
                    shared_bytes=configured.sharedmem,
                    debug=debug,
                    as_compiled=self.as_compiled,
                    **limits,
                )
            except LimitExceeded as error:
                raise RefusedLaunch(str(error)) from None
            except (KernelStopped, KeyboardInterrupt) as error:
                what = (*kernel, launched_in, grid, block)
                findings, why = getattr(error, "findings", ()), str(error) or "it was interrupted"
                self.stopped.append(StoppedLaunch(*what, findings, why))
                self.workers.tell(self.stopped[-1:], found_in)
                raise
            finally:
                self.running = None
            fixed = report.shared_bytes - configured.sharedmem
            self.launches.append(Launch(*kernel, launched_in, grid, block, fixed, report))
            self.workers.tell(self.launches[-1:], found_in)

    def fixed_shared_bytes(self, function: Callable) -> int:
        """Return the bytes of a kernel's shared arrays of fixed shape, or 0 before its first launch."""
        _, *place = _named(function)
        return max(
            (one.fixed_shared_bytes for one in self.launches if [one.file, one.line] == place), default=0
        )

    @property
    def findings(self) -> list[Found]:
        own = found_in([*self.launches, *self.stopped])
        theirs = [Found(**one) for told in self.workers.told() for one in told["findings"]]
        return _merged([*own, *theirs])

    @property
    def errors(self) -> list[Found]:
        return [found for found in self.findings if found.severity == "error"]

    @property
    def ok(self) -> bool:
        """Whether no launch has a finding of severity error."""
        return not self.errors

    def __str__(self):
        return summary.as_text(self)

    def as_dict(self) -> dict:
        """Return the launches with their counts, and the findings, as plain data for JSON."""
        return summary.as_data(self)


def _named(function: Callable) -> tuple[str, str, int]:
    """Return (name, file, line) of a kernel. A ufunc's kernel has the place of its function of elements."""
    code = getattr(original(function), OF_ELEMENTS, function).__code__
    return function.__name__, code.co_filename, code.co_firstlineno


def found_in(launches: Sequence[Launch | StoppedLaunch]) -> list[Found]:
    """Return the findings of launches, merged by place and kind, errors first, then in source order.

    In numba.cuda's own code, such as ``cuda.reduce``, errors become advice and advice is left out, because
    no program can change that code.
    """
    together: dict[tuple, Found] = {}
    latest: dict[tuple, Launch] = {}  # A launch may have a finding twice, but must count once.
    for launch in launches:
        for one, file in launch.found():
            severity = one.severity
            if os.path.dirname(file) in _OF_NUMBA:
                if severity == "advice":
                    continue
                severity = "advice"
            key = (one.kind, file, one.function, one.line, one.other_line, one.array)
            known = together.get(key)
            if known is None:
                where = (file, one.line, one.function or launch.kernel)
                together[key] = Found(severity, one.kind, *where, one.message, one.array, one.count, 1)
            else:
                known.count += one.count
                known.launches += latest[key] is not launch
            latest[key] = launch
    return sorted(together.values(), key=_rank)


def _rank(found: Found) -> tuple:
    return found.severity != "error", found.file, found.line


def _merged(findings: Sequence[Found]) -> list[Found]:
    """Add up what several processes have found of the same kind at the same place."""
    together: dict[tuple, Found] = {}
    for one in findings:
        known = together.setdefault((one.kind, one.file, one.function, one.line, one.array, one.message), one)
        if known is not one:
            known.count, known.launches = known.count + one.count, known.launches + one.launches
    return sorted(together.values(), key=_rank)


@contextmanager
def emulated(
    gpu: str | Profile | None = None,
    *,
    step_limit: int = STEP_LIMIT,
    loop_seconds: float = LOOP_SECONDS,
    as_compiled: bool = False,
) -> Iterator[Session]:
    """Replace numba.cuda with the emulator in a block. Kernels run without a GPU, checked and counted.

    gpu: the GPU whose limits hold, such as "h200" (the default), "ada" or "8.6". step_limit: iterations that
    any one loop of a kernel may run. loop_seconds: how long a ``while`` loop without a counter may run if no
    thread leaves it. as_compiled: every launch's report also has ``as_compiled``, the least
    that compiled code can access, which takes longer. The end of the block restores numba.cuda, also after an
    error. Raises LaunchError if the emulator does not know the GPU.
    """
    session = Session(gpu, step_limit, loop_seconds, as_compiled)
    end = begin(session)
    try:
        yield session
    finally:
        end()


def begin(session: Session) -> Callable[[], None]:
    """Make a session active, and replace numba.cuda if no other session has. Return a function that ends it.

    Sessions end in reverse order.
    """
    restore = replacing.replace() if state.active() is None else None
    state.enter(session)

    def end() -> None:
        state.leave(session)
        if restore is not None:
            restore()

    return end
