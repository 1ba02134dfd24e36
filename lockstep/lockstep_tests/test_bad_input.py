"""Mistakes that learners make: a clear error, unchanged arrays, a traceback that ends at the right line."""

import re
import traceback
from pathlib import Path

import numpy as np
import pytest
from numba import cuda, float32

from lockstep import EmulatorError, KernelStopped, RefusedLine, emulate
from lockstep_tests import corpus, unsupported
from lockstep_tests.corpus import ramp, zeros

HERE = Path(__file__)


def line_marked(function, mark):
    """The line of a function's file that ends in `# <- mark`."""
    (found,) = [place.line for place in corpus.marks_of(function) if place.kinds == (mark,)]
    return found


def untouched(*arrays):
    return all((array == 0).all() for array in arrays)


# --- loops that never end -------------------------------------------------------------------------------


@cuda.jit
def never_ends(out):
    out[cuda.grid(1)] = 1
    while True:  # <- endless
        out[0] += float32(1)


@cuda.jit
def counts_the_wrong_way(out):
    i = cuda.grid(1)
    out[i] = 1
    p = 0
    while p < 10:  # <- endless
        p -= 1
    out[i] = p


@cuda.jit
def one_thread_never_ends(out):
    i = cuda.grid(1)
    out[i] = 1
    p = i
    while p != 0:  # <- endless
        p = p - 2 if p != 5 else 5
        if p < 0:
            p = 0


@cuda.jit
def loop_of_a_billion_steps(out):
    i = cuda.grid(1)
    out[i] = 1
    total = 0
    for p in range(10**15):  # <- endless
        total += p
        if total < 0:
            out[i] = total


@pytest.mark.parametrize(
    "kernel", [never_ends, counts_the_wrong_way, one_thread_never_ends, loop_of_a_billion_steps]
)
def test_endless_kernel_is_stopped(kernel):
    out = zeros(32)
    with pytest.raises(KernelStopped) as stopped:
        emulate(kernel, 1, 32, out, step_limit=2000)
    assert untouched(out)
    assert str(line_marked(kernel, "endless")) in str(stopped.value)


def test_a_range_may_be_longer_than_python_can_tell():
    @cuda.jit
    def kernel(out):
        for p in range(-9223372036854775807, 9223372036854775807):
            last = p
            if last == -9223372036854775800:
                break
        out[cuda.grid(1)] = last

    out = np.zeros(32, np.int64)
    assert emulate(kernel, 1, 32, out).ok and (out == -9223372036854775800).all()


@pytest.mark.full(reason="a million iterations")
def test_endless_kernel_is_stopped_by_the_default_limit():
    out = zeros(32)
    with pytest.raises(KernelStopped):
        emulate(counts_the_wrong_way, 1, 32, out)
    assert untouched(out)


# --- launches the hardware would refuse -----------------------------------------------------------------


