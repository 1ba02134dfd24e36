"""The old name of :mod:`lockstep.intrinsics`, for notebooks and files of learners that still use it."""

from lockstep.intrinsics import *  # noqa: F403
