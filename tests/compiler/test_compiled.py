"""`compiled`: registers, spills, lines and loops of kernels whose machine code is known in these points."""

import linecache
import threading

import numpy as np
import pytest
from numba import cuda, float32, int32

from gemm_course import LADDER, compiled, emulate, emulated
from gemm_course.compiler import CannotCompile
from gemm_course.kernels import IllegalTiles
from lockstep.intrinsics import fence_async

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.full(reason="compiles kernels; test_answers.py and test_record.py have a quick run's sample"),
    pytest.mark.filterwarnings("ignore:.*low occupancy"),
]

X = np.zeros(64, np.float32)
HERE = __file__


def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


LINE_OF_AXPY = axpy.__code__.co_firstlineno + 3
ARGUMENTS = (np.float32(2), X, X)


def line(text: str) -> int:
    """The number of this file's first line that has a text in it, but for this one."""
    lines = linecache.getlines(HERE)
    return next(number for number, each in enumerate(lines, 1) if text in each)


# ---- what one can ask for ----------------------------------------------------------------------------------


def test_a_function_a_kernel_and_a_configured_kernel_compile_to_the_same():
    kernel = cuda.jit(axpy)
    texts = [compiled(one, *ARGUMENTS).text for one in (axpy, kernel, kernel[1, 64])]
    assert texts[0] == texts[1] == texts[2]


def test_a_kernel_with_a_signature_needs_no_arguments():
    kernel = cuda.jit("void(float32, float32[::1], float32[::1])")(axpy)
    assert compiled(kernel).text == compiled(axpy, *ARGUMENTS).text
    assert compiled(kernel, 2, X, X).text == compiled(kernel).text, "a launch would convert the number"


@pytest.mark.full(reason="two kernels are compiled")
def test_a_kernel_that_was_defined_while_cuda_was_emulated_compiles_afterwards():
    with emulated():
        kernel = cuda.jit(axpy)
        with pytest.raises(CannotCompile, match="emulated at the moment"):
            compiled(kernel, *ARGUMENTS)
    assert compiled(kernel, *ARGUMENTS).text == compiled(axpy, *ARGUMENTS).text


@pytest.mark.full(reason="three kernels are compiled")
def test_types_count_and_values_do_not():
    single, double = (compiled(axpy, np.float32(2), x, x) for x in (X, X.astype(np.float64)))
    assert "FFMA" in set(single.instructions["opcode"])
    assert "DFMA" in set(double.instructions["opcode"])
    empty = np.zeros(0, np.float32)
    assert compiled(axpy, np.float32(0), empty, empty).text == single.text


@pytest.mark.full(reason="two kernels are compiled")
def test_what_is_no_example_of_memory_is_compiled_for_a_copy_on_the_gpu():
    read_only = X.copy()
    read_only.flags.writeable = False
    assert compiled(axpy, np.float32(2), X, read_only).text == compiled(axpy, *ARGUMENTS).text


@pytest.mark.many(one_in=4, with_all=2)
@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)])
def test_every_compute_capability_of_the_course_compiles(capability):
    found = compiled(axpy, *ARGUMENTS, compute_capability=capability)
    assert found.compute_capability == capability
    assert found.by_kind["multiply-add"] == found.by_kind["global store"] == 1
    assert found.by_kind["global load"] == 2


@pytest.mark.many(one_in=3, with_all=3)
@pytest.mark.parametrize("written", ["8.6", "sm_86", "86"])
def test_compute_capabilities_may_be_written(written):
    assert compiled(axpy, *ARGUMENTS, compute_capability=written).compute_capability == (8, 6)


def test_a_stage_by_name_is_the_stage_with_its_launch_bounds_and_tiles():
    by_name = compiled("warp_tiled")
    assert by_name is compiled(LADDER["warp_tiled"]), "compiled once"
    assert by_name.registers <= 128 and by_name.tiles.startswith("BM=128")
    smaller = compiled("warp_tiled", tiles={"BK": 8})
    assert smaller.shared_bytes < by_name.shared_bytes
    assert smaller.loop.by_kind["multiply-add"] * 2 == by_name.loop.by_kind["multiply-add"]


def test_stages_with_tensor_maps_and_dynamic_shared_memory():
    found = compiled("wgmma_tma")
    assert found.shared_bytes > found.static_shared_bytes
    assert found.by_kind["asynchronous copy"] > 0
    assert found.loop.work == "Tensor Core product" and found.loop.by_kind["Tensor Core product"] > 0


