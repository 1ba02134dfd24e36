"""Runs a stage of the ladder, or a learner's own kernel, on the GPU or the emulator: `run` and `launch`.

    run("block_tiled", A, B).C
    run(LADDER["thread_tiled_1d"], A, B, tiles={"BK": 16})
    run(my_kernel[grid, block], A, B, C, alpha=2.0, beta=0.5, report=True).report
    launch(vector_add[grid, block], x, y, out).arrays["out"]

Inputs are copied, so no kernel can change them, even if it is interrupted.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from gemm_course.device import NoGpu, gpu_available, require_gpu, why_too_old
from gemm_course.device.buffers import leading_dimension, padded
from gemm_course.kernels import LADDER, IllegalTiles, KernelLaunch, Stage
from lockstep.intrinsics import TensorMap
from lockstep.limits import MAX_GRID

BACKENDS = ("auto", "gpu", "emulator")
# The rows of a learner's kernel begin at multiples of this many bytes, as in document 004.
OWN_KERNEL_ALIGNMENT = 64
GEMM_PARAMETERS = 8
PLACE_OF_C = 7
MOST_BLOCKS_ALONG_Y = MAX_GRID[1]
# For the ladder's slower kernels, the emulator does this many multiply-adds a second on two cores.
EMULATED_FMAS_A_SECOND = 4e8
LONG_SECONDS = 5
# A launch that takes fewer milliseconds than this is timed again, several times.
QUICK_MS = 100


class Misasked(ValueError):
    """The error for wrong arguments of `run` or `launch`, with one sentence per line."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows, which is the sentences alone, because no line of the course is wrong."""
        return str(self).splitlines()


@dataclass(frozen=True)
class Launch:
    """The result of a launch: the arrays by parameter name, and on a GPU the time of one launch."""

    arrays: Mapping[str, np.ndarray] = field(repr=False)
    backend: str
    milliseconds: float | None
    report: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Result:
    """The result of `run`: C, which is (m, n) and has A's dtype, and how C was computed.

    ``leading_dimensions`` are the elements from row to row of A, B and C in the kernel. ``milliseconds`` is
    the time of one launch on a GPU, by CUDA events, or else None. ``report`` is the emulator's, if it ran. If
    C takes several launches, ``milliseconds`` is their sum. C takes several if it has more tiles in one
    direction than a grid can have blocks. Then grid, block, leading dimensions and report are those of the
    first launch. C also takes several if the stage consists of several kernels. Then grid and report are
    those of the last launch.
    """

    C: np.ndarray = field(repr=False)
    backend: str
    m: int
    n: int
    k: int
    grid: tuple[int, ...]
    block: tuple[int, ...]
    leading_dimensions: Mapping[str, int]
    milliseconds: float | None = None
    report: Any = field(default=None, repr=False)

    @property
    def tflops(self) -> float | None:
        """The TFLOPS of 2 m n k operations in the measured time, or None without a GPU."""
        return 2e-9 * self.m * self.n * self.k / self.milliseconds if self.milliseconds else None


