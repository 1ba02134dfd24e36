"""The ladder, counted without running: exact at odd sizes, and as computed by hand for a huge product."""

import numpy as np
import pytest

from gemm_course.kernels import LADDER
from lockstep import DataDependent, emulate
from lockstep_tests.tables import check_counts_only


def matrices(stage, m, n, k, like, tiles=None):
    """The arguments of a stage's kernel, with rows as long as its alignment requires."""
    elements = stage.alignment // stage.itemsize
    widths = [-(-width // elements) * elements for width in (k, n, n)]
    A, B, C = (like((rows, width)) for rows, width in zip((m, k, m), widths, strict=True))
    return stage.arguments(m, n, k, np.float32(1), A, B, np.float32(0.5), C, tiles=tiles)


@pytest.mark.many(one_in=64, with_all=8)
@pytest.mark.parametrize("shape", [(70, 45, 37), (129, 100, 9)], ids=str)
@pytest.mark.parametrize(
    "stage", [stage for stage in LADDER if not stage.shares], ids=lambda stage: stage.name
)
def test_stages_of_the_ladder_at_odd_sizes(stage, shape):
    choices = stage.legal_choices()
    for tiles in (None, choices[len(choices) // 2]):
        m, n, _ = shape
        check_counts_only(
            stage.kernel(tiles),
            stage.grid(m, n, tiles),
            stage.block(tiles),
            matrices(stage, *shape, lambda size: np.zeros(size, stage.dtype), tiles),
            matrices(stage, *shape, lambda size: np.broadcast_to(np.zeros((), stage.dtype), size), tiles),
            stage.shared_bytes(tiles),
            source=f"{stage.name} {tiles} {shape}",
        )


@pytest.mark.parametrize("blocks", [1, 2])
def test_stream_k_is_counted_only_where_no_tile_is_cut(blocks):
    """Which block adds up a tile depends on what an atomic returns."""
    stage, tiles, shape = LADDER["stream_k"], {"BLOCKS": blocks}, (70, 45, 37)
    views = matrices(stage, *shape, lambda size: np.broadcast_to(np.float32(0), size), tiles)
    launch = stage.kernel(tiles), stage.grid(*shape[:2], tiles), stage.block(tiles), *views
    if blocks == 1:
        assert emulate(*launch, counts_only=True).total("lanes", space="global", op="store") == 70 * 12
    else:
        with pytest.raises(DataDependent):
            emulate(*launch, counts_only=True)


def test_kernel5_with_two_rows_of_blocks():
    stage, tiles, shape = LADDER["kernel5"], {"BM": 64, "BN": 64, "BK": 8, "TM": 4, "TN": 8}, (65, 200, 8)
    check_counts_only(
        stage.kernel(tiles),
        stage.grid(*shape[:2], tiles),
        stage.block(tiles),
        matrices(stage, *shape, lambda size: np.zeros(size, np.float32)),
        matrices(stage, *shape, lambda size: np.broadcast_to(np.float32(0), size)),
    )


def test_counts_of_a_huge_product_are_those_computed_by_hand():
    edge, stage = 16384, LADDER["block_tiled"]
    tiles = {"BM": 32, "BN": 32, "BK": 32}
    views = matrices(stage, edge, edge, edge, lambda size: np.broadcast_to(np.float32(0), size))
    report = emulate(
        stage.kernel(tiles), stage.grid(edge, edge, tiles), stage.block(tiles), *views, counts_only=True
    )
    accesses = report.accesses[report.accesses["space"] == "global"]
    loads = accesses[(accesses["op"] == "load") & accesses["array"].isin(["A", "B"])]
    assert int(loads["lanes"].sum()) == 2 * edge**3 // 32
    assert int(loads["requests"].sum()) == 2 * edge**3 // 32 // 32
    assert int(accesses[accesses["op"] == "store"]["lanes"].sum()) == edge**2
    fused = report.arithmetic[report.arithmetic["op"] == "fma"]["lanes"].sum()
    assert edge**3 <= int(fused) <= edge**3 + edge**2
