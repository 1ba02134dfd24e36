"""What surrounds a program: its folder and name, its processes, its handlers, its end."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

KERNEL = """
import os, sys
import numpy as np
from numba import cuda

@cuda.jit
def kernel(x):
    i = cuda.grid(1)
    x[i + 1] = i

"""


def run(tmp_path, source, *options, name="program.py", arguments=()):
    """Run a program by the command, in its folder; return what ended it, with its outputs as text."""
    file = tmp_path / name
    if isinstance(source, bytes):
        file.write_bytes(source)
    elif source is not None:
        file.write_text(source)
    command = [sys.executable, "-m", "lockstep_tests.host.command", *options, name, *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120)


@pytest.mark.many(one_in=2)
@pytest.mark.parametrize("change", ["os.chdir('/')", "os.chdir(os.path.dirname(sys.executable))"])
def test_a_program_may_change_its_folder_before_its_first_launch(change, tmp_path):
    done = run(tmp_path, f"{KERNEL}{change}\nkernel[1, 8](np.zeros(8))\n")
    assert (
        done.returncode == 1
        and "error: " in done.stderr
        and "writes x[8], but x has 8 elements" in done.stderr
    )


def test_name_file_and_arguments_are_as_python_has_them(tmp_path):
    source = (
        "import sys, os, pickle\n"
        "class Here: pass\n"
        "assert os.path.isabs(__file__) and os.path.isfile(__file__)\n"
        "assert __name__ == '__main__' and sys.modules['__main__'].Here is Here\n"
        "assert type(pickle.loads(pickle.dumps(Here()))) is Here\n"
        "print(sys.argv)\n"
    )
    done = run(tmp_path, source, arguments=["--size", "3"])
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['program.py', '--size', '3']\n"


@pytest.mark.many(one_in=4)
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def f(:\n    pass\n", "SyntaxError: invalid syntax"),
        ("if 1:\nx = 2\n", "IndentationError"),
        (b"\x00\x01\x02", "program.py"),
        (b"x = '\xff'\n", "SyntaxError"),
    ],
    ids=["syntax", "indentation", "zeros", "encoding"],
)
def test_what_does_not_parse_is_told_as_by_python(source, said, tmp_path):
    done = run(tmp_path, source)
    assert done.returncode == 1 and said in done.stderr
    assert "Traceback" not in done.stderr and "running.py" not in done.stderr and "runpy" not in done.stderr


@pytest.mark.full(reason="a program of its own")
def test_a_folder_is_run_or_refused(tmp_path):
    (tmp_path / "app").mkdir()
    done = run(tmp_path, None, name="app")
    assert done.returncode == 1 and "app has no __main__.py" in done.stderr and "Traceback" not in done.stderr
    (tmp_path / "app" / "__main__.py").write_text("print('run')\n")
    assert run(tmp_path, None, name="app").stdout == "run\n"


@pytest.mark.many(one_in=3)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
@pytest.mark.parametrize(
    "work",
    [
        "with mp.get_context('fork').Pool(2) as pool:\n        pool.map(work, range(3))",
        "p = mp.get_context('fork').Process(target=work, args=(1,)); p.start(); p.join()",
        "pid = os.fork()\n    if not pid:\n        work(1); os._exit(0)\n    os.waitpid(pid, 0)",
    ],
    ids=["pool", "process", "os.fork"],
)
def test_what_forked_processes_find_reaches_the_summary(work, tmp_path):
    source = f"""{KERNEL}
import multiprocessing as mp

def work(n):
    kernel[1, 8](np.zeros(8))

if __name__ == "__main__":
    {work}
"""
    done = run(tmp_path, source, "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 1 and not told["ok"], done.stderr
    assert [one["kind"] for one in told["findings"]] == ["out_of_bounds"]
    assert told["launches"] == [] and told["launches_in_workers"] >= 1
    assert "ran in forked processes" in told["notes"][0]


@pytest.mark.many(one_in=2)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
@pytest.mark.parametrize("use", ["kernel[1, 1](np.zeros(8))", "kept = cuda.to_device(np.zeros(8))"])
def test_a_process_forked_after_the_gpu_was_used_cannot_use_it(use, tmp_path):
    source = f"""{KERNEL}
import multiprocessing as mp

