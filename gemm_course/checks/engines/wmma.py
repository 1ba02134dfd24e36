"""Products by Tensor Cores, one warp per 16 by 16 tile of C: a launch, and what a right kernel is held to."""

import ast
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from gemm_course.checks.core import Refused, source_tree
from gemm_course.emulator import Finding

from .trial import Trial, try_kernel

SIDE = 16  # rows and columns of a tile of C, steps along k of a fragment
UNTOUCHED = np.array(0x7FC0C0DE, np.uint32).view(np.float32)  # a NaN with bits of its own
FROM_FLOAT32 = 6e-8  # relative error of one addition


@dataclass(kw_only=True)
class WarpTrial(Trial):
    """One product with the learner's kernel, C = A @ B; each block is a warp and computes a tile."""

    shape: tuple[int, int, int]  # m, n, k

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
        """C came out as predicted, or nearly."""
        return bool((abs(self.got - prediction) <= 2e-2 * (1 + abs(prediction))).all())

    @property
    def where(self) -> str:
        """The first wrong element, its block, and the launch."""
        row, column = map(int, np.argwhere(self.wrong)[0])
        owner = f"It belongs to block ({column // SIDE}, {row // SIDE})."
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
) -> WarpTrial:
    """Launch a warp per tile of C. Raises Refused where the kernel cannot be run.

    names: the kernel's arguments, of m, n, k, A, B and C. beside: rows and columns more that C's array has.
    choice: what the kernel's factory was called with, such as "PAD = 8".
    """
    rng = np.random.default_rng((m, n, k))
    A, B = (rng.uniform(-2, 2, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    C = np.full((m + beside[0], n + beside[1]), UNTOUCHED, np.float32)
    given = {"m": m, "n": n, "k": k, "A": A, "B": B, "C": C}
    about = "With " + ", ".join(filter(None, (choice, f"m = {m}, n = {n}, k = {k}")))
    grid = -(-n // SIDE), -(-m // SIDE)
    done = try_kernel(kernel, names, grid, 32, *(given[name] for name in names), about=about)
    return WarpTrial(**vars(done), shape=(m, n, k))


def tiles_transposed(matrix: np.ndarray) -> np.ndarray:
    """A matrix of whole tiles, each of them transposed in its place."""
    rows, columns = (size // SIDE for size in matrix.shape)
    tiles = matrix.reshape(rows, SIDE, columns, SIDE)
    return tiles.transpose(0, 3, 2, 1).reshape(matrix.shape)


def calls_of(kernel: Any, name: str) -> list[ast.Call]:
    """The calls in a kernel's source of functions with ``name`` in theirs."""
    nodes = ast.walk(source_tree(kernel))
    return [node for node in nodes if isinstance(node, ast.Call) and name in ast.unparse(node.func)]


# ---- what a right kernel is held to ------------------------------------------------------------------------


def on_tensor_cores(trial: WarpTrial) -> None:
    """The Tensor Cores do all multiply-adds, no more than the tiles have, with float32 accumulators."""
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
    needed = prod(-(-size // SIDE) * SIDE for size in trial.shape)
    if done["lanes"].sum() > needed:
        raise Refused(
            f"The Tensor Cores do {done['lanes'].sum():,} multiply-adds where {needed:,} are needed. One "
            "`wmma_mma` per 16 steps along k is enough.",
            f"{trial.about}.",
        )


def within_shared(trial: WarpTrial, needed: int) -> None:
    """The block takes no more shared memory than the exercise's tiles, ``needed`` bytes."""
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
    "misaligned_access": "A fragment must begin at a multiple of 32 bytes, and its rows must be multiples of "
    "16 bytes apart. ",
    "out_of_bounds": "The kernel accesses elements outside its arrays. ",
}


def check_findings(trial: WarpTrial) -> None:
    """Refuse what the emulator found, lanes apart first: what else it found may come from that."""
    finding = trial.error("warp_divergence") or next(iter(trial.report.errors), None)
    if finding:
        before = _too_early(finding) if finding.kind == "uninitialised_read" else WORDS.get(finding.kind, "")
        raise Refused(before + finding.message, f"{trial.line(finding)}. {trial.about}.")


def _too_early(finding: Finding) -> str:
    if finding.array in ("Cs", None):
        return "The accumulators are read from shared memory before `wmma_store` put them there. "
    return f"`{finding.array}` is used before anything was stored in it. "
