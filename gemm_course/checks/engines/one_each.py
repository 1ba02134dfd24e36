"""Checks kernels whose threads compute one element of `out` each, and store each element once."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gemm_course.checks.core import Element, Refused, Written, emulate_kernel, nothing_happens
from lockstep import Watch

from .lessons import no_float64
from .slips_in_source import MAKE_ARRAYS
from .trial import Trial, try_kernel

Explain = Callable[[Trial, str], Refused | None]
ONE_INDEX = {
    1: "`cuda.grid(2)` returns two numbers, and a vector takes one index: in one dimension it is "
    "`i = cuda.grid(1)`.",
    2: "`cuda.grid(2)` returns two numbers, x and y: `x, y = cuda.grid(2)`.",
}


def try_one_each(kernel: Any, names: tuple[str, ...], block: tuple, *inputs, out: np.ndarray, about: str):
    """Launch enough blocks to cover ``out``, with x along its last axis; refuse a kernel that cannot be run.

    names: the names of the kernel's arguments, first of the inputs and last of ``out``.
    """
    grid = tuple(-(-size // threads) for size, threads in zip(out.shape[::-1], block))
    try:
        return try_kernel(kernel, names, grid, block, *inputs, out, about=about)
    except Refused as refused:
        raise Refused(_written_for_numpy(kernel, refused, out.ndim), refused.where) from None


def _written_for_numpy(kernel: Any, refused: Refused, dimensions: int) -> str:
    """Return why a kernel cannot run, in words for those who write as for NumPy, or in the emulator's."""
    written = Written(kernel)
    if name := re.match(r"the name ([A-Za-z]) is not defined", refused.message, re.IGNORECASE):
        return f"{refused.message} {_what_it_knows(written, name[1])}"
    if re.search(r"method \.size\(\)", refused.message):
        return "`size` is a number, not a function: write it without brackets, `out.size`."
    if numpys := re.search(r"support (np\.\w+) in", refused.message):
        if numpys[1].removeprefix("np.") in MAKE_ARRAYS:
            return (
                f"`{numpys[1]}` makes an array, and a kernel cannot use NumPy's. Keep the sum in a plain "
                "variable, or store it at once."
            )
        return (
            f"`{numpys[1]}` is NumPy's way to compute with many elements at once. In a kernel each thread "
            "computes one element, with an `if` where it must choose."
        )
    if refused.message.startswith("A list is not supported"):
        return "A kernel has no lists. A thread adds its two numbers: `+`."
    assigned = written.assignments
    pairs = {each.target.text for each in assigned if each.value.text == "cuda.grid(2)"} & written.names
    if any(element.index.text in pairs for element in written.elements()):
        return ONE_INDEX[dimensions]
    for element in written.elements():
        if element.is_slice:
            return (
                f"`{element.text}` is a slice, NumPy's way to compute with many elements at once. In a "
                f"kernel each thread computes one element: it asks `cuda.grid({dimensions})` which, and uses "
                "plain indices."
            )
    return refused.message


def _what_it_knows(written: Written, name: str) -> str:
    """Return what a kernel can use in place of an undefined name: its arguments, or an array's shape."""
    given = ", ".join(f"`{parameter}`" for parameter in written.parameters)
    known = f"A kernel knows its arguments, {given}, and what it computes from them."
    return known if written.elements(name) else f"{known} An array knows its size: `out.shape`."


def hold_to_one_each(trials: Sequence[Trial], expected: Callable[[Trial], Any], explain: Explain) -> None:
    """Refuse a kernel unless each launch stores each element of `out` once, with its right value.

    expected: trial -> the right `out`. explain: (trial, where) -> what wrong elements, or stores outside of
    `out`, mean in this exercise, or None.
    """
    if all(trial.report.accesses.empty and not trial.report.errors for trial in trials):
        raise nothing_happens(trials[0].kernel)
    for trial in trials:
        _hold(trial, expected(trial), explain)
    _hold_to_all_threads(max(trials, key=lambda trial: prod(trial.grid)))
    no_float64(trials[0])


def _hold(trial: Trial, expected: np.ndarray, explain: Explain) -> None:
    out, stores, where = trial.after["out"], trial.lanes("store", "out"), f"{trial.about}."
    for name in trial.names[:-1]:
        if trial.touched(name).any():
            raise Refused(
                f"The kernel writes into `{trial.own_name(name)}`, which is input. The results belong in "
                "`out`.",
                where,
            )
    if not stores and not trial.report.errors:
        raise Refused(f"The kernel runs, but nothing is ever stored into `out`.{_renamed(trial)}", where)
    wrong = ~(abs(out - expected) <= 1e-5)
    if wrong.any():
        where = trial.first_wrong("out", wrong, expected, _owner(trial, np.argwhere(wrong)[0].tolist()))
    if out.size > 1 and stores >= out.size * min(out.size, prod(trial.grid) * prod(trial.block)):
        raise Refused(_all_by_all(trial, f"{stores:,} stores for {out.size:,} elements"), where)
    if wrong.any() or trial.report.errors:
        raise _explained(trial, where, explain, wrong)
    if stores != out.size:
        adding = " `+=` on `out` stores as well: add first, then store." if _adds_to_out(trial) else ""
        raise Refused(
            f"Right, but {stores:,} stores for {out.size:,} elements: each must be stored once.{adding}",
            where,
        )


