"""The exceptions raised when the emulator cannot run a kernel."""


class EmulatorError(Exception):
    """Base class of the emulator's errors: bad launches, unsupported code, kernels that do not end."""


class LaunchError(EmulatorError, ValueError):
    """The launch itself is wrong: geometry, number or kind of arguments, shared memory."""


class UnsupportedKernel(EmulatorError):
    """The kernel uses something the emulator does not support; raised before anything runs.

    ``filename`` and ``line`` give the place.
    """

    def __init__(self, sentence: str, filename: str, line: int):
        self.sentence, self.filename, self.line = sentence, filename, line
        super().__init__(f"{filename}, line {line}: {sentence}")


class KernelTypeError(EmulatorError, TypeError):
    """An operation that Numba would not compile: a float as an index, an operand that is not a number."""


class KernelStopped(EmulatorError):
    """A loop ran past the step limit, so the kernel was stopped; the arrays are unchanged."""


class Deadlock(KernelStopped):
    """Every warp of a block waits for something that none of them will do: the kernel would hang."""


class DataDependent(EmulatorError):
    """Counting without running is impossible: control flow or an index depends on loaded data."""
