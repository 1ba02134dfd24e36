"""Profiles kernels with Nsight Compute, for the records and for learners.

`ncu` starts Nsight Compute on a `child` process, which launches the cases of a source (`sources`). `measure`
does so for one launch and reads what was measured with `pages`, and `join` adds the compiler's machine code.
`record` profiles many kernels and keeps the profiles. `own` profiles one kernel of a learner.
"""

from gemm_course.bench.profile.measure import NotProfiled
from gemm_course.bench.profile.own import profiled

__all__ = ["NotProfiled", "profiled"]
