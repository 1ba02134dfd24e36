"""Opens the course in JupyterLab."""

import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from gemm_course import places, road
from gemm_course.commands.copying import copy_into, is_copy, newer_files
from gemm_course.commands.errors import CourseError
from gemm_course.commands.fresh import remember_fresh
from gemm_course.commands.places import notebook

# This folder has settings of JupyterLab, which a learner's own settings override, and extensions that draw
# explorers and find places.
JUPYTER = Path(__file__).parent / "jupyter"
# This variable tells kernels that the extension draws the explorers.
DRAWN = "GEMM_COURSE_LAB"
# A JupyterHub sets this variable for the servers that it starts.
HUB = "JUPYTERHUB_SERVICE_URL"
# A hub may set this variable to the page that such a server opens.
HUBS_PAGE = "JUPYTERHUB_DEFAULT_URL"


def serve(arguments: Sequence[str] = ()) -> None:
    """Serve the learner's folder and open notebook 00, until Ctrl-C.

    The first of ``arguments`` is the folder, unless it is the learner's usual one. A folder without notebooks
    gets a copy of them. All other arguments go to JupyterLab (``--no-browser``, ``--ip=0.0.0.0``, ...), which
    takes another port if 8888 is taken. A JupyterHub may start learners' servers with this command. In a
    terminal of such a server it only copies the notebooks. Raise CourseError if the folder cannot be the
    learner's.
    """
    folder, arguments = _folder_and_options(arguments)
    _prepare(folder)
    places.remember_opened(folder)
    if HUB in os.environ and DRAWN in os.environ:
        print(f"JupyterLab is open already: the notebooks are in {folder / 'notebooks'}.")
        return
    app = _app()
    os.environ |= environment(folder)
    os.environ.setdefault(HUBS_PAGE, _first_page(folder))
    _end_with_the_terminal()
    app.launch_instance([*options(arguments, folder), *arguments])
    _end_workers()


def _app():
    """Return JupyterLab's application, or under a JupyterHub the hub's, which lets in this learner alone."""
    # JupyterLab imports jsonschema. If jsonschema finds the package rfc3987_syntax, it spends a second on
    # grammars of internationalised addresses. Nothing that JupyterLab checks has such an address.
    sys.modules.setdefault("rfc3987_syntax", None)
    if HUB not in os.environ:
        from jupyterlab.labapp import LabApp

        return LabApp
    try:
        from jupyterhub.singleuser.extension import JupyterHubSingleUser
    except ImportError as error:
        raise CourseError(
            "A JupyterHub starts this, and its package is missing here: install jupyterhub, "
            f"in the hub's version, for {sys.executable}."
        ) from error
    return JupyterHubSingleUser


def _folder_and_options(arguments: Sequence[str]) -> tuple[Path, Sequence[str]]:
    """Split off the learner's folder, which is the first argument unless that is an option or a file.

    Return the folder and JupyterLab's arguments.
    """
    if not arguments or arguments[0].startswith("-") or Path(arguments[0]).is_file():
        return places.learners_folder(), arguments
    return Path(arguments[0]).expanduser().resolve(), arguments[1:]


def _prepare(folder: Path) -> None:
    """Make sure that the learner's notebooks are there, and tell the learner about copies and newer ones."""
    if copy_into(folder):
        print(f"Your copy of the notebooks is in {folder}.", flush=True)
    elif not places.is_own(folder):
        raise CourseError(
            f"{folder} is not yours to write in: `gemm-course lab FOLDER` puts a copy into a folder of yours."
        )
    elif is_copy(folder) and newer_files(folder):
        print("There are newer notebooks than your copy's: `gemm-course update` brings them.", flush=True)
    remember_fresh(folder)


def options(given: Sequence[str] = (), folder: Path | None = None) -> list[str]:
    """Return JupyterLab's options for the course: its folder, its first page, no question at the end.

    Options that the learner gives are left out, because JupyterLab takes an option only once.
    """
    names = {option.split("=")[0] for option in given}
    return [option for option in _options(folder or places.COURSE) if option.split("=")[0] not in names]


def _options(folder: Path) -> list[str]:
    return [
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url={_first_page(folder)}",
        f"--LabApp.workspaces_dir={folder / places.STATE / 'workspaces'}",
        # With this option, Ctrl-C stops JupyterLab without a question.
        "--ServerApp.answer_yes=True",
        "--ServerApp.log_level=WARN",
        "--LabApp.log_level=WARN",
        *(["--allow-root"] if _is_root() else []),
    ]


def _first_page(folder: Path) -> str:
    return "/lab/tree/" + notebook(road.ROAD[0].topic, folder / "notebooks").relative_to(folder).as_posix()


def environment(folder: Path = places.COURSE) -> dict[str, str]:
    """Return the variables that JupyterLab and its kernels need besides those that are set.

    Folders are added to the learner's own, so that their settings and extensions stay.
    """
    added = {
        name: os.pathsep.join(filter(None, [os.environ.get(name), str(JUPYTER)]))
        for name in ("JUPYTER_CONFIG_PATH", "JUPYTER_PATH")
    }
    # JupyterLab then prefers this Python's kernel to others that the learner has.
    first = {"JUPYTER_PREFER_ENV_PATH": "1"}
    drawn = {DRAWN: "1"}
    return added | first | drawn | ({} if folder == places.COURSE else {places.VARIABLE: str(folder)})


def _end_with_the_terminal() -> None:
    """Stop JupyterLab properly when the terminal is closed, so that the kernels end as well."""
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))


def _end_workers() -> None:
    """End AnyIO's worker threads, because Python would wait for them.

    A thread that was working on a request when the server stopped waits for the next one forever (anyio
    4.16).
    """
    for thread in threading.enumerate():
        if thread.name.startswith("AnyIO worker"):
            thread.stop()


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
