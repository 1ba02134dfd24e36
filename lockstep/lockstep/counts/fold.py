"""Counts without running everything: iterations that repeat the same accesses are counted, but not run.

While the emulator only counts, everything it tallies goes through a log. A loop is periodic once three
periods in a row (of one or more iterations) have logged the same entries, and every number in them has moved
by the same step from one period to the next: each further period logs the same again until a comparison
changes its outcome. When that happens follows from the comparisons, since both of their sides move in
constant steps. So the emulator jumps there, counts the period as often as it was skipped, and continues
iteration by iteration.

A log entry holds what decides a cost: the site, the pattern of addresses, the offset modulo 128 bytes, the
mask; for comparisons the outcome, for // and % the remainder. Blocks are treated like iterations.
"""

import numpy as np

from lockstep.memory.storage import ChosenArray, DeviceArray
from lockstep.values.lanes import ZERO, Lanes, compare, comparison, split

# Steps of one byte cross a cache line in 128 iterations, so the limit is a little higher.
LONGEST_PERIOD = 136


class Log:
    """A log of what iterations tallied: keys that must repeat, and numbers that must move in constant
    steps.
    """

    __slots__ = ("tallies", "keys", "weights", "numbers")

    def __init__(self, tallies):
        self.tallies = tallies
        self.keys, self.weights, self.numbers = [], [], []

    def tally(self, key, payload):
        """Count something, and note it."""
        self.tallies.add(key, payload)
        self.keys.append(key)
        self.weights.append(1)

    def tally_again(self, key, weight):
        """Count something already tallied ``weight`` more times."""
        self.tallies.add_again(key, weight)
        self.keys.append(key)
        self.weights.append(weight)

    def note(self, key, number):
        """Note something that decides what comes, and costs nothing."""
        self.keys.append(key)
        self.weights.append(0)
        self.numbers.append(number)

    def note_comparison(self, op, a, b, outcome):
        """Note a comparison of integers; ``outcome``: None if it has not been computed."""
        if outcome is None:
            outcome = compare(op, a, b)
        key = op, outcome if type(outcome) is bool else outcome.pattern.serial
        self.note(key, margins(op, a, b, outcome))

    def note_divisor(self, op, a, b):
        """Note a division of integers: of a number that is the same for all lanes, what remains decides."""
        (_, offset), (q, divisor) = split(a), split(b)
        uniform = q is ZERO and divisor > 0
        self.note((op, divisor, offset % divisor if uniform else offset), (offset, None, None))

    def note_exact(self, op, a, b):
        """Note an operation whose operands must stay the same."""
        self.note((op, split(a)[1], split(b)[1]), (0, None, None))


