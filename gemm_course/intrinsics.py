"""Keeps the old name of :mod:`lockstep.intrinsics`, for notebooks and files of learners that use it."""

from lockstep.intrinsics import *  # noqa: F403
