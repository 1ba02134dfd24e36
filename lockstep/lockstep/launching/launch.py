"""Launches a kernel: checks everything, runs it chunk by chunk of blocks, writes the results at the end."""

import enum
import inspect
import math
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from lockstep.counts.fold import Fold
from lockstep.counts.lower_bound import LowerBound
from lockstep.counts.trace import Watch, Watcher
from lockstep.errors import (
    ArgumentError,
    EmulatorError,
    KernelStopped,
    KernelTypeError,
    LaunchError,
    LimitExceeded,
    UnsupportedKernel,
)
from lockstep.frozen import has_constants, original
from lockstep.library import signatures
from lockstep.limits import CONSTANT_BYTES, MAX_BLOCK, MAX_GRID, MAX_THREADS, profile
from lockstep.machine.declarations import whole_shape
from lockstep.machine.language import same_tuple
from lockstep.machine.machine import Machine
from lockstep.machine.times import as_value
from lockstep.memory.records import Records, array_of_record, leaves_of
from lockstep.memory.storage import Constant
from lockstep.reading import compiled, inside, names
from lockstep.reading.liveness import surely_needed
from lockstep.reading.names import Callee, python_function
from lockstep.reading.source import Source
from lockstep.registry import Emulation, name_of
from lockstep.types.inference import Typed, kind_of, steps_of
from lockstep.types.recursion import Call, Outside, refuse_other_literals
from lockstep.types.translation import translate
from lockstep.values.geometry import chunks
from lockstep.waiting.scheduler import CHUNKS, Block, NeedsFinerUnits, Scheduler

from .arguments import Arguments
from .faults import OwnFaults, lines_of_kernels
from .program_findings import FindingsOfProgram, in_library, uncalled_barriers
from .report import Report
from .silence import Silencing, allowed_in, allowed_kinds

STEP_LIMIT = 1_000_000
LOOP_SECONDS = 7.0
# With CHUNK_LANES lanes together, NumPy pays off, and the values still fit into the caches.
CHUNK_LANES = 1 << 15
# Fewer lanes run together where the emulator keeps every access.
FOLLOWED_LANES = 1 << 11
# The local arrays of a chunk have at most CHUNK_ELEMENTS elements, so that they fit into the caches.
CHUNK_ELEMENTS = 1 << 20
# After PATIENCE blocks without a repetition (three periods of 32, and a few), many are counted at once.
PATIENCE = 110
# Kernels whose grid has one row often order the tiles themselves, so their patience is shorter.
SHORT_PATIENCE = 12
# Calls of one function are at most MAX_RECURSION deep. A GPU's stack holds fewer.
MAX_RECURSION = 200
_FLOAT64 = (np.dtype(np.float64), np.dtype(np.complex128))
# The emulator may use MEMORY_LIMIT bytes for copies of arrays and for shadow memory.
MEMORY_LIMIT = 4 << 30
# Even a kernel of one line takes a minute for MOST_THREADS threads.
MOST_THREADS = 1 << 31


