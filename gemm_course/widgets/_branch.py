"""Steps a warp through an ``if``, from the emulator's trace of a small kernel."""

from __future__ import annotations

import inspect
from functools import lru_cache

import numpy as np
from numba import cuda

from gemm_course.figures import branch as figure
from gemm_course.figures.picture import Picture
from gemm_course.widgets._explorer import StepThrough, explorer
from lockstep import Watch, emulate

WARP = 32
# The numbers in x: each lane decides by its own.
NUMBERS = {
    "even and odd in turn": lambda lane: lane,
    "16 even, then 16 odd": lambda lane: 2 * lane + lane // 16,
    "31 even, one odd": lambda lane: 2 * lane + lane // 31,
    "all even": lambda lane: 2 * lane,
}


@cuda.jit
def next_of_collatz(x, y):
    i = cuda.threadIdx.x
    if x[i] % 2 == 0:
        y[i] = x[i] // 2
    else:
        y[i] = 3 * x[i] + 1
    x[i] = y[i]


@explorer
def branch() -> StepThrough:
    """Step through the lines that a warp issues where its lanes disagree at an ``if``."""
    controls = {"numbers": ("the numbers in x", list(NUMBERS), next(iter(NUMBERS)))}
    return StepThrough(draw, lambda numbers: len(walk(numbers).steps), controls)


def draw(step: int, numbers: str) -> Picture:
    """Draw a step, from 0. ``numbers`` is a key of NUMBERS."""
    return figure.branch(walk(numbers), step)


@lru_cache
def walk(numbers: str) -> figure.Walk:
    """Return the lines that a warp issues, each with the lanes that access memory in it."""
    x = np.array([NUMBERS[numbers](lane) for lane in range(WARP)], np.int32)
    signs = ["o" if number % 2 else "e" for number in x.tolist()]
    trace = emulate(next_of_collatz, 1, WARP, x, np.zeros(WARP, np.int32), watch=Watch()).trace
    lanes = trace.groupby("line", sort=False)["lane"].agg(frozenset)
    source, first = inspect.getsourcelines(next_of_collatz.py_func)
    body = {first + place: line.rstrip()[4:] for place, line in enumerate(source)}
    # Each line but the first of the body accesses memory, and an `else` stands alone.
    lines = {number: text for number, text in body.items() if "[i]" in text or text.endswith("else:")}
    return figure.Walk(lines, list(lanes.items()), signs)
