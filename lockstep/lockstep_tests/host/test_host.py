"""The host side of numba.cuda, as programs use it. What is expected is numba-cuda's documentation."""

import asyncio
import math
from collections import namedtuple

import numpy as np
import pytest
from numba import complex128, cuda, float32, float64, int64, types
from numba.cuda.cudadrv.driver import CudaAPIError

from lockstep import KernelRaised, LaunchError, UnsupportedKernel, emulated
from lockstep.host.errors import CUDAError, UnsupportedCall


@pytest.fixture(autouse=True)
def session():
    with emulated() as session:
        yield session


def ramp(*shape, dtype=np.float32):
    return np.arange(math.prod(shape), dtype=dtype).reshape(shape)


def launched():
    kernel = add_one()
    kernel[1, 32](ramp(32))
    return kernel


def add_one():
    @cuda.jit
    def kernel(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] += 1

    return kernel


# --- launches -----------------------------------------------------------------------------------------------


def test_a_host_array_is_copied_there_and_back():
    x = ramp(100)
    add_one()[4, 32](x)
    assert (x == ramp(100) + 1).all()


def test_a_host_array_passed_twice_is_two_arrays_on_the_device():
    @cuda.jit
    def shifted(x, out):
        i = cuda.grid(1)
        if i > 0:
            out[i] = x[i - 1]

    x = ramp(32)
    shifted[1, 32](x, x)
    assert (x[1:] == ramp(32)[:-1]).all()


def test_hints_say_what_is_copied():
    x, y, z = ramp(32), ramp(32), ramp(32)
    kernel = add_one()
    kernel[1, 32](cuda.In(x))
    assert (x == ramp(32)).all()
    kernel[1, 32](cuda.Out(y))
    assert np.isnan(y).all(), "the kernel got garbage, and added to it"
    kernel[1, 32](cuda.InOut(z))
    assert (z == ramp(32) + 1).all()


def test_extensions_change_arguments():
    class OnlyIn:
        @staticmethod
        def prepare_args(kind, value, stream, retr):
            return kind, cuda.In(value)

    x, y, kernel = ramp(32), ramp(32), add_one()
    kernel.extensions.append(OnlyIn)
    kernel[1, 32](x)
    cuda.jit(kernel.py_func, extensions=[OnlyIn])[1, 32](y)
    assert (x == ramp(32)).all() and (y == ramp(32)).all()


def test_the_array_is_unchanged_where_the_kernel_is_refused():
    @cuda.jit
    def refused(x):
        x[cuda.grid(1)] = open("file")

    x = ramp(32)
    with pytest.raises(LaunchError):
        add_one()[1, 2048](x)
    with pytest.raises(Exception, match="open"):
        refused[1, 32](x)
    assert (x == ramp(32)).all()


@pytest.mark.parametrize(
    "configuration", [(2, 32), ((2,), (32,)), ((2, 1), (32, 1)), (2, 32, 0), (2, 32, 0, 0)]
)
def test_forms_of_a_configuration(configuration):
    x = ramp(64)
    add_one()[configuration](x)
    assert (x == ramp(64) + 1).all()


@pytest.mark.parametrize(
    ("configuration", "kind"),
    [
        ((1,), ValueError),
        ((1, 2, 3, 4, 5), ValueError),
        ((1.5, 32), TypeError),
        (((1, 1, 1, 1), 32), ValueError),
        ((None, 32), ValueError),
        (32, TypeError),
        ((0, 32), CUDAError),
        ((1, 1025), CUDAError),
        ((1, (32, 33)), CUDAError),
        (((1, 70000), 32), CUDAError),
        ((1, 32, 0, 60_000), CUDAError),
    ],
)
def test_wrong_configurations_raise_numbas_kind_of_error(configuration, kind):
    x = ramp(64)
    with pytest.raises(kind) as refused:
        add_one()[configuration](x)
    assert len(str(refused.value)) > 20
    assert (x == ramp(64)).all()


@pytest.mark.parametrize("configuration", [([2], 32), (2, [32, 1])])
def test_lists_of_sizes_are_refused_as_numba_refuses_them(configuration):
    with pytest.raises(TypeError, match=r"^unhashable type: 'list': write a tuple, \((2,|32, 1)\), not"):
        add_one()[configuration](ramp(64))


def test_what_the_gpu_lacks_names_the_gpu():
    with pytest.raises(CUDAError, match="NVIDIA H200"):
        add_one()[1, 1025](ramp(8))