@cuda.jit
def copied(x, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        out[i] = x[i]


@pytest.mark.parametrize(
    "grid, block",
    [
        (1, 1025),
        (1, (32, 33)),
        (1, (1, 1, 65)),
        (1, (1, 1025, 1)),
        (1, 0),
        (0, 32),
        (1, -32),
        ((1, 65536), 32),
        ((1, 1, 65536), 32),
        (2**31, 32),
        (1, (2, 2, 2, 2)),
        ((1, 1, 1, 1), 32),
        (1, ()),
        (1.5, 32),
        (1, "32"),
        (1, (32, 1.0)),
        (None, 32),
    ],
)
def test_geometry_is_refused(grid, block):
    out = zeros(8)
    with pytest.raises((EmulatorError, TypeError)) as refused:
        emulate(copied, grid, block, ramp(8), out)
    assert untouched(out)
    assert len(str(refused.value)) > 15


@pytest.mark.parametrize(
    "grid, block", [(1, 1024), (np.int64(2), (np.int32(32), 2)), ((2, 1), (8, 4)), ((1,), (8, 1, 2))]
)
def test_geometry_is_accepted(grid, block):
    out = zeros(8)
    emulate(copied, grid, block, ramp(8), out)
    assert (out == ramp(8)).all()


@pytest.mark.parametrize("arguments", [(), (ramp(8),), (ramp(8), zeros(8), zeros(8))])
def test_number_of_arguments(arguments):
    with pytest.raises((EmulatorError, TypeError), match=r"2"):
        emulate(copied, 1, 8, *arguments)


@pytest.mark.parametrize(
    "bad", [[1.0, 2.0], "text", None, {1: 2}, object(), np.array(["a"]), np.array([None])]
)
def test_kind_of_arguments(bad):
    out = zeros(8)
    with pytest.raises((EmulatorError, TypeError)) as refused:
        emulate(copied, 1, 8, bad, out)
    assert untouched(out)
    assert "x" in str(refused.value), "the message names the argument"


def test_read_only_array_is_not_written():
    out = zeros(8)
    out.flags.writeable = False
    with pytest.raises((EmulatorError, ValueError)):
        emulate(copied, 1, 8, ramp(8), out)
    assert untouched(out)


def test_read_only_array_may_be_read():
    x, out = ramp(8), zeros(8)
    x.flags.writeable = False
    emulate(copied, 1, 8, x, out)
    assert (out == x).all()


@cuda.jit
def too_much_static_shared_memory(out):
    tile = cuda.shared.array((128, 512), float32)
    out[0] = 1
    tile[0, 0] = out[0]


@cuda.jit
def two_tiles_too_many(out):
    first = cuda.shared.array((64, 128), float32)
    second = cuda.shared.array((64, 129), float32)
    out[0] = 1
    first[0, 0] = second[0, 0] = out[0]


@cuda.jit
def dynamic_tile(out):
    tile = cuda.shared.array(0, float32)
    out[0] = 1
    tile[0] = out[0]


@pytest.mark.parametrize(
    "kernel, shared_bytes",
    [
        (too_much_static_shared_memory, 0),
        (two_tiles_too_many, 0),
        (dynamic_tile, 300_000),
        (dynamic_tile, -4),
    ],
)
def test_shared_memory_above_the_limit(kernel, shared_bytes):
    out = zeros(4)
    with pytest.raises((EmulatorError, ValueError)):
        emulate(kernel, 1, 1, out, shared_bytes=shared_bytes)
    assert untouched(out)


def test_as_much_dynamic_shared_memory_as_a_hopper_gpu_has():
    out = zeros(4)
    report = emulate(dynamic_tile, 1, 1, out, shared_bytes=227 * 1024)
    assert report.shared_bytes == 227 * 1024


def test_arrays_too_large_to_run():
    huge = np.broadcast_to(np.float32(0), (1 << 40,))
    with pytest.raises((EmulatorError, ValueError, MemoryError)):
        emulate(copied, 1, 8, huge, np.broadcast_to(np.float32(0), (1 << 40,)))


@cuda.jit
def strides_through(x, out):
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        out[i] = x[i]


def test_arrays_given_twice_share_their_memory():
    both = ramp(64)
    report = emulate(strides_through, 1, 32, both, both)
    assert report.ok and (both == ramp(64)).all()


def test_empty_array():
    assert emulate(strides_through, 1, 32, zeros(0), zeros(0)).ok


def test_views_are_written_in_place():
    whole = zeros(64)
    emulate(strides_through, 1, 16, ramp(32), whole[::2])
    assert (whole[::2] == ramp(32)).all() and untouched(whole[1::2])


# --- what the emulator does not run ---------------------------------------------------------------------


@pytest.mark.parametrize("name", unsupported.KERNELS)
def test_unsupported_syntax_is_refused_before_anything_runs(name):
    kernel = unsupported.KERNELS[name]
    out = zeros(8)
    with pytest.raises(RefusedLine) as refused:
        emulate(kernel, 1, 8, ramp(8), out)
    assert untouched(out)
    assert Path(refused.value.filename) == Path(unsupported.__file__)
    assert refused.value.line == line_marked(unsupported.HELPERS.get(name, kernel), "refused")
    message = str(refused.value)
    assert "unsupported.py" in message and str(refused.value.line) in message
    assert len(refused.value.sentence.split()) >= 5, refused.value.sentence


@pytest.mark.parametrize("kernel", [3, "kernel", None, np.sin, print])
def test_an_object_that_is_not_a_kernel_is_refused(kernel):
    with pytest.raises((EmulatorError, TypeError), match=re.escape(f"not {kernel!r}")):
        emulate(kernel, 1, 8, zeros(8))


def test_text_in_a_kernel_is_said_to_be_no_number():
    with pytest.raises(RefusedLine, match="computes with numbers; 'x' is not a number"):
        emulate(unsupported.with_text, 1, 8, ramp(8), zeros(8))


# --- errors while a kernel runs -------------------------------------------------------------------------


@cuda.jit
def too_many_indices(x, out):
    i = cuda.grid(1)
    out[i] = x[i, 0]  # <- fails


@cuda.jit
def float_as_index(x, out):
    i = cuda.grid(1)
    out[i] = x[i * 0.5]  # <- fails


@cuda.jit
def array_called(x, out):
    i = cuda.grid(1)
    out[i] = x(i)  # <- fails


@cuda.jit
def unknown_attribute(x, out):
    i = cuda.grid(1)
    out[i] = x.length  # <- fails


@cuda.jit
def whole_array_assigned(x, out):
    i = cuda.grid(1)
    out[i] = x  # <- fails


@cuda.jit
def too_many_values(x, out):
    i = cuda.grid(1)
    a, b = (x[i], x[i], x[i])  # <- fails
    out[i] = a + b


def own_frames(error):
    """(file name, line) of a traceback, outermost first."""
    return [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]


FAILING = [
    too_many_indices,
    float_as_index,
    array_called,
    unknown_attribute,
    whole_array_assigned,
    too_many_values,
]


@pytest.mark.parametrize("kernel", FAILING, ids=lambda kernel: kernel.py_func.__name__)
def test_traceback_ends_at_the_learners_line(kernel):
    out = zeros(8)
    line = line_marked(kernel, "fails")
    with pytest.raises(Exception) as failed:
        emulate(kernel, 1, 8, ramp(8), out)
    if isinstance(failed.value, RefusedLine):
        assert failed.value.line == line
    else:
        assert own_frames(failed.value)[-1] == (str(HERE), line), failed.value
    assert untouched(out)


@cuda.jit(device=True)
def helper_that_fails(values):
    return values[0, 0]  # <- fails


@cuda.jit
def calls_the_helper(x, out):
    out[0] = helper_that_fails(x)


def test_traceback_ends_inside_a_device_function():
    with pytest.raises(Exception) as failed:
        emulate(calls_the_helper, 1, 8, ramp(8), zeros(8))
    line = line_marked(helper_that_fails, "fails")
    where = (
        (failed.value.filename, failed.value.line)
        if isinstance(failed.value, RefusedLine)
        else own_frames(failed.value)[-1]
    )
    assert where == (str(HERE), line)


# --- notebook cells, factories, plain functions ---------------------------------------------------------

CELL = """\
import numpy as np
from numba import cuda
from lockstep import emulate

@cuda.jit
def doubled(x, out):
    i = cuda.grid(1)
    {line}

x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
report = emulate(doubled, 1, 8, x, out)
print(out.tolist(), report.accesses["line"].tolist())
"""


@pytest.fixture
def shell():
    pytest.importorskip("IPython", reason="runs a kernel of a notebook")
    from IPython.core.interactiveshell import InteractiveShell

    yield InteractiveShell()
    InteractiveShell.clear_instance()


def test_kernel_from_a_notebook_cell(shell):
    result = shell.run_cell(CELL.format(line="out[i] = x[i] + x[i]"))
    result.raise_error()
    assert shell.user_ns["out"].tolist() == [2.0 * i for i in range(8)]
    assert set(shell.user_ns["report"].accesses["line"]) == {8}


def test_traceback_ends_at_the_line_in_the_cell(shell):
    result = shell.run_cell(CELL.format(line="out[i] = x[i, 0]"))
    error = result.error_in_exec
    assert error is not None
    if not isinstance(error, RefusedLine):
        filename, line = own_frames(error)[-1]
        assert line == 8 and filename == shell.user_ns["doubled"].py_func.__code__.co_filename
    assert "lockstep" not in "".join(traceback.format_tb(error.__traceback__)[-1:])


def test_cell_run_again_with_another_body_runs_the_new_one(shell):
    shell.run_cell(CELL.format(line="out[i] = x[i] + x[i]")).raise_error()
    shell.run_cell(CELL.format(line="out[i] = x[i] - x[i]")).raise_error()
    assert untouched(shell.user_ns["out"])


@pytest.mark.full(reason="starts a kernel of Jupyter")
def test_in_a_real_notebook():
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    kernel_of = pytest.importorskip("tests.notebooks.builder").builder.kernel_of
    cells = [CELL.format(line="out[i] = x[i] + x[i]"), CELL.format(line="out[i] = x[i, 0]")]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True)
    with kernel_of(client):
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
    good, bad = notebook.cells
    assert "[0.0, 2.0, 4.0" in "".join(output.get("text", "") for output in good.outputs), good.outputs
    (error,) = [output for output in bad.outputs if output.output_type == "error"]
    shown = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    assert "x[i, 0]" in shown
    last = shown[shown.rindex("---->") :] if "---->" in shown else shown
    assert "out[i] = x[i, 0]" in last, shown
    assert "emulator/" not in last, shown