def run(
    stage_or_kernel: Stage | str | Any,
    A: np.ndarray,
    B: np.ndarray,
    C: np.ndarray | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    tiles: Mapping[str, int] | None = None,
    backend: str = "auto",
    report: bool = False,
    extras: Mapping[str, np.ndarray] | None = None,
) -> Result:
    """Compute alpha * A @ B + beta * C with a kernel, and return the result and how it was computed.

    ``stage_or_kernel`` is a stage, its name, or a kernel that takes (m, n, k, alpha, A, B, beta, C),
    configured as `my_kernel[grid, block]`. ``A`` is (m, k), ``B`` is (k, n) and ``C`` is (m, n), with any
    strides, all of the stage's dtype. Your own kernel may take float32 or float16. ``tiles`` are sizes to
    change from the stage's defaults. ``backend`` is "gpu", "emulator", or "auto" for the GPU if there is one
    that can run it. If the GPU is too old, a message says so. With ``report``, emulate as well if it runs on
    a GPU. Large problems are then only counted, not checked. ``extras`` are the arguments of your own stage
    after C, by name, such as {"bias": bias}.

    The kernel gets copies whose rows are as long as the stage needs (multiples of 64 bytes for a configured
    kernel). The padding holds NaN, and so does C if none is given.

    Raise ValueError with everything that is wrong (IllegalTiles if only tiles are), and NoGpu if there is no
    GPU to use.
    """
    stage = _stage_of(stage_or_kernel)
    dtype = _dtype_of(stage, A)
    problems = _input_problems(A, B, C, dtype, alpha, beta, backend)
    if stage is None:
        problems += _kernel_problems(stage_or_kernel, tiles)
        alignment = OWN_KERNEL_ALIGNMENT
    else:
        problems += _tile_problems(stage, tiles, alone=not problems)
        problems += _extra_problems(stage, extras or {}, A, B)
        alignment = stage.alignment
    if problems:
        raise Misasked("\n".join(problems))

    m, k, n = *A.shape, B.shape[1]
    if stage is not None:
        tiles = stage.tiles_for(m, n, k, tiles)
    most = _reach(stage, tiles, m, n)
    if most != (m, n) and not extras:
        return _in_parts(
            most, stage, A, B, C, alpha=alpha, beta=beta, tiles=tiles, backend=backend, report=report
        )
    of_k, of_n = (leading_dimension(columns, alignment, dtype.itemsize) for columns in (k, n))
    after_c = [np.array(extras[name]) for name in stage.extras] if extras else []
    leading = {"A": of_k, "B": of_n, "C": of_n}
    old = np.full((m, n), np.nan, dtype) if C is None else C

    def arguments() -> list:
        a, b, c = (padded(matrix, leading[name]) for name, matrix in zip("ABC", (A, B, old), strict=True))
        return [m, n, k, np.float32(alpha), a, b, np.float32(beta), c, *after_c]

    def launches(standard: Sequence) -> Sequence[KernelLaunch]:
        if stage is None:
            return (_from_numba(stage_or_kernel, standard),)
        return stage.launches(*standard, tiles=tiles)

    chosen = _choose(backend, stage)
    grid, block = _geometry(stage, stage_or_kernel, tiles, m, n)
    about = (chosen, m, n, k, grid, block, leading)
    if 0 in grid:
        return Result(np.empty((m, n), dtype), *about)
    done = _launch(launches, arguments, chosen, report, work=m * n * k)
    return Result(
        np.ascontiguousarray(done.arrays[PLACE_OF_C][:, :n]), *about, done.milliseconds, done.report
    )


def launch(configured, *args: Any, backend: str = "auto", report: bool = False) -> Launch:
    """Launch any configured kernel, `vector_add[grid, block]`, on NumPy arrays and numbers.

    The arrays are copied. `.arrays` holds the copies after the launch, by the names of the kernel's
    parameters. Raise ValueError for a kernel that is not configured or takes other arguments, and for an
    unknown backend. Raise NoGpu if there is no GPU to use.
    """
    problems = _backend_problems(backend) + _configuration_problems(configured)
    if not problems:
        names = _parameters(configured.dispatcher)
        if len(names) != len(args):
            problems.append(
                f"the kernel takes {len(names)} arguments ({', '.join(names)}); {len(args)} were given"
            )
    if problems:
        raise Misasked("\n".join(problems))
    chosen = _choose(backend, None)
    work = int(np.prod(configured.griddim) * np.prod(configured.blockdim))
    done = _launch(lambda own: (_from_numba(configured, own),), lambda: _copied(args), chosen, report, work)
    arrays = {name: array for name, array in zip(names, done.arrays, strict=True) if array is not None}
    return Launch(arrays, chosen, done.milliseconds, done.report)


# --- what is wrong with the question ------------------------------------------------------------------------


