"""The owner map: drawn from the trace, every element owned once, and the picture says what the map holds."""

import xml.etree.ElementTree as ElementTree
from itertools import product

import numpy as np
import pytest
from numba import cuda

from gemm_course import widgets as see
from gemm_course.figures import colours, owners
from gemm_course.model import warp_reads
from gemm_course.model.formulas import document_003 as document
from gemm_course.model.owner_maps import NOBODY, SEVERAL
from gemm_course.model.requests import wavefronts_of
from gemm_course.widgets import _owners, _warp_reads
from gemm_course.widgets._errors_in_words import NotShown
from tests.figures.page import faults

SVG = "{http://www.w3.org/2000/svg}"
VIEWS = [(kernel, level) for kernel in _owners.KERNELS for level in owners.LEVELS]


@pytest.fixture(params=_owners.KERNELS)
def traced(request):
    return _owners.owner_map(request.param)


def test_each_element_has_one_owner_and_each_thread_as_many_elements(traced):
    assert (traced.owner >= 0).all()
    threads, counts = np.unique(traced.owner, return_counts=True)
    assert threads.tolist() == list(range(32 * traced.warps))
    assert set(counts) == {traced.owner.size // len(threads)}


def test_a_warp_owns_its_warp_tile_and_a_step_has_all_its_lanes(traced):
    (down, across), (high, wide) = traced.warp_tile, traced.sub_tile
    for warp in range(traced.warps):
        row, column = traced.corner_of_warp(warp)
        assert set((traced.owner[row : row + down, column : column + across] // 32).flat) == {warp}
        step = traced.owner[row : row + high, column : column + wide]
        assert set(step.flat) == set(range(32 * warp, 32 * warp + 32))


def test_each_element_of_a_thread_is_named_once_and_in_the_order_of_its_results(traced):
    for thread in (0, 41, 127):
        assert traced.elements(thread).tolist() == [list(place) for place in traced.results[thread]]
        assert len(set(traced.results[thread])) == len(traced.results[thread])
    assert (traced.outside, traced.repeated) == (0, 0)


def test_the_map_of_document_003_is_that_of_its_formulas():
    t = _owners.KERNELS["003: TN 8, WNITER 2"][1]
    found = _owners.owner_map("003: TN 8, WNITER 2").elements(41).tolist()
    steps = [(i, j, e) for i in range(2) for j in range(2) for e in range(8)]
    assert found == [list(document.element(41, *step, t["BN"], t["WM"], t["WN"], 8, 2)) for step in steps]


@pytest.mark.parametrize(("kernel", "level"), VIEWS)
def test_the_picture_names_the_thread_and_its_elements(kernel, level):
    picture = _owners.draw(kernel, level, "lane", 1, 9)
    root = ElementTree.fromstring(picture.data)
    assert root.find(f"{SVG}rect").get("fill") == colours.PAPER
    assert min(float(text.get("font-size")) for text in root.iter(f"{SVG}text")) >= 12
    mine = _owners.owner_map(kernel).elements(41)
    assert "Thread 41 = warp 1, lane 9" in picture.alt and f"Level {level}" in picture.alt
    assert f"Its rows of the tile: {mine[0][0]}" in picture.alt
    width, height = (float(value) for value in root.get("viewBox").split()[2:])
    for rect in root.iter(f"{SVG}rect"):
        if rect.get("x") is not None:
            x, y, wide, high = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
            assert -2 <= x and x + wide <= width + 2 and y + high <= height + 2


def test_every_choice_changes_what_is_said():
    first = {"kernel": "003: TN 8, WNITER 1", "level": "block", "colour": "warp", "warp": 0, "lane": 5}
    others = {
        "kernel": "warp_tiled: 4 × 8 lanes",
        "level": "thread",
        "colour": "owner",
        "warp": 3,
        "lane": 31,
    }
    before = _owners.draw(**first).alt
    for name, value in others.items():
        assert _owners.draw(**{**first, name: value}).alt != before


def test_a_step_names_the_layout_of_its_lanes():
    assert (
        "8 × 4 lanes cover 8 × 32, 1 × 8 each"
        in _owners.draw("003: TN 8, WNITER 1", "sub-tile", "warp", 0, 0).alt
    )
    assert (
        "4 × 8 lanes cover 16 × 32, 4 × 4 each"
        in _owners.draw("warp_tiled: 4 × 8 lanes", "sub-tile", "warp", 0, 0).alt
    )


def fills(picture) -> list[str]:
    return [rect.get("fill") for rect in ElementTree.fromstring(picture.data).iter(f"{SVG}rect")]


def test_a_learners_own_map_shows_its_holes_and_who_else_owns_what():
    def first_row_of_all(tid, BN, WM, WN, TN, WNITER):
        return [(0, e) for e in range(TN)]

    found = _owners.own_map("003: TN 8, WNITER 1", first_row_of_all)
    assert (found.owner[0, :8] == SEVERAL).all() and (found.owner[1:] == NOBODY).all()
    picture = owners.draw(found, "block", "warp", 0, 0)
    assert picture.alt.startswith("Of the block's 64 × 64 elements 8 have several owners and 4088 have none.")
    assert "It owns 8, 8 of them with others." in picture.alt
    # hatched: the elements with several owners, those of thread 0 over its mark, and a legend for each
    assert fills(picture).count(f"url(#hatch-{colours.WARN[1:]})") == 3
    assert fills(picture).count(f"url(#hatch-{colours.QUIET[1:]})") >= 2


@pytest.mark.parametrize("level", owners.LEVELS[:3])
def test_hatching_lies_over_every_fill(level):
    def two_columns_too_far_left(tid, BN, WM, WN, TN, WNITER):
        return [(row, max(column - 2, 0)) for row, column in _owners.owner_map(name).results[tid]]

    name = "003: TN 8, WNITER 1"
    data = owners.draw(_owners.own_map(name, two_columns_too_far_left), level, "warp", 0, 4).data
    shapes = list(ElementTree.fromstring(data))
    hatched = [place for place, shape in enumerate(shapes) if "hatch" in (shape.get("fill") or "")]
    areas = [place for place, shape in enumerate(shapes) if shape.tag == f"{SVG}path"]
    assert hatched and (not areas or min(hatched) > max(areas))


def test_a_forgotten_factor_shows_what_the_thread_says_it_owns():
    def without_TN(tid, BN, WM, WN, TN, WNITER):
        lane, warp = tid % 32, tid // 32
        row, column = warp // (BN // WN) * WM + lane // (WN // TN), warp % (BN // WN) * WN + lane % (WN // TN)
        return [(row + i * 8, column + e) for i in range(WM // 8) for e in range(TN)]

    found = _owners.own_map("003: TN 8, WNITER 1", without_TN)
    alt = owners.draw(found, "block", "warp", 0, 5).alt
    assert "It owns 32, 32 of them with others. Its rows of the tile: 1, 9, 17, 25." in alt
    assert "of the lanes" not in alt, "what its map does not say must not be said of it"


def test_a_block_whose_warps_are_swapped_does_not_look_right():
    name = "003: TN 8, WNITER 1"

    def swapped(tid, BN, WM, WN, TN, WNITER):
        warp, lane = divmod(tid, 32)
        return _owners.owner_map(name).results[(0, 2, 1, 3)[warp] * 32 + lane]

    alt = owners.draw(_owners.own_map(name, swapped), "block", "warp", 0, 0).alt
    assert alt.startswith("Of the block's 64 × 64 elements 2048 have an owner in another warp.")


def test_results_outside_the_tile_and_named_twice_are_told():
    def of_thread_3(tid, BN, WM, WN, TN, WNITER):
        return [(0, 0), (0, 0), (-1, 0), (0, BN)] if tid == 3 else []

    found = _owners.own_map("003: TN 8, WNITER 1", of_thread_3)
    assert found.owner[0, 0] == 3, "one thread that names an element twice is one owner"
    assert (found.outside, found.repeated) == (2, 1)
    alt = owners.draw(found, "block", "warp", 0, 3).alt
    assert "2 results of all threads outside the tile: not drawn." in alt
    assert "1 result that the same thread has named before." in alt


def test_an_array_is_a_list_of_places_too():
    def as_array(tid, BN, WM, WN, TN, WNITER):
        return np.array([(tid % 64, e) for e in range(TN)])

    assert _owners.own_map("003: TN 8, WNITER 1", as_array).owner[1, 0] == SEVERAL


@pytest.mark.parametrize("wrong", [[1, 2], [(0.5, 1)], [(0, 1, 2)], 7])
def test_what_is_no_list_of_places_is_a_sentence(wrong):
    with pytest.raises(NotShown, match=r"must give a list of pairs \(row, column\), whole numbers; it gives"):
        _owners.own_map("003: TN 8, WNITER 1", lambda *case: wrong)


def test_the_name_of_a_warp_stands_beside_the_threads_elements():
    for lane in range(32):
        root = ElementTree.fromstring(_owners.draw("warp_tiled: 4 × 8 lanes", "block", "warp", 0, lane).data)
        rects = list(root.iter(f"{SVG}rect"))[1:]
        boxes = [[float(rect.get(key)) for key in ("x", "y", "width", "height")] for rect in rects]
        mine = [box for box, rect in zip(boxes, rects) if rect.get("fill") == colours.NOW][:-1]
        names = [box for box, rect in zip(boxes, rects) if rect.get("rx")]
        assert len(names) == 4 and mine
        for x, y, wide, high in names:
            assert not any(a < x + wide and x < a + w and b < y + high and y < b + h for a, b, w, h in mine)


def test_a_learners_own_kernel_shows_where_it_stores():
    def first_columns_of_a_row_per_warp(BM, BN, BK, WM, WN, TM, TN):
        def kernel(m, n, k, alpha, A, B, beta, C):
            for i in range(TM * TN):
                C[cuda.threadIdx.x // 32, i % TM] = 0

        return kernel

    found = _owners.kernel_map("warp_tiled: 8 × 8 results", first_columns_of_a_row_per_warp)
    assert found.owner.shape == (64, 128)
    assert (found.owner[:4, :8] == SEVERAL).all() and (found.owner[4:] == NOBODY).all()


def test_a_map_without_elements_can_be_shown():
    found = _owners.own_map("003: TN 8, WNITER 1", lambda *sizes: None)
    for level in owners.LEVELS:
        assert "It owns 0." in owners.draw(found, "block", "lane", 0, 0).alt
        assert owners.draw(found, level, "owner", 1, 1).alt


@pytest.mark.parametrize(
    ("layout", "run", "expected"),
    [
        ((8, 4), 8, ((2, 1), (2, 4))),
        ((4, 8), 8, ((1, 2), (2, 8))),
        ((8, 4), 4, ((1, 1), (2, 4))),
        ((4, 8), 4, ((1, 1), (2, 4))),
        ((2, 16), 4, ((1, 2), (2, 4))),
        ((16, 2), 8, ((4, 1), (4, 2))),
        ((16, 2), 4, ((2, 1), (2, 2))),
    ],
)
def test_wavefronts_of_a_warps_reads(layout, run, expected):
    for bits, both in zip((32, 128), expected, strict=True):
        asked = (warp_reads.request(*layout, run, bits, array) for array in ("As", "Bs"))
        assert tuple(wavefronts_of(request) for request in asked) == both


@pytest.mark.parametrize(
    ("run", "rows", "columns"), [(8, "8–15", "8–15"), (4, "4–7 and 36–39", "4–7 and 20–23")]
)
def test_a_lanes_rows_and_columns_are_the_words_that_it_reads(run, rows, columns):
    for bits in (32, 128):
        by_lane = [warp_reads.words(8, 4, run, bits, array) for array in ("As", "Bs")]
        owned = [(r, c) for lane in range(32) for r in by_lane[0][lane] for c in by_lane[1][lane]]
        assert sorted(owned) == list(np.ndindex(64, 32))  # each result of the warp's tile once
    name = next(name for name, value in _warp_reads.RUNS.items() if value == run)
    alt = _warp_reads.draw("8 × 4", name, "As", "one float").alt
    assert f"Lane 5 has rows {rows} and columns {columns}." in alt


def test_pictures_of_reads_are_in_order_and_of_one_height():
    controls = (_warp_reads.LAYOUTS, _warp_reads.RUNS, ("As", "Bs"), _warp_reads.WIDTHS)
    pictures = [_warp_reads.draw(*chosen) for chosen in product(*controls)]
    assert [faults(picture) for picture in pictures] == [[]] * len(pictures)
    assert len({ElementTree.fromstring(picture.data).get("viewBox") for picture in pictures}) == 1


def test_the_picture_of_reads_has_the_emulators_count():
    alt = _warp_reads.draw("4 × 8", "in one piece", "Bs", "four floats").alt
    assert "4 × 8 lanes, load4(Bs, (p, x0)): 8 wavefronts" in alt


def test_a_step_of_reads_is_in_order_and_of_one_height():
    states = product(_warp_reads.LAYOUTS, _warp_reads.RUNS, ("As", "Bs"))
    pictures = [_warp_reads.draw_step(*chosen) for chosen in states]
    assert [faults(picture) for picture in pictures] == [[]] * len(pictures)
    assert len({ElementTree.fromstring(picture.data).get("viewBox") for picture in pictures}) == 1


def test_the_opening_shows_the_layout_that_costs_most():
    explorer = see.warp_reads.makes_explorer(step=True)
    assert "20 wavefronts per step" in explorer.picture(explorer.controls.start()).alt


def test_owners_of_one_stage():
    for stage in ("warp_tiled", "warp_tiled_tm1"):
        names = _owners._kernels_of(stage)
        assert names and {_owners.KERNELS[name][0] for name in names} == {stage}
    assert _owners._kernels_of(None) == list(_owners.KERNELS)
    with pytest.raises(ValueError, match="warp_tiled_tm1 and warp_tiled, not for 'wmma'"):
        _owners._kernels_of("wmma")
