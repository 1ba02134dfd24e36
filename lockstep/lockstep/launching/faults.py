"""Reports an unforeseen error as the emulator's own fault, at a line of the kernel."""

import ast
import os
import signal
import traceback
import types
from collections.abc import Callable
from functools import wraps

from lockstep.errors import DEBUG, EmulatorError, EmulatorFault, UnsupportedKernel


class OwnFaults:
    """A context that turns an unforeseen error inside it into an :class:`EmulatorFault`.

    These errors pass unchanged: the emulator's own, those that stop Python (KeyboardInterrupt), a lack of
    memory (MemoryError), and errors of the caller's own functions, which :meth:`theirs` calls.
    """

    def __init__(self, function: types.FunctionType):
        self.function = function
        self._foreign = None

    def theirs(self, call, *arguments):
        """Call a function that the caller gave. Its errors are not the emulator's fault, so they pass."""
        try:
            return call(*arguments)
        except Exception as error:
            self._foreign = error
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if not isinstance(error, Exception) or isinstance(error, (EmulatorError, MemoryError)):
            return
        if error is self._foreign or _raised_by_a_handler(trace):
            return
        fault = _told(error, *_place(trace, self.function))
        if os.environ.get(DEBUG):
            raise fault from error
        raise fault.with_traceback(lines_of_kernels(trace)) from None


def _raised_by_a_handler(trace: types.TracebackType) -> bool:
    """Tell whether an error comes from one of the program's handlers of signals, such as a timer's."""
    handlers = map(signal.getsignal, range(1, signal.NSIG))
    codes = {getattr(handler, "__code__", None) for handler in handlers} - {None}
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(trace))


def guarded(method):
    """Wrap a method of a report so that it runs inside ``OwnFaults(self.function)``."""

    @wraps(method)
    def guard(self):
        with OwnFaults(self.function):
            return method(self)

    return guard


def lines_of_kernels(trace: types.TracebackType | None) -> types.TracebackType | None:
    """Return a traceback with only the frames that run kernels, without the emulator's own frames."""
    return frames_where(trace, _runs_a_kernel)


def frames_where(
    trace: types.TracebackType | None, wanted: Callable[[types.CodeType], bool]
) -> types.TracebackType | None:
    """Return a traceback with only the frames whose code is wanted, or None if there are none."""
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    kept = None
    for frame in reversed(frames):
        if wanted(frame.tb_frame.f_code):
            kept = types.TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def _runs_a_kernel(code: types.CodeType) -> bool:
    """Tell whether code is a translated function or a lambda in one. Only these name the machine ``_M``."""
    return "_M" in code.co_varnames[:1] or "_M" in code.co_freevars


def _place(trace, function) -> tuple[str, int]:
    """Return the (file, line) in a kernel or device function at which an error was raised."""
    found = function.__code__.co_filename, function.__code__.co_firstlineno
    for frame, line in traceback.walk_tb(trace):
        if _runs_a_kernel(frame.f_code):
            found = frame.f_code.co_filename, line
        elif (at := _translated_line(frame.f_locals)) is not None:
            found = at
    return found


def _translated_line(variables: dict) -> tuple[str, int] | None:
    """Return the (file, line) that a frame of the translator is translating, or None for other frames."""
    translator, node = variables.get("self"), variables.get("node")
    if isinstance(node, ast.AST) and hasattr(node, "lineno") and hasattr(translator, "filename"):
        return translator.filename, node.lineno


def _told(error, filename, line) -> EmulatorError:
    if isinstance(error, RecursionError):
        return UnsupportedKernel(
            "this is nested too deeply for the emulator: split it into several statements", filename, line
        )
    return EmulatorFault(error, filename, line)
