"""`gemm-course lab`, served for real."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from gemm_course.commands import lab
from gemm_course.places import COURSE as ROOT
from lockstep_tests import processes

pytestmark = pytest.mark.waits

COURSE, ALONE = "gemm_course.cli lab".split(), ["jupyterlab", "--allow-root", "--port-retries=50"]
AT_MOST = 2  # times what JupyterLab alone takes


class Served:
    """A running `gemm-course lab`."""

    def __init__(self, process: subprocess.Popen):
        self.process = process
        self.said: list[str] = []
        self.url = self._url()
        assert processes.wait_for(self._answers), "".join(self.said)

    def _url(self) -> str:
        for line in self.process.stderr:
            self.said.append(line)
            if found := re.search(r"http://127\.0\.0\.1:\d+/\S+", line):
                threading.Thread(target=self._keep_reading, daemon=True).start()
                return found[0]
        raise AssertionError("JupyterLab did not start:\n" + "".join(self.said))

    def _keep_reading(self) -> None:
        with contextlib.suppress(ValueError):  # closed while it is being read
            self.said.extend(self.process.stderr)

    def _answers(self) -> bool:
        """JupyterLab names its address before it listens; on a busy machine that shows."""
        with contextlib.suppress(OSError):
            urllib.request.urlopen(self.url, timeout=processes.WAIT).close()
            return True
        return False

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=processes.WAIT)


@contextlib.contextmanager
def serve(home: Path, *arguments: str, what: list[str] = COURSE) -> Iterator[Served]:
    """Serve the course from a home of its own, as on a second start, without a network."""
    unwanted = ("JUPYTER", "PYTHONDONTWRITEBYTECODE")  # compiled already
    environment = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
    environment |= {"HOME": str(home), "HTTPS_PROXY": "http://127.0.0.1:9"}
    command = [sys.executable, "-m", *what, "--no-browser", *arguments, f"--LabApp.workspaces_dir={home}"]
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL, "text": True}
    with processes.child(command, cwd=home, env=environment, **pipes) as process:
        yield Served(process)


@contextlib.contextmanager
def taken_port() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_it_serves_the_course_says_little_and_stops_on_ctrl_c(tmp_path):
    """On a port that something else has."""
    with taken_port() as port, serve(tmp_path, f"--port={port}") as running:
        path, token = running.url.split("?")
        assert re.search(r"/lab/tree/notebooks/00_\w+\.ipynb$", path)
        base = path.split("/lab/")[0]
        assert not base.endswith(f":{port}"), "it takes another"
        with urllib.request.urlopen(f"{base}/api/contents/course.py?{token}&content=0", timeout=20) as answer:
            assert answer.status == 200
        assert not [line for line in running.said if line.startswith(("[I", "[E"))]
        if os.name != "nt":  # where Ctrl-C cannot be sent to one process alone
            assert running.stop() == 0, "Ctrl-C stops it without a question"
            assert "Traceback" not in "".join(running.said)


@pytest.mark.full(reason="starts JupyterLab four times")
def test_a_second_start_takes_little_longer_than_jupyterlab_alone(tmp_path):
    """In seconds of the processor, in turn, the better of two: the same on a busy machine."""
    ours, alone = [], []
    for _ in range(2):
        ours.append(_seconds_to_start(tmp_path, COURSE))
        alone.append(_seconds_to_start(tmp_path, ALONE))
    assert min(ours) < AT_MOST * min(alone), (ours, alone)


def _seconds_to_start(home: Path, what: list[str]) -> float:
    with serve(home, what=what) as running:
        times = psutil.Process(running.process.pid).cpu_times()
        return times.user + times.system


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows closes a terminal in another way")
@pytest.mark.full(reason="starts JupyterLab three times")
@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM", "SIGKILL"])
def test_a_closed_terminal_or_an_end_from_outside_leaves_no_kernel(tmp_path, name):
    with serve(tmp_path) as running:
        base, token = running.url.split("/lab")[0], running.url.split("?")[1]
        post = urllib.request.Request(f"{base}/api/kernels?{token}", data=b"{}", method="POST")
        urllib.request.urlopen(post, timeout=processes.WAIT).close()
        family = psutil.Process(running.process.pid).children(recursive=True)
        assert any("ipykernel_launcher" in child.cmdline() for child in family)
        running.stop(getattr(signal, name))
        gone, alive = psutil.wait_procs(family, timeout=processes.WAIT)
        assert gone and not alive
        left = list((tmp_path / ".local/share/jupyter/runtime").glob("jpserver-*"))
        assert not left or name == "SIGKILL"


def test_only_root_is_let_in_as_root(monkeypatch):
    for user, expected in ((0, True), (1000, False)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user, raising=False)
        assert ("--allow-root" in lab.options()) == expected


@pytest.mark.browser
@pytest.mark.full(reason="JupyterLab in Chromium, for the news prompt alone")
def test_the_browser_shows_notebook_00_and_asks_for_no_news(tmp_path, chromium):
    from playwright.sync_api import sync_playwright

    with serve(tmp_path) as running, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(running.url)
        page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=60_000)
        page.wait_for_timeout(3_000)  # the news prompt comes a moment after the page
        assert page.locator(".Toastify__toast, .jp-toast").count() == 0
        assert page.locator(".lm-TabBar-tab.lm-mod-current", has_text="00_").count() == 1
        browser.close()


def test_a_learners_own_option_replaces_the_courses():
    assert f"--ServerApp.root_dir={ROOT}" in lab.options()
    assert not [option for option in lab.options(["--ServerApp.root_dir=/x"]) if "root_dir" in option]
