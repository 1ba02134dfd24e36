"""A private JupyterLab for the browser tests, and what a person does in it."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from gemm_course.commands.lab import environment
from lockstep_tests.processes import WAIT, child, wait_for

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "test-token"
PART = 12_000  # pixels of a notebook in one screenshot
WAIT_MS = WAIT * 1000
_NO_KERNELS = (
    "--KernelSpecManager.ensure_native_kernel=False",
    "--KernelSpecManager.allowed_kernelspecs=none",
)
# JupyterLab without a second of grammars, as `gemm-course lab` starts it.
_START = "import sys; sys.modules['rfc3987_syntax'] = None; from jupyterlab.labapp import main; main()"
# Without this, Chromium lays the whole notebook out anew at every key.
_OUT_OF_SIGHT = ".jp-Notebook .jp-Cell { content-visibility: auto; contain-intrinsic-size: auto 300px; }"
# What the page is told to do, and how it tells that it is done.
_IN_PAGE = """
window.course = {
    get cells() { return this.panel.content.widgets; },
    unanswered: new Set(),  // messages of this page, by cells and sliders, that the kernel has not done with
    async open(path, kernel) {
        await jupyterapp.restored;
        if (!jupyterapp.shell.leftCollapsed) jupyterapp.shell.collapseLeft();
        this.panel = await jupyterapp.commands.execute('docmanager:open', {path, factory: 'Notebook'});
        await this.panel.context.ready;
        await this.panel.revealed;
        if (kernel) await this.connect();
    },
    async connect() {
        await this.panel.sessionContext.ready;
        const kernel = this.panel.sessionContext.session.kernel;
        this.unanswered.clear();
        kernel.anyMessage.connect((_, {msg, direction}) => {
            if (direction === 'send' && ['execute_request', 'comm_msg'].includes(msg.header.msg_type))
                this.unanswered.add(msg.header.msg_id);
        });
        kernel.iopubMessage.connect((_, msg) => {  // sent on when those concerned have it
            if (msg.header.msg_type === 'status' && msg.content.execution_state === 'idle')
                this.unanswered.delete(msg.parent_header.msg_id);
        });
    },
    async close() {
        await this.panel.sessionContext.shutdown();
        this.panel.dispose();
    },
    async settled() {
        for (let quiet = 0; quiet < 3; quiet = this.unanswered.size ? 0 : quiet + 1)
            await new Promise(later => setTimeout(later, 10));
    },
    async drawn() {
        await new Promise(frame => requestAnimationFrame(() => requestAnimationFrame(frame)));
        await Promise.all([...document.querySelectorAll('img.gemm-picture')]
            .map(image => image.decode().catch(() => null)));
    },
};
"""


@contextlib.contextmanager
def jupyterlab(root: Path, *, kernels: bool = True, windowing: str | None = "none", course: bool = True):
    """Serve ``root`` and yield the base URL; a server of its own knows and trusts nothing from before.

    Without ``kernels`` it can only show notebooks. windowing: how cells out of sight are drawn. By default
    they are drawn as well, so that a test can look at any; None leaves it to JupyterLab. Without ``course``
    it is a JupyterLab that knows nothing of the course's extension.
    """
    with tempfile.TemporaryDirectory(prefix="lab-", ignore_cleanup_errors=True) as folder:
        home, port = Path(folder), _free_port()
        (home / "settings").mkdir()
        (home / "settings" / "overrides.json").write_text(json.dumps(_overrides(windowing)))
        log = home / "server.log"
        options = {"env": _environment(home, course), "stderr": subprocess.STDOUT}
        with (
            log.open("w") as file,
            child(_command(root, home, port, kernels), stdout=file, **options) as server,
        ):
            base = f"http://127.0.0.1:{port}"
            if not wait_for(lambda: _answers(base) or server.poll() is not None) or server.poll() is not None:
                raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}")
            yield base


def _overrides(windowing: str | None) -> dict[str, dict]:
    tracker = {"windowingMode": windowing} if windowing else {}
    return {
        "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
        "@jupyterlab/notebook-extension:tracker": tracker,
    }


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _command(root: Path, home: Path, port: int, kernels: bool) -> list[str]:
    return [
        *(sys.executable, "-c", _START, "--no-browser", "--allow-root"),
        *("--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
        *(f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={root}"),
        *(f"--LabApp.app_settings_dir={home / 'settings'}", f"--LabApp.workspaces_dir={home / 'workspaces'}"),
        *("--LabApp.expose_app_in_browser=True", *(() if kernels else _NO_KERNELS)),
    ]


def _environment(home: Path, course: bool) -> dict[str, str]:
    folders = {"CONFIG": "config", "RUNTIME": "runtime", "DATA": "data"}
    own = {f"JUPYTER_{name}_DIR": str(home / folder) for name, folder in folders.items()}
    return (
        os.environ
        | own
        | {
            **(environment() if course else {}),
            "IPYTHONDIR": str(home / "ipython"),
            "PYTHONPATH": str(ROOT),
            "CUDA_VISIBLE_DEVICES": "",
            "GEMM_COURSE_PROGRESS": str(home / "progress"),
        }
    )


def _answers(base: str) -> bool:
    with contextlib.suppress(OSError):
        urllib.request.urlopen(f"{base}/api/status?token={TOKEN}", timeout=WAIT).close()
        return True
    return False


def copy_of_notebooks(target: Path) -> Path:
    """Copy the built notebooks to ``target``, as a learner has them, and return it."""
    shutil.copytree(ROOT / "notebooks", target, ignore=shutil.ignore_patterns("source", ".ipynb_checkpoints"))
    return target


class Lab:
    """A JupyterLab in one page, which opens a notebook, closes it, opens the next."""

    def __init__(self, browser, base: str, *, kernels: bool = True):
        self.browser, self.base, self.kernels = browser, base, kernels
        self.page, self.problems = None, []

    @contextlib.contextmanager
    def open(self, name: str):
        """Open a notebook, with a fresh kernel, for a block; one that fails costs the next its warm page."""
        if self.page is None:
            self.load()
        self.problems.clear()
        try:
            self.page.evaluate("([name, kernel]) => course.open(name, kernel)", [name, self.kernels])
            if not self.kernels:
                self.page.get_by_role("dialog").press("Escape")  # the question which kernel it should be
            yield Notebook(self.page, self.problems)
            self.page.evaluate("() => course.close()")
        except BaseException:
            self.page.close()
            self.page = None
            raise

    def load(self) -> None:
        """Open the page."""
        self.page = self.browser.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.goto(f"{self.base}/lab?token={TOKEN}&reset")
        self.page.wait_for_function("() => window.jupyterapp !== undefined", polling=100)
        self.page.evaluate(_IN_PAGE)
        self.page.add_style_tag(content=_OUT_OF_SIGHT)


class Notebook:
    """One notebook in a page, with the few things that tests do to it."""

    def __init__(self, page, problems: list[str]):
        self.page, self._problems = page, problems

    def command(self, name: str, arguments: dict | None = None):
        """Execute one of JupyterLab's commands and wait for it."""
        return self.page.evaluate(
            "([name, args]) => window.jupyterapp.commands.execute(name, args).then(() => null)",
            [name, arguments or {}],
        )

    def run_all(self) -> None:
        """Run all cells and wait until all that they show is there."""
        self.command("notebook:run-all-cells")
        self.page.wait_for_function(
            """() => [...document.querySelectorAll(
                 '.jp-OutputArea-output[data-mime-type^="application/vnd.gemm-course."]')]
                 .every(shown => shown.querySelector('.gemm-explorer') !== null)"""
        )
        self.settle()

    def settle(self) -> None:
        """Wait until the kernel has done all that cells and sliders asked of it, and the page shows it."""
        self.page.evaluate("() => course.settled()")

    def draw(self) -> None:
        """Wait until all pictures are drawn, and nothing moves any more."""
        self.page.evaluate("() => course.drawn()")

    def errors(self) -> list[str]:
        """Return every traceback and every line on standard error that the notebook shows."""
        kinds = ("stderr", "error")
        shown = [f'[data-mime-type="application/vnd.jupyter.{kind}"]' for kind in kinds]
        return self.page.locator(", ".join(shown)).all_inner_texts() + self._problems

    def explorers(self) -> list["Explorer"]:
        """Return all explorers; those that answer a prediction are unfolded."""
        self.page.evaluate(
            """() => document.querySelectorAll('details:has(.gemm-explorer)')
                             .forEach(details => { details.open = true; })"""
        )
        found = self.page.locator(".gemm-explorer")
        return [Explorer(self, found.nth(place)) for place in range(found.count())]

    def wait_for_explorers(self, number: int) -> list["Explorer"]:
        """Wait until there are so many, and return them."""
        self.page.wait_for_function(
            "number => document.querySelectorAll('.gemm-explorer').length === number", arg=number
        )
        return self.explorers()

    def restart(self) -> None:
        """Restart the kernel, and wait until the new one is ready."""
        # A reply proves that it is ready. Its status may have been sent before the page listened again.
        self.page.evaluate(
            """async () => { const {kernel} = course.panel.sessionContext.session;
                             await kernel.restart();
                             await kernel.requestKernelInfo(); }"""
        )
        self.page.evaluate("() => course.connect()")

    def replace_cell(self, identity: str, source: str) -> str:
        """Type ``source`` into the cell with this id in place of what is there, run it, and return its
        output's text.
        """
        index = self.page.evaluate(
            """id => {
                 const all = course.panel.content;
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
                 const cell = course.cells[index];
                 return cell.model.executionCount !== null && cell.model.executionCount > before
                        && cell.outputArea.model.length > 0; }""",
            arg=[index, before],
        )
        self.settle()
        return cell.locator(".jp-OutputArea").inner_text()

    def _executions(self) -> int:
        return self.page.evaluate(
            "() => Math.max(0, ...course.cells.map(cell => cell.model.executionCount ?? 0))"
        )

    def wait_for_pictures(self, number: int) -> None:
        """Wait until the page has so many pictures, and they are drawn."""
        self.page.wait_for_function(
            "number => document.querySelectorAll('.jp-Notebook img.gemm-picture').length >= number",
            arg=number,
        )
        self.draw()

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


