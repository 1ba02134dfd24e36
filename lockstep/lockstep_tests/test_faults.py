"""An error that nobody foresaw, anywhere in the emulator: one sentence and the kernel's line."""

import importlib.util
import traceback

import numpy as np
import pytest
from numba import cuda, float32

from lockstep import EmulatorError, EmulatorFault, KernelTypeError, UnsupportedKernel, emulate
from lockstep.counts.tally import Tally
from lockstep.intrinsics import load4
from lockstep.launching import launch as launching
from lockstep.launching.report import Report
from lockstep.machine.machine import Machine
from lockstep.types.translation import Translator
from lockstep_tests import corpus
from lockstep_tests.corpus import ramp, zeros


@cuda.jit(device=True)
def doubled(value):
    return value + value  # <- in_the_callee


@cuda.jit
def kernel(x, out):
    i = cuda.grid(1)
    out[i] = doubled(x[i]) * float32(3)  # <- in_the_kernel


def line_marked(function, mark):
    (found,) = [place.line for place in corpus.marks_of(function) if place.kinds == (mark,)]
    return found


IN_THE_KERNEL, IN_THE_CALLEE = line_marked(kernel, "in_the_kernel"), line_marked(doubled, "in_the_callee")
FIRST_LINE = kernel.py_func.__code__.co_firstlineno


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


def run(out=None):
    return emulate(kernel, 2, 16, ramp(32), zeros(32) if out is None else out)


PLACES = [
    (Translator, "_of_Subscript", IN_THE_KERNEL),
    (Translator, "_finished", FIRST_LINE),
    (launching, "_check_argument", FIRST_LINE),
    (launching, "bind", FIRST_LINE),
    (launching, "chunks", FIRST_LINE),
    (Machine, "read", IN_THE_KERNEL),
    (Machine, "write", IN_THE_KERNEL),
    (Machine, "count_arithmetic", IN_THE_CALLEE),
    (Machine, "end", FIRST_LINE),
    (Tally, "settle", FIRST_LINE),
    (launching, "Report", FIRST_LINE),
]


@pytest.fixture
def no_translations(monkeypatch):
    """Kernels are translated anew."""
    monkeypatch.setattr("lockstep.types.translation._cache", {})


@pytest.mark.usefixtures("no_translations")
@pytest.mark.parametrize(
    "owner, name, line", PLACES, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_an_unforeseen_error_is_said_to_be_the_emulators(monkeypatch, owner, name, line):
    monkeypatch.setattr(owner, name, failing(KeyError("secret")))
    out = zeros(32)
    with pytest.raises(EmulatorFault) as told:
        run(out)
    fault, message = told.value, str(told.value)
    assert (fault.filename, fault.line) == (__file__, line)
    assert isinstance(fault.original, KeyError) and "KeyError: 'secret'" in message
    assert f"{__file__}, line {line}: the emulator itself failed here" in message
    assert "issues" in message and "LOCKSTEP_DEBUG=1" in message
    assert (out == 0).all()


@pytest.mark.usefixtures("no_translations")
@pytest.mark.parametrize("place", [(Translator, "_of_Subscript"), (Machine, "read")])
def test_the_traceback_shows_no_frame_of_the_emulator_but_its_entry(monkeypatch, place):
    monkeypatch.setattr(*place, failing(IndexError("deep inside")))
    with pytest.raises(EmulatorFault) as told:
        run()
    shown = "".join(traceback.format_exception(told.value))
    assert "IndexError: deep inside" not in shown.replace(str(told.value), "")
    assert "failing" not in shown and "translate.py" not in shown


def test_a_developer_sees_where_it_came_up(monkeypatch):
    monkeypatch.setenv("LOCKSTEP_DEBUG", "1")
    monkeypatch.setattr(Machine, "read", failing(IndexError("deep inside")))
    with pytest.raises(EmulatorFault) as told:
        run()
    assert isinstance(told.value.__cause__, IndexError)
    shown = "".join(traceback.format_exception(told.value))
    assert "IndexError: deep inside" in shown and "in fail" in shown and "in subscript" in shown


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError("too large"), SystemExit(3)])
@pytest.mark.parametrize("place", [(Translator, "_of_BinOp"), (Machine, "read"), (Tally, "settle")])
@pytest.mark.usefixtures("no_translations")
def test_what_has_a_meaning_of_its_own_keeps_it(monkeypatch, place, error):
    monkeypatch.setattr(*place, failing(error))
    out = zeros(32)
    with pytest.raises(type(error)) as passed:
        run(out)
    assert passed.value is error
    assert (out == 0).all()


