"""Profiles of kernels by Nsight Compute: those of the records, and those of learners' kernels.

`ncu` starts Nsight Compute on a `child` process, which launches the cases of a source (`sources`). `measure`
does so for one launch and reads what was measured with `pages`; `join` adds the compiler's machine code.
`record` profiles many kernels and keeps the profiles, `own` profiles one kernel of a learner.
"""

from gemm_course.bench.profile.measure import NotProfiled
from gemm_course.bench.profile.own import profiled

__all__ = ["NotProfiled", "profiled"]
