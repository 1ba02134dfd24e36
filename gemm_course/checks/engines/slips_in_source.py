"""Finds mistakes in the source of a GEMM kernel, where the result alone would mislead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gemm_course.checks.core import Comparison, Operation, Refused, Written

from .trial import Trial

MAKE_ARRAYS = ("zeros", "empty", "ones", "full", "array")


def refuse_numpy_arrays(kernel: Any) -> None:
    """Refuse a kernel that makes a NumPy array for its sum, where one number is enough."""
    for call in Written(kernel).calls(*(f"np.{name}" for name in MAKE_ARRAYS)):
        raise Refused(
            f"`{call.text}` makes an array, and a kernel cannot use NumPy's. One sum is one number: `acc = "
            "float32(0)`.",
            call.where,
        )


def bits_compared(written: Written) -> Iterator[tuple[Comparison, Operation, str]]:
    """Yield each comparison that has a `&` or `|` on one side, that operation, and `and` or `or` instead."""
    for comparison in written.comparisons:
        for side in comparison.sides:
            if isinstance(side, Operation) and side.sign in ("&", "|"):
                yield comparison, side, "and" if side.sign == "&" else "or"


def tied_by_bits(kernel: Any) -> Refused | None:
    """Return a refusal of `row < m & col < n`, where Python does `&` before `<`; None without such a line."""
    for comparison, tied, word in bits_compared(Written(kernel)):
        bracketed = comparison.text.replace(tied.text, f"({tied.text})", 1)
        return Refused(
            f"`{tied.sign}` ties two numbers together before `<` compares: Python takes the line as "
            f"`{bracketed}`. Between two comparisons write `{word}`.",
            comparison.where,
        )
    return None


def else_that_stores(trial: Trial) -> Refused | None:
    """Return a refusal of a guard whose `else` stores: surplus threads must do nothing at all."""
    sizes, C = {trial.own_name("m"), trial.own_name("n")}, trial.own_name("C")
    for branch in trial.written.branches:
        if sizes <= branch.test.names and (stores := branch.otherwise.stores(C)):
            return Refused(
                f"The guard's `else` stores into `{C}`. The threads that get there have no element: they "
                "must do nothing at all.",
                stores[0].where,
            )
    return None


def negative_beta_left_out(trial: Trial) -> Refused | None:
    """Return a refusal of `beta > 0` where `beta != 0` is meant, if beta is negative here."""
    beta = trial.own_name("beta")
    for comparison in trial.written.comparisons if trial.before["beta"] < 0 else ():
        asked = [side.text for side in comparison.sides], comparison.sign
        if asked in (([beta, "0"], ">"), ([beta, "0"], "<="), (["0", beta], "<"), (["0", beta], ">=")):
            return Refused(
                f"`{comparison.text}` puts a negative `{beta}` on the side of 0. Only 0 itself is a case of "
                "its own: compare with `== 0` or `!= 0`.",
                f"{comparison.where}. Here `{beta}` is {float(trial.before['beta']):g}.",
            )
    return None


def beta_test_inverted(trial: Trial) -> Refused | None:
    """Return a refusal of a kernel that reads the old `C` where `beta` is 0, and only there."""
    beta, C = trial.own_name("beta"), trial.own_name("C")
    for branch in (*trial.written.branches, *trial.written.choices):
        if not branch.otherwise.text or branch.test.text not in (f"{beta} == 0", f"{beta} != 0"):
            continue
        with_zero, with_others = branch.body, branch.otherwise
        if branch.test.text == f"{beta} != 0":
            with_zero, with_others = with_others, with_zero
        if with_zero.loads(C) and not with_others.loads(C):
            return Refused(
                f"The two cases of `{beta}` are exchanged: the old `{C}` is read where `{beta}` is 0, and "
                f"`{beta} * {C}` is left out where it is not.",
                branch.where,
            )
    return None


def refuse_swapped_axes(trial: Trial, *, right: bool) -> None:
    """Refuse a kernel that calls `cuda.threadIdx.y` tx, or `cuda.threadIdx.x` ty, unless it is right."""
    wrong = {("tx", "cuda.threadIdx.y"), ("ty", "cuda.threadIdx.x")}
    for target, value in trial.written.assignments:
        if (target.text, value.text) in wrong and not right:
            raise Refused(
                "`tx` and `ty` are swapped where they get their values: `tx` is `cuda.threadIdx.x`, which "
                "counts across, and `ty` is `cuda.threadIdx.y`.",
                target.where,
            )


def whole_or_half(trial: Trial) -> Refused | None:
    """Return a refusal of an array of the kernel's own whose elements are integers or float16; or None."""
    for target, value in trial.written.assignments:
        for made in value.calls("local.array", "shared.array"):
            dtype = made.argument(1, "dtype")
            kind = dtype.text.split(".")[-1] if dtype else ""
            if kind == "float16" or kind.strip("u").startswith("int"):
                lost = (
                    "is rounded to eleven bits" if kind == "float16" else "loses what stands behind the point"
                )
                return Refused(
                    f"The elements of `{target.text}` are {kind}: what is stored in it {lost}. Declare it "
                    "with float32.",
                    made.where,
                )
    return None
