"""The roofs of the H200's roofline, and those that belong to a stage: it cannot rise above them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import pandas as pd

from gemm_course import records
from gemm_course.compiler import recorded
from gemm_course.figures.roofline import Roof
from gemm_course.kernels import Stage, tiles_text
from gemm_course.model import Roofline, issue_ceiling, shared_memory_ceiling

SIZE = 1024  # of the matrices that wavefronts were counted on
HOPPER = (9, 0)
BY_TMA = "L2 by TMA"


@dataclass(frozen=True)
class Ceiling:
    """A flat roof in TFLOPS, and where it comes from: rows that were measured, or a compiler's versions."""

    label: str
    tflops: float
    measured: pd.DataFrame | None = None
    compiler: str = ""


@dataclass(frozen=True)
class Roofs:
    """What a stage cannot rise above: memories by FLOP per byte, ceilings and the `peak` of arithmetic."""

    memories: list[Roof]
    ceilings: list[Ceiling]
    peak: Ceiling

    def heights(self, intensity: float) -> list[tuple[str, float]]:
        """Each roof with the TFLOPS that it allows a kernel of this intensity."""
        slanted = [(roof.label, roof.terabytes_per_second * intensity) for roof in self.memories]
        return [*slanted, *((flat.label, flat.tflops) for flat in (*self.ceilings, self.peak))]

    def lowest(self, intensity: float) -> tuple[str, float]:
        """The roof that allows least."""
        return min(self.heights(intensity), key=lambda roof: roof[1])


@lru_cache
def model_of_the_h200() -> Roofline:
    """Return the H200's roofline: DRAM and L1 by data sheet, L2 as measured, if it was."""
    measured = records.roofs()
    measured = measured[measured["memory"].isin(("L2", BY_TMA))]
    return Roofline(measured=dict(zip(measured["memory"], measured["tb_s"], strict=True)))


def fp32_peak() -> float:
    """Return the H200's FP32 peak in TFLOPS."""
    return model_of_the_h200().peak_tflops


def tensor_peak(stages: Sequence[Stage]) -> float | None:
    """Return the H200's FP16 peak on Tensor Cores if one of the stages is FP16, else None."""
    return model_of_the_h200().gpu.fp16_tensor_tflops if any(s.dtype == "float16" for s in stages) else None


def memories(stages: Sequence[Stage]) -> list[Roof]:
    """Return a roof for each memory that matters to one of the stages.

    L2 was read with loads, each part by one block. With TMA it was also read by several blocks that want the
    same box at a time, which is faster, and is what blocks of a product do: a stage that TMA feeds gets that
    roof, if it was measured, and not that of loads.
    """
    by_tma = [fed_by_tma(stage) for stage in stages]
    left_out = {name for name, unused in ((BY_TMA, not any(by_tma)), ("L2", all(by_tma))) if unused}
    names = {"L2": "L2, by loads"} if any(by_tma) else {}
    bandwidths = model_of_the_h200().bandwidths.items()
    return [Roof(names.get(name, name), speed) for name, speed in bandwidths if name not in left_out]


@lru_cache
def roofs_of(stage: Stage) -> Roofs:
    """Return the roofs that belong to a stage with its default tiles, as far as they are known.

    All bytes pass the memory that is L1 and shared memory. What TMA fetches comes from L2; what loads and
    asynchronous copies ask for, L1 may hold, or another multiprocessor may ask for at the same time, so that
    L2 as it was read by loads is no roof. Nor is DRAM: what comes from there is not on the axis.
    """
    known = model_of_the_h200().bandwidths
    names = [name for name in ("L1", *([BY_TMA] if fed_by_tma(stage) else [])) if name in known]
    highest = tensor_peak([stage]) or fp32_peak()
    peak = Ceiling("the FP16 Tensor Core peak" if tensor_peak([stage]) else "the FP32 peak", highest)
    found = (_issue_slots(stage), _tensor_cores(stage), _shared_memory(stage, highest))
    ceilings = [ceiling for ceiling in found if ceiling and ceiling.tflops < highest]
    return Roofs([Roof(name, known[name]) for name in names], ceilings, peak)


@lru_cache
def fed_by_tma(stage: Stage) -> bool:
    """Whether TMA fetches a stage's tiles, by its machine code on record."""
    return _has(stage, "UTMALDG")


def _has(stage: Stage, opcode: str) -> bool:
    code = recorded(stage, HOPPER)
    return code is not None and any(row.opcode.startswith(opcode) for row in code.rows)


def _issue_slots(stage: Stage) -> Ceiling | None:
    """What the loop's other instructions leave to multiply-adds; None on Tensor Cores, where a product is one
    instruction of many clocks.
    """
    code = recorded(stage, HOPPER)
    if code is None or code.loop is None or stage.dtype != "float32":
        return None
    share = code.loop.share
    label = f"issue slots, {100 * share:.0f} % multiply-adds"
    return Ceiling(label, issue_ceiling(share), compiler=code.compiler)


def _tensor_cores(stage: Stage) -> Ceiling | None:
    """What the stage's instruction reaches alone, without any memory."""
    unit = "wgmma FP16" if _has(stage, "HGMMA") else "mma FP16"
    rows = records.compute_roofs()
    rows = rows[rows["unit"] == unit]
    if stage.dtype != "float16" or rows.empty:
        return None
    return Ceiling(f"{unit.split()[0]} alone, as measured", float(rows["tflops"].iloc[-1]), rows)


def _shared_memory(stage: Stage, peak: float) -> Ceiling | None:
    """What the stage's wavefronts of shared memory leave, by the hardware's counters.

    Those of asynchronous copies are left out: they do not pass the pipe that serves loads and stores. Counted
    with them, `wmma` with blocks of 64 × 64 and a padding of 16 would have 1.37 wavefronts per clock, and the
    pipe's own counter says 0.83.
    """
    rows = records.counters("ladder")
    case = f"{stage.name} {SIZE}x{SIZE}x{SIZE}"
    rows = rows[(rows["case"] == case) & (rows["tiles"] == tiles_text(stage.tiles))]
    if rows.empty:
        return None
    wavefronts = int((rows["shared_wavefronts"] - rows["async_copy_wavefronts"]).iloc[0])
    height = shared_memory_ceiling(wavefronts, SIZE**3, peak=peak)
    return Ceiling("shared memory, loads and stores", height, rows)
