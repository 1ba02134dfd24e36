"""The one error that the command line shows as a sentence."""


class CourseError(Exception):
    """Something the learner can put right; its text is one sentence that says how."""
