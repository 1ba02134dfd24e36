"""A made-up GPU's folder of records: the H200's, changed, and marked as made up in every row.

`python -m tests.records.made_up FOLDER` writes one; with GEMM_COURSE_DATA=FOLDER, pictures show it.
"""

import os
import sys
from pathlib import Path

from gemm_course import records
from gemm_course.records import columns

TABLES = {
    "ladder.csv": columns.LADDER,
    "sweep.csv": columns.SWEEP,
    "row_lengths.csv": columns.ROW_LENGTHS,
    "roofs.csv": columns.ROOFS,
    "compute_roofs.csv": columns.COMPUTE_ROOFS,
    "counters/ladder.csv": columns.COUNTERS,
}
NEW_ENOUGH = ("warp_specialised", "persistent", "wgmma_tma")  # stages that a made-up GPU did not run
SLOWER = 4


def made_up_gpu(folder: Path, gpu: str = "Made-up GPU 1", tables: tuple[str, ...] = tuple(TABLES)) -> Path:
    """Write tables for a GPU that does not exist, a quarter as fast as the H200; return the folder.

    Its cuBLAS is a third as fast, so that shares differ, too.
    """
    for number, name in enumerate(tables):
        table = TABLES[name]
        rows = [
            _slower(row) | {"gpu": gpu, "driver": "made up"}
            for row in table.rows(records.SHIPPED.folder / name)
            if row.get("stage") not in NEW_ENOUGH and row.get("unit") != "wgmma FP16"
        ]
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.stat().st_mtime_ns if path.exists() else 0
        table.write(path, rows)
        os.utime(path, ns=(before + 1 + number,) * 2) if before else None
    return folder


def _slower(row: dict) -> dict:
    changed = {name: row[name] / SLOWER for name in ("tflops", "tb_s") if row.get(name)}
    if row.get("cublas_tflops"):
        changed["cublas_tflops"] = row["cublas_tflops"] / 3
        changed["ratio_to_cublas"] = row["ratio_to_cublas"] * 3 / SLOWER if row["ratio_to_cublas"] else None
    if row.get("milliseconds"):
        changed["milliseconds"] = row["milliseconds"] * SLOWER
    return row | changed


if __name__ == "__main__":
    print(made_up_gpu(Path(sys.argv[1])))
