"""Checks device functions that fill shared tiles: each element must be stored once, with the right value.

A kernel of the course calls the learner's function and does nothing else. The emulator's trace then tells
which thread stored which value into which element.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from gemm_course.checks.core import (
    Refused,
    Written,
    call,
    device_function_of,
    factory_of,
    is_stub,
    line_at,
    nothing_yet,
    number_shown,
)
from gemm_course.kernels.variants.fetch_only import fetch_only
from lockstep import Finding, Watch

from .problem import Problem
from .tiles import Tiles
from .trial import Trial, try_kernel

# The learner's function takes FETCH. The kernel that calls it takes FETCHES, and makes the tiles As and Bs.
FETCH = ("m", "n", "k", "k0", "A", "B", "As", "Bs")
FETCHES = ("m", "n", "k", "k0", "A", "B")
# Each situation takes a launch, so only this many choices of tiles are tried in all of them. The others are
# tried only at the ends of the matrices.
EVERYWHERE = 3
Element = tuple[int, int]


@dataclass(frozen=True)
class CoverageSlip:
    """A likely mistake in the choice of elements that a thread fetches, known by how often each is stored.

    times: tiles -> {"As": counts, "Bs": counts}, arrays of the tiles' shapes; one of the two may be left out.
    """

    message: str
    times: Callable[[Tiles], dict[str, np.ndarray]]


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """An exercise whose answer is a factory (BM, BN, BK, TM, TN) of device functions that fill tiles.

    tiles: the choices that are tried. arrays: the tiles that must be filled, "As", "Bs" or both. slips:
    likely mistakes in how often elements are stored. on_values: (Fetched, array) -> why a filled tile has
    wrong values, or None. on_stores_beside: (Fetched, finding) -> why a thread stores beside a tile, or None.
    """

    tiles: Sequence[Tiles]
    arrays: Sequence[str]
    slips: Sequence[CoverageSlip]
    on_values: Callable[["Fetched", str], str | None]
    on_stores_beside: Callable[["Fetched", Finding], str | None] = lambda done, finding: None

    def function(self, given: Any, tiles: Tiles) -> Any:
        """Return the device function that the factory makes for these tiles; refuse any other answer."""
        return device_function_of(call(factory_of(given, self.tiles[0].names), *tiles), FETCH)

    def prove(self, given: Any) -> int:
        """Refuse functions unless they store each element of the tiles once, with its right value.

        Return how many launches were tried.
        """
        tried = 0
        for number, tiles in enumerate(self.tiles):
            function = self.function(given, tiles)
            if is_stub(function) and not _stores(function, tiles):
                raise nothing_yet()
            for situation in situations(tiles)[0 if number < EVERYWHERE else -1 :]:
                self.hold(fetch(function, tiles, *situation))
                tried += 1
        return tried

    def hold(self, done: "Fetched") -> None:
        """Refuse a launch that did not store each element of the tiles once, with its right value."""
        for array in self.arrays:
            _check_stores(done, array, self.slips)
            _check_findings(done, array, self.on_stores_beside)
            _check_values(done, array, self.on_values)
        _check_findings(done, None)


def _stores(function: Any, tiles: Tiles) -> bool:
    """Return whether a function stores any element; the store may be in a function that it calls."""
    return any(fetch(function, tiles, *situations(tiles)[0]).stores.values())


# ---- one tile of each matrix, fetched ----------------------------------------------------------------------


class Store(NamedTuple):
    thread: int
    element: Element
    value: float


@dataclass(kw_only=True)
class Fetched(Trial):
    """A launch that fetched one tile of each matrix, with the trace of one block.

    at: the block (x, y) that was watched. k0: where its tiles begin along k.
    """

    function: Any
    tiles: Tiles
    problem: Problem
    at: tuple[int, int]
    k0: int

    @property
    def learners(self) -> Any:
        return self.function

    def shape(self, array: str) -> Element:
        """Return the rows and columns of a tile."""
        BM, BN, BK = self.tiles.block_tile
        return (BM, BK) if array == "As" else (BK, BN)

    @cached_property
    def stores(self) -> dict[str, list[Store]]:
        """The stores into each tile, in order, by the tile's name."""
        found: dict[str, list[Store]] = {"As": [], "Bs": []}
        trace = self.report.trace
        kept = trace[(trace["op"] == "store") & trace["array"].isin(tuple(found))]
        rows = (kept[name].tolist() for name in ("array", "thread", "element", "value"))
        for array, thread, element, value in zip(*rows):
            found[array].append(Store(thread, element, value))
        return found

    def times(self, array: str) -> np.ndarray:
        """Return how often each element of a tile was stored."""
        return counts_of(self.shape(array), (store.element for store in self.stores[array]))

    def values(self, array: str) -> np.ndarray:
        """Return what the tile holds in the end, with NaN where nothing was stored."""
        held = np.full(self.shape(array), np.nan)
        for store in self.stores[array]:
            held[store.element] = store.value
        return held

    def wanted(self, array: str, at: tuple[int, int] | None = None, k0: int | None = None) -> np.ndarray:
        """Return what the tile should hold: elements of the matrix, and zeros beyond the matrix.

        at, k0: another block or another start along k, from which a mistake may have fetched.
        """
        (x, y), k0 = self.at if at is None else at, self.k0 if k0 is None else k0
        rows, columns = self.shape(array)
        row0, column0 = (y * rows, k0) if array == "As" else (k0, x * columns)
        held, matrix = np.zeros((rows, columns)), self.problem.A if array == "As" else self.problem.B
        inside = matrix[row0 : row0 + rows, column0 : column0 + columns]
        held[: inside.shape[0], : inside.shape[1]] = inside
        return held

    def source(self, array: str, element: Element) -> Element:
        """Return the element of the matrix that belongs at this place of the tile."""
        (x, y), (row, column) = self.at, element
        return (y * self.tiles.BM + row, self.k0 + column) if array == "As" else (
            self.k0 + row, x * self.tiles.BN + column)  # fmt: skip

    def inside(self, array: str) -> np.ndarray:
        """Return which places of the tile belong to elements of the matrix, as an array of booleans."""
        rows, columns = self.problem.A.shape if array == "As" else self.problem.B.shape
        first_row, first_column = self.source(array, (0, 0))
        row, column = np.ogrid[: self.shape(array)[0], : self.shape(array)[1]]
        return (first_row + row < rows) & (first_column + column < columns)

    def errors_of(self, array: str | None) -> list[Finding]:
        """Return the emulator's errors at a tile, or all of them for None."""
        return [finding for finding in self.report.errors if array in (None, finding.array)]

    def stores_beside(self, array: str) -> bool:
        return any(finding.kind == "out_of_bounds" for finding in self.errors_of(array))

    def again(self, problem: Problem, at: tuple[int, int], k0: int) -> "Fetched":
        """Launch the same function on another problem, and watch another block and tile."""
        return fetch(self.function, self.tiles, problem, at, k0)

    def check_barriers(self) -> None:
        """Refuse a barrier in the function: the kernel that calls it waits."""
        diverged = self.error("barrier_divergence") or self.advised("barrier_in_branch")
        if diverged:
            raise Refused(f"{IN_A_LOOP} {diverged.message}", f"{self.line(diverged)}. {self.about}")
        if self.barriers_per_block > 2:
            raise Refused(IN_A_LOOP, self.about)
        if self.barriers_per_block > 1:
            raise Refused(
                "There is a barrier in the function. Leave it out: the kernel that calls it waits, once for "
                "both tiles.",
                self.about,
            )

    def thread(self, number: int) -> str:
        return f"thread ({number % self.tiles.threads[0]}, {number // self.tiles.threads[0]})"