def emulate(
    kernel,
    grid,
    block,
    *args,
    shared_bytes=0,
    counts_only=False,
    watch=None,
    step_limit=STEP_LIMIT,
    loop_seconds=LOOP_SECONDS,
    progress=None,
    gpu=None,
    allow=(),
    as_compiled=False,
    strict=False,
    debug=None,
):
    """Run a ``numba.cuda`` kernel without a GPU and report every access as the hardware would count it.

    Parameters
    ----------
    kernel : a function decorated with ``cuda.jit``, or the plain function.
    grid, block : number of blocks, and of threads per block: an int or up to three (x, y, z).
    args : NumPy arrays of any strides, numbers, tuples of them, and tensor maps: objects with an ``array``
        and a method ``in_kernel`` that returns what the kernel gets. The arrays are written in place when the
        kernel has finished. Arrays that overlap share their memory, as device arrays do.
    shared_bytes : dynamic shared memory of a block, in bytes.
    counts_only : count exactly without running everything. There are no results and no checks. Arrays may
        then be broadcast views such as ``np.broadcast_to(np.float32(0), (16384, 16384))``.
    watch : a :class:`Watch`, to record one block or warp access by access in ``report.trace``.
    step_limit : iterations that any one loop may run before the kernel is stopped.
    loop_seconds : how many seconds of the processor a ``while`` loop without a counter may run before the
        kernel is stopped, if no thread leaves it.
    progress : called with (blocks done, blocks in all) after every chunk of blocks.
    gpu : the GPU whose limits hold: "h200" (the default), "ada", "8.6"; see :func:`.limits.profile`.
    as_compiled : also find how little compiled code may access, for ``report.as_compiled`` and
        ``report.at_least``. It takes up to some twenty times as long. See :mod:`lockstep.counts.lower_bound`.
    allow : kinds of findings to silence, such as "global_race". ``# emulator: allow global_race`` at the end
        of a line of the kernel silences them there. ``report.silenced`` has the silenced findings.
    strict : report threads that store equal values to one element as a race, not only as advice.
    debug : a division by zero stops the kernel, as Numba compiles kernels with ``debug=True``. Without this
        argument, the kernel's own ``debug`` option holds.

    Returns
    -------
    Report : counts, findings and, if requested, the trace.

    Raises
    ------
    LaunchError (geometry, arguments, memory), UnsupportedKernel (before anything runs), KernelStopped (an
    endless loop, a deadlock), KernelTypeError (what Numba would not compile), DataDependent (with
    ``counts_only``), EmulatorFault (an error of the emulator's own). After an error or an interruption the
    arrays are unchanged.
    """
    function = python_function(kernel)
    dispatcher = getattr(kernel, "dispatcher", kernel)
    declared = signatures.declared(kernel)
    if dispatcher is not function:
        function = compiled.function_of(dispatcher, compiled.key_of(args), bool(declared))
    with OwnFaults(function) as faults, np.errstate(all="ignore"):
        told = partial(faults.theirs, progress) if progress is not None else None
        if debug is None:
            debug = bool(getattr(dispatcher, "targetoptions", {}).get("debug"))
        options = Options(
            shared_bytes=shared_bytes,
            counts_only=counts_only,
            watch=watch,
            step_limit=step_limit,
            loop_seconds=loop_seconds,
            progress=told,
            gpu=gpu,
            allow=allow,
            as_compiled=as_compiled,
            strict=strict,
            debug=debug,
        )
        launch = Launch(function, declared, grid, block, args, options)
        try:
            report = launch.run()
        except (KernelStopped, KeyboardInterrupt) as stopped:
            stopped.findings = launch.found_so_far()
            raise
    for callee in launch.bound.callees:
        compiled.keep(callee.dispatcher, callee.called_with)
    if dispatcher is not function and not declared:
        compiled.keep(dispatcher, {compiled.key_of(args)})
    return report


class Options(NamedTuple):
    """The options of a launch. :func:`emulate` describes each of them."""

    shared_bytes: int
    counts_only: bool
    watch: Watch | None
    step_limit: int
    loop_seconds: float
    progress: Callable | None
    gpu: str | None
    allow: tuple
    as_compiled: bool
    strict: bool
    debug: bool


class Way(NamedTuple):
    """A way to run a launch."""

    # `units` says which units run in turns. It is None if everything runs in lock-step.
    units: str | None = None
    # `exact` names the memories ("shared", "global") that are examined access by access.
    exact: frozenset = frozenset()
    # `examined` has the shared arrays that are examined access by access, by their families.
    examined: frozenset = frozenset()


