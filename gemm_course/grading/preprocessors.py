"""The steps that nbgrader takes when it grades the course's assignments, in place of its own.

`gemm-course release --nbgrader` names them in its ``nbgrader_config.py``. They need nbgrader, which is no
dependency of the course: install it beside the course where you grade.
"""

import os
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.preprocessors import Execute, NbGraderPreprocessor
from traitlets import Unicode

import lockstep
from gemm_course.places import BROUGHT, COURSE, PACKAGE

from . import confine
from .outcomes import forget, note
from .restoring import restored

# A kernel needs these besides Python. Jupyter puts the name of the file with its connection into the braces.
_KEPT = (PACKAGE, Path(lockstep.__file__).parent, COURSE / "data", Path(sys.executable), "{connection_file}")
# The kernel imports the course before it runs a cell. A module beside the notebook can be imported, but it
# comes last, so that it takes no other module's place.
_BEGIN = "import sys, gemm_course.checks as _; sys.path.append('')"
_ARGUMENTS = ("--IPKernelApp.ignore_cwd=True", f"--IPKernelApp.exec_lines={_BEGIN}")


class NotGraded(Exception):
    """An error for a submission that cannot be graded, with the reason for the teacher's summary."""


class Restore(NbGraderPreprocessor):
    """Puts a submission back into the form of its assignment, before nbgrader looks at it."""

    folder = Unicode(".", help="the folder of the nbgrader course").tag(config=True)

    def preprocess(self, notebook: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        about = resources["nbgrader"]
        name, student = about["assignment"], about["student"]
        folder = Path(self.folder)
        forget(folder, name, student)
        try:
            _check_files(folder / "submitted" / student / name)
            made = folder / "release" / name / f"{about['notebook']}.ipynb"
            return restored(notebook, nbformat.read(made, 4)), resources
        except Exception as error:
            note(folder, name, student, _first_line(error))
            raise


class ConfinedExecute(Execute):
    """Runs a submission in a kernel that reaches nothing, where the system can confine it."""

    folder = Unicode(".", help="the folder of the nbgrader course").tag(config=True)
    _can_confine: bool | None = None

    def preprocess(self, notebook: NotebookNode, resources: dict, *args) -> tuple[NotebookNode, dict]:
        about = resources["nbgrader"]
        self._cell = 0
        try:
            notebook, resources = super().preprocess(notebook, resources, *args)
        except Exception as error:
            where = f"cell {self._cell} of the graded copy" if self._cell else "its start"
            reason = f"the kernel ended in {where}: {type(error).__name__}, {_first_line(error)}"
            note(Path(self.folder), about["assignment"], about["student"], reason)
            raise
        for cell in notebook.cells:
            if cell.cell_type == "code":
                _settle(cell)
        return notebook, resources

    def preprocess_cell(self, cell: NotebookNode, resources: dict, index: int) -> tuple[NotebookNode, dict]:
        self._cell = index + 1
        return super().preprocess_cell(cell, resources, index)

    def create_kernel_manager(self):
        manager = super().create_kernel_manager()
        argv = [*manager.kernel_spec.argv, *_ARGUMENTS]
        manager.kernel_spec.argv = confine.command(argv, self._hidden(), _KEPT) if self._confines() else argv
        return manager

    def _confines(self) -> bool:
        if ConfinedExecute._can_confine is None:
            ConfinedExecute._can_confine = confine.possible()
            if not ConfinedExecute._can_confine:
                self.log.warning(
                    "This system does not let a notebook be confined: what it runs can read and write what "
                    "you can, the gradebook too. Grade in a container, or look at the submissions first."
                )
        return ConfinedExecute._can_confine

    def _hidden(self) -> list[Path]:
        return [Path(self.folder).resolve(), BROUGHT / "solutions"]


def _settle(cell: NotebookNode) -> None:
    """Make nbgrader give a check its points if it ran without an error, and only then.

    nbgrader takes anything on stderr for an error, such as a warning. It takes a cell that did not run for a
    right one.
    """
    for output in cell.outputs:
        if output.output_type == "stream":
            output.name = "stdout"
    if cell.metadata.get("nbgrader", {}).get("grade") and cell.execution_count is None:
        cell.outputs.append(
            nbformat.v4.new_output("error", ename="NotRun", evalue="this check did not run", traceback=[])
        )


def _check_files(folder: Path) -> None:
    """Refuse a submission with links, which might lead to other people's files, and one that is too large."""
    size = 0
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(place, name)
            if os.path.islink(path):
                raise NotGraded(f"{name} in the submission is a link, and only files are graded")
            size += os.path.getsize(path)
    if size > confine.MOST_BYTES:
        raise NotGraded(f"its files have {size:,} bytes, and {confine.MOST_BYTES:,} are the most")


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "no message")
