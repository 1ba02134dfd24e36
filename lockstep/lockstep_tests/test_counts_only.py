"""Counting without running: exact, for any strides, guards, grids and steps."""

import importlib.util
import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numba import cuda, float32

from lockstep import DataDependent, EmulatorError, emulate
from lockstep_tests.sampling import examples
from lockstep_tests.tables import check_counts_only

ROUNDS = itertools.count()
SIZE = 2**17  # more than the farthest element that any of these kernels reads: 217 * (6 * 64 + 5 * 8 + 56)
TEMPLATE = """\
from numba import cuda, float32
from lockstep.intrinsics import u32


@cuda.jit
def kernel(x, a, out, m, n, k):
    tile = cuda.shared.array(4096, float32)
    tx, ty, tz = {thread}
    row = {block_row} * {height} + ty
    col = {block_col} * {width} + tx
    deep = cuda.blockIdx.z * {depth} + tz
    acc = float32(0)
    {loop}
        if {guard}:
            acc += x[{index}]
        tile[{slot}] = acc if {other_guard} else float32(1)
        acc += a[{matrix_row}, {matrix_col}] if {matrix_guard} else float32(0)
        cuda.syncthreads()
        acc += tile[{read}]
        cuda.syncthreads()
{step}
    if row < m and col < n:
        out[deep, row, col] = acc
"""


@dataclass(frozen=True)
class AffineKernel:
    """A kernel whose every address is an affine function of indices, and one launch of it."""

    source: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    size: tuple[int, int, int]
    leading: int

    def load(self, folder):
        """The kernel, from a file of its own."""
        path = folder / f"kernel_{next(ROUNDS)}.py"
        path.write_text(self.source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.kernel

    def args(self, like):
        """Arguments; `like` makes an array of a shape."""
        m, n, k = self.size
        rows, columns = self.grid[1] * self.block[1], self.grid[0] * self.block[0]
        deep = self.grid[2] * self.block[2]
        return like((SIZE,)), like((k + 40, self.leading)), like((deep, rows, columns)), m, n, k


@st.composite
def affine_kernels(draw):
    """An AffineKernel with random strides, offsets, guards and loop."""
    number = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    block = draw(
        st.sampled_from([(32, 1, 1), (16, 4, 1), (8, 8, 1), (5, 7, 1), (33, 2, 1), (4, 3, 5), (64, 2, 1)])
    )
    grid = (number(1, 6), number(1, 5), number(1, 2) if block[2] > 1 else 1)
    size = (number(1, block[1] * grid[1]), number(1, block[0] * grid[0]), number(1, 40))
    advance = draw(st.sampled_from([1, 2, 4, 7, 8, 16]))
    unsigned = draw(st.booleans())
    axis = (lambda name: f"u32(cuda.{name})") if unsigned else (lambda name: f"cuda.{name}")
    guards = [
        "row < m",
        "col < n",
        "p + tx < k",
        "ty % 2 == 0",
        "cuda.blockIdx.x == 1",
        "tx < 3",
        "row + col < n",
    ]
    guards += ["p < k and col < n", "row < m and p + ty < k", f"p + ty * {number(1, 3)} < k", "True"]
    pick = lambda: draw(st.sampled_from(guards))  # noqa: E731
    if draw(st.booleans()):
        loop, step = f"for p in range({number(0, 2)}, k, {advance}):", ""
    else:
        loop, step = "p = 0\n    while p < k:", f"        p += {advance}"
    strides = [draw(st.sampled_from([0, 1, 2, 3, 8, 31, 32, 33, 217])) for _ in range(3)]
    source = TEMPLATE.format(
        thread=", ".join(axis(f"threadIdx.{name}") for name in "xyz"),
        block_row=axis("blockIdx.y"),
        block_col=axis("blockIdx.x"),
        height=block[1],
        width=block[0],
        depth=block[2],
        loop=loop,
        step=step,
        guard=pick(),
        other_guard=pick(),
        matrix_guard=pick(),
        index=f"row * {strides[0]} + col * {strides[1]} + p * {strides[2]} + deep + {number(0, 9)}",
        slot=f"(tz * {block[1]} + ty) * {number(1, 3) * block[0]} + tx * {number(1, 2)} + {number(0, 5)}",
        read=f"tx * {number(0, 5)} + ty * {number(0, 33)}"
        + draw(st.sampled_from(["", " + p * 4", f" + (p // {advance}) % 2 * 32"])),
        matrix_row="p + ty % 8",
        matrix_col=draw(st.sampled_from(["col", "row", "tx", "col % 8 + tx"])),
    )
    return AffineKernel(source, grid, block, size, number(400, 430))


@settings(max_examples=examples(34, one_in=2), deadline=None, suppress_health_check=list(HealthCheck))
@given(affine_kernels())
def test_affine_kernels(tmp_path_factory, affine):
    check_counts_only(
        affine.load(tmp_path_factory.getbasetemp()),
        affine.grid,
        affine.block,
        affine.args(lambda shape: np.zeros(shape, np.float32)),
        affine.args(lambda shape: np.broadcast_to(np.float32(0), shape)),
        source=f"{affine}\n{affine.source}",
    )


def test_kernels_that_depend_on_data_are_refused_with_a_reason():
    from lockstep_tests.corpus import cases

    case = cases("sound")["collatz_loops_as_long_as_the_data_say"]
    with pytest.raises(EmulatorError, match="data"):
        emulate(case.kernel, case.grid, case.block, *case.make_args(), counts_only=True)


@cuda.jit
def compares_a_chain_of_data(x, out):
    i = cuda.grid(1)
    if 0 < x[i] <= x[i + 1] < x[0]:
        out[i] = 1


def test_a_chain_of_comparisons_of_data_is_refused_with_a_reason():
    x = np.broadcast_to(np.float32(0), (64,))
    with pytest.raises(DataDependent, match="depends on loaded data"):
        emulate(compares_a_chain_of_data, 1, 32, x, x, counts_only=True)


def test_what_is_counted_has_a_key_with_names():
    def kernel(x):
        tile = cuda.shared.array(32, float32)
        tile[cuda.threadIdx.x] = x[cuda.threadIdx.x] + x[cuda.threadIdx.x]
        cuda.syncthreads()

    tallies = emulate(kernel, 1, 32, np.zeros(32, np.float32))._tallies
    assert {(what.space, what.array, what.op, what.bits) for what in tallies.accesses} == {
        ("global", "x", "load", 32),
        ("shared", "tile", "store", 32),
    }
    assert [(what.op, what.dtype) for what in tallies.arithmetic] == [("add", "f")]
