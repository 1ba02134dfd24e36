"""What the second edition of the course called things, by numbers, and which of its exercises are gone.

Learners have progress, attempts and notebooks with these names. The numbers are those of then, and
:mod:`gemm_course.road` has those of today.
"""

from __future__ import annotations

# The topics of its notebooks 00 to 12.
_TOPICS = (
    "welcome",
    "naive",
    "coalesced",
    "shared_memory_tiles",
    "thread_tiles_1d",
    "thread_tiles_2d",
    "vectorized_access",
    "warp_tiles",
    "tensor_cores",
    "overlap",
    "mma_sync",
    "hopper",
    "last_per_cent",
)
TOPICS = {f"{number:02}": topic for number, topic in enumerate(_TOPICS)}
# The checkers of its exercises, by number.
EXERCISES = {
    "00.1": "where",
    "00.2": "blocks_for",
    "00.3": "idle_lanes",
    "00.4": "sector_and_line",
    "00.5": "vector_add",
    "00.6": "broadcast_add",
    "00.7": "roof",
    "01.1": "naive",
    "01.2": "naive_loads",
    "01.3": "naive_sectors",
    "01.4": "no_float64",
    "01.5": "naive_counts",
    "02.1": "coalesced",
    "02.2": "documentation_matmul",
    "02.3": "best_block",
    "02.4": "leading_dimension",
    "03.1": "first_loads",
    "03.2": "reverse",
    "03.3": "tile_kernel",
    "03.4": "barriers",
    "03.5": "smallest_failing_shape",
    "03.6": "tile_walk",
    "04.1": "reads_per_result",
    "04.2": "thread_columns",
    "04.3": "tile_sectors",
    "04.4": "in_registers",
    "05.1": "draft_is_right",
    "05.2": "slices",
    "05.3": "coalesced_b",
    "05.4": "outer_product",
    "05.5": "no_conflicts",
    "06.1": "four_at_once",
    "06.2": "transposing_scatter",
    "06.3": "scatter_padding",
    "06.4": "ragged_fours",
    "06.5": "stray_read",
    "07.2": "owner_map",
    "07.3": "legal_tiles",
    "07.4": "warp_wavefronts",
    "07.7": "runs_of_four",
    "08.1": "warp_product",
    "08.2": "padding_wavefronts",
    "08.3": "padded_c",
    "08.4": "ragged_product",
    "08.5": "fragments_once",
    "09.1": "two_slots",
    "09.2": "ring_places",
    "09.3": "any_ring",
    "09.4": "ring_suspects",
    "09.5": "shared_walk",
    "09.6": "grouped_tile",
    "10.1": "accumulator_owner",
    "10.2": "by_hand",
    "10.3": "swizzle",
    "10.4": "swizzle_any",
    "10.5": "fragment_registers",
    "10.6": "product_clocks",
    "11.1": "parities",
    "11.2": "expected_bytes",
    "11.3": "producer",
    "11.4": "consumer",
    "11.5": "standstill",
    "11.6": "handed_over",
    "12.1": "last_wave",
    "12.2": "persistent_loop",
    "12.3": "best_width",
    "12.4": "last_arrival",
    "12.5": "stream_k_parts",
    "12.6": "fused_epilogue",
}

# What a learner's older notebook may still ask, and where the course tells of it now: "is told in notebook
# [[naive.ipynb]]".
GONE: dict[str, str] = {
    "idle_lanes": "is told in notebook [[welcome.ipynb]]",
    "documentation_matmul": "is told in notebook [[coalesced.ipynb]], under its exercise [[coalesced]]",
    "naive_loads": "is told in notebook [[naive.ipynb]]: a thread loads two numbers in each step along k",
    "naive_counts": "is told in notebook [[naive.ipynb]], by the counts of one warp and one step",
    "barriers": "is told in notebook [[shared_memory_tiles.ipynb]]",
    "padded_c": "is told in the side trip [[fp16_in_use.ipynb]]",
    "persistent_loop": "is exercise [[ring_goes_on]] in notebook [[last_per_cent.ipynb]], with two roles",
    "reads_per_result": "is told in notebook [[thread_tiles_1d.ipynb]]",
}


def name_of(kept_as: str) -> str:
    """Return the name of an exercise that something was kept under, by today's name or by a number of then.

    Any other number, such as that of a teacher's own exercise, is returned as it is.
    """
    return EXERCISES.get(kept_as, kept_as)


def cell_id(exercise: str) -> str:
    """Return the id that the cell of an exercise had, such as "ex-05-4", or "" if it had none."""
    number = next((number for number, name in EXERCISES.items() if name == exercise), "")
    return f"ex-{number.replace('.', '-')}" if number else ""
