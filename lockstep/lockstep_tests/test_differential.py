"""The emulator against a plain scalar interpreter of the same kernel: values, and every access counted."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from lockstep_tests import corpus
from lockstep_tests.random_kernels import careless_kernels, random_kernels
from lockstep_tests.sampling import examples
from lockstep_tests.scalar import NotCovered
from lockstep_tests.tables import compare_tables, emulated_table, run_both

pytest.importorskip(
    "numba_cuda", reason="asks numba-cuda's type inference, which the built-in numba.cuda lacks"
)

SOUND = corpus.cases("sound")


@settings(max_examples=examples(16, one_in=2), deadline=None, suppress_health_check=list(HealthCheck))
@given(random_kernels())
def test_random_kernels(random_kernel):
    launch, plain, report, emulated = run_both(
        random_kernel.load(), random_kernel.grid, random_kernel.block, random_kernel.args
    )
    errors = [str(finding) for finding in report.findings if finding.severity == "error"]
    assert not errors, f"{errors}\n{random_kernel.source}"
    for name, wanted, got in zip("x a k n reals wholes bins".split(), plain, emulated, strict=True):
        np.testing.assert_array_equal(got, wanted, err_msg=f"{name}\n{random_kernel.source}")
    try:
        compare_tables(launch.table(), emulated_table(report))
    except AssertionError as difference:
        raise AssertionError(f"{difference}\n{random_kernel.source}") from None
    assert report.barriers == launch.barriers


@settings(max_examples=examples(12, one_in=2), deadline=None, suppress_health_check=list(HealthCheck))
@given(careless_kernels())
def test_findings_of_careless_kernels(careless):
    """Both find the same faults in the same arrays, and every reported race is between the lines it names."""
    launch, _, report, _ = run_both(careless.load(), careless.grid, careless.block, careless.args)
    (certain, possible), told = (
        launch.faults(),
        [found for found in report.findings if found.severity == "error"],
    )
    expected = certain | possible
    accused = {(found.kind, found.array) for found in told}
    assert {(kind, array) for kind, array, _ in certain} <= accused, f"{told}\n{certain}\n{careless.source}"
    for found in told:
        named = {found.line} | ({found.other_line} if found.other_line else set())
        pairs = [lines for kind, array, lines in expected if (kind, array) == (found.kind, found.array)]
        assert any(named <= lines for lines in pairs), f"{found}\n{expected}\n{careless.source}"


@pytest.mark.many(one_in=8)
@pytest.mark.parametrize("name", SOUND)
def test_sound_corpus(name):
    case = SOUND[name]
    try:
        launch, _, report, emulated = run_both(
            case.kernel, case.grid, case.block, case.make_args, case.shared_bytes
        )
    except NotCovered as missing:
        pytest.skip(f"not covered by the scalar interpreter: {missing}")
    corpus.compare(case, emulated)
    compare_tables(launch.table(), emulated_table(report))
    assert report.barriers == launch.barriers