def work(n):
    cuda.device_array(8)

if __name__ == "__main__":
    {use}
    with mp.get_context("fork").Pool(1) as pool:
        pool.map(work, range(1))
"""
    done = run(tmp_path, source)
    assert done.returncode == 1 and "CUDA initialized before forking" in done.stderr


@pytest.mark.full(reason="a program of its own")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no signal.alarm")
def test_the_exception_of_a_handler_reaches_the_program(tmp_path):
    source = f"""{KERNEL}
import signal, math
class Late(Exception): pass

def late(*_):
    raise Late

@cuda.jit
def slow(x):
    s = 0.0
    for j in range(900000):
        s += math.sin(j * 0.1)
    x[cuda.grid(1)] = s

signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, 0.5)
try:
    slow[100, 100](np.zeros(10000))
except Late:
    print("late")
"""
    done = run(tmp_path, source)
    assert (done.returncode, done.stdout) == (0, "late\n"), done.stderr


RAISES = """
import numpy as np
from numba import cuda

class TooBig(ValueError):
    def __init__(self, text, size):
        super().__init__(text)

class errors:
    class Inner(KeyError): pass

def made():
    class InClosure(OSError): pass

    @cuda.jit(debug=True, opt=False)
    def kernel(x):
        if x[0] == 0:
            raise InClosure("from a closure")
    return kernel, InClosure

@cuda.jit(debug=True, opt=False)
def own(x):
    if x[cuda.grid(1)] > 3:
        raise TooBig("too big", 3)

@cuda.jit(debug=True, opt=False)
def nested(x):
    if x[0] == 0:
        raise errors.Inner("inner")

@cuda.jit(debug=True, opt=False)
def divided(x):
    x[0] = x[0] // x[1]

@cuda.jit(debug=True, opt=False)
def asserted(x):
    assert x[0] > 0

closure, InClosure = made()
for kernel, kind, size in ((own, TooBig, 8), (nested, errors.Inner, 1), (divided, ZeroDivisionError, 1),
                           (asserted, AssertionError, 1), (closure, InClosure, 1)):
    try:
        kernel[1, size](np.arange(8) if size == 8 else np.zeros(8, np.int64))
    except kind as error:
        assert "tid=[" in str(error) and "ctaid=[0, 0, 0]" in str(error), error
        print(type(error).__name__)
"""


@pytest.mark.full(reason="a program of its own")
def test_with_debug_the_host_gets_the_kernels_own_exception(tmp_path):
    done = run(tmp_path, RAISES)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["TooBig", "Inner", "ZeroDivisionError", "AssertionError", "InClosure"]
    assert "5 launches of 5 kernels" in done.stderr


PLACED = """
import os
import numpy as np
from numba import cuda
MOST, WORD = np.float32(2.5), "big"
@cuda.jit(debug=True, opt=False)
def kernel(x, out):
    i, j = cuda.grid(2)
    out[i] = 1
    if x[i] > 3:
        raise ValueError("too " "big", 7, -1, MOST, WORD)
    assert x[i] > -1
    x[i] //= x[i + 1]
def told(x, out, threads):
    try:
        kernel[1, threads](np.array(x), out)
    except (ValueError, AssertionError, ZeroDivisionError) as error:
        return error.args
out = np.zeros(4, np.int64)
file = os.path.abspath(__file__)
first, *rest = told([1, 2, 4, 1, 1], out, (4, 2))
print(first == f"In function 'kernel', file {file}, line 11, tid=[0, 0, 2] ctaid=[0, 0, 0]: too big", first)
print(rest == [7, -1, 2.5, "big"] and type(rest[2]) is np.float32, rest)
place = f"In function 'kernel', file {file}, line 12, "
print(told([-1, 2], out, 1) == (f"{place}tid=[0, 0, 0] ctaid=[0, 0, 0]",))
print(told([1, 0], out, 1) == ("tid=[0, 0, 0] ctaid=[0, 0, 0]: integer division by zero",), out.any())
"""


@pytest.mark.full(reason="a program of its own")
def test_with_debug_the_exceptions_arguments_are_numbas(tmp_path):
    done = run(tmp_path, PLACED)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["True"] * 4, done.stdout + done.stderr
    assert done.stdout.endswith("True False\n")


HALVES = """
import numpy as np
IMPORT
from numba import cuda
@cuda.jit
def kernel(x):
    x[0] = NAME(x[0], x[1])