def test_a_kernel_without_a_configuration():
    with pytest.raises(ValueError, match="blocks, threads"):
        add_one()(ramp(8))


def test_the_number_of_arguments():
    with pytest.raises(TypeError, match="x"):
        add_one()[1, 32](ramp(8), ramp(8))


def test_gaps_between_elements_are_refused_as_numba_does():
    with pytest.raises(ValueError, match="contiguous"):
        add_one()[1, 32](ramp(64)[::2])


def test_a_read_only_array_is_not_written():
    x = ramp(32)
    x.flags.writeable = False
    with pytest.raises(TypeError, match="read-only"):
        add_one()[1, 32](x)


def test_forall_covers_all_tasks():
    x = cuda.to_device(ramp(1000))
    add_one().forall(1000)(x)
    add_one().forall(1000, tpb=64)(x)
    add_one().forall(0)(x)
    assert (x.copy_to_host() == ramp(1000) + 2).all()
    with pytest.raises(ValueError):
        add_one().forall(-1)


@pytest.mark.parametrize(("bounds", "threads"), [(None, 1024), (96, 96), ((128, 2), 128)])
def test_forall_takes_the_largest_block_that_the_kernel_may_have(session, bounds, threads):
    @cuda.jit(launch_bounds=bounds)
    def kernel(x):
        x[cuda.grid(1) % 1000] = 1

    x = ramp(1000)
    kernel.forall(1000)(x)
    assert session.launches[0].block == (threads, 1, 1) and (x == 1).all()
    assert kernel.get_max_threads_per_block() == {}
    kernel[1, 32](x)
    assert kernel.get_max_threads_per_block() == {kernel.signatures[0]: threads}
    assert kernel.specialize(x).get_max_threads_per_block() == threads


def test_tuples_of_numbers():
    Point = namedtuple("Point", "x y")

    @cuda.jit
    def summed(out, pair, point):
        out[0] = pair[0] + pair[1]

    out = np.zeros(1, np.int64)
    summed[1, 1](out, (3, 4), Point(1, 2))
    assert out[0] == 7


RATE, PRICES = 2.0, np.array([1.0, 2.0])


@pytest.mark.parametrize("closure", [False, True])
def test_numbers_and_arrays_outside_are_constants_from_the_first_launch_on(closure, monkeypatch):
    rate, prices = 2.0, np.array([1.0, 2.0])

    @cuda.jit
    def of_the_module(x):
        x[0] = RATE * PRICES[1]

    @cuda.jit
    def of_the_function(x):
        x[0] = rate * prices[1]

    kernel, x = of_the_function if closure else of_the_module, np.zeros(1)
    kernel[1, 1](x)
    assert x[0] == 4
    monkeypatch.setitem(globals(), "RATE", 3.0)
    monkeypatch.setitem(globals(), "PRICES", np.array([1.0, 5.0]))
    rate, prices[1] = 3.0, 5.0
    kernel[1, 1](x)
    assert x[0] == 4, "as Numba compiled it"
    y = np.zeros(1, np.float32)
    kernel[1, 1](y)
    assert y[0] == 15, "compiled anew for other types"


def test_a_kernel_that_calls_itself_is_refused():
    @cuda.jit
    def again(x):
        if x[0] < 3:
            x[0] += 1
            again(x)

    with pytest.raises(UnsupportedCall, match="calls itself"):
        again[1, 1](np.zeros(1))


def test_a_kernel_with_the_name_of_a_function_that_it_calls(monkeypatch):
    @cuda.jit
    def sqrt(x):
        x[0] = math.sqrt(x[0])

    monkeypatch.setitem(globals(), "sqrt", sqrt)
    x = np.full(1, 9.0)
    sqrt[1, 1](x)
    assert x[0] == 3


def test_dynamic_shared_memory():
    @cuda.jit
    def reversed_(x):
        tile = cuda.shared.array(0, np.float32)
        i = cuda.threadIdx.x
        tile[i] = x[i]
        cuda.syncthreads()
        x[i] = tile[31 - i]

    x = ramp(32)
    reversed_[1, 32, cuda.stream(), 128](x)
    assert (x == ramp(32)[::-1]).all()


# --- cuda.jit -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fastmath": True},
        {"max_registers": 32},
        {"debug": True, "opt": False},
        {"lineinfo": True},
        {"inline": "always", "cache": True, "lto": False},
        {"link": []},
    ],
)
def test_options(options):
    @cuda.jit(**options)
    def kernel(x):
        x[cuda.grid(1)] = 1

    x = ramp(32)
    kernel[1, 32](x)
    assert (x == 1).all()


