"""NVIDIA's compute-sanitizer on every stage: out-of-bounds accesses, races, uninitialised reads, barriers.

`tool` runs any program under it and reads its output; `stages` does so for stages of the ladder, which
`child` launches.
"""

from gemm_course.bench.sanitizer.stages import SHAPES, sanitize_stages
from gemm_course.bench.sanitizer.tool import TOOLS, NoSanitizer

__all__ = ["SHAPES", "TOOLS", "NoSanitizer", "sanitize_stages"]
