"""Which profiles are asked for beside the ladder: kernels that exist, and none that is recorded anyway."""

import math

import pytest

from gemm_course.bench.profile.cases import ASKED
from gemm_course.bench.profile.sources import stage_named
from gemm_course.kernels import LADDER, tiles_text
from gemm_course.kernels.variants import variants
from gemm_course.model import occupancy
from gemm_course.records import parse_tiles

USUAL = (4096,)
MOST = 34  # each takes some ten seconds of a GPU


def tiles_of(asked) -> dict[str, int]:
    return stage_named(asked.stage).complete(parse_tiles(asked.tiles))


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: f"{asked.stage} {asked.tiles}")
def test_it_can_be_launched_and_says_what_it_is_for(asked):
    stage, tiles = stage_named(asked.stage), tiles_of(asked)
    assert stage.rules(tiles) == []
    assert all(math.prod(stage.grid(size, size, tiles)) > 0 for size in asked.sizes) and asked.sizes
    assert asked.why.endswith((".", "?"))


def test_none_is_recorded_with_the_ladder_already():
    defaults = {(stage.name, tiles_text(stage.complete())) for stage in LADDER}
    for asked in ASKED:
        assert (asked.stage, tiles_text(tiles_of(asked))) not in defaults or USUAL[0] not in asked.sizes


def test_none_is_asked_for_twice():
    wanted = [(asked.stage, tiles_text(tiles_of(asked)), size) for asked in ASKED for size in asked.sizes]
    assert len(set(wanted)) == len(wanted) <= MOST


def test_the_name_of_a_stage_or_a_variant_is_enough():
    assert stage_named("vectorized") is LADDER["vectorized"]
    names = [stage.name for stage in (*LADDER, *variants())]
    assert len(set(names)) == len(names)
    assert {"kernel5_spread", "vectorized_apart", "wmma_fp16_acc_fewer_blocks"} <= set(names)
    with pytest.raises(ValueError, match="no stage is called fetch_only"):
        stage_named("fetch_only")


@pytest.mark.parametrize(
    ("stage", "registers", "blocks"),
    [
        ("thread_tiled_1d_fewer_blocks", 32, [4, 2, 1]),
        ("thread_tiled_2d_fewer_blocks", 128, [2, 1]),
        ("wmma_fp16_acc_fewer_blocks", 168, [2]),
    ],
)
def test_spare_shared_memory_leaves_room_for_the_blocks_that_the_reasons_name(stage, registers, blocks):
    """registers: as the compiler assigns them; those of wmma_fp16_acc leave room for three blocks."""
    assert occupancy(128, 168, 38912).blocks == 3
    held = []
    for asked in (asked for asked in ASKED if asked.stage == stage):
        tiles, kernel = tiles_of(asked), stage_named(asked.stage)
        static = {"float32": 4, "float16": 2}[kernel.dtype] * (tiles["BK"] * (tiles["BM"] + tiles["BN"]))
        shared = static + kernel.shared_bytes(tiles)
        held.append(occupancy(math.prod(kernel.block(tiles)), registers, shared).blocks)
    assert held == blocks