def fetch(function: Any, tiles: Tiles, problem: Problem, at: tuple[int, int], k0: int) -> Fetched:
    """Run the learner's device function in every block and watch one of them; refuse what cannot run."""
    q, (BM, BN, BK) = problem, tiles.block_tile
    A, B, _ = q.buffers()
    about = (
        f"With {tiles}: block {at} of {tiles.threads} threads, k0 = {k0}, {q.m} × {q.k} and {q.k} × {q.n} "
        "matrices."
    )
    kernel, grid = fetch_only(function, BM, BN, BK), (-(-q.n // BN), -(-q.m // BM))
    given = (q.m, q.n, q.k, k0, A, B)
    try:
        done = try_kernel(
            kernel, FETCHES, grid, tiles.threads, *given, about=about, watch=Watch((*at, 0)), own=function
        )
    except Refused as refused:
        first = line_at(function, function.py_func.__code__.co_firstlineno)
        raise Refused(refused.message, refused.where or first) from None
    return Fetched(**vars(done), function=function, tiles=tiles, problem=problem, at=at, k0=k0)


def situations(tiles: Tiles) -> list[tuple[Problem, tuple[int, int], int]]:
    """Return three cases, each as (problem, block to watch, k0).

    The cases are the first tiles, the second tiles of another block, and the tiles at the ends of both
    matrices. Beyond the ends the arrays hold NaN, which shows whether anything was read there.
    """
    BM, BN, BK = tiles.block_tile
    whole = Problem(2 * BM, 2 * BN, 2 * BK, padding=BM + BN + BK, spare_rows=BM + BK)
    m, n, k = 2 * BM - BM // 4 - 1, 2 * BN - BN // 4 - 1, 2 * BK - max(1, BK // 4)
    ragged = whole.but(m=m, n=n, k=k)
    return [(whole, (0, 0), 0), (whole, (1, 0), BK), (ragged, (1, 1), BK)]


def counts_of(shape: Element, elements) -> np.ndarray:
    """Count how often each element of a tile occurs in ``elements``; leave out elements beyond the tile."""
    times = np.zeros(shape, int)
    for element, count in Counter(elements).items():
        if element[0] < shape[0] and element[1] < shape[1]:
            times[element] = count
    return times


# ---- how often each element is stored ----------------------------------------------------------------------


def _check_stores(done: Fetched, array: str, slips: Sequence[CoverageSlip]) -> None:
    times = done.times(array)
    if (times == 1).all() and not done.stores_beside(array):
        return
    place = f"{_first_off(done, array, times)} {done.about}"
    for slip in slips:
        predicted = slip.times(done.tiles).get(array)
        if predicted is not None and (predicted == times).all() and not (predicted == 1).all():
            raise Refused(slip.message, place)
    done.check_barriers()
    if done.stores_beside(array):
        # The emulator's message is shown next, and names the line.
        return
    raise Refused(_holes(done, array, times) if (times == 0).any() else _again(done, array, times), place)


def _holes(done: Fetched, array: str, times: np.ndarray) -> str:
    if not times.any():
        return f"Nothing is stored into `{array}`."
    if ((times == 0) == ~done.inside(array)).all():
        return (
            f"Where the matrix has ended nothing is stored into `{array}`, and then anything may be in it. "
            "Store a zero there."
        )
    twice = ", and others more than once" * bool((times > 1).any())
    return f"{(times == 0).sum()} of the {times.size} elements of `{array}` are never stored{twice}."


def _again(done: Fetched, array: str, times: np.ndarray) -> str:
    filled = f"All of `{array}` is filled, but some elements more than once"
    if _everybody_clears(done, array):
        return (
            f"Every thread clears the whole tile, all of `{array}`: its neighbours' elements as well, and "
            "perhaps after they were fetched. Clear nothing: where the matrix has ended store a zero, once, "
            "`... if ... else float32(0)`."
        )
    if all(len(set(_threads_at(done, array, (row, column)))) == 1 for row, column in np.argwhere(times > 1)):
        return (
            f"{filled}, each of them by the same thread. Is a zero stored first, and then the element? Store "
            "once, one or the other: `... if ... else float32(0)`."
        )
    if times.min() >= np.prod(done.tiles.threads):
        return (
            f"Every thread stores all of `{array}`, and so every element once for each thread. Share the "
            "tile among them: each fetches its own part."
        )
    return f"{filled}: the shares of the threads overlap."


def _everybody_clears(done: Fetched, array: str) -> bool:
    """Return whether each thread stores a zero into every element."""
    threads = int(np.prod(done.tiles.threads))
    zeros = Counter(store.element for store in done.stores[array] if not store.value)
    rows, columns = done.shape(array)
    return all(zeros[r, c] >= threads for r in range(rows) for c in range(columns))


def _threads_at(done: Fetched, array: str, element: Element) -> list[int]:
    return [store.thread for store in done.stores[array] if store.element == tuple(element)]


def _first_off(done: Fetched, array: str, times: np.ndarray) -> str:
    off = np.argwhere(times == 0) if (times == 0).any() else np.argwhere(times != 1)
    row, column = map(int, off[0]) if len(off) else (0, 0)
    by = _threads_at(done, array, (row, column))
    if not by:
        return f"First one: `{array}[{row}, {column}]`, stored by nobody."
    names = " and ".join(done.thread(number) for number in list(dict.fromkeys(by))[:2])
    return f"First one: `{array}[{row}, {column}]`, stored {len(by)} times, by {names}."


# ---- what the emulator found -------------------------------------------------------------------------------


IN_A_LOOP = (
    "There is a barrier inside a loop or a branch. With other tiles not all threads reach it equally often, "
    "and some would wait for ever. Fetch only; the kernel that calls you waits."
)


def _check_findings(done: Fetched, array: str | None, why: Callable = lambda done, finding: None) -> None:
    done.check_barriers()
    for finding in done.errors_of(array):
        if _block_in_the_tile(finding, done):
            at = f"In block {finding.block[:2]}. With {done.tiles}."
            raise Refused(BLOCK_IN_THE_TILE.format(finding.array), f"{done.line(finding)}. {at}")
        raise Refused(why(done, finding) or _in_words(finding), f"{done.line(finding)}. {done.about}")


BLOCK_IN_THE_TILE = (
    "The block's first row or column is in the index of `{}`. It belongs in that of the matrix alone: every "
    "block has tiles of its own, which begin at 0."
)


def _block_in_the_tile(finding: Finding, done: Fetched) -> bool:
    """Return whether an index misses its tile by exactly the block's first row or column."""
    if finding.kind != "out_of_bounds" or finding.array not in ("As", "Bs"):
        return False
    (x, y, _), axis = finding.block, 0 if finding.array == "As" else 1
    first = (y * done.tiles.BM, x * done.tiles.BN)[axis]
    index, shape = list(finding.element), done.shape(finding.array)
    index[axis] -= first
    return first > 0 and all(0 <= i < size for i, size in zip(index, shape))


def _in_words(finding: Finding) -> str:
    if finding.kind == "shared_race":
        return f"Two threads access the same element of a tile. {finding.message}"
    if finding.kind != "out_of_bounds":
        return finding.message
    if finding.array in ("As", "Bs"):
        return f"A thread writes beside a tile: As is (BM, BK), Bs is (BK, BN). {finding.message}"
    return f"A thread reads outside its matrix. {finding.message}"


# ---- the values --------------------------------------------------------------------------------------------


def _check_values(done: Fetched, array: str, on_values: Callable) -> None:
    held, wanted = done.values(array), done.wanted(array)
    wrong = ~(held == wanted)
    if not wrong.any():
        return
    row, column = map(int, np.argwhere(wrong)[0])
    matrix, (i, j) = array[0], done.source(array, (row, column))
    inside = bool(done.inside(array)[row, column])
    right = f"`{matrix}[{i}, {j}]` = {wanted[row, column]:.5g}" if inside else f"0, as {matrix} has ended"
    raise Refused(
        next(filter(None, _reasons(done, array, held, wrong)), None)
        or on_values(done, array)
        or f"`{array}` is filled, but not with the elements of {matrix} that belong there.",
        f"First wrong element: `{array}[{row}, {column}]` is {number_shown(held[row, column])}; right is "
        f"{right}. {done.about}",
    )


def _reasons(done: Fetched, array: str, held: np.ndarray, wrong: np.ndarray) -> Iterator[str | None]:
    matrix = array[0]
    if np.isnan(held).any():
        yield _beyond(done, array, held)
    if _block_left_out_of_the_index(done, array, held):
        axis, first = ("row", "row0") if array == "As" else ("column", "col0")
        yield (
            f"The block's place is left out: every block fetches the tile of {matrix} of block (0, 0). Does "
            f"{matrix}'s {axis} begin at `{first}`, the block's first?"
        )
    for slip, other in (
        (f"`k0` is left out: this is the first tile of {matrix}, whichever one was asked for.", {"k0": 0}),
        ("The block's x and y are swapped.", {"at": done.at[::-1]}),
    ):
        if (held == done.wanted(array, **other)).all():
            yield slip
    if _begins_by_the_other_size(done, array, held):
        first, right, other = (
            ("row0", "cuda.blockIdx.y * BM", "BN")
            if array == "As"
            else ("col0", "cuda.blockIdx.x * BN", "BM")
        )
        yield f"{matrix} is fetched from {other} times the block's number on: it is `{first} = {right}`."
    if ends := _wrong_ends(done, array, held):
        first, second = "mk" if array == "As" else "kn"
        swapped = f"`{first}` and `{second}` are swapped" if ends == [(second, first)] else "An end is wrong"
        yield f"{swapped} in the guard of {matrix}: it has {first} rows and {second} columns."
    if not held.any():
        yield f"There are only zeros in `{array}`: the guard lets nobody fetch."
    if (held[wrong] == 0).all():
        yield (
            f"Some elements of `{array}` are zero although {matrix} has not ended there: the guard is too "
            "strict."
        )


def _block_left_out_of_the_index(done: Fetched, array: str, held: np.ndarray) -> bool:
    """Return whether the tile holds the first block's elements, if need be with this block's zeros."""
    first = done.wanted(array, at=(0, 0))
    return any((held == tile).all() for tile in (first, np.where(done.inside(array), first, 0)))


def _begins_by_the_other_size(done: Fetched, array: str, held: np.ndarray) -> bool:
    """Return whether the tile begins at BN times the block's row in A, or BM times its column in B."""
    (x, y), (BM, BN, _), (rows, columns) = done.at, done.tiles.block_tile, done.shape(array)
    matrix = done.problem.A if array == "As" else done.problem.B
    row0, column0 = (y * BN, done.k0) if array == "As" else (done.k0, x * BM)
    if BM == BN or not (y if array == "As" else x):
        return False
    inside = matrix[row0 : row0 + rows, column0 : column0 + columns]
    expected = np.zeros((rows, columns))
    expected[: inside.shape[0], : inside.shape[1]] = inside
    return bool((held == expected).all())


def _wrong_ends(done: Fetched, array: str, held: np.ndarray) -> list[tuple[str, str]]:
    """Return the wrong pairs of ends, such as ("k", "m"), whose guard stores zeros just where they are."""
    row, column = done.source(array, (0, 0))
    down, right = np.ogrid[: held.shape[0], : held.shape[1]]

    def passes(ends: tuple[str, str]) -> np.ndarray:
        last_row, last_column = (getattr(done.problem, end) for end in ends)
        return (row + down < last_row) & (column + right < last_column)

    inside = done.inside(array)
    return [
        ends
        for ends in product("mnk", repeat=2)
        if (passes(ends) != inside).any() and ((held != 0) == passes(ends)).all()
    ]


def _beyond(done: Fetched, array: str, held: np.ndarray) -> str:
    """Return a message about the end of the matrix that is not guarded; the tile holds NaN from beyond it."""
    missed, q, matrix = np.argwhere(np.isnan(held)), done.problem, array[0]
    along_k = 1 if array == "As" else 0
    past_k = done.source(array, tuple(missed[0]))[along_k] >= q.k
    axis = along_k if past_k else 1 - along_k
    if past_k:
        end, size, first = q.k, "k", "k0"
    else:
        end, size, first = (q.m, "m", "row0") if array == "As" else (q.n, "n", "col0")
    index = f"{first} + {'rc'[axis]}"
    if _both_go_one_too_far(done, array, missed):
        return (
            f"Both ends in the guard of {matrix} are one too far: the last index is one less than the size, "
            "so each `<=` must be `<`."
        )
    if _goes_one_too_far(done, array, missed[:, axis], axis, end):
        return (
            f"`{array}` is filled one element too far along {size}: the last index is {size} - 1. In the "
            f"guard of {matrix} it must be `{index} < {size}`, not `<=`, with zeros beyond."
        )
    if _guards_the_place_in_the_tile(done, array, axis):
        row_or_column = ("row", "column")[axis]
        return (
            f"The guard of {matrix} compares the place in the tile, as in `{'rc'[axis]} < {size}`. The "
            f"{row_or_column} of {matrix} is `{index}`: compare that with `{size}`."
        )
    if past_k:
        return (
            f"`{array}` is filled past the end of k with what lies behind the matrix: `{index} < k` is "
            f"missing in the guard of {matrix}. There belong zeros."
        )
    return (
        f"`{array}` is filled with what lies behind {matrix}'s last {('row', 'column')[axis]}: {matrix} has "
        f"{end} of them, and the guard does not look at `{size}`. There belong zeros."
    )


def _both_go_one_too_far(done: Fetched, array: str, missed: np.ndarray) -> bool:
    """Return whether `<=` fills the first row and the first column past the ends, and none behind them."""
    if "<=" not in {each.sign for each in Written(done.function).comparisons}:
        return False
    q = done.problem
    ends = np.array((q.m, q.k) if array == "As" else (q.k, q.n))
    beyond = missed + np.array(done.source(array, (0, 0))) - ends
    reaches = np.array(done.shape(array)) + np.array(done.source(array, (0, 0))) > ends + 1
    return bool((beyond <= 0).all() and (beyond == 0).any(axis=0).all() and reaches.all())


def _guards_the_place_in_the_tile(done: Fetched, array: str, axis: int) -> bool:
    """Return whether the guard is right in the first tile, where tile and matrix have the same places."""
    BM, BN, BK = done.tiles.block_tile
    ends = {"m": BM - BM // 4 - 1, "n": BN - BN // 4 - 1, "k": BK - max(1, BK // 4)}
    first = done.again(done.problem.but(**ends), (0, 0), 0)
    inside = first.inside(array)
    beyond = ~inside.any(axis=1 - axis, keepdims=True) & inside.any(axis=axis, keepdims=True)
    return not np.isnan(first.values(array)[beyond]).any()


def _goes_one_too_far(done: Fetched, array: str, places: np.ndarray, axis: int, end: int) -> bool:
    """Return whether only the first place past the end is filled, although the tile reaches further."""
    start = done.source(array, (0, 0))[axis]
    return set(start + places) == {end} and start + done.shape(array)[axis] > end + 1
