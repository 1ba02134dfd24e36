"""What Numba does not compile, the emulator refuses as well; what the emulator lacks, it says so."""

import contextlib
import io
import linecache
import re
import warnings

import numpy as np
import pytest
from numba import cuda
from numba.core.target_extension import target_override

from lockstep import EmulatorFault, LaunchError, LimitExceeded, emulate, emulated
from lockstep.errors import EmulatorError

pytest.importorskip(
    "lockstep_tests.numba_types",
    reason="asks numba-cuda's type inference, which the built-in numba.cuda lacks",
    exc_type=ImportError,
)
from numba.cuda import types

from lockstep_tests import numbas_verdicts
from lockstep_tests.numba_types import for_hopper

ACCEPTED = {
    "expression: lambda:n": "no code uses the value, and the emulator leaves it out",
    "text and None: a = None ; if n > 0: ; > a = 1 ; if a: ; > out[i] = 1": "the emulator follows the value",
    "text and None: a = None ; if n > 0: ; > a = 1 ; out[i] = f4[a]": "the emulator follows the value",
    "text and None: a = None ; if n > 0: ; > a = pair ; out[i] = a[0]": "the emulator follows the value",
    "declared: k = 4 ; if n > 0: ; > k = 8 ; t = cuda.local.array(k, float32) ; out[i] = t.size": (
        "two literals meet here, and the emulator takes the one that holds"
    ),
    "call: out[i] = now_and_then(f4, n)[0]": "the emulator looks at the path that is taken",
}
"""Probes that the emulator accepts though Numba refuses them, with the reason."""

WHEN_RUN = {
    "KernelRaised": "the kernel raises an exception, which a GPU does too",
    "it cannot be reshaped to": "a GPU raises a ValueError, and says nothing without debug=True",
    "needs an array of one element": "a GPU raises a ValueError, and says nothing without debug=True",
    "of another shape": "a GPU raises a ValueError, and says nothing without debug=True",
    "values are needed": "a GPU raises a ValueError, and says nothing without debug=True",
    "cannot be viewed with elements": "a GPU raises a ValueError, and says nothing without debug=True",
    "the step of range": "a GPU raises a ValueError, and says nothing without debug=True",
    "bytes of constant memory": "ptxas refuses it, which Numba calls when it links",
    "is read-only": "Numba overlooks an atomic on a read-only array",
    "it cannot be written": "Numba overlooks an atomic on constant memory, which a GPU cannot write",
}
"""What the emulator stops at when the kernel runs, and Numba does not when it compiles, with the reason."""


