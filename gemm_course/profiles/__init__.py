"""Profiles: what limited a kernel on a GPU, measured once and kept, so that it can be seen without one."""

from gemm_course.profiles.profile import NoProfile, Profile, recorded
from gemm_course.profiles.verdict import Verdict, verdict
from gemm_course.profiles.waits import WAITS, Wait

__all__ = ["NoProfile", "Profile", "recorded", "WAITS", "Wait", "Verdict", "verdict"]
