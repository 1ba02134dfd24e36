"""The stages that the files in data/ must hold records of: all but those not measured on a GPU yet."""

from gemm_course import records
from gemm_course.kernels import LADDER

NO_WMMA = {stage.name for stage in LADDER if stage.dtype == "float16"} - {"wmma", "wmma_half_sums"}
NOT_MEASURED_YET = {
    "ladder": NO_WMMA,
    "correctness": NO_WMMA,
    "sweep": NO_WMMA | {"wmma_half_sums"},
    "counters": NO_WMMA | {"wmma", "wmma_half_sums"},
    "sanitizer": NO_WMMA | {"wmma", "wmma_half_sums"},
}


def stages_of(file: str) -> set[str]:
    """The stages that a file of data/ must know; file: a key of NOT_MEASURED_YET."""
    return {stage.name for stage in LADDER} - NOT_MEASURED_YET[file]


def measured_meanwhile(file: str) -> set[str]:
    """The stages that a file holds records of although NOT_MEASURED_YET leaves them out."""
    if file == "counters":
        named = {row.split()[0] for row in records.counters("ladder")["case"]}
    else:
        read = records.stage_sanitizer if file == "sanitizer" else getattr(records, file)
        named = set(read()["stage"])
    return named & NOT_MEASURED_YET[file]
