"""The names that a kernel may use: REFERENCE.md lists them, and types go by all of theirs."""

import importlib
import re
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import cuda, types

try:
    from numba.cuda import extending
    from numba.cuda import literal_unroll as unroll_in_cuda
except ImportError:  # The built-in numba.cuda shares these with the CPU.
    from numba import extending
    from numba import literal_unroll as unroll_in_cuda

from lockstep import EmulatorError, emulate
from lockstep.library.cuda_api import BUILTINS, CUDA

PAGE = (Path(__file__).parents[1] / "REFERENCE.md").read_text(encoding="utf-8")
NAMES = PAGE.partition("### Names\n")[2].partition("\nRefused,")[0]
ROWS = dict(re.findall(r"^\| ([^|]+) \| (.*) \|$", NAMES, re.MULTILINE))
VECTOR = r"[a-z]+\d*x?[1-4]"


def listed(*rows: str) -> set[str]:
    return {name for row in rows for name in re.findall(r"`([\w.]+)`", ROWS[row])}


def test_the_page_lists_every_function_of_numba_cuda_that_runs():
    others = ("vectors", "libdevice", "types", "NumPy", "Python")
    shown = listed(*(row for row in ROWS if row not in others))
    assert shown == {n for n in CUDA if not n.startswith("libdevice.") and not re.fullmatch(VECTOR, n)}
    assert int(re.match(r"\d+", ROWS["libdevice"])[0]) == sum(n.startswith("libdevice.") for n in CUDA)
    assert set(BUILTINS) <= listed("Python")


def test_the_page_lists_every_stub_of_numba_cuda():
    """A stub is what numba.cuda documents as callable from a kernel."""
    pytest.importorskip("numba_cuda", reason="the built-in numba.cuda has other names")
    stubs = vars(importlib.import_module("numba.cuda.stubs"))
    documented = {name for name in stubs if name[0] != "_" and getattr(cuda, name, None) is stubs[name]}
    shown = {name.partition(".")[0] for row in ROWS for name in listed(row)}
    assert {n for n in documented if not re.fullmatch(VECTOR, n)} - {"dim3", "Stub"} <= shown
    assert {n for n in documented if re.fullmatch(VECTOR, n)} <= set(CUDA)


KINDS = (types.Integer, types.Float, types.Complex, types.Boolean)
SPELLED = [f"numba.{n}" for n, v in vars(numba).items() if isinstance(v, KINDS)]
SPELLED += [f"types.{n}" for n in ("f4", "double", "ulonglong", "b1", "c8")]
SPELLED += [
    f"np.{n}" for n in ("byte", "double", "int_", "intc", "uint", "short", "single", "csingle", "bool")
]


KERNEL = """def kernel(out):
    box = cuda.shared.array(2, NAME)
    box[1] = NAME(1)
    if box[1] == 1:
        out[0] = 1
"""


def test_a_type_goes_by_each_of_its_names(tmp_path):
    for name in SPELLED:
        file = tmp_path / f"{name}.py"
        file.write_text(KERNEL.replace("NAME", name), encoding="utf-8")
        outside = {"cuda": cuda, "numba": numba, "np": np, "types": types}
        exec(compile(file.read_text(encoding="utf-8"), file, "exec"), outside)
        out = np.zeros(1)
        assert emulate(outside["kernel"], 1, 1, out).ok and out[0] == 1, name


def doubled(x):
    return 2 * x


@extending.overload(doubled, target="cuda")
def doubled_in_kernels(x):
    return lambda x: 2 * x


@extending.intrinsic
def tripled(context, x):
    """Lack an implementation, because no kernel with it is compiled."""


def refused_kernels():
    def bfloat16(out):
        out[0] = cuda.bfloat16(1)

    def bessel(out):
        out[0] = cuda.libdevice.j0(out[0])

    def approximate_tanh(out):
        out[0] = cuda.fp16.htanh_approx(types.float16(1))

    def unrolled(out):
        for value in numba.literal_unroll((1, 2.5)):
            out[0] += value

    def unrolled_by_cuda(out):
        for value in unroll_in_cuda((1, 2.5)):
            out[0] += value

    def overloaded(out):
        out[0] = doubled(out[0])

    def intrinsic_of_the_program(out):
        out[0] = tripled(out[0])

    return [kernel for kernel in locals().values() if callable(kernel)]


@pytest.mark.parametrize("kernel", refused_kernels(), ids=lambda kernel: kernel.__name__)
def test_other_names_are_refused(kernel):
    pytest.importorskip("numba_cuda", reason="the built-in numba.cuda has fewer names")
    with pytest.raises(EmulatorError, match="the emulator does not"):
        emulate(kernel, 1, 1, np.zeros(4))