def test_a_division_by_zero_with_debug():
    @cuda.jit(debug=True, opt=False)
    def kernel(x):
        x[0] = x[0] / x[1]

    with pytest.raises(KernelRaised, match="ZeroDivisionError"):
        kernel[1, 1](np.zeros(2))


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"link": ["file.cu"]}, NotImplementedError),
        ({"boundscheck": True}, NotImplementedError),
        ({"argtypes": ()}, TypeError),
        ({"no_such_option": 1}, KeyError),
    ],
)
def test_options_that_are_refused(options, kind):
    with pytest.raises(kind):
        cuda.jit(**options)(lambda x: None)


def test_a_pointer_is_an_address_of_device_memory():
    @cuda.jit(types.void(types.CPointer(types.uint8), types.uint32))
    def kernel(pixels, n):
        i = cuda.grid(1)
        if i < n:
            pixels[i] += 5

    there = cuda.to_device(np.arange(50, dtype=np.uint8))
    address = there.__cuda_array_interface__["data"][0]
    kernel[1, 64](address + 10, 20)
    expected = np.arange(50) + 5 * ((np.arange(50) >= 10) & (np.arange(50) < 30))
    assert there.copy_to_host().tolist() == expected.tolist()
    with pytest.raises(UnsupportedCall, match="not in the emulated GPU's memory"):
        kernel[1, 64](12, 20)


def test_a_function_with_a_signature_calls_itself_with_its_types():
    @cuda.jit("int64(int64, int64)", device=True)
    def product(n, first):
        return first if n < 1 else n * product(n - 1, 1)

    @cuda.jit("int64(int64)", device=True)
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    @cuda.jit
    def literal_inside(out):
        out[0] = product(out.size, 1)

    @cuda.jit
    def literal_outside(out):
        out[0] = factorial(5)

    with pytest.raises(UnsupportedKernel, match="product calls itself with the literal 1 as first"):
        literal_inside[1, 1](np.zeros(4))
    literal_outside[1, 1](out := np.zeros(4))
    assert out[0] == 120


def test_an_overload_tells_whether_its_blocks_meet():
    @cuda.jit
    def meets(x):
        cuda.cg.this_grid().sync()
        x[cuda.grid(1)] = 1

    meets[2, 4](ramp(8))
    (overload,) = meets.overloads.values()
    assert overload.cooperative and not next(iter(launched().overloads.values())).cooperative


def test_launch_bounds():
    @cuda.jit(launch_bounds=64)
    def kernel(x):
        x[cuda.grid(1)] = 1

    kernel[1, 64](ramp(64))
    with pytest.raises(CUDAError, match="64"):
        kernel[1, 128](ramp(128))
    with pytest.raises(ValueError):
        cuda.jit(launch_bounds=(1, 2, 3, 4))


def test_device_functions():
    @cuda.jit(device=True)
    def square(a):
        return a * a

    @cuda.jit("float32(float32)", device=True, inline=True)
    def half(a):
        return a / 2

    @cuda.jit
    def kernel(x):
        i = cuda.grid(1)
        x[i] = half(square(x[i]))

    x = ramp(32)
    kernel[1, 32](x)
    assert (x == ramp(32) ** 2 / 2).all()
    with pytest.raises(TypeError, match="device function"):
        square[1, 1](1)


@pytest.mark.parametrize("name", ["inspect_asm", "inspect_types", "get_regs_per_thread", "recompile"])
def test_compiled_code_is_refused_when_it_is_asked_for(name):
    method = getattr(add_one(), name)
    with pytest.raises(NotImplementedError, match=f"test_host.py, line .*{name}"):
        method()


@pytest.mark.parametrize(
    ("owner", "has", "has_not"),
    [
        (lambda: add_one(), "get_max_threads_per_block", ("stats", "nopython_signatures", "ptx")),
        (lambda: launched().overloads[launched().signatures[0]], "inspect_asm", ("regs_per_thread",)),
        (lambda: cuda.current_context(), "memalloc", ("handle", "modules", "no_such")),
        (lambda: cuda.to_device(ramp(4)).gpu_data, "device_pointer", ("memset", "no_such")),
    ],
)
def test_what_an_object_has_can_be_asked(owner, has, has_not):
    assert hasattr(owner(), has)
    for name in has_not:
        assert not hasattr(owner(), name)
        assert getattr(owner(), name, None) is None


