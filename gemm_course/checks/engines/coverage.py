"""Exercises 05.2 and 05.3: device functions that fill shared tiles, every element exactly once.

The learner's function is called by a kernel that does nothing else. What was stored, where, by whom and with
which value is read off the emulator's trace.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gemm_course.checks.core import (
    Refused,
    emulate_kernel,
    function_of,
    is_stub,
    kernel_of,
    line_at,
    nothing_yet,
    number_shown,
)
from gemm_course.checks.engines.problem import Problem
from gemm_course.emulator import Finding, Report, Watch
from gemm_course.kernels.fetch_only import fetch_only

FETCH = ("m", "n", "k", "k0", "A", "B", "As", "Bs")
Element = tuple[int, int]


class Tiles(NamedTuple):
    """The sizes that the learner's factory is called with."""

    BM: int
    BN: int
    BK: int
    TM: int
    TN: int

    @property
    def threads(self) -> tuple[int, int]:
        return self.BN // self.TN, self.BM // self.TM

    @property
    def shapes(self) -> dict[str, Element]:
        return {"As": (self.BM, self.BK), "Bs": (self.BK, self.BN)}

    def __str__(self) -> str:
        return ", ".join(f"{name} = {size}" for name, size in zip(self._fields, self))


class Store(NamedTuple):
    thread: int
    element: Element
    value: float


@dataclass(frozen=True)
class Fetched:
    """One tile of each matrix, fetched by the block (x, y) = ``block`` from column and row ``k0`` on."""

    function: Any
    tiles: Tiles
    problem: Problem
    block: tuple[int, int]
    k0: int
    report: Report

    @cached_property
    def stores(self) -> dict[str, list[Store]]:
        found: dict[str, list[Store]] = {"As": [], "Bs": []}
        trace = self.report.trace
        kept = trace[(trace["op"] == "store") & trace["array"].isin(tuple(found))]
        rows = (kept[name].tolist() for name in ("array", "thread", "element", "value"))
        for array, thread, element, value in zip(*rows):
            found[array].append(Store(thread, element, value))
        return found

    def times(self, array: str) -> np.ndarray:
        """How often each element of a tile was stored."""
        counted = np.zeros(self.tiles.shapes[array], int)
        for store in self.stores[array]:
            counted[store.element] += 1
        return counted

    def values(self, array: str) -> np.ndarray:
        """What the tile holds in the end; NaN where nothing was stored."""
        held = np.full(self.tiles.shapes[array], np.nan)
        for store in self.stores[array]:
            held[store.element] = store.value
        return held

    def wanted(self, array: str, block: tuple[int, int] | None = None, k0: int | None = None) -> np.ndarray:
        """What the tile should hold: elements of the matrix, zeros where it has ended."""
        (x, y), k0 = self.block if block is None else block, self.k0 if k0 is None else k0
        rows, columns = self.tiles.shapes[array]
        row0, column0 = (y * rows, k0) if array == "As" else (k0, x * columns)
        held, matrix = np.zeros((rows, columns)), self.problem.A if array == "As" else self.problem.B
        inside = matrix[row0 : row0 + rows, column0 : column0 + columns]
        held[: inside.shape[0], : inside.shape[1]] = inside
        return held

    def source(self, array: str, element: Element) -> Element:
        """The element of the matrix that belongs at this place of the tile."""
        (x, y), (row, column) = self.block, element
        return (y * self.tiles.BM + row, self.k0 + column) if array == "As" else (
            self.k0 + row, x * self.tiles.BN + column)  # fmt: skip

    def thread(self, number: int) -> str:
        return f"thread ({number % self.tiles.threads[0]}, {number // self.tiles.threads[0]})"

    @property
    def where(self) -> str:
        return (
            f"With {self.tiles}: block {self.block} of {self.tiles.threads} threads, k0 = {self.k0}, "
            f"{self.problem.m} × {self.problem.k} and {self.problem.k} × {self.problem.n} matrices."
        )


