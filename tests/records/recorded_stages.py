"""The stages that data/ must hold records of: all but those whose dtype has not been measured yet."""

from gemm_course import records
from gemm_course.kernels import LADDER

NOT_MEASURED_YET = {"float16"}
MEASURED_STAGES = {stage.name for stage in LADDER if stage.dtype not in NOT_MEASURED_YET}


def measured_meanwhile() -> set[str]:
    """The stages that data/ holds records of although NOT_MEASURED_YET leaves them out."""
    named = {row.split()[0] for row in records.counters("ladder")["case"]}
    for read in (records.ladder, records.sweep, records.correctness):
        named |= set(read()["stage"])
    return named & {stage.name for stage in LADDER} - MEASURED_STAGES
