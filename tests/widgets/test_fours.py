"""Pictures of notebook 06: the scatter into transposed As, wide accesses, two stages compared, the peers."""

import pytest
from numba import cuda, float32

from gemm_course import widgets as see
from gemm_course.figures import scatter as scatter_figure
from gemm_course.figures import wavefronts as figure
from gemm_course.model.requests import Request, wavefronts_of
from gemm_course.widgets import _scatter, _wavefronts
from lockstep.intrinsics import load4

SCATTER, READ_A, READ_B, STORE_B = _wavefronts.ACCESSES
EVERY = [(access, depth, pad) for access in _wavefronts.ACCESSES for depth in (8, 16) for pad in (0, 2, 4)]


@pytest.mark.parametrize("pad, wavefronts", [(0, 4), (1, 2), (2, 1), (4, 2), (8, 4)])
def test_padding_of_the_scatter_at_bk_16(pad, wavefronts):
    alt = _wavefronts.draw(SCATTER, 16, pad).alt
    assert f"{SCATTER}, rows of {128 + pad} words, 8 × 8 results per thread: {wavefronts} wavefront" in alt


@pytest.mark.parametrize("pad", [1, 2])
def test_padding_that_breaks_alignment_is_reported(pad):
    assert "misaligned for 32 of 32 lanes" in _wavefronts.draw(READ_A, 16, pad).alt
    assert "misaligned" not in _wavefronts.draw(READ_A, 16, 4).alt


@pytest.mark.parametrize("access, wavefronts", [(READ_A, 2), (READ_B, 8), (STORE_B, 4)])
def test_wide_accesses_are_served_in_groups(access, wavefronts):
    assert (
        f" words, 8 × 8 results per thread: {wavefronts} wavefronts. " in _wavefronts.draw(access, 16, 4).alt
    )


@pytest.mark.parametrize("access, depth, pad", EVERY)
def test_the_lines_drawn_are_the_wavefronts_counted(access, depth, pad):
    request = _wavefronts.request(access, depth, pad)
    fronts = [front for _, group in figure.served(request) for front in group]
    assert len(fronts) == wavefronts_of(request)
    assert all(fronts), "every wavefront serves a lane"


def _loads(words, bits):
    lanes = tuple((lane, (word,), 4 * word) for lane, word in enumerate(words))
    return Request("As", "load", "shared", 1, bits, lanes)


@pytest.mark.parametrize("bits", [32, 64, 128])
@pytest.mark.parametrize(
    "word",
    [
        lambda lane: lane,
        lambda lane: 0,
        lambda lane: 4 * (lane // 2),
        lambda lane: 8 * lane,
        lambda lane: 32 * lane,
        lambda lane: 4 * (lane % 16),
        lambda lane: 4 * (lane & ~2),
        lambda lane: 4 * (lane * 7 % 32),
    ],
)
def test_groups_and_wavefronts_agree_with_the_emulator_for_any_pattern(word, bits):
    request = _loads([word(lane) // (bits // 32) * (bits // 32) for lane in range(32)], bits)
    assert sum(len(group) for _, group in figure.served(request)) == wavefronts_of(request)


def test_every_lane_is_in_one_group_and_gets_all_its_words():
    for lanes, fronts in figure.served(_wavefronts.request(STORE_B, 16, 0)):
        for lane in lanes:
            assert sum(list(front.values()).count(lane) for front in fronts) == 4


def test_the_scatter_follows_document_003():
    """Thread 5 of 32 at BK = 16: row 5 // 4, column 5 % 4 * 4, and 8 rows further down in the second pass."""
    titles = [_scatter.draw(step, 5, 16, 4).alt.split(". ")[0].replace("\u00a0", " ") for step in range(10)]
    assert titles[0] == "Step 1 of 10: thread 5 loads A[1, 4] to A[1, 7] at once"
    assert titles[3] == "Step 4 of 10: thread 5 stores A[1, 6] at As[6, 1]"
    assert titles[5] == "Step 6 of 10: thread 5 loads A[9, 4] to A[9, 7] at once"
    assert titles[9] == "Step 10 of 10: thread 5 stores A[9, 7] at As[7, 9]"


@pytest.mark.parametrize("depth", [8, 16])
@pytest.mark.parametrize("pad", [0, 4])
def test_every_element_of_the_tile_arrives_transposed(depth, pad):
    story = _scatter._story(depth, pad, None)
    arrived = {}
    for step in story:
        for thread, place in step.places.items():
            arrived[place] = step.sources[thread]
    assert arrived == {(p, i): (i, p) for p in range(depth) for i in range(_scatter.BM)}


@pytest.mark.parametrize("depth, rows", [(8, 2), (16, 4)])
def test_the_stores_do_not_tell_the_wavefronts_that_the_next_exercise_asks_for(depth, rows):
    alt = _scatter.draw(1, 0, depth, 4).alt
    assert f"32 floats, into {rows} rows of As" in alt and "wavefront" not in alt


def _flat(BM, BK, PAD, THREADS):
    WIDTH, ROWS = BM + PAD, THREADS // (BK // 4)
    SIZE = BK * WIDTH

    @cuda.jit
    def flat(A, out):
        tile = cuda.shared.array(SIZE, float32, 16)
        tid = cuda.threadIdx.x
        for i in range(0, BM, ROWS):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (r, c))
            for e in range(4):
                tile[(c + e) * WIDTH + r] = v[e]
        cuda.syncthreads()
        out[0, tid % BM] = tile[tid % BM]

    return flat


def test_a_learners_kernel_with_a_flat_tile_shows_the_same_scatter():
    own, course = (_scatter.draw(7, 21, 16, 4, make).alt for make in (_flat, None))
    assert own == course


def test_two_stages_side_by_side():
    tiles = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}
    alt = see.compare(
        "thread_tiled_2d", "vectorized", tiles, "global_load_requests", "global_load_sectors"
    ).alt
    assert "global load requests × 0.25, global load sectors × 1" in alt


def test_the_peers_with_and_without_vector_loads():
    alt = see.vectorized_peers("v02", "v05").alt
    assert "v02 × 0.63, v05 × 1.61" in alt and "v02_vectorized 5.84" in alt and "NVIDIA H200" in alt
    with pytest.raises(ValueError, match="v02, v03, v04, v05"):
        see.vectorized_peers("v01")


def test_a_step_says_which_threads_do_nothing():
    tile = scatter_figure.Tile(16, 16, 4, 32)
    step = scatter_figure.Step("load", {0: (0, 0)}, wide=4, costs="one request")
    assert "thread 9 does nothing here" in scatter_figure.draw([step], 0, 9, tile).alt