def test_an_error_of_the_callers_own_function_passes():
    with pytest.raises(ZeroDivisionError, match="mine"):
        emulate(kernel, 2, 16, ramp(32), zeros(32), progress=failing(ZeroDivisionError("mine")))


@pytest.mark.parametrize(
    "show",
    [
        str,
        lambda r: r._repr_html_(),
        lambda r: r.accesses,
        lambda r: r.by_line,
        lambda r: r.arithmetic,
        lambda r: r.flops,
    ],
)
def test_a_report_that_fails_says_so(monkeypatch, show):
    report = run()
    monkeypatch.setattr("pandas.DataFrame", failing(KeyError("secret")))
    with pytest.raises(EmulatorFault) as told:
        show(report)
    assert (told.value.filename, told.value.line) == (__file__, FIRST_LINE)


def from_file(path, text):
    """A kernel from a file of its own; `text` defines it."""
    path.write_text(f"from numba import cuda\n\n\n{text}", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.written


def test_a_report_shows_the_source_that_ran(tmp_path):
    """The kernel's file may have been edited since, or may have gone."""
    line = "    out[cuda.grid(1)] = x[cuda.grid(1)]"
    written = from_file(tmp_path / "edited.py", f"@cuda.jit\ndef written(x, out):\n{line}\n")
    report = emulate(written, 1, 8, ramp(8), zeros(8))
    (tmp_path / "edited.py").unlink()
    assert line in str(report)


def test_nesting_too_deep_for_python_is_refused(tmp_path):
    many = " + ".join(["x[0]"] * 500)
    written = from_file(tmp_path / "deep.py", f"@cuda.jit\ndef written(x, out):\n    out[0] = {many}\n")
    with pytest.raises(UnsupportedKernel, match="nested too deeply"):
        emulate(written, 1, 1, ramp(8), zeros(8))


# --- wrong calls are the kernel's mistakes ----------------------------------------------------------------


@cuda.jit
def too_many_arguments(x, out):
    out[0] = load4(x, 0, 4)[0]


@cuda.jit
def too_few_arguments(x, out):
    out[0] = load4(x)[0]


@cuda.jit
def no_array(x, out):
    out[0] = load4(cuda.threadIdx.x, 0)[0]


@cuda.jit
def atomic_without_value(x, out):
    cuda.atomic.add(out, 0)


@cuda.jit
def unknown_keyword(x, out):
    tile = cuda.shared.array(shape=8, colour=float32)
    out[0] = tile[0]


@cuda.jit
def barrier_with_an_argument(x, out):
    cuda.syncthreads(3)


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        (
            too_many_arguments,
            r"load4\(\) takes 2 arguments \(array, index\), not 3; an index is one argument",
        ),
        (too_few_arguments, r"load4\(\) takes 2 arguments \(array, index\), not 1"),
        (no_array, r"load4\(\) needs an array as its array, not a"),
        (atomic_without_value, r"atomic\.add\(\) takes 3 arguments"),
        (unknown_keyword, r"shared\.array\(\) has no argument named colour"),
        (barrier_with_an_argument, r"syncthreads\(\) takes 0 arguments, not 1"),
    ],
    ids=lambda value: getattr(getattr(value, "py_func", None), "__name__", ""),
)
def test_a_wrong_call_is_explained(wrong, sentence):
    with pytest.raises((KernelTypeError, UnsupportedKernel), match=sentence) as told:
        emulate(wrong, 1, 8, ramp(8), zeros(8))
    if isinstance(told.value, KernelTypeError):
        assert traceback.extract_tb(told.value.__traceback__)[-1].filename == __file__


def test_every_error_of_the_emulator_is_an_emulator_error():
    assert issubclass(EmulatorFault, EmulatorError)
    assert isinstance(run(), Report)
    assert (np.array(emulate(kernel, 2, 16, ramp(32), zeros(32)).findings) == []).all()
