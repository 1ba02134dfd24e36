"""Starts child processes that do not outlive their test, and makes a run of tests leave nothing behind.

Whatever a run makes lies in one folder, the run's temporary one: pytest's folders, JupyterLab's, Chromium's.
A process belongs to the run if its environment, command line or working directory names that folder. A
watchdog, which is a process of its own, waits for the end of the run, however it comes; then it kills what
still belongs to the run and removes the folder.
"""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

PREFIX = "lockstep-tests-"
WAIT = 60  # seconds that something may take which takes moments on an idle machine; no test measures it
GRACE = 20  # seconds for processes that are about to end
TRACKER = "from multiprocessing.resource_tracker import"  # Python starts it with the first spawned process
INSIDE = {
    "JUPYTER_RUNTIME_DIR": "jupyter",
    "IPYTHONDIR": "ipython",
}  # kernels write them into the home


class Run:
    """One run of the tests: its folder, its processes, the watchdog over both.

    Until ``close``, this process and its children make their temporary files in ``folder``.
    """

    def __init__(self) -> None:
        clear_killed_runs()
        self.folder = Path(tempfile.gettempdir(), f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}")
        self._watchdog = subprocess.Popen(
            [sys.executable, __file__, str(self.folder)], stdin=subprocess.PIPE, start_new_session=True
        )
        self.folder.mkdir(mode=0o700)  # the watchdog already runs, so it removes this in any case
        own = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(self.folder))
        own |= {name: str(self.folder / inside) for name, inside in INSIDE.items()}
        self._before = {name: os.environ.get(name) for name in own}
        os.environ.update(own)
        tempfile.tempdir = None  # Python looks it up again

    def left_running(self) -> list[str]:
        """Return the command lines of this run's processes that do not end by themselves."""
        wait_for(lambda: not self._processes(), GRACE, pause=0.5)
        return [_described(process) for process in self._processes()]

    def _processes(self) -> list[psutil.Process]:
        """This run's processes, but for those that end with this one: the watchdog and Python's tracker."""
        return [
            process
            for process in belonging_to(self.folder)
            if process.pid != self._watchdog.pid and TRACKER not in _described(process)
        ]

    def close(self) -> None:
        """Kill what is left of the run and remove its folder."""
        for name, value in self._before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        tempfile.tempdir = None
        self._watchdog.communicate()  # closes its input, which is what it waits for


@contextlib.contextmanager
def child(command: Sequence[str], **options) -> Iterator[subprocess.Popen]:
    """Start a command, with Popen's options; at the end of the block kill it and all that it started."""
    if os.name != "nt":
        options |= {"start_new_session": True, "preexec_fn": _heed_signals}
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            _end(process)


def run(command: Sequence[str], timeout: float = 5 * WAIT, **options) -> subprocess.CompletedProcess:
    """Run a command to its end and return what it wrote, as text."""
    with child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options) as process:
        stdout, stderr = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def wait_for(condition, seconds: float = WAIT, pause: float = 0.02):
    """Call ``condition`` until its answer is true or the time is over, and return the last answer."""
    end = time.monotonic() + seconds
    while not (answer := condition()) and time.monotonic() < end:
        time.sleep(pause)
    return answer


def belonging_to(folder: Path) -> list[psutil.Process]:
    """Return the running processes that name the folder; not this one and not those above it."""
    above = {os.getpid(), *(process.pid for process in psutil.Process().parents())}
    return [
        process
        for process in psutil.process_iter()
        if process.pid not in above
        and any(str(folder) in text for text in _texts(process))
        and is_alive(process)
    ]


def kill(processes: Sequence[psutil.Process]) -> None:
    """Kill processes and wait until they are gone."""
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
    wait_for(lambda: not any(map(is_alive, processes)))


def is_alive(process: psutil.Process) -> bool:
    """Whether a process runs. A zombie does not: it has ended, but its parent has not asked how."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def clear_killed_runs() -> None:
    """Clear what is left of runs that were killed together with their watchdogs."""
    for folder in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        owner = folder.name.removeprefix(PREFIX).split("-")[0]
        if owner.isdecimal() and not psutil.pid_exists(int(owner)):
            _clear(folder)


def _clear(folder: Path) -> None:
    for _ in range(20):  # a process may start another before it is killed
        if not (processes := belonging_to(folder)):
            break
        kill(processes)
    shutil.rmtree(folder, ignore_errors=True)


def _texts(process: psutil.Process) -> Iterator[str]:
    """Yield a process's command line, environment and working directory, if this user may read them."""
    with contextlib.suppress(psutil.Error, OSError):
        yield from process.cmdline()
        yield from process.environ().values()
        yield process.cwd()


def _described(process: psutil.Process) -> str:
    try:
        return f"{process.pid}: {' '.join(process.cmdline())[:200]}"
    except psutil.Error:
        return f"{process.pid}"


def _end(process: subprocess.Popen) -> None:
    """Kill a child, what descends from it, and what is left of its session."""
    family = []
    if process.poll() is None:
        with contextlib.suppress(psutil.Error):
            family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
    while family := family + _session(process.pid):
        kill(family)
        family = []


def _session(leader: int) -> list[psutil.Process]:
    if os.name == "nt":
        return []
    return [process for process in psutil.process_iter() if _has_session(process, leader)]


def _has_session(process: psutil.Process, leader: int) -> bool:
    with contextlib.suppress(OSError):
        return os.getsid(process.pid) == leader and is_alive(process)
    return False


def _heed_signals() -> None:
    """Heed these signals: a run in the background or under nohup ignores them, and a child inherits that."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


if __name__ == "__main__":
    sys.stdin.read()
    _clear(Path(sys.argv[1]))
