"""The draft of Kernel 5 is wrong where its slices do not cover the tiles, and the emulator says where."""

import inspect

import pytest

from gemm_course.kernels import LADDER
from gemm_course.kernels.variants.kernel5_draft import STAGE

TILES = {"BM": 32, "BN": 64, "TM": 4, "TN": 8}  # 8 by 8 threads: BK = 8 is the one size that works


def line_of(text: str) -> int:
    """The number of the only line of the draft's file that contains the text."""
    lines = inspect.getsource(inspect.getmodule(STAGE.build)).splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return number


def test_it_is_right_where_bk_is_both_sides_of_the_thread_grid(emulated):
    run = emulated(STAGE, 45, 70, 19, tiles=TILES | {"BK": 8})
    assert run.error < 1e-6
    assert run.report.ok


def test_a_longer_bk_leaves_parts_of_the_tiles_unfetched(emulated):
    run = emulated(STAGE, 32, 64, 32, tiles=TILES | {"BK": 16})
    unwritten = [finding for finding in run.report.findings if finding.kind == "uninitialised_read"]
    assert {(finding.array, finding.line) for finding in unwritten} == {
        ("As", line_of("a[i] = As[ty * TM + i, p]")),
        ("Bs", line_of("b[j] = Bs[p, tx * TN + j]")),
    }


def test_a_shorter_bk_writes_outside_the_tiles(emulated):
    run = emulated(STAGE, 32, 64, 32, tiles=TILES | {"BK": 4})
    outside = [finding for finding in run.report.findings if finding.kind == "out_of_bounds"]
    assert {(finding.array, finding.line) for finding in outside} == {
        ("As", line_of("As[ty * TM + i, tx] =")),
        ("Bs", line_of("Bs[ty, tx * TN + j] =")),
    }


@pytest.mark.parametrize("bk", [4, 16])
def test_kernel5_fixes_it(bk, emulated):
    run = emulated(LADDER["kernel5"], 45, 70, 19, tiles=TILES | {"BK": bk})
    assert run.error < 1e-6
    assert run.report.findings == []
