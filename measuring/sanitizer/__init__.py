"""Runs NVIDIA's compute-sanitizer on every stage: bounds, races, uninitialised reads, barriers.

`tool` runs any program under it and reads its output. `stages` does so for stages of the ladder, which
`child` launches.
"""

from measuring.sanitizer.stages import SHAPES, sanitize_stages
from measuring.sanitizer.tool import TOOLS, NoSanitizer

__all__ = ["SHAPES", "TOOLS", "NoSanitizer", "sanitize_stages"]
