"""One multiplication: what is lit is what the kernel reads and stores, and the sums are right."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from gemm_course import widgets as see
from gemm_course.figures import multiply as figure
from gemm_course.figures.block_story import LEVELS, WARP, numbered
from gemm_course.figures.svg import PAGE
from gemm_course.kernels import LADDER
from gemm_course.widgets import _multiply as widget
from lockstep import emulate
from tests.figures.page import SVG, faults

EXAMPLES = sorted(widget.EXAMPLES)


def chosen(name):
    """The story of the block of an example's last element, and that element."""
    example = widget.EXAMPLES[name]
    element = example.seen_first
    return example, widget.told(name, example.block_of(element)), element


def multiplying(story):
    return [moment for moment in story.moments if not moment.copies]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_block_stores_its_whole_tile_and_nothing_else(name):
    example, story, element = chosen(name)
    rows, columns = {row for row, _ in story.owner}, {column for _, column in story.owner}
    assert len(story.owner) == len(rows) * len(columns) == example.tiles["BM"] * example.tiles["BN"]
    assert element in story.owner
    assert set(story.owner.values()) == set(range(np.prod(LADDER[example.stage].block(example.tiles))))


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_element_of_the_choice_lies_in_its_block(name):
    example = widget.EXAMPLES[name]
    for row in example.rows:
        for column in example.columns:
            assert (row, column) in widget.told(name, example.block_of((row, column))).owner


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_steps_cover_k_once_and_in_order(name):
    example, story, _ = chosen(name)
    steps = [p for moment in multiplying(story) for p in range(moment.p[0], moment.p[1] + 1)]
    assert steps == list(range(example.shape[2]))
    assert len(story.moments) == example.steps > example.first


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("level", LEVELS)
def test_each_level_reads_the_rows_and_columns_of_what_it_makes(name, level):
    """What it stores and what it loads are different accesses; a Tensor Core's thread loads for others."""
    example, story, element = chosen(name)
    if level == "thread" and example.at_once > 1:
        return
    made = story.made(level, element)
    for moment in multiplying(story):
        p = range(moment.p[0], moment.p[1] + 1)
        assert story.read(moment, "A", level, element) == {(row, i) for row, _ in made for i in p}
        assert story.read(moment, "B", level, element) == {(i, column) for _, column in made for i in p}


@pytest.mark.parametrize("name", ["block_tiled", "vectorized"])
def test_a_block_copies_each_element_of_its_tiles_once(name):
    example, story, _ = chosen(name)
    for moment in story.moments:
        if moment.copies:
            for array, size in (("A", "BM"), ("B", "BN")):
                copied = [e for elements in moment.reads[array].values() for e in elements]
                assert len(copied) == len(set(copied)) == example.tiles[size] * example.tiles["BK"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_last_sum_is_the_kernels_own_result(name):
    example = widget.EXAMPLES[name]
    (m, n, k), stage = example.shape, LADDER[example.stage]
    A, B = (matrix.astype(stage.dtype) for matrix in widget.operands(name))
    C = np.zeros((m, n), stage.dtype)
    launch = stage.alone(m, n, k, np.float32(1), A, B, np.float32(0), C, tiles=example.tiles)
    emulate(launch.kernel, launch.grid, launch.block, *launch.arguments)
    row, column = example.seen_first
    last = len(chosen(name)[1].moments) - 1
    alt = widget.draw(name, last, "element", row, column).alt
    total = int(C[row, column])
    assert alt.startswith(
        f"C[{row}, {column}], row {row} of A times column {column} of B: {total} so far, after {k}"
    )


@pytest.mark.parametrize(
    ("name", "level", "title"),
    [
        ("naive_uncoalesced", "warp", "makes 32 × 1 of C: 32 products now, from 33 numbers."),
        ("naive_coalesced", "warp", "makes 1 × 32 of C: 32 products now, from 33 numbers in 5 sectors."),
        ("block_tiled", "block", "copies 8 × 8 of A and 8 × 8 of B into shared memory."),
        ("thread_tiled_1d", "thread", "makes 4 × 1 of C: 4 products now, from 5 numbers."),
        ("thread_tiled_2d", "thread", "makes 4 × 4 of C: 16 products now, from 8 numbers."),
        ("vectorized", "thread", "copies 8 of A and 4 of B into shared memory, with 3 loads."),
        ("warp_tiled", "warp", "makes 32 × 32 of C: 1024 products now, from 64 numbers."),
        ("wmma", "warp", "makes 16 × 32 of C: 8192 products now, from 768 numbers."),
        ("wmma", "thread", "cannot multiply alone: it loads 24 numbers for its warp."),
    ],
)
def test_the_first_picture_says_what_the_notebook_is_about(name, level, title):
    example = widget.EXAMPLES[name]
    picture = widget.draw(name, 0, level, *example.seen_first)
    assert title in picture.alt
    assert example.says in picture.alt


@pytest.mark.parametrize("name", EXAMPLES)
def test_pages_are_in_order_and_of_one_height(name):
    example = widget.EXAMPLES[name]
    heights = set()
    for row, column in ((example.rows[0], example.columns[0]), (example.rows[-1], example.columns[-1])):
        moments = widget.told(name, example.block_of((row, column))).moments
        for step in sorted({0, 1, len(moments) - 1}):
            for level in LEVELS:
                picture = widget.draw(name, step, level, row, column)
                assert faults(picture) == []
                heights.add(ElementTree.fromstring(picture.data).get("viewBox"))
    assert len(heights) == 1


def test_a_warp_is_32_threads_around_the_element():
    _, story, element = chosen("thread_tiled_2d")
    warp = story.threads("warp", element)
    assert len(warp) == WARP and {t // WARP for t in warp} == {story.owner[element] // WARP}


def test_numbers_that_tell_their_places_are_exact_in_every_dtype():
    for example in widget.EXAMPLES.values():
        m, n, k = example.shape
        for shape in ((m, k), (k, n)):
            values = numbered(*shape, LADDER[example.stage].dtype)
            assert values.astype(int).ravel().tolist() == list(range(1, values.size + 1))


def test_a_stage_without_an_example_is_named():
    with pytest.raises(ValueError, match=r"no example of 'stream_k'; there is one of naive_uncoalesced"):
        see.multiply("stream_k")


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_click_on_an_element_means_the_cell_that_is_drawn_there(name):
    """The outline of the chosen element lies where the spec says that its cell is."""
    example = widget.EXAMPLES[name]
    row, column = example.seen_first
    left, top, wide, high = (part * PAGE for part in figure.place_of_c(example.shape))
    m, n, _ = example.shape
    x, y = left + column * wide / n, top + row * high / m
    picture = widget.draw(name, example.steps - 1, "element", row, column)
    outlines = [
        tuple(float(rect.get(name)) for name in ("x", "y", "width", "height"))
        for rect in ElementTree.fromstring(picture.data).iter(f"{SVG}rect")
        if rect.get("stroke-width") == "2"
    ]
    assert pytest.approx((x - 1, y - 1, wide / n + 2, high / m + 2), abs=0.02) in outlines
