"""The stages that the files in data/ must hold records of."""

from gemm_course.kernels import LADDER


def stages_of(file: str) -> set[str]:
    """The stages that a file of data/ must know: every stage of the ladder, whichever file it is."""
    return {stage.name for stage in LADDER}
