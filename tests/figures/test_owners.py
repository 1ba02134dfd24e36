"""The owner map: drawn from the trace, every element owned once, and the picture says what the map holds."""

import xml.etree.ElementTree as ElementTree
from itertools import product

import numpy as np
import pytest
from numba import cuda

from gemm_course.figures import colours, owners, warp_reads
from gemm_course.figures.owners import NOBODY, SEVERAL
from gemm_course.figures.wavefronts import wavefronts_of
from gemm_course.model.formulas import document_003 as document
from gemm_course.widgets import _owners, _warp_reads
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


def test_places_number_a_threads_results(traced):
    for thread in (0, 41, 127):
        places = sorted(traced.place[traced.owner == thread].tolist())
        assert places == list(range(len(places)))
        assert len(traced.elements(thread)) == len(places)


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
    others = {"kernel": "004 v06: 4 × 8 lanes", "level": "thread", "colour": "owner", "warp": 3, "lane": 31}
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
        in _owners.draw("004 v06: 4 × 8 lanes", "sub-tile", "warp", 0, 0).alt
    )


def test_a_learners_own_map_shows_its_holes():
    def first_row_of_all(tid, BN, WM, WN, TN, WNITER):
        return [(0, e) for e in range(TN)]

    found = _owners.own_map("003: TN 8, WNITER 1", first_row_of_all)
    assert (found.owner[0, :8] == SEVERAL).all() and (found.owner[1:] == NOBODY).all()
    picture = owners.draw(found, "block", "warp", 0, 0)
    assert f"hatch-{colours.WARN[1:]}" in picture.data
    assert "owns 0 of the block's" in picture.alt


def test_a_learners_own_kernel_shows_where_it_stores():
    def first_columns_of_a_row_per_warp(BM, BN, BK, WM, WN, TM, TN):
        def kernel(m, n, k, alpha, A, B, beta, C):
            for i in range(TM * TN):
                C[cuda.threadIdx.x // 32, i % TM] = 0

        return kernel

    found = _owners.kernel_map("004 v06: 8 × 8 results", first_columns_of_a_row_per_warp)
    assert found.owner.shape == (64, 128)
    assert (found.owner[:4, :8] == SEVERAL).all() and (found.owner[4:] == NOBODY).all()


def test_a_map_without_elements_can_be_shown():
    found = _owners.own_map("003: TN 8, WNITER 1", lambda *sizes: None)
    for level in owners.LEVELS:
        assert "owns 0" in owners.draw(found, "block", "lane", 0, 0).alt
        assert owners.draw(found, level, "owner", 1, 1).alt


@pytest.mark.parametrize(
    ("layout", "run", "expected"),
    [
        ((8, 4), 8, ((2, 1), (2, 4))),
        ((4, 8), 8, ((1, 2), (2, 8))),
        ((8, 4), 4, ((1, 1), (2, 4))),
        ((4, 8), 4, ((1, 1), (2, 4))),
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
    alt = _warp_reads.draw("4 × 8", "side by side", "Bs", "four floats").alt
    assert "4 × 8 lanes, load4(Bs, (p, x0)): 8 wavefronts" in alt