def _dtype_of(stage: Stage | None, A) -> np.dtype:
    """Return the dtype that A, B and C must have: the stage's, or for a learner's kernel that of A."""
    if stage is not None:
        return np.dtype(stage.dtype)
    given = getattr(A, "dtype", None)
    return np.dtype(np.float16 if given == np.float16 else np.float32)


def _input_problems(A, B, C, dtype, alpha, beta, backend) -> list[str]:
    problems = _backend_problems(backend)
    given = {"A": A, "B": B} if C is None else {"A": A, "B": B, "C": C}
    for name, matrix in given.items():
        problems += _matrix_problems(name, matrix, dtype)
    for name, factor in (("alpha", alpha), ("beta", beta)):
        if isinstance(factor, (bool, str)) or not np.isscalar(factor) or isinstance(factor, complex):
            problems.append(f"{name} must be a number, not {factor!r}")
    if not problems:
        problems += _shape_problems(A, B, C)
        if C is None and beta != 0:
            problems.append(
                f"beta is {beta:g}, so C is read: give one of {A.shape[0]} by {B.shape[1]}, or beta=0"
            )
    return problems


def _backend_problems(backend) -> list[str]:
    return [] if backend in BACKENDS else [f'backend must be "auto", "gpu" or "emulator", not {backend!r}']


def _matrix_problems(name: str, matrix, dtype: np.dtype) -> list[str]:
    if not isinstance(matrix, np.ndarray):
        return [f"{name} must be a NumPy array, not {type(matrix).__name__}: np.asarray({name}, np.{dtype})"]
    problems = []
    if matrix.ndim != 2:
        problems.append(f"{name} must have two dimensions; it has {matrix.ndim}, its shape is {matrix.shape}")
    if matrix.dtype != dtype:
        problems.append(f"{name} must be {dtype}, not {matrix.dtype}: {name}.astype(np.{dtype})")
    return problems


def _shape_problems(A, B, C) -> list[str]:
    problems = []
    if A.shape[1] != B.shape[0]:
        hint = ""
        if A.shape[1] == B.shape[1]:
            hint = "; B.T would fit"
        elif A.shape[0] == B.shape[0]:
            hint = "; A.T would fit"
        problems.append(f"B must have as many rows as A has columns: A is {_by(A)}, B is {_by(B)}{hint}")
    if C is not None and C.shape != (A.shape[0], B.shape[1]):
        problems.append(
            f"C must be {A.shape[0]} by {B.shape[1]}, as A is {_by(A)} and B {_by(B)}; it is {_by(C)}"
        )
    return problems


def _by(matrix: np.ndarray) -> str:
    return " by ".join(str(size) for size in matrix.shape)


def _tile_problems(stage: Stage, tiles, alone: bool) -> list[str]:
    broken = stage.rules(tiles)
    if broken and alone:
        raise IllegalTiles(stage, stage.complete(tiles), broken)
    return [f"{stage.name}: {rule}" for rule in broken]


def _kernel_problems(configured, tiles) -> list[str]:
    problems = _configuration_problems(configured)
    if not problems:
        names = _parameters(configured.dispatcher)
        if len(names) != GEMM_PARAMETERS:
            problems.append(
                f"the kernel must take (m, n, k, alpha, A, B, beta, C); it takes ({', '.join(names)}). "
                "Use launch() for kernels that are no matrix multiplication"
            )
    if tiles is not None:
        problems.append("tiles belong to a stage of the ladder; your own kernel has its sizes built in")
    return problems


def _extra_problems(stage: Stage, extras: Mapping[str, Any], A, B) -> list[str]:
    if set(extras) != set(stage.extras):
        takes = ", ".join(f"{name} ({' by '.join(shape)} elements)" for name, shape in stage.extras.items())
        given = ", ".join(extras) or "none"
        return [f"{stage.name} takes {takes or 'nothing'} in extras, beside A, B and C; given: {given}"]
    sizes, problems = {"m": np.shape(A)[0], "n": np.shape(B)[-1]}, []
    for name, shape in stage.extras.items():
        wanted, array = tuple(sizes[letter] for letter in shape), extras[name]
        if getattr(array, "shape", None) != wanted or array.dtype != stage.dtype:
            found = getattr(array, "shape", None), getattr(array, "dtype", type(array).__name__)
            problems.append(f"{name} must be {wanted} of {stage.dtype}, not {found[0]} of {found[1]}")
    return problems