@dataclass
class BoundFunction:
    """A function's translated code with the values of its closure."""

    signature: inspect.Signature
    # `defaults` maps a parameter to its default value.
    defaults: dict
    # `sites` maps numbers to the Sites of the function and of all that it calls.
    sites: dict
    source: Source
    # `allowed` has the comments that silence findings, also those in the functions that it calls.
    allowed: list
    typed: Typed | None = None
    stored: set = field(default_factory=set)
    # Numba needs literals for the parameters at these positions.
    literal: set = field(default_factory=set)
    # `local_elements` counts the elements of the local arrays whose shapes are constant expressions.
    local_elements: int = 0
    # `warp_by_warp` tells whether the function's warps may wait for each other.
    warp_by_warp: bool = False
    # `meets_grid` tells whether all blocks may wait for each other.
    meets_grid: bool = False
    # For each instruction that not every GPU has: (compute capability, what needs it, file, line).
    needs: list = field(default_factory=list)
    # `casts` casts arguments and results by the signatures that the function was given.
    casts: signatures.Casts | None = None
    # `callees` has all functions that the function calls, and what those call.
    callees: list = field(default_factory=list)
    # Only a device function whose constants depend on its argument types has a dispatcher here.
    dispatcher: object = None
    # `called_with` has the combinations of argument types that calls had.
    called_with: set = field(default_factory=set)
    # `earlier` maps argument types to the function with its earlier constants.
    earlier: dict = field(default_factory=dict)
    # For each place that reads a constant array: (file, line, column, array) -> the array's bytes.
    constants: dict = field(default_factory=dict)
    # `uncalled` has sentences about barriers that the function names and does not call.
    uncalled: list = field(default_factory=list)
    # `of_library` tells whether the function belongs to a library, and the kernel does not.
    of_library: bool = False
    recursive: bool = False
    # `calls` has the calls by which functions that call themselves are reached.
    calls: list = field(default_factory=list)

    kind = "device"

    def __post_init__(self):
        plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = self.signature.parameters.values()
        self.count = len(parameters) if all(p.kind in plain for p in parameters) else None

    @property
    def record_kind(self) -> tuple:
        """The key that a function's types depend on if this function is one of its arguments."""
        return type(self), self.typed.function

    def __call__(self, machine, /, *args, **keywords):
        if keywords or len(args) != self.count:
            args = self.arguments(args, keywords)
        if self.recursive and machine.only_types:
            self.typed.check_call(args)
        if self.casts is not None:
            args, returned = self.casts.arguments(machine, args)
            result = self._run_placed(machine, args)
            if machine.waits(result):
                return self._cast_when_it_ends(machine, returned, result)
            return self.casts.result(machine, returned, result)
        return self._run_placed(machine, args)

    def _cast_when_it_ends(self, machine, returned, steps):
        return self.casts.result(machine, returned, (yield from steps))

    def require(self, gpu):
        """Refuse a kernel with an instruction that a GPU does not have."""
        for needed, name, *place in self.needs:
            if gpu.compute_capability < needed:
                has, wanted = (".".join(map(str, one)) for one in (gpu.compute_capability, needed))
                raise UnsupportedKernel(
                    f"{name} needs a GPU of compute capability {wanted}, and an {gpu.name} has {has}", *place
                )

    def _run_placed(self, machine, args):
        """Run the function. What a library's function does is placed at the program's call of it."""
        unit = machine.unit
        if not self.of_library or machine.only_types or unit.library_call is not None:
            return self._run(machine, args)
        return _within(_library_call(unit), machine, partial(self._run, machine, args))

    def _run(self, machine, args):
        if self.dispatcher is not None:
            key = _types_of(args)
            self.called_with.add(key)
            if key in self.earlier:
                return self.earlier[key]._run(machine, args)
        if machine.only_types:
            return self.typed.result(machine, args)
        code = self.typed.code_for(machine, args)
        if machine.scheduler is not None:
            code = self.typed.suspendable(code)
        if self.recursive:
            return _within(self._one_deeper(machine.unit), machine, partial(code, machine, *args))
        return code(machine, *args)

    def arguments(self, args: tuple, keywords: dict) -> tuple:
        """Return one argument per parameter, with ``*args`` as a tuple.

        Raises KernelTypeError if the arguments do not fit the parameters.
        """
        try:
            given = self.signature.bind(*args, **keywords).arguments
        except TypeError as wrong:
            name = self.typed.function.__name__
            raise KernelTypeError(f"{name}{self.signature} is called with other arguments: {wrong}") from None
        return tuple(given[n] if n in given else self.defaults.get(n, ()) for n in self.signature.parameters)

    @contextmanager
    def _one_deeper(self, unit):
        function = self.typed.function
        if unit.depths[function] == MAX_RECURSION:
            raise KernelStopped(
                f"{function.__name__} calls itself more than {MAX_RECURSION} times deep; does every thread "
                "reach a call that returns without another?"
            )
        # The emulator's own frames in one call need room as well. Other units may be as deep.
        sys.setrecursionlimit(sys.getrecursionlimit() + 20)
        unit.depths[function] += 1
        try:
            yield
        finally:
            unit.depths[function] -= 1
            sys.setrecursionlimit(sys.getrecursionlimit() - 20)


def _within(context, machine, call):
    """Make a call within a context. Where units wait for each other, return a generator that does."""
    if machine.scheduler is not None:
        return _steps_within(context, call)
    with context:
        return call()


def _steps_within(context, call):
    with context:
        return (yield from call())


@contextmanager
def _library_call(unit):
    unit.library_call = unit.site
    try:
        yield
    finally:
        unit.library_call = None


