"""Small kernels that are wrong in one known way, and small kernels that are right.

A broken kernel marks the line at fault in its own source, `# <- shared_race tile`: the kind of the
finding, and, if needed, the array. For a race the mark is on the line of the later access. Tests of the
emulator and runs of compute-sanitizer on a GPU both take their kernels from here, so every one is valid
numba.cuda code that compiles and runs on hardware.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np

ADVICE = {"float64_arithmetic", "dynamic_local_index", "negative_index", "barrier_in_branch"}
ERRORS = {
    "out_of_bounds",
    "shared_race",
    "global_race",
    "uninitialised_read",
    "barrier_divergence",
    "warp_divergence",
    "misaligned_access",
    "async_read_too_early",
}
KINDS = ERRORS | ADVICE
MARK = re.compile(r"#\s*<-\s*(?P<kind>\w+(?:\|\w+)*)(?:\s+(?P<array>\w+))?\s*$")


@dataclass(frozen=True)
class Mark:
    """The line (in its file) where a finding belongs, and the array if the mark names one.

    kinds: the kind of the finding, or both if two kinds are right, `shared_race|async_read_too_early`.
    """

    kinds: tuple[str, ...]
    line: int
    array: str | None


@dataclass(frozen=True)
class Case:
    """A kernel with a launch: what to run, and the expected result.

    kind: the finding expected, None for a sound kernel.
    make_args: returns fresh arguments for one launch. expected: takes these and returns what they must hold
    after it, None for one that must not change. helpers: device functions of the kernel that may carry
    marks. blocks: the blocks the finding may name.
    """

    name: str
    kernel: object
    kind: str | None
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    make_args: Callable[[], tuple]
    expected: Callable[..., tuple] | None = None
    shared_bytes: int = 0
    helpers: tuple = ()
    blocks: tuple = ()
    rtol: float = 1e-5
    marks: tuple[Mark, ...] = field(default=())


def marks_of(*functions):
    """Every mark in the source of the functions, with its line in the file."""
    found = []
    for function in functions:
        lines, first = inspect.getsourcelines(getattr(function, "py_func", function))
        for offset, text in enumerate(lines):
            match = MARK.search(text.rstrip())
            if match:
                found.append(Mark(tuple(match["kind"].split("|")), first + offset, match["array"]))
    return tuple(found)


def broken_case(kind, *, grid, block, args, shared_bytes=0, helpers=(), blocks=()):
    """Make a broken case of the kernel below: at least one of its lines has a mark of this kind."""
    assert kind in KINDS, kind

    def to_case(kernel):
        marks = marks_of(kernel, *helpers)
        assert any(kind in mark.kinds for mark in marks), (
            f"{kernel.py_func.__name__}: no line is marked {kind}"
        )
        return Case(
            name=kernel.py_func.__name__,
            kernel=kernel,
            kind=kind,
            grid=grid,
            block=block,
            make_args=args,
            shared_bytes=shared_bytes,
            helpers=helpers,
            blocks=blocks,
            marks=marks,
        )

    return to_case


def sound_case(*, grid, block, args, expected, shared_bytes=0, rtol=1e-5):
    """Make a sound case of the kernel below: no errors, and the results of `expected`."""

    def to_case(kernel):
        return Case(
            name=kernel.py_func.__name__,
            kernel=kernel,
            kind=None,
            grid=grid,
            block=block,
            make_args=args,
            expected=expected,
            shared_bytes=shared_bytes,
            rtol=rtol,
        )

    return to_case


@cache
def cases(package):
    """All cases of "broken" or "sound", by name."""
    parent = importlib.import_module(f"{__name__}.{package}")
    found = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(parent.__path__)):
        for value in vars(importlib.import_module(f"{parent.__name__}.{module}")).values():
            if isinstance(value, Case):
                assert found.setdefault(value.name, value) is value, f"two cases are called {value.name}"
    return found


def compare(case, after):
    """Raise AssertionError unless the arguments `after` one launch of a sound case hold what they should."""
    before = case.make_args()
    for position, (given, wanted, got) in enumerate(
        zip(before, case.expected(*case.make_args()), after, strict=True)
    ):
        np.testing.assert_allclose(
            np.asarray(got, dtype=np.float64),
            np.asarray(given if wanted is None else wanted, dtype=np.float64),
            rtol=case.rtol,
            atol=case.rtol,
            err_msg=f"{case.name}: argument {position}",
        )


def zeros(*shape, dtype=np.float32):
    """An array of zeros of the shape, float32 by default."""
    return np.zeros(shape, dtype)


def ramp(*shape, dtype=np.float32):
    """1, 2, 3, ... in the shape, float32 by default: every element differs, none is zero."""
    return np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype)


def noise(*shape, dtype=np.float32, seed=0):
    """Reproducible random numbers in [-1, 1)."""
    return (np.random.default_rng(seed).random(shape) * 2 - 1).astype(dtype)