class Fold:
    """An observer of one loop, which looks for a period in the iterations and skips those that repeat it."""

    def __init__(self, machine):
        self.machine = machine
        self.marks = [self._mark()]
        self.states = []
        self.pause = 0

    def _mark(self):
        log = self.machine.log
        return len(log.keys), len(log.numbers)

    def end_of_iteration(self, state: tuple, room: int | None = None):
        """Note a finished iteration; return (iterations to skip, at most ``room``; the state after them)."""
        self.marks.append(self._mark())
        self.states.append(state)
        iterations = len(self.states)
        if iterations < self.pause or iterations < 3:
            return 0, state
        for length in range(1, min(iterations // 3, LONGEST_PERIOD) + 1):
            if self._repeats(length):
                skipped = self._jump(length, None if room is None else room // length)
                if skipped:
                    return skipped * length, self._restart(state, length, skipped)
                # Within the next period the loop ends or a comparison changes, so the search pauses.
                self.pause = iterations + 4 * length
                return 0, state
        return 0, state

    def _period(self, length, back):
        """Return slices of the keys and numbers of the period that ended ``back`` periods ago."""
        last = len(self.marks) - 1 - back * length
        (k0, n0), (k1, n1) = self.marks[last - length], self.marks[last]
        return slice(k0, k1), slice(n0, n1)

    def _repeats(self, length) -> bool:
        log, marks = self.machine.log, self.marks
        end, first, second = marks[-1][0], marks[-1 - length][0], marks[-1 - 2 * length][0]
        entries = end - first
        if first - second != entries or second - marks[-1 - 3 * length][0] != entries:
            return False
        # If any keys differ, the last keys mostly do, so they are compared first.
        if entries and log.keys[end - 1] != log.keys[first - 1]:
            return False
        (k0, n0), (k1, n1), (k2, n2) = (self._period(length, back) for back in (0, 1, 2))
        if any(kept[k0] != kept[k1] or kept[k1] != kept[k2] for kept in (log.keys, log.weights)):
            return False
        numbers = log.numbers
        if any(a[0] - b[0] != b[0] - c[0] for a, b, c in zip(numbers[n0], numbers[n1], numbers[n2])):
            return False
        s0, s1, s2 = (self.states[-1 - back * length] for back in (0, 1, 2))
        return all(_steady(a, b, c) for a, b, c in zip(s0, s1, s2))

    def _jump(self, length, room) -> int:
        """Count the periods that may be skipped before a comparison changes its outcome; return how many."""
        log = self.machine.log
        (keys, new), (_, old) = self._period(length, 0), self._period(length, 1)
        for (value, low, high), (before, _, _) in zip(log.numbers[new], log.numbers[old]):
            step = value - before
            limit = _steps_until(value, step, low, high)
            if limit is not None:
                room = limit if room is None else min(room, limit)
        if not room or room < 1:
            return 0
        for key, weight in zip(log.keys[keys], log.weights[keys]):
            if weight:
                self.machine.log.tally_again(key, weight * room)
        return room

    def _restart(self, state, length, skipped):
        before = self.states[-1 - length]
        shifted = tuple(_shift(a, b, skipped) for a, b in zip(state, before))
        self.states, self.marks = [], [self._mark()]
        self.pause = 0
        return shifted


def _steady(a, b, c) -> bool:
    """Return whether three values of a variable, one period apart, move by the same step."""
    if type(a) is not type(b) or type(b) is not type(c):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) == len(c) and all(_steady(x, y, z) for x, y, z in zip(a, b, c))
    if type(a) is int or isinstance(a, np.integer):
        return int(a) - int(b) == int(b) - int(c)
    if type(a) is DeviceArray:
        fixed = all(
            a.storage is x.storage and a.pattern is x.pattern and a.strides == x.strides for x in (b, c)
        )
        return fixed and _steady(*((x.offset, x.escapes, *x.shape) for x in (a, b, c)))
    if type(a) is ChosenArray:
        return a.which is b.which is c.which and _steady(a.arrays, b.arrays, c.arrays)
    if type(a) is Lanes:
        return a.pattern is b.pattern is c.pattern and a.offset - b.offset == b.offset - c.offset
    return a is b or _is_data(a) or _same(a, b)


def _is_data(value) -> bool:
    return getattr(getattr(value, "dtype", None), "kind", "") in "fc" and hasattr(value, "dtype")


def _same(a, b) -> bool:
    try:
        return bool(a == b)
    except (TypeError, ValueError):
        return False


def _shift(a, b, times):
    """Return ``a`` after ``times`` more steps of the size from ``b`` to ``a``."""
    if isinstance(a, tuple):
        return tuple(_shift(x, y, times) for x, y in zip(a, b))
    if type(a) is int or isinstance(a, np.integer):
        return type(a)(int(a) + (int(a) - int(b)) * times)
    if type(a) is DeviceArray:
        offset, _, *shape = _shift((a.offset, (), *a.shape), (b.offset, (), *b.shape), times)
        return DeviceArray(
            a.name, a.storage, a.dtype, shape, a.strides, a.pattern, offset, a.layout, a.escapes
        )
    if type(a) is ChosenArray:
        return ChosenArray(_shift(a.arrays, b.arrays, times), a.which)
    if type(a) is Lanes:
        return Lanes(a.pattern, a.offset + (a.offset - b.offset) * times, a.dtype)
    return a


def _steps_until(value, step, low, high):
    """Return how often ``step`` may be added before ``value`` leaves low..high (None: no bound there)."""
    if step > 0 and high is not None:
        return (high - value) // step
    if step < 0 and low is not None:
        return (value - low) // -step
    return None


def margins(op, a, b, outcome) -> tuple:
    """Return (difference of the offsets, lowest and highest value for which the outcome stays the same)."""
    pattern, threshold = comparison(a, b)
    difference, low, high = -threshold, pattern.low, pattern.high
    if type(outcome) is not bool:
        return difference, difference, difference
    if op in (">", "<="):
        first, last = (None, -high) if outcome == (op == "<=") else (1 - low, None)
    elif op in ("<", ">="):
        first, last = (None, -1 - high) if outcome == (op == "<") else (-low, None)
    elif (op == "==") == outcome:
        # The two sides are equal, so any step may change the outcome.
        first = last = difference
    elif difference + low > 0:
        first, last = 1 - low, None
    else:
        first, last = None, -1 - high
    return difference, first, last
