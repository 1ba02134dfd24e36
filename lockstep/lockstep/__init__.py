"""Runs numba.cuda kernels without a GPU: in lock-step, with every access counted and mistakes found.

``emulate(kernel, grid, block, *arguments)`` runs one launch and returns its :class:`Report`. Within
``emulated()`` whole programs run, host side included. ``lockstep program.py`` does the same from the shell;
a command of another package may call ``lockstep.cli.emulate``. :mod:`lockstep.intrinsics` adds the
instructions that numba.cuda lacks, and :mod:`lockstep.limits` says what each GPU allows. All other modules
are private.

A launch goes through the rooms in the order of this table. A room imports only from rooms below it:

=====================  ====================================================================================
:mod:`.host`           puts the emulator in the place of numba.cuda's host side: arrays, streams, pytest
:mod:`.launching`      checks a launch, runs it chunk by chunk, reports; start reading at ``launch.py``
:mod:`.types`          finds the types as Numba does, and translates the source to calls of the machine
:mod:`.reading`        reads the source: names, constants, pruned branches, what a compiler must keep
:mod:`.library`        has what a kernel may call: numba.cuda's functions, ``math``, libdevice, warp calls
:mod:`.machine`        runs the translated code for all lanes of many blocks at once
:mod:`.waiting`        runs units that wait for each other in turns: the scheduler, mbarriers, TMA, wgmma
:mod:`.races`          finds accesses that nothing orders: shadow memory, happens-before, vector clocks
:mod:`.counts`         counts what accesses cost, and the least that compiled code costs
:mod:`.memory`         holds the values: global, shared, local memory, records, atomics
:mod:`.values`         defines numbers that differ from lane to lane, their dtypes, their places in the grid
=====================  ====================================================================================

:mod:`.intrinsics` imports from these rooms, and no room imports from it: an intrinsic registers its emulation
(:mod:`.registry`). :mod:`.errors`, :mod:`.findings`, :mod:`.limits`, :mod:`.spelling`, :mod:`.frozen` and
:mod:`.without_gpu` serve all rooms.

``import lockstep`` loads almost nothing, not even Numba. Each name below is loaded when it is first used.
"""

from importlib import import_module
from typing import Any

from lockstep.without_gpu import accept_signatures

_HOMES = {
    "emulate": "lockstep.launching.launch",
    "emulated": "lockstep.host.session",
    "active": "lockstep.host.state",
    "Session": "lockstep.host.session",
    "run_program": "lockstep.host.running",
    "Report": "lockstep.launching.report",
    "Watch": "lockstep.counts.trace",
    "wavefronts": "lockstep.counts.counting",
    "Finding": "lockstep.findings",
    "place": "lockstep.findings",
    "thread_name": "lockstep.findings",
    "ERRORS": "lockstep.findings",
    "ADVICE": "lockstep.findings",
    "emulates": "lockstep.registry",
    "as_index": "lockstep.registry",
    "MatrixMap": "lockstep.waiting.tensor_copies",
    "as_defined": "lockstep.frozen",
    "did_you_mean": "lockstep.spelling",
    "EmulatorError": "lockstep.errors",
    "ArgumentError": "lockstep.errors",
    "DataDependent": "lockstep.errors",
    "Deadlock": "lockstep.errors",
    "EmulatorFault": "lockstep.errors",
    "KernelRaised": "lockstep.errors",
    "KernelStopped": "lockstep.errors",
    "KernelTypeError": "lockstep.errors",
    "LaunchError": "lockstep.errors",
    "LimitExceeded": "lockstep.errors",
    "RefusedLine": "lockstep.errors",
    "UndefinedName": "lockstep.errors",
    "UnknownName": "lockstep.errors",
    "UnsupportedKernel": "lockstep.errors",
}
__all__ = list(_HOMES)

accept_signatures()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