def fetch(function: Any, tiles: Tiles, problem: Problem, block: tuple[int, int], k0: int) -> Fetched:
    """Run the learner's device function in every block and watch one of them. Raises Refused."""
    grid = -(-problem.n // tiles.BN), -(-problem.m // tiles.BM)
    a, b, _ = problem.buffers()
    kernel = fetch_only(function, tiles.BM, tiles.BN, tiles.BK)
    sizes = (problem.m, problem.n, problem.k, k0)
    try:
        report = emulate_kernel(kernel, grid, tiles.threads, *sizes, a, b, watch=Watch((*block, 0)))
    except Refused as refused:
        raise Refused(refused.message, refused.where or line_of_function(function)) from None
    return Fetched(function, tiles, problem, block, k0, report)


def line_of_function(function: Any) -> str:
    return line_at(function, function.py_func.__code__.co_firstlineno)


def situations(tiles: Tiles) -> list[tuple[Problem, tuple[int, int], int]]:
    """(problem, block watched, k0): the first tile; another block's second tile; one at all three edges.

    Matrices have rows and columns of NaN beyond their ends, so that what is read there is seen.
    """
    BM, BN, BK, *_ = tiles
    whole = Problem(2 * BM, 2 * BN, 2 * BK, padding=BM + BN + BK, spare_rows=BM + BK)
    m, n, k = 2 * BM - BM // 4 - 1, 2 * BN - BN // 4 - 1, 2 * BK - max(1, BK // 4)
    ragged = whole.but(m=m, n=n, k=k)
    return [(whole, (0, 0), 0), (whole, (1, 0), BK), (ragged, (1, 1), BK)]


@dataclass(frozen=True)
class Slip:
    """A likely mistake in who fetches what: ``times`` says how often each element is stored then.

    times: tiles -> {"As": counts, "Bs": counts}, arrays of the tiles' shapes; one of them may be left out.
    """

    message: str
    times: Callable[[Tiles], dict[str, np.ndarray]]


def hold_to_coverage(
    function: Any,
    tiles: Tiles,
    arrays: Sequence[str],
    slips: Sequence[Slip],
    on_values: Callable,
    *,
    edges_only: bool = False,
) -> int:
    """Refuse a function that does not store every element of ``arrays`` once, with the right value.

    on_values: (Fetched, array) -> what a tile full of wrong values means, or None. edges_only: look at the
    tile at the matrices' edges alone. Return the tiles tried.
    """
    _check_begun(function)
    tried = situations(tiles)[-1:] if edges_only else situations(tiles)
    for situation in tried:
        done = fetch(function, tiles, *situation)
        for array in arrays:
            _check_stores(done, array, slips)
            _check_findings(done, array)
            _check_values(done, array, on_values)
        _check_findings(done, None)
    return len(tried)


def _check_begun(function: Any) -> None:
    if is_stub(function):
        raise nothing_yet()


# ---- how often each element is stored ----------------------------------------------------------------------


def _check_stores(done: Fetched, array: str, slips: Sequence[Slip]) -> None:
    times = done.times(array)
    if (times == 1).all() and not _beside(done, array):
        return
    for slip in slips:
        predicted = slip.times(done.tiles).get(array)
        if predicted is not None and (predicted == times).all() and not (predicted == 1).all():
            raise Refused(slip.message, f"{_first_off(done, array, times)} {done.where}")
    _check_divergence(done)
    if _beside(done, array):
        return  # the emulator's own words say where
    if (times == 0).any():
        raise Refused(_holes(done, array, times), f"{_first_off(done, array, times)} {done.where}")
    raise Refused(
        f"All of `{array}` is filled, but some elements more than once: the shares of the threads overlap.",
        f"{_first_off(done, array, times)} {done.where}",
    )


def _holes(done: Fetched, array: str, times: np.ndarray) -> str:
    if not times.any():
        return f"Nothing is stored into `{array}`."
    ended = ~_inside(done, array)
    if ((times == 0) == ended).all():
        return (
            f"Where the matrix has ended nothing is stored into `{array}`, and then anything may be in it. "
            "Store a zero there."
        )
    return f"{(times == 0).sum()} of the {times.size} elements of `{array}` are never stored."


def _inside(done: Fetched, array: str) -> np.ndarray:
    """Which places of the tile belong to elements of the matrix."""
    rows, columns = done.problem.A.shape if array == "As" else done.problem.B.shape
    first_row, first_column = done.source(array, (0, 0))
    row, column = np.ogrid[: done.tiles.shapes[array][0], : done.tiles.shapes[array][1]]
    return (first_row + row < rows) & (first_column + column < columns)


def _first_off(done: Fetched, array: str, times: np.ndarray) -> str:
    row, column = map(int, np.argwhere(times != 1)[0]) if (times != 1).any() else (0, 0)
    by = [store.thread for store in done.stores[array] if store.element == (row, column)]
    if not by:
        return f"First one: `{array}[{row}, {column}]`, stored by nobody."
    names = " and ".join(done.thread(number) for number in list(dict.fromkeys(by))[:2])
    return f"First one: `{array}[{row}, {column}]`, stored {len(by)} times, by {names}."


def _beside(done: Fetched, array: str) -> bool:
    return any(f.kind == "out_of_bounds" and f.array == array for f in done.report.errors)


# ---- what the emulator found -------------------------------------------------------------------------------


def _check_divergence(done: Fetched) -> None:
    blocks = int(np.prod(done.report.grid))
    for finding in done.report.errors:
        if finding.kind == "barrier_divergence":
            raise Refused(f"{IN_A_LOOP} {finding.message}", f"{_line(done, finding)}. {done.where}")
    if done.report.barriers > 2 * blocks:
        raise Refused(IN_A_LOOP, done.where)
    if done.report.barriers > blocks:
        raise Refused(
            "There is a barrier in the function. Leave it out: the kernel that calls it waits, once for both "
            "tiles.",
            done.where,
        )


IN_A_LOOP = (
    "There is a barrier inside a loop or a branch. With other tiles not all threads go through it equally "
    "often, and some would wait for ever. Fetch only; the kernel that calls you waits."
)


def _check_findings(done: Fetched, array: str | None) -> None:
    _check_divergence(done)
    for finding in done.report.errors:
        if array in (None, finding.array):
            raise Refused(_in_words(finding), f"{_line(done, finding)}. {done.where}")


def _in_words(finding: Finding) -> str:
    tile = finding.array in ("As", "Bs")
    before = {
        "out_of_bounds": "A thread writes beside a tile: As is (BM, BK), Bs is (BK, BN). "
        if tile
        else "A thread leaves its matrix. ",
        "shared_race": "Two threads are at the same element of a tile. ",
    }
    return before.get(finding.kind, "") + finding.message


def _line(done: Fetched, finding: Finding) -> str:
    return line_at(done.function, finding.line)


# ---- the values --------------------------------------------------------------------------------------------


def _check_values(done: Fetched, array: str, on_values: Callable) -> None:
    held, wanted = done.values(array), done.wanted(array)
    wrong = ~(held == wanted)
    if not wrong.any():
        return
    row, column = map(int, np.argwhere(wrong)[0])
    matrix, (i, j) = array[0], done.source(array, (row, column))
    inside = bool(_inside(done, array)[row, column])
    right = f"`{matrix}[{i}, {j}]` = {wanted[row, column]:.5g}" if inside else f"0, as {matrix} has ended"
    place = (
        f"First wrong element: `{array}[{row}, {column}]` is {number_shown(held[row, column])}; right is "
        f"{right}. {done.where}"
    )
    raise Refused(_why_wrong(done, array, held, wrong) or on_values(done, array) or _plainly(array), place)


def _plainly(array: str) -> str:
    return f"`{array}` is filled, but not with the elements of {array[0]} that belong there."


def _why_wrong(done: Fetched, array: str, held: np.ndarray, wrong: np.ndarray) -> str | None:
    matrix = array[0]
    if np.isnan(held).any():
        return _beyond(done, array, held)
    for slip, other in (
        (f"`k0` is left out: this is the first tile of {matrix}, whichever one was asked for.", {"k0": 0}),
        (
            f"The block's place is left out: every block fetches the tile of {matrix} of block (0, 0).",
            {"block": (0, 0)},
        ),
        ("The block's x and y are exchanged.", {"block": done.block[::-1]}),
    ):
        if (held == done.wanted(array, **other)).all():
            return slip
    if not held.any():
        return f"There are only zeros in `{array}`: the guard lets nobody fetch."
    if (held[wrong] == 0).all():
        return (
            f"Some elements of `{array}` are zero although {matrix} has not ended there: the guard is too "
            "strict."
        )
    return None


def _beyond(done: Fetched, array: str, held: np.ndarray) -> str:
    """Something was read where the matrix has ended: which of its two ends was not guarded?"""
    row, column = map(int, np.argwhere(np.isnan(held))[0])
    i, j = done.source(array, (row, column))
    along_k, size, which = (j, done.problem.m, "m") if array == "As" else (i, done.problem.n, "n")
    if along_k >= done.problem.k:
        return (
            f"`{array}` is filled past the end of k with what lies behind the matrix: `k0 + "
            f"{'c' if array == 'As' else 'r'} < k` is missing in the guard of {array[0]}. There belong zeros."
        )
    return (
        f"`{array}` is filled with what lies behind {array[0]}'s last "
        f"{'row' if array == 'As' else 'column'}: {array[0]} has {size} of them, and the guard does not look "
        f"at `{which}`. There belong zeros."
    )


# ---- the learner's factory ---------------------------------------------------------------------------------


def factory_of(given: Any) -> Callable:
    """A function (BM, BN, BK, TM, TN) that returns a kernel or a device function; that itself is refused."""
    if hasattr(given, "py_func"):
        raise Refused(
            f"`{given.py_func.__name__}` is what the factory is to return. Hand over the function around it, "
            "which takes BM, BN, BK, TM and TN."
        )
    return function_of(given, Tiles._fields)


def device_function(given: Any) -> Any:
    """What the factory returned, once it is a function under ``cuda.jit`` with the right parameters."""
    return kernel_of(given, FETCH)


def counts_of(shape: Element, elements) -> np.ndarray:
    """How often each element of a tile of this shape comes up in ``elements``; others are left out."""
    counted = Counter(e for e in elements if e[0] < shape[0] and e[1] < shape[1])
    times = np.zeros(shape, int)
    for element, count in counted.items():
        times[element] = count
    return times
