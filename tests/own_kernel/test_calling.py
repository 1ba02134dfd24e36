"""A stage of one's own called on other libraries' arrays: on fakes in this machine's memory, and on a GPU."""

import numpy as np
import pytest

from gemm_course import own
from gemm_course.own_kernel import calling
from lockstep import emulate
from tests.own_kernel.edits import new_file


class Fake:
    """An array "on a GPU", which lies in this machine's memory, as CuPy and PyTorch describe theirs."""

    def __init__(self, values: np.ndarray):
        self.values = values

    @property
    def __cuda_array_interface__(self):
        strides = None if self.values.flags.c_contiguous else self.values.strides
        about = self.values.__array_interface__
        return {
            "data": about["data"],
            "shape": about["shape"],
            "typestr": about["typestr"],
            "strides": strides,
            "version": 3,
        }


class InMemory:
    """What NumPy reads as an array at a place in memory."""

    def __init__(self, memory):
        self.__array_interface__ = {
            "data": (memory.pointer, False),
            "shape": memory.whole_rows,
            "typestr": memory.dtype.str,
            "version": 3,
        }


@pytest.fixture
def queued(monkeypatch):
    """Launches go to the emulator; -> the streams that they were queued on."""
    streams = []

    def queue(launches, stream):
        streams.append(stream)
        for each in launches:
            report = emulate(each.kernel, each.grid, each.block, *each.arguments)
            assert not report.errors

    monkeypatch.setattr(calling, "_queue", queue)
    monkeypatch.setattr(calling, "device_array", lambda memory: np.asarray(InMemory(memory)))
    return streams


@pytest.fixture
def fused(tmp_path):
    return own(new_file(tmp_path, "three_fused"))


def matrices(m=19, n=37, k=7):
    random = np.random.default_rng(3)
    return [random.standard_normal(size, dtype=np.float32) for size in ((m, k), (k, n), (n,), (m, n))]


def test_results_are_written_into_the_callers_memory(fused, queued):
    A, B, bias, C = matrices()
    out, old = Fake(C), C.copy()
    assert fused(Fake(A), Fake(B), out=out, alpha=2.0, beta=0.5, bias=Fake(bias)) is out
    assert np.allclose(C, np.maximum(2 * A @ B + 0.5 * old + bias, 0), atol=1e-4)
    assert queued == [0]


def test_rows_may_lie_apart(fused, queued):
    A, B, bias, C = matrices()
    wide = np.full((len(C), 50), np.nan, np.float32)
    fused(Fake(A), Fake(B), out=Fake(wide[:, :37]), bias=Fake(bias))
    assert np.allclose(wide[:, :37], np.maximum(A @ B + bias, 0), atol=1e-4)
    assert np.isnan(wide[:, 37:]).all()


def _with(changes):
    A, B, bias, C = matrices()
    return {"A": A, "B": B, "bias": bias, "out": C} | changes(A, B, bias, C)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (lambda A, B, bias, C: {"A": A.astype(np.float64)}, "A holds float64"),
        (lambda A, B, bias, C: {"A": np.ascontiguousarray(A.T).T}, "transposed matrix"),
        (lambda A, B, bias, C: {"B": B[:-1]}, "A has 7 columns and B has 6 rows"),
        (lambda A, B, bias, C: {"A": bias}, "two axes"),
        (lambda A, B, bias, C: {"bias": bias[:-1]}, r"bias is \(36,\); it must be \(37,\)"),
        (lambda A, B, bias, C: {"out": C[:-1]}, r"out is \(18, 37\); it must be \(19, 37\)"),
    ],
)
def test_what_does_not_fit_is_said_before_anything_runs(fused, queued, changes, said):
    given = {name: Fake(values) for name, values in _with(changes).items()}
    with pytest.raises(ValueError, match=said):
        fused(given["A"], given["B"], out=given["out"], bias=given["bias"])
    assert not queued


def test_arrays_that_lie_elsewhere_are_refused(fused, queued):
    A, B, bias, C = matrices()
    with pytest.raises(ValueError, match="must all be on one GPU"):
        fused(Fake(A), B.tolist(), out=Fake(C), bias=Fake(bias))
    with pytest.raises(ValueError, match=r"takes bias=\.\.\. beside A, B and out; nothing was given"):
        fused(Fake(A), Fake(B), out=Fake(C))
    with pytest.raises(ValueError, match="beta is 1, so out is read"):
        fused(Fake(A), Fake(B), beta=1.0, bias=Fake(bias))


def test_rows_must_begin_where_the_kernel_can_read_them(tmp_path, queued):
    wide = own(new_file(tmp_path, "mine", "vectorized"))
    A, B, _, C = matrices(8, 8, 7)
    with pytest.raises(ValueError, match="each row of A must begin at a multiple of 16 bytes"):
        wide(Fake(A), Fake(B), out=Fake(C))


# ---- on a GPU ----------------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_from_pytorch_on_its_current_stream(fused):
    torch = pytest.importorskip("torch")
    A, B, C = (torch.randn(256, 256, device="cuda") for _ in range(3))
    bias = torch.randn(256, device="cuda")
    right = torch.relu(A.double() @ B.double() + bias.double())
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        place = C.data_ptr()
        assert fused(A, B, out=C, bias=bias) is C
        twice = C * 2  # ordered after the kernel only on the same stream
    torch.cuda.synchronize()
    assert C.data_ptr() == place
    assert torch.allclose(C.double(), right, atol=1e-3)
    assert torch.allclose(twice.double(), 2 * right, atol=2e-3)
    new = fused(A, B, bias=bias)
    assert isinstance(new, torch.Tensor) and torch.equal(new, C)
    with pytest.raises(ValueError, match=r"pass A.detach\(\)"):
        fused(A.requires_grad_(), B, bias=bias)


@pytest.mark.gpu
def test_from_cupy_on_its_current_stream(fused):
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Stream(non_blocking=True):
        A, B = (cupy.random.standard_normal((100, 100), dtype=cupy.float32) for _ in range(2))
        bias = cupy.random.standard_normal(100, dtype=cupy.float32)
        C = fused(A, B, bias=bias)
        assert isinstance(C, cupy.ndarray)
        right = cupy.maximum(A.astype(float) @ B.astype(float) + bias, 0)
        assert float(abs(C - right).max()) < 1e-3


class OnlyDlpack:
    """An array with nothing but DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.gpu
def test_by_dlpack(fused):
    cupy = pytest.importorskip("cupy")
    A, B, bias = (cupy.ones(size, cupy.float32) for size in ((8, 8), (8, 8), (8,)))
    C = cupy.empty((8, 8), cupy.float32)
    fused(OnlyDlpack(A), OnlyDlpack(B), out=OnlyDlpack(C), bias=OnlyDlpack(bias))
    cupy.cuda.Device().synchronize()
    assert (C == 9).all()
