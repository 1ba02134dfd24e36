"""Lists the likely mistakes in the loops of ``slices``, known by how often each element is stored."""

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from gemm_course.checks.engines.coverage import CoverageSlip, counts_of
from gemm_course.checks.engines.tiles import Tiles

Place = tuple[int, int]
MANY = {"As": "columns", "Bs": "rows"}
OWN = {"As": "tx", "Bs": "ty"}
ACROSS = {"As": "BN // TN", "Bs": "BM // TM"}
AXES_SWAPPED = {
    "As": "In As tx and ty are swapped: rows go with `ty`, from `ty * TM` on, and columns with `tx`.",
    "Bs": "In Bs tx and ty are swapped: columns go with `tx`, from `tx * TN` on, and rows with `ty`.",
}
DIRECTION = {"As": "x", "Bs": "y"}


def _across(array: str, t: Tiles) -> int:
    """Return among how many threads the columns of As, or the rows of Bs, are shared."""
    return t.threads[0] if array == "As" else t.threads[1]


def _if_taken(array: str, taken: Callable[[int, int, Tiles], Iterable[Place]]) -> Callable[[Tiles], dict]:
    """Return a function that counts the stores if thread (x, y) stores these (row, column) of this tile."""

    def times(t: Tiles) -> dict:
        x, y = t.threads
        shape = (t.BM, t.BK) if array == "As" else (t.BK, t.BN)
        return {array: counts_of(shape, [e for ty in range(y) for tx in range(x) for e in taken(tx, ty, t)])}

    return times


def _slices(array: str, along: Callable[[int, Tiles], Iterable[int]]) -> Callable[[Tiles], dict]:
    """Return a function that counts the stores if x takes these columns of As, or y these rows of Bs."""
    if array == "As":
        return _if_taken(array, lambda x, y, t: [(y * t.TM + i, c) for c in along(x, t) for i in range(t.TM)])
    return _if_taken(array, lambda x, y, t: [(r, x * t.TN + j) for r in along(y, t) for j in range(t.TN)])


def _in_both(message: str, along: Callable[[str, int, Tiles], Iterable[int]]) -> CoverageSlip:
    """Return a slip that is known in either tile. along: (tile, tx or ty, tiles) -> columns or rows."""
    of_a, of_b = (_slices(array, partial(along, array)) for array in ("As", "Bs"))
    return CoverageSlip(message, lambda t: of_a(t) | of_b(t))


def _everything(array: str) -> CoverageSlip:
    return CoverageSlip(
        f"Every thread fetches its slice of all {MANY[array]} of {array}: the work is not shared. Begin at "
        f"`{OWN[array]}`, and go on in strides of `{ACROSS[array]}`.",
        _slices(array, lambda own, t: range(t.BK)),
    )


def _stride(array: str, wrong: str, step: Callable[[Tiles], int]) -> CoverageSlip:
    """Return the slip where the loop over this tile's columns or rows has a wrong stride."""
    return CoverageSlip(
        f"The {MANY[array]} of {array} go on in steps of {wrong}. They are shared among the "
        f"`{ACROSS[array]}` threads along {DIRECTION[array]}: that is the stride.",
        _slices(array, lambda own, t: range(own, t.BK, step(t))),
    )