def make_scaled(factor, size):
    factor = np.float32(factor)

    @cuda.jit
    def scaled(x, out):
        tile = cuda.shared.array(size, float32)
        t = cuda.threadIdx.x
        tile[t] = x[t] * factor
        cuda.syncthreads()
        out[t] = tile[size - 1 - t]

    return scaled


def test_kernels_of_one_factory_keep_their_own_constants():
    for factor, size in ((2, 8), (3, 16), (2, 8)):
        out = zeros(size)
        report = emulate(make_scaled(factor, size), 1, size, ramp(size), out)
        assert (out == factor * ramp(size)[::-1]).all()
        assert report.shared_bytes == 4 * size


def test_plain_function_runs_like_a_kernel():
    def plain(x, out):
        i = cuda.grid(1)
        out[i] = x[i] + float32(1)

    out = zeros(8)
    report = emulate(plain, 1, 8, ramp(8), out)
    assert (out == ramp(8) + 1).all()
    assert set(report.accesses["function"]) == {"plain"}


def test_global_of_the_module_is_read_when_the_kernel_is_first_launched():
    for offset in (1, 5):
        globals()["OFFSET"] = np.float32(offset)
        out = zeros(8)
        emulate(cuda.jit(adds_a_global.py_func), 1, 8, ramp(8), out)
        assert (out == ramp(8) + offset).all()


OFFSET = np.float32(0)


@cuda.jit
def adds_a_global(x, out):
    i = cuda.grid(1)
    out[i] = x[i] + OFFSET
