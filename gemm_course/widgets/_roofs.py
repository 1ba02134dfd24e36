"""Finds the roofs of a GPU's roofline, and those that belong to a stage and that it cannot rise above.

``on`` is the GPU. Its roofs are those of its data sheet, and the measured one of L2. Of a GPU that the
course's table does not have, all roofs are measured ones (`python -m measuring roofs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import pandas as pd

from gemm_course import records
from gemm_course.compiler import recorded
from gemm_course.figures.roofline import Roof
from gemm_course.kernels import LADDER, Stage, tiles_text
from gemm_course.model import Gpu, issue_ceiling, shared_memory_ceiling
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets._gpus import NotKnown, hardware, not_in_the_table, remembered, to_measure

# Wavefronts were counted on square matrices of this size.
SIZE = 1024
HOPPER = (9, 0)
BY_TMA = "L2 by TMA"


@dataclass(frozen=True)
class Ceiling:
    """A flat roof in TFLOPS with its source, either measured rows or a compiler's versions."""

    label: str
    tflops: float
    measured: pd.DataFrame | None = None
    compiler: str = ""


@dataclass(frozen=True)
class Roofs:
    """The roofs that a stage cannot rise above: memories by FLOP per byte, ceilings, and the `peak`."""

    memories: list[Roof]
    ceilings: list[Ceiling]
    peak: Ceiling

    def heights(self, intensity: float) -> list[tuple[str, float]]:
        """Return each roof with the TFLOPS that it allows a kernel of this intensity."""
        slanted = [(roof.label, roof.terabytes_per_second * intensity) for roof in self.memories]
        return [*slanted, *((flat.label, flat.tflops) for flat in (*self.ceilings, self.peak))]

    def lowest(self, intensity: float) -> tuple[str, float]:
        """Return the roof that allows least, as its name and TFLOPS."""
        return min(self.heights(intensity), key=lambda roof: roof[1])


@dataclass(frozen=True)
class Rated:
    """The most that a GPU can do.

    ``gpu`` is None if the course's table does not have it. ``bandwidths`` are TB/s by memory. ``peak`` is
    TFLOPS of FP32. ``on_tensor_cores`` are TFLOPS of FP16 by the accumulators' dtype, as far as they are
    known.
    """

    gpu: Gpu | None
    bandwidths: Mapping[str, float]
    peak: float
    on_tensor_cores: Mapping[str, float]

    def attainable(self, intensity: float) -> float:
        """Return the TFLOPS that ``intensity``, in FLOP per byte of DRAM, allows, at most the peak."""
        return min(self.peak, intensity * self.bandwidths["DRAM"])

    def ridge(self) -> float:
        """Return the intensity from which the peak, not DRAM, is the limit."""
        return self.peak / self.bandwidths["DRAM"]


@remembered
def rated(on: Place = SHIPPED) -> Rated:
    """Return a GPU's roofs.

    DRAM and L1 are by data sheet, and L2 as measured, if it was. Without a data sheet, all are as measured.
    Raise NotKnown, with what to run.
    """
    rows, gpu = records.roofs(on), hardware(on)
    measured = dict(zip(rows["memory"], map(float, rows["tb_s"]), strict=True))
    l2 = {name: measured[name] for name in measured if name in ("L2", BY_TMA)}
    if gpu:
        fp16 = {"float32": gpu.fp16_tensor_tflops, "float16": gpu.fp16_acc_tensor_tflops}
        fp16 = {acc: value for acc, value in fp16.items() if value}
        return Rated(gpu, {"DRAM": gpu.dram_tb_s, "L1": gpu.l1_tb_s, **l2}, gpu.peak_fp32_tflops, fp16)
    rows = records.compute_roofs(on)
    units = dict(zip(rows["unit"], map(float, rows["tflops"]), strict=True))
    if not {"DRAM", "shared"} <= measured.keys() or "FP32" not in units:
        roofs = to_measure("Its memories and arithmetic units were", on, "roofs")
        raise NotKnown(f"{not_in_the_table(on.short)} {roofs}")
    fastest = max((speed for unit, speed in units.items() if unit.endswith("FP16")), default=None)
    fp16 = {"float32": fastest} if fastest else {}
    return Rated(None, {"DRAM": measured["DRAM"], "L1": measured["shared"], **l2}, units["FP32"], fp16)


def roofs_in_words(on: Place) -> str:
    """Say what a reader must know of another GPU's roofs. Return "" for the H200."""
    if on == SHIPPED:
        return ""
    if rated(on).gpu is None:
        return f"Roofs as measured, L1 as shared memory: the course's table of GPUs does not have {on.an}."
    if "L2" not in rated(on).bandwidths:
        return to_measure("L2 was", on, "roofs")
    return ""


def fp32_peak(on: Place = SHIPPED) -> float:
    """Return a GPU's FP32 peak in TFLOPS."""
    return rated(on).peak


def tensor_peak(stages: Sequence[Stage], on: Place = SHIPPED) -> float | None:
    """Return a GPU's FP16 peak on Tensor Cores in TFLOPS, or None.

    It is None if none of the stages is FP16, or if the peak is unknown. Of several stages with different
    accumulators, it is the peak of the faster ones.
    """
    known = rated(on).on_tensor_cores
    peaks = [known.get(stage.accumulate) for stage in stages if stage.dtype == "float16"]
    return max(filter(None, peaks), default=None)


