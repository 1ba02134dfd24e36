"""Kernels as people write them: the emulator and a GPU compute what NumPy does, and nothing is accused."""

from collections import Counter

import numpy as np
import pytest
from numba import cuda

from lockstep import emulate
from lockstep_tests.families import check, programs

PROGRAMS = programs()


def test_every_family_has_several_programs():
    assert len(PROGRAMS) >= 80
    families = Counter(case.family for case in PROGRAMS.values())
    assert len(families) >= 11 and min(families.values()) >= 5, families


@pytest.mark.many(one_in=4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_emulator_computes_what_numpy_does(name):
    case = PROGRAMS[name]
    arguments = case.make_args()
    report = emulate(case.kernel, case.grid, case.block, *arguments, shared_bytes=case.shared_bytes)
    assert not report.errors, [str(finding) for finding in report.errors]
    check(case, arguments)


@pytest.mark.gpu
@pytest.mark.many(one_in=4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_gpu_computes_what_numpy_does(name):
    case = PROGRAMS[name]
    arguments = [each if np.isscalar(each) else cuda.to_device(each) for each in case.make_args()]
    case.kernel[case.grid, case.block, 0, case.shared_bytes](*arguments)
    check(case, [each if np.isscalar(each) else each.copy_to_host() for each in arguments])
