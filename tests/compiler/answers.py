"""Thirty answers to exercises, right and wrong, compiled as the checkers launch them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gemm_course.checks.core import learner
from gemm_course.compiler import CannotCompile, Compiled, compiled
from tests.checks.cells import checked_cells, verdict_of
from tests.checks.test_wrong_solutions import WRONG

RIGHT = (
    *("vector_add", "naive", "coalesced", "reverse", "tile_kernel", "thread_columns", "no_conflicts"),
    *(
        "outer_product",
        "four_at_once",
        "transposing_scatter",
        "runs_of_four",
        "warp_product",
        "fragments_once",
    ),
    *("ragged_product", "broadcast_add", "no_float64"),
)
MISTAKEN = {  # those of an exercise, and of each a part of what Numba says against it, or "" if it compiles
    "vector_add": {"two_dimensional_index_as_one": "with 2 indices", "as_in_numpy": "makes a new array"},
    "broadcast_add": {"both_indices_as_one": "there is no lt(", "as_in_numpy": "makes a new array"},
    "naive": {"a_slip_of_the_pen": "name 'j' is not defined"},
    "no_float64": {"half_precision": ""},
    "coalesced": {"lines_of_the_course": "name 'u32' is not defined"},
    "no_conflicts": {"width_computed_inside": "must consist of constants"},
    "four_at_once": {"index_in_two_arguments": "takes 3 positional arguments but 4"},
    "transposing_scatter": {"width_computed_in_the_kernel": "must consist of constants"},
    "thread_columns": {"rotated_rows": "", "b_read_for_every_result": "", "a_read_twice": ""},
    "runs_of_four": {"odd_rows_put_partly": "", "a_not_filled": "", "without_the_second_barrier": ""},
}
ANSWERS = (
    *((exercise, "") for exercise in RIGHT),
    *((exercise, mistake) for exercise, mistakes in MISTAKEN.items() for mistake in mistakes),
)


class _Launched(BaseException):
    """Carries a launch out of the checker, past all that catches errors."""


def launch_of(exercise: str, mistake: str) -> tuple[Any, tuple]:
    """The kernel that an answer is checked with first, and its arguments; "" for the right answer."""
    cell = WRONG[exercise][mistake].cell if mistake else checked_cells("solution")[exercise]
    with _launches_end_the_check():
        try:
            verdict_of(cell)
        except _Launched as launched:
            return launched.args
    raise AssertionError(f"{exercise} launches no kernel")


@contextmanager
def _launches_end_the_check() -> Iterator[None]:
    def emulate(kernel, grid, block, *args, **options):
        raise _Launched(kernel, args)

    before, learner.emulate = learner.emulate, emulate
    try:
        yield
    finally:
        learner.emulate = before


def outcome(exercise: str, mistake: str) -> Compiled | CannotCompile:
    """What comes of compiling an answer."""
    kernel, args = launch_of(exercise, mistake)
    try:
        return compiled(kernel, *args)
    except CannotCompile as reason:
        return reason
