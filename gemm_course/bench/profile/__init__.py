"""Profiles of kernels by Nsight Compute: which are recorded, and how; a learner's own.

`measure` launches one kernel under Nsight Compute and reads its pages with `pages`; `join` brings them
together with the compiler's machine code. `record` does so for many and keeps what comes of it, `own` for one
kernel of a learner's.
"""

from gemm_course.bench.profile.measure import NotProfiled
from gemm_course.bench.profile.own import profiled

__all__ = ["NotProfiled", "profiled"]
