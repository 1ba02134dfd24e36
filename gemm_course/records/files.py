"""Reads each kind of record.

In all readers, ``gpu`` is a name that `gemm_course.records.folders` knows, and ``data`` is a folder in which
the GPU's folder is looked for instead.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gemm_course.records import columns
from gemm_course.records.folders import DATA, Place, place, places
from gemm_course.records.tables import parse_tiles

if TYPE_CHECKING:
    import pandas as pd

# This folder belongs to no GPU, since nothing in it was measured.
MACHINE_CODE = "machine_code"


def gpus(data: Path | None = None) -> list[str]:
    """Return the names of the folders of all GPUs with records, such as ["h200"].

    With ``data``, look only in this folder of such folders, and without it in all of `places`.
    """
    if data is None:
        return [each.name for each in places()]
    return sorted(folder.name for folder in data.glob("*") if folder.is_dir() and folder.name != MACHINE_CODE)


def folder_of(gpu: str | Place, data: Path | None = None) -> Path:
    """Return the folder of a GPU's records, or its folder in `data`. Raise UnknownGpu for an unknown name."""
    return place(gpu).folder if data is None else data / gpu


def ladder(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Return the ladder's stages beside cuBLAS, a row per measurement, or no rows if there is no record."""
    return columns.LADDER.read(folder_of(gpu, data) / "ladder.csv")


def correctness(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Return checks against float64 at odd shapes, a row per stage and shape.

    `verdict` is "right" or the fault.
    """
    return columns.CORRECTNESS.read(folder_of(gpu, data) / "correctness.csv")


def compile_times(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Return how many seconds defaults and the fastest tile choices took to compile, a row per choice."""
    return columns.COMPILED.read(folder_of(gpu, data) / "compile_times.csv")


def stage_sanitizer(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Return the results of compute-sanitizer on the ladder, a row per stage, tool and shape.

    `verdict` is "clean" or another.
    """
    return columns.SANITIZER.read(folder_of(gpu, data) / "stage_sanitizer.csv")


def sweep(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Return the tile sweep, a row per tile choice. `reason` is empty if the choice was measured."""
    return columns.SWEEP.read(folder_of(gpu, data) / "sweep.csv")


def row_lengths(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Return the naive kernels with rows of different length.

    There is a row per stage, block, size and leading dimension.
    """
    return columns.ROW_LENGTHS.read(folder_of(gpu, data) / "row_lengths.csv")


def counters(group: str = "ladder", gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Return Nsight Compute's counters of one group of kernels, a row per launch."""
    return columns.COUNTERS.read(folder_of(gpu, data) / "counters" / f"{group}.csv")


def profiles(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Return what Nsight Compute measured of whole kernels, a row for each kernel, tile choice and size.

    :func:`gemm_course.profiles.recorded` has what it measured of each instruction.
    """
    return columns.PROFILE.read(folder_of(gpu, data) / "profile" / "kernels.csv")


def roofs(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Return measured bandwidths in TB/s by memory: "DRAM", "L2", "shared"."""
    return columns.ROOFS.read(folder_of(gpu, data) / "roofs.csv")


def compute_roofs(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Return measured TFLOPS by unit: "FP32", "mma FP16", "wgmma FP16"."""
    return columns.COMPUTE_ROOFS.read(folder_of(gpu, data) / "compute_roofs.csv")


def tensor_core_sums(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Return the results of sums that show how Tensor Cores add, a row per case."""
    return columns.TENSOR_CORE_SUMS.read(folder_of(gpu, data) / "tensor_core_sums.csv")


def lane_layouts(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Return `warp_tiled` with eight layouts of a warp's lanes, timed in turn, a row per layout."""
    return columns.LANE_LAYOUTS.read(folder_of(gpu, data) / "lane_layouts.csv")


def one_change(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Return stages as they are and with one thing changed, timed in turn.

    There is a row per kernel of each question.
    """
    return columns.ONE_CHANGE.read(folder_of(gpu, data) / "one_change.csv")


def one_change_counted(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Return what Nsight Compute counted in one launch of each kernel of :func:`one_change`, a row each."""
    return columns.ONE_CHANGE_COUNTED.read(folder_of(gpu, data) / "one_change_counted.csv")


def peers(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Return other people's kernels, measured on this GPU."""
    return columns.PEERS.read(folder_of(gpu, data) / "peers.csv")


def peers_apart(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Return document 004's author's kernels with one thing changed.

    `change` is in the source, and `option` is nvcc's.
    """
    return columns.PEERS_APART.read(folder_of(gpu, data) / "peers_apart.csv")


def machine_code(data: Path = DATA) -> pd.DataFrame:
    """Return what the ladder's stages compile to, a row per stage and compute capability.

    These are "8.0", "8.6" and "9.0". It counts instructions by kind, in the whole kernel and, as `loop_...`,
    in the main loop. :func:`gemm_course.compiler.recorded` has the code itself.
    """
    return columns.MACHINE_CODE.read(data / MACHINE_CODE / "stages.csv")


def published(data: Path = DATA) -> pd.DataFrame:
    """Return what documents and repositories report, on their authors' GPUs."""
    return columns.PUBLISHED.read(data / "published.csv")


def best_tiles(stage: str, gpu: str | Place = "h200", data: Path | None = None) -> dict[str, int] | None:
    """Return the fastest tiles that the sweep has measured for a stage, or None if it has measured none."""
    rows = sweep(gpu, data)
    rows = rows[(rows["stage"] == stage) & rows["tflops"].notna()]
    if rows.empty:
        return None
    return parse_tiles(rows.loc[rows["tflops"].idxmax(), "tiles"])