# ---- what comes back ---------------------------------------------------------------------------------------


def test_the_table_has_addresses_opcodes_kinds_texts_and_lines():
    found = compiled(axpy, *ARGUMENTS)
    frame = found.instructions
    assert list(frame.columns) == ["address", "opcode", "kind", "text", "line", "file"]
    assert list(frame["address"]) == list(range(0, 16 * len(frame), 16))
    (fma,) = frame[frame["kind"] == "multiply-add"].itertuples()
    assert fma.opcode == "FFMA" and fma.line == LINE_OF_AXPY and fma.file == HERE
    assert fma.text.startswith("FFMA R") and f"/*{fma.address:04x}*/ {fma.text}" in found.text
    assert f"// {HERE}:{LINE_OF_AXPY}" in found.text
    assert found.by_line.loc[(HERE, LINE_OF_AXPY), "multiply-add"] == 1
    assert found.by_line.to_numpy().sum() == sum(found.by_kind.values()) == len(found) == len(frame)
    assert found.seconds > 0


def test_it_reads_like_a_sentence():
    said = repr(compiled("block_tiled"))
    assert "block_tiled (BM=16 BN=32 BK=64) for compute capability 9.0: 32 registers, nothing spilled" in said
    assert "main loop: 64 of " in said and "instructions are multiply-adds" in said


def test_lines_of_device_functions_are_their_own():
    @cuda.jit(device=True)
    def scaled(x, i, a):
        return a * x[i] + float32(1)  # in the device function

    def kernel(a, x, y):
        i = cuda.grid(1)
        y[i] = scaled(x, i, a) + max(x[i], y[i])  # in the kernel

    frame = compiled(kernel, *ARGUMENTS).instructions
    assert set(frame["file"]) <= {HERE, ""}
    assert set(frame[frame["opcode"] == "FFMA"]["line"]) == {line("# in the device function")}
    assert set(frame[frame["kind"] == "global store"]["line"]) == {line("# in the kernel")}


def test_stages_name_the_files_of_the_course():
    frame = compiled("wgmma_tma").instructions
    files = {file for file in frame["file"] if file}
    assert len(files) > 1 and all(file.startswith("gemm_course/kernels/") for file in files)


def test_a_kernel_without_a_source_compiles():
    space = {"cuda": cuda}
    exec("def kernel(x):\n    x[cuda.grid(1)] += 1", space)
    frame = compiled(space["kernel"], X).instructions
    assert set(frame[frame["kind"] == "global store"]["line"]) == {2}


# ---- registers, spills, local memory, shared memory --------------------------------------------------------


def crowded(x, y):
    values = cuda.local.array(96, float32)
    for i in range(96):
        values[i] = x[i]
    for _ in range(y.size):
        for i in range(96):
            values[i] = values[i] * values[(i + 1) % 96] + x[i]
    for i in range(96):
        y[i] = values[i]


@pytest.mark.full(reason="three kernels are compiled")
def test_a_kernel_with_too_few_registers_spills():
    free = compiled(cuda.jit(crowded), X, X)
    capped = compiled(cuda.jit(max_registers=40)(crowded), X, X)
    bounded = compiled(cuda.jit(launch_bounds=(1024, 2))(crowded), X, X)
    assert free.spilled_bytes == free.local_bytes == 0 < 96 < free.registers
    assert capped.registers <= 40 and bounded.registers <= 32
    for found in (capped, bounded):
        assert found.spilled_bytes > 0 < found.local_bytes
        assert found.by_kind["local memory"] > 0
    assert "bytes spilled" in repr(capped)


def test_an_array_indexed_by_a_variable_is_in_local_memory_and_nothing_is_spilled():
    def rotated(x, y, by):
        values = cuda.local.array(64, float32)
        for i in range(64):
            values[i] = x[i]
        for i in range(y.size):
            y[i] = values[(i + by) % 64]

    found = compiled(rotated, X, X, 3)
    assert found.local_bytes == 256 and found.spilled_bytes == 0
    assert found.by_kind["local memory"] > 0
    assert compiled(crowded, X, X).by_kind["local memory"] == 0, "indexed by constants, once unrolled"


