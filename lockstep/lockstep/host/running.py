"""Runs a whole program on an emulated GPU, as ``python program.py arguments`` would run it."""

import contextlib
import importlib.util
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lockstep.errors import EmulatorError
from lockstep.launching.launch import LOOP_SECONDS
from lockstep.limits import Profile

from .session import Session, emulated

FAILED = 1


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

    The program prints to the standard output and error as usual. Raises LaunchError for an unknown GPU, and
    KeyboardInterrupt if the user interrupts the program.
    """
    with emulated(gpu, loop_seconds=loop_seconds) as session, _as_started(target, arguments, module):
        try:
            if module and importlib.util.find_spec(target) is None:
                return Outcome(session, FAILED, f"there is no module named {target}")
            if module:
                runpy.run_module(target, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(target, run_name="__main__")
        except SystemExit as end:
            return Outcome(session, *_exit(end.code))
        except EmulatorError as error:
            return Outcome(session, FAILED, _sentence(error))
        except Exception as error:
            return Outcome(session, FAILED, "".join(traceback.format_exception(_of_program(error))).rstrip())
    return Outcome(session, 0)


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


def _sentence(error: EmulatorError) -> str:
    """Return the emulator's message, with the line of the program at which the error was raised."""
    if hasattr(error, "line"):
        return str(error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    return f"{frames[-1].filename}, line {frames[-1].lineno}: {error}" if frames else str(error)


def _of_program(error: Exception) -> Exception:
    """Return the error, its traceback without the frames that started the program."""
    step = error.__traceback__
    while step is not None and _is_ours(step.tb_frame.f_code.co_filename):
        step = step.tb_next
    return error.with_traceback(step or error.__traceback__)


def _is_ours(filename: str) -> bool:
    package = str(Path(__file__).parents[1])
    return filename.startswith((package, "<frozen runpy>", runpy.__file__))