@pytest.mark.parametrize(
    ("given", "kind"),
    [(len, AttributeError), (np.sin, AttributeError), (np.add.reduce, AttributeError), (3, TypeError)],
)
@pytest.mark.parametrize("options", [{}, {"device": True}])
def test_what_is_not_written_in_python_is_no_kernel(given, kind, options):
    with pytest.raises(kind, match=r"written in Python, and .* of the type"):
        cuda.jit(**options)(given)


@pytest.mark.parametrize("value", ["big-endian", "long double", "objects", "bytes", "a field"])
@pytest.mark.parametrize("launch", [lambda k: k[1, 32], lambda k: k.forall(4)])
def test_arrays_that_numba_does_not_take(value, launch):
    dtypes = {"big-endian": ">f8", "long double": np.longdouble, "objects": object, "bytes": "V4"}
    x = np.zeros(4, dtypes.get(value, [("a", ">f4")]))
    if x.dtype == np.float64:
        pytest.skip("a long double has 64 bits here")
    with pytest.raises(LaunchError, match=r"^x (has dtype|holds numbers in another byte order)"):
        launch(add_one())(x)
    with pytest.raises(LaunchError, match=r"^pair\[1\] "):
        of_pairs[1, 32]((1.0, x))


@cuda.jit
def of_pairs(pair):
    pair[1][0] = pair[0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: cuda.declare_device("f", "int32(int32)"),
        lambda: cuda.compile_ptx(lambda x: x, ()),
        lambda: cuda.current_context().memalloc(10),
        lambda: cuda.to_device(np.zeros(4)).gpu_data.memset(0),
        lambda: cuda.to_device(np.zeros(4)).get_ipc_handle(),
        lambda: cuda.managed_array(4).get_ipc_handle(),
        lambda: cuda.open_ipc_array(b"", 4, np.float32),
    ],
)
def test_what_is_refused_names_the_programs_line(call):
    with pytest.raises(UnsupportedCall) as refused:
        call()
    assert refused.value.filename == __file__
    assert refused.value.line == call.__code__.co_firstlineno


def test_a_signature_casts_numbers_and_nothing_else():
    @cuda.jit("void(float64[:], int8, float32)")
    def kernel(x, n, f):
        x[0] = n
        x[1] = f

    x = np.zeros(2)
    kernel[1, 1](x, 300, 0.1)
    assert (x == (300 - 256, np.float32(0.1))).all()
    for wrong in ((ramp(2), 1, 0.1), (np.zeros((2, 2)), 1, 0.1), (x, 1.5, 0.1), (1, 1, 1)):
        with pytest.raises(TypeError, match="signature says"):
            kernel[1, 1](*wrong)
    with pytest.raises(TypeError, match="returns nothing"):
        cuda.jit("int32(int32)")(lambda n: n)


def test_of_several_signatures_the_nearest_is_taken():
    @cuda.jit([(float64[:], int64), "void(float64[:], float64)", (complex128[:], int64)])
    def kernel(x, n):
        x[0] = n / 2

    x = np.zeros(1)
    kernel[1, 1](x, 3)
    assert x[0] == 1.5
    kernel[1, 1](x, np.float32(0.5))
    assert x[0] == 0.25
    for wrong in ((ramp(1), 1), (x, 1, 2), (x, 1j)):
        with pytest.raises(TypeError, match="no signature of kernel takes"):
            kernel[1, 1](*wrong)


def test_signatures_that_fit_equally_well():
    @cuda.jit(["(float64[:], float32, float64)", "(float64[:], float64, float32)"])
    def kernel(x, a, b):
        x[0] = a + b

    with pytest.raises(TypeError, match="ambiguous"):
        kernel[1, 1](np.zeros(1), 1.0, 2.0)


def test_a_device_function_with_a_real_and_a_complex_signature():
    @cuda.jit(["float64(float64)", "complex128(complex128)"], device=True)
    def twice(z):
        return z * 2

    @cuda.jit
    def kernel(x, out):
        out[0] = twice(x[0])

    for number in (1.5, 1 + 2j):
        out = np.zeros(1, np.complex128)
        kernel[1, 1](np.array([number]), out)
        assert out[0] == 2 * number