def bind(function, counts_only=False, device=False, under=(), call=None) -> BoundFunction:
    """Translate a function and all that it calls, and bind the code to the values of its outside names."""
    if original(function) in under:
        raise UnsupportedKernel(
            f"{function.__name__} calls another function that calls {function.__name__}; Numba supports only "
            "functions that call themselves",
            *call,
        )
    environment, signature = inside.environment(function), inspect.signature(function)
    translation = translate(function, device, environment=environment)
    program = steps_of(function, device, environment)
    bound = BoundFunction(
        signature,
        names.defaults(signature),
        sites=translation.sites | (program.sites if program else {}),
        source=translation.source,
        allowed=allowed_in(inside.read(function).own, function),
        uncalled=uncalled_barriers(inside.read(function).definition),
        of_library=bool(under) and _in_library(function) and not _in_library(under[0]),
    )
    space = {"__builtins__": {"slice": slice}}
    callees = {}
    for name, root, path, line in (*translation.bindings, *(program.bindings if program else ())):
        if name in space:
            continue
        value = environment[root]
        for part in path:
            value = names.attribute(value, part)
        if isinstance(value, Callee):
            here = (function.__code__.co_filename, line)
            if original(value.function) is not original(function):
                value = _bind_callee(value, counts_only, (*under, original(function)), here)
            elif device:
                value, bound.recursive = bound, True
            else:
                raise UnsupportedKernel("a kernel cannot call itself; only device functions can", *here)
            callees[root, path] = value
        space[name] = _with_arrays(value, ".".join((root, *path)), counts_only)
        bound.warp_by_warp |= getattr(value, "warp_by_warp", False)
        bound.meets_grid |= getattr(value, "meets_grid", False)
        if isinstance(value, Emulation) and value.needs > (0, 0):
            shown = (name_of(value) or path[-1], function.__code__.co_filename, line)
            bound.needs.append((value.needs, *shown))
    bound.typed = Typed(function, device, translation, program, space, bound.recursive)
    bound.stored |= translation.stored
    bound.literal |= translation.literal
    bound.constants |= _constants(function, environment, translation.constants)
    for _ in translation.passed:  # Once is not enough if a function passes a parameter on to itself.
        for root, path, given, parameter in translation.passed:
            if given in callees[root, path].stored:
                bound.stored.add(parameter)
            if given in callees[root, path].literal:
                bound.literal.add(parameter)
    for root, path, given, line in translation.computed:
        if given in callees[root, path].literal:
            _refuse_computed(callees[root, path], given, function.__code__.co_filename, line)
    for root, path, given, line in translation.calls:
        callee = callees[root, path]
        if callee.recursive or callee.calls:
            marks = (mark.mark(environment) if isinstance(mark, Outside) else mark for mark in given)
            bound.calls.append(Call(callee, tuple(marks), function.__code__.co_filename, line))
    shapes = [eval(shape, space) for shape in translation.local_shapes]
    others = [
        one
        for callee in callees.values()
        if callee is not bound
        for one in (callee, *callee.earlier.values())
    ]
    bound.local_elements = sum(math.prod(whole_shape(shape)) for shape in shapes)
    bound.local_elements += sum(callee.local_elements for callee in others)
    for callee in others:
        bound.sites |= callee.sites
        bound.needs += callee.needs
        bound.constants |= callee.constants
        bound.uncalled += [told for told in callee.uncalled if told not in bound.uncalled]
        bound.callees += (callee, *callee.callees) if callee.dispatcher is not None else callee.callees
        bound.allowed += [comment for comment in callee.allowed if comment not in bound.allowed]
    return bound


def _in_library(function) -> bool:
    return in_library(function.__code__.co_filename)


def _bind_callee(callee: Callee, counts_only, under, call) -> BoundFunction:
    """Bind a device function, and each version compiled before some of its constants changed."""
    bound = bind(callee.function, counts_only, True, under, call)
    if callee.declared:
        bound.casts = signatures.Casts(callee.function.__name__, callee.declared)
        return bound
    if callee.dispatcher is None or not has_constants(callee.function):
        return bound
    bound.dispatcher, versions = callee.dispatcher, {}
    for key, function in compiled.changed(callee.dispatcher).items():
        if function not in versions:
            versions[function] = bind(function, counts_only, True, under, call)
        bound.earlier[key] = versions[function]
    for version in versions.values():
        bound.stored |= version.stored
        bound.warp_by_warp |= version.warp_by_warp
        bound.meets_grid |= version.meets_grid
    return bound


def _refuse_computed(callee: BoundFunction, position: int, file: str, line: int):
    name = callee.typed.function.__name__
    parameter = list(callee.signature.parameters)[position]
    raise UnsupportedKernel(
        f"{name}() needs a literal as its {parameter}: it makes an array of that size, or a grid of so many "
        "dimensions, and Numba must know the number when it compiles. Write the number, or the name of one "
        "outside the kernel, int(...) of a NumPy integer; the emulator does not take len() of a tuple",
        file,
        line,
    )


def _types_of(args) -> tuple:
    return tuple((kind_of(value), getattr(value, "layout", None)) for value in args)


def _with_arrays(value, name: str, counts_only: bool):
    """Return a value from outside the kernel with its arrays, also in tuples, as the kernel sees them."""
    if isinstance(value, Constant):
        return value.in_kernel(name, counts_only)
    if isinstance(value, tuple):
        return same_tuple(value, (_with_arrays(*part, counts_only) for part in _named_parts(value, name)))
    return value


def _constants(function, environment, places) -> dict:
    """Return (file, line, column, array) -> bytes for the places that read an array from outside."""
    found = {}
    for root, path, line, column in places:
        value = environment[root]
        for part in path:
            value = names.attribute(value, part)
        found[function.__code__.co_filename, line, column, ".".join((root, *path))] = value.array.nbytes
    return found


def _named_parts(values: tuple, name: str) -> list:
    """Return (part, name) for each part of a tuple or named tuple."""
    fields = getattr(values, "_fields", None)
    names = [f"{name}.{field}" for field in fields or ()] or [f"{name}[{i}]" for i in range(len(values))]
    return list(zip(values, names))


