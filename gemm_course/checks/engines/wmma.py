"""Tries kernels in which each warp computes a tile of C by Tensor Cores, and says what is wrong."""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from gemm_course.checks.core import Call, Element, Refused, Written
from lockstep import Finding

from .trial import Trial, try_kernel

# A tile of C has 16 rows and columns, and a fragment of A or B has 16 steps along k.
SIDE = 16
# The bits of this NaN are unlike any result's, and show where nothing was stored.
UNTOUCHED = np.array(0x7FC0C0DE, np.uint32).view(np.float32)
# One addition in float32 is off by no more than this part of its result.
FROM_FLOAT32 = 6e-8


@dataclass(kw_only=True)
class WarpTrial(Trial):
    """A product C = A @ B by the learner's kernel; each block is a warp and computes a tile of C.

    shape: (m, n, k). side: rows and columns of a block's tile.
    """

    shape: tuple[int, int, int]
    side: int = SIDE

    @property
    def got(self) -> np.ndarray:
        """C, (m, n), without what lies beside it in its array."""
        m, n, _ = self.shape
        return self.after["C"][:m, :n]

    @cached_property
    def A(self) -> np.ndarray:
        return self.before["A"].astype(np.float64)

    @cached_property
    def B(self) -> np.ndarray:
        return self.before["B"].astype(np.float64)

    @cached_property
    def expected(self) -> np.ndarray:
        return self.A @ self.B

    @cached_property
    def wrong(self) -> np.ndarray:
        """Which elements of C differ by more than float32 accumulators explain."""
        most = (self.shape[2] + 4) * FROM_FLOAT32 * (abs(self.A) @ abs(self.B))
        return ~(abs(self.got - self.expected) <= most)

    def equals(self, prediction: np.ndarray) -> bool:
        """Return whether C came out as predicted, or nearly."""
        return bool((abs(self.got - prediction) <= 2e-2 * (1 + abs(prediction))).all())

    @property
    def where(self) -> str:
        """The first wrong element, its block, and the launch."""
        row, column = map(int, np.argwhere(self.wrong)[0])
        owner = f"It belongs to block ({column // self.side}, {row // self.side})."
        return self.first_wrong("C", self.wrong, self.expected, owner)