def test_the_types_that_a_kernel_was_launched_with_are_its_signatures():
    kernel = add_one()
    kernel.forall(4)(ramp(4))
    kernel.specialize(ramp(4))[1, 4](ramp(4))
    assert kernel.signatures == [] and not kernel.overloads  # forall and specialize compile copies
    kernel[1, 4](ramp(4))
    kernel[2, 4](ramp(4))
    kernel[1, 4](ramp(4, dtype=np.float64))
    assert kernel.signatures == [(float32[::1],), (float64[::1],)] == list(kernel.overloads)
    assert [one.argument_types for one in kernel.overloads.values()] == kernel.signatures
    with pytest.raises(LaunchError):
        kernel[1, 4](ramp(4), 1)
    assert len(kernel.signatures) == 2
    assert cuda.jit("void(float32[:])")(kernel.py_func).signatures == [(float32[:],)]
    assert kernel.specialize(ramp(4)) is kernel.specialize(ramp(8))


def test_a_kernel_from_before_the_session_has_its_signatures():
    assert not of_pairs.signatures
    of_pairs[1, 1]((1.0, ramp(4)))
    (types,) = of_pairs.signatures
    assert of_pairs.overloads[types].max_cooperative_grid_blocks(1024) == 132 * 2


def test_forall_keeps_the_constants_of_its_copy(monkeypatch):
    monkeypatch.setitem(globals(), "STEP", 1)

    @cuda.jit
    def kernel(x):
        x[0] += STEP  # noqa: F821

    x = ramp(1)
    kernel.forall(1)(x)
    monkeypatch.setitem(globals(), "STEP", 10)
    kernel.forall(1)(x)
    assert x[0] == 2
    kernel[1, 1](x)
    assert x[0] == 12


def test_a_kernel_can_be_specialized_once():
    kernel = add_one().specialize(ramp(4))
    x = ramp(4)
    kernel[1, 32](x)
    assert (x == ramp(4) + 1).all()
    with pytest.raises(TypeError):
        kernel[1, 32](np.zeros(4))
    with pytest.raises(RuntimeError):
        kernel.specialize(x)


def test_what_is_known_of_a_kernel_for_given_types():
    @cuda.jit
    def tiled(x):
        tile = cuda.shared.array(6000, float64)
        tile[cuda.threadIdx.x] = x[0]

    assert not tiled.overloads
    tiled[1, 32](np.zeros(1))
    (overload,) = tiled.overloads.values()
    assert overload.max_cooperative_grid_blocks((64, 2)) == 132 * 4  # 48,000 bytes and 1 KB each, of 228 KB
    assert overload.max_cooperative_grid_blocks(128, 16 * 1024) == 132 * 3
    with pytest.raises(NotImplementedError, match="regs_per_thread"):
        overload.regs_per_thread  # noqa: B018


@pytest.mark.parametrize("carveout", [101, -2, "most"])
def test_carveouts_that_are_none(carveout):
    cuda.jit(shared_memory_carveout="MaxL1")
    with pytest.raises(ValueError):
        cuda.jit(shared_memory_carveout=carveout)


def test_what_asks_the_driver_is_refused():
    driver = pytest.importorskip("numba.cuda.cudadrv.driver")
    with pytest.raises(UnsupportedCall, match="cuDeviceGetCount"):
        driver.driver.get_device_count()


# --- memory -------------------------------------------------------------------------------------------------


def test_copies_there_and_back_are_copies():
    x = ramp(8)
    d = cuda.to_device(x)
    x[0] = 7
    host = d.copy_to_host()
    host[1] = 9
    assert (d.copy_to_host() == ramp(8)).all()
    assert (np.asarray(d) == ramp(8)).all() and (np.array(d) == ramp(8)).all()


def test_copies_into_given_arrays():
    d, out = cuda.to_device(ramp(8)), np.zeros(8, np.float32)
    assert d.copy_to_host(out) is out and (out == ramp(8)).all()
    d.copy_to_device(out[::-1].copy())
    assert (d.copy_to_host() == ramp(8)[::-1]).all()
    cuda.to_device(ramp(8), to=d)
    assert (d.copy_to_host() == ramp(8)).all()
    other = cuda.device_array_like(d)
    other.copy_to_device(d)
    assert (other.copy_to_host() == ramp(8)).all()


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        (np.zeros(8), TypeError),
        (np.zeros(9, np.float32), ValueError),
        (np.zeros((4, 2), np.float32), ValueError),
    ],
)
def test_copies_that_do_not_fit(other, kind):
    d = cuda.to_device(ramp(8))
    with pytest.raises(kind):
        d.copy_to_host(other)
    with pytest.raises(kind):
        d.copy_to_device(other)