class Launch:
    """One launch: its geometry, its arguments, and the chunks of blocks in which it runs."""

    def __init__(self, function, declared, grid, block, args, options: Options):
        self.function = function
        self.grid, self.block = _geometry("grid", grid), _geometry("block", block)
        self.gpu = profile(options.gpu)
        self.shared_bytes = _check_limits(self.grid, self.block, options.shared_bytes, self.gpu)
        self.counts_only, self.watch = options.counts_only, options.watch
        self._check_number_of_threads()
        self.findings: FindingsOfProgram | None = None
        self.progress = options.progress
        self.step_limit, self.loop_seconds = options.step_limit, options.loop_seconds
        self.strict, self.debug = options.strict, options.debug
        self.bound = bind(self.function, self.counts_only)
        self.bound.require(self.gpu)
        refuse_other_literals(self.bound)
        self._check_constants()
        self.args = _check_arguments(self.bound, self.function.__name__, args, declared)
        self.printed: list[str] = []
        self.silencing = Silencing(self.bound.allowed, allowed_kinds(options.allow))
        if self.watch is not None and self.counts_only:
            raise LaunchError("a trace needs a full run; pass either counts_only or watch, not both")
        self.lower_bound: LowerBound | None = None
        self.needed = self._surely_needed() if options.as_compiled else None

    def _check_number_of_threads(self):
        threads = math.prod(self.grid) * math.prod(self.block)
        if threads > MOST_THREADS and not self.counts_only:
            raise LaunchError(
                f"{threads:,} threads are too many to emulate, and {MOST_THREADS:,} are the most: launch "
                "fewer blocks, each of which may do more in a loop; or count the accesses of all with "
                "emulate(..., counts_only=True)"
            )

    def _check_constants(self):
        """Refuse more constant memory than there is. Compiled code has a copy for each place that reads."""
        taken = sum(self.bound.constants.values())
        if taken > CONSTANT_BYTES:
            places = ", ".join(f"{name} in line {line}" for _, line, _, name in self.bound.constants)
            raise LimitExceeded(
                f"the arrays from outside that the kernel reads take {taken:,} bytes of constant memory, "
                f"where Numba puts a copy for each place that reads one ({places}); "
                f"the limit is {CONSTANT_BYTES:,}: "
                "pass a large array as an argument"
            )

    def _surely_needed(self) -> set:
        """Return the accesses that no compiler can leave out.

        Refuse a launch that cannot be followed access by access.
        """
        if self.counts_only or self.watch is not None:
            other = "counts_only" if self.counts_only else "watch"
            raise LaunchError(f"as_compiled needs a full run of its own; pass it without {other}")
        if self.bound.warp_by_warp:
            code = self.function.__code__
            raise UnsupportedKernel(
                "as_compiled does not follow warps that wait at mbarriers; leave it out for this kernel",
                code.co_filename,
                code.co_firstlineno,
            )
        return surely_needed(self.function)

    def run(self) -> Report:
        """Run the launch, again in another way if the first was not exact enough. Return the report."""
        way = Way(CHUNKS if self.bound.meets_grid and not self.counts_only else None)
        try:
            while way is not None:
                stopped, way = self._attempt(way)
        finally:
            print(*self.printed, sep="\n", end="\n" * bool(self.printed))
        if stopped is not None:
            raise stopped
        report = Report(
            self.machine, self.findings, self.function, self.bound.source, self.watch, self.lower_bound
        )
        for array, copy in self.arrays.results:
            np.copyto(array, copy)
        return report

    def _attempt(self, way):
        """Run once, on fresh copies of the arrays.

        Return (the error that stopped the kernel or None, the way to run it again or None).
        """
        self._prepare(way)
        try:
            if self.counts_only:
                self._count()
            elif way.units is None:
                self._run_all()
            else:
                self._run_units(way.units)
            self.machine.tallies.finish()
            if self.lower_bound is not None:
                self.lower_bound.finish()
        except NeedsFinerUnits as needed:
            return None, way._replace(units=needed.units)
        except KernelStopped as stopped:
            return self._with_cause(stopped), self._more_exactly(way)
        return None, self._more_exactly(way)

    def _prepare(self, way):
        self.findings = FindingsOfProgram(
            self.silencing, lambda: self.machine.unit.library_call, self.bound.sites, self.bound.uncalled
        )
        self.machine = Machine(
            self.grid,
            self.block,
            self.shared_bytes,
            counts_only=self.counts_only,
            step_limit=self.step_limit,
            loop_seconds=self.loop_seconds,
            findings=self.findings,
            warp_by_warp=self.bound.warp_by_warp,
            exact=way.exact,
            examined=way.examined,
            strict=self.strict,
        )
        self.machine.gpu, self.machine.debug, self.printed = self.gpu, self.debug, self.machine.printed
        self.machine.sites = self.bound.sites
        self.arrays = Arguments(self.counts_only)
        self.parameters = self._parameters()
        self.code = self.bound.typed.code_for(self.machine, self.parameters)

    def _more_exactly(self, way):
        """Return a way that examines the memories with races access by access, or None if there is no need.

        There is a need only where accesses are ordered by more than barriers.
        """
        machine = self.machine
        if way.exact or not (machine.fine_order or self.bound.warp_by_warp):
            return None
        kinds = {finding.kind for finding in self.findings.listed()}
        exact = set(machine.doubts)
        if "global_race" in kinds:
            exact.add("global")
        if "shared_race" in kinds and not self.bound.warp_by_warp:
            # Where warps run one at a time, `doubts` has "shared" if threads may race there.
            exact.add("shared")
        if not exact:
            return None
        return way._replace(exact=frozenset(exact), examined=frozenset(machine.suspects))

    def found_so_far(self) -> tuple:
        """Return the findings of a launch that was stopped, each with its file."""
        if self.findings is None:
            return ()
        found = self.findings.listed()
        return tuple(replace(one, file=one.file or self.bound.sites[one.site].file) for one in found)

    def _with_cause(self, stopped):
        errors = [finding for finding in self.findings.listed() if finding.severity == "error"]
        if not errors:
            return stopped
        first = errors[0]
        several = len({site.function for site in self.bound.sites.values()}) > 1
        where = f"line {first.line}{f' of {first.function}' if several else ''}"
        caused = stopped.retold(f"{stopped} Found before that: {where}: {first.message}")
        caused.__cause__ = stopped
        return caused.with_traceback(stopped.__traceback__)

    # ---- arguments ----

    def _parameters(self) -> list:
        wanted = tuple(self.bound.signature.parameters)
        itself = {id(value): name for name, value in zip(wanted, self.args) if isinstance(value, np.ndarray)}
        for position, value in enumerate(self.args):
            for array in _arrays_of(value):
                self.arrays.add(array, position in self.bound.stored)
        if not self.counts_only:
            self._check_memory()
            self.arrays.place()
        self.machine.races.shadows = self.arrays.races
        self.machine.report_float64 = not any(map(_has_float64, self.args))
        return [self._parameter(value, name, itself) for name, value in zip(wanted, self.args)]

    def _parameter(self, value, name, itself):
        """Return an argument as the kernel sees it. ``itself``: id of an array argument -> its name."""
        if isinstance(value, np.ndarray):
            return self.arrays.device_array(name, value)
        if isinstance(value, tuple):
            return same_tuple(value, (self._parameter(*part, itself) for part in _named_parts(value, name)))
        if isinstance(value, (np.datetime64, np.timedelta64)):
            return as_value(value)
        if hasattr(value, "in_kernel"):
            shown = itself.get(id(value.array), name)
            return value.in_kernel(self.arrays.device_array(shown, value.array))
        return value

    def _check_memory(self):
        taken = self.arrays.bytes_needed()
        if taken > MEMORY_LIMIT:
            raise LaunchError(
                "the arrays this kernel writes are too large to emulate "
                f"({taken / 2**30:.1f} GiB with what the emulator records about them); "
                "use smaller arrays, or counts_only=True for exact counts of any size"
            )

    # ---- running the chunks of blocks ----

    def _chunk(self, z, y, x, rows, columns):
        machine = self.machine
        self._start(z, y, x, rows, columns)
        if machine.warp_by_warp and not self.counts_only:
            machine.run_warps(self._steps)
        else:
            self._call()
        machine.end()
        if self.lower_bound is not None:
            self.lower_bound.settle()

    def _start(self, z, y, x, rows, columns):
        machine = self.machine
        machine.start(z, y, x, rows, columns)
        if self.lower_bound is not None:
            machine.chunk.tracing, machine.chunk.watcher = True, self.lower_bound
            return
        watched = self.watch is not None and self.watch.inside(z, y, x, rows, columns)
        machine.chunk.tracing = watched
        machine.chunk.watcher = self.watcher if watched else None

    def _call(self):
        """Run the translated kernel, and cut the traceback of an error to the frames that run kernels."""
        try:
            self.code(self.machine, *self.parameters)
        except EmulatorError as error:
            error.__traceback__ = lines_of_kernels(error.__traceback__)
            raise

    def _steps(self):
        """Do the same for a unit that may have to wait. The generator then yields the unit to run instead."""
        try:
            yield from self.bound.typed.suspendable(self.code)(self.machine, *self.parameters)
        except EmulatorError as error:
            error.__traceback__ = lines_of_kernels(error.__traceback__)
            raise

    def _run_all(self):
        rows, columns = 1, 1
        if not self.bound.warp_by_warp:
            rows, columns = self._chunk_shape()
        progress = self._begin()
        for z, y, x, r, c in chunks(self.grid, rows, columns):
            self._chunk(z, y, x, r, c)
            progress(r * c)

    def _chunk_shape(self) -> tuple:
        most = CHUNK_LANES if self.needed is None else FOLLOWED_LANES
        return _chunk_shape(self.grid, self.machine, self.bound.local_elements, most)

    def _run_units(self, units):
        """Run the launch in units, which wait for each other."""
        machine, (rows, columns) = self.machine, (1, 1)
        if units == CHUNKS:
            rows, columns = self._chunk_shape()
        all_blocks, threads = math.prod(self.grid), math.prod(self.block)

        def room():
            if units == CHUNKS:
                return all_blocks
            return self.gpu.resident_blocks(threads, self.shared_bytes + machine.static_shared_bytes())

        places = list(chunks(self.grid, rows, columns))
        progress = self._begin()

        def ended():
            machine.end()
            progress(machine.chunk.blocks)

        blocks = [Block(units, partial(self._start, *place)) for place in places]
        machine.run_units(Scheduler(machine, self._steps, blocks, room, ended), units)

    def _begin(self):
        """Prepare the trace. Return a function to call with the number of blocks done since the last call."""
        self.watcher = self.machine.last_watcher = Watcher(self.watch) if self.watch is not None else None
        if self.needed is not None:
            self.lower_bound = LowerBound(self.machine, self.needed)
        total, done = self.grid[0] * self.grid[1] * self.grid[2], 0

        def progress(blocks):
            nonlocal done
            done += blocks
            if self.progress is not None:
                self.progress(done, total)

        return progress

    def _count(self):
        """Count all blocks, folded like the iterations of loops: along x within rows, along y, along z."""
        gx, gy, gz = self.grid
        self._fold_axis(gz, lambda z: self._fold_axis(gy, lambda y: self._count_row(z, y, gx)))
        self.machine.tallies.settle()

    def _count_row(self, z, y, length):
        """Count a row of blocks one by one, or many at a time once they turn out not to repeat."""
        patience = PATIENCE if self.grid[1] * self.grid[2] > 1 else SHORT_PATIENCE
        done = self._fold_axis(length, lambda x: self._chunk(z, y, x, 1, 1), patience)
        width = max(2 * CHUNK_LANES // (self.block[0] * self.block[1] * self.block[2]), 1)
        whole = (length - done) // width
        self._fold_axis(whole, lambda i: self._chunk(z, y, done + i * width, 1, width))
        if rest := length - done - whole * width:
            self._chunk(z, y, length - rest, 1, rest)

    def _fold_axis(self, length, run, patience=None) -> int:
        """Run positions 0..length-1, skipping those that repeat. Return how many are done.

        ``patience``: how many successive positions may pass without a repetition before the method gives up.
        """
        fold, position, tried = Fold(self.machine), 0, 0
        while position < length and (patience is None or tried < patience):
            run(position)
            skip, _ = fold.end_of_iteration((position,), room=length - 1 - position)
            position += 1 + skip
            tried = 0 if skip else tried + 1
        return position


def _geometry(what, given) -> tuple:
    """Return a grid or block as three integers. Raises LaunchError or LimitExceeded if it is not valid."""
    sizes = given if isinstance(given, (tuple, list)) else (given,)
    whole = all(isinstance(size, (int, np.integer)) and not isinstance(size, bool) for size in sizes)
    if isinstance(given, np.ndarray):
        raise LaunchError(
            f"a {what} is one to three integers (x, y, z), not an array: emulate(kernel, grid, block, "
            "arguments ...), and the kernel without [grid, block]"
        )
    if not whole or not 1 <= len(sizes) <= 3:
        raise LaunchError(f"a {what} is one to three integers (x, y, z), not {given!r}")
    sizes = tuple(int(s) for s in sizes) + (1,) * (3 - len(sizes))
    if min(sizes) < 1:
        raise LimitExceeded(f"every size of a {what} must be at least 1, but {given!r} was given")
    return sizes


def _check_limits(grid, block, shared_bytes, gpu) -> int:
    threads = block[0] * block[1] * block[2]
    if threads > MAX_THREADS:
        raise LimitExceeded(
            f"a block has at most {MAX_THREADS:,} threads on an {gpu.name}; "
            f"{' x '.join(map(str, block))} is {threads:,}"
        )
    for what, unit, sizes, limits in (
        ("block", "threads", block, MAX_BLOCK),
        ("grid", "blocks", grid, MAX_GRID),
    ):
        for axis, size, limit in zip("xyz", sizes, limits):
            if size > limit:
                raise LimitExceeded(
                    f"a {what} has at most {limit:,} {unit} along {axis} on an {gpu.name}, not {size:,}"
                )
    if not isinstance(shared_bytes, (int, np.integer)) or not 0 <= shared_bytes <= gpu.max_shared_bytes:
        raise LimitExceeded(
            f"a block of an {gpu.name} can have 0 to {gpu.max_shared_bytes:,} dynamic shared bytes, "
            f"not {shared_bytes!r}"
        )
    return int(shared_bytes)


def _check_arguments(bound: BoundFunction, name: str, args, declared) -> list:
    """Return the arguments of a launch, one per parameter, because Numba uses no defaults of a kernel."""
    wanted, arguments = bound.signature.parameters, args
    if len(args) != len(wanted):
        missing = len(args) < len(wanted)
        unused = "; the defaults of a kernel are not used" if missing and bound.defaults else ""
        raise ArgumentError(
            f"{name} takes {len(wanted)} argument{'s' * (len(wanted) != 1)} "
            f"({', '.join(wanted)}), not {len(args)}{unused}"
        )
    if declared:
        arguments = signatures.fitted(name, [one.types for one in declared], list(wanted), arguments)
    return [_check_argument(name, value) for name, value in zip(wanted, arguments)]


def refuse_masked(value):
    """Refuse a masked array as an argument, because a kernel would not see its mask."""
    if isinstance(value, np.ma.MaskedArray):
        raise LaunchError(
            "an argument is a masked array, and Numba takes none: pass its .filled(...) or its .data"
        )


def _check_argument(name, value):
    if isinstance(value, np.ndarray) and not value.dtype.isnative:
        raise LaunchError(
            f"{name} holds numbers in another byte order ({value.dtype}) than the machine's, and Numba "
            f"takes none: pass {name}.astype({name}.dtype.newbyteorder('='))"
        )
    if isinstance(value, np.void) and value.dtype.fields:
        value = Records(array_of_record(value), single=True)
    if isinstance(value, np.ndarray) and value.dtype.fields:
        value = Records(value)
    refuse_masked(value)
    if isinstance(value, np.ndarray):
        # The letters "g" and "G" stand for floats of 80 bits.
        if value.dtype.kind not in "biufcmM" or value.dtype.char in "gG":
            raise LaunchError(
                f"{name} has dtype {value.dtype}; "
                "the emulator supports booleans, integers, floats, complex numbers, dates, spans of time and "
                "records of them"
            )
        _check_layout(name, value)
        return value
    if value is None:
        raise ArgumentError(
            f"{name} is None, and numba.cuda passes no None to a kernel: pass a number or an array"
        )
    if isinstance(value, enum.Enum) and not isinstance(member := names.meaning(value), names.Refused):
        return member
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise LaunchError(f"{name} is {value}, which needs more than 64 bits")
    if isinstance(value, np.generic) and value.dtype.char in "gG":
        raise LaunchError(f"{name} is a {type(value).__name__}, which Numba does not take: pass a float64")
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return names.as_number(value)
    if isinstance(value, tuple):
        return same_tuple(value, (_check_argument(shown, part) for part, shown in _named_parts(value, name)))
    if hasattr(value, "in_kernel"):
        _check_argument(name, value.array)
        return value
    raise LaunchError(
        f"{name} is a {type(value).__name__}; the emulator takes arrays, numbers and tuples of them"
    )


def _check_layout(name, array):
    """Refuse arrays whose elements do not lie on multiples of their size, as in a field of a record."""
    steps = [step for extent, step in zip(array.shape, array.strides) if extent > 1]
    if not array.flags.aligned or any(step % array.itemsize for step in steps):
        raise LaunchError(
            f"the elements of {name} do not lie at multiples of their size in memory; "
            f"pass np.ascontiguousarray({name})"
        )


def _arrays_of(value) -> list[np.ndarray]:
    """Return the arrays of an argument: itself, those in a tuple, or the one that a tensor map describes."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, tuple):
        return [array for part in value for array in _arrays_of(part)]
    return [value.array] if hasattr(value, "in_kernel") else []


def _has_float64(value) -> bool:
    """Tell whether an argument has an array with numbers of 64 bits that are no integers."""
    if isinstance(value, Records):
        return any(leaf.kind in _FLOAT64 for leaf in leaves_of(value.record))
    if isinstance(value, tuple):
        return any(map(_has_float64, value))
    return any(array.dtype in _FLOAT64 for array in _arrays_of(value))


def _chunk_shape(grid, machine, local_elements, most) -> tuple:
    """Return (rows, columns) of blocks that run together, nearly square, so that blocks share their loads."""
    threads = -(-machine.block[0] * machine.block[1] * machine.block[2] // 32) * 32
    lanes = min(most, CHUNK_ELEMENTS // max(local_elements, 1))
    blocks = max(lanes // threads, 1)
    columns = min(grid[0], max(int(blocks**0.5), 1))
    rows = min(grid[1], max(blocks // columns, 1))
    return rows, min(grid[0], max(blocks // rows, 1))
