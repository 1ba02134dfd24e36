"""Every formula of documents 002, 003 and 004, compared with the emulator's counts and trace over tile sizes.

Block (1, 1) of a grid of 3 by 2 is watched. Each formula is evaluated for all threads, and for all steps that
it concerns; what the kernels do is read from the emulator's record.
"""

from collections import defaultdict
from functools import cache, cached_property
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course.checks.kits import document_002
from gemm_course.kernels import LADDER
from gemm_course.model.formulas import FORMULAS
from gemm_course.model.formulas import document_002 as d2
from gemm_course.model.formulas import document_003 as d3
from gemm_course.model.formulas import document_004 as d4
from lockstep import Watch, emulate
from lockstep.intrinsics import load4

BLOCK = (1, 1)  # (x, y) of the block that is watched
ACROSS, DOWN, DEEP = 3, 2, 2  # blocks along x and y, tiles along k

GRID = {
    "naive_uncoalesced": [{"BM": 8, "BN": 4}, {"BM": 2, "BN": 16}],
    "naive_coalesced": [{"BM": 8, "BN": 4}, {"BM": 2, "BN": 16}],
    "penny_xu_tile": [{"BM": T, "BN": T, "BK": T} for T in (2, 3, 4, 8)],
    "block_tiled": [
        {"BM": 8, "BN": 16, "BK": 16},
        {"BM": 4, "BN": 8, "BK": 32},
        {"BM": 16, "BN": 8, "BK": 16},
    ],
    "thread_tiled_1d": [
        {"BM": 16, "BN": 16, "BK": 8, "TM": 4},
        {"BM": 32, "BN": 8, "BK": 4, "TM": 8},
        {"BM": 32, "BN": 32, "BK": 16, "TM": 2},
    ],
    "thread_tiled_2d": [
        {"BM": 16, "BN": 16, "BK": 8, "TM": 4, "TN": 2},
        {"BM": 32, "BN": 16, "BK": 4, "TM": 4, "TN": 4},
        {"BM": 16, "BN": 32, "BK": 8, "TM": 2, "TN": 4},
    ],
    "vectorized": [
        {"BM": 32, "BN": 32, "BK": 8, "TM": 4, "TN": 4, "PAD": 0},
        {"BM": 32, "BN": 64, "BK": 16, "TM": 8, "TN": 4, "PAD": 4},
        {"BM": 64, "BN": 32, "BK": 8, "TM": 4, "TN": 8, "PAD": 4},
    ],
    "warp_tiled_tm1": [
        {"BM": 32, "BN": 64, "BK": 8, "WM": 32, "WN": 32, "TM": 1, "TN": 8, "WNITER": 1},
        {"BM": 64, "BN": 32, "BK": 16, "WM": 32, "WN": 16, "TM": 1, "TN": 4, "WNITER": 2},
        {"BM": 32, "BN": 64, "BK": 8, "WM": 16, "WN": 64, "TM": 1, "TN": 4, "WNITER": 4},
    ],
    "warp_tiled": [
        {"BM": 32, "BN": 64, "BK": 8, "WM": 32, "WN": 32, "TM": 4, "TN": 8, "PAD": 0},
        {"BM": 64, "BN": 32, "BK": 8, "WM": 32, "WN": 32, "TM": 8, "TN": 4, "PAD": 4},
        {"BM": 64, "BN": 64, "BK": 8, "WM": 64, "WN": 32, "TM": 8, "TN": 8, "PAD": 0},
    ],
    "wmma": [
        {"BM": 64, "BN": 64, "BK": 32, "WM": 32, "WN": 32, "PAD": 8},
        {"BM": 64, "BN": 64, "BK": 16, "WM": 32, "WN": 32, "PAD": 0},
        {"BM": 32, "BN": 128, "BK": 32, "WM": 16, "WN": 64, "PAD": 16},
    ],
}


