"""The strips: as many blocks as fit, each computing and waiting, and how much of the time is used."""

import re
from itertools import product

import pytest

from gemm_course.compiler import compiled
from gemm_course.figures import colours
from gemm_course.figures.latency import schedule
from gemm_course.figures.strips import Run
from gemm_course.kernels import LADDER
from gemm_course.model import Tank
from gemm_course.widgets import _strips
from tests.figures.page import faults

FILE = Tank("registers", 65_536, 8_192, 8)
STATES = [(name, registers) for name, each in _strips.KERNELS.items() for registers in each.registers]


@pytest.mark.parametrize(
    ("stage", "registers", "said"),
    [
        ("thread_tiled_1d", 96, "1 block fits, 16 of 64 warps; a scheduler could issue 46 %"),
        ("thread_tiled_1d", 64, "2 blocks fit, 32 of 64 warps; a scheduler could issue 92 %"),
        ("thread_tiled_1d", 32, "4 blocks fit, 64 of 64 warps; a scheduler could issue 100 %"),
        ("thread_tiled_2d", 255, "1 block fits, 8 of 64 warps; a scheduler could issue 82 %"),
    ],
)
def test_fewer_registers_make_room_for_blocks(stage, registers, said):
    assert said in _strips.draw(stage, registers).alt.replace("\u00a0", " ")


@pytest.mark.parametrize(("blocks", "computes", "waits"), [*product((1, 2, 3), (20, 127), (50, 150))])
def test_the_share_of_the_time_is_that_of_the_schedule(blocks, computes, waits):
    """In whole periods, once all blocks have begun."""
    period = max(blocks * computes, computes + waits)
    story = schedule(blocks, computes, waits, 7 * period)
    later = [row[3 * period :] for row in story]
    busy = sum("work" in states for states in zip(*later, strict=True)) / (4 * period)
    assert Run(blocks, 4, computes, waits, FILE, "").busy == pytest.approx(busy, abs=0.01)


@pytest.mark.parametrize("name", _strips.KERNELS)
def test_blocks_are_those_of_the_stage(name):
    kernel, stage = _strips.KERNELS[name], LADDER[name]
    tiles = stage.complete(kernel.tiles)
    x, y = (*stage.block(tiles), 1)[:2]
    assert x * y == kernel.threads
    assert stage.rules(tiles) == []
    floats = (tiles["BM"] + tiles["BN"]) * tiles["BK"]
    assert kernel.shared_bytes == 4 * floats


@pytest.mark.many(one_in=2)
@pytest.mark.compiler
@pytest.mark.parametrize("name", _strips.KERNELS)
def test_the_loop_is_as_compiled(name):
    kernel = _strips.KERNELS[name]
    assert len(compiled(name, tiles=kernel.tiles).loop.rows) == kernel.loop


@pytest.mark.parametrize(("stage", "registers"), STATES)
def test_what_fits_is_drawn_and_nothing_lies_over_anything(stage, registers):
    picture = _strips.draw(stage, registers)
    assert faults(picture) == []
    blocks = int(re.search(r": (\d+) block", picture.alt).group(1))
    most = max(
        int(re.search(r": (\d+) block", _strips.draw(stage, r).alt).group(1)) for s, r in STATES if s == stage
    )
    assert picture.data.count("does not fit") == most - blocks
    below = picture.data.split(">issues<")[1].split(">computes,")[0]
    assert ("url(#hatch-" in below.rsplit("<rect", 2)[0]) == ("100\u00a0%" not in picture.alt)


@pytest.mark.parametrize("stage", _strips.KERNELS)
def test_all_are_equally_high(stage):
    heights = {
        _strips.draw(stage, registers).data.split('viewBox="')[1].split('"')[0]
        for registers in _strips.KERNELS[stage].registers
    }
    assert len(heights) == 1


def test_the_register_file_says_why_no_more_blocks_fit():
    said = _strips.draw("thread_tiled_2d", 255).data
    assert "a block takes 256 × 256 (255 rounded up) of 65,536; none is left" in said
    assert "a block takes 256 × 128 of 65,536; none is left" in _strips.draw("thread_tiled_2d", 128).data


@pytest.mark.parametrize(("stage", "registers"), STATES)
def test_the_legend_names_only_what_is_there(stage, registers):
    drawn = _strips.draw(stage, registers).data
    turns = drawn.split("another's turn".replace("'", "&#x27;"))[0].count(
        colours.OF_WAIT["another warp's turn"]
    )
    assert ("another&#x27;s turn" in drawn) == (turns > 1)
