"""Profiles of kernels that never ran, with what a test says was measured of them."""

from gemm_course.profiles import Profile
from gemm_course.profiles.profile import profile_of
from gemm_course.records.columns import PROFILE

SAMPLES = {"selected": 400, "not_selected": 2000, "mio": 2400, "long_sb": 1600, "barrier": 3600}
CODE = ("LDS R1, [R0]", "FFMA R2, R1, R1, R2", "BRA 0x0")


def profile(name="mine", tiles="", samples=SAMPLES, code=CODE, **measured) -> Profile:
    """A made-up profile; what is not given was not measured."""
    row = dict.fromkeys(PROFILE.columns) | {
        "stage": name,
        "tiles": tiles,
        "registers": 32,
        "local_bytes": 0,
        "static_shared_bytes": 0,
        "dynamic_shared_bytes": 0,
        "gpu": "NVIDIA H200",
        "driver": "580",
        "ncu": "2025.3.1.0",
        **measured,
    }
    nothing = [0] * len(code)
    content = {
        "compute_capability": [9, 0],
        "compiler": "made up",
        "spilled_bytes": 0,
        "text": list(code),
        "file": ["mine.py"] * len(code),
        "line": [*range(1, len(code) + 1)],
        **dict.fromkeys(("executed", "threads", "global_sectors", "shared_wavefronts"), nothing),
        "samples": {reason: [count, *nothing[1:]] for reason, count in samples.items()},
        "sources": {},
    }
    return profile_of(row, content)
