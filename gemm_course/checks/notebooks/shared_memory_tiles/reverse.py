"""Checks ``reverse``: blocks that reverse their elements through shared memory."""

import inspect

import numpy as np

from gemm_course.checks.core import (
    Call,
    Part,
    Refused,
    Written,
    call,
    check_begun,
    exercise,
    factory_of,
    kernel_of,
)
from gemm_course.checks.engines.findings import not_called
from gemm_course.checks.engines.trial import Trial, try_kernel
from lockstep import Finding, Watch

# With these T a block has less than a warp, one warp, and several warps.
SIZES = (8, 32, 128)
BLOCKS = 3


@exercise(
    start="declare the tile with `cuda.shared.array(T, float32)`; `T` comes from the function around the "
    "kernel.",
    hints=(
        "Three steps: store your element of `a` into the tile, wait for all, read another thread's element.",
        "With `t = cuda.threadIdx.x` and `first = cuda.blockIdx.x * T`, the thread's element of `a` and of "
        "`out` has the index `first + t`.",
        "The element to read after `cuda.syncthreads()` is `tile[T - 1 - t]`.",
    ),
)
def reverse(make_reverse):
    """A factory of kernels (a, out), each of whose blocks reverses its T elements through shared memory."""
    make = factory_of(make_reverse, ("T",))
    kernels = {T: _kernel(call(make, T)) for T in SIZES}
    trials = {T: _try_on(kernel, T) for T, kernel in kernels.items()}
    check_begun(kernels[SIZES[0]], *(trial.report for trial in trials.values()))
    _check_shared_size(trials, kernels[SIZES[0]])
    for T, trial in trials.items():
        _check_findings(T, trial)
        _check_numbers(T, trial)
    _check_sharing(_try_on(kernels[32], 32, watch=Watch(block=(0, 0, 0))))
    for trial in trials.values():
        _check_loads(trial)
        _check_stores(trial)
    return (
        "Right for T = 8, 32 and 128, with 4·T bytes of shared memory per block: each element of `a` is read "
        "once, and a barrier lies between the store into the tile and the read by another thread."
    )


def _kernel(given):
    """Return the learner's kernel (a, out); refuse a tile's shape that is unknown when it is compiled."""
    function = getattr(given, "py_func", None)
    if function is not None:
        names = list(inspect.signature(function).parameters)
        if len(names) == 3:
            raise Refused(
                f"The kernel takes {names[2]} as an argument, and an argument is only known when the kernel "
                "is launched. The shape of a `cuda.shared.array` is fixed when it is compiled. So "
                "the kernel is `(a, out)` and takes T from the function around it."
            )
        _check_run_time_shape(given)
    return kernel_of(given, ("a", "out"))


def _try_on(kernel, T: int, **options) -> Trial:
    a = np.random.default_rng(T).standard_normal(BLOCKS * T).astype(np.float32)
    out = np.full_like(a, np.nan)
    return try_kernel(kernel, ("a", "out"), BLOCKS, T, a, out, about=f"With T = {T}", **options)


def _expected(T: int, trial: Trial) -> np.ndarray:
    return trial.before["a"].reshape(BLOCKS, T)[:, ::-1].reshape(-1)


def _first_wrong(T: int, trial: Trial) -> str:
    out, expected = trial.after["out"], _expected(T, trial)
    wrong = np.flatnonzero(out != expected)
    if not len(wrong):
        return f"{trial.about}."
    i = int(wrong[0])
    what = "was never written" if np.isnan(out[i]) else f"is {out[i]:.4g}"
    return (
        f"{trial.about}: `out[{i}]`, of thread {i % T} of block {i // T}, {what}; it should be "
        f"{expected[i]:.4g}."
    )


# ---- the shape of the tile ---------------------------------------------------------------------------------

COMPILED = "The compiler fixes the size of such an array before anything runs"
KNOWN_LATE = ("blockDim", "gridDim", "blockIdx", "threadIdx", "cuda.grid")


def _check_run_time_shape(kernel):
    """Refuse shapes that are only known when the kernel runs, each with what it is."""
    written = Written(kernel)
    for shape in _shared_shapes(written):
        text, where = shape.text, f"`cuda.shared.array({shape.text}, ...)`"
        known_late = any(word in text for word in KNOWN_LATE)
        arguments = sorted(shape.names.intersection(written.parameters))
        is_cast = isinstance(shape, Call) and shape.name.split(".")[-1].startswith(("int", "uint"))
        if is_cast and (known_late or arguments):
            raise Refused(
                f"A cast does not make it a constant: `{text}` is not known before the launch either. "
                f"{COMPILED}.",
                where,
            )
        if known_late:
            raise Refused(
                f"`{text}` is chosen by whoever launches the kernel. {COMPILED}, and the same kernel can be "
                "launched with any block. T of the function around it is a constant.",
                where,
            )
        if arguments:
            raise Refused(
                f"The shape of {' and '.join(arguments)} comes with the argument, at the launch. {COMPILED}. "
                "(And a block needs T elements, not all.)",
                where,
            )