def memories(stages: Sequence[Stage], on: Place = SHIPPED) -> list[Roof]:
    """Return a roof for each memory that matters to one of the stages.

    L2 was read with loads, each part by one block. With TMA it was also read by several blocks that want the
    same box at a time. That is faster, and is what blocks of a product do. A stage that TMA feeds gets that
    roof, if it was measured, and not that of loads.
    """
    by_tma = [fed_by_tma(stage) for stage in stages]
    left_out = {name for name, unused in ((BY_TMA, not any(by_tma)), ("L2", all(by_tma))) if unused}
    names = {"L2": "L2, by loads"} if any(by_tma) else {}
    bandwidths = rated(on).bandwidths.items()
    return [Roof(names.get(name, name), speed) for name, speed in bandwidths if name not in left_out]


@remembered
def roofs_of(stage: Stage, on: Place = SHIPPED) -> Roofs:
    """Return the roofs that belong to a stage with its default tiles, as far as they are known.

    All bytes pass the memory that is L1 and shared memory. What TMA fetches comes from L2. L1 may hold what
    loads and asynchronous copies ask for, or another multiprocessor may ask for it at the same time. So L2 as
    it was read by loads is no roof. Nor is DRAM, because its bytes are not on the axis.
    """
    known = rated(on).bandwidths
    names = [name for name in ("L1", *([BY_TMA] if fed_by_tma(stage) else [])) if name in known]
    on_tensor_cores = tensor_peak([stage], on)
    if on_tensor_cores is None and stage.dtype == "float16":
        raise NotKnown(to_measure(f"Tensor Cores, on which {stage.name} computes, were", on, "roofs"))
    highest = on_tensor_cores or fp32_peak(on)
    peak = Ceiling("the FP16 Tensor Core peak" if on_tensor_cores else "the FP32 peak", highest)
    found = (_issue_slots(stage, on), _tensor_cores(stage, on), _shared_memory(stage, highest, on))
    ceilings = [ceiling for ceiling in found if ceiling and ceiling.tflops < highest]
    return Roofs([Roof(name, known[name]) for name in names], ceilings, peak)


def not_compiled(stages: Sequence[Stage]) -> str:
    """Say which stages of the ladder lack roofs because their machine code is not on record.

    Return "" for none.
    """
    names = [stage.name for stage in stages if stage.name in LADDER and recorded(stage, HOPPER) is None]
    if not names:
        return ""
    command = f"gemm-course compile --record {' '.join(names)}"
    return f"Roofs that follow from machine code are missing: `{command}` records it, without a GPU."


@cache
def fed_by_tma(stage: Stage) -> bool:
    """Tell whether TMA fetches a stage's tiles, by its machine code on record."""
    return _has(stage, "UTMALDG")


def _has(stage: Stage, opcode: str) -> bool:
    code = recorded(stage, HOPPER)
    return code is not None and any(row.opcode.startswith(opcode) for row in code.rows)


def _issue_slots(stage: Stage, on: Place) -> Ceiling | None:
    """Return the ceiling that the loop's other instructions leave to multiply-adds.

    Return None on Tensor Cores, where a product is one instruction of many clocks.
    """
    gpu = rated(on).gpu
    code = gpu and recorded(stage, gpu.compute_capability)
    if code is None or code.loop is None or stage.dtype != "float32":
        return None
    share = code.loop.share
    label = f"issue slots, {100 * share:.0f} % multiply-adds"
    return Ceiling(label, issue_ceiling(share, gpu), compiler=code.compiler)


def _tensor_cores(stage: Stage, on: Place) -> Ceiling | None:
    """Return the ceiling that the stage's instruction reaches alone, without any memory."""
    unit = "wgmma FP16" if _has(stage, "HGMMA") else "mma FP16"
    rows = records.compute_roofs(on)
    rows = rows[rows["unit"] == unit]
    if stage.dtype != "float16" or rows.empty:
        return None
    return Ceiling(f"{unit.split()[0]} alone, as measured", float(rows["tflops"].iloc[-1]), rows)


def _shared_memory(stage: Stage, peak: float, on: Place) -> Ceiling | None:
    """Return the ceiling that the stage's wavefronts of shared memory leave, by the hardware's counters.

    Those of asynchronous copies are left out, because they do not pass the pipe that serves loads and stores.
    Counted with them, `wmma` with blocks of 64 × 64 and a padding of 16 would have 1.37 wavefronts per clock,
    and the pipe's own counter says 0.83.
    """
    gpu, rows = rated(on).gpu, records.counters("ladder", on)
    case = f"{stage.name} {SIZE}x{SIZE}x{SIZE}"
    rows = rows[(rows["case"] == case) & (rows["tiles"] == tiles_text(stage.tiles))]
    if rows.empty or gpu is None:
        return None
    wavefronts = int((rows["shared_wavefronts"] - rows["async_copy_wavefronts"]).iloc[0])
    height = shared_memory_ceiling(wavefronts, SIZE**3, gpu, peak)
    return Ceiling("shared memory, loads and stores", height, rows)