def try_warps(
    kernel: Any,
    names: tuple[str, ...],
    m: int,
    n: int,
    k: int,
    *,
    beside: tuple[int, int] = (0, 0),
    choice="",
    side: int = SIDE,
) -> WarpTrial:
    """Launch a warp per tile of C. Raises Refused where the kernel cannot be run.

    names: the kernel's arguments, among m, n, k, A, B and C. beside: extra rows and columns of C's array.
    choice: what the kernel's factory was called with, such as "PAD = 8". side: rows and columns of
    a warp's tile.
    """
    rng = np.random.default_rng((m, n, k))
    A, B = (rng.uniform(-2, 2, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    C = np.full((m + beside[0], n + beside[1]), UNTOUCHED, np.float32)
    given = {"m": m, "n": n, "k": k, "A": A, "B": B, "C": C}
    about = "With " + ", ".join(filter(None, (choice, f"m = {m}, n = {n}, k = {k}")))
    grid = -(-n // side), -(-m // side)
    done = try_kernel(kernel, names, grid, 32, *(given[name] for name in names), about=about)
    return WarpTrial(**vars(done), shape=(m, n, k), side=side)


def tiles_transposed(matrix: np.ndarray) -> np.ndarray:
    """Return a matrix of whole tiles, each of them transposed in its place."""
    rows, columns = (size // SIDE for size in matrix.shape)
    tiles = matrix.reshape(rows, SIDE, columns, SIDE)
    return tiles.transpose(0, 3, 2, 1).reshape(matrix.shape)


def calls_of(kernel: Any, name: str) -> list[Call]:
    """Return the calls in a kernel's source of all functions whose names contain ``name``."""
    return [call for call in Written(kernel).calls() if name in call.name]


def call_at(kernel: Any, line: int) -> str:
    """Return the name of the WMMA function that is called in this line; "" if there is none."""
    return next((call.name for call in calls_of(kernel, "wmma_") if line in call.lines), "")


def filled_from(kernel: Any, name: str) -> set[str]:
    """Return a kernel's arrays that get elements of its argument ``name``, as far as assignments tell."""
    return {
        target.array
        for target, value in Written(kernel).assignments
        if isinstance(target, Element) and name in value.names
    }


def passed(kernel: Any, name: str, place: int) -> list[str]:
    """Return the argument at one place, as text, of each call that :func:`calls_of` finds."""
    return [call.at(place) for call in calls_of(kernel, name) if len(call.args) > place]


def _check_operands(kernel: Any) -> None:
    """Refuse a product whose operands were loaded for the other place."""
    of = {matrix: set(passed(kernel, f"wmma_load_{matrix}", 0)) for matrix in "ab"}
    for product in calls_of(kernel, "wmma_mma"):
        a, b = product.at(1), product.at(2)
        as_a, as_b = a in of["b"] - of["a"], b in of["a"] - of["b"]
        if as_a and as_b:
            raise Refused(
                "A and B are swapped in `wmma_mma`: first the accumulators, then A, then B.", product.where
            )
        for wrong, name, matrix, other in ((as_a, a, "A", "b"), (as_b, b, "B", "a")):
            if wrong:
                raise Refused(
                    f"`{name}` is the fragment of {matrix} in `wmma_mma`, but `wmma_load_{other}` filled it. "
                    f"The two deal their elements in different ways: use `wmma_load_{matrix.lower()}`.",
                    product.where,
                )


TAKES = {
    "wmma_load_a": ("the fragment", "the array", "the place, such as `(0, 0)`", "the order"),
    "wmma_load_b": ("the fragment", "the array", "the place, such as `(0, 0)`", "the order"),
    "wmma_mma": ("the accumulators", "A's fragment", "B's fragment", "A's order", "B's order"),
    "wmma_store": ("the array", "the place, such as `(0, 0)`", "the accumulators", "the order"),
}


def _check_arguments(kernel: Any) -> None:
    """Refuse a call that lacks arguments, or has a text for an order or a list for a place."""
    for name, takes in TAKES.items():
        for made in calls_of(kernel, name):
            if len(made.args) + len(made.keywords) < len(takes):
                raise Refused(
                    f"`{name}` takes {len(takes)} arguments: {', '.join(takes)}. Here are {len(made.args)}.",
                    made.where,
                )
            for given in made.args:
                if given.text.startswith(("'", '"')):
                    raise Refused(
                        f"`{given.text}` is no order: write `ROW_MAJOR` or `COL_MAJOR`.", made.where
                    )
                if given.text.startswith("["):
                    raise Refused(
                        f"A place stands in round brackets: `({given.text[1:-1]})` instead of "
                        f"`{given.text}`.",
                        made.where,
                    )


def _value(kernel: Any, order: str) -> Any:
    """Return what an order's name stands for in a kernel, or the text itself where that is not known."""
    written = Written(kernel)
    values = (value.text for target, value in written.assignments if target.text == order)
    order = next(values, order)
    return written.outside.get(order, order)


def check_orders(kernel: Any) -> None:
    """Refuse wmma_mma unless it is given A before B, and the orders with which they were loaded."""
    _check_arguments(kernel)
    _check_operands(kernel)
    loaded = [next(iter(passed(kernel, f"wmma_load_{matrix}", 3)), None) for matrix in "ab"]
    for product in calls_of(kernel, "wmma_mma"):
        for matrix, told, was in zip("AB", product.args[3:5], loaded):
            if was is not None and _value(kernel, told.text) != _value(kernel, was):
                raise Refused(
                    f"The fragment of {matrix} is loaded as `{was}`, but `wmma_mma` is told `{told.text}`. "
                    "It must be told the same order as the load; with another its result is undefined, "
                    "though here the numbers may come out right.",
                    product.where,
                )


def tiles_exchanged(trial: "WarpTrial") -> bool:
    """Return whether A's fragments are loaded from B's tile and B's from A's."""
    own = [filled_from(trial.kernel, trial.own_name(name)) for name in "AB"]
    loaded = [set(passed(trial.kernel, f"wmma_load_{matrix}", 1)) for matrix in "ab"]
    return all(loaded) and loaded[0] <= own[1] - own[0] and loaded[1] <= own[0] - own[1]


def refuse_exchanged_tiles(trial: "WarpTrial") -> None:
    """Refuse a kernel that exchanges the tiles of A and B. Callers ask this if the numbers are wrong."""
    if tiles_exchanged(trial):
        raise Refused(
            "The tiles are exchanged: `wmma_load_a` reads B's tile, and `wmma_load_b` A's.", f"{trial.about}."
        )


def stored_every_step(kernel: Any) -> str:
    """Return a remark on accumulators that are stored in the loop that multiplies, or ""."""
    if not any(loop.calls("wmma_store") and loop.calls("wmma_mma") for loop in Written(kernel).loops):
        return ""
    return (
        " But `wmma_store` stands in the loop along k: only the last store counts, so put it after the loop."
    )


# ---- what a right kernel is held to ------------------------------------------------------------------------


def on_tensor_cores(trial: WarpTrial, needed: int = 0) -> None:
    """Refuse multiply-adds outside the Tensor Cores, more than are needed, or not added in float32.

    needed: multiply-adds; those of all tiles of 16 by 16 by 16 if left out.
    """
    done = trial.report.arithmetic.query("op == 'mma'")
    if done.empty:
        raise Refused(
            "The numbers are right, but no Tensor Core is used: each lane multiplies by itself, one product "
            "at a time. `wmma_mma` does 4,096 of them at once.",
            f"{trial.about}.",
        )
    if (done["dtype"] == "float16").any():
        raise Refused(
            "The accumulators are FP16 values: beyond 2,048 they cannot even count by ones. The products are "
            "exact; add them up in float32.",
            trial.line(done["line"].iloc[0]),
        )
    needed = needed or prod(-(-size // SIDE) * SIDE for size in trial.shape)
    if done["lanes"].sum() > needed:
        raise Refused(
            f"The Tensor Cores do {done['lanes'].sum():,} multiply-adds where {needed:,} are needed. One "
            "`wmma_mma` per 16 steps along k is enough.",
            f"{trial.about}.",
        )


def within_shared(trial: WarpTrial, needed: int) -> None:
    """Refuse a block that takes more shared memory than the exercise's tiles, ``needed`` bytes."""
    if trial.report.shared_bytes > needed:
        raise Refused(
            f"The block takes {trial.report.shared_bytes:,} bytes of shared memory; the tiles that you were "
            f"given take {needed:,}.",
            f"{trial.about}.",
        )


# ---- findings ----------------------------------------------------------------------------------------------

WORDS = {
    "warp_divergence": "This is one call of the whole warp, and the lanes do not make it as one: every lane "
    "must make it, with the same place in memory. The hardware distributes the elements by itself. ",
    "shared_race": "Two lanes access the same element, and there is no `cuda.syncwarp()` between them. ",
    "out_of_bounds": "The kernel accesses elements outside its arrays. ",
}
MISALIGNED = (
    "A place counts elements, and fragments lie 16 apart. A fragment must begin at a multiple of 32 bytes "
    "(16 FP16 or 8 float32 values), and its rows must be multiples of 16 bytes apart."
)


def check_findings(trial: WarpTrial) -> None:
    """Refuse what the emulator found: diverged lanes first, which may have caused the rest."""
    finding = trial.error("warp_divergence") or next(iter(trial.report.errors), None)
    if finding:
        raise Refused(_in_words(trial, finding), f"{trial.line(finding)}. {trial.about}.")


def _in_words(trial: WarpTrial, finding: Finding) -> str:
    before = WORDS.get(finding.kind, "")
    called = trial.is_own(finding) and call_at(trial.kernel, finding.line)
    if finding.kind == "misaligned_access" and called:
        # The emulator's message speaks of lanes, and of a multiple that is not a fragment's.
        return MISALIGNED
    if finding.kind == "uninitialised_read":
        before = _too_early(finding)
    elif finding.kind == "out_of_bounds" and called:
        before = (
            "A place counts within the array in shared memory, which begins at (0, 0), whatever part of the "
            "matrix it holds. "
        )
    return before + finding.message


def _too_early(finding: Finding) -> str:
    corner = tuple(place // SIDE * SIDE for place in finding.element or ())
    if finding.array == "Cs" and any(corner):
        return (
            f"The fragment at {corner} of `Cs` is read before `wmma_store` put it there, if it ever does. "
            "Fragments begin 16 rows or columns apart. "
        )
    if finding.array in ("Cs", None):
        return "The accumulators are read from shared memory before `wmma_store` put them there. "
    return f"`{finding.array}` is used before anything was stored in it. "
