"""Launch a kernel on the emulator: check everything, run block by block, write the results at the end."""

import types
from dataclasses import dataclass

import numpy as np

from . import names
from .errors import KernelStopped, LaunchError, UnsupportedKernel
from .findings import Findings
from .fold import Fold
from .geometry import chunks
from .limits import MAX_BLOCK, MAX_GRID, MAX_SHARED_BYTES, MAX_THREADS
from .machine import Machine
from .memory import DeviceArray, GlobalStorage
from .names import Callee, python_function
from .report import Report
from .shadow import GlobalRaces
from .trace import Watcher
from .translate import SITES, translate

STEP_LIMIT = 1_000_000
CHUNK_LANES = 1 << 15  # lanes that run together: enough for NumPy to pay off, few enough for the caches
CHUNK_ELEMENTS = 1 << 20  # elements of all local arrays in a chunk, for the same reason
PATIENCE = 110  # blocks that may differ before many are counted at a time: three periods of 32, and a few
SHORT_PATIENCE = 12  # in a grid of one row: such kernels often assign the tiles in an order of their own
MEMORY_LIMIT = 4 << 30  # bytes of copies and shadow memory the emulator may use besides the learner's arrays


def emulate(
    kernel,
    grid,
    block,
    *args,
    shared_bytes=0,
    counts_only=False,
    watch=None,
    step_limit=STEP_LIMIT,
    progress=None,
):
    """Run a ``numba.cuda`` kernel without a GPU and report every access as the hardware would count it.

    Parameters
    ----------
    kernel : a function decorated with ``cuda.jit``, or the plain function.
    grid, block : number of blocks, and of threads per block: an int or up to three (x, y, z).
    args : NumPy arrays (C-contiguous; written in place when the kernel has finished), scalars, and objects
        with an ``array`` and a method ``in_kernel`` that returns what the kernel gets: tensor maps.
    shared_bytes : dynamic shared memory of a block, in bytes.
    counts_only : count exactly without running everything; no results, no checks. Arrays may then be
        broadcast views such as ``np.broadcast_to(np.float32(0), (16384, 16384))``.
    watch : a :class:`Watch`, to record one block or warp access by access in ``report.trace``.
    step_limit : iterations that any one loop may run before the kernel is stopped.
    progress : called with (blocks done, blocks in all) after every chunk of blocks.

    Returns
    -------
    Report : counts, findings and, if requested, the trace.

    Raises
    ------
    LaunchError (geometry, arguments, memory), UnsupportedKernel (before anything runs), KernelStopped (an
    endless loop, a deadlock), KernelTypeError (what Numba would not compile), DataDependent (with
    ``counts_only``). After an error or an interruption the arrays are unchanged.
    """
    launch = Launch(kernel, grid, block, args, shared_bytes, counts_only, watch, step_limit, progress)
    with np.errstate(all="ignore"):
        return launch.run()


@dataclass
class BoundFunction:
    """Translated code with the values of its closure."""

    code: types.FunctionType
    stored: set
    local_elements: int  # of the local arrays whose shapes are constant expressions
    warp_by_warp: bool  # whether its warps may wait for each other

    kind = "device"

    def __call__(self, machine, *args):
        return self.code(machine, *args)


def bind(function, device=False, under=(), call=None) -> BoundFunction:
    """Translate a function and all it calls, and bind the code to the constants of this closure."""
    if function in under:
        raise UnsupportedKernel(
            f"{function.__name__} calls itself; the emulator does not support recursion", *call
        )
    translation = translate(function, device)
    environment = names.environment(function)
    space = {"__builtins__": {"slice": slice}}
    callees, warp_by_warp = {}, False
    for name, root, path, line in translation.bindings:
        value = environment[root]
        for part in path:
            value = names.attribute(value, part)
        if isinstance(value, Callee):
            here = (function.__code__.co_filename, line)
            value = callees[root, path] = bind(value.function, True, (*under, function), here)
        space[name] = value
        warp_by_warp |= getattr(value, "warp_by_warp", False)
    exec(translation.code, space)
    stored = set(translation.stored)
    for root, path, given, parameter in translation.passed:
        if given in callees[root, path].stored:
            stored.add(parameter)
    shapes = [eval(shape, space) for shape in translation.local_shapes]
    elements = sum(int(np.prod(shape)) for shape in shapes) + sum(c.local_elements for c in callees.values())
    return BoundFunction(space[function.__code__.co_name], stored, elements, warp_by_warp)


