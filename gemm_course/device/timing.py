"""Measures how long launches take on the GPU, by CUDA events."""

import functools
import itertools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gemm_course.device.facts import sm_clock_mhz

# The host needs less than this to queue one launch.
QUEUEING_MS = 0.15
LONGEST_HOLD_MS = 40


@dataclass(frozen=True)
class Timing:
    """The times of a repeated launch, median and best, in milliseconds, and the clock while it ran."""

    median_ms: float
    best_ms: float
    repetitions: int
    sm_clock_mhz: int | None


def time_launch(launch: Callable[[], None], budget_ms: float = 200, most: int = 20) -> Timing:
    """Time one launcher, as `time_alternating` does."""
    return time_alternating([launch], budget_ms, most)[0]


def time_alternating(
    launchers: Sequence[Callable[[], None]], budget_ms: float = 200, most: int = 20, least: int = 3
) -> list[Timing]:
    """Time launchers in turn, A B A B ..., so that clocks and temperature are the same for all of them.

    Each is launched once to warm up and once to estimate its time. Then it is launched as often as the budget
    of GPU time allows, but at least `least` and at most `most` times. If the estimate alone exceeds the
    budget and `least` is 1, the estimate is the result. The GPU waits until everything is queued, so that the
    host's launch overhead is not counted. A launcher takes no argument and queues work on the default stream.
    """
    for launcher in launchers:
        launcher()
    clock, times = _events_of(launchers, rounds=1)
    once = sum(times[0])
    if least > 1 or once < budget_ms:
        clock, times = _events_of(launchers, repetitions(once, budget_ms, most, least))
    return [
        Timing(statistics.median(series), min(series), len(times), clock)
        for series in zip(*times, strict=True)
    ]


def repetitions(once_ms: float, budget_ms: float, most: int, least: int = 3) -> int:
    """Return how many rounds of `once_ms` fit the budget, at least `least` and at most `most`."""
    return max(least, min(most, int(budget_ms / max(once_ms, 1e-3))))


def _events_of(launchers, rounds: int) -> tuple[int | None, list[list[float]]]:
    """Launch all launchers for some rounds.

    Return the clock while they ran, and each launcher's milliseconds in each round.
    """
    from numba import cuda

    marks = [[cuda.event() for _ in range(len(launchers) + 1)] for _ in range(rounds)]
    cuda.synchronize()
    _hold_back(rounds * len(launchers) * QUEUEING_MS)
    for row in marks:
        row[0].record()
        for launcher, mark in zip(launchers, row[1:], strict=True):
            launcher()
            mark.record()
    marks[0][-1].synchronize()
    clock = sm_clock_mhz()  # The first round is done, and the others are running.
    marks[-1][-1].synchronize()
    return clock, [[before.elapsed_time(after) for before, after in itertools.pairwise(row)] for row in marks]


def _hold_back(milliseconds: float) -> None:
    """Queue a kernel that does nothing for about that long."""
    steps = int(min(max(milliseconds, 1), LONGEST_HOLD_MS) * 2)
    _sleeper()[1, 1](steps)


@functools.cache
def _sleeper():
    from numba import cuda

    @cuda.jit
    def sleep(half_milliseconds):
        for _ in range(half_milliseconds):
            cuda.nanosleep(500_000)

    return sleep
