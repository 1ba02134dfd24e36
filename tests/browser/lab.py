"""A private JupyterLab for the browser tests, and what a person does in it."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import TimeoutError

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "test-token"
PART = 12_000  # pixels of a notebook in one screenshot
_OVERRIDES = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    # All cells are drawn, also those out of sight, so that a test can look at any of them.
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
}
_NO_KERNELS = (
    "--KernelSpecManager.ensure_native_kernel=False",
    "--KernelSpecManager.allowed_kernelspecs=none",
)


@contextlib.contextmanager
def jupyterlab(root: Path, *, kernels: bool = True):
    """Serve ``root`` and yield the base URL; a server of its own knows and trusts nothing from before.

    Without ``kernels`` it can only show notebooks.
    """
    with (
        tempfile.TemporaryDirectory(prefix="lab-", ignore_cleanup_errors=True) as folder,
        _free_port() as port,
    ):
        home = Path(folder)
        (home / "settings").mkdir()
        (home / "settings" / "overrides.json").write_text(json.dumps(_OVERRIDES))
        log = home / "server.log"
        with log.open("w") as file:
            command, environment = _command(root, home, port, kernels), _environment(home)
            server = subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT)
        try:
            base = f"http://127.0.0.1:{port}"
            _wait_for(base, server, log)
            yield base
        finally:
            server.terminate()
            server.wait(20)


@contextlib.contextmanager
def _free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    yield port


def _command(root: Path, home: Path, port: int, kernels: bool) -> list[str]:
    return [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
        *("--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
        *(f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={root}"),
        *(f"--LabApp.app_settings_dir={home / 'settings'}", f"--LabApp.workspaces_dir={home / 'workspaces'}"),
        *("--LabApp.expose_app_in_browser=True", *(() if kernels else _NO_KERNELS)),
    ]


def _environment(home: Path) -> dict[str, str]:
    folders = {"CONFIG": "config", "RUNTIME": "runtime", "DATA": "data"}
    own = {f"JUPYTER_{name}_DIR": str(home / folder) for name, folder in folders.items()}
    return (
        os.environ
        | own
        | {
            "IPYTHONDIR": str(home / "ipython"),
            "PYTHONPATH": str(ROOT),
            "CUDA_VISIBLE_DEVICES": "",
            "GEMM_COURSE_PROGRESS": str(home / "progress"),
        }
    )


def _wait_for(base: str, server: subprocess.Popen, log: Path) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{base}/api/status?token={TOKEN}", timeout=1)
            return
        if server.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}")


def copy_of_notebooks(target: Path) -> Path:
    """Copy the built notebooks to ``target``, as a learner has them, and return it."""
    shutil.copytree(ROOT / "notebooks", target, ignore=shutil.ignore_patterns("source", ".ipynb_checkpoints"))
    return target


class Notebook:
    """One notebook in a page, with the few things that tests do to it."""

    def __init__(self, page, base: str, name: str, *, kernel: bool = True):
        self.page = page
        self.problems: list[str] = []
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.goto(f"{base}/lab/tree/{name}?token={TOKEN}&reset")
        page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=60_000)
        page.wait_for_function("() => window.jupyterapp !== undefined")
        self.command("application:toggle-left-area")
        if kernel:
            page.wait_for_function(
                "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status ==="
                " 'idle'",
                timeout=60_000,
            )
        else:
            page.keyboard.press("Escape")  # the question which kernel it should be

    def command(self, name: str, arguments: dict | None = None):
        """Execute one of JupyterLab's commands and wait for it."""
        return self.page.evaluate(
            "([name, args]) => window.jupyterapp.commands.execute(name, args).then(() => null)",
            [name, arguments or {}],
        )

    def run_all(self) -> None:
        self.command("notebook:run-all-cells")

    def errors(self) -> list[str]:
        """Return every traceback and every line on standard error that the notebook shows."""
        kinds = ("stderr", "error")
        shown = [f'[data-mime-type="application/vnd.jupyter.{kind}"]' for kind in kinds]
        return self.page.locator(", ".join(shown)).all_inner_texts() + self.problems

    def replace_cell(self, identity: str, source: str) -> str:
        """Type ``source`` into the cell with this id in place of what is there, run it, and return its
        output's text.
        """
        index = self.page.evaluate(
            """id => {
                 const all = window.jupyterapp.shell.currentWidget.content;
                 const index = all.widgets.findIndex(cell => cell.model.id === id);
                 all.activeCellIndex = index;
                 all.mode = 'edit';
                 all.widgets[index].node.scrollIntoView();
                 return index; }""",
            identity,
        )
        assert index >= 0, f"no cell is called {identity}"
        cell = self.page.locator(".jp-Notebook .jp-Cell").nth(index)
        cell.locator(".cm-content").first.click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(source)
        before = self._executions()
        self.page.keyboard.press("Control+Enter")
        self.page.wait_for_function(
            """([index, before]) => {
                 const cell = window.jupyterapp.shell.currentWidget.content.widgets[index];
                 return cell.model.executionCount !== null && cell.model.executionCount > before
                        && cell.outputArea.model.length > 0; }""",
            arg=[index, before],
            timeout=30_000,
        )
        return cell.locator(".jp-OutputArea").inner_text()

    def _executions(self) -> int:
        return self.page.evaluate(
            """() => Math.max(0, ...window.jupyterapp.shell.currentWidget.content.widgets
                       .map(cell => cell.model.executionCount ?? 0))"""
        )

    def pictures(self) -> list[dict]:
        """Return, for every picture, its alt text, whether it is drawn, and whether it is SVG."""
        return self.page.evaluate(
            """() => [...document.querySelectorAll('.jp-Notebook img.gemm-picture')].map(image => ({
                 alt: image.alt, drawn: image.complete && image.naturalWidth > 0,
                 svg: image.src.startsWith('data:image/svg')}))"""
        )

    def screenshot(self, path: Path, width: int) -> None:
        """Take pictures of the whole notebook, ``width`` pixels wide: ``path`` with -1, -2, ... to its name.

        Several, because Chromium draws nothing below its 16,384th line.
        """
        self.page.set_viewport_size({"width": width, "height": 1000})
        self.page.wait_for_timeout(400)
        height = self.page.evaluate("() => document.querySelector('.jp-WindowedPanel-outer').scrollHeight")
        parts = -(-height // PART)
        self.page.set_viewport_size({"width": width, "height": min(height, PART) + 200})
        path.parent.mkdir(exist_ok=True)
        for part in range(parts):
            self.page.evaluate(
                "top => document.querySelector('.jp-WindowedPanel-outer').scrollTo(0, top)", part * PART
            )
            self.page.wait_for_timeout(600)
            self.page.screenshot(path=path.with_stem(f"{path.stem}-{part + 1}"))
        self.page.set_viewport_size({"width": 1280, "height": 1000})


class Slider:
    """One slider, the pictures it moves, and how long that took."""

    def __init__(self, page, locator):
        self.page, self.locator = page, locator
        self.handle = locator.get_by_role("slider")
        self.output = locator.locator("xpath=ancestor::*[contains(@class,'jp-Cell-outputArea')][1]")

    @property
    def name(self) -> str:
        return self.handle.get_attribute("aria-label") or ""

    def position(self, end: str = "now") -> float:
        """Return where the handle is, or where its track begins ("min") or ends ("max")."""
        return float(self.handle.get_attribute(f"aria-value{end}"))

    def seen(self) -> list[dict]:
        """Return source and alt text of the pictures."""
        return self.output.evaluate(
            """area => [...area.querySelectorAll('img.gemm-picture')]
                        .map(image => ({source: image.src, alt: image.alt}))"""
        )

    def press(self, key: str) -> dict[str, float]:
        """Press a key on the handle; return by format ("svg", "png") the milliseconds until a picture of that
        format had changed; it is missing where it stayed.
        """
        self.handle.focus()
        self.output.evaluate(
            """area => {
                 const sources = () => [...area.querySelectorAll('img.gemm-picture')].map(image => image.src);
                 const before = sources();
                 window.moved = {}; window.changed = new Set(); window.pressed = null;
                 document.addEventListener('keydown', () => { window.pressed = performance.now(); },
                                           {capture: true, once: true});
                 window.watch?.disconnect();
                 window.watch = new MutationObserver(() => sources().forEach((source, place) => {
                   if (source === before[place]) return;
                   window.changed.add(place);
                   const format = source.startsWith('data:image/svg') ? 'svg' : 'png';
                   window.moved[format] ??= performance.now() - window.pressed;
                 }));
                 window.watch.observe(area, {subtree: true, childList: true, attributes: true}); }"""
        )
        count = len(self.seen())
        self.handle.press(key)
        with contextlib.suppress(TimeoutError):
            self.page.wait_for_function("count => window.changed.size >= count", arg=count, timeout=1_500)
        return self.page.evaluate("() => window.moved")

    def drag(self, to: float) -> bool:
        """Drag the handle to ``to`` (0 to 1) of the track; return whether a picture changed."""
        before = self.seen()
        self.locator.scroll_into_view_if_needed()
        start, track = self.handle.bounding_box(), self.locator.locator(".noUi-target").bounding_box()
        y = track["y"] + track["height"] / 2
        self.page.mouse.move(start["x"] + start["width"] / 2, y)
        self.page.mouse.down()
        self.page.mouse.move(track["x"] + to * track["width"], y, steps=5)
        self.page.mouse.up()
        for _ in range(60):
            if self.seen() != before:
                return True
            self.page.wait_for_timeout(50)
        return False
