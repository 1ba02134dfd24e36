"""Pictures of Kernel 5's fetching and of its banks: they say what the emulator saw."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course.figures import coverage as figure
from gemm_course.kernels import LADDER
from gemm_course.kernels.variants.kernel5_draft import STAGE as DRAFT
from gemm_course.kernels.variants.kernel5_spread import STAGE as SPREAD
from gemm_course.widgets import _coverage, _tile_banks
from lockstep import emulate

SVG = "{http://www.w3.org/2000/svg}"
KERNEL5 = LADDER["kernel5"]


@pytest.mark.parametrize("block", _coverage.BLOCKS)
@pytest.mark.parametrize("depth", _coverage.DEPTHS)
def test_kernel5_covers_its_tiles_whatever_bk_is(block, depth):
    story, plan = _coverage._filled(KERNEL5, block, depth)
    assert figure.holes(story, plan) == {"As": 0, "Bs": 0} and not plan.outside
    stored = [(moment.array, element) for moment in story for element in moment.stores.values()]
    assert len(stored) == len(set(stored)) == depth * sum(block)
    assert "both tiles are complete" in _coverage.draw(KERNEL5, block, depth, (0, 0)).alt


@pytest.mark.parametrize(
    ("block", "depth", "words"),
    [
        ((16, 16), 4, "both tiles are complete"),
        ((16, 16), 8, "no thread writes 64 of 128 elements of As and 64 of 128 elements of Bs"),
        ((16, 16), 16, "no thread writes 192 of 256 elements of As"),
        ((16, 16), 2, "threads write outside the tiles"),
        ((16, 32), 8, "no thread writes 128 of 256 elements of Bs"),
        ((32, 16), 8, "no thread writes 128 of 256 elements of As"),
    ],
)
def test_the_drafts_holes_are_seen(block, depth, words):
    assert words in _coverage.draw(DRAFT, block, depth, (0, 0)).alt


def test_holes_are_hatched_and_only_there():
    whole, torn = (_coverage.draw(stage, (16, 16), 8, (1, 2)).data for stage in (KERNEL5, DRAFT))
    in_legend = 1
    assert whole.count("url(#hatch") == in_legend
    assert torn.count("url(#hatch") == 128 + in_legend


def test_a_step_names_what_the_thread_stores_and_the_line():
    picture = _coverage.draw_step(KERNEL5, 0, (16, 16), 8, (1, 2))
    assert "Store 1 of 16, thread (1, 2): stores As[8, 1]" in picture.alt
    assert "As[ty * TM + i, c]" in picture.data
    last = _coverage.draw_step(KERNEL5, 16, (16, 16), 8, (1, 2))
    assert "both tiles are complete" in last.alt


def test_a_learners_fetch_is_drawn_as_well():
    def make_fetch(BM, BN, BK, TM, TN):
        @cuda.jit(device=True)
        def fetch(m, n, k, k0, A, B, As, Bs):
            for r in range(cuda.threadIdx.y, BM, BM // TM):
                As[r, cuda.threadIdx.x] = A[r, k0 + cuda.threadIdx.x]
            if cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0:
                Bs[0, 0] = float32(0)
                Bs[0, 0] = float32(1)

        return fetch

    alt = _coverage.draw(make_fetch, (16, 16), 8, (0, 0)).alt
    assert "no thread writes 64 of 128 elements of As and 127 of 128 elements of Bs" in alt


def test_a_learners_kernel_is_drawn_as_well():
    def make_kernel(BM, BN, BK, TM, TN):
        @cuda.jit
        def kernel(m, n, k, alpha, A, B, beta, C):
            As = cuda.shared.array((BM, BK), float32)
            Bs = cuda.shared.array((BK, BN), float32)
            acc = cuda.local.array(TM, float32)
            for i in range(TM):
                acc[i] = 0
            for r in range(cuda.threadIdx.y, BM, BM // TM):
                As[r, cuda.threadIdx.x] = A[r, cuda.threadIdx.x]
            for r in range(cuda.threadIdx.y, BK, BM // TM):
                for c in range(cuda.threadIdx.x, BN, BN // TN):
                    Bs[r, c] = B[r, c]
            cuda.syncthreads()
            C[cuda.threadIdx.y, cuda.threadIdx.x] = As[0, 0] * Bs[0, 0] + acc[0]

        return kernel

    alt = _coverage.draw(make_kernel, (16, 16), 8, (0, 0)).alt
    assert (
        "no thread writes 64 of 128 elements of As" in alt and "128 of 128 elements of Bs are stored" in alt
    )


@pytest.mark.parametrize(
    ("pad", "columns", "expected"),
    [
        (0, "tx * TN + j", (2, 4)),
        (1, "tx * TN + j", (1, 4)),
        (4, "tx * TN + j", (2, 4)),
        (0, "tx + j * BN // TN", (2, 1)),
        (1, "tx + j * BN // TN", (1, 1)),
    ],
)
def test_padding_helps_one_tile_and_the_order_of_columns_the_other(pad, columns, expected):
    for array, wavefronts in zip(("As", "Bs"), expected, strict=True):
        assert f": {wavefronts} wavefront" in _tile_banks.draw(array, pad, columns).alt


@pytest.mark.parametrize("spread", [0, 1])
@pytest.mark.parametrize("pad", _tile_banks.PADDING)
def test_the_banks_shown_agree_with_the_kernel(pad, spread):
    tiles = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8, "PAD": pad, "SPREAD": spread}
    A, B, C = (np.zeros(shape, np.float32) for shape in ((128, 16), (16, 128), (128, 128)))
    problem = (128, 128, 16, np.float32(1), A, B, np.float32(0), C)
    report = emulate(SPREAD.kernel(tiles), 1, SPREAD.block(tiles), *problem, counts_only=True)
    for array, (_, wavefronts) in _tile_banks._reads(pad, spread).items():
        counted = [
            report.total(c, space="shared", op="load", array=array) for c in ("wavefronts", "requests")
        ]
        assert counted[0] == wavefronts * counted[1]


PICTURES = {
    "a step": lambda: _coverage.draw_step(KERNEL5, 5, (16, 32), 16, (3, 1)),
    "complete": lambda: _coverage.draw(KERNEL5, (32, 16), 16, (1, 2)),
    "with holes": lambda: _coverage.draw(DRAFT, (16, 32), 16, (7, 3)),
    "outside the tiles": lambda: _coverage.draw(DRAFT, (16, 32), 2, (7, 3)),
    "banks": lambda: _tile_banks.draw("Bs", 8, "tx + j * BN // TN"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_stay_on_the_page_and_can_be_read(name):
    root = ElementTree.fromstring(PICTURES[name]().data)
    _, _, width, height = (float(value) for value in root.get("viewBox").split())
    for rect in (rect for rect in root.iter(f"{SVG}rect") if rect.get("x") is not None):
        x, y, w, h = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
        assert -2 <= x and x + w <= width + 2 and -2 <= y and y + h <= height + 2
    assert min(float(text.get("font-size")) for text in root.iter(f"{SVG}text")) >= 12
    assert root.find(f"{SVG}title").text and len(root.find(f"{SVG}desc").text) > 20