def test_a_copy_of_a_part_overwrites_what_lies_between_its_rows():
    host = ramp(3, 4)
    d = cuda.to_device(host)
    d[1:, 2:].copy_to_host(host[:2, :2])
    assert host.tolist() == [[6, 7, 8, 9], [10, 11, 6, 7], [8, 9, 10, 11]]


def test_copies_keep_the_order_in_memory():
    d = cuda.to_device(np.asfortranarray(ramp(3, 4)))
    assert d.strides == (4, 12) and d.is_f_contiguous() and not d.is_c_contiguous()
    assert d.copy_to_host().strides == (4, 12)
    with pytest.raises(ValueError, match="order"):
        d.copy_to_host(np.zeros((3, 4), np.float32))
    with pytest.raises(NotImplementedError, match="backwards"):
        d[::-1].copy_to_host()
    d.copy_to_device(ramp(3, 4) + 1)  # from the host, numba.cuda puts it in order
    assert (d.copy_to_host() == ramp(3, 4) + 1).all()


def test_new_memory_holds_garbage():
    assert np.isnan(cuda.device_array(5, np.float32).copy_to_host()).all()
    assert np.isnan(cuda.pinned_array(5, np.complex64)).all()
    assert (abs(cuda.device_array((2, 3), np.int32).copy_to_host()) > 1e9).all()
    assert cuda.device_array(3).dtype == np.float64
    assert cuda.device_array(3, np.bool_).copy_to_host().dtype == bool


def counts(x, hits):
    cuda.atomic.add(hits, 0, 1)


def swaps(x, hits):
    cuda.atomic.exch(hits, 0, 1)


@pytest.mark.parametrize(
    ("kernel", "memory", "found"),
    [
        (counts, lambda: cuda.device_array(2, np.int32), True),
        (counts, lambda: cuda.device_array(2, np.uint64), True),
        (counts, lambda: cuda.device_array(2, np.float32), True),
        (counts, lambda: cuda.device_array(2, np.float64)[1:], True),
        (counts, lambda: cuda.to_device(np.zeros(2, np.float32)), False),
        (counts, lambda: cuda.to_device(np.full(2, np.nan)), False),
        (swaps, lambda: cuda.device_array(2, np.int32), False),
    ],
)
def test_an_atomic_on_memory_that_nobody_wrote(kernel, memory, found):
    with emulated() as session:
        hits = memory()
        cuda.jit(kernel)[1, 32](np.zeros(1, np.float32), hits)
        cuda.jit(kernel)[1, 32](np.zeros(1, np.float32), hits)  # written by now
    errors = [(one.kind, one.array) for one in session.errors]
    assert errors == [("uninitialised_read", "hits")] * found
    assert "updates hits[0] before anything" in str(session) or not found


@pytest.mark.parametrize("shape", [2.0, "2", None, (1.5,)])
def test_shapes_that_are_none(shape):
    with pytest.raises(TypeError):
        cuda.device_array(shape)


def test_elements_and_slices_on_the_host():
    d = cuda.to_device(ramp(4, 6))
    assert d[1, 2] == 8 and isinstance(d[1, 2], np.float32)
    assert (d[1].copy_to_host() == ramp(4, 6)[1]).all()
    assert (d[1:3, ::2].copy_to_host() == ramp(4, 6)[1:3, ::2]).all()
    d[0, 0] = 5
    d[1] = 1
    d[2:4, 0] = np.array([7.9, 8.9])
    expected = ramp(4, 6)
    expected[0, 0], expected[1], expected[2:4, 0] = 5, 1, (7.9, 8.9)
    assert (d.copy_to_host() == expected).all()
    assert len(d) == 4 and [row.shape for row in d] == [(6,)] * 4
    with pytest.raises(IndexError):
        d[4]
    with pytest.raises(TypeError):
        d[[0, 1]]
    with pytest.raises(ValueError):
        d[0] = np.zeros(5)


def test_a_slice_is_the_same_memory():
    d = cuda.to_device(ramp(64))
    add_one()[1, 32](d[32:])
    expected = ramp(64)
    expected[32:] += 1
    assert (d.copy_to_host() == expected).all()