class Explorer:
    """One explorer in the page: its controls, its picture, what it says."""

    def __init__(self, notebook: Notebook, locator):
        self.notebook, self.page, self.root = notebook, notebook.page, locator

    def ranges(self) -> list["Range"]:
        """Its sliders."""
        return [Range(self, found) for found in self.root.locator("input[type=range]").all()]

    def groups(self) -> list:
        """Its groups of buttons of which one is chosen."""
        return self.root.locator("fieldset").all()

    def control(self, label: str) -> "Range":
        """The slider of that name."""
        return Range(self, self.root.get_by_role("slider", name=label, exact=True))

    def choose(self, label: str, text: str) -> None:
        """Choose one of several buttons."""
        self.root.get_by_role("group", name=label, exact=True).get_by_label(text, exact=True).check()
        self.settle()

    def press(self, button: str) -> None:
        """Press a button."""
        self.root.get_by_role("button", name=button).click()
        self.settle()

    def seen(self) -> dict[str, str]:
        """Source and alt text of the picture."""
        return self.root.locator("img.gemm-picture").evaluate(
            "image => ({source: image.src, alt: image.alt})"
        )

    def said(self) -> str:
        """What it says below its controls."""
        return self.root.locator(".gemm-words").inner_text()

    def settle(self) -> None:
        """Wait until the picture is that of the controls, or words say why there is none."""
        self.page.wait_for_timeout(30)  # its frames are unpacked
        self.page.wait_for_function(
            "words => !/^(Asking Python|Python is busy|.* …$)/.test(words.textContent)",
            arg=self.root.locator(".gemm-words").element_handle(),
        )
        self.root.locator("img.gemm-picture").evaluate("image => image.decode().catch(() => null)")

    def height(self) -> float:
        """How high it is, in pixels."""
        return self.root.bounding_box()["height"]


