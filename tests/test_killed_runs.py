"""A run of tests that is stopped, at any moment and in any way, leaves no process, no port and no folder."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from lockstep_tests import processes
from tests.inner import ROOT, Suite

pytestmark = [
    pytest.mark.waits,
    pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals"),
]

# A test with a child that has a session of its own, as JupyterLab's kernels have, and listens on a port.
SERVING = """
import subprocess, sys
from lockstep_tests import processes

processes.GRACE = 1
SERVER = "import socket, sys, time; s = socket.create_server(('127.0.0.1', 0)); "
SERVER += "open(sys.argv[1], 'w').write(str(s.getsockname()[1])); time.sleep(1000)"

def test_serving(tmp_path):
    command = [sys.executable, "-c", SERVER, str(tmp_path / "port")]
    server = subprocess.Popen(command, start_new_session=True)
    assert processes.wait_for((tmp_path / "port").exists)
"""
WAITING = SERVING + "    server.wait()\n"
MOMENTS = ["while it starts", "while it makes its folder", "in the middle of a test"]


def has_come(moment: str, folder: Path) -> bool:
    if moment == "while it starts":
        return True
    runs = list(folder.glob(processes.PREFIX + "*"))
    return bool(runs) if moment == "while it makes its folder" else bool(ports(folder))


def ports(folder: Path) -> list[int]:
    """The ports that tests have written down."""
    found = [path.read_text() for path in folder.glob("**/port")]
    return [int(port) for port in found if port]


def is_open(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


def stop(running: subprocess.Popen, number: int) -> None:
    """Send a signal; a terminal sends that of Ctrl-C to all that it has started."""
    os.killpg(running.pid, number) if number == signal.SIGINT else running.send_signal(number)


def assert_nothing_is_left(folder: Path, ports: list[int]) -> None:
    assert processes.wait_for(lambda: not processes.belonging_to(folder))
    assert not list(folder.glob(processes.PREFIX + "*"))
    assert not any(is_open(port) for port in ports)


@pytest.mark.many(one_in=9)
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_stopped_leaves_nothing(number, moment, tmp_path):
    with Suite(tmp_path, WAITING).begin("-n", "2") as running:
        assert processes.wait_for(lambda: has_come(moment, tmp_path))
        opened = ports(tmp_path)
        stop(running, number)
        running.communicate(timeout=processes.WAIT)
        assert_nothing_is_left(tmp_path, opened)


def test_a_run_that_is_killed_with_its_watchdog_is_cleared_by_the_next(tmp_path):
    suite = Suite(tmp_path, WAITING)
    with suite.begin() as running:
        assert processes.wait_for(lambda: ports(tmp_path))
        opened = ports(tmp_path)
        (watchdog,) = (one for one in processes.belonging_to(tmp_path) if processes.__file__ in one.cmdline())
        processes.kill([watchdog])
        running.kill()
        assert list(tmp_path.glob(processes.PREFIX + "*")) and all(map(is_open, opened))
        running.wait()
        suite.write("def test_nothing(): pass")
        assert suite.run() == {"passed": 1}
        assert_nothing_is_left(tmp_path, opened)


def test_a_run_in_which_all_passed_fails_if_a_test_left_a_process(tmp_path):
    suite = Suite(tmp_path, SERVING)
    with suite.begin() as running:
        said, _ = running.communicate(timeout=processes.WAIT)
        assert running.returncode == pytest.ExitCode.TESTS_FAILED
        assert re.search(r"left this process running: \d+: .*create_server", said)
        assert_nothing_is_left(tmp_path, ports(tmp_path))


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder beside the run's own: Chromium's sockets lie in it, and their paths may have 107 letters."""
    beside = Path(tempfile.gettempdir())
    while beside.name.startswith(processes.PREFIX):
        beside = beside.parent
    with tempfile.TemporaryDirectory(prefix="k-", dir=beside, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.mark.browser
@pytest.mark.full(reason="JupyterLab in Chromium")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_stopped_in_the_browser_leaves_nothing(number, short_folder):
    test = "tests/browser/test_progress_in_the_browser.py"
    environment = os.environ | {"TMPDIR": str(short_folder)}
    command = [sys.executable, "-m", "pytest", "--all", test]
    with processes.child(command, cwd=ROOT, env=environment) as running:
        assert processes.wait_for(lambda: {"chromium", "ipykernel_launcher"} <= programs(short_folder))
        running.send_signal(number)
        running.wait(processes.WAIT)
        assert_nothing_is_left(short_folder, [])


def programs(folder: Path) -> set[str]:
    """Which of the programs that browser tests start are running."""
    lines = " ".join(_command_line(process) for process in processes.belonging_to(folder))
    return {name for name in ("chromium", "ipykernel_launcher") if name in lines}


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has just ended
        return ""
