"""The course in order: its notebooks, their exercises, and the numbers that follow from it.

Everything else knows a notebook by its topic, such as ``warp_tiles``, and an exercise by the name of its
checker, such as ``outer_product``. Numbers are made here from the order. So a notebook that is moved, or an
exercise that is added between two others, is one changed line here, and then the notebooks are built again.

A side trip is a notebook that leads away from one notebook of the road and back. It has that notebook's
number with an S, and letters for its exercises: "S05" and "S05.a".

Texts name an exercise as ``[[outer_product]]`` and a notebook as ``[[warp_tiles.ipynb]]``; :func:`numbered`
puts the numbers there, and into links to ``warp_tiles.ipynb``.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass

_REFERENCE = re.compile(r"\[\[([A-Za-z]\w*)(\.ipynb)?\]\]")
_LINK = re.compile(r"(?<=\]\()([a-z]\w*)(?=\.ipynb\b)")


@dataclass(frozen=True)
class Notebook:
    """A notebook: its topic, its exercises' checkers as they are read, and, of a side trip, where it begins.

    beside: the topic of the notebook that a side trip leaves, or "" for a notebook of the road.
    """

    topic: str
    exercises: tuple[str, ...]
    beside: str = ""

    @property
    def number(self) -> str:
        """The notebook's number: "05", or "S05" for the side trip from there."""
        road = [each.topic for each in ROAD]
        return f"S{road.index(self.beside):02}" if self.beside else f"{road.index(self.topic):02}"

    @property
    def name(self) -> str:
        """The name of its file without ending: "05_thread_tiles_2d"."""
        return f"{self.number}_{self.topic}"

    @property
    def title(self) -> str:
        """Its topic in words: "thread tiles 2d"."""
        return self.topic.replace("_", " ")

    def number_of(self, exercise: str) -> str:
        """Return the number of one of its exercises: "05.1", or "S05.a" in a side trip."""
        place = self.exercises.index(exercise)
        return f"{self.number}.{string.ascii_lowercase[place] if self.beside else place + 1}"


ROAD = (
    Notebook("welcome", ("blocks_for", "vector_add", "broadcast_add", "where", "sector_and_line")),
    Notebook("naive", ("naive", "naive_sectors", "l1_queue", "no_float64")),
    Notebook("coalesced", ("coalesced", "partial_sums", "best_block")),
    Notebook("shared_memory_tiles", ("first_loads", "reverse", "tile_kernel", "tile_walk", "transpose")),
    Notebook("thread_tiles_1d", ("thread_columns", "in_registers")),
    Notebook("thread_tiles_2d", ("outer_product", "draft_is_right", "slices")),
    Notebook(
        "vectorized_access",
        ("four_at_once", "transposing_scatter", "scatter_padding", "ragged_fours", "both_switches"),
    ),
    Notebook("warp_tiles", ("warp_wavefronts", "runs_of_four", "stencil", "stencil_limit")),
    Notebook("overlap", ("two_slots", "ring_places", "any_ring", "ring_suspects", "reads_ahead")),
    Notebook("tensor_cores", ("warp_product", "fragments_once", "padding_wavefronts", "several_warps")),
    Notebook("mma_sync", ("accumulator_owner", "by_hand", "swizzle", "ring_and_swizzle", "product_clocks")),
    Notebook("hopper", ("parities", "expected_bytes", "producer", "consumer")),
    Notebook("last_per_cent", ("last_wave", "ring_goes_on", "best_width", "last_arrival", "stream_k_parts")),
    Notebook("own_kernel", ("fused_epilogue", "raised_roof")),
)
SIDE_TRIPS = (
    Notebook("roofline", ("roof",), beside="welcome"),
    Notebook("row_lengths", ("leading_dimension",), beside="naive"),
    Notebook("kernels_on_trial", ("smallest_failing_shape",), beside="shared_memory_tiles"),
    Notebook("warps_in_waiting", ("tile_sectors",), beside="thread_tiles_1d"),
    Notebook("kernel5", ("coalesced_b", "no_conflicts"), beside="thread_tiles_2d"),
    Notebook("one_read_too_many", ("stray_read",), beside="vectorized_access"),
    Notebook("warp_loops", ("owner_map", "legal_tiles"), beside="warp_tiles"),
    Notebook("walks_and_groups", ("shared_walk", "grouped_tile"), beside="overlap"),
    Notebook("fp16_in_use", ("ragged_product",), beside="tensor_cores"),
    Notebook("reading_mma_sync", ("swizzle_any", "fragment_registers"), beside="mma_sync"),
    Notebook("how_far_it_gets", ("standstill", "handed_over"), beside="hopper"),
    Notebook("ten_shapes", (), beside="last_per_cent"),
)
NOTEBOOKS = (*ROAD, *SIDE_TRIPS)
# The names of all exercises, first those of the road.
EXERCISES = tuple(exercise for notebook in NOTEBOOKS for exercise in notebook.exercises)


def notebook(topic: str) -> Notebook:
    """Return the notebook on a topic. Raise ValueError if there is none."""
    for each in NOTEBOOKS:
        if each.topic == topic:
            return each
    raise ValueError(f"there is no notebook {topic!r}; there are {', '.join(one.topic for one in NOTEBOOKS)}")


def notebook_of(exercise: str) -> Notebook | None:
    """Return the notebook that has this exercise, or None for an exercise that the road does not know."""
    return next((each for each in NOTEBOOKS if exercise in each.exercises), None)


def number_of(exercise: str) -> str:
    """Return an exercise's number, "05.1" or "S05.a". Raise ValueError if the road does not know it."""
    found = notebook_of(exercise)
    if found is None:
        raise ValueError(f"there is no exercise {exercise!r} in gemm_course/road.py")
    return found.number_of(exercise)


def numbered(text: str) -> str:
    """Return a text with numbers for the names in it. Raise ValueError for a name that is not on the road.

    ``[[outer_product]]`` becomes "05.1", ``[[warp_tiles.ipynb]]`` "07", and the target of a link, as in
    ``](warp_tiles.ipynb#cell-id=formula)``, the name of the file.
    """
    return _LINK.sub(lambda found: notebook(found[1]).name, _REFERENCE.sub(_number, text))


def numbered_where_known(text: str) -> str:
    """Return a text with numbers for the names that the road knows.

    This is for a message that may quote a learner's code, in which ``[[x]]`` is Python.
    """
    return _REFERENCE.sub(lambda found: _number(found) if _is_known(found) else found[0], text)


def _number(found: re.Match) -> str:
    return notebook(found[1]).number if found[2] else number_of(found[1])


def _is_known(found: re.Match) -> bool:
    return found[1] in (EXERCISES if not found[2] else [each.topic for each in NOTEBOOKS])
