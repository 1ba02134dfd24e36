"""Kernels as people write them, in families: each with inputs of odd sizes and a reference in NumPy.

The emulator and a GPU both run them, and Nsight Compute counts them (``program_cases.py``),
so each is one launch of valid numba.cuda code.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np


@dataclass(frozen=True)
class Program:
    """A kernel and one launch of it, with its expected result.

    make_args: returns fresh arguments. expected: takes fresh arguments and returns what `seen` must show
    after the launch, one entry per argument, None for one that must not change. seen: takes the arguments
    after the launch and returns what is compared; it hides what may differ from run to run, such as the order
    of tickets. rtol: the relative and the absolute tolerance for floats; integers must be equal.
    """

    name: str
    family: str
    kernel: object
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    make_args: Callable[[], tuple]
    expected: Callable[..., tuple]
    seen: Callable[..., tuple]
    shared_bytes: int
    rtol: float


def program(grid, block, args, expected, *, seen=lambda *args: args, shared_bytes=0, rtol=1e-5):
    """Make a Program of the kernel below; its module is its family."""

    def to_program(kernel):
        function = kernel.py_func
        family = function.__module__.rpartition(".")[2]
        return Program(
            function.__name__, family, kernel, grid, block, args, expected, seen, shared_bytes, rtol
        )

    return to_program


@cache
def programs():
    """All programs by name, family by family; those whose blocks wait for each other come last."""
    found = {}
    modules = sorted(
        (info.name for info in pkgutil.iter_modules(__path__)), key=lambda m: (m == "waiting", m)
    )
    for module in modules:
        for value in vars(importlib.import_module(f"{__name__}.{module}")).values():
            if isinstance(value, Program):
                assert found.setdefault(value.name, value) is value, f"two programs are called {value.name}"
    return found


def check(case, after):
    """Raise AssertionError unless the arguments `after` the launch hold what they should."""
    before, expected = case.make_args(), case.expected(*case.make_args())
    assert len(before) == len(expected) == len(after), f"{case.name}: an entry for each argument"
    wanted = [given if want is None else want for given, want in zip(before, expected)]
    for position, (want, got) in enumerate(zip(wanted, case.seen(*after), strict=True)):
        want, got = np.asarray(want), np.asarray(got)
        assert want.shape == got.shape, f"{case.name}, argument {position}: {want.shape} and {got.shape}"
        message = f"{case.name}: argument {position}"
        if want.dtype.kind in "fc":
            np.testing.assert_allclose(got, want, rtol=case.rtol, atol=case.rtol, err_msg=message)
        else:
            np.testing.assert_array_equal(got, want, err_msg=message)


def integers(low, high, *shape, dtype=np.int32, seed=0):
    """Reproducible random integers from low up to, not including, high."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def floats(*shape, dtype=np.float32, seed=0):
    """Reproducible random numbers from 0.5 up to 1.5: sums of them lose little to rounding."""
    return (np.random.default_rng(seed).random(shape) + 0.5).astype(dtype)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)
