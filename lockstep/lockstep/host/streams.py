"""Emulates streams and events. The emulator does all work at once, so no work is ever pending."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Iterator

from .errors import INVALID_HANDLE, DriverError
from .state import current

# CUDA has these handles for the legacy and the per-thread default stream.
LEGACY, PER_THREAD = 1, 2
_handles = itertools.count(0x1000)


class Stream:
    """A stream, whose work is done as soon as it is queued."""

    def __init__(self, handle: int, name: str):
        self.handle, self._name = handle, name
        self.external = False

    def __int__(self):
        return self.handle

    def __cuda_stream__(self):
        return 0, self.handle

    def __repr__(self):
        return f"<{self._name} of the emulated GPU>"

    def synchronize(self) -> None:
        """Do nothing, because no work is pending."""

    @contextlib.contextmanager
    def auto_synchronize(self) -> "Iterator[Stream]":
        yield self

    def add_callback(self, callback, arg=None) -> None:
        """Call ``callback(stream, status, arg)`` at once."""
        callback(self, 0, arg)

    def async_done(self) -> asyncio.Future:
        """Return an awaitable that is done already, with this stream as its result."""
        future = asyncio.get_running_loop().create_future()
        future.set_result(self)
        return future


class Event:
    """A point in a stream. Its times are those of the emulator, and say nothing about a GPU."""

    def __init__(self, timing: bool = True):
        self.timing, self._when = timing, None

    def record(self, stream=0) -> None:
        self._when = time.perf_counter()

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """Do nothing, because no work is pending."""

    def wait(self, stream=0) -> None:
        """Do nothing, because no work is pending."""

    def elapsed_time(self, evtend: "Event") -> float:
        """Return the milliseconds that the emulator took from this event to ``evtend``.

        Raises DriverError if either event was not recorded or was made with timing=False.
        """
        for event in (self, evtend):
            if event._when is None or not event.timing:
                why = "has not been recorded" if event.timing else "was made with timing=False"
                raise DriverError(INVALID_HANDLE, f"there is no time to tell: an event {why}")
        current().times_read = True
        return (evtend._when - self._when) * 1e3


def stream() -> Stream:
    return Stream(next(_handles), "stream")


def default_stream() -> Stream:
    return Stream(0, "default stream")


def legacy_default_stream() -> Stream:
    return Stream(LEGACY, "legacy default stream")


def per_thread_default_stream() -> Stream:
    return Stream(PER_THREAD, "per-thread default stream")


def external_stream(ptr: int) -> Stream:
    """Return a stream for the handle ``ptr`` of another library's stream. It has no pending work either."""
    stream = Stream(int(ptr), "external stream")
    stream.external = True
    return stream


def event(timing=True) -> Event:
    return Event(timing)


def event_elapsed_time(evtstart: Event, evtend: Event) -> float:
    return evtstart.elapsed_time(evtend)
