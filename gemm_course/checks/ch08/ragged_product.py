"""Exercise 08.4: what becomes of a fragment of sums at the edge of C."""

import ast

import numpy as np

from gemm_course.checks.ch08.warp_product import (
    SIDE,
    UNTOUCHED,
    Product,
    calls_of,
    check_findings,
    check_shared,
    check_tensor_cores,
    first_wrong,
    halves,
    transposed_results,
)
from gemm_course.checks.core import Refused, emulate_kernel, kernel_of, line_at, nothing_yet, source_tree

ARGUMENTS = ("m", "n", "k", "A", "B", "C")
SIZES = ((16, 32, 16), (17, 30, 20), (5, 3, 7), (31, 16, 33), (16, 41, 1))  # m, n, k
WIDER = 3  # elements at the end of C's rows that are not the kernel's


def prove_edge(given) -> str:
    """What was proved of the learner's kernel; raises Refused with the first thing wrong."""
    kernel = kernel_of(given, ARGUMENTS)
    if not _stores(kernel):
        raise nothing_yet()
    runs = [_run(kernel, *size) for size in SIZES]
    for run in runs:
        _check(run)
    _check_route(runs[0])
    return (
        f"Right for {len(SIZES)} shapes, four of them with odd edges: every sum goes through shared memory, "
        "where row and column are known again, and nothing beside C is touched."
    )


def _stores(kernel) -> bool:
    """Something is done with the sums: they are stored, or C is."""
    c = kernel.py_func.__code__.co_varnames[len(ARGUMENTS) - 1]
    assigned = (
        target
        for node in ast.walk(source_tree(kernel))
        if isinstance(node, (ast.Assign, ast.AugAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    )
    of_c = any(isinstance(t, ast.Subscript) and ast.unparse(t.value) == c for t in assigned)
    return of_c or bool(calls_of(kernel, "wmma_store"))


def _run(kernel, m: int, n: int, k: int) -> Product:
    A, B = halves(m, n, k)
    C = np.full((m + 1, n + WIDER), UNTOUCHED, np.float32)
    grid = -(-n // SIDE), -(-m // SIDE)
    report = emulate_kernel(kernel, grid, 32, m, n, k, A.copy(), B.copy(), C)
    return Product(kernel, A, B, C, report, f"With m = {m}, n = {n}, k = {k}")


def _check(run: Product) -> None:
    touched = run.C.view(np.uint32) != UNTOUCHED.view(np.uint32)
    (m, _), n = run.A.shape, run.B.shape[1]
    inside = np.zeros_like(touched)
    inside[:m, :n] = True
    whole = np.zeros_like(touched)
    whole[: m // SIDE * SIDE, : n // SIDE * SIDE] = True
    if not touched.any() and not run.report.errors:
        raise Refused("Nothing arrives in C.", f"{run.named}.")
    if (touched & ~inside).any():
        _refuse_surplus(run, touched & ~inside)
    if (touched == whole).all() and not (whole == inside).all():
        raise Refused(
            "Tiles that reach beyond C are skipped altogether, and with them the part of them that is "
            "inside. Guard element by element, not tile by tile.",
            first_wrong(run),
        )
    if any(f.kind == "out_of_bounds" and f.array not in ("A", "B") for f in run.report.errors):
        _refuse_surplus(run, touched)
    check_findings(run)
    if (touched != inside).any():
        row, column = map(int, np.argwhere(touched != inside)[0])
        raise Refused("Some elements of C are never stored.", f"First: `C[{row}, {column}]`. {run.named}.")
    if run.wrong.any():
        if not (m % SIDE or n % SIDE) and run.equals(transposed_results(run)):
            raise Refused(
                "Every tile of C arrives transposed: stored as `COL_MAJOR`, or read from `Cs` the other way "
                "round.",
                first_wrong(run),
            )
        raise Refused(
            "The numbers are wrong: do the sums' rows and columns arrive in their places?", first_wrong(run)
        )
    check_tensor_cores(run)
    check_shared(run, (2 * 2 + 4) * SIDE * (SIDE + 8))


def _refuse_surplus(run: Product, surplus: np.ndarray):
    row, column = (map(int, np.argwhere(surplus)[0])) if surplus.any() else (run.A.shape[0], 0)
    where = f"{run.named}: first element too many is `C[{row}, {column}]`."
    for guarded, other, beyond in (
        ("Rows", "columns: C ends at n", surplus[run.A.shape[0] :]),
        ("Columns", "rows: C ends at m", surplus[:, run.B.shape[1] :]),
    ):
        if surplus.any() and not beyond.any():
            raise Refused(f"{guarded} are guarded, but not {other}, and beside it nothing is yours.", where)
    raise Refused(
        "The whole fragment is stored, also where C has ended: there it lands in the padding, in the next "
        "row or behind the array. Put it into shared memory first, and from there only what is inside C.",
        where,
    )


def _check_route(run: Product) -> None:
    """The sums went through shared memory and not straight from the registers of some lane."""
    if calls_of(run.kernel, "wmma_store"):
        return
    line = run.report.accesses.query("space == 'global' and op == 'store'")["line"]
    raise Refused(
        "The numbers are right, but the kernel takes it for granted which lane holds which element. That is "
        "not specified: another GPU may deal them out in another way. `wmma_store` knows.",
        line_at(run.kernel, int(line.iloc[0])),
    )