def test_shared_memory_is_that_of_arrays_and_of_the_launch():
    def both(x):
        fixed, rest = cuda.shared.array(100, float32), cuda.shared.array(0, float32)
        fixed[cuda.threadIdx.x] = rest[cuda.threadIdx.x] = x[cuda.threadIdx.x]
        cuda.syncthreads()
        x[cuda.threadIdx.x] = fixed[99 - cuda.threadIdx.x] + rest[99 - cuda.threadIdx.x]

    kernel = cuda.jit(both)
    assert compiled(kernel, X).shared_bytes == 400
    launched = compiled(kernel[1, 100, 0, 4096], X)
    assert (launched.static_shared_bytes, launched.shared_bytes) == (400, 4496)
    with pytest.raises(CannotCompile, match=r"both needs 120,400 bytes .* 8\.6 it can have 101,376\."):
        compiled(kernel[1, 100, 0, 120_000], X, compute_capability=(8, 6))


def test_float16_arithmetic_is_linked_from_cuda_c():
    def half(x, y):
        i = cuda.grid(1)
        y[i] = x[i] * x[i] + y[i]

    x = X.astype(np.float16)
    found = compiled(half, x, x)
    assert found.by_kind["multiply-add"] + found.by_kind["other arithmetic"] >= 1
    assert {"HFMA2", "HMUL2"} & {opcode.split(".")[0] for opcode in found.instructions["opcode"]}


def test_without_link_time_optimisation_as_cuda_jit_has_it():
    found = compiled(cuda.jit(axpy, lto=False), *ARGUMENTS)  # cuda.jit(lto=False)(axpy) forgets it
    assert found.by_kind["multiply-add"] == 1
    assert LINE_OF_AXPY in set(found.instructions["line"])


def test_fastmath_is_kept():
    def root(x):
        x[0] = x[1] / x[2]

    exact, fast = (compiled(cuda.jit(fastmath=fastmath)(root), X) for fastmath in (False, True))
    assert len(fast) < len(exact)


# ---- nothing is changed ------------------------------------------------------------------------------------


def numbas_own():
    """What is replaced in Numba while it compiles."""
    from numba.cuda import dispatcher

    return dispatcher.get_current_device, dispatcher.CUDADispatcher.get_call_template


def test_numba_is_left_as_it_was():
    @cuda.jit(device=True)
    def twice(x):
        return 2 * x

    def kernel(x):
        x[0] = twice(x[1])

    def wrong(x):
        x[0] = twice(x[1]) + nowhere  # noqa: F821

    before, function = numbas_own(), dict(vars(twice))
    compiled(kernel, X)
    assert numbas_own() == before and vars(twice) == function
    with pytest.raises(CannotCompile):
        compiled(wrong, X)
    assert numbas_own() == before and vars(twice) == function


def test_a_device_function_with_a_signature_waits_on():
    @cuda.jit("float32(float32)", device=True)
    def twice(x):
        return 2 * x

    def kernel(x):
        x[0] = twice(x[1])

    before = dict(twice.overloads)
    assert compiled(kernel, X).by_kind["global store"] == 1
    assert dict(twice.overloads) == before and not twice._can_compile


NUMBER = 3


def test_what_is_compiled_is_emulated_with_the_numbers_of_now(monkeypatch):
    @cuda.jit(device=True)
    def number():
        return NUMBER

    @cuda.jit
    def kernel(x):
        x[0] = number()

    x = np.zeros(1, np.float32)
    three = compiled(kernel, x).text
    monkeypatch.setitem(globals(), "NUMBER", 4)
    emulate(kernel, 1, 1, x)
    assert x[0] == 4 and compiled(kernel, x).text != three


@pytest.mark.full(reason="two kernels are compiled")
def test_a_device_function_is_compiled_for_each_compute_capability():
    @cuda.jit(device=True)
    def fenced(x):
        fence_async()
        return x

    def kernel(x):
        x[0] = fenced(x[1])

    old = r"Numba cannot compile kernel.* needs compute capability 9\.0"
    for _ in range(2):
        with pytest.raises(CannotCompile, match=old):
            compiled(kernel, X, compute_capability=(8, 6))
        assert compiled(kernel, X).by_kind["barrier and fence"] >= 1


@pytest.mark.full(reason="eight kernels are compiled")
def test_threads_compile_at_the_same_time():
    @cuda.jit(device=True)
    def product(a, b):
        return a * b

    def kernel(x, n):
        for i in range(n):
            x[i] += product(x[i + 1], x[i + 2])

    jobs = [(kernel, (X, 3), capability) for capability in ((8, 0), (9, 0), (8, 6), (9, 0))]
    alone = [compiled(one, *args, compute_capability=where).text for one, args, where in jobs]
    found, before = [None] * len(jobs), numbas_own()

    def work(place):
        one, args, where = jobs[place]
        found[place] = compiled(one, *args, compute_capability=where).text

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == alone
    assert alone[0] != alone[1] == alone[3]
    assert numbas_own() == before


