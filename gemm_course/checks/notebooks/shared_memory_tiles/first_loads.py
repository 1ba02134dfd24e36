"""Checks ``first_loads``: the global loads of one thread in document 002's example."""

from functools import cache
from itertools import product

import numpy as np

from gemm_course.checks.core import Refused, exercise, nothing_yet
from gemm_course.kernels import LADDER
from lockstep import Watch, emulate

# The exercise asks about this thread of this block, both given as (x, y).
WALKER = ((1, 0), (1, 0))

# A load is ("A" or "B", row, column).
Load = tuple[str, int, int]


@exercise(
    start='write down the first load as `("A", row, column)`. Which element of C does this thread compute?',
    hints=(
        "x counts columns, y counts rows. The thread's element of C is in row `2 * 0 + 0` and column `2 * 1 "
        "+ 1`.",
        "Of every tile of A it loads the element at its own place: its row of C, column `2 * tile + 1`. Of "
        "every tile of B: row `2 * tile + 0`, its column of C.",
        "There are two tiles along k, and of each it loads first from A, then from B.",
        'It starts with `("A", 0, 1)` and `("B", 0, 3)`. For the second tile the column in A and the row in '
        "B grow by 2.",
    ),
)
def first_loads(loads):
    """Four loads ("A" or "B", row, column) of thread (1, 0) in block (1, 0): 4 x 4 matrices, 2 x 2 tiles."""
    given, walks = _as_loads(loads), _loads_of_all_threads()
    right = walks[WALKER]
    if given == right:
        return (
            "The emulator has recorded what this thread loads: the same four. One element of A and one of B "
            "per tile, 4 loads instead of 8."
        )
    _check_walker(given, walks)
    _check_form(given, right)
    raise Refused(_astray(given, right), _first_difference(given, right))


def _as_loads(loads) -> list[Load]:
    if not isinstance(loads, (list, tuple)):
        raise Refused('Write a list: `[("A", row, column), ...]`.')
    if not loads or all(load is None or load is Ellipsis for load in loads):
        raise nothing_yet()
    for position, load in enumerate(loads, 1):
        well_formed = isinstance(load, (tuple, list)) and len(load) == 3 and load[0] in ("A", "B", "a", "b")
        if not well_formed or not all(isinstance(i, (int, np.integer)) for i in load[1:]):
            raise Refused(
                f'Load {position} is `{load!r}`. Write each as `("A", row, column)`, in whole numbers.'
            )
    return [(load[0].upper(), int(load[1]), int(load[2])) for load in loads]


@cache
def _loads_of_all_threads() -> dict[tuple, list[Load]]:
    """Trace the global loads of each (thread, block) with the emulator."""
    stage, tiles, walks = LADDER["penny_xu_tile"], {"BM": 2, "BN": 2, "BK": 2}, {}
    for block in product((0, 1), (0, 1)):
        A, B, C = (np.ones((4, 4), np.float32) for _ in range(3))
        problem = (4, 4, 4, np.float32(1), A, B, np.float32(0), C)
        watch = Watch(block=block)
        trace = emulate(
            stage.kernel(tiles), stage.grid(4, 4, tiles), stage.block(tiles), *problem, watch=watch
        )
        loads = trace.trace.query("space == 'global' and op == 'load'")
        for thread, rows in loads.groupby("thread"):
            walks[(thread % 2, thread // 2), block] = [
                (array, *element) for array, element in zip(rows["array"], rows["element"])
            ]
    return walks


# ---- what goes wrong ---------------------------------------------------------------------------------------

OTHERS = {
    ((0, 1), (0, 1)): "x and y are swapped, for the thread and for the block: x counts columns.",
    ((0, 1), (1, 0)): "x and y of the thread are swapped: x counts columns.",
    ((1, 0), (0, 1)): "x and y of the block are swapped: x counts columns of blocks.",
    ((1, 0), (0, 0)): "The block is forgotten: block (1, 0) begins in column 2 of C.",
}


def _check_walker(given: list[Load], walks: dict[tuple, list[Load]]) -> None:
    """Refuse the right loads of the wrong thread or block."""
    for walker, loads in walks.items():
        if loads == given:
            why = OTHERS.get(walker, "Look again at which thread is asked for.")
            raise Refused(f"These are the loads of thread {walker[0]} of block {walker[1]}. {why}")


def _check_form(given: list[Load], right: list[Load]) -> None:
    """Refuse the right elements in the wrong order, number or notation."""
    if [(array, column, row) for array, row, column in given] == right:
        raise Refused(
            "The right elements, but the row comes first, then the column.", _first_difference(given, right)
        )
    if sorted(given) == sorted(right):
        raise Refused(
            "The right four elements, in another order. The thread takes a tile at a time: its element of A, "
            "its element of B, then the barrier; only then the next tile.",
            _first_difference(given, right),
        )
    row, column = right[0][1], right[1][2]
    naive = {(array, *at) for p in range(4) for array, at in (("A", (row, p)), ("B", (p, column)))}
    if len(given) == 8 and set(given) == naive:
        raise Refused(
            "These eight are the loads of a kernel without tiles: a whole row of A and a whole column of B. "
            "With tiles a thread fetches only its share; its neighbours in the block fetch the rest."
        )
    if given == right[: len(given)]:
        missing = {1: "three", 2: "two", 3: "one"}[len(given)]
        raise Refused(f"Right so far, and {missing} more to come: there are two tiles along k.")


def _astray(given: list[Load], right: list[Load]) -> str:
    """Return what is wrong: the second tile is not where it should be, or something else."""
    if given == right[:2] * 2:
        return "The same tiles twice. The second tile lies 2 further along k: a column in A, a row in B."
    moved_across = len(given) == 4 and (given[2][1] != right[2][1] or given[3][2] != right[3][2])
    if moved_across and given[:2] == right[:2]:
        return (
            "The first tile is right. The second was looked for along the wrong axis: along k a tile moves "
            "to the right in A and down in B."
        )
    if given[:4] == right:
        return "The first four are right, and there are no more."
    lines = {(array, at[array == "B"]) for array, *at in given}
    if lines == {("A", right[0][1]), ("B", right[1][2])}:
        return (
            "The row of A and the column of B are right, but not how far along k. Of each tile this thread "
            "fetches one element, at its own place in the tile: column 1 of A's, row 0 of B's. And a tile "
            "is 2 wide."
        )
    return "This thread loads something else. Its row of C is its row of A, its column of C its column of B."


def _first_difference(given: list[Load], right: list[Load]) -> str:
    for position, (mine, wanted) in enumerate(zip(given, right), 1):
        if mine != wanted:
            return (
                f"Load {position}: `{mine[0]}[{mine[1]}, {mine[2]}]` is the first load that does not belong "
                "there."
            )
    return ""
