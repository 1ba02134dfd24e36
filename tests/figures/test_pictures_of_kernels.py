"""Pictures drawn from the emulator agree with what it counted, and with arithmetic done by hand."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from gemm_course.figures import walk
from gemm_course.kernels import LADDER
from gemm_course.model import thread_ids
from gemm_course.model.requests import requests
from gemm_course.widgets import _threads, _walk
from lockstep import Watch, emulate
from tests.figures.page import SVG, faults, texts

TILES = {"BM": 2, "BN": 2, "BK": 2}


def watched(stage, tiles, size, block=(0, 0), warp=None):
    A, B, C = (np.ones((size, size), np.float32) for _ in range(3))
    sizes = (size, size, size)
    launch = (stage.kernel(tiles), stage.grid(size, size, tiles), stage.block(tiles))
    problem = (*sizes, np.float32(1), A, B, np.float32(0), C)
    return emulate(*launch, *problem, watch=Watch((*block, 0), warp))


@pytest.mark.parametrize(("grid", "block"), [((1, 1), (5, 7)), ((3, 2), (8, 4)), ((2, 3), (4, 16))])
def test_threads_know_their_coordinates(grid, block):
    ids = thread_ids.coordinates(grid, block)
    for by, bx, y, x in np.ndindex(ids.shape[:4]):
        linear = y * block[0] + x
        expected = (by * block[1] + y, bx * block[0] + x, linear, linear // 32, linear % 32)
        assert tuple(ids[by, bx, y, x]) == expected


@pytest.mark.parametrize(
    ("block", "thread", "words"),
    [
        ((16, 8), (3, 2), "linear id 35: warp 1, lane 3"),
        ((5, 7), (4, 6), "29 lanes of the last warp are idle"),
        ((4, 1), (0, 0), "28 lanes of the last warp are idle"),
        ((32, 32), (31, 31), "linear id 1023: warp 31, lane 31"),
    ],
)
def test_the_ribbon_names_warp_and_lane(block, thread, words):
    assert words in _threads.draw_block(block, thread).alt


def test_the_grid_says_which_element_a_thread_computes():
    inside = _threads.draw_grid((10, 18), (8, 4), (1, 2), (3, 1)).alt
    outside = _threads.draw_grid((10, 18), (16, 2), (1, 0), (3, 1)).alt
    assert "computes C[9, 11]" in inside and "108 threads have no element" in inside
    assert "is outside C at [1, 19]" in outside


@pytest.mark.parametrize(
    ("name", "sectors"), [("naive_uncoalesced", (32, 1, 32)), ("naive_coalesced", (1, 4, 4))]
)
def test_requests_from_the_trace_have_the_sectors_that_the_report_counts(name, sectors):
    tiles = {"BM": 32, "BN": 32}
    report = watched(LADDER[name], tiles, 64, warp=0)
    per_request = tuple(
        len(requests(report.trace, array=array, op=op)[0].sectors)
        for array, op in (("A", "load"), ("B", "load"), ("C", "store"))
    )
    assert per_request == sectors
    for array, op, expected in zip("ABC", ("load", "load", "store"), sectors, strict=True):
        total = report.total("sectors", array=array, op=op)
        assert total == expected * report.total("requests", array=array, op=op)


@pytest.fixture(scope="module")
def story():
    return walk.scenes(watched(LADDER["penny_xu_tile"], TILES, 4).trace)


def test_the_walk_has_two_tiles_of_two_loads_two_accumulations_and_two_barriers_and_a_store(story):
    kinds = ["barrier" if scene.barrier else "step" for scene in story]
    assert kinds == ["step", "step", "barrier", "step", "step", "barrier"] * 2 + ["step"]


def test_the_walk_follows_one_thread(story):
    said = [walk.sentence(scene, 1).replace("\u00a0", " ") for scene in story]
    assert said[:2] == ["As[0, 1] = A[0, 1]", "Bs[0, 1] = B[0, 1]"]
    assert said[3:5] == ["acc += As[0, 0] × Bs[0, 1]", "acc += As[0, 1] × Bs[1, 1]"]
    assert said[6:8] == ["As[0, 1] = A[0, 3]", "Bs[0, 1] = B[2, 1]"]
    assert said[-1] == "C[0, 1] = acc"


def test_the_walk_counts_what_tiles_save(story):
    assert story[-1].loads == dict.fromkeys(range(4), 4)
    assert story[-1].reads == dict.fromkeys(range(4), 8)


def test_shared_tiles_remember_where_their_elements_came_from(story):
    held = {e: name.replace("\u00a0", " ") for e, name in story[-1].shared["As"].items()}
    assert held == {(0, 0): "A[0, 2]", (0, 1): "A[0, 3]", (1, 0): "A[1, 2]", (1, 1): "A[1, 3]"}


def test_the_walk_keeps_its_height_and_no_text_lies_over_another():
    steps = len(_walk._story((1, 0))[0])
    pictures = [_walk.draw(step, (1, 0), (0, 1)) for step in range(steps)]
    assert len({picture.data.split('viewBox="')[1].split('"')[0] for picture in pictures}) == 1
    assert not [fault for picture in pictures for fault in faults(picture)]


def test_no_arrow_of_the_walk_covers_an_index():
    for block in np.ndindex(2, 2):
        for thread in np.ndindex(2, 2):
            for step in (0, 1, 6, 7):
                picture = _walk.draw(step, block, thread)
                (line,) = ElementTree.fromstring(picture.data).iter(f"{SVG}line")
                x1, y1, x2, y2 = (float(line.get(name)) for name in ("x1", "y1", "x2", "y2"))
                way = [(x1 + part * (x2 - x1), y1 + part * (y2 - y1)) for part in np.linspace(0, 1, 41)]
                for words, left, top, right, bottom in texts(picture):
                    assert not any(left < x < right and top < y < bottom for x, y in way), words
