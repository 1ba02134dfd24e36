"""Exercise 08.1: a warp multiplies 16 by 16 tiles with the Tensor Cores, A's tile transposed."""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemm_course.checks.core import (
    Refused,
    call,
    emulate_kernel,
    function_of,
    kernel_of,
    line_at,
    nothing_yet,
    number_shown,
    parameter_names,
    source_tree,
)
from gemm_course.emulator import Report

SIDE = 16
ARGUMENTS = ("k", "A", "B", "C")
PADS = (8, 0, 16)
SIZES = ((16, 16, 16), (16, 32, 48), (32, 16, 16))  # m, n, k
UNTOUCHED = np.array(0x7FC0C0DE, np.uint32).view(np.float32)  # a NaN with bits of its own


@dataclass
class Product:
    """One launch of a warp a block, a block a tile of C: what came out, and the emulator's report."""

    kernel: Any
    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    report: Report
    named: str  # the problem in words

    @property
    def expected(self) -> np.ndarray:
        return self.A.astype(np.float64) @ self.B.astype(np.float64)

    @property
    def wrong(self) -> np.ndarray:
        """Which elements of C differ by more than sums in float32 explain."""
        size = abs(self.A).astype(np.float64) @ abs(self.B).astype(np.float64)
        inside = self.C[: self.A.shape[0], : self.B.shape[1]]
        return ~(abs(inside - self.expected) <= (self.A.shape[1] + 4) * 6e-8 * size)

    def equals(self, prediction: np.ndarray) -> bool:
        inside = self.C[: self.A.shape[0], : self.B.shape[1]]
        return bool((abs(inside - prediction) <= 2e-2 * (1 + abs(prediction))).all())


def prove_product(make_product) -> str:
    """What was proved of the learner's factory; raises Refused with the first thing wrong."""
    make = factory_of(make_product)
    kernels = {pad: kernel_of(call(make, pad), ARGUMENTS) for pad in PADS}
    check_begun(kernels[PADS[0]])
    for pad, kernel in kernels.items():
        check_layouts(kernel)
        for shape in SIZES:
            run = _run(kernel, *shape, f"PAD = {pad}, m, n, k = {', '.join(map(str, shape))}")
            check_findings(run)
            _check_numbers(run)
            check_tensor_cores(run)
            check_shared(run, 2 * 2 * SIDE * (SIDE + pad) + 4 * SIDE * (SIDE + 8))
    return (
        f"Right for {len(SIZES)} sizes with a skew of 8, 0 and 16 halves: every multiply-add is the Tensor "
        "Cores', the sums are float32, and all 32 lanes make each call together."
    )


def factory_of(given):
    if hasattr(given, "py_func"):
        raise Refused(
            f"`{given.py_func.__name__}` is the kernel itself. Hand over the function around it, which takes "
            "PAD and returns it."
        )
    return function_of(given, ("PAD",))


