"""A lock-step SIMT machine: it runs ``numba.cuda`` kernels without a GPU and counts every access.

It knows kernels in general and nothing about matrix multiplication. A launch goes through its modules in this
order; :mod:`.launch` is where to start reading.

**From source to code.** :mod:`.names` says what each name in a kernel stands for, :mod:`.source` finds its
lines; :mod:`.inside` makes device functions of those inside it, :mod:`.compiled` keeps the constants of the
first launch, :mod:`.pruning` leaves out the branches that Numba leaves out. :mod:`.simplify` spells out what
the rest need not know, :mod:`.versions` and :mod:`.inference` find the types as Numba does, :mod:`.translate`
rewrites the function, with what :mod:`.analysis` and :mod:`.local_indices` know from the source alone, on the
:mod:`.trees` of both.
:mod:`.cuda_api`, :mod:`.libdevice`, :mod:`.functions`, :mod:`.signatures` and :mod:`.registry` hold what a
kernel may call, :mod:`.operators` what Python itself calls by signs.

**The machine.** :mod:`.machine` runs the new code for all lanes of many blocks at once; :mod:`.state` lists
its attributes. It is made of parts: :mod:`.arithmetic`, with :mod:`.complex_numbers`, on the types of
:mod:`.dtypes`, :mod:`.control` (branches and loops, over what :mod:`.iterables` knows), :mod:`.language` (the
rest of Python's syntax), :mod:`.barriers` (and :mod:`.absences` from them), :mod:`.access` to arrays, and
:mod:`.narrowing` (few lanes left), :mod:`.unset` (variables that only some lanes have set). Values that
differ from lane to lane are in :mod:`.lanes`, their places in :mod:`.geometry`. :mod:`.calls` explains calls
that fail.

**Memory.** :mod:`.memory` holds the values, :mod:`.arguments` the arrays of a launch, :mod:`.views` and
:mod:`.records` what a kernel makes of arrays; :mod:`.atomics` and :mod:`.async_copies` change them;
:mod:`.garbage` is what new memory holds.

**Blocks, warps or lanes that wait for others** leave lock-step: :mod:`.scheduler` runs them one at a time.
:mod:`.warp_calls` and :mod:`.warps` are what a warp does together; :mod:`.cooperation`, :mod:`.mbarriers`,
:mod:`.tensor_copies` and :mod:`.products` are for kernels with TMA and wgmma.

**Findings.** :mod:`.shadow` sees races and uninitialised reads, :mod:`.happened` and :mod:`.exact` see them
access by access, :mod:`.order` where warps run one at a time. :mod:`.findings` words them, :mod:`.silence`
silences them. :mod:`.errors` are the exceptions, :mod:`.faults` turns the unforeseen into one of
them, and :mod:`.spelling` knows what a misspelt name was meant to be.

**Counts.** :mod:`.counting` is what an access costs, :mod:`.tally` adds up, :mod:`.lane_counts` does for
lanes that run apart, :mod:`.fold` skips what repeats. :mod:`.merging` finds how little compiled code may
do of it, and :mod:`.needed` what it cannot leave out. :mod:`.trace` records single accesses, :mod:`.report`
shows it all; :mod:`.limits` is what each GPU allows.
"""

from .counting import wavefronts
from .errors import (
    ArgumentError,
    DataDependent,
    Deadlock,
    EmulatorError,
    EmulatorFault,
    KernelRaised,
    KernelStopped,
    KernelTypeError,
    LaunchError,
    LimitExceeded,
    RefusedLine,
    UndefinedName,
    UnknownName,
    UnsupportedKernel,
)
from .findings import ADVICE, ERRORS, Finding
from .launch import emulate
from .registry import as_index, emulates
from .report import Report
from .tensor_copies import MatrixMap
from .trace import Watch

__all__ = [
    "ADVICE",
    "ERRORS",
    "ArgumentError",
    "DataDependent",
    "Deadlock",
    "EmulatorError",
    "EmulatorFault",
    "Finding",
    "KernelRaised",
    "KernelStopped",
    "KernelTypeError",
    "LaunchError",
    "LimitExceeded",
    "MatrixMap",
    "RefusedLine",
    "Report",
    "UndefinedName",
    "UnknownName",
    "UnsupportedKernel",
    "Watch",
    "as_index",
    "emulate",
    "emulates",
    "wavefronts",
]
