"""Defines the one error that the command line shows as a sentence."""


class CourseError(Exception):
    """An error that the learner can put right. Its text is one sentence that says how."""