class Run:
    """One launch of a kernel whose tiles divide the matrices, with the trace of one block."""

    def __init__(self, stage, tiles: dict):
        self.stage, self.tiles, self.t = stage, tiles, SimpleNamespace(**tiles)
        self.m, self.n, self.k = DOWN * tiles["BM"], ACROSS * tiles["BN"], DEEP * tiles.get("BK", 4)
        self.block, self.grid = stage.block(tiles), stage.grid(self.m, self.n, tiles)
        self.x, self.y = (*self.block, 1)[:2]
        self.threads = self.x * self.y

    @classmethod
    def of_kernel(cls, kernel, grid, block, like: "Run") -> "Run":
        """The launch of another kernel on the same problem."""
        made = cls(like.stage, like.tiles)
        made.kernel, made.grid, made.block = (lambda: kernel), grid, block
        return made

    def kernel(self):
        return self.stage.kernel(self.tiles)

    @cached_property
    def report(self):
        shapes = (self.m, self.k), (self.k, self.n), (self.m, self.n)
        A, B, C = (np.ones(shape, self.stage.dtype) for shape in shapes)
        numbers = self.m, self.n, self.k, np.float32(1), A, B, np.float32(0), C
        watch = Watch((*BLOCK, 0), limit=10**6, local=False)
        return emulate(self.kernel(), self.grid, self.block, *numbers, watch=watch)

    @property
    def fma(self) -> int:
        """Multiply-adds of the line that accumulates; some kernels scale their result with one as well."""
        return int(self.report.arithmetic.query("op == 'fma'").groupby("line")["lanes"].sum().max())

    @cached_property
    def _elements(self) -> dict:
        """(array, op) -> thread -> the elements it touches, in order; wide accesses by their first."""
        found = defaultdict(lambda: defaultdict(list))
        trace = self.report.trace
        for array, op, thread, element in zip(trace["array"], trace["op"], trace["thread"], trace["element"]):
            found[array, op][thread].append(tuple(element))
        return found

    def of_thread(self, array: str, op: str, tid: int) -> list:
        return self._elements[array, op][tid]

    def moved(self, space: str, op: str, *arrays: str) -> int:
        """Elements that all threads load or store, each element of a wide access counted."""
        rows = self.report.accesses
        rows = rows[(rows["space"] == space) & (rows["op"] == op)]
        rows = rows[rows["array"].isin(arrays)] if arrays else rows
        return int(rows["bytes"].sum()) // 4

    def ids(self):
        """(tid, (x, y)) of all threads of a block that has two dimensions."""
        return ((y * self.x + x, (x, y)) for y in range(self.y) for x in range(self.x))


@cache
def run_of(name: str, tiles: tuple) -> Run:
    return Run(LADDER[name], dict(tiles))


HELD: list[tuple[tuple[str, ...], str, object]] = []


def holds(stage: str, *names: str):
    """The decorated function compares these formulas with a Run of the stage."""

    def keep(function):
        HELD.append((names, stage, function))
        return function

    return keep


# ---- document 002 ----------------------------------------------------------------------------------------


@holds("penny_xu_tile", "002.threads", "002.blocks")
def one_thread_per_element(run):
    n, T = 6 * run.t.BM, run.t.BM
    grid, block = run.stage.grid(n, n, run.tiles), run.stage.block(run.tiles)
    assert np.prod(grid) == d2.blocks(n, T)
    assert np.prod(grid) * np.prod(block) == d2.threads(n)


@holds("penny_xu_tile", "002.without_tiling", "002.with_tiling", "002.reduction", "002.tiles")
def tiles_save_loads(run):
    T = run.t.BM
    naive = LADDER["naive_coalesced"]
    tiled, plain = _square(run.stage, run.tiles, T), _square(naive, {"BM": T, "BN": T}, T)
    n = 6 * T
    assert _loads(plain) == n * n * d2.loads_without_tiles(n)
    assert _loads(tiled) == n * n * d2.loads_with_tiles(n, T)
    assert _loads(plain) == d2.reduction(T) * _loads(tiled)
    assert tiled.barriers == 2 * d2.tiles_along_k(n, T) * d2.blocks(n, T)


