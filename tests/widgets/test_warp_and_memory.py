"""A warp's requests: the emulator's sectors, lane by lane, for stages and for a kernel of one's own."""

import xml.etree.ElementTree as ElementTree

import pytest
from numba import cuda, float32

from gemm_course import widgets as see
from gemm_course.figures import colours
from gemm_course.kernels import LADDER
from gemm_course.model.requests import SECTOR
from gemm_course.widgets import _warp_and_memory as widget
from tests.figures.page import faults

SVG = "{http://www.w3.org/2000/svg}"
NAIVE = [LADDER["naive_uncoalesced"], LADDER["naive_coalesced"]]
TILED = [LADDER["thread_tiled_2d"], LADDER["vectorized"]]
LOAD_A, LOAD_B, STORE_C = (access for _, access in widget.ACCESSES)
LAST = widget._STEPS - 1
CASES = [
    (pair, kernel, access) for pair in (NAIVE, TILED) for kernel in (0, 1) for _, access in widget.ACCESSES
]
names = [f"{pair[kernel].name}, {' '.join(access)}" for pair, kernel, access in CASES]


@pytest.mark.parametrize(
    ("pair", "kernel", "access", "said"),
    [
        (NAIVE, 0, LOAD_A, "needs 32 sectors, 1024 bytes touched for 128 used"),
        (NAIVE, 0, LOAD_B, "needs 1 sector, 32 bytes touched for 4 used"),
        (NAIVE, 1, LOAD_B, "needs 4 sectors, 128 bytes touched for 128 used"),
        (NAIVE, 1, STORE_C, "needs 4 sectors, 128 bytes touched for 128 used"),
        (TILED, 0, LOAD_A, "needs 4 sectors, 128 bytes touched for 128 used"),
        (TILED, 1, LOAD_A, "needs 16 sectors, 512 bytes touched for 512 used"),
        (TILED, 0, STORE_C, "needs 32 sectors, 1024 bytes touched for 128 used"),
        (TILED, 1, STORE_C, "needs 32 sectors, 1024 bytes touched for 512 used"),
    ],
)
def test_the_title_says_what_a_request_costs(pair, kernel, access, said):
    assert (
        f"{pair[kernel].name}, {' of '.join(access)}: the warp {said}."
        in widget.draw(pair, LAST, access, kernel).alt
    )


@pytest.mark.parametrize(
    ("kernel", "block", "sum_"),
    [
        (0, (32, 32), "32 + 1 = 33"),
        (1, (32, 32), "1 + 4 = 5"),
        (1, (16, 16), "2 + 2 = 4"),
        (1, (32, 8), "4 + 1 = 5"),
        (1, (64, 4), "8 + 1 = 9"),
        (0, (1, 256), "1 + 4 = 5"),
    ],
)
def test_a_step_along_k_for_any_block_shape(kernel, block, sum_):
    assert f"A step along k: {sum_} sectors" in widget.draw(NAIVE, 0, LOAD_A, kernel, block).alt


def test_fours_need_fewer_requests_for_as_many_bytes():
    singly, by_fours = (widget.draw(TILED, LAST, LOAD_A, kernel).alt for kernel in (0, 1))
    assert (
        "8 + 8 loads; and 32 stores of C. In all: 8 requests like this, 32 sectors asked of L1, 32 different"
        in singly
    )
    assert (
        "2 + 2 loads; and 8 stores of C. In all: 2 requests like this, 32 sectors asked of L1, 32 different"
        in by_fours
    )


def test_the_same_sectors_are_asked_for_again_and_again():
    """A row of A is 8 floats of a sector, one per step; each step has a row of B of its own."""
    a, b = (widget.draw(NAIVE, LAST, access).alt for access in (LOAD_A, LOAD_B))
    assert "8 requests like this, 256 sectors asked of L1, 32 different" in a
    assert "8 requests like this, 8 sectors asked of L1, 8 different" in b


