"""Keeps what was once measured of kernels on a GPU, so that it can be seen without a GPU."""

from gemm_course.profiles.profile import NoProfile, Profile, recorded
from gemm_course.profiles.verdict import Verdict, verdict
from gemm_course.profiles.waits import WAITS, Wait

__all__ = ["NoProfile", "Profile", "recorded", "WAITS", "Wait", "Verdict", "verdict"]