def _adds_to_out(trial: Trial) -> bool:
    """Return whether the source has a `+=` or the like on an element of an array."""
    return any(isinstance(target, Element) for target in trial.written.updated)


def _renamed(trial: Trial) -> str:
    """Return what `out = ...` does instead of storing; "" where the kernel has no such line."""
    own = trial.own_name("out")
    if all(target.text != own for target, _ in trial.written.assignments):
        return ""
    return f" `{own} = ...` only gives the name `{own}` to something else; `{own}[...] = ...` stores."


def _all_by_all(trial: Trial, counted: str) -> str:
    """Return a message that says by what every thread stores all of `out`: a slice, or else a loop."""
    for store in trial.written.stores():
        if store.is_slice:
            return (
                f"`{store.text} = ...` stores all of `out`, and every thread runs that line: {counted}. "
                "Leave it out; each thread stores its own element."
            )
    return (
        f"Every thread goes through all of `out`: {counted}. Leave the loop out: the threads *are* the loop, "
        "each does one element."
    )


def _hold_to_all_threads(trial: Trial) -> None:
    """Refuse a right result that some threads store for others."""
    stores = list(_stores_of_each_thread(trial).values())
    if max(stores) == 1:
        return
    busy = f"{len(stores)} threads do" if len(stores) > 1 else "one thread does"
    raise Refused(
        f"Right, but {busy} all of it; the others watch. Each thread stores one element, its own.",
        f"{trial.about}: one thread stores {max(stores)} of the {trial.after['out'].size} elements.",
    )


def _stores_of_each_thread(trial: Trial) -> Counter:
    """Count the stores of each (block, thread) to `out`."""
    stores, arguments = Counter(), [trial.before[name] for name in trial.names]
    for block in product(*map(range, trial.grid)):
        copies = [argument.copy() for argument in arguments]
        trace = emulate_kernel(trial.kernel, trial.grid, trial.block, *copies, watch=Watch(block)).trace
        own = trace[(trace["op"] == "store") & (trace["array"] == trial.own_name("out"))]
        stores.update((block, thread) for thread in own["thread"])
    return stores


def guard_of(trial: Trial) -> str:
    """Return the first condition of an `if` that compares something, right or wrong; "" without one."""
    tests = (branch.test for branch in trial.written.branches)
    return next((test.text for test in tests if test.comparisons), "")


def _explained(trial: Trial, where: str, explain: Explain, wrong: np.ndarray) -> Refused:
    out = trial.after["out"]
    if trial.lanes("load", "out") and np.isnan(out).all():
        return Refused(
            "The sum is added to what was in `out` before, and there may be anything in it. Store with `=`.",
            where,
        )
    refused = explain(trial, where)
    if refused:
        return refused
    race = trial.error("global_race")
    if race and not (wrong & trial.touched("out")).any():
        who, _, _ = race.message.partition(", in no defined order")
        raise Refused(f"{who}. The value is right, but each element must be stored once.", where)
    _refuse_guard(trial, where)
    trial.refuse_errors(where.removesuffix("."))
    if not trial.touched("out").all():
        return Refused("Some elements are never stored.", where)
    return Refused("The sums are wrong.", where)


def _refuse_guard(trial: Trial, where: str) -> None:
    """Raise Refused, and quote the guard, if threads pass it that store outside `out`."""
    finding, guard = trial.error("out_of_bounds"), guard_of(trial)
    if finding and guard and trial.strays("out"):
        raise Refused(
            f"Threads pass your guard, `{guard}`, and work outside the arrays: {finding.message[0].lower()}"
            f"{finding.message[1:]}",
            f"{trial.line(finding)}. {where}",
        )


def _owner(trial: Trial, place: list[int]) -> str:
    """Return a sentence that says which thread an element belongs to."""
    sizes = list(zip(place[::-1], trial.block))
    thread, block = tuple(at % size for at, size in sizes), tuple(at // size for at, size in sizes)
    if len(place) == 1:
        return f"It belongs to thread {thread[0]} of block {block[0]}."
    return f"It belongs to thread {thread} of block {block}."