def test_other_shapes_and_views():
    d = cuda.to_device(ramp(4, 6))
    assert d.reshape(6, 4).shape == d.reshape((6, -1)).shape == (6, 4)
    assert (d.reshape(6, 4).copy_to_host() == ramp(6, 4)).all()
    assert (d.ravel().copy_to_host() == ramp(24)).all()
    assert (d.T.copy_to_host() == ramp(4, 6).T).all()
    assert d.reshape(1, 24).squeeze().shape == (24,)
    assert (d.view(np.uint32).copy_to_host() == ramp(4, 6).view(np.uint32)).all()
    assert [part.size for part in cuda.to_device(ramp(10)).split(4)] == [4, 4, 2]
    assert (d.ndim, d.size, d.nbytes, d.dtype, d.alloc_size) == (2, 24, 96, np.float32, 96)
    d.reshape(24)[0] = 3
    assert d[0, 0] == 3
    with pytest.raises(NotImplementedError):
        d[:, :4].reshape(16)
    with pytest.raises(ValueError):
        d.reshape(5, 5)


def test_the_cuda_array_interface():
    class Theirs:
        def __init__(self, array):
            self.__cuda_array_interface__ = array.__cuda_array_interface__

    d = cuda.to_device(ramp(4, 6))
    interface = d.__cuda_array_interface__
    assert interface["shape"] == (4, 6) and interface["strides"] is None and interface["typestr"] == "<f4"
    assert d[:, ::2].__cuda_array_interface__["strides"] == (24, 8)
    view = cuda.as_cuda_array(Theirs(d))
    view[0, 0] = 9
    assert d[0, 0] == 9
    add_one()[1, 32](Theirs(d.reshape(24)))
    assert d[0, 0] == 10
    assert cuda.is_cuda_array(d) and not cuda.is_cuda_array(ramp(3))
    with pytest.raises(TypeError):
        cuda.as_cuda_array(ramp(3))


def test_pointers_are_good_for_finding_the_memory_again():
    from numba.cuda.cudadrv.devicearray import DeviceNDArray

    stream = cuda.stream()
    d = cuda.to_device(ramp(4, 6), stream)
    assert d.__cuda_array_interface__["stream"] == int(stream)
    assert d.device_ctypes_pointer.value == d.__cuda_array_interface__["data"][0]
    same = DeviceNDArray((24,), (4,), np.float32, gpu_data=d.gpu_data)
    same[0] = 5
    assert d[0, 0] == 5
    assert DeviceNDArray((3,), (8,), np.float64).shape == (3,)
    assert cuda.device_array((0, 4)).__cuda_array_interface__["data"][0] == 0


def test_memory_of_elsewhere_is_refused():
    desc = {"shape": (4,), "typestr": "<f4", "data": (4096, False), "version": 3}
    with pytest.raises(UnsupportedCall, match="not the emulated GPU's"):
        cuda.from_cuda_array_interface(desc)


@pytest.mark.parametrize("allocate", ["mapped_array", "managed_array"])
def test_memory_that_host_and_device_share(allocate):
    x = getattr(cuda, allocate)(32, np.float32)
    x[:] = ramp(32)
    add_one()[1, 32](x)
    assert (x == ramp(32) + 1).all() and (x.copy_to_host() == ramp(32) + 1).all()


def test_pinned_and_mapped_memory():
    x, y = cuda.pinned_array_like(ramp(32)), ramp(32)
    x[:] = ramp(32)
    with cuda.pinned(x, y):
        stream = cuda.stream()
        d = cuda.to_device(x, stream=stream)
        add_one()[1, 32, stream](d)
        d.copy_to_host(x, stream=stream)
        stream.synchronize()
    assert (x == ramp(32) + 1).all()
    with cuda.mapped(y) as there:
        add_one()[1, 32](there)
    assert (y == ramp(32) + 1).all()


def test_arrays_like_others():
    for like in (cuda.device_array_like, cuda.pinned_array_like, cuda.mapped_array_like):
        made = like(np.asfortranarray(ramp(3, 4)))
        assert made.shape == (3, 4) and made.strides == (4, 12) and made.dtype == np.float32
        assert like(ramp(2, 3, 4).transpose(1, 0, 2)).strides == (16, 48, 4)


def test_classes_that_programs_ask_for():
    from numba.cuda.cudadrv.devicearray import DeviceNDArray

    assert isinstance(cuda.to_device(ramp(3)), DeviceNDArray)
    assert not isinstance(ramp(3), DeviceNDArray)


