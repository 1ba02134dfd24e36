"""Exercise 03.2: blocks that reverse their elements through shared memory."""

import ast
import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemm_course.checks.core import (
    Refused,
    call,
    check_begun,
    emulate_kernel,
    function_of,
    kernel_of,
    line_at,
    parameter_names,
    source_tree,
)
from gemm_course.emulator import Report, Watch

SIZES = (8, 32, 128)  # T: less than a warp, a warp, several
BLOCKS = 3


@dataclass
class Run:
    """One launch: T threads a block, `a` of three blocks."""

    T: int
    kernel: Any
    a: np.ndarray
    out: np.ndarray
    report: Report

    @property
    def expected(self) -> np.ndarray:
        return self.a.reshape(BLOCKS, self.T)[:, ::-1].reshape(-1)

    def lanes(self, op: str, position: int) -> int:
        return self.report.total("lanes", space="global", op=op, array=parameter_names(self.kernel)[position])

    @property
    def first_wrong(self) -> str:
        wrong = np.flatnonzero(self.out != self.expected)
        if not len(wrong):
            return f"With T = {self.T}."
        i = int(wrong[0])
        what = "was never written" if np.isnan(self.out[i]) else f"is {self.out[i]:.4g}"
        return (
            f"With T = {self.T}: `out[{i}]`, of thread {i % self.T} of block {i // self.T}, {what}; it "
            f"should be {self.expected[i]:.4g}."
        )


def prove_reversal(make_reverse) -> str:
    """What was proved of the learner's factory; raises Refused with the first thing wrong."""
    make = factory_of(make_reverse)
    kernels = [_kernel(call(make, T)) for T in SIZES]
    runs = [_run(kernel, T) for kernel, T in zip(kernels, SIZES)]
    check_begun(kernels[0], *(run.report for run in runs))
    _check_shared_size(runs)
    for run in runs:
        _check_findings(run)
        _check_numbers(run)
    _check_exchange(runs[1])
    for run in runs:
        if run.lanes("load", 0) != len(run.a):
            raise Refused(
                f"`a` is read {run.lanes('load', 0):,} times for its {len(run.a)} elements. Each element "
                "once is enough: the tile is there to be read again.",
                f"With T = {run.T}.",
            )
    return (
        "Right for T = 8, 32 and 128, with 4·T bytes of shared memory a block: each element of `a` is read "
        "once, and a barrier lies between the store into the tile and the read by another thread."
    )


def factory_of(given, sizes: tuple[str, ...] = ("T",)):
    """A function that takes these sizes and returns a kernel; a kernel itself is refused."""
    if hasattr(given, "py_func"):
        raise Refused(
            f"`{given.py_func.__name__}` is the kernel itself. Hand over the function around it, which takes "
            f"{', '.join(sizes)} and returns it."
        )
    return function_of(given, sizes)


def _kernel(given):
    function = getattr(given, "py_func", None)
    if function is not None:
        names = list(inspect.signature(function).parameters)
        if len(names) == 3:
            raise Refused(
                f"The kernel takes {names[2]} as an argument, and an argument is only known when the kernel "
                "is launched. How many bytes of shared memory a block needs is fixed when it is compiled. So "
                "the kernel is `(a, out)` and takes T from the function around it."
            )
        _check_run_time_shape(given)
    return kernel_of(given, ("a", "out"))


def _run(kernel, T) -> Run:
    a = np.random.default_rng(T).standard_normal(BLOCKS * T).astype(np.float32)
    out = np.full_like(a, np.nan)
    return Run(T, kernel, a, out, emulate_kernel(kernel, BLOCKS, T, a, out))


# ---- the shape of the tile ---------------------------------------------------------------------------------

COMPILED = "The compiler fixes the bytes of shared memory a block gets before anything runs"


def _check_run_time_shape(kernel):
    """Shapes that are only known when the kernel runs, each refused with what it is."""
    tree = source_tree(kernel)
    for shape in _shared_shapes(tree):
        text, where = ast.unparse(shape), f"`cuda.shared.array({ast.unparse(shape)}, ...)`"
        known_late = any(
            word in text for word in ("blockDim", "gridDim", "blockIdx", "threadIdx", "cuda.grid")
        )
        of_arguments = {node.id for node in ast.walk(shape) if isinstance(node, ast.Name)} & {
            *parameter_names(kernel)
        }
        if not known_late and not of_arguments:
            continue
        if isinstance(shape, ast.Call) and ast.unparse(shape.func).split(".")[-1].startswith(("int", "uint")):
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
        raise Refused(
            f"The shape of {' and '.join(sorted(of_arguments))} comes with the argument, at the launch. "
            f"{COMPILED}. (And a block needs T elements, not all.)",
            where,
        )


