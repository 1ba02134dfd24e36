"""Random kernels of all kinds: a launch ends with a result or with one of the emulator's own errors.

The examples of a run are the same every time; `python -m lockstep_tests.test_fuzz 600` draws new ones for so
many seconds, and shows what fails.
"""

import contextlib
import io
import itertools
import random
import sys
import time
import traceback
import warnings

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockstep import EmulatorError, EmulatorFault, Report, emulate
from lockstep_tests.sampling import examples
from lockstep_tests.wild_kernels import WildKernel, wild_kernel


def run(wild: WildKernel, arguments: tuple) -> Report | EmulatorError | None:
    """The report or the error of a launch; None if Python itself refuses the source."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore", SyntaxWarning)
        kernel = wild.load()
        if kernel is None:
            return None
        try:
            report = emulate(kernel, wild.grid, wild.block, *arguments, **wild.options)
        except EmulatorFault as fault:
            raise AssertionError(f"{fault}\n{wild}") from fault
        except EmulatorError as refused:
            return refused
    assert str(report) and report._repr_html_()
    return report


def check(wild: WildKernel):
    before, after = wild.args(), wild.args()
    outcome = run(wild, after)
    if isinstance(outcome, EmulatorError):
        assert len(str(outcome).split()) > 4, f"{outcome!r}\n{wild}"
        for old, new in zip(before, after, strict=True):
            if isinstance(old, np.ndarray):
                np.testing.assert_array_equal(old, new, err_msg=str(wild))


@settings(
    derandomize=True,
    max_examples=examples(80, one_in=4),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.randoms(use_true_random=False))
def test_any_kernel_runs_or_is_refused(drawn):
    check(wild_kernel(drawn))


@settings(
    derandomize=True,
    max_examples=examples(40, one_in=4),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.randoms(use_true_random=False))
def test_kernels_with_few_mistakes_run_or_are_refused(drawn):
    check(wild_kernel(drawn, wildness=0))


def main():
    """Draw kernels for so many seconds; show each that fails."""
    first, until = int(time.time()), time.monotonic() + float(sys.argv[1])
    for seed in itertools.count(first):
        if time.monotonic() > until:
            print(f"{seed - first} kernels, the first from seed {first}")
            return
        try:
            check(wild_kernel(random.Random(seed), wildness=seed % 3))
        except Exception:
            print(f"seed {seed}, wildness {seed % 3}")
            traceback.print_exc()


if __name__ == "__main__":
    main()