def _configuration_problems(configured) -> list[str]:
    if all(hasattr(configured, name) for name in ("dispatcher", "griddim", "blockdim", "sharedmem")):
        return []
    if hasattr(configured, "py_func"):
        return [
            "say how many blocks and threads to launch: run(my_kernel[grid, block], A, B), where grid and "
            "block are numbers or pairs (x, y)"
        ]
    return [
        f"a stage of the ladder or a configured kernel, my_kernel[grid, block], is needed, not {configured!r}"
    ]


# --- what to launch -----------------------------------------------------------------------------------------


def _stage_of(stage_or_kernel) -> Stage | None:
    if isinstance(stage_or_kernel, str):
        if stage_or_kernel not in LADDER:
            known = ", ".join(stage.name for stage in LADDER)
            raise Misasked(f"no stage is called {stage_or_kernel!r}; the ladder is {known}")
        return LADDER[stage_or_kernel]
    return stage_or_kernel if isinstance(stage_or_kernel, Stage) else None


def _geometry(stage: Stage | None, kernel, tiles, m: int, n: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return grid and block of the stage's own kernel, or of a configured one."""
    if stage is None:
        return _sizes(kernel.griddim), _sizes(kernel.blockdim)
    return stage.grid(m, n, tiles), stage.block(tiles)


def _from_numba(configured, arguments: Sequence) -> KernelLaunch:
    grid, block = _sizes(configured.griddim), _sizes(configured.blockdim)
    return KernelLaunch(configured.dispatcher, grid, block, int(configured.sharedmem), tuple(arguments))


def _sizes(given) -> tuple[int, ...]:
    return tuple(int(size) for size in given)


def _reach(stage: Stage | None, tiles, m: int, n: int) -> tuple[int, int]:
    """Return how many rows and columns of C one launch can cover: all, unless the grid would be too tall."""
    if stage is None:
        return m, n
    t = SimpleNamespace(**stage.complete(tiles))
    if _blocks_along_y(stage, m, n, t) <= MOST_BLOCKS_ALONG_Y:
        return m, n
    if _blocks_along_y(stage, 1, n, t) == 1:
        return MOST_BLOCKS_ALONG_Y * t.BM, n
    return m, MOST_BLOCKS_ALONG_Y * t.BN


def _blocks_along_y(stage: Stage, m: int, n: int, t: SimpleNamespace) -> int:
    return (*stage.blocks(m, n, t), 1)[1]


def _in_parts(most: tuple[int, int], stage: Stage, A, B, C, **options) -> Result:
    """Run a stage on one part of C after another, each of at most ``most`` = (rows, columns)."""
    m, n = A.shape[0], B.shape[1]
    rows, columns = ([slice(i, i + step) for i in range(0, size, step)] for size, step in zip((m, n), most))
    whole, done = np.empty((m, n), A.dtype), []
    for i, j in itertools.product(rows, columns):
        done.append(run(stage, A[i], B[:, j], None if C is None else C[i, j], **options))
        whole[i, j] = done[-1].C
    times = [part.milliseconds for part in done]
    return replace(done[0], C=whole, m=m, n=n, milliseconds=None if None in times else sum(times))


def _parameters(dispatcher) -> list[str]:
    return list(inspect.signature(dispatcher.py_func).parameters)


def _copied(args: Sequence) -> list:
    """Return the arguments with arrays copied, and with each tensor map on the copy of its matrix."""
    copies = {id(arg): arg.copy() for arg in args if isinstance(arg, np.ndarray)}

    def copied(arg):
        if isinstance(arg, TensorMap):
            return replace(arg, array=copies.setdefault(id(arg.array), arg.array.copy()))
        return copies.get(id(arg), arg)

    return [copied(arg) for arg in args]


def _choose(backend: str, stage: Stage | None) -> str:
    """Return "gpu" or "emulator". Raise NoGpu if the GPU was asked for and cannot run this."""
    if backend == "emulator":
        return "emulator"
    if backend == "gpu":
        require_gpu()
        reason = _why_not_here(stage)
        if reason:
            raise NoGpu(f"{reason}.")
        return "gpu"
    if not gpu_available():
        return "emulator"
    reason = _why_not_here(stage)
    if reason:
        print(f"{reason}: this runs on the emulator.", flush=True)
    return "emulator" if reason else "gpu"


def _why_not_here(stage: Stage | None) -> str | None:
    """Return why this GPU cannot run the stage, or None if it can."""
    return why_too_old(stage.name, stage.compute_capability) if stage is not None else None


# --- launching it -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Done:
    """The result of launches. ``arrays`` has a place for every argument, with None for numbers."""

    arrays: Sequence[np.ndarray | None]
    milliseconds: float | None
    report: Any


# Such a function makes launches from arguments, which lie here or on the GPU.
Launches = Callable[[Sequence], Sequence[KernelLaunch]]


def _launch(
    launches: Launches, arguments: Callable[[], list], backend: str, report: bool, work: int
) -> _Done:
    args = arguments()
    if backend == "emulator":
        found = _emulated(launches(args), work)
        return _Done(_arrays_of(args), None, found)
    milliseconds = _on_gpu(launches, args)
    found = _emulated(launches(arguments()), work, brief=True) if report else None
    return _Done(_arrays_of(args), milliseconds, found)


def _arrays_of(args: Sequence) -> list[np.ndarray | None]:
    return [arg if isinstance(arg, np.ndarray) else None for arg in args]


def _on_gpu(launches: Launches, args: list) -> float:
    """Launch on device copies of the arguments, and copy the arrays back.

    Return the milliseconds of all launches.
    """
    from numba import cuda

    from gemm_course.device import compile_for, on_device, time_launch
    from gemm_course.device import launch as launch_on_gpu

    device_args = on_device(args)
    ready = launches(device_args)
    for each in ready:
        compile_for(each.kernel, each.arguments)

    def go():
        for each in ready:
            launch_on_gpu(each.kernel, each.grid, each.block, each.arguments, each.shared_bytes)

    before, after = cuda.event(), cuda.event()
    before.record()
    go()
    after.record()
    after.synchronize()
    for arg, copy in zip(args, device_args, strict=True):
        if isinstance(arg, np.ndarray):
            copy.copy_to_host(arg)
    first = before.elapsed_time(after)
    return first if first > QUICK_MS else time_launch(go, budget_ms=50, most=10).median_ms


def _emulated(launches: Sequence[KernelLaunch], work: int, brief: bool = False):
    """Emulate the launches, which write into the arrays. Return the report of the last one.

    With ``brief``, only count if emulating would take long, and return None if counting alone is not
    possible.
    """
    from lockstep import DataDependent, emulate

    def each(**options):
        for one in launches:
            report = emulate(
                one.kernel, one.grid, one.block, *one.arguments, shared_bytes=one.shared_bytes, **options
            )
        return report

    seconds = work / EMULATED_FMAS_A_SECOND
    if seconds <= LONG_SECONDS:
        return each()
    if brief:
        try:
            return each(counts_only=True)
        except DataDependent as reason:
            print(f"There is no report: {reason}. Smaller matrices have one.", flush=True)
            return None
    print(
        f"The emulator will need about {_duration(seconds)} for this; a smaller problem shows the same. "
        "Interrupt it as you like: nothing of yours is changed.",
        flush=True,
    )
    from gemm_course.progress_bar import progress_bar

    with progress_bar("emulating", "blocks") as show:
        return each(progress=show)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.0f} hours"
