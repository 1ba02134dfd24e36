"""Reads and writes `data/`: what was measured and what others published, with the origin of each figure.

    records.ladder("h200")            the stages beside cuBLAS
    records.sweep("h200")             every tile choice, measured
    records.row_lengths()             the naive kernels with longer rows
    records.counters("ladder")        Nsight Compute's counters, "ladder" or another group
    records.peers(), records.published()
    records.machine_code()            what the stages compile to, counted
    records.profiles()                what Nsight Compute measured of whole kernels
    records.provenance(frame)         "NVIDIA H200, driver 580, CUDA 13.0, ..., 2026-11-21"

Every reader takes a GPU's name, "h200" by default. `records.gpus()` lists the names. `folders.py` finds the
GPUs' folders: in `data/`, and where the variable GEMM_COURSE_DATA says.

`data/README.md` says how each file was made and what its columns mean.
"""

from gemm_course.records.files import (
    best_tiles,
    compile_times,
    compute_roofs,
    correctness,
    counters,
    folder_of,
    gpus,
    ladder,
    lane_layouts,
    machine_code,
    one_change,
    one_change_counted,
    peers,
    peers_apart,
    profiles,
    published,
    roofs,
    row_lengths,
    stage_sanitizer,
    sweep,
    tensor_core_sums,
)
from gemm_course.records.folders import DATA, SHIPPED, VARIABLE, Place, UnknownGpu, place, places, short_of
from gemm_course.records.provenance import origin, provenance
from gemm_course.records.tables import Table, parse_tiles

__all__ = [
    "DATA",
    "SHIPPED",
    "VARIABLE",
    "Place",
    "Table",
    "UnknownGpu",
    "best_tiles",
    "compile_times",
    "compute_roofs",
    "correctness",
    "counters",
    "folder_of",
    "gpus",
    "ladder",
    "lane_layouts",
    "one_change",
    "one_change_counted",
    "machine_code",
    "origin",
    "parse_tiles",
    "peers",
    "peers_apart",
    "place",
    "places",
    "profiles",
    "provenance",
    "published",
    "roofs",
    "row_lengths",
    "short_of",
    "stage_sanitizer",
    "sweep",
    "tensor_core_sums",
]