def _shared_shapes(tree) -> list[ast.expr]:
    """The shapes given to cuda.shared.array, names replaced by what the kernel assigns to them."""
    assigned = {
        node.targets[0].id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    shapes = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("shared.array"):
            given = [*node.args[:1], *(word.value for word in node.keywords if word.arg == "shape")]
            shapes += [
                assigned.get(shape.id, shape) if isinstance(shape, ast.Name) else shape for shape in given
            ]
    return shapes


def _check_shared_size(runs):
    sizes = [run.report.shared_bytes // 4 for run in runs]
    if not any(sizes):
        raise Refused(
            "The result is right, but there is no shared memory: the threads read `a` backwards by "
            "themselves. This exercise is about a tile that one thread fills and another reads."
            if (runs[0].out == runs[0].expected).all()
            else "There is no shared memory yet, and the numbers are wrong as well. Begin with the tile.",
            runs[0].first_wrong,
        )
    if len(set(sizes)) == 1 and sizes[0] < SIZES[-1]:
        raise Refused(
            f"The tile has {sizes[0]} elements for every T: {sizes[0]} is written out where T is meant. For "
            f"T = {SIZES[-1]} that is too small, for less it reaches into other blocks.",
            runs[0].first_wrong,
        )
    for run, size in zip(runs, sizes):
        if size > run.T:
            raise Refused(
                f"The tile is larger than needed: {4 * size:,} bytes for T = {run.T}, where {4 * run.T} are "
                "enough. Shared memory is scarce, and what one block holds another cannot have."
            )
        if size < run.T:
            raise Refused(
                f"The tile is too small: {size} elements for the {run.T} of a block.", run.first_wrong
            )


# ---- races and numbers -------------------------------------------------------------------------------------


def _check_findings(run: Run):
    races = [finding for finding in run.report.errors if finding.kind == "shared_race"]
    if races:
        raise Refused(_race(run, races[0]), f"With T = {run.T}. {line_at(run.kernel, races[0].line)}")
    for finding in run.report.errors:
        where = f"With T = {run.T}. {line_at(run.kernel, finding.line)}"
        if finding.kind == "global_race" and finding.array == parameter_names(run.kernel)[1]:
            raise Refused(
                "Every block writes the same elements of `out`: the block index is missing. Block b begins "
                "at `b * T`.",
                where,
            )
        if finding.kind == "out_of_bounds" and finding.element == (run.T,) and finding.threads[0][0] == 0:
            raise Refused(
                f"One too far: the mirror image of thread 0 is the last element, {run.T - 1}. It is `T - 1 - "
                "t`, not `T - t`.",
                f"{finding.message} {where}",
            )
        if finding.kind == "barrier_divergence":
            raise Refused(f"Not all threads of the block reach the barrier: {finding.message}", where)
        raise Refused(finding.message, where)


def _race(run: Run, race) -> str:
    stores_alone = run.report.accesses.query("site == @race.site and op == 'store'")
    if len(stores_alone) and run.lanes("load", 0) == BLOCKS * run.T * run.T:
        return (
            f"Here every thread fetches the whole tile, {run.T} elements, and all store to the same places. "
            "Each thread is to fetch one element."
        )
    if not run.report.barriers:
        return f"There is no barrier, so a thread may read before its partner has stored. {race.message}"
    barrier = int(run.report.barriers_by_line["line"].min())
    if race.other_line is not None and barrier < race.other_line <= race.line:
        return f"The barrier stands before the store, where there is nothing to wait for yet. {race.message}"
    return f"The barrier does not come between the store and the read. {race.message}"


def _check_numbers(run: Run):
    if (run.out == run.expected).all():
        return
    if (run.out == run.a[::-1]).all():
        raise Refused(
            "This reverses the whole array: the blocks have changed places as well. Every block is to keep "
            "its T elements.",
            run.first_wrong,
        )
    if (run.out == run.a).all():
        raise Refused(
            "`out` is the same as `a`: the order is turned round twice, when the tile is filled and when it "
            "is read.",
            run.first_wrong,
        )
    if np.isnan(run.out).any():
        raise Refused("Some elements of `out` are never written.", run.first_wrong)
    raise Refused("The numbers are wrong.", run.first_wrong)


def _check_exchange(run: Run):
    """A tile that nobody reads but the thread who wrote it shares nothing."""
    a, out = run.a.copy(), run.out.copy()
    trace = emulate_kernel(run.kernel, BLOCKS, run.T, a, out, watch=Watch(block=(0, 0, 0))).trace
    shared = trace[trace["space"] == "shared"]
    writer = shared[shared["op"] == "store"].groupby("element")["thread"].last()
    reads = shared[shared["op"] == "load"]
    if (reads["thread"] == reads["element"].map(writer)).all():
        raise Refused(
            "The result is right, but every thread reads back only its own element of the tile: the turning "
            "round happens in global memory, and nothing is shared.",
            f"With T = {run.T}.",
        )
    if not run.report.barriers:
        raise Refused(
            "There is no barrier between the store and the read by another thread.", f"With T = {run.T}."
        )
