"""Opens the course in JupyterLab."""

import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

from gemm_course.commands.fresh import remember_fresh
from gemm_course.commands.places import ROOT, notebook

# Defaults below the learner's own: no news prompt; extensions that draw explorers and find places.
JUPYTER = Path(__file__).parent / "jupyter"


def serve(arguments: Sequence[str] = ()) -> None:
    """Serve the course's folder and open notebook 00, until Ctrl-C.

    ``arguments`` go to JupyterLab as they are (``--no-browser``, ``--ip=0.0.0.0``, ...). When its port 8888
    is taken, JupyterLab takes another.
    """
    remember_fresh()
    _prepare_environment()
    _end_with_the_terminal()
    from jupyterlab.labapp import LabApp

    LabApp.launch_instance([*options(arguments), *arguments])
    _end_workers()


def options(given: Sequence[str] = ()) -> list[str]:
    """Return the options that make JupyterLab the course's: its folder, its first page, a quiet end.

    Those that the learner gives as well are left out: JupyterLab takes an option once.
    """
    names = {option.split("=")[0] for option in given}
    return [option for option in _options() if option.split("=")[0] not in names]


def _options() -> list[str]:
    first = notebook("00").relative_to(ROOT).as_posix()
    return [
        f"--ServerApp.root_dir={ROOT}",
        f"--LabApp.default_url=/lab/tree/{first}",
        f"--LabApp.workspaces_dir={ROOT / '.course' / 'workspaces'}",
        "--ServerApp.answer_yes=True",  # Ctrl-C stops it without asking
        "--ServerApp.log_level=WARN",
        "--LabApp.log_level=WARN",
        *(["--allow-root"] if _is_root() else []),
    ]


def _prepare_environment() -> None:
    os.environ |= environment()


def environment() -> dict[str, str]:
    """What JupyterLab and its kernels are to find in their environment, beside what is there.

    Folders are added to the learner's own, so that their settings and extensions stay.
    """
    added = {
        name: os.pathsep.join(filter(None, [os.environ.get(name), str(JUPYTER)]))
        for name in ("JUPYTER_CONFIG_PATH", "JUPYTER_PATH")
    }
    first = {"JUPYTER_PREFER_ENV_PATH": "1"}  # the kernel of this Python, before others of the learner's
    return added | first | {"GEMM_COURSE_LAB": "1"}  # explorers are drawn by the extension


def _end_with_the_terminal() -> None:
    """When its terminal is closed, end as JupyterLab ends when asked to, which ends the kernels as well."""
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))


def _end_workers() -> None:
    """End AnyIO's worker threads, for which Python would wait.

    One that was at work on a request when the server stopped waits for another one for ever (anyio 4.16).
    """
    for thread in threading.enumerate():
        if thread.name.startswith("AnyIO worker"):
            thread.stop()


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
