"""The picture of a swizzle says what the emulator counts."""

import pytest

from gemm_course.figures import swizzle as figure
from gemm_course.widgets import _fragments
from gemm_course.widgets._swizzle import KEPT, PIECES, draw
from lockstep.intrinsics import fragments as layouts


@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize("kept", KEPT)
def test_the_rows_that_share_banks_are_as_many_as_the_wavefronts(kept, pieces):
    for read in range(pieces):
        picture = draw(kept, pieces, read)
        starts = [(row * pieces + KEPT[kept](row, read, pieces)) % figure.PARTS for row in range(figure.ROWS)]
        most = max(starts.count(start) for start in starts)
        assert f"Piece {read} of eight rows: {most} wavefront" in picture.alt
        assert (f"{most} of them share" in picture.alt) == (most > 1)


def test_short_rows_need_another_swizzle():
    assert [draw("piece ^ row % pieces", pieces, 0).alt[26:38] for pieces in PIECES] == [
        draw("piece ^ row % pieces", pieces, 1).alt[26:38] for pieces in PIECES
    ]
    assert "2 wavefronts" in draw("piece ^ row % pieces", 4, 0).alt
    assert "1 wavefront." in draw("piece ^ row % pieces", 8, 0).alt


@pytest.mark.parametrize("matrix", "AB")
def test_an_operand_of_mma_sync_is_drawn_as_the_emulator_deals_it(matrix):
    layout = {"A": layouts.A, "B": layouts.B}[matrix]
    for lane in (0, 13, 31):
        for row, column in zip(layout.rows[lane], layout.columns[lane], strict=True):
            assert f"in lane {lane}," in _fragments.draw_mma(matrix, int(row), int(column)).alt
