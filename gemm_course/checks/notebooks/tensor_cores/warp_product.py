"""Checks ``warp_product``: a warp multiplies 16 by 16 tiles with the Tensor Cores, A's tile transposed."""

from gemm_course.checks.core import (
    Element,
    Refused,
    Written,
    call,
    exercise,
    factory_of,
    kernel_of,
    nothing_yet,
)
from gemm_course.checks.engines.wmma import (
    SIDE,
    WarpTrial,
    calls_of,
    check_findings,
    check_orders,
    on_tensor_cores,
    refuse_exchanged_tiles,
    stored_every_step,
    tiles_transposed,
    try_warps,
    within_shared,
)

ARGUMENTS = ("k", "A", "B", "C")
PADS = (8, 0, 16)
# The sizes are (m, n, k).
SIZES = ((16, 16, 16), (16, 32, 48), (32, 16, 16))


@exercise(
    start="declare the fragments `a` and `b`, `cuda.local.array(16, float16)` each, and eight accumulators, "
    "`acc`.",
    hints=(
        "Four calls: `wmma_load_a`, `wmma_load_b` and `wmma_mma` in the loop, `wmma_store` after it. Before "
        "the loop set the eight elements of `acc` to zero.",
        "All lanes pass the same place: the tiles begin at `(0, 0)`. The hardware distributes the elements.",
        "`As[p, y]` holds element (y, p) of A, so the elements of a column of A lie side by side in memory. "
        "That is `COL_MAJOR`. `Bs[p, x]` is `ROW_MAJOR`.",
        "`wmma_load_a(a, As, (0, 0), COL_MAJOR)`, `wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)`, `wmma_mma(acc, a, "
        "b, COL_MAJOR, ROW_MAJOR)`, and at the end `wmma_store(Cs, (0, 0), acc, ROW_MAJOR)`.",
    ),
)
def warp_product(make_product):
    """A factory (PAD) of kernels (k, A, B, C): a warp multiplies a row of tiles by a column of tiles."""
    make = factory_of(make_product, ("PAD",))
    kernels = {pad: kernel_of(call(make, pad), ARGUMENTS) for pad in PADS}
    _check_begun(kernels[PADS[0]])
    for pad, kernel in kernels.items():
        check_orders(kernel)
        for size in SIZES:
            trial = try_warps(kernel, ARGUMENTS, *size, choice=f"PAD = {pad}")
            check_findings(trial)
            _check_numbers(trial)
            on_tensor_cores(trial)
            within_shared(trial, 2 * 2 * SIDE * (SIDE + pad) + 4 * SIDE * (SIDE + 8))
    return (
        f"Right for {len(SIZES)} sizes with a padding of 8, 0 and 16 FP16 values: the Tensor Cores do every "
        "multiply-add, the accumulators are float32, and all 32 lanes make each call together."
        + stored_every_step(kernels[PADS[0]])
    )


# ---- is there an answer yet --------------------------------------------------------------------------------


def _check_begun(kernel) -> None:
    """Raise NothingYet as long as no fragment is declared and nothing is multiplied."""
    if not calls_of(kernel, "wmma_") and not calls_of(kernel, "local.array") and not _multiplies(kernel):
        raise nothing_yet()


def _multiplies(kernel) -> bool:
    """Tell whether two elements of arrays are multiplied somewhere."""
    products = Written(kernel).operations("*")
    return any(all(isinstance(side, Element) for side in product.sides) for product in products)


# ---- what wrong numbers mean -------------------------------------------------------------------------------

LIKELY = (
    (
        "C is 0 everywhere: no product was added to the accumulators that you store. That is what `wmma_mma` "
        "does, once per 16 steps along k.",
        lambda A, B: 0 * (A @ B),
    ),
    (
        "C is 2 times too large: each product is added twice. One `wmma_mma` per 16 steps along k is enough.",
        lambda A, B: 2 * (A @ B),
    ),
    (
        "The tile of A is transposed in shared memory, `As[p, y]`, but loaded as if it were not: its rows "
        "run down the columns of `As`, which is `COL_MAJOR`.",
        lambda A, B: tiles_transposed(A) @ B,
    ),
    (
        "The tile of B is loaded as `COL_MAJOR`, but lies in `Bs` row by row.",
        lambda A, B: A @ tiles_transposed(B),
    ),
    (
        "The two orders are swapped: As is transposed (`COL_MAJOR`), Bs is not (`ROW_MAJOR`).",
        lambda A, B: tiles_transposed(A) @ tiles_transposed(B),
    ),
    (
        "The accumulators are stored as `COL_MAJOR`, so every tile of C arrives transposed.",
        lambda A, B: tiles_transposed(A @ B),
    ),
    (
        "Only the last 16 steps along k count: the accumulators start anew in every iteration. Set them to "
        "zero before the loop.",
        lambda A, B: A[:, -SIDE:] @ B[-SIDE:],
    ),
    ("Only the first 16 steps along k count.", lambda A, B: A[:, :SIDE] @ B[:SIDE]),
)


def _check_numbers(trial: WarpTrial) -> None:
    if not trial.wrong.any():
        return
    if not trial.equals(trial.expected):
        refuse_exchanged_tiles(trial)
        for message, predict in LIKELY:
            if trial.equals(predict(trial.A, trial.B)):
                raise Refused(message, trial.where)
    elif len(trial.report.arithmetic.query("op == 'mma' and dtype == 'float16'")):
        raise Refused(
            "The numbers are nearly right, but off by more than float32 accumulators explain: these are FP16 "
            "values, with 11 bits. The products are exact; add them up in float32.",
            trial.where,
        )
    raise Refused("The numbers are wrong.", trial.where)
