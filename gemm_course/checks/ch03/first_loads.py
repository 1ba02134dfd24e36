"""Exercise 03.1: the global loads of one thread in document 002's example."""

from functools import cache
from itertools import product

import numpy as np

from gemm_course.checks.core import Refused, nothing_yet
from gemm_course.emulator import Watch, emulate
from gemm_course.kernels import LADDER

WALKER = ((1, 0), (1, 0))  # thread and block, (x, y)


def prove_first_loads(loads) -> str:
    """What was proved of the learner's list; raises Refused with the first thing wrong."""
    given, walks = _as_loads(loads), _loads_of_all_threads()
    truth = walks[WALKER]
    if given == truth:
        return (
            "The emulator's trace of this thread shows the same four loads. One element of A and one of B a "
            "tile, 4 loads instead of 8."
        )
    for diagnosis in (_loads_of_another, _loads_in_another_form, _loads_astray):
        diagnosis(given, truth, walks)
    raise AssertionError("an answer that differs from the truth differs in its first wrong load")


def _as_loads(loads) -> list:
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
def _loads_of_all_threads() -> dict:
    """The global loads of each (thread, block), traced by the emulator."""
    stage, tiles = LADDER["penny_xu_tile"], {"BM": 2, "BN": 2, "BK": 2}
    one = np.float32(1)
    walks = {}
    for block in product((0, 1), (0, 1)):
        A, B, C = (np.ones((4, 4), np.float32) for _ in range(3))
        geometry = stage.grid(4, 4, tiles), stage.block(tiles)
        trace = emulate(
            stage.kernel(tiles), *geometry, 4, 4, 4, one, A, B, np.float32(0), C, watch=Watch(block=block)
        ).trace
        loads = trace[(trace["space"] == "global") & (trace["op"] == "load")]
        for thread, rows in loads.groupby("thread"):
            walks[(thread % 2, thread // 2), block] = [
                (array, *element) for array, element in zip(rows["array"], rows["element"])
            ]
    return walks


def _loads_of_another(given, truth, walks):
    """The right walk of the wrong thread or block."""
    for (thread, block), loads in walks.items():
        if loads == given:
            why = {
                (
                    (0, 1),
                    (0, 1),
                ): "x and y are exchanged, for the thread and for the block: x counts columns.",
                ((0, 1), (1, 0)): "x and y of the thread are exchanged: x counts columns.",
                ((1, 0), (0, 1)): "x and y of the block are exchanged: x counts columns of blocks.",
                ((1, 0), (0, 0)): "The block is forgotten: block (1, 0) begins in column 2 of C.",
            }.get((thread, block), "Look again who is asked for.")
            raise Refused(f"These are the loads of thread {thread} of block {block}. {why}")


def _loads_in_another_form(given, truth, walks):
    """The right elements in the wrong order, number or notation."""
    if [(array, column, row) for array, row, column in given] == truth:
        raise Refused(
            "Right elements, but the row comes first, then the column.", _first_difference(given, truth)
        )
    if sorted(given) == sorted(truth):
        raise Refused(
            "The right four elements, in another order. The thread takes a tile at a time: its element of A, "
            "its element of B, then the barrier; only then the next tile.",
            _first_difference(given, truth),
        )
    row, column = truth[0][1], truth[1][2]
    naive = {(array, *at) for p in range(4) for array, at in (("A", (row, p)), ("B", (p, column)))}
    if len(given) == 8 and set(given) == naive:
        raise Refused(
            "These eight are the loads of a kernel without tiles: a whole row of A and a whole column of B. "
            "With tiles a thread fetches only its share; its neighbours in the block fetch the rest."
        )
    if given == truth[: len(given)]:
        missing = {1: "three", 2: "two", 3: "one"}[len(given)]
        raise Refused(f"Right so far, and {missing} more to come: there are two tiles along k.")


def _loads_astray(given, truth, walks):
    """The second tile is not where it should be, or something else: the first difference."""
    if given == truth[:2] * 2:
        raise Refused(
            "The same tiles twice. The second tile lies 2 further along k: a column in A, a row in B.",
            _first_difference(given, truth),
        )
    if (
        len(given) == 4
        and given[:2] == truth[:2]
        and (given[2][1] != truth[2][1] or given[3][2] != truth[3][2])
    ):
        raise Refused(
            "The first tile is right. The second was looked for along the wrong axis: along k a tile moves "
            "to the right in A and down in B.",
            _first_difference(given, truth),
        )
    if len(given) > len(truth) and given[:4] == truth:
        raise Refused("The first four are right, and there are no more.")
    raise Refused(
        "This thread loads something else. Its row of C is its row of A, its column of C its column of B.",
        _first_difference(given, truth),
    )


def _first_difference(given, truth) -> str:
    for position, (mine, right) in enumerate(zip(given, truth), 1):
        if mine != right:
            return (
                f"Load {position}: `{mine[0]}[{mine[1]}, {mine[2]}]` is the first that this thread does not "
                "do then."
            )
    return ""
