"""Checks ``ragged_fours``: A's tile is fetched by float4 where m, and above all k, end inside the tile."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gemm_course.checks.core import (
    Element,
    Part,
    Refused,
    Written,
    call,
    device_function_of,
    exercise,
    factory_of,
    line_at,
    nothing_yet,
    number_shown,
)
from gemm_course.checks.engines.common_mistakes import Mistake
from gemm_course.checks.engines.float4 import first_error, floats
from gemm_course.checks.engines.gemm import GemmTrial, try_on
from gemm_course.checks.engines.mistakes import result
from gemm_course.checks.engines.problem import Geometry, Problem
from gemm_course.checks.engines.tiles import Tiles, tile_choices
from gemm_course.checks.kits import around
from lockstep import Finding

PARAMETERS = ("m", "k", "A", "row0", "k0", "As", "tid")
TM = TN = 4
BN = 32
# The block covers the first tile in two passes, and the second in one.
TILES = tile_choices("BM BK THREADS", (32, 16, 32 * BN // TM // TN), (16, 8, 16 * BN // TM // TN))
# The two barriers per tile stand in the kernel around the learner's function.
BARRIERS = 2


@exercise(
    start="begin with the loop of [[transposing_scatter]], its row and column moved on by `row0` and `k0`.",
    hints=(
        "The address: `A[row0 + r, k0 + c]`. The place in As stays `As[c + e, r]`.",
        "Load only where `row0 + r < m and k0 + c < k`; elsewhere take four zeros.",
        "Such a load may still reach past k, into the row's padding. That is no error, rows are multiples of "
        "four long, but there may be NaN.",
        "So when you store: `v[e] if k0 + c + e < k else float32(0)`.",
    ),
)
def ragged_fours(make_fetch):
    """A factory (BM, BK, THREADS) of device functions that fetch A's tile, whatever m and k are."""
    make = factory_of(make_fetch, TILES[0].names)
    fetches = [Fetch(_begun(device_function_of(call(make, *tiles), PARAMETERS)), tiles) for tiles in TILES]
    tried = 0
    for fetch in fetches:
        for problem in fetch.problems():
            trial = fetch.trial(problem)
            if not trial.right:
                raise _explained(fetch, trial)
            tried += 1
    for fetch in fetches:
        _check_by_place(fetch)
        _check_lesson(fetch, fetch.trial(fetch.whole))
    return (
        f"Right on {tried} problems, with k from 1 to {max(f.whole.k for f in fetches)}, NaN behind every "
        f"row of A, and four floats in each load of a whole tile.{_of_dynamic_places(fetches[0].written)}"
    )


class Odd(Problem):
    """A problem whose A has a NaN in its first row, and infinity behind every row."""

    def buffers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        A, B, C = super().buffers()
        A[:, self.k :], A[0, 0] = np.inf, np.nan
        return A, B, C