class Range:
    """One slider of an explorer."""

    def __init__(self, explorer: Explorer, locator):
        self.explorer, self.page, self.locator = explorer, explorer.page, locator

    @property
    def name(self) -> str:
        return self.locator.get_attribute("aria-label") or ""

    @property
    def text(self) -> str:
        """What a screen reader says of its position."""
        return self.locator.get_attribute("aria-valuetext") or ""

    def position(self, end: str = "value") -> float:
        """Return where the handle is, or where its track begins ("min") or ends ("max")."""
        return float(self.locator.evaluate("(input, end) => input[end]", end))

    def press(self, *keys: str) -> None:
        """Press keys on the handle, one after the other, and wait until the picture has followed."""
        for key in keys:
            self.touch(key)
        self.explorer.settle()

    def touch(self, key: str) -> None:
        """Press a key on the handle, and do not wait."""
        self.locator.press(key)

    def put(self, place: float) -> None:
        """Put the handle somewhere at once, and wait until the picture has followed."""
        self.locator.evaluate(
            """(input, place) => {
                 input.value = place;
                 input.dispatchEvent(new Event('input', {bubbles: true})); }""",
            place,
        )
        self.explorer.settle()

    def click_at(self, part: float) -> None:
        """Click on ``part`` (0 to 1) of the track, and wait until the picture has followed."""
        self.locator.scroll_into_view_if_needed()
        box = self.locator.bounding_box()
        self.page.mouse.click(box["x"] + part * box["width"], box["y"] + box["height"] / 2)
        self.explorer.settle()