x = np.array([1.5, 2], np.float16)
kernel[1, 1](x)
print(x[0])
"""


@pytest.mark.many(one_in=3)
@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("from numba.cuda import fp16", "fp16.hadd"),
        ("from numba.cuda.fp16 import hadd", "hadd"),
        ("import numba.cuda.fp16", "numba.cuda.fp16.hadd"),
    ],
)
def test_float16_functions_are_imported_from_their_module(tmp_path, statement, name):
    pytest.importorskip("numba.cuda.fp16", reason="the built-in numba.cuda has no such module")
    done = run(tmp_path, HALVES.replace("IMPORT", statement).replace("NAME", name))
    assert (done.returncode, done.stdout) == (0, "3.5\n"), done.stderr


@pytest.mark.full(reason="a program of its own")
def test_a_program_declares_no_foreign_function(tmp_path):
    done = run(tmp_path, "from numba import cuda\ncuda.declare_device('f', 'int32(int32)')\n")
    assert done.returncode == 1 and "line 2: the emulator runs Python only" in done.stderr


@pytest.mark.full(reason="a program of its own")
def test_an_exception_that_is_not_defined_is_named(tmp_path):
    source = KERNEL.replace("x[i + 1] = i", "raise IndexingError('too far')") + "kernel[1, 8](np.zeros(8))\n"
    done = run(tmp_path, source)
    assert done.returncode == 1 and "the name IndexingError is not defined" in done.stderr


@pytest.mark.many(one_in=3)
@pytest.mark.parametrize("end", ["assert x[i] < 5", "while True: x[i] += 1", "raise ValueError"])
def test_after_a_stop_the_summary_tells_what_was_launched_and_found(end, tmp_path):
    source = KERNEL.replace("x[i + 1] = i", f"x[i + 1] = i\n    {end}") + "kernel[1, 8](np.zeros(8))\n"
    told = json.loads(run(tmp_path, source, "--json", "--loop-seconds", "0.2").stdout)
    assert not told["ok"] and told["exit_code"] == 1 and told["stopped"]
    (launch,) = told["launches"]
    assert launch["kernel"] == "kernel" and launch["stopped"] and launch["grid"] == [1, 1, 1]
    assert "out_of_bounds" in {one["kind"] for one in told["findings"]}
    done = run(tmp_path, source, "--loop-seconds", "0.2")
    assert "1 launch of 1 kernel" in done.stderr and "was stopped before its end" in done.stderr


LONG = """
import numpy as np
from numba import cuda

@cuda.jit
def sums(x):
    for i in range(100_000):
        for j in range(100_000):
            x[j % 8] += 1.0

sums[1, 1](np.zeros(8))
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has other interruptions")
def test_a_long_launch_says_where_it_is_and_can_be_interrupted(tmp_path, request):
    (tmp_path / "program.py").write_text(LONG)
    command = [sys.executable, "-c", SOON]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    request.addfinalizer(running.kill)
    said = running.stderr.readline()
    assert re.match(
        r"sums \(program\.py:5\) has run for \d+ s( and is in line [6-9])?\. Ctrl-C stops it", said
    )
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=60)[1]
    assert "The program was interrupted in program.py, line" in said
    assert "A launch of sums (program.py:5) was stopped before its end" in said
    assert running.returncode == 130


SOON = """
import lockstep.cli
from lockstep.host import patience
patience.Patience.__init__.__defaults__ = (0.5, None)
lockstep.cli.main(["program.py"])
"""


@pytest.mark.full(reason="a program of its own")
def test_more_threads_than_can_be_emulated_are_refused_at_once(tmp_path):
    done = run(tmp_path, f"{KERNEL}\nkernel[2**31 - 1, 1024](np.zeros(8))\n")
    assert done.returncode == 1 and "2,199,023,254,528 threads are too many to emulate" in done.stderr


@pytest.mark.full(reason="a program of its own")
def test_a_program_may_close_its_output(tmp_path):
    done = run(tmp_path, "import sys\nsys.stdout.close()\n")
    assert done.returncode == 0 and "no kernel was launched" in done.stderr and "Traceback" not in done.stderr
