"""`gemm-course lab`, served for real."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from gemm_course.commands import lab
from gemm_course.commands.places import ROOT

READY_WITHIN = 5  # seconds, on a second start
OURS = 2  # times what JupyterLab alone takes, where this machine is too slow for that
COURSE, ALONE = "gemm_course.cli lab".split(), ["jupyterlab", "--allow-root", "--port-retries=50"]


class Served:
    """A running `gemm-course lab` with a home of its own."""

    def __init__(self, home: Path, *arguments: str, what: list[str] = COURSE):
        unwanted = ("JUPYTER", "PYTHONDONTWRITEBYTECODE")  # as on a second start: compiled already
        environment = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
        environment |= {"HOME": str(home), "HTTPS_PROXY": "http://127.0.0.1:9"}  # no network either
        command = [sys.executable, "-m", *what, "--no-browser", *arguments]
        command.append(f"--LabApp.workspaces_dir={home}")
        begin = time.monotonic()
        self.process = subprocess.Popen(
            command, cwd=home, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.said: list[str] = []
        self.url = self._url()
        _wait_for(self.url)
        self.seconds = time.monotonic() - begin

    def _url(self) -> str:
        for line in self.process.stderr:
            self.said.append(line)
            if found := re.search(r"http://127\.0\.0\.1:\d+/\S+", line):
                threading.Thread(target=self._keep_reading, daemon=True).start()
                return found[0]
        raise AssertionError("JupyterLab did not start:\n" + "".join(self.said))

    def _keep_reading(self) -> None:
        self.said.extend(self.process.stderr)

    def stop_at_once(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=20)


def _wait_for(url: str, seconds: float = 20) -> None:
    """JupyterLab names its address before it listens; on a busy machine that shows."""
    end = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(url, timeout=seconds).close()
            return
        except urllib.error.URLError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = Served(tmp_path_factory.mktemp("home"))
    yield running
    running.stop_at_once()


def test_it_serves_the_course_and_names_notebook_00(served):
    path, token = served.url.split("?")
    assert re.search(r"/lab/tree/notebooks/00_\w+\.ipynb$", path)
    base = path.split("/lab/")[0]
    with urllib.request.urlopen(f"{base}/api/contents/course.py?{token}&content=0", timeout=20) as answer:
        assert answer.status == 200


@pytest.mark.timed
def test_a_second_start_is_ready_soon(served, tmp_path):
    seconds = [served.seconds]
    while min(seconds) > READY_WITHIN and len(seconds) < 4:  # the machine may be busy with something else
        again = Served(tmp_path)
        again.stop()
        seconds.append(again.seconds)
    if min(seconds) > READY_WITHIN:
        alone = Served(tmp_path, what=ALONE)
        alone.stop_at_once()
        assert min(seconds) < OURS * alone.seconds, (seconds, alone.seconds)


def test_it_says_little(served):
    assert not [line for line in served.said if line.startswith(("[I", "[E"))]


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C cannot be sent to one process alone on Windows")
def test_it_takes_another_port_when_its_own_is_taken_and_stops_on_ctrl_c(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        running = Served(tmp_path, f"--port={port}")
    assert f":{port}/" not in running.url
    assert running.stop() == 0, "Ctrl-C stops it without a question"
    assert "Traceback" not in "".join(running.said)


def test_only_root_is_let_in_as_root(monkeypatch):
    for user, expected in ((0, True), (1000, False)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user, raising=False)
        assert ("--allow-root" in lab.options()) == expected


@pytest.mark.browser
def test_the_browser_shows_notebook_00_and_asks_for_no_news(served, chromium):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(served.url)
        page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=60_000)
        page.wait_for_timeout(3_000)  # the news prompt comes a moment after the page
        assert page.locator(".Toastify__toast, .jp-toast").count() == 0
        assert page.locator(".lm-TabBar-tab.lm-mod-current", has_text="00_").count() == 1
        browser.close()


def test_a_learners_own_option_replaces_the_courses():
    assert f"--ServerApp.root_dir={ROOT}" in lab.options()
    assert not [option for option in lab.options(["--ServerApp.root_dir=/x"]) if "root_dir" in option]
