"""The steps that nbgrader takes when it grades the course's assignments, in place of its own.

`gemm-course release --nbgrader` names them in its ``nbgrader_config.py``. They need nbgrader, which is no
dependency of the course: install it beside the course where you grade.
"""

import copy
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.preprocessors import Execute, NbGraderPreprocessor
from traitlets import Bool, Unicode

import lockstep
from gemm_course.places import BROUGHT, COURSE, PACKAGE

from . import confine
from .files import NotGraded
from .outcomes import forget, forget_points, note
from .restoring import restored

# A kernel needs these besides Python.
_KEPT = (PACKAGE, Path(lockstep.__file__).parent, COURSE / "data", Path(sys.executable))
# The kernel imports the course before it runs a cell. A module beside the notebook can be imported, but it
# comes last, so that it takes no other module's place.
_BEGIN = "import sys, gemm_course.checks as _; sys.path.append('')"
_ARGUMENTS = ("--IPKernelApp.ignore_cwd=True", f"--IPKernelApp.exec_lines={_BEGIN}")
# A submission may take this long. A cell may print so many characters, and all cells may show so many bytes.
MOST_SECONDS, MOST_TEXT, MOST_SHOWN = 600, 100_000, 20_000_000
# Of what a cell displays, these are kept.
SHOWN = ("text/plain", "image/png", "image/jpeg")
WIDGET = "application/vnd.jupyter.widget-view+json"


class Restore(NbGraderPreprocessor):
    """Puts a submission back into the form of its assignment, before nbgrader looks at it."""

    folder = Unicode(".", help="the folder of the nbgrader course").tag(config=True)

    def preprocess(self, notebook: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        about = resources["nbgrader"]
        name, student = about["assignment"], about["student"]
        folder = Path(self.folder)
        forget(folder, name, student)
        try:
            made = folder / "release" / name / f"{about['notebook']}.ipynb"
            return restored(notebook, nbformat.read(made, 4)), resources
        except Exception as error:
            note(folder, name, student, _first_line(error))
            forget_points(folder, name, student)
            raise


class ConfinedExecute(Execute):
    """Runs a submission in a kernel that reaches nothing, where the system can confine it."""

    folder = Unicode(".", help="the folder of the nbgrader course").tag(config=True)
    allow_unconfined = Bool(False, help="run submissions where they cannot be confined").tag(config=True)

    def preprocess(self, notebook: NotebookNode, resources: dict, *args) -> tuple[NotebookNode, dict]:
        about = resources["nbgrader"]
        self._cell, self._begun, self._shown = "", time.monotonic(), 0
        self.store_widget_state = False  # JupyterLab would run what a widget's state brings.
        metadata = copy.deepcopy(notebook.metadata)
        try:
            with _folder_for_sockets() as self._sockets:
                notebook, resources = super().preprocess(notebook, resources, *args)
        except Exception as error:
            where = f"in the cell that begins `{self._cell}`" if self._cell else "at its start"
            reason = f"the kernel ended {where}: {type(error).__name__}, {_first_line(error)}"
            reason = str(error) if isinstance(error, NotGraded) else reason
            note(Path(self.folder), about["assignment"], about["student"], reason)
            forget_points(Path(self.folder), about["assignment"], about["student"])
            raise
        notebook.metadata = metadata
        for cell in notebook.cells:
            if cell.cell_type == "code":
                _settle(cell)
        return notebook, resources

    def preprocess_cell(self, cell: NotebookNode, resources: dict, index: int) -> tuple[NotebookNode, dict]:
        self._cell = next(iter(cell.source.strip().splitlines()), "")[:80]
        if time.monotonic() - self._begun > MOST_SECONDS:
            raise NotGraded(f"its cells ran for more than {MOST_SECONDS} seconds")
        return super().preprocess_cell(cell, resources, index)

    def process_message(self, message: dict, cell: NotebookNode, index: int) -> NotebookNode | None:
        if message["msg_type"] in ("stream", "display_data", "execute_result", "update_display_data"):
            self._shown += len(str(message["content"]))
            if self._shown > MOST_SHOWN:
                return None
        return super().process_message(message, cell, index)

    def create_kernel_manager(self):
        manager = super().create_kernel_manager()
        argv = [*manager.kernel_spec.argv, *_ARGUMENTS]
        if self._confines():
            # A kernel without a network talks through sockets in a folder, which is removed afterwards.
            manager.transport, manager.ip = "ipc", os.path.join(self._sockets, "s")
            manager.connection_file = os.path.join(self._sockets, "connection.json")
            argv = confine.command(argv, self._hidden(), _KEPT, [self._sockets], silent=True)
        manager.kernel_spec.argv = argv
        return manager

    def _confines(self) -> bool:
        if confine.possible():
            return True
        if not self.allow_unconfined:
            raise NotGraded(
                "this system lets no submission be confined: grade on another, or set allow_unconfined in "
                "nbgrader_config.py"
            )
        self.log.warning("What a submission runs can read and write what you can, the gradebook too.")
        return False

    def _hidden(self) -> list[Path]:
        return [Path(self.folder).resolve(), BROUGHT / "solutions"]


@contextmanager
def _folder_for_sockets() -> Iterator[str]:
    """Make a folder for a kernel's sockets, and remove it afterwards, however deep its folders are."""
    folder = tempfile.mkdtemp(prefix="kernel-")
    try:
        yield folder
    finally:
        subprocess.run(["rm", "-rf", folder], check=False)  # Python's own gives up where folders are deep.


def _settle(cell: NotebookNode) -> None:
    """Make nbgrader give a check its points if it ran without an error, and only then.

    nbgrader takes anything on stderr for an error, such as a warning. It takes a cell that did not run for a
    right one. Outputs that a browser would execute are dropped.
    """
    cell.outputs = [output for output in cell.outputs if WIDGET not in output.get("data", {})]
    for output in cell.outputs:
        if output.output_type == "stream":
            output.name, output.text = "stdout", output.text[:MOST_TEXT]
        elif "data" in output:
            # Scripts would run in the teacher's browser. A verdict is a text as well.
            output.data = NotebookNode({kind: each for kind, each in output.data.items() if kind in SHOWN})
            # Metadata names sizes and files, which feedback takes as they are.
            output.metadata = NotebookNode()
    if cell.metadata.get("nbgrader", {}).get("grade") and cell.execution_count is None:
        cell.outputs.append(
            nbformat.v4.new_output("error", ename="NotRun", evalue="this check did not run", traceback=[])
        )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "no message")