@dataclass
class Fetch:
    """The learner's device function for one choice of tiles, in the kernel around it."""

    function: Any
    tiles: Tiles

    def __post_init__(self):
        BM, BK = self.tiles.BM, self.tiles.BK
        self.written = Written(self.function)
        self.kernel = around(self.function, BM, BN, BK, TM, TN)
        self.geometry = Geometry((BN // TN, BM // TM), "columns", (TM, TN))

    def trial(self, problem: Problem) -> GemmTrial:
        return try_on(self.kernel, self.geometry, problem, tiles=self.tiles, own=self.function)

    @property
    def whole(self) -> Problem:
        """Return a problem of two rows of two blocks and three tiles along k, whose rows begin at sectors."""
        return Problem(2 * self.tiles.BM, 2 * BN, 3 * self.tiles.BK, row_multiple=8)

    def problems(self) -> list[Problem]:
        (m, n), BM, BK = self.geometry.ragged(), self.tiles.BM, self.tiles.BK
        shapes = [
            # Whole groups of four lie past k in the last tile of this shape.
            (BM, BN, BK + 4),
            (BM, BN, BK + 1),
            (BM, BN, 2 * BK - 2),
            (BM, BN, 3),
            (BM + 3, BN, BK),
            (m, n, BK + 3),
            (1, 1, 1),
        ]
        problems = [Problem(*shape, row_multiple=4) for shape in shapes]
        return [
            self.whole,
            *problems,
            problems[1].but(padding=4, spare_rows=1),
            problems[-2].but(alpha=1.5, beta=-0.5, padding=5),
        ]

    def where(self, trial: GemmTrial) -> str:
        return f"In the problem {trial.problem}; BM = {self.tiles.BM}, BK = {self.tiles.BK}."

    def goes_one_too_far(self) -> str:
        """Return the learner's comparison with m or k by `<=`, in words; "" if there is none."""
        for asked in self.written.comparisons:
            end = asked.right.text
            if asked.sign == "<=" and end in self.written.parameters[:2]:
                return f"`{asked.text}` goes one too far: the last index is {end} - 1. Write `<`. "
        return ""

    def asks_the_wrong_end(self) -> str:
        """Return the learner's comparison of a row with k or of a column with m, in words; "" if there is
        none.
        """
        m, k, _, row0, k0 = self.written.parameters[:5]
        rows, columns = self.written.made_from(row0), self.written.made_from(k0)
        for asked in self.written.comparisons:
            of_rows, of_columns = asked.left.names & (rows - columns), asked.left.names & (columns - rows)
            if (of_rows and asked.right.text == k) or (of_columns and asked.right.text == m):
                return (
                    f"`{asked.text}` asks for the wrong end: A has `{m}` rows and `{k}` columns, and "
                    f"`{row0}` counts rows, `{k0}` columns. "
                )
        return ""

    def counts_anew(self) -> bool:
        """Tell whether the learner numbers threads along x only, although blocks are two-dimensional."""
        read = self.written.texts
        return bool({"cuda.threadIdx.x", "cuda.grid(1)"} & read) and "cuda.threadIdx.y" not in read

    def leaves_out_k0(self) -> str:
        """Return the learner's comparison of a column of the tile with k, in words; "" if there is none."""
        _, k, _, _, k0 = self.written.parameters[:5]
        for asked in self.written.comparisons:
            if asked.right.text == k and not asked.left.names & self.written.made_from(k0):
                return f"`{asked.text}` leaves out `{k0}`: the tile's first column is column `{k0}` of A. "
        return ""


def _begun(function: Any) -> Any:
    written = Written(function)
    for operation in written.operations():
        if operation.sides[0].items:
            raise Refused(
                "A tuple cannot be multiplied in a kernel: write its four elements out.", operation.where
            )
    As = written.parameters[PARAMETERS.index("As")]
    for target, value in written.assignments:
        if isinstance(target, Element) and target.array == As and _is_all(target.index):
            raise Refused(
                f"`{target.text} = {value.text}` is done by every thread: each clears the whole of As, also "
                "what others have filled. Let each thread store its own elements, or zeros in their place.",
                target.where,
            )
    if not written.elements() and not written.calls():
        raise nothing_yet()
    return function


def _is_all(index: Part) -> bool:
    """Tell whether an index has nothing but `:`."""
    return all(each.text == ":" for each in index.items or [index])


# ---- what is wrong -----------------------------------------------------------------------------------------


def _explained(fetch: Fetch, trial: GemmTrial) -> Refused:
    finding = first_error(trial)
    if fetch.counts_anew():
        return Refused(RENUMBERED, fetch.where(trial))
    if swapped := fetch.asks_the_wrong_end():
        return Refused(swapped.strip(), fetch.where(trial))
    if finding is None:
        return Refused(_why_wrong(fetch, trial), _first_wrong(trial))
    mine = finding.function == fetch.function.py_func.__name__
    line = f"{line_at(fetch.function, finding.line)}. " if mine else ""
    own = FINDINGS.get(finding.kind, lambda *_: None)(fetch, trial, finding)
    return Refused(own or finding.message, line + fetch.where(trial))


def _first_wrong(trial: GemmTrial) -> str:
    row, col = map(int, np.argwhere(trial.wrong)[0])
    return (
        f"First wrong element: `C[{row}, {col}]` is {number_shown(trial.got[row, col])}, NumPy has "
        f"{trial.problem.expected[row, col]:.5g}. In the problem {trial.problem}."
    )


def _out_of_bounds(fetch: Fetch, trial: GemmTrial, finding: Finding) -> str | None:
    if len(finding.element) != 2:
        return None
    row, column = finding.element
    if finding.array == "As" or finding.array not in ("A", fetch.written.parameters[2]):
        return (
            "A thread reads or writes outside As, which has BK rows of BM floats (and padding): element `e` "
            f"of the four goes to `As[c + e, r]`. {finding.message}"
        )
    if row >= trial.problem.m:
        return (
            f"{fetch.goes_one_too_far()}Rows of A that do not exist are read: the tile may reach below row "
            f"m. Take zeros there. {finding.message}"
        )
    if column >= trial.problem.k:
        slip = fetch.goes_one_too_far() or fetch.leaves_out_k0()
        return (
            f"{slip}Whole groups of four past k are read. Bs holds zeros there, but what is read may be NaN, "
            f"and 0 · NaN is NaN; here it is not even in A. {finding.message}"
        )
    return None


def _misaligned(fetch: Fetch, trial: GemmTrial, finding: Finding) -> str:
    return (
        "A group of four must begin at a multiple of four floats: the column within the tile is `tid % (BK "
        f"// 4) * 4`. {finding.message}"
    )


def _uninitialised(fetch: Fetch, trial: GemmTrial, finding: Finding) -> str | None:
    if finding.array != "As":
        return None
    if trial.problem == fetch.whole:
        return (
            "A part of As is never filled, although A's tile is whole. The block fetches THREADS // (BK // "
            f"4) rows in one pass: are all rows of the tile reached? {finding.message}"
        )
    return (
        "Where A has ended nothing is stored into As, and then anything may be in it. Store a zero there. "
        f"{finding.message}"
    )


def _race(fetch: Fetch, trial: GemmTrial, finding: Finding) -> str:
    if _goes_on_singly(fetch):
        rows = fetch.tiles.THREADS // (fetch.tiles.BK // 4)
        return (
            "Two threads store at the same place of As: the loop over the rows goes on by 1, into the rows "
            f"of other threads. Go on by THREADS // (BK // 4), here {rows}. {finding.message}"
        )
    return (
        "Two threads store at the same place of As. Four of A's columns become four rows of As, and A's row "
        f"its column: `As[c + e, r]`. {finding.message}"
    )


def _goes_on_singly(fetch: Fetch) -> bool:
    """Tell whether the learner's loop begins at the thread's own row and has no step."""
    ranges = (call for loop in fetch.written.loops for call in loop.over.calls("range"))
    return any(len(each.args) == 2 and "tid" in each.args[0].names for each in ranges)


RENUMBERED = (
    "Two threads have the same number. The kernel's blocks are two-dimensional, and `cuda.threadIdx.x` "
    "counts along one row of threads only. The thread's number in the block is handed in: use the "
    "parameter `tid`."
)
FINDINGS = {
    "out_of_bounds": _out_of_bounds,
    "misaligned_access": _misaligned,
    "uninitialised_read": _uninitialised,
    "shared_race": _race,
    "barrier_divergence": lambda fetch, trial, finding: f"{NO_BARRIER} {finding.message}",
}
NO_BARRIER = (
    "There is a barrier in the function. Leave it out: the kernel that calls it waits, once for both tiles."
)


def _why_wrong(fetch: Fetch, trial: GemmTrial) -> str:
    for mistake in _mistakes(fetch.tiles):
        if trial.equals(mistake.predict(trial.problem)):
            return mistake.message
    if f"{fetch.written.parameters[2]}.shape" in fetch.written.texts:
        return (
            "The sizes come from `A.shape`, which tells how long A's rows are with their padding. A itself "
            "has `m` rows and `k` columns: use the parameters."
        )
    if np.isnan(trial.got).any() and (slip := fetch.goes_one_too_far() or fetch.leaves_out_k0()):
        return (
            f"There is a NaN in C. {slip}Past k lies the row's padding, and it does not "
            "help that Bs is zero there: 0 · NaN is NaN."
        )
    if np.isnan(trial.got).any():
        return (
            "There is a NaN in C. The last group of four in a row reaches past k into the padding, and its "
            "elements have to be replaced one by one: the guard of the load sees only the first. It does not "
            "help that Bs is zero there, nor to multiply by 0: 0 · NaN is NaN."
        )
    return "The numbers are wrong: not every element of A's tile is at its place in As, `As[c + e, r]`."


def _mistakes(tiles: Tiles) -> tuple[Mistake, ...]:
    def whole_groups_only(q: Problem):
        kept = q.k // 4 * 4
        return result(q, q.A[:, :kept] @ q.B[:kept]) if kept < q.k else None

    def first_columns(q: Problem):
        return result(q, q.A[:, np.arange(q.k) % tiles.BK] @ q.B) if q.k > tiles.BK else None

    def first_rows(q: Problem):
        return result(q, q.A[np.arange(q.m) % tiles.BM] @ q.B) if q.m > tiles.BM else None

    return (
        Mistake(
            "A group of four that reaches past k is left out altogether, and with it the last k % 4 elements "
            "of the row. Load it, the row's padding is there to be read, and clear only what lies past k.",
            whole_groups_only,
        ),
        Mistake(
            "`k0` is left out: every tile is filled with A's first columns. The tile begins at column `k0` "
            "of A: load from `A[row0 + r, k0 + c]`.",
            first_columns,
        ),
        Mistake(
            "`row0` is left out: every block fetches A's first rows. Its own begin at row `row0` of A: load "
            "from `A[row0 + r, k0 + c]`.",
            first_rows,
        ),
    )


# ---- the lesson --------------------------------------------------------------------------------------------


def _check_by_place(fetch: Fetch) -> None:
    """Refuse a function that clears NaN wherever it is, instead of all that lies past k."""
    BM, BK = fetch.tiles.BM, fetch.tiles.BK
    trial = fetch.trial(Odd(BM, BN, 2 * BK - 2, row_multiple=4))
    by_place = "Ask where an element lies, `k0 + c + e < k`, and not what it is."
    if trial.wrong[1:].any():
        raise Refused(
            "NaN past k is cleared, but infinity is not, and 0 · infinity is NaN: there may be anything in "
            f"the padding. {by_place}",
            fetch.where(trial),
        )
    if not np.isnan(trial.got[0]).all():
        raise Refused(
            "A NaN that belongs to A, before k, has disappeared: the row of C that it stands in must be NaN, "
            f"as in NumPy. {by_place}",
            fetch.where(trial),
        )


def _of_dynamic_places(written: Written) -> str:
    """Return a remark on a loop over the four of a length known at run time only: no mistake."""
    fours = written.made_from("load4") | {
        target.text for target, value in written.assignments if value.calls("local.array")
    }
    for loop in written.loops:
        if not {"k", "k0"} & loop.over.names:
            continue
        for element in loop.elements(*fours):
            if loop.variable in element.index.names:
                return (
                    f" But the length of `{loop.over.text}` is known only at run time: the compiler makes a "
                    f"chain of branches of `{element.text}`. In C++ the four would go to local memory. Four "
                    "iterations with a condition in them take fewer instructions."
                )
    return ""


def _check_lesson(fetch: Fetch, trial: GemmTrial) -> None:
    """Refuse loads of less than 128 bits, repeated or not coalesced; and float64, and barriers."""
    q, rows = trial.problem, trial.report.accesses
    rows = rows[(rows["space"] == "global") & (rows["op"] == "load")]
    rows = rows[rows["function"] == fetch.function.py_func.__name__]
    needed, sectors = q.m * q.k * -(-q.n // BN), int(rows["sectors"].sum())
    bare = _bare_four(fetch)
    if bare:
        raise Refused(
            f"The numbers are right, but `{bare}` has no floats of 32 bits in it. Beside it `load4`'s four "
            "become float64, and the compiler converts every element there and back. Write `float32(0)`. (A "
            "single 0 beside one element costs nothing: the compiler sees that.)",
            fetch.where(trial),
        )
    if (rows["bits"] < 128).any():
        raise Refused(
            f"The numbers are right, but A is read one float at a time: {int(rows['requests'].sum()):,} "
            f"requests where {needed // 128:,} by fours do. Load whole groups of four, and clear "
            "afterwards what lies past k.",
            fetch.where(trial),
        )
    if floats(rows) > needed:
        raise Refused(
            f"The numbers are right, but {floats(rows):,} floats of A are loaded, and {needed:,} are enough: "
            "several threads fetch the same groups of four.",
            fetch.where(trial),
        )
    if sectors > needed // 8:
        raise Refused(
            f"The numbers are right, but A's tile is not fetched coalesced: {sectors:,} sectors where "
            f"{needed // 8:,} are enough. Neighbouring threads take neighbouring groups of four in a row.",
            fetch.where(trial),
        )
    if trial.barriers_per_block > BARRIERS * (q.k // fetch.tiles.BK):
        raise Refused(NO_BARRIER, fetch.where(trial))


def _bare_four(fetch: Fetch) -> str:
    """Return four numbers without a type, such as `(0.0, 0.0, 0.0, 0.0)`; "" if there are none.

    They may stand in the function, or beside it under a name that it uses.
    """
    for part in fetch.written.parts:
        if len(part.items) == 4 and all(each.number is not None for each in part.items):
            return part.text
    for name, value in fetch.written.outside.items():
        if isinstance(value, tuple) and [type(each) in (int, float) for each in value] == [True] * 4:
            return f"{name} = {value}"
    return ""
