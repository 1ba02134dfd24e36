"""Keeps the old name of :mod:`lockstep`, for notebooks and files of learners that still use it."""

from lockstep import *  # noqa: F403
