"""Stages with shared memory to spare: the same machine code, with fewer blocks on a multiprocessor.

They are not part of the ladder. A launch requests SPARE KB of shared memory that no thread touches, so that a
multiprocessor holds fewer blocks. Nothing else changes, registers least of all: a cap on registers would
change the code as well.
"""

from dataclasses import replace

from gemm_course.kernels import LADDER
from gemm_course.kernels.parts.base import Stage
from lockstep.limits import LIMITS

OFFERED = (0, 16, 32, 52, 60, 80, 108, 150, 200)  # KB
MOST = LIMITS[(9, 0)].shared_bytes_per_block


def with_spare(stage: Stage) -> Stage:
    """The stage with another tile size, SPARE: KB of dynamic shared memory per block, and called
    NAME_fewer_blocks."""

    def requirements(t):
        yield from stage.requirements(t)
        asked = stage.dynamic_shared_bytes(t) + 1024 * t.SPARE
        yield asked <= MOST, f"a block would request {asked} bytes of shared memory; the maximum is {MOST}"

    def build(SPARE, **tiles):
        return stage.build(**tiles)

    return replace(
        stage,
        name=f"{stage.name}_fewer_blocks",
        title=f"{stage.title}, fewer blocks per multiprocessor",
        after="",
        tiles={**stage.tiles, "SPARE": 0},
        options={**stage.options, "SPARE": OFFERED},
        requirements=requirements,
        build=build,
        dynamic_shared_bytes=lambda t: stage.dynamic_shared_bytes(t) + 1024 * t.SPARE,
        may_be_zero=stage.may_be_zero | {"SPARE"},
    )


STAGES = tuple(with_spare(LADDER[name]) for name in ("thread_tiled_1d", "thread_tiled_2d", "wmma_fp16_acc"))