@pytest.mark.parametrize(("pair", "kernel", "access"), CASES, ids=names)
def test_lanes_are_heard_four_at_a_time(pair, kernel, access):
    request = widget._seen(pair[kernel], (32, 32), (256, 256)).requests[access][0]
    size, before = request.bits // 8, 0
    for step in range(widget._STEPS):
        heard = [address for lane, _, address in request.lanes if lane < 4 * step + 4]
        sectors = {byte // SECTOR for address in heard for byte in range(address, address + size)}
        alt = widget.draw(pair, step, access, kernel).alt
        assert f" {len(sectors)} sector" in alt and f"{len(sectors) * SECTOR} bytes touched" in alt
        assert before <= len(sectors)
        before = len(sectors)


@pytest.mark.parametrize(("pair", "kernel", "access"), CASES, ids=names)
def test_each_moved_sector_is_yellow_and_the_page_is_in_order(pair, kernel, access):
    request = widget._seen(pair[kernel], (32, 32), (256, 256)).requests[access][0]
    heights = set()
    for step in range(widget._STEPS):
        picture = widget.draw(pair, step, access, kernel)
        assert faults(picture) == []
        root = ElementTree.fromstring(picture.data)
        heights.add(root.get("viewBox"))
        yellow = [r for r in root.iter(f"{SVG}rect") if r.get("fill") == colours.MOVED]
        now = {s for lane, _, a in request.lanes if lane < 4 * step + 4 for s in [a // SECTOR]}
        assert len(yellow) == len(now) + 2  # and the bar, and the legend
    assert len(heights) == 1


def test_padding_fixes_unaligned_rows():
    loose = widget.draw([NAIVE[1]], LAST, LOAD_B, width=(333, 333), p=1).alt
    padded = widget.draw([NAIVE[1]], LAST, LOAD_B, width=(333, 336), p=1).alt
    assert "needs 5 sectors" in loose and "needs 4 sectors" in padded
    assert "1 + 5 = 6 sectors" in loose and "1 + 4 = 5 sectors" in padded


def test_a_learners_own_kernel_is_drawn_and_may_do_nothing():
    @cuda.jit
    def mine(m, n, k, alpha, A, B, beta, C):
        col, row = cuda.grid(2)
        if row < m and col < n:
            acc = float32(0)
            for p in range(k):
                acc += A[row, p] * B[p, col]
            C[row, col] = alpha * acc

    @cuda.jit
    def idle(m, n, k, alpha, A, B, beta, C):
        pass

    assert "mine, load of B: the warp needs 4 sectors" in widget.draw([mine], LAST, LOAD_B, block=(32, 8)).alt
    assert "idle: its first warp makes no load of B" in widget.draw([idle], LAST, LOAD_B).alt


def test_the_names_of_a_learners_parameters_do_not_matter():
    @cuda.jit
    def mine(rows, columns, depth, one, X, Y, zero, Z):
        row, col = cuda.grid(2)
        total = float32(0)
        for p in range(depth):
            total += X[row, p] * Y[p, col]
        Z[row, col] = total

    by_a_stage = widget._seen(NAIVE[0], (32, 32), (256, 256)).requests
    by_mine = widget._seen(mine, (32, 32), (256, 256)).requests
    assert {access: len(each) for access, each in by_mine.items()} == {
        access: len(each) for access, each in by_a_stage.items()
    }


def test_controls_are_few_and_follow_the_kernels():
    assert list(widget._controls(NAIVE, False, True)) == ["kernel", "access", "block"]
    assert list(widget._controls(TILED, False, True)) == ["kernel", "access"]
    assert list(widget._controls(NAIVE[1:], True, True)) == ["access", "width", "p"]
    assert list(widget._controls(NAIVE[1:], False, False)) == ["access"]


def test_the_slider_counts_lanes():
    controls = see.warp_and_memory.makes_explorer().controls
    slider = controls.by_name["step"]
    assert slider.label == "lanes"
    assert [option.text for option in slider.offered(controls.start())] == [
        "4",
        "8",
        "12",
        "16",
        "20",
        "24",
        "28",
        "32",
    ]


def test_blocks_are_rows_and_columns_but_of_a_kernel_of_ones_own_x_and_y():
    label, offered, _ = widget._controls(NAIVE, False, True)["block"]
    assert label == "block (rows × columns)" and ("2 × 128", (2, 128)) in offered
    label, offered, _ = widget._controls([print], False, True)["block"]
    assert label == "block (x, y)" and ("(2, 128)", (2, 128)) in offered


def test_it_is_part_of_see():
    assert see.warp_and_memory.__wrapped__ is widget.warp_and_memory