class Launch:
    """One launch: its geometry, its arguments, and the chunks of blocks in which it runs."""

    def __init__(self, kernel, grid, block, args, shared_bytes, counts_only, watch, step_limit, progress):
        self.function = python_function(kernel)
        self.grid, self.block = _geometry("grid", grid), _geometry("block", block)
        self.shared_bytes = _check_limits(self.grid, self.block, shared_bytes)
        self.counts_only, self.watch, self.progress = counts_only, watch, progress
        self.bound = bind(self.function)
        self.args = _check_arguments(self.function, args)
        self.findings = Findings()
        self.machine = Machine(
            self.grid,
            self.block,
            self.shared_bytes,
            counts_only=counts_only,
            step_limit=step_limit,
            findings=self.findings,
            warp_by_warp=self.bound.warp_by_warp,
        )
        self.machine.sites = SITES
        self.results = []
        if watch is not None and counts_only:
            raise LaunchError("a trace needs a full run; pass either counts_only or watch, not both")

    def run(self) -> Report:
        self.parameters = self._parameters()
        try:
            self._count() if self.counts_only else self._run_all()
        except KernelStopped as stopped:
            errors = [finding for finding in self.findings.listed() if finding.severity == "error"]
            if errors:
                raise type(stopped)(f"{stopped} Found before that: {errors[0]}") from stopped
            raise
        for original, copy in self.results:
            np.copyto(original, copy)
        return Report(self.machine, self.findings, self.function, self.watch)

    # ---- arguments ----

    def _parameters(self) -> list:
        wanted = parameter_names(self.function)
        shared_buffers, parameters = {}, []
        itself = {id(value): name for name, value in zip(wanted, self.args) if isinstance(value, np.ndarray)}
        if not self.counts_only:
            self._check_memory()
        self.machine.report_float64 = not any(
            isinstance(a, np.ndarray) and a.dtype == np.float64 for a in self.args
        )
        for position, (name, value) in enumerate(zip(wanted, self.args)):
            array = _array_of(value)
            if array is not None:
                shown = name if array is value else itself.get(id(array), name)
                seen = self._device_array(shown, array, position in self.bound.stored, shared_buffers)
                value = seen if array is value else value.in_kernel(seen)
            parameters.append(value)
        return parameters

    def _check_memory(self):
        arrays = (_array_of(a) for i, a in enumerate(self.args) if i in self.bound.stored)
        taken = sum(a.nbytes + a.size * 26 for a in arrays if a is not None)
        if taken > MEMORY_LIMIT:
            raise LaunchError(
                "the arrays this kernel writes are too large to emulate "
                f"({taken / 2**30:.1f} GiB with what the emulator records about them); "
                "use smaller arrays, or counts_only=True for exact counts of any size"
            )

    def _device_array(self, name, array, stored, buffers) -> DeviceArray:
        """The array as the kernel sees it: if it may be written, a copy until the kernel has finished."""
        if self.counts_only:
            storage = GlobalStorage(array, True)
            return DeviceArray(name, storage, array.dtype, array.shape, storage.strides)
        key = (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype)
        storage = buffers.get(key)
        if storage is None:
            storage = buffers[key] = GlobalStorage(array, False)
        if stored and storage.serial not in self.machine.global_races:
            self.results.append((storage.data, storage.data.copy()))
            storage.data = self.results[-1][1]
            self.machine.global_races[storage.serial] = GlobalRaces(storage)
        return DeviceArray(name, storage, array.dtype, array.shape, storage.strides)

    # ---- running ----

    def _chunk(self, z, y, x, rows, columns):
        machine = self.machine
        machine.start(z, y, x, rows, columns)
        watched = self.watch is not None and self.watch.inside(z, y, x, rows, columns)
        machine.tracing = watched
        machine.watcher = self.watcher if watched else None
        if machine.warp_by_warp and not self.counts_only:
            machine.run_warps(self._call)
        else:
            self._call()
        machine.end()

    def _call(self):
        """Run the translated kernel; the traceback of an error ends at the kernel's line that raised it."""
        try:
            self.bound.code(self.machine, *self.parameters)
        except Exception as error:
            error.__traceback__ = _until_kernel(error.__traceback__, self.function.__code__.co_filename)
            raise

    def _run_all(self):
        self.watcher = self.machine.last_watcher = Watcher(self.watch) if self.watch is not None else None
        rows, columns = 1, 1
        if not self.bound.warp_by_warp:
            rows, columns = _chunk_shape(self.grid, self.machine, self.bound.local_elements)
        total = self.grid[0] * self.grid[1] * self.grid[2]
        done = 0
        for z, y, x, r, c in chunks(self.grid, rows, columns):
            self._chunk(z, y, x, r, c)
            done += r * c
            if self.progress is not None:
                self.progress(done, total)

    def _count(self):
        """Fold blocks like the iterations of loops: along x within rows, along y, along z."""
        gx, gy, gz = self.grid
        self._fold_axis(gz, lambda z: self._fold_axis(gy, lambda y: self._count_row(z, y, gx)))
        self.machine.tallies.settle()

    def _count_row(self, z, y, length):
        """A row of blocks, one by one; many at a time once they turn out not to repeat."""
        patience = PATIENCE if self.grid[1] * self.grid[2] > 1 else SHORT_PATIENCE
        done = self._fold_axis(length, lambda x: self._chunk(z, y, x, 1, 1), patience)
        width = max(2 * CHUNK_LANES // (self.block[0] * self.block[1] * self.block[2]), 1)
        whole = (length - done) // width
        self._fold_axis(whole, lambda i: self._chunk(z, y, done + i * width, 1, width))
        if rest := length - done - whole * width:
            self._chunk(z, y, length - rest, 1, rest)

    def _fold_axis(self, length, run, patience=None) -> int:
        """Run positions 0..length-1; returns how many are done.

        ``patience``: how many positions in a row may pass without a repetition before it gives up.
        """
        fold, position, tried = Fold(self.machine), 0, 0
        while position < length and (patience is None or tried < patience):
            run(position)
            skip, _ = fold.end_of_iteration((position,), room=length - 1 - position)
            position += 1 + skip
            tried = 0 if skip else tried + 1
        return position


def _until_kernel(traceback, filename):
    """The part of a traceback in the kernel's file: the emulator's own frames do not help a learner."""
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    trimmed = None
    for frame in reversed(frames):
        if frame.tb_frame.f_code.co_filename == filename:
            trimmed = types.TracebackType(trimmed, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return trimmed or frames[0]


def parameter_names(function) -> tuple:
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


def _geometry(what, given) -> tuple:
    """A grid or block as three integers."""
    sizes = given if isinstance(given, (tuple, list)) else (given,)
    whole = all(isinstance(size, (int, np.integer)) and not isinstance(size, bool) for size in sizes)
    if not whole or not 1 <= len(sizes) <= 3:
        raise LaunchError(f"a {what} is one to three integers (x, y, z), not {given!r}")
    sizes = tuple(int(s) for s in sizes) + (1,) * (3 - len(sizes))
    if min(sizes) < 1:
        raise LaunchError(f"every size of a {what} must be at least 1, but {given!r} was given")
    return sizes


def _check_limits(grid, block, shared_bytes) -> int:
    threads = block[0] * block[1] * block[2]
    if threads > MAX_THREADS:
        raise LaunchError(
            f"a block has at most {MAX_THREADS:,} threads; {' x '.join(map(str, block))} is {threads:,}"
        )
    for what, unit, sizes, limits in (
        ("block", "threads", block, MAX_BLOCK),
        ("grid", "blocks", grid, MAX_GRID),
    ):
        for axis, size, limit in zip("xyz", sizes, limits):
            if size > limit:
                raise LaunchError(f"a {what} has at most {limit:,} {unit} along {axis}, not {size:,}")
    if not isinstance(shared_bytes, (int, np.integer)) or not 0 <= shared_bytes <= MAX_SHARED_BYTES:
        raise LaunchError(
            f"a block can have 0 to {MAX_SHARED_BYTES:,} bytes of dynamic shared memory, not {shared_bytes!r}"
        )
    return int(shared_bytes)


def _check_arguments(function, args) -> list:
    wanted = parameter_names(function)
    if len(args) != len(wanted):
        raise LaunchError(
            f"{function.__name__} takes {len(wanted)} argument{'s' * (len(wanted) != 1)} "
            f"({', '.join(wanted)}), not {len(args)}"
        )
    return [_check_argument(name, value) for name, value in zip(wanted, args)]


def _check_argument(name, value):
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biuf":
            raise LaunchError(
                f"{name} has dtype {value.dtype}; the emulator supports booleans, integers and floats"
            )
        if any(step < 0 or step % value.itemsize for step in value.strides):
            raise LaunchError(
                f"{name} is a view that runs backwards or not in whole elements; "
                f"pass np.ascontiguousarray({name})"
            )
        return value
    if isinstance(value, (bool, int, float, np.generic)):
        return names.as_number(value)
    if isinstance(value, tuple):
        return tuple(_check_argument(name, part) for part in value)
    if hasattr(value, "in_kernel"):
        _check_argument(name, value.array)
        return value
    raise LaunchError(f"{name} must be a NumPy array or a number, not {type(value).__name__}")


def _array_of(value) -> np.ndarray | None:
    """The array of an argument: the argument itself, or the array that a tensor map describes."""
    return value if isinstance(value, np.ndarray) else getattr(value, "array", None)


def _chunk_shape(grid, machine, local_elements) -> tuple:
    """(rows, columns) of blocks that run together: nearly square, so that blocks share what they load."""
    threads = -(-machine.block[0] * machine.block[1] * machine.block[2] // 32) * 32
    lanes = min(CHUNK_LANES, CHUNK_ELEMENTS // max(local_elements, 1))
    blocks = max(lanes // threads, 1)
    columns = min(grid[0], max(int(blocks**0.5), 1))
    rows = min(grid[1], max(blocks // columns, 1))
    return rows, min(grid[0], max(blocks // rows, 1))
