"""Nsight Compute's hardware counters for any list of kernels, each launched once.

A list of cases is named by a `Source`; `record` starts Nsight Compute on a child process that launches the
cases, and pairs each launch with its counters.
"""

from gemm_course.bench.counters.cases import Case, Source
from gemm_course.bench.counters.record import record_counters, record_wavefronts

__all__ = ["Case", "Source", "record_counters", "record_wavefronts"]
