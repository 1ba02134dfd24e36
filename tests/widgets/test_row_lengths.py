"""The naive kernels with longer rows: the record, where a warp reads, and what the picture says."""

from collections import Counter

import pytest

from gemm_course import records
from gemm_course.bench import row_length
from gemm_course.kernels import tiles_text
from gemm_course.widgets import _row_lengths
from gemm_course.widgets._row_lengths import draw, words_of_a

SQUARE = "BM=32 BN=32"


def tflops(stage, extra, block=SQUARE, n=4096):
    rows = records.row_lengths().set_index(["stage", "tiles", "n", "leading_dimension"])["tflops"]
    return rows[stage, block, n, n + extra]


def test_the_record_has_every_case_once():
    rows = records.row_lengths()
    keys = ["stage", "tiles", "n", "leading_dimension"]
    assert len(rows) == row_length.cases() == len(rows[keys].drop_duplicates())
    assert set(rows["tiles"]) == {tiles_text(tiles) for tiles in row_length.BLOCKS}
    assert set(rows["leading_dimension"] - rows["n"]) == set(row_length.EXTRA)
    assert (rows["relative_error"] < 6e-8 * 4112**0.5).all()


def test_one_float_more_makes_the_naive_kernel_three_times_as_fast():
    assert tflops("naive_uncoalesced", 1) > 3 * tflops("naive_uncoalesced", 0)
    assert tflops("naive_uncoalesced", 32) == pytest.approx(tflops("naive_uncoalesced", 0), rel=0.02)
    for extra in row_length.EXTRA:
        assert tflops("naive_coalesced", extra) == pytest.approx(tflops("naive_coalesced", 0), rel=0.02)


@pytest.mark.parametrize(("extra", "places", "tallest"), [(0, 1, 32), (1, 32, 1), (8, 4, 8), (16, 2, 16)])
def test_where_a_warp_reads_a(extra, places, tallest):
    towers = Counter(word % 32 for word in words_of_a("naive_uncoalesced", SQUARE, 4096 + extra))
    assert (len(towers), max(towers.values())) == (places, tallest)


def test_coalesced_lanes_read_one_float():
    assert words_of_a("naive_coalesced", SQUARE, 4096) == [0]
    assert len(words_of_a("naive_coalesced", "BM=16 BN=16", 4096)) == 2
    assert len(words_of_a("naive_uncoalesced", "BM=4 BN=64", 4096)) == 4


def test_the_picture_says_what_it_shows():
    alt = draw("naive_uncoalesced", SQUARE, 4096, 1, bars=True).alt
    assert "rows of 4097 floats: 1.62 TFLOPS, 3.26 times that of 4096" in alt.replace("\u00a0", " ")
    assert "each at a place of its own" in alt and "8 more" not in alt
    assert (
        ">2</text>" in draw("naive_uncoalesced", SQUARE, 4096, 0, bars=True).data
    )  # the axis tells no speed
    assert "8 more" in draw("naive_uncoalesced", SQUARE, 4096, 1).alt
    assert "one float, for all lanes" in draw("naive_coalesced", SQUARE, 2048, 0).alt


def test_one_stage_needs_no_choice_of_stage_or_size():
    one, two = (
        _row_lengths.row_lengths.__wrapped__(*names)
        for names in (["naive_uncoalesced"], ["naive_uncoalesced", "naive_coalesced"])
    )
    assert [control.name for control in one.controls.all] == ["block", "extra", "bars"]
    assert [control.name for control in two.controls.all] == ["stage", "block", "n", "extra"]
    blocks = next(iter(one.controls.all)).options
    assert [label for label, _ in blocks] == ["32 × 32", "16 × 16", "4 × 64", "2 × 128"]
