"""Defines the exceptions that are raised when the emulator cannot run a kernel."""

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
    """The emulator stopped the kernel, as when a loop ran past the step limit. The arrays are unchanged."""


class KernelRaised(KernelStopped):
    """A thread reached a ``raise``, or an ``assert`` that does not hold. The arrays are unchanged."""


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
