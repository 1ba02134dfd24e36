"""Whole programs in the forms that people write, run as `lockstep` runs them."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from lockstep import LaunchError, cli
from lockstep.host.running import run_program
from lockstep_tests import processes

ROOT = Path(__file__).parents[2]

ADD = """
import sys
import numpy as np
from numba import cuda

@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]

def main(n):
    x = np.arange(n, dtype=np.float32)
    out = cuda.device_array(n, np.float32)
    add[(n + 127) // 128, 128](cuda.to_device(x), cuda.to_device(x), out)
    assert (out.copy_to_host() == 2 * x).all()
    print("done", *sys.argv[1:])

if __name__ == "__main__":
    main(int(sys.argv[1]))
"""
BEYOND = ADD.replace("i < out.size", "i <= out.size")


def in_a_process(folder: Path, *arguments: str):
    """The command as a person starts it."""
    command = [sys.executable, "-m", "lockstep", *arguments]
    return processes.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.fixture
def emulate(tmp_path, monkeypatch, capfd):
    """The command without a process of its own, in an empty folder -> its exit code, what it wrote where."""
    monkeypatch.chdir(tmp_path)

    def emulate(target: str, *arguments: str, **options):
        code = cli.emulate(target, arguments, **{"gpu": None, **options})
        return subprocess.CompletedProcess(target, code, *capfd.readouterr())

    return emulate


@pytest.fixture
def program(tmp_path, emulate):
    """Write a program and run it."""

    def run(source: str, *arguments: str, **options):
        (tmp_path / "program.py").write_text(textwrap.dedent(source), encoding="utf-8")
        return emulate("program.py", *arguments, **options)

    return run


def test_the_command(tmp_path):
    (tmp_path / "program.py").write_text(ADD, encoding="utf-8")
    done = in_a_process(tmp_path, "--gpu", "h200", "program.py", "300", "--gpu", "-x")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done 300 --gpu -x\n", "the arguments after the program are its own"
    assert "add (program.py:6)" in done.stderr
    assert "1 launch of 1 kernel on an emulated NVIDIA H200: nothing found wrong" in done.stderr


def test_an_error_in_a_kernel_is_told_with_its_line(program):
    done = program(BEYOND, "300", gpu="ada")
    assert done.returncode == 1
    assert "error: program.py, line 10, in add: Thread (44, 0, 0) of block (2, 0, 0)" in done.stderr
    assert "on an emulated NVIDIA GeForce RTX 4090: 3 errors" in done.stderr


def test_json_is_all_that_the_standard_output_holds(program):
    done = program(BEYOND, "300", as_json=True)
    told = json.loads(done.stdout)
    assert "done 300" in done.stderr
    assert done.returncode == told["exit_code"] == 1 and not told["ok"] and told["stopped"] is None
    (launch,) = told["launches"]
    assert (launch["kernel"], launch["grid"], launch["block"]) == ("add", [3, 1, 1], [128, 1, 1])
    assert launch["launched_in"]["line"] == 15
    assert {(found["kind"], found["line"], found["severity"]) for found in told["findings"]} == {
        ("out_of_bounds", 10, "error")
    }


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [
        ("sys.exit(3)", 3, ""),
        ("sys.exit('no luck')", 1, "no luck"),
        ("sys.exit(0)", 0, ""),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("add[1, 2000](None, None, None)", 1, "program.py, line 21: a block has at most 1,024 threads"),
        ("cuda.jit(link=['x.cu'])(main)", 1, "program.py, line 21: the emulator runs Python only"),
    ],
)
def test_how_programs_end(program, end, code, told):
    done = program(f"{ADD}    {end}\n", "300")
    assert done.returncode == code
    assert told in done.stderr and "1 launch of 1 kernel" in done.stderr
    assert "runpy" not in done.stderr and "gemm_course" not in done.stderr


def test_modules_and_their_packages(tmp_path, emulate):
    package = tmp_path / "work"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "kernels.py").write_text(ADD, encoding="utf-8")
    (package / "__main__.py").write_text("from .kernels import main\nmain(100)\n")
    done = emulate("work", module=True)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_program_finds_what_lies_beside_it(tmp_path, emulate):
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "beside.py").write_text("import sys\nN = 100\n")
    (tmp_path / "inside" / "main.py").write_text("from beside import N\nprint(N, __name__, __file__)\n")
    done = emulate("inside/main.py")
    assert done.stdout.split()[:2] == ["100", "__main__"]
    assert done.returncode == 0 and "no kernel was launched" in done.stderr


@pytest.mark.parametrize(
    ("target", "gpu", "told"),
    [("nothing.py", None, "There is no program"), ("x.py", "voodoo", "no GPU named 'voodoo'")],
)
def test_what_cannot_be_run(tmp_path, emulate, target, gpu, told):
    (tmp_path / "x.py").write_text("")
    with pytest.raises((LaunchError, FileNotFoundError), match=told):
        emulate(target, gpu=gpu)


FORMS = {
    "imports of every kind": """
        import math
        import numba
        import numba.cuda as gpu
        from numba import cuda, float32
        from numba.cuda import jit, to_device, grid
        import numpy as np

        @jit
        def scaled(x, factor):
            i = grid(1)
            if i < x.shape[0]:
                x[i] = math.sqrt(x[i]) * factor

        @numba.cuda.jit(device=True)
        def helped(a):
            return a + float32(1)

        @gpu.jit
        def with_help(x):
            i = cuda.grid(1)
            if i < x.size:
                x[i] = helped(x[i])

        x = to_device(np.full(100, 9, np.float32))
        scaled[4, 32](x, np.float32(2))
        with_help[4, 32](x)
        assert (x.copy_to_host() == 7).all()
        """,
    "tiles and streams": """
        import numpy as np
        from numba import cuda, float32
        TPB = 8

        @cuda.jit(fastmath=True)
        def matmul(A, B, C):
            sA = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
            sB = cuda.shared.array((TPB, TPB), float32)
            x, y = cuda.grid(2)
            tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
            total = float32(0)
            for i in range((A.shape[1] + TPB - 1) // TPB):
                sA[ty, tx] = sB[ty, tx] = 0
                if y < A.shape[0] and tx + i * TPB < A.shape[1]:
                    sA[ty, tx] = A[y, tx + i * TPB]
                if x < B.shape[1] and ty + i * TPB < B.shape[0]:
                    sB[ty, tx] = B[ty + i * TPB, x]
                cuda.syncthreads()
                for j in range(TPB):
                    total += sA[ty, j] * sB[j, tx]
                cuda.syncthreads()
            if y < C.shape[0] and x < C.shape[1]:
                C[y, x] = total

        rng = np.random.default_rng(1)
        A, B = rng.random((20, 30), np.float32), rng.random((30, 17), np.float32)
        stream = cuda.stream()
        with stream.auto_synchronize():
            dA, dB = cuda.to_device(A, stream), cuda.to_device(B, stream)
            dC = cuda.device_array((20, 17), np.float32, stream=stream)
            matmul[(3, 3), (TPB, TPB), stream](dA, dB, dC)
            C = dC.copy_to_host(stream=stream)
        np.testing.assert_allclose(C, A @ B, rtol=1e-5)
        """,
    "signatures": """
        import numpy as np
        from numba import cuda, void, float32, int32

        @cuda.jit("void(float32[:], int32)")
        def a(x, n):
            x[cuda.grid(1)] = n

        @cuda.jit(void(float32[:], int32))
        def b(x, n):
            x[cuda.grid(1)] += n

        @cuda.jit((float32[:], int32))
        def c(x, n):
            x[cuda.grid(1)] += n

        @cuda.jit([(float32[:], int32), "void(float64[:], int64)"])
        def d(x, n):
            x[cuda.grid(1)] += n

        x, y = np.zeros(32, np.float32), np.zeros(32)
        for kernel in a, b, c, d:
            kernel[1, 32](x, 1)
        d[1, 32](y, 2)
        assert (x == 4).all() and (y == 2).all()
        """,
    "a class that holds its kernel": """
        import numpy as np
        from numba import cuda

        class Adder:
            def __init__(self, amount):
                self.amount = amount
                @cuda.jit
                def kernel(x):
                    i = cuda.grid(1)
                    if i < x.size:
                        x[i] += amount
                self.kernel = kernel

            def __call__(self, x):
                self.kernel.forall(x.size)(x)
                return x

        assert (Adder(3)(np.zeros(50, np.int64)) == 3).all()
        """,
    "the guard that people write": """
        import sys
        import numpy as np
        from numba import cuda
        if not cuda.is_available():
            sys.exit("no GPU")
        print(cuda.gpus, cuda.get_current_device().name, cuda.current_context().get_memory_info())

        @cuda.jit
        def histogram(values, bins):
            i = cuda.grid(1)
            if i < values.size:
                cuda.atomic.add(bins, values[i], 1)

        values = np.random.default_rng(0).integers(0, 10, 1000).astype(np.int32)
        bins = np.zeros(10, np.int32)
        histogram[cuda.get_current_device().MULTIPROCESSOR_COUNT, 32](values, bins)
        assert (bins == np.bincount(values, minlength=10)).all()
        """,
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_programs(program, form):
    done = program(FORMS[form])
    assert done.returncode == 0, done.stderr


def test_a_module_that_is_not_there_is_told_in_a_sentence():
    outcome = run_program("no_module_of_this_name", module=True)
    assert (outcome.exit_code, outcome.stopped) == (1, "there is no module named no_module_of_this_name")
