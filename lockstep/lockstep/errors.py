"""Defines the exceptions that are raised when the emulator cannot run a kernel."""

import functools
import weakref

DEBUG = "LOCKSTEP_DEBUG"  # if this environment variable is set, an EmulatorFault shows its traceback
_SHOWN = 200  # an EmulatorFault quotes this many characters of the original message


class EmulatorError(Exception):
    """The base class of the emulator's errors: bad launches, unsupported code, kernels that do not end."""


class LaunchError(EmulatorError, ValueError):
    """The launch itself is wrong: geometry, number or kind of arguments, shared memory."""


class LimitExceeded(LaunchError):
    """The launch asks for more than the GPU has: threads, blocks, shared memory."""


class ArgumentError(LaunchError, TypeError):
    """The launch passes too few or too many arguments, or arguments of the wrong kind."""


class RefusedLine(EmulatorError):
    """The emulator cannot translate ``line`` of ``filename``. The error is raised before anything runs."""

    def __init__(self, sentence: str, filename: str, line: int):
        self.sentence, self.filename, self.line = sentence, filename, line
        super().__init__(f"{filename}, line {line}: {sentence}")


class UnsupportedKernel(RefusedLine):
    """The kernel uses something that the emulator does not support."""


class UndefinedName(RefusedLine, NameError):
    """The kernel uses a name that is not defined. Numba would not compile it either."""


class UnknownName(EmulatorError, ValueError):
    """The caller asks a report for a count, an array or anything else that it does not have."""


class KernelTypeError(EmulatorError, TypeError):
    """Numba would not compile this: a float is an index, or an operand is not a number."""


class KernelStopped(EmulatorError):
    """The emulator stopped the kernel, as when a loop ran past the step limit. The arrays are unchanged.

    ``findings`` has what was found before, each with its file.
    """

    findings: tuple = ()

    def retold(self, text: str) -> "KernelStopped":
        """Return the same error with another text."""
        return _made(type(self), text)


class KernelRaised(KernelStopped):
    """A thread reached a ``raise``, or an ``assert`` that does not hold. The arrays are unchanged.

    With ``debug=True`` it is also of the kernel's own class of exception, as the one that Numba raises then.
    """


@functools.cache
def _both(kind: type[Exception]) -> type[KernelRaised]:
    return type(kind.__name__, (KernelRaised, kind), {"__str__": lambda self: self.args[0]})


_remembered: weakref.WeakValueDictionary[str, type] = weakref.WeakValueDictionary()


def remember_exception(kind: type[BaseException]) -> str:
    """Keep a class of exceptions that a kernel raises; return the name under which translated code has it."""
    key = f"{kind.__module__}.{kind.__qualname__}"
    _remembered[key] = kind
    return key


def raised_as(key: str, text: str) -> KernelRaised:
    """Return a KernelRaised that is also of the class that was remembered as ``key``."""
    kind = _remembered.get(key)
    return KernelRaised(text) if kind is None else _made(_both(kind), text)


def _made(kind: type[KernelStopped], text: str) -> KernelStopped:
    error = kind.__new__(kind, text)  # The program's own class may be made of other arguments.
    error.args = (text,)
    return error


class Deadlock(KernelStopped):
    """Every warp of a block waits for something that none of them will do, so the kernel would hang."""


class DataDependent(EmulatorError):
    """Counting without running is impossible: control flow or an index depends on loaded data."""


class EmulatorFault(EmulatorError, RuntimeError):
    """An unforeseen error stopped the emulator. This is the emulator's own fault, not the kernel's.

    ``filename`` and ``line`` give the kernel's line, ``original`` the error. The error's traceback is shown
    only if the environment variable LOCKSTEP_DEBUG is set.
    """

    def __init__(self, original: Exception, filename: str, line: int):
        self.original, self.filename, self.line = original, filename, line
        text = " ".join(str(original).split())
        text = f"{type(original).__name__}: {text[:_SHOWN]}" if text else type(original).__name__
        super().__init__(
            f"{filename}, line {line}: the emulator itself failed here ({text}), which is not the kernel's "
            "fault; please report it among the project's issues, with the kernel, its grid and block, the "
            f"dtype and shape of each argument, and the traceback that you get with {DEBUG}=1 in the "
            "environment."
        )
