"""Nsight Compute's hardware counters for any list of kernels, each launched once.

A list of cases is named by a `Source`; `record` starts Nsight Compute on a child process that launches the
cases, and pairs each launch with its counters.
"""

from gemm_course.bench.counters.case import Case
from gemm_course.bench.counters.record import record_counters, record_wavefronts
from gemm_course.bench.counters.sources import Source

__all__ = ["Case", "Source", "record_counters", "record_wavefronts"]
