"""Runs a whole program on an emulated GPU, as ``python program.py arguments`` would run it."""

import builtins
import contextlib
import importlib.util
import runpy
import sys
import sysconfig
import traceback
import types
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lockstep.errors import EmulatorError
from lockstep.launching.launch import LOOP_SECONDS
from lockstep.limits import Profile

from .patience import Patience
from .session import Session, emulated
from .summary import short

FAILED, INTERRUPTED = 1, 130


@dataclass(frozen=True)
class Outcome:
    """The outcome of a program.

    ``program_exit``: the program's exit code. ``stopped``: the message of what stopped it, or None.
    """

    session: Session
    program_exit: int
    stopped: str | None = None

    @property
    def exit_code(self) -> int:
        """The program's own exit code, or 1 if that is 0 and a launch has a finding of severity error."""
        return self.program_exit or (0 if self.session.ok else FAILED)


def run_program(
    target: str,
    arguments: Sequence[str] = (),
    *,
    gpu: str | Profile | None = None,
    module: bool = False,
    loop_seconds: float = LOOP_SECONDS,
) -> Outcome:
    """Run the file ``target``, or with ``module`` the module of that name, with these arguments.

    The program prints to the standard output and error as usual. During a long launch, the standard error
    also tells where the launch is. Raises LaunchError for an unknown GPU.
    """
    with (
        emulated(gpu, loop_seconds=loop_seconds) as session,
        Patience(session),
        _as_started(target, arguments, module),
    ):
        try:
            if module and importlib.util.find_spec(target) is None:
                return Outcome(session, FAILED, f"there is no module named {target}")
            if module:
                runpy.run_module(target, run_name="__main__", alter_sys=True)
            elif zipfile.is_zipfile(target) or Path(target).is_dir():
                _run_folder(target)
            else:
                _run_file(Path(target).resolve())
        except SystemExit as end:
            return Outcome(session, *_exit(end.code))
        except _NoProgram as error:
            return Outcome(session, FAILED, str(error))
        except EmulatorError as error:
            return Outcome(session, FAILED, _sentence(error))
        except KeyboardInterrupt as error:
            return Outcome(session, INTERRUPTED, _interruption(error))
        except Exception as error:
            return Outcome(session, FAILED, "".join(traceback.format_exception(_of_program(error))).rstrip())
    return Outcome(session, 0)


class _NoProgram(Exception):
    """An error for a file or folder that Python cannot run. Its text says why."""


def _run_folder(target: str) -> None:
    """Run the ``__main__.py`` of a folder or a zip file."""
    try:
        runpy.run_path(target, run_name="__main__")
    except ImportError as error:
        if "__main__" not in str(error):
            raise
        raise _NoProgram(f"{target} has no __main__.py, so Python cannot run it") from None


def _run_file(path: Path) -> None:
    """Run a file as ``python file`` does: as the module ``__main__``, with an absolute ``__file__``."""
    try:
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        told = "".join(traceback.format_exception_only(error)).rstrip()
        placed = getattr(error, "filename", None)  # Bytes of zeros are no text, so the error has no place.
        raise _NoProgram(told if placed else f"{path} is no Python file. {told}") from None
    program, before = types.ModuleType("__main__"), sys.modules["__main__"]
    vars(program).update(__file__=str(path), __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = program
    try:
        exec(code, vars(program))
    finally:
        sys.modules["__main__"] = before


@contextlib.contextmanager
def _as_started(target: str, arguments: Sequence[str], module: bool) -> Iterator[None]:
    """Set the command line and the import path that the program would have without the emulator."""
    before = sys.argv, sys.path
    sys.argv = [target, *arguments]
    sys.path = ["" if module else str(Path(target).resolve().parent), *sys.path]
    try:
        yield
    finally:
        sys.argv, sys.path = before


def _exit(code: object) -> tuple[int, str | None]:
    """Return (exit code, message or None) for the argument of ``sys.exit``. A message means code 1."""
    if code is None:
        return 0, None
    return (code, None) if isinstance(code, int) else (FAILED, str(code))


def _interruption(error: KeyboardInterrupt) -> str:
    where = _place(error)
    return f"The program was interrupted{f' in {where}' if where else ''}."


def _sentence(error: EmulatorError) -> str:
    """Return the emulator's message, with the line of the program at which the error was raised."""
    if hasattr(error, "line"):
        return str(error).replace(error.filename, short(error.filename))
    where = _place(error)
    return f"{where}: {error}" if where else str(error)


def _place(error: BaseException) -> str:
    """Return the innermost place in a traceback, preferably not in a library, or "" if it has no place."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    libraries = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))
    others = (*libraries, "<")  # A named tuple's own functions come from "<string>".
    frames = [frame for frame in frames if not frame.filename.startswith(others)] or frames
    return f"{short(frames[-1].filename)}, line {frames[-1].lineno}" if frames else ""


def _of_program(error: Exception) -> Exception:
    """Remove the frames that started the program from the error's traceback, and return the error."""
    step = error.__traceback__
    while step is not None and _is_ours(step.tb_frame.f_code.co_filename):
        step = step.tb_next
    return error.with_traceback(step or error.__traceback__)


def _is_ours(filename: str) -> bool:
    package = str(Path(__file__).parents[1])
    return filename.startswith((package, "<frozen runpy>", runpy.__file__))