@holds("penny_xu_tile", "002.row_col", "002.shareA", "002.shareB")
def what_a_thread_fetches_and_stores(run):
    T = run.t.BM
    for tid, (tx, ty) in run.ids():
        row, col = d2.element(*BLOCK, tx, ty, T)
        assert run.of_thread("C", "store", tid) == [(row, col)]
        flat_a = [r * run.k + c for r, c in run.of_thread("A", "load", tid)]
        flat_b = [r * run.n + c for r, c in run.of_thread("B", "load", tid)]
        assert flat_a == [d2.element_of_a(row, i, tx, run.k, T) for i in range(run.k // T)]
        assert flat_b == [d2.element_of_b(col, i, ty, run.n, T) for i in range(run.k // T)]


@holds("penny_xu_tile", "002.barriers")
def barriers_of_the_documents_own_kernel(run):
    n, T = 3 * run.t.BM, run.t.BM
    A, B, C = (np.ones((n, n), np.float32) for _ in range(3))
    numbers = n, n, n, np.float32(1), A, B, np.float32(0), C
    assert emulate(document_002(T), (3, 3), (T, T), *numbers).barriers == 9 * d2.barriers(n, T)


def _square(stage, tiles, T):
    n = 6 * T
    A, B, C = (np.ones((n, n), np.float32) for _ in range(3))
    launch = stage.kernel(tiles), stage.grid(n, n, tiles), stage.block(tiles)
    return emulate(*launch, n, n, n, np.float32(1), A, B, np.float32(0), C)


def _loads(report) -> int:
    return sum(report.total("lanes", space="global", op="load", array=array) for array in "AB")


# ---- document 003 ----------------------------------------------------------------------------------------

TM1 = "warp_tiled_tm1"


@holds(TM1, "003.block", "003.bkIdx")
def where_a_block_starts_and_how_many_iterations_it_takes(run):
    stored = [place for tid in range(run.threads) for place in run.of_thread("C", "store", tid)]
    assert min(stored) == d3.corner_of_block(*BLOCK, run.t.BM, run.t.BN)
    blocks = int(np.prod(run.grid))
    assert run.report.barriers == 2 * blocks * d3.iterations(run.k, run.t.BK)
    assert [d3.iterations(K, 8) for K in (1, 8, 9)] == [1, 1, 2]


@holds(TM1, "003.innerA", "003.rowStrideA", "003.load_A", "003.As")
def how_a_is_fetched_and_transposed(run):
    t, corner = run.t, d3.corner_of_block(*BLOCK, run.t.BM, run.t.BN)
    stride = d3.row_stride_a(run.threads, t.BK)
    for tid in range(run.threads):
        row, group = d3.inner_a(tid, t.BK)
        loads, stores = run.of_thread("A", "load", tid), run.of_thread("As", "store", tid)
        assert loads[0] == (corner[0] + row, 4 * group)
        assert [r for r, _ in loads[: t.BM // stride]] == list(range(loads[0][0], corner[0] + t.BM, stride))
        offsets = range(0, t.BM, stride)
        first = [r * run.k + c - corner[0] * run.k for r, c in loads[: len(offsets)]]
        assert first == [d3.load_a(tid, offset, run.k, t.BK) for offset in offsets]
        flat = [p * t.BM + i for p, i in stores[: 4 * len(offsets)]]
        assert flat == [d3.scatter_as(tid, o, e, t.BM, t.BK) for o in offsets for e in range(4)]


@holds(TM1, "003.innerB", "003.rowStrideB", "003.load_B", "003.Bs")
def how_b_is_fetched(run):
    t, corner = run.t, d3.corner_of_block(*BLOCK, run.t.BM, run.t.BN)
    offsets = range(0, t.BK, d3.row_stride_b(run.threads, t.BN))
    for tid in range(run.threads):
        row, group = d3.inner_b(tid, t.BN)
        loads, stores = run.of_thread("B", "load", tid), run.of_thread("Bs", "store", tid)
        assert loads[0] == (row, corner[1] + 4 * group)
        first = [r * run.n + c - corner[1] for r, c in loads[: len(offsets)]]
        assert first == [d3.load_b(tid, offset, run.n, t.BN) for offset in offsets]
        assert len(loads) == DEEP * len(offsets)
        flat = [p * t.BN + j for p, j in stores[: len(offsets)]]
        assert flat == [d3.place_in_bs(tid, offset, t.BN) for offset in offsets]


@holds(TM1, "003.warp", "003.lane", "003.WMITER", "003.WSUB", "003.C_interim", "003.i")
def who_owns_which_element(run):
    t = run.t
    down, (high, wide) = d3.wmiter(t.WM, t.WN, 1, t.TN, t.WNITER), d3.wsub(t.WM, t.WN, 1, t.TN, t.WNITER)
    top, left = d3.corner_of_block(*BLOCK, t.BM, t.BN)
    assert (down * high, t.WNITER * wide) == (t.WM, t.WN)
    for tid in range(run.threads):
        stores = run.of_thread("C", "store", tid)
        rows, starts = sorted({r for r, _ in stores}), sorted({c for _, c in stores})
        warp_row, warp_col = d3.warp(tid, t.BN, t.WN)
        lane_row, lane_col = d3.lane(tid, t.TN, wide)
        assert rows == [top + warp_row * t.WM + i * high + lane_row for i in range(down)]
        at = left + warp_col * t.WN + lane_col * t.TN
        assert starts == sorted(at + j * wide + e for j in range(t.WNITER) for e in range(0, t.TN, 4))
        for i in range(down):
            for j in range(t.WNITER):
                for e in range(0, t.TN, 4):
                    order = d3.result(i, 0, j, e, 1, t.TN, t.WNITER) // 4
                    row, col = d3.element(tid, i, j, e, t.BN, t.WM, t.WN, t.TN, t.WNITER)
                    assert stores[order] == (top + row, left + col)


@holds(TM1, "003.regM", "003.regN", "003.reads")
def what_a_thread_reads_into_registers(run):
    t = run.t
    down = d3.wmiter(t.WM, t.WN, 1, t.TN, t.WNITER)
    sizes = t.WM, t.WN, t.TN, t.WNITER
    for tid in range(run.threads):
        of_a = [p * t.BM + i for p, i in run.of_thread("As", "load", tid)]
        of_b = [p * t.BN + j for p, j in run.of_thread("Bs", "load", tid)]
        steps = [p for _ in range(DEEP) for p in range(t.BK)]
        assert of_a == [d3.reg_m(tid, p, i, t.BM, t.BN, *sizes) for p in steps for i in range(down)]
        expected = [(j, e) for j in range(t.WNITER) for e in range(t.TN)]
        assert of_b == [d3.reg_n(tid, p, j, e, t.BN, *sizes) for p in steps for j, e in expected]
        assert len(of_a) + len(of_b) == len(steps) * d3.reads(*sizes)


# ---- document 004: v00, v01 ------------------------------------------------------------------------------


@cuda.jit
def document_v01(m, n, k, alpha, A, B, beta, C):
    """The document's launch, with blockIdx.x along the columns; the course's stage swaps the two."""
    col, row = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = alpha * acc


@holds("naive_uncoalesced", "004.v00_element", "004.v00_grid", "004.naive_loads", "004.flops")
def v00(run):
    block_dim = run.x, run.y
    for more in (0, 1, -1):
        m, n = run.m + more, run.n - more
        assert run.stage.grid(m, n, run.tiles) == d4.v00_grid(m, n, block_dim)
    for tid, thread in run.ids():
        assert run.of_thread("C", "store", tid) == [d4.v00_element(BLOCK, thread, block_dim)]
    assert run.moved("global", "load", "A", "B") == d4.naive_loads(run.m, run.n, run.k)
    assert 2 * run.fma == d4.flops(run.m, run.n, run.k)


@holds("naive_coalesced", "004.v01_element", "004.v01_grid", "004.naive_loads", "004.flops")
def v01(run):
    block_dim = run.x, run.y
    found = Run.of_kernel(document_v01, d4.v01_grid(run.m, run.n, block_dim), block_dim, run)
    for tid, thread in run.ids():
        assert found.of_thread("C", "store", tid) == [d4.v01_element(BLOCK, thread, block_dim)]
    stored = found.report.total("lanes", space="global", op="store")
    assert stored == run.m * run.n
    for each in (found, run):
        assert each.moved("global", "load", "A", "B") == d4.naive_loads(run.m, run.n, run.k)
        assert 2 * each.fma == d4.flops(run.m, run.n, run.k)


# ---- document 004: v02 to v04 ----------------------------------------------------------------------------

TILED = ("block_tiled", "thread_tiled_1d", "thread_tiled_2d", "vectorized", "warp_tiled")


def holds_for_tiled(*names):
    def keep(function):
        for stage in TILED:
            holds(stage, *names)(function)
        return function

    return keep


@holds_for_tiled("004.blocks", "004.v01_grid", "004.tiled_loads", "004.tiles_along_k", "004.flops")
def tiles_are_fetched_once_per_block(run):
    t, sizes = run.t, (run.m, run.n, run.k)
    assert run.moved("global", "load", "A", "B") == d4.tiled_loads(*sizes, t.BM, t.BN)
    assert run.report.barriers == 2 * d4.tiles_along_k(run.k, t.BK) * d4.blocks(run.m, run.n, t.BM, t.BN)
    assert 2 * run.fma == d4.flops(*sizes)
    for more in (0, 1, -1):
        m, n = run.m + more, run.n - more
        assert run.stage.grid(m, n, run.tiles) == d4.v01_grid(m, n, (t.BN, t.BM))
        assert np.prod(run.stage.grid(m, n, run.tiles)) == d4.blocks(m, n, t.BM, t.BN)


@holds_for_tiled("004.tiles_along_k")
def the_last_tile_may_be_short(run):
    t = run.t
    m, n, k = t.BM, t.BN, t.BK + 4
    A, B, C = np.ones((m, k), np.float32), np.ones((k, n), np.float32), np.zeros((m, n), np.float32)
    one, zero = np.float32(1), np.float32(0)
    report = emulate(run.kernel(), (1, 1), run.stage.block(run.tiles), m, n, k, one, A, B, zero, C)
    assert report.barriers == 2 * d4.tiles_along_k(k, t.BK)


@holds("block_tiled", "004.A_iterations", "004.B_iterations", "004.A_tile_idx", "004.B_tile_idx")
@holds("block_tiled", "004.A_idx", "004.B_idx")
def v02_fetches(run):
    _fetches_by_ones(run)


@holds("thread_tiled_1d", "004.A_iterations", "004.B_iterations", "004.A_tile_idx", "004.B_tile_idx")
def v03_fetches(run):
    _fetches_by_ones(run)


@holds("thread_tiled_2d", "004.A_iterations", "004.B_iterations", "004.A_tile_idx", "004.B_tile_idx")
def v04_fetches(run):
    _fetches_by_ones(run)


def _fetches_by_ones(run):
    t, threads = run.t, run.threads
    count_a, count_b = (
        d4.iterations_for_a(t.BM, t.BK, threads),
        d4.iterations_for_b(t.BK, t.BN, threads),
    )
    for tid in range(threads):
        in_a = [d4.place_in_a_tile(tid, i, threads, t.BK) for i in range(count_a)]
        in_b = [d4.place_in_b_tile(tid, i, threads, t.BN) for i in range(count_b)]
        _fetched(run, tid, in_a, in_b)
        assert run.of_thread("As", "store", tid) == DEEP * in_a
        assert run.of_thread("Bs", "store", tid) == DEEP * in_b


def _fetched(run, tid, in_a, in_b):
    """Check the loads from global memory: tile after tile, just the elements that belong at these places."""
    t, (x, y) = run.t, BLOCK
    of_a = [d4.element_of_a(y, tile, place, t.BM, t.BK) for tile in range(DEEP) for place in in_a]
    of_b = [d4.element_of_b(x, tile, place, t.BN, t.BK) for tile in range(DEEP) for place in in_b]
    assert run.of_thread("A", "load", tid) == of_a
    assert run.of_thread("B", "load", tid) == of_b


@holds("block_tiled", "004.v02_threads", "004.v02_reads")
def v02_reads(run):
    t = run.t
    assert run.threads == d4.v02_threads(t.BM, t.BN)
    results = run.m * run.n
    assert run.moved("shared", "load") == results * DEEP * d4.v02_reads(t.BK)


@holds("thread_tiled_1d", "004.v03_threads", "004.v03_reads", "004.v03_reads_per_result")
@holds("thread_tiled_1d", "004.v03_element", "004.v03_A_read")
def v03(run):
    t = run.t
    assert run.threads == d4.v03_threads(t.BM, t.BN, t.TM)
    all_threads, results = run.threads * ACROSS * DOWN, run.m * run.n
    assert run.moved("shared", "load") == all_threads * DEEP * d4.v03_reads(t.BK, t.TM)
    assert run.moved("shared", "load") == results * DEEP * d4.v03_reads_per_result(t.BK, t.TM)
    for tid in range(run.threads):
        elements = [d4.v03_element(BLOCK, tid, i, t.BM, t.BN, t.TM) for i in range(t.TM)]
        assert run.of_thread("C", "store", tid) == elements
        rows = [d4.v03_row_of_a(tid, i, t.BN, t.TM) for i in range(t.TM)]
        read = run.of_thread("As", "load", tid)
        assert read == [(row, p) for _ in range(DEEP) for p in range(t.BK) for row in rows]


@holds("thread_tiled_2d", "004.v04_threads", "004.v04_reads", "004.v04_reads_per_result", "004.v04_element")
def v04(run):
    t = run.t
    _holds_2d(run)
    for tid in range(run.threads):
        places = [(i, j) for i in range(t.TM) for j in range(t.TN)]
        elements = [d4.v04_element(BLOCK, tid, i, j, t.BM, t.BN, t.TM, t.TN) for i, j in places]
        assert run.of_thread("C", "store", tid) == elements


def _holds_2d(run):
    t = run.t
    assert run.threads == d4.v04_threads(t.BM, t.BN, t.TM, t.TN)
    all_threads, results = run.threads * ACROSS * DOWN, run.m * run.n
    assert run.moved("shared", "load") == all_threads * DEEP * d4.v04_reads(t.BK, t.TM, t.TN)
    assert run.moved("shared", "load") == results * DEEP * d4.v04_reads_per_result(t.BK, t.TM, t.TN)


# ---- document 004: v05, v06 ------------------------------------------------------------------------------


@holds("vectorized", "004.v04_threads", "004.v04_reads", "004.v04_reads_per_result", "004.v04_element")
def v05(run):
    t = run.t
    _holds_2d(run)
    for tid in range(run.threads):
        places = [(i, j) for i in range(t.TM) for j in range(0, t.TN, 4)]
        elements = [d4.v04_element(BLOCK, tid, i, j, t.BM, t.BN, t.TM, t.TN) for i, j in places]
        assert run.of_thread("C", "store", tid) == elements


@holds(
    "vectorized", "004.v05_A_iterations", "004.v05_B_iterations", "004.v05_A_tile_idx", "004.v05_B_tile_idx"
)
@holds("vectorized", "004.A_idx", "004.B_idx")
def v05_fetches(run):
    _fetches_by_fours(run)


@holds(
    "warp_tiled", "004.v05_A_iterations", "004.v05_B_iterations", "004.v05_A_tile_idx", "004.v05_B_tile_idx"
)
def v06_fetches(run):
    _fetches_by_fours(run)


def _fetches_by_fours(run):
    t, threads = run.t, run.threads
    count_a, count_b = (
        d4.v05_iterations_for_a(t.BM, t.BK, threads),
        d4.v05_iterations_for_b(t.BK, t.BN, threads),
    )
    for tid in range(threads):
        in_a = [d4.v05_place_in_a_tile(tid, i, threads, t.BK) for i in range(count_a)]
        in_b = [d4.v05_place_in_b_tile(tid, i, threads, t.BN) for i in range(count_b)]
        _fetched(run, tid, in_a, in_b)
        transposed = [(column + e, row) for row, column in in_a for e in range(4)]
        assert run.of_thread("As", "store", tid) == DEEP * transposed
        assert run.of_thread("Bs", "store", tid) == DEEP * in_b


@holds("vectorized", "004.alignment")
def padded_rows_are_aligned(run):
    for pad in range(6):
        width = run.t.BM + pad

        @cuda.jit
        def second_row(out):
            As = cuda.shared.array((2, width), float32, 16)  # noqa: B023
            if cuda.threadIdx.x == 0:
                for i in range(4):
                    As[1, i] = 0
                out[0] = load4(As, (1, 0))[0]

        findings = emulate(second_row, 1, 32, np.zeros(1, np.float32)).findings
        misaligned = any(finding.kind == "misaligned_access" for finding in findings)
        assert d4.rows_are_aligned(run.t.BM, pad) is not misaligned


def _as_in_the_document(run):
    """The document's sizes for the course's stage: a thread tile is 4 by 4, and the lanes repeat it."""
    t = run.t
    return SimpleNamespace(**(run.tiles | {"TM": 4, "TN": 4, "X": t.WN // t.TN, "Y": t.WM // t.TM}))


@holds("warp_tiled", "004.v06_lanes", "004.v06_warps", "004.v06_threads", "004.v06_tiles_per_warp")
def v06_sizes(run):
    d = _as_in_the_document(run)
    assert d4.v06_lanes(d.X, d.Y) and not d4.v06_lanes(2 * d.X, d.Y)
    assert run.threads == d4.v06_threads(d.BM, d.BN, d.WM, d.WN, d.X, d.Y)
    assert run.threads == 32 * np.prod(d4.v06_warps(d.BM, d.BN, d.WM, d.WN))
    down, across = d4.v06_thread_tiles(d.WM, d.WN, d.TM, d.TN, d.X, d.Y)
    for tid in range(run.threads):
        stores = run.of_thread("C", "store", tid)
        assert (len({c for _, c in stores}), len({r for r, _ in stores})) == (across, 4 * down)


@holds("warp_tiled", "004.v06_warp_idx", "004.v06_lane_idx", "004.v06_A_read", "004.v06_B_read")
@holds("warp_tiled", "004.v06_reads", "004.v06_owner")
def v06_reads_and_owners(run):
    d = _as_in_the_document(run)
    down, across = d4.v06_thread_tiles(d.WM, d.WN, d.TM, d.TN, d.X, d.Y)
    for tid in range(run.threads):
        rows = [d4.v06_row_of_a(tid, i, d.BN, d.WM, d.WN, d.TM, d.X, d.Y) for i in range(down)]
        columns = [d4.v06_column_of_b(tid, j, d.BN, d.WN, d.TN, d.X) for j in range(across)]
        steps = [p for _ in range(DEEP) for p in range(d.BK)]
        read_a, read_b = run.of_thread("As", "load", tid), run.of_thread("Bs", "load", tid)
        assert read_a == [(p, row + e) for p in steps for row in rows for e in range(4)]
        assert read_b == [(p, column + e) for p in steps for column in columns for e in range(4)]
        per_step = d4.v06_reads(d.WM, d.WN, d.TM, d.TN, d.X, d.Y)
        assert len(read_a) + len(read_b) == len(steps) * per_step
        warp_row, warp_col = d4.v06_warp(tid, d.BN, d.WN)
        for row, col in run.of_thread("C", "store", tid):
            within = row - BLOCK[1] * d.BM - warp_row * d.WM, col - BLOCK[0] * d.BN - warp_col * d.WN
            assert 0 <= within[0] < d.WM and 0 <= within[1] < d.WN
            assert d4.v06_owner(within[0] // 4, within[1] // 4, d.X, d.Y) == d4.v06_lane(tid, d.X)


# ---- document 004: v07 -----------------------------------------------------------------------------------


@holds("wmma", "004.v07_threads", "004.v07_tiles", "004.v07_mma", "004.tiles_along_k", "004.blocks")
def v07_sizes(run):
    t = run.t
    assert run.threads == d4.v07_threads(t.BM, t.BN, t.WM, t.WN)
    steps = d4.tiles_along_k(run.k, t.BK) * d4.blocks(run.m, run.n, t.BM, t.BN)
    products = steps * run.threads // 32 * d4.v07_products(t.WM, t.WN, t.BK)
    assert 2 * products == d4.flops(run.m, run.n, run.k)
    assert int(run.report.arithmetic.query("op == 'mma'")["lanes"].sum()) == products


@holds("wmma", "004.v07_A_fragment", "004.v07_B_fragment", "004.v07_C", "004.v07_tiles")
def v07_fragments(run):
    t = run.t
    down, across, deep = d4.v07_fragments(t.WM, t.WN, t.BK)
    for warp in range(run.threads // 32):
        place = d4.v06_warp(32 * warp, t.BN, t.WN)
        steps = [step for _ in range(DEEP) for step in range(deep)]
        of_a = [d4.v07_place_in_as(place[0], i, step, t.WM) for step in steps for i in range(down)]
        of_b = [d4.v07_place_in_bs(place[1], j, step, t.WN) for step in steps for j in range(across)]
        assert _corners(run, "As", "load", warp) == of_a
        assert _corners(run, "Bs", "load", warp) == of_b
        fragments = [(i, j) for i in range(down) for j in range(across)]
        of_c = [d4.v07_element(BLOCK, place, i, j, t.BM, t.BN, t.WM, t.WN) for i, j in fragments]
        assert _corners(run, "C", "store", warp) == of_c


def _corners(run, array, op, warp) -> list:
    """The first element of each request of a warp, in order."""
    trace = run.report.trace
    rows = trace[(trace["array"] == array) & (trace["op"] == op) & (trace["warp"] == warp)]
    return [min(group) for _, group in rows.groupby("step")["element"]]


# ---- all of them -----------------------------------------------------------------------------------------


CASES = [
    pytest.param(function, stage, tiles, id=f"{function.__name__}-{stage}-{number}")
    for stage, function in dict.fromkeys((stage, function) for _, stage, function in HELD)
    for number, tiles in enumerate(GRID[stage])
]


@pytest.mark.many(one_in=9, with_all=2)
@pytest.mark.parametrize(("function", "stage", "tiles"), CASES)
def test_the_formulas_are_what_the_emulator_counts(function, stage, tiles):
    function(run_of(stage, tuple(sorted(tiles.items()))))


def test_every_formula_is_compared_with_the_emulator():
    assert {name for names, _, _ in HELD for name in names} == set(FORMULAS)


@pytest.mark.parametrize("stage", GRID)
def test_the_grid_has_several_tile_sizes_and_all_are_legal(stage):
    assert len(GRID[stage]) >= 2
    assert not [tiles for tiles in GRID[stage] if LADDER[stage].rules(tiles)]


def test_every_formula_says_its_document_and_place():
    for found in FORMULAS.values():
        assert found.document in ("002", "003", "004") and len(found.place) > 8
        assert found.function.__module__.endswith(found.document)