def test_memory_is_counted():
    context = cuda.current_context()
    free, total = context.get_memory_info()
    d = cuda.device_array(1000, np.float32)
    assert context.get_memory_info() == (free - 4000, total)
    del d
    assert context.get_memory_info().free == free


def test_memory_ends():
    with emulated("t4"), pytest.raises(CudaAPIError, match="do not fit") as full:
        cuda.device_array(1 << 40, np.uint8)
    assert full.value.code == 2


def test_numbers_and_broadcast_arrays():
    assert cuda.to_device(np.float32(5)).copy_to_host() == 5
    assert cuda.to_device([1, 2, 3]).dtype == np.int64
    d = cuda.to_device(np.broadcast_to(ramp(4), (3, 4)))
    assert (d.copy_to_host() == ramp(4)).all() and d.shape == (3, 4)
    assert cuda.to_device(np.zeros((0, 4))).copy_to_host().shape == (0, 4)


# --- streams, events, devices -------------------------------------------------------------------------------


def test_streams():
    stream = cuda.stream()
    calls = []
    with stream.auto_synchronize():
        x = cuda.to_device(ramp(32), stream)
        add_one()[1, 32, stream](x)
        stream.add_callback(lambda *said: calls.append(said), 5)
    assert calls == [(stream, 0, 5)]
    default = cuda.default_stream(), cuda.legacy_default_stream(), cuda.per_thread_default_stream()
    for other in (*default, cuda.external_stream(4096)):
        other.synchronize()
        add_one()[1, 32, other](x)

    async def waited():
        return await stream.async_done()

    assert asyncio.run(waited()) is stream
    assert x[0] == 5


def test_events_tell_the_emulators_time(session):
    start, end = cuda.event(), cuda.event(timing=True)
    start.record()
    add_one()[1, 32](ramp(32))
    end.record(stream=cuda.stream())
    end.synchronize()
    assert end.query() and not session.times_read
    assert 0 < start.elapsed_time(end) == cuda.event_elapsed_time(start, end)
    assert "say nothing about a GPU" in str(session)
    with pytest.raises(CudaAPIError):
        start.elapsed_time(cuda.event())
    with pytest.raises(CudaAPIError):
        start.elapsed_time(cuda.event(timing=False))


def test_there_is_one_gpu(capsys):
    assert cuda.is_available() and cuda.cuda_error() is None and cuda.is_supported_version()
    assert len(cuda.gpus) == len(cuda.list_devices()) == len(list(cuda.gpus)) == 1
    with cuda.gpus[0]:
        assert cuda.gpus.current.id == cuda.select_device(0).id == cuda.get_current_device().id == 0
    with pytest.raises(IndexError):
        cuda.select_device(1)
    assert cuda.detect()
    assert "NVIDIA H200 (emulated)" in capsys.readouterr().out
    cuda.synchronize()
    cuda.close()


def test_the_versions_of_cuda_are_told_where_none_is_installed():
    driver = pytest.importorskip("numba.cuda.cudadrv.driver").driver
    assert cuda.runtime.get_version() == driver.get_version() == (13, 0)
    assert cuda.runtime.is_supported_version()


def test_nothing_waits_to_be_freed():
    context = cuda.current_context()
    with cuda.defer_cleanup(), context.defer_cleanup():
        assert context.deallocations.is_disabled
    context.deallocations.clear()
    assert len(context.deallocations) == 0 and not context.deallocations.is_disabled


def test_what_the_device_says():
    device = cuda.get_current_device()
    assert device.compute_capability == (9, 0) and device.name == "NVIDIA H200 (emulated)"
    assert (device.WARP_SIZE, device.MAX_THREADS_PER_BLOCK, device.MULTIPROCESSOR_COUNT) == (32, 1024, 132)
    assert device.MAX_SHARED_MEMORY_PER_BLOCK == 49152
    assert device.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN == 232448
    assert (device.MAX_GRID_DIM_X, device.MAX_BLOCK_DIM_Z) == (2**31 - 1, 64)
    with pytest.raises(AttributeError, match="NO_SUCH"):
        device.NO_SUCH  # noqa: B018


def test_profiling_and_cleanup():
    with cuda.profiling(), cuda.defer_cleanup(), cuda.current_context().defer_cleanup():
        cuda.profile_start()
        add_one()[1, 32](ramp(32))
        cuda.profile_stop()
    asked = ("is_float16_supported", "is_bfloat16_supported", "is_fp8_supported")  # Numba's own has the first
    assert all(getattr(cuda, name)() for name in asked if hasattr(cuda, name))