def test_another_thread_keeps_asking_the_gpu_at_hand():
    from gemm_course.compiler._numba import _compiling_for

    said = []

    def ask():
        from numba.cuda import dispatcher

        try:
            said.append(dispatcher.get_current_device().compute_capability)
        except Exception as error:
            said.append(type(error).__name__)

    with _compiling_for((1, 0), lines=True):  # which no GPU at hand has
        ask()
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
    ask()
    assert said[0] == (1, 0) and said[1] == said[2] != (1, 0)


# ---- what cannot be compiled -------------------------------------------------------------------------------


def returns(x):
    return x[0]


def unknown_attribute(x):
    x[0] = cuda.sincos(x[1])


def array_for_number(x):
    x[0] = x


def too_much_shared(x):
    tile = cuda.shared.array((128, 128), float32)
    tile[cuda.threadIdx.x, 0] = x[0]
    cuda.syncthreads()
    x[0] = tile[0, 0]


device_function = cuda.jit(device=True)(returns)


@pytest.mark.parametrize(
    ("asked", "args", "options", "said"),
    [
        ("vectorised", (), {}, "no stage is called 'vectorised'; the ladder is "),
        ("vectorized", (X,), {}, "vectorized is a stage of the ladder, which needs no example arguments."),
        (axpy, ARGUMENTS, {"tiles": {"BM": 4}}, "tiles belong to a stage"),
        (axpy, (X, X), {}, "axpy takes 3 arguments (a, x, y); 2 were given. Only their types count."),
        (
            axpy,
            (2, {}, X),
            {},
            "Numba has no type for the argument x, a dict: pass NumPy arrays and numbers.",
        ),
        (axpy, (2, np.array([None]), X), {}, "the argument x, an array of object"),
        (axpy, ARGUMENTS, {"compute_capability": (7, 0)}, "the compute capability must be 7.5, 8.0, "),
        (axpy, ARGUMENTS, {"compute_capability": "H200"}, "written (9, 0) or '9.0', not 'H200'."),
        (axpy, ARGUMENTS, {"compute_capability": [9, 0]}, "not [9, 0]."),
        (5, (), {}, "a stage of the ladder, a kernel or a function is needed"),
        (max, (X,), {}, "not <built-in function max>."),
        (device_function, (X,), {}, "returns is a device function: compile a kernel that calls it."),
        (cuda.jit(debug=True, opt=False)(axpy), ARGUMENTS, {}, "debug=True"),
        (cuda.jit(axpy)[1, 2000], ARGUMENTS, {}, "axpy is configured with 2000 threads per block; 1024"),
        ("persistent", (), {"compute_capability": (8, 0)}, "persistent needs compute capability 9.0, Hopper"),
        ("persistent", (), {"compute_capability": (10, 0)}, "Hopper, not 10.0."),
        (
            "async_copy",
            (),
            {"compute_capability": (7, 5)},
            "async_copy needs compute capability 8.0 or newer",
        ),
        ("mma_sync", (), {"compute_capability": (8, 6)}, "mma_sync needs 163,840 bytes of shared memory"),
        (
            too_much_shared,
            (X,),
            {},
            "65,536 bytes of shared memory in arrays of fixed shape; the maximum is 49,152",
        ),
        (returns, (X,), {}, "Numba cannot compile returns"),
        (
            unknown_attribute,
            (X,),
            {},
            "`x[0] = cuda.sincos(x[1])`: AttributeError: module 'numba.cuda' has no",
        ),
        (array_for_number, (X,), {}, "`x[0] = x`: there is no setitem(array(float32, 1d, C), "),
        (cuda.jit([(int32[:],), (float32[:],)])(returns), (np.zeros(3),), {}, "fit none of them exactly"),
    ],
)
def test_what_cannot_be_compiled_is_refused_in_a_sentence(asked, args, options, said):
    with pytest.raises(CannotCompile) as refused:
        compiled(asked, *args, **options)
    message = str(refused.value)
    assert said in message
    assert message.endswith((".", "?")) and "\n" not in message and len(message) < 600


def test_illegal_tiles_are_refused_with_the_nearest_legal_ones():
    with pytest.raises(IllegalTiles, match="nearest legal choice"):
        compiled("vectorized", tiles={"TM": 3})