def halves(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """A (m, k) and B (k, n), float16, different at every call only if the sizes are."""
    rng = np.random.default_rng((m, n, k))
    return tuple(rng.uniform(-2, 2, shape).astype(np.float16) for shape in ((m, k), (k, n)))


def _run(kernel, m: int, n: int, k: int, named: str) -> Product:
    A, B = halves(m, n, k)
    C = np.full((m, n), UNTOUCHED, np.float32)
    report = emulate_kernel(kernel, (n // SIDE, m // SIDE), 32, k, A.copy(), B.copy(), C)
    return Product(kernel, A, B, C, report, f"With {named}")


# ---- is there an answer yet, and is it one for Tensor Cores ------------------------------------------------


def check_begun(kernel) -> None:
    """Nothing has begun as long as no fragment is declared and nothing is multiplied."""
    if not calls_of(kernel, "wmma_") and not calls_of(kernel, "local.array") and not _multiplies(kernel):
        raise nothing_yet()


def calls_of(kernel, name: str) -> list[ast.Call]:
    """The calls in a kernel's source of functions with ``name`` in theirs."""
    return [
        node
        for node in ast.walk(source_tree(kernel))
        if isinstance(node, ast.Call) and name in ast.unparse(node.func)
    ]


def _multiplies(kernel) -> bool:
    """Two elements of arrays are multiplied somewhere."""
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and isinstance(node.left, ast.Subscript)
        and isinstance(node.right, ast.Subscript)
        for node in ast.walk(source_tree(kernel))
    )


def check_layouts(kernel) -> None:
    """wmma_mma must be given A before B, and the orders with which they were loaded."""
    loaded = [_argument(kernel, f"wmma_load_{matrix}", 3) for matrix in "ab"]
    names = [_argument(kernel, f"wmma_load_{matrix}", 0) for matrix in "ab"]
    for product in calls_of(kernel, "wmma_mma"):
        if names[0] != names[1] and [ast.unparse(part) for part in product.args[1:3]] == names[::-1]:
            raise Refused(
                "A and B are exchanged in `wmma_mma`: first the sums, then A, then B.",
                line_at(kernel, kernel.py_func.__code__.co_firstlineno + product.lineno - 1),
            )
        told = [ast.unparse(order) for order in product.args[3:5]]
        for matrix, is_told, was in zip("AB", told, loaded):
            if was is not None and is_told != was:
                raise Refused(
                    f"The fragment of {matrix} is loaded as `{was}`, but `wmma_mma` is told `{is_told}`. It "
                    "takes the orders with which the fragments were loaded; with others its result is "
                    "undefined, though here the numbers may come out right.",
                    line_at(kernel, kernel.py_func.__code__.co_firstlineno + product.lineno - 1),
                )


def _argument(kernel, name: str, place: int) -> str | None:
    """What stands in a place of the first call of that name."""
    calls = calls_of(kernel, name)
    return ast.unparse(calls[0].args[place]) if calls and len(calls[0].args) > place else None


def check_tensor_cores(run: Product) -> None:
    """All multiply-adds are the Tensor Cores', as many as the product has, with sums in float32."""
    arithmetic = run.report.arithmetic
    on_cores = arithmetic.query("op == 'mma'")
    if on_cores.empty:
        raise Refused(
            "The numbers are right, but no Tensor Core was asked: each lane multiplies by itself, one "
            "product at a time. `wmma_mma` does 4,096 of them at once.",
            f"{run.named}.",
        )
    if (on_cores["dtype"] == "float16").any():
        raise Refused(
            "The sums are kept in halves: beyond 2,048 they cannot even count by ones. The products are "
            "exact; add them up in float32.",
            line_at(run.kernel, int(on_cores["line"].iloc[0])),
        )
    tiles = [-(-size // SIDE) * SIDE for size in (run.A.shape[0], run.B.shape[1], run.A.shape[1])]
    if on_cores["lanes"].sum() > np.prod(tiles):
        raise Refused(
            f"The Tensor Cores do {on_cores['lanes'].sum():,} multiply-adds where {np.prod(tiles):,} are "
            "needed. One `wmma_mma` a step of 16 is enough.",
            f"{run.named}.",
        )


def check_shared(run: Product, needed: int) -> None:
    """The block takes no more shared memory than the tiles that were handed out, ``needed`` bytes."""
    if run.report.shared_bytes > needed:
        raise Refused(
            f"The block takes {run.report.shared_bytes:,} bytes of shared memory, where the tiles that were "
            f"handed out have {needed:,}.",
            f"{run.named}.",
        )


# ---- what is wrong -----------------------------------------------------------------------------------------


def check_findings(run: Product) -> None:
    if run.report.errors:
        apart = (f for f in run.report.errors if f.kind == "warp_divergence")
        finding = next(apart, run.report.errors[0])
        raise Refused(_words(finding), f"{line_at(run.kernel, finding.line)}. {run.named}.")


def _words(finding) -> str:
    before = {
        "warp_divergence": "A call for the whole warp, made by lanes apart. Every lane has to make it, with "
        "the same place in memory; the hardware deals the elements out by itself. ",
        "shared_race": "Lanes are at the same element, and `cuda.syncwarp()` does not stand between them. ",
        "misaligned_access": "A fragment begins at a multiple of 32 bytes, and its rows are multiples of 16 "
        "bytes apart. ",
        "out_of_bounds": "The kernel leaves its arrays. ",
    }
    if finding.kind == "uninitialised_read":
        return _read_too_early(finding)
    return before.get(finding.kind, "") + finding.message


def _read_too_early(finding) -> str:
    if finding.array in ("Cs", None):
        return f"The sums are read from shared memory before `wmma_store` put them there. {finding.message}"
    return f"`{finding.array}` is used before anything was put into it. {finding.message}"


def tiles_of(A: np.ndarray, B: np.ndarray, change_a: Callable, change_b: Callable) -> np.ndarray:
    """A @ B in float64 with every 16 by 16 tile of A and of B changed first."""
    (m, k), n = A.shape, B.shape[1]
    C = np.zeros((m, n))
    for row in range(0, m, SIDE):
        for column in range(0, n, SIDE):
            for p in range(0, k, SIDE):
                a = change_a(A[row : row + SIDE, p : p + SIDE].astype(np.float64))
                b = change_b(B[p : p + SIDE, column : column + SIDE].astype(np.float64))
                C[row : row + SIDE, column : column + SIDE] += a @ b
    return C


def _as_it_is(tile):
    return tile


def transposed_results(run: Product) -> np.ndarray:
    """What is right, with every 16 by 16 tile of C transposed; C has whole tiles."""
    C = run.expected
    rows, columns = (size // SIDE for size in C.shape)
    return C.reshape(rows, SIDE, columns, SIDE).transpose(0, 3, 2, 1).reshape(C.shape)


def _check_numbers(run: Product) -> None:
    if not run.wrong.any():
        return
    A, B = run.A, run.B
    likely = (
        (
            "The tile of A lies transposed in shared memory, `As[p, y]`, and is loaded as if it did not: its "
            "rows run down the columns of `As`, which is `COL_MAJOR`.",
            lambda: tiles_of(A, B, np.transpose, _as_it_is),
        ),
        (
            "The tile of B is loaded as `COL_MAJOR`, but lies in `Bs` row by row.",
            lambda: tiles_of(A, B, _as_it_is, np.transpose),
        ),
        (
            "Both orders are the wrong way round: As is transposed (`COL_MAJOR`), Bs is not (`ROW_MAJOR`).",
            lambda: tiles_of(A, B, np.transpose, np.transpose),
        ),
        (
            "The sums are stored as `COL_MAJOR`, so every tile of C arrives transposed.",
            lambda: transposed_results(run),
        ),
        (
            "Only the last 16 steps along k count: the sums start anew in every turn. Set them to zero "
            "before the loop.",
            lambda: tiles_of(A[:, -SIDE:], B[-SIDE:], _as_it_is, _as_it_is),
        ),
        (
            "Only the first 16 steps along k count.",
            lambda: tiles_of(A[:, :SIDE], B[:SIDE], _as_it_is, _as_it_is),
        ),
    )
    nearly = run.equals(run.expected)
    for message, predict in likely if not nearly else ():
        if run.equals(predict()):
            raise Refused(message, first_wrong(run))
    if nearly and not _is_float32(run):
        raise Refused(
            "The numbers are nearly right, but off by more than sums in float32 explain: they are kept in "
            "halves, with 11 bits. The products are exact; add them up in float32.",
            first_wrong(run),
        )
    raise Refused("The numbers are wrong.", first_wrong(run))


def _is_float32(run: Product) -> bool:
    return run.report.arithmetic.query("op == 'mma' and dtype == 'float16'").empty


def first_wrong(run: Product) -> str:
    row, column = map(int, np.argwhere(run.wrong)[0])
    name = parameter_names(run.kernel)[-1]
    return (
        f"{run.named}: first wrong element `{name}[{row}, {column}]` is "
        f"{number_shown(run.C[row, column])}, NumPy has {run.expected[row, column]:.5g}. It belongs to block "
        f"({column // SIDE}, {row // SIDE})."
    )
