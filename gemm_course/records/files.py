"""How to read each of the records.

gpu: its name, as `gemm_course.records.folders` has it. data: a folder in which its folder lies instead.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gemm_course.records import columns
from gemm_course.records.folders import DATA, Place, place, places
from gemm_course.records.tables import parse_tiles

if TYPE_CHECKING:
    import pandas as pd

MACHINE_CODE = "machine_code"  # the one folder that is no GPU's: nothing in it was measured


def gpus(data: Path | None = None) -> list[str]:
    """The GPUs that something was measured on, by the names of their folders, such as ["h200"].

    data: a folder of such folders, to look in that alone; without it, every `places`.
    """
    if data is None:
        return [each.name for each in places()]
    return sorted(folder.name for folder in data.glob("*") if folder.is_dir() and folder.name != MACHINE_CODE)


def folder_of(gpu: str | Place, data: Path | None = None) -> Path:
    """Where a GPU's records lie, by its name, or in the folder `data`. Raises UnknownGpu for a name."""
    return place(gpu).folder if data is None else data / gpu


def ladder(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """The ladder's stages beside cuBLAS, a row a measurement; no rows if there is no record for this GPU."""
    return columns.LADDER.read(folder_of(gpu, data) / "ladder.csv")


def correctness(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Checks against float64 at odd shapes, a row a stage and shape; `verdict` is "right" or the fault."""
    return columns.CORRECTNESS.read(folder_of(gpu, data) / "correctness.csv")


def compile_times(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """How long defaults and the fastest tile choices took to compile, in seconds, a row a choice."""
    return columns.COMPILED.read(folder_of(gpu, data) / "compile_times.csv")


def stage_sanitizer(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """compute-sanitizer on the ladder, a row a stage, tool and shape; `verdict` is "clean" or what it was."""
    return columns.SANITIZER.read(folder_of(gpu, data) / "stage_sanitizer.csv")


def sweep(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """The tile sweep, a row a tile choice; `reason` is empty where it was measured."""
    return columns.SWEEP.read(folder_of(gpu, data) / "sweep.csv")


def row_lengths(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """The naive kernels with rows of different length, a row per stage, block, size and leading dimension."""
    return columns.ROW_LENGTHS.read(folder_of(gpu, data) / "row_lengths.csv")


def counters(group: str = "ladder", gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Nsight Compute's counters of one group of kernels, a row a launch."""
    return columns.COUNTERS.read(folder_of(gpu, data) / "counters" / f"{group}.csv")


def profiles(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """What Nsight Compute measured of whole kernels, a row for each kernel, tile choice and size.

    What it found per instruction: :func:`gemm_course.profiles.recorded`.
    """
    return columns.PROFILE.read(folder_of(gpu, data) / "profile" / "kernels.csv")


def roofs(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Measured bandwidths in TB/s by memory: "DRAM", "L2", "shared"."""
    return columns.ROOFS.read(folder_of(gpu, data) / "roofs.csv")


def compute_roofs(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Measured TFLOPS by unit: "FP32", "mma FP16", "wgmma FP16"."""
    return columns.COMPUTE_ROOFS.read(folder_of(gpu, data) / "compute_roofs.csv")


def tensor_core_sums(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """What Tensor Cores made of sums that show how they add, a row per case."""
    return columns.TENSOR_CORE_SUMS.read(folder_of(gpu, data) / "tensor_core_sums.csv")


def lane_layouts(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """`warp_tiled` with eight layouts of a warp's lanes, timed in turn, a row per layout."""
    return columns.LANE_LAYOUTS.read(folder_of(gpu, data) / "lane_layouts.csv")


def one_change(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Stages beside themselves with one thing changed, timed in turn: a row per kernel of each question."""
    return columns.ONE_CHANGE.read(folder_of(gpu, data) / "one_change.csv")


def one_change_counted(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """What Nsight Compute counted in one launch of kernels of :func:`one_change`, a row per kernel."""
    return columns.ONE_CHANGE_COUNTED.read(folder_of(gpu, data) / "one_change_counted.csv")


def peers(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Other people's kernels, measured on this GPU."""
    return columns.PEERS.read(folder_of(gpu, data) / "peers.csv")


def peers_apart(gpu: str | Place = "h200", data: Path | None = None) -> pd.DataFrame:
    """Document 004's author's kernels with one thing changed: `change` in the source, `option` of nvcc."""
    return columns.PEERS_APART.read(folder_of(gpu, data) / "peers_apart.csv")


def machine_code(data: Path = DATA) -> pd.DataFrame:
    """What the ladder's stages compile to, a row per stage and compute capability: "8.0", "8.6", "9.0".

    Counts of instructions by kind, of the whole kernel and, as `loop_...`, of the main loop. The
    code itself: :func:`gemm_course.compiler.recorded`.
    """
    return columns.MACHINE_CODE.read(data / MACHINE_CODE / "stages.csv")


def published(data: Path = DATA) -> pd.DataFrame:
    """What documents and repositories report, on their authors' GPUs."""
    return columns.PUBLISHED.read(data / "published.csv")


def best_tiles(stage: str, gpu: str | Place = "h200", data: Path | None = None) -> dict[str, int] | None:
    """The fastest tiles the sweep measured for a stage, or None if it measured none."""
    rows = sweep(gpu, data)
    rows = rows[(rows["stage"] == stage) & rows["tflops"].notna()]
    if rows.empty:
        return None
    return parse_tiles(rows.loc[rows["tflops"].idxmax(), "tiles"])