def refusal_by_numba(probe) -> str | None:
    """Return why Numba does not compile a probe for a launch with its arguments; None if it does."""
    from numba.cuda.typing.typeof import typeof

    function, arguments = probe.function(), probe.arguments().values()
    try:
        with for_hopper(), target_override("cuda"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = tuple(map(typeof, arguments))
            if not all(map(can_be_passed, given)):
                return "a launch does not pass it"
            cuda.compile(function, given, cc=(9, 0), device=False, abi="numba")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def can_be_passed(kind) -> bool:
    """Tell whether numba.cuda's dispatcher passes arguments of this type."""
    if isinstance(kind, types.BaseTuple):
        return all(map(can_be_passed, kind))
    passed = types.Array, types.Number, types.Boolean, types.NPDatetime, types.NPTimedelta, types.Record
    return isinstance(kind, (*passed, types.EnumMember))


def refusal_by_emulator(probe) -> str | None:
    """Return the sentence with which the emulator refuses a probe; None if it runs it."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            emulate(probe.function(), 1, 32, *probe.arguments().values())
        except EmulatorFault:
            raise
        except EmulatorError as error:
            return f"{type(error).__name__}: {error}"
    return None


def difference(probe) -> str | None:
    """Return in which way the emulator's verdict is not Numba's; None if it is, or if a reason is known."""
    numbas, ours = refusal_by_numba(probe), refusal_by_emulator(probe)
    if numbas is not None and ours is None and probe.name not in ACCEPTED:
        return f"{probe}: Numba does not compile it: {numbas}"
    if numbas is None and ours is not None and not (names_the_emulator(ours) or stops_when_run(ours)):
        return f"{probe}: Numba compiles it, and the sentence is: {ours}"
    return None


def names_the_emulator(sentence: str) -> bool:
    """Tell whether a refusal says that it is the emulator that lacks something, not Numba."""
    return (
        re.search(r"the emulator (does not|knows|supports|takes|calls|reshapes|follows)", sentence)
        is not None
    )


def stops_when_run(sentence: str) -> bool:
    return any(words in sentence for words in WHEN_RUN)


@pytest.mark.parametrize("family", numbas_verdicts.FAMILIES, ids=lambda family: family.__name__)
def test_verdicts_are_numbas(family, sample):
    probes = sample(numbas_verdicts.probes(family), one_in=120, with_all=20)
    different = list(filter(None, map(difference, probes)))
    assert not different, "\n".join(different)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("x[0] = cuda.grid(n)", r"cuda.grid\(n\): Numba needs a literal here: write cuda.grid\(1\)"),
        ("d = n\n    x[0] = cuda.gridsize(d)", r"cuda.gridsize\(d\): Numba needs a literal"),
        ("x[0] = cuda.any_sync(0xffffffff, x[0])", "takes a boolean or an integer, not a float64 value"),
        ("x[n > 0] = 1", "an index must be an integer, not a bool"),
        ("x[x[0] > 5] = 1", "an index must be an integer, not a bool"),
        ("m.ravel()[0] = 1", r"write .reshape\(x.size\)"),
        (
            "t = cuda.local.array(4, float)\n    t[0] = 1",
            "none of Python's int, float and bool .* write int64",
        ),
        ("x[0] = cuda.ffs(x[0])", r"no code of ffs\(\) for int8 .* convert float64"),
    ],
)
def test_the_sentence_says_what_to_write(body, said):
    source = f"def kernel(x, m, n):\n    {body}\n"
    filename = f"<{body}>"
    linecache.cache[filename] = len(source), None, source.splitlines(True), filename
    space = {"cuda": cuda, "np": np}
    exec(compile(source, filename, "exec"), space)
    with pytest.raises(EmulatorError, match=said):
        emulate(space["kernel"], 1, 32, np.ones(32), np.ones((2, 2)), 1)


def test_literals_that_numba_knows_are_taken():
    dimensions = 1

    @cuda.jit
    def kernel(x):
        two = 2
        i, _ = cuda.grid(two)
        x[i] = cuda.grid(dimensions) + cuda.grid(x.ndim)

    x = np.zeros(32)
    emulate(kernel, 1, 32, x)
    assert (x == 2 * np.arange(32)).all()


def test_a_masked_array_is_refused():
    @cuda.jit
    def kernel(x):
        x[0] = 1

    for launch in (lambda x: emulate(kernel, 1, 1, x), lambda x: kernel[1, 1](x)):
        with emulated(), pytest.raises(LaunchError, match="masked array"):
            launch(np.ma.array([1.0, 2], mask=[0, 1]))


def test_constant_memory_has_64_kb():
    large, fits = np.arange(8193.0), np.arange(8192.0)

    @cuda.jit
    def too_much(x):
        x[0] = cuda.const.array_like(large)[int(x[0])]

    @cuda.jit
    def enough(x):
        x[0] = fits[int(x[0])] + fits[1]

    with pytest.raises(LimitExceeded, match=r"65,544 bytes of constant memory.* the limit is 65,536"):
        emulate(too_much, 1, 1, np.zeros(1))
    assert emulate(enough, 1, 1, np.zeros(1)).ok


def test_fma_of_integers_is_computed_in_float64():
    @cuda.jit
    def kernel(a, out):
        out[0] = cuda.fma(a[0], a[0], a[0])
        out[1] = cuda.fma(a[1], 0.5, a[1])

    out = np.zeros(2)
    emulate(kernel, 1, 1, np.array([4 * 10**9, 3]), out)
    assert out.tolist() == [1.6000000004e19, 4.5]


def test_positions_under_another_name():
    @cuda.jit
    def kernel(x):
        t, b, d = cuda.threadIdx, cuda.blockIdx, cuda.blockDim
        x[b.x * d.x + t.x] = t.x + cuda.gridDim.x

    x = np.zeros(8)
    emulate(kernel, 2, 4, x)
    assert x.tolist() == [2, 3, 4, 5] * 2


@pytest.mark.parametrize(
    "name", "char uchar short ushort int uint long ulong longlong ulonglong float double".split()
)
def test_vector_types_under_cs_names(name):
    source = f"def kernel(x):\n    v = cuda.{name}3(1, 2, 250)\n    x[0] = v.x + v.y\n    x[1] = v.z\n"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    space = {"cuda": cuda}
    exec(compile(source, name, "exec"), space)
    x = np.zeros(2)
    emulate(space["kernel"], 1, 1, x)
    assert x.tolist() == [3, -6 if name == "char" else 250]
