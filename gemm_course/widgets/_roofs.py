"""The roofs of the H200's roofline, and those that belong to a stage: it cannot rise above them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from gemm_course import records
from gemm_course.compiler import recorded
from gemm_course.figures.roofline import Roof
from gemm_course.kernels import Stage, tiles_text
from gemm_course.model import Roofline, issue_ceiling, shared_memory_ceiling

SIZE = 1024  # of the matrices that wavefronts were counted on
HOPPER = (9, 0)
BY_TMA = "L2 by TMA"
_FETCHES = ("LDG", "LDGSTS", "UTMALDG")  # the instructions that read global memory
_KEPT_BY_L1 = ("LDG.", "LDGSTS.E")  # unless they say BYPASS


@dataclass(frozen=True)
class Roofs:
    """What a stage cannot rise above: memories by FLOP per byte, ceilings and `peak` in TFLOPS."""

    memories: list[Roof]
    ceilings: list[tuple[str, float]]
    peak: tuple[str, float]
    source: str  # where the ceilings come from

    def heights(self, intensity: float) -> list[tuple[str, float]]:
        """Each roof with the TFLOPS that it allows a kernel of this intensity."""
        slanted = [(roof.label, roof.terabytes_per_second * intensity) for roof in self.memories]
        return [*slanted, *self.ceilings, self.peak]

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

    L2 was read with loads; TMA reads faster, so a stage that it feeds gets the roof measured with TMA, if
    there is one, and not that of loads.
    """
    by_tma = [fed_from(stage) == BY_TMA for stage in stages]
    left_out = {name for name, unused in ((BY_TMA, not any(by_tma)), ("L2", all(by_tma))) if unused}
    names = {"L2": "L2, by loads"} if any(by_tma) else {}
    bandwidths = model_of_the_h200().bandwidths.items()
    return [Roof(names.get(name, name), speed) for name, speed in bandwidths if name not in left_out]


@lru_cache
def roofs_of(stage: Stage) -> Roofs:
    """Return the roofs that belong to a stage with its default tiles, as far as they are known.

    All bytes pass the memory that is L1 and shared memory. Those that TMA or a copy past L1 fetches come from
    L2; what ordinary loads ask for L1 may hold. DRAM is no roof here: what comes from there is not on the axis.
    """
    known, fed = model_of_the_h200().bandwidths, fed_from(stage)
    names = [name for name in dict.fromkeys(("L1", fed)) if name in known]
    fp16 = stage.dtype == "float16"
    peak = ("the FP16 Tensor Core peak", tensor_peak([stage])) if fp16 else ("the FP32 peak", fp32_peak())
    found = [ceiling for ceiling in (_issue_slots(stage), _shared_memory(stage, peak[1])) if ceiling]
    ceilings = [(label, height) for label, height, _ in found if height < peak[1]]
    sources = " ".join(source for _, height, source in found if height < peak[1])
    return Roofs([Roof(name, known[name]) for name in names], ceilings, peak, sources)


@lru_cache
def fed_from(stage: Stage) -> str:
    """Return the nearest memory that a stage's tiles of A and B come from: "L1", "L2" or "L2 by TMA".

    Its machine code for 9.0 says so; without a record of it, "L1", which serves every load.
    """
    code = recorded(stage, HOPPER)
    opcodes = {row.opcode for row in code.rows} if code else set()
    if any(opcode.startswith("UTMALDG") for opcode in opcodes):
        return BY_TMA
    fetched = [row.opcode for row in code.loop.rows if row.opcode.startswith(_FETCHES)] if code else []
    copies = [opcode for opcode in fetched if opcode != "LDGDEPBAR"]
    return "L2" if copies and all("BYPASS" in opcode for opcode in copies) else "L1"


def _issue_slots(stage: Stage) -> tuple[str, float, str] | None:
    """What the loop's other instructions leave to multiply-adds; None on Tensor Cores, where a product is one
    instruction of many clocks.
    """
    code = recorded(stage, HOPPER)
    if code is None or code.loop is None or stage.dtype != "float32":
        return None
    share = code.loop.share
    label = f"issue slots, {share:.0%} multiply-adds"
    return label, issue_ceiling(share), f"Loop: {code.compiler}."


def _shared_memory(stage: Stage, peak: float) -> tuple[str, float, str] | None:
    """What all of the stage's wavefronts of shared memory leave, by the hardware's counter."""
    rows = records.counters("ladder")
    rows = rows[(rows["case"] == f"{stage.name} {SIZE}x{SIZE}x{SIZE}") & (rows["tiles"] == _default(stage))]
    if rows.empty or not rows["shared_wavefronts"].iloc[0]:
        return None
    height = shared_memory_ceiling(int(rows["shared_wavefronts"].iloc[0]), math.prod((SIZE,) * 3), peak=peak)
    return "shared memory, loads and stores", height, f"Wavefronts: {records.provenance(rows)}."


def _default(stage: Stage) -> str:
    return tiles_text(stage.tiles)