def _rounded_down(array: str) -> CoverageSlip:
    """Return the slip where a thread comes back as often as BK divided by the threads, rounded down."""

    def along(own: int, t: Tiles) -> range:
        return range(own, t.BK // _across(array, t) * _across(array, t), _across(array, t))

    return CoverageSlip(
        f"The last {MANY[array]} of {array} are left out where BK is no multiple of `{ACROSS[array]}`: are "
        f"the passes rounded down, `BK // ({ACROSS[array]})`? "
        f"`range({OWN[array]}, BK, {ACROSS[array]})` goes on until BK is reached.",
        _slices(array, along),
    )


def _numbered_by_columns(array: str) -> CoverageSlip:
    """Return the slip where a walk numbers the threads as if a row of the block had BN of them."""

    def taken(x: int, y: int, t: Tiles) -> Iterable[Place]:
        across, down = t.threads
        rows, columns = (t.BM, t.BK) if array == "As" else (t.BK, t.BN)
        return [divmod(e, columns) for e in range(y * t.BN + x, rows * columns, across * down)]

    return CoverageSlip(
        f"{array} is walked over by numbers that some threads share and nobody else has: a row of the block "
        "has BN // TN threads, not BN. Number them `ty * (BN // TN) + tx`.",
        _if_taken(array, taken),
    )


def _axes_swapped(array: str, step: Callable[[Tiles], int]) -> CoverageSlip:
    """Return the slip where ty counts the columns of As, or tx the rows of Bs, in strides of ``step``."""

    def taken(x: int, y: int, t: Tiles) -> Iterable[Place]:
        if array == "As":
            return [(x * t.TM + i, c) for c in range(y, t.BK, step(t)) for i in range(t.TM)]
        return [(r, y * t.TN + j) for r in range(x, t.BK, step(t)) for j in range(t.TN)]

    return CoverageSlip(AXES_SWAPPED[array], _if_taken(array, taken))


def _sizes_swapped(array: str, apart: str, many: str) -> CoverageSlip:
    """Return the slip where a slice begins every ``apart``, or has ``many`` elements; each "TM" or "TN"."""
    size = "TM" if array == "As" else "TN"
    rows, own = ("rows", "ty") if array == "As" else ("columns", "tx")

    def taken(x: int, y: int, t: Tiles) -> Iterable[Place]:
        begin, length = getattr(t, apart), range(getattr(t, many))
        if array == "As":
            return [(y * begin + i, c) for c in range(x, t.BK, t.threads[0]) for i in length]
        return [(r, x * begin + j) for r in range(y, t.BK, t.threads[1]) for j in length]

    return CoverageSlip(
        f"TM and TN are swapped in {array}: a thread has {size} of its {rows}, from `{own} * {size}` on.",
        _if_taken(array, taken),
    )


def _in_order(message: str, array: str, taken: Callable[[int, Tiles], Iterable[Place]]) -> CoverageSlip:
    """Return a slip of threads that are numbered consecutively: thread number e stores these places."""
    return CoverageSlip(message, _if_taken(array, lambda x, y, t: taken(y * t.threads[0] + x, t)))


def _numbered(array: str) -> tuple[CoverageSlip, ...]:
    """Return the slips of threads that are numbered consecutively and take elements in the same order."""
    width, other = ("BK", "BN") if array == "As" else ("BN", "BK")

    def size(t: Tiles) -> int:
        return t.BK * (t.BM if array == "As" else t.BN)

    def threads(t: Tiles) -> int:
        return int(np.prod(t.threads))

    def place(e: int, t: Tiles) -> Place:
        return divmod(e, getattr(t, width))

    return (
        _in_order(
            f"Elements land in the wrong row and column of {array}. Are its two indices swapped? Or is an "
            f"element's number divided by {other}? A row of {array} has {width} elements: row "
            f"`e // {width}`, column `e % {width}`.",
            array,
            lambda e, t: [divmod(f, getattr(t, other)) for f in range(e, size(t), threads(t))],
        ),
        _in_order(
            f"The elements of {array} are shared among threads numbered consecutively, but the stride is "
            "only the block's width. All threads take part: `BM * BN // (TM * TN)` of them.",
            array,
            lambda e, t: [place(f, t) for f in range(e, size(t), t.threads[0])],
        ),
        _in_order(
            f"Every thread fetches one element of {array}: there is no loop, or its stride is too large. The "
            "tile has more elements than the block threads.",
            array,
            lambda e, t: [place(e, t)],
        ),
        _in_order(
            f"The passes over {array} are rounded down: the last elements are left out where the tile's size "
            "is no multiple of the number of threads. Go on until all elements are stored.",
            array,
            lambda e, t: [place(f, t) for f in range(e, size(t) // threads(t) * threads(t), threads(t))],
        ),
    )


def _first_of_each(t: Tiles) -> dict:
    """Count the stores without the loops over TM and TN, when a slice is one element."""
    a = [(row, c) for c in range(t.BK) for row in range(0, t.BM, t.TM)]
    b = [(r, column) for r in range(t.BK) for column in range(0, t.BN, t.TN)]
    return {"As": counts_of((t.BM, t.BK), a), "Bs": counts_of((t.BK, t.BN), b)}


SLIPS = (
    _in_both(
        "As in the draft, each thread brings one slice, of column `tx` or of row `ty`, and no more. Where "
        "there are fewer threads than BK in that direction, it must come back for the next slice, as many "
        "columns or rows further on as there are threads.",
        lambda array, own, t: [own],
    ),
    _stride("As", "`BM // TM`, the threads along y", lambda t: t.BM // t.TM),
    _stride("Bs", "`BN // TN`, the threads along x", lambda t: t.BN // t.TN),
    _in_both(
        "The loops start at 0 for all threads, so that all of them fetch the same slices. Each must begin "
        "with its own, `tx` or `ty`.",
        lambda array, own, t: range(0, t.BK, _across(array, t)),
    ),
    _everything("As"),
    _everything("Bs"),
    _in_both(
        "The loops go on in steps of 1, so that neighbours fetch the same slices again. The next slice that "
        "nobody has yet is as far away as there are threads in this direction.",
        lambda array, own, t: range(own, t.BK),
    ),
    _stride("As", "TM, the length of a slice", lambda t: t.TM),
    _stride("Bs", "TN, the length of a slice", lambda t: t.TN),
    _rounded_down("As"),
    _rounded_down("Bs"),
    _numbered_by_columns("As"),
    _numbered_by_columns("Bs"),
    *(
        _axes_swapped(array, step)
        for array in ("As", "Bs")
        for step in (lambda t: t.threads[0], lambda t: t.threads[1])
    ),
    *(
        _sizes_swapped(array, apart, many)
        for array in ("As", "Bs")
        for apart, many in (("TM", "TN"), ("TN", "TM"), ("TM", "TM"), ("TN", "TN"))
        if (apart, many) != 2 * (("TM",) if array == "As" else ("TN",))
    ),
    CoverageSlip(
        "Of each slice only the first element is fetched. A slice of As has TM elements, one below the "
        "other, and one of Bs TN side by side.",
        _first_of_each,
    ),
    *_numbered("As"),
    *_numbered("Bs"),
)