def _shared_shapes(written: Written) -> list[Part]:
    """Return the shapes given to cuda.shared.array; names are replaced by what the kernel assigns to them."""
    assigned = {target.text: value for target, value in written.assignments}
    given = (call.argument(0, "shape") for call in written.calls("shared.array"))
    return [assigned.get(shape.text, shape) for shape in given if shape]


def _has_eight_bytes(kernel) -> bool:
    """Return whether the source gives a shared array a dtype of 8 bytes."""
    given = (call.argument(1, "dtype") for call in Written(kernel).calls("shared.array"))
    return any(dtype.text == "float" or "64" in dtype.text for dtype in given if dtype)


def _check_shared_size(trials: dict[int, Trial], kernel):
    sizes = {T: trial.report.shared_bytes // 4 for T, trial in trials.items()}
    smallest, largest = SIZES[0], SIZES[-1]
    if not any(sizes.values()):
        right = (trials[smallest].after["out"] == _expected(smallest, trials[smallest])).all()
        raise Refused(
            "The result is right, but there is no shared memory: the threads read `a` backwards by "
            "themselves. This exercise is about a tile that one thread fills and another reads."
            if right
            else "There is no shared memory yet, and the numbers are wrong as well. Begin with the tile.",
            _first_wrong(smallest, trials[smallest]),
        )
    if len(set(sizes.values())) == 1 and sizes[largest] < largest:
        raise Refused(
            f"The tile has {sizes[largest]} elements for every T: {sizes[largest]} is written out where T is "
            f"meant. For T = {largest} that is too small, for less it reaches into other blocks.",
            _first_wrong(smallest, trials[smallest]),
        )
    if all(size == 2 * T for T, size in sizes.items()) and _has_eight_bytes(kernel):
        raise Refused(
            "The tile's elements have 8 bytes each: its dtype is not that of `a`. Declare it with float32, "
            "4 bytes."
        )
    _check_width(trials[smallest])
    for T, size in sizes.items():
        if size > T:
            raise Refused(
                f"The tile is larger than needed: {4 * size:,} bytes for T = {T}, where {4 * T} are enough. "
                "Shared memory is scarce, and what one block holds another cannot have."
            )
        if size < T:
            raise Refused(
                f"The tile is too small: {size} elements for the {T} of a block.", _first_wrong(T, trials[T])
            )


def _check_width(trial: Trial) -> None:
    """Refuse elements of less than 4 bytes: half the shared memory for as many elements."""
    bits = trial.accesses("store")["bits"]
    if len(bits) and bits.max() < 32:
        raise Refused(
            f"The tile's elements have {bits.max() // 8} bytes each: its dtype is not that of `a`, and the "
            "numbers are rounded. Declare it with float32, 4 bytes.",
            f"{trial.about}.",
        )


# ---- races and numbers -------------------------------------------------------------------------------------


def _check_findings(T: int, trial: Trial):
    if race := trial.error("shared_race"):
        raise Refused(_race(T, trial, race), f"{trial.about}. {trial.line(race)}")
    for finding in trial.report.errors:
        where = f"{trial.about}. {trial.line(finding)}"
        if finding.kind == "global_race" and finding.array == trial.own_name("out"):
            if trial.lanes("store", "out") > BLOCKS * T:
                raise Refused(
                    "Here every thread stores more than one element of `out`, and several threads store the "
                    "same ones. Each thread must store one element, its own: `out[first + t]`.",
                    where,
                )
            raise Refused(
                "Every block writes the same elements of `out`: the block index is missing. Block b begins "
                "at `b * T`.",
                where,
            )
        if finding.kind == "out_of_bounds":
            said = _outside(T, trial, finding)
            raise Refused(said or finding.message, f"{finding.message} {where}" if said else where)
        if finding.kind == "barrier_divergence":
            raise _not_for_all(finding, where)
        raise Refused(finding.message, where)
    if finding := trial.advised("barrier_in_branch"):
        raise _not_for_all(finding, f"{trial.about}. {trial.line(finding)}")


def _not_for_all(finding: Finding, where: str) -> Refused:
    return Refused(f"Not all threads of the block reach the barrier: {finding.message}", where)


def _race(T: int, trial: Trial, race: Finding) -> str:
    stores_alone = trial.report.accesses.query("site == @race.site and op == 'store'")
    if len(stores_alone) and trial.lanes("load", "a") == BLOCKS * T * T:
        return (
            f"Here every thread fetches the whole tile, {T} elements, and all store to the same places. Each "
            "thread must fetch one element."
        )
    if said := not_called(trial.kernel):
        return said
    if not trial.report.barriers:
        return f"There is no barrier, so a thread may read before its partner has stored. {race.message}"
    barrier = int(trial.report.barriers_by_line["line"].min())
    if race.other_line is not None and barrier < race.other_line <= race.line:
        return f"The barrier stands before the store, where there is nothing to wait for yet. {race.message}"
    return f"The barrier does not come between the store and the read. {race.message}"


def _outside(T: int, trial: Trial, finding: Finding) -> str | None:
    """Return what an index past the end of the tile means, or None."""
    if finding.array in (trial.own_name("a"), trial.own_name("out")):
        return None
    block, thread = finding.block[0], finding.threads[0][0]
    own = block * T + thread
    if finding.element == (BLOCKS * T - 1 - own,):
        return (
            "The tile is read as if it held all of `a`: that is the mirror image in the whole array. Every "
            f"block has a tile of its own, in which thread t's mirror image is `T - 1 - t`, here {T - 1} - t."
        )
    if finding.element == (own,):
        return (
            "The tile is indexed as if it held all of `a`. Every block has a tile of its own, with the "
            f"indices 0 to {T - 1}: a thread's place in it is `cuda.threadIdx.x`."
        )
    if not block and not thread and finding.element == (T,):
        return (
            f"One too far: the mirror image of thread 0 is the last element, {T - 1}. Subtract from "
            "`T - 1`, not from `T`."
        )
    return None


def _check_numbers(T: int, trial: Trial):
    a, out = trial.before["a"], trial.after["out"]
    if (out == _expected(T, trial)).all():
        return
    where = _first_wrong(T, trial)
    if (out == a[::-1]).all():
        raise Refused(
            "This reverses the whole array: the blocks have changed places as well. Every block must keep "
            "its T elements.",
            where,
        )
    if (out == a).all():
        raise Refused(
            "`out` is the same as `a`: the order is reversed twice, when the tile is filled and when it is "
            "read.",
            where,
        )
    if (out == np.trunc(_expected(T, trial))).all():
        raise Refused(
            "The tile's elements are whole numbers, so that what stands behind the point is lost: its dtype "
            "is not that of `a`. Declare it with float32.",
            where,
        )
    if np.isnan(out).any():
        raise Refused("Some elements of `out` are never written.", where)
    raise Refused("The numbers are wrong.", where)


# ---- the lesson --------------------------------------------------------------------------------------------


def _check_sharing(watched: Trial):
    """Refuse a tile that nobody reads but the thread that wrote it: it shares nothing."""
    shared = watched.report.trace.query("space == 'shared'")
    writer = shared[shared["op"] == "store"].groupby("element")["thread"].last()
    reads = shared[shared["op"] == "load"]
    if (reads["thread"] == reads["element"].map(writer)).all():
        raise Refused(
            "The result is right, but every thread reads back only its own element of the tile: the order is "
            "reversed in global memory, and nothing is shared.",
            f"{watched.about}.",
        )
    if not watched.report.barriers:
        raise Refused(
            "There is no barrier between the store and the read by another thread.", f"{watched.about}."
        )


def _check_loads(trial: Trial):
    loads, elements = trial.lanes("load", "a"), len(trial.before["a"])
    if loads != elements:
        raise Refused(
            f"`a` is read {loads:,} times for its {elements} elements. Each element once is enough: the tile "
            "is there to be read again.",
            f"{trial.about}.",
        )
    if trial.total("requests", "load", "a") == loads:
        raise Refused(
            "The result is right, but one thread fetches the tile element by element, and the others fetch "
            "nothing. Every thread must fetch one element.",
            f"{trial.about}.",
        )


def _check_stores(trial: Trial):
    if trial.total("requests", "store", "out") == len(trial.before["a"]):
        raise Refused(
            "The result is right, but one thread stores all of the block's elements into `out`, one after "
            "the other, and the others store nothing. Every thread must store one element.",
            f"{trial.about}.",
        )
