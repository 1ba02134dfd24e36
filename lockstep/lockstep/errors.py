"""Defines the exceptions that are raised when the emulator cannot run a kernel."""

import functools
import weakref

# If this environment variable is set, an EmulatorFault shows its traceback.
DEBUG = "LOCKSTEP_DEBUG"
# An EmulatorFault quotes at most _SHOWN characters of the original message.
_SHOWN = 200


class EmulatorError(Exception):
    """The base class of the emulator's errors: bad launches, unsupported code, kernels that do not end."""


class LaunchError(EmulatorError, ValueError):
    """An error in the launch itself: geometry, number or kind of arguments, shared memory."""


class LimitExceeded(LaunchError):
    """An error in a launch that asks for more than the GPU has: threads, blocks, shared memory."""


class ArgumentError(LaunchError, TypeError):
    """An error in a launch that passes too few or too many arguments, or arguments of the wrong kind."""


class RefusedLine(EmulatorError):
    """An error, raised before anything runs, for ``line`` of ``filename``, which cannot be translated."""

    def __init__(self, sentence: str, filename: str, line: int):
        self.sentence, self.filename, self.line = sentence, filename, line
        super().__init__(f"{filename}, line {line}: {sentence}")


class UnsupportedKernel(RefusedLine):
    """An error for a kernel that uses something that the emulator does not support."""


class UndefinedName(RefusedLine, NameError):
    """An error for a name in a kernel that is not defined. Numba would not compile the kernel either."""


class UnknownName(EmulatorError, ValueError):
    """An error for a count, an array or anything else that a report was asked for and does not have."""


class KernelTypeError(EmulatorError, TypeError):
    """An error for code that Numba would not compile: a float is an index, or an operand is not a number."""


class KernelStopped(EmulatorError):
    """An error by which the emulator stopped the kernel, as when a loop ran past the step limit.

    The arrays are unchanged. ``findings`` has what was found before, each with its file.
    """

    findings: tuple = ()

    def retold(self, text: str) -> "KernelStopped":
        """Return the same error with another text."""
        return _made(type(self), text)


class KernelRaised(KernelStopped):
    """An error for a thread that reached a ``raise``, or an ``assert`` that fails. The arrays are unchanged.

    With ``debug=True`` it is also of the kernel's own class of exception, and has the arguments that Numba's
    has then. ``told`` is the emulator's sentence, which is the error's text.
    """

    told: str | None = None

    def __str__(self):
        return super().__str__() if self.told is None else self.told

    def retold(self, text: str) -> "KernelStopped":
        """Return the same error with another text. Arguments that are Numba's stay."""
        if self.told is None:
            return super().retold(text)
        return _told(type(self), text, self.args)


@functools.cache
def _both(kind: type[Exception]) -> type[KernelRaised]:
    return type(kind.__name__, (KernelRaised, kind), {})


_remembered: weakref.WeakValueDictionary[str, type] = weakref.WeakValueDictionary()


def remember_exception(kind: type[BaseException]) -> str:
    """Keep a class of exceptions that a kernel raises; return the name under which translated code has it."""
    key = f"{kind.__module__}.{kind.__qualname__}"
    _remembered[key] = kind
    return key


def raised_as(key: str, text: str, arguments: tuple) -> KernelRaised:
    """Return a KernelRaised with these arguments, also of the class that was remembered as ``key``."""
    kind = _remembered.get(key)
    return _told(KernelRaised if kind is None else _both(kind), text, arguments)


def _told(kind: type[KernelRaised], text: str, arguments: tuple) -> KernelRaised:
    error = _made(kind, text)
    error.args, error.told = arguments, text
    return error


def _made(kind: type[KernelStopped], text: str) -> KernelStopped:
    error = kind.__new__(
        kind, text
    )  # The program's own class may take other arguments, so its __init__ is not called.
    error.args = (text,)
    return error


class Deadlock(KernelStopped):
    """An error for a kernel that would hang: all warps of a block wait for what none of them will do."""


class DataDependent(EmulatorError):
    """An error for counting without running if control flow or an index depends on loaded data."""


class EmulatorFault(EmulatorError, RuntimeError):
    """An unforeseen error that stopped the emulator. It is the emulator's own fault, not the kernel's.

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
