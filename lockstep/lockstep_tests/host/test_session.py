"""A session: numba.cuda is the emulator's inside of it, and as before outside, whatever happens."""

import os
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from numba import cuda
from numba.cuda import jit, to_device

from lockstep import LaunchError, emulate, emulated
from lockstep.host import active
from lockstep_tests import processes

ROOT = Path(__file__).parents[2]
FACES = ("numba.cuda", "numba.cuda.api", "numba.cuda.cudadrv.devicearray", "numba.cuda.cudadrv.devices")


@cuda.jit
def made_before(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] + np.float32(1)


@cuda.jit
def reads_beyond(x, out):
    i = cuda.grid(1)
    out[i] = x[i + 1]


def everything() -> dict:
    """All that a session may replace: names of numba.cuda, of its classes, and this module's own."""
    owners = [*(sys.modules[name] for name in FACES), type(made_before), sys.modules[__name__]]
    return {(str(owner), name): value for owner in owners for name, value in list(vars(owner).items())}


def same(before: dict, after: dict) -> bool:
    return before.keys() == after.keys() and all(before[key] is after[key] for key in before)


def ramp(n=64):
    return np.arange(n, dtype=np.float32)


def test_everything_is_as_before_after_a_session():
    before = everything()
    with emulated():
        assert not same(before, everything())
    assert same(before, everything())


def test_everything_is_as_before_after_an_error():
    before = everything()
    with pytest.raises(ZeroDivisionError), emulated():
        1 / 0  # noqa: B018
    assert same(before, everything()) and active() is None


def test_a_gpu_that_is_not_known_changes_nothing():
    before = everything()
    with pytest.raises(LaunchError, match=r"voodoo2.*H200"), emulated(gpu="voodoo2"):
        pass
    assert same(before, everything()) and active() is None


def test_names_imported_earlier_are_the_emulators_too():
    real = jit, to_device
    with emulated() as session:
        assert jit is cuda.jit and to_device is cuda.to_device
        assert (jit, to_device) != real

        @jit
        def doubled(x):
            x[cuda.grid(1)] *= 2

        d = to_device(ramp())
        doubled[2, 32](d)
        assert (d.copy_to_host() == 2 * ramp()).all() and len(session.launches) == 1
    assert (jit, to_device) == real


def test_a_module_first_imported_in_the_session_gets_the_real_names_at_its_end():
    real = cuda.to_device
    module = types.ModuleType("a_program_of_somebody")
    sys.modules[module.__name__] = module
    try:
        with emulated():
            exec("from numba.cuda import to_device as there", vars(module))
            assert module.there is cuda.to_device is not real
        assert module.there is real
    finally:
        del sys.modules[module.__name__]


def test_kernels_made_before_run_on_the_emulator():
    out = np.zeros(64, np.float32)
    with emulated() as session:
        made_before[2, 32](ramp(), out)
    assert (out == ramp() + 1).all()
    assert session.launches[0].kernel == "made_before" and session.ok


def test_a_kernel_made_in_a_session_is_numbas_own_afterwards():
    with emulated():

        @cuda.jit
        def later(x):
            x[cuda.grid(1)] = 1

        assert type(later) is not type(made_before)
    assert type(later.compiled) is type(made_before)
    assert later.compiled.py_func is later.py_func
    out = np.zeros(32, np.float32)
    emulate(later, 1, 32, out)  # and the emulator takes it at any time
    assert out.all()


def test_findings_are_collected_over_launches():
    with emulated() as session:
        out = cuda.device_array(64, np.float32)
        for _ in range(3):
            reads_beyond[2, 32](ramp(), out)
    (found,) = session.findings
    assert found.kind == "out_of_bounds" and found.severity == "error"
    assert found.launches == 3 and found.file == __file__
    assert not session.ok and session.errors == [found]
    assert [launch.grid for launch in session.launches] == [(2, 1, 1)] * 3


def test_the_summary_names_kernels_counts_and_findings():
    with emulated(gpu="ada") as session:
        made_before[2, 32](ramp(), np.zeros(64, np.float32))
        reads_beyond[2, 32](ramp(), np.zeros(64, np.float32))
    told = str(session)
    assert "made_before (" in told and "test_session.py" in told
    assert "error:" in told and "x[64]" in told
    assert told.endswith("2 launches of 2 kernels on an emulated NVIDIA GeForce RTX 4090: 1 error")


def test_a_clean_session_says_so():
    with emulated() as session:
        made_before[2, 32](ramp(), np.zeros(64, np.float32))
    assert str(session).endswith("1 launch of 1 kernel on an emulated NVIDIA H200: nothing found wrong")


def test_counts_in_the_data_are_those_of_the_report():
    with emulated() as session:
        made_before[2, 32](ramp(), np.zeros(64, np.float32))
    (launch,) = session.as_dict()["launches"]
    # 64 floats read, 64 written: 2 warps, 4 sectors of 32 bytes for each of their 2 accesses
    assert launch["counts"] == {"requests": 4, "sectors": 16, "wavefronts": 0, "flop": 64, "barriers": 0}


def test_totals_are_those_of_the_frames():
    @cuda.jit
    def busy(x):
        tile = cuda.shared.array(32, np.float32)
        tile[cuda.threadIdx.x] = x[cuda.grid(1)]
        cuda.syncthreads()
        x[cuda.grid(1)] = tile[31 - cuda.threadIdx.x] * np.float32(2) + x[0]

    report = emulate(busy, 2, 32, ramp())
    assert report.totals() == {
        "requests": report.total("requests", space="global"),
        "sectors": report.total("sectors", space="global"),
        "wavefronts": report.total("wavefronts", space="shared"),
        "flop": report.flops,
        "barriers": report.barriers,
    }
    assert all(report.totals().values())


def test_sessions_in_sessions():
    with emulated(gpu="h200") as outer:
        made_before[2, 32](ramp(), np.zeros(64, np.float32))
        with emulated(gpu="turing") as inner:
            made_before[2, 32](ramp(), np.zeros(64, np.float32))
            assert cuda.get_current_device().compute_capability == (7, 5)
        assert cuda.get_current_device().compute_capability == (9, 0)
    assert len(outer.launches) == len(inner.launches) == 1
    assert active() is None


def test_arrays_outside_of_a_session_say_what_is_missing():
    with emulated():
        allocate = cuda.device_array
    with pytest.raises(RuntimeError, match="no session"):
        allocate(4)


@cuda.jit
def lock_without_fences(lock, total):
    if cuda.threadIdx.x == 0:
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        total[0] += 1
        cuda.atomic.exch(lock, 0, 0)


def test_one_launch_counts_once_however_many_findings_a_line_has():
    with emulated() as session:
        lock, total = np.zeros(1, np.int32), np.zeros(1)
        lock_without_fences[3, 32](lock, total)
        once = [found.launches for found in session.findings]
        lock_without_fences[3, 32](lock, total)
        twice = [found.launches for found in session.findings]
    assert len(session.launches[0].report.findings) > len(once) and set(once) == {1} and set(twice) == {2}


def test_numbas_simulator_gives_way_to_the_emulator(tmp_path):
    """Whoever has no GPU may have NUMBA_ENABLE_CUDASIM set; the emulator takes the simulator's place."""
    pytest.importorskip("numba_cuda", reason="beside its simulator, the built-in numba.cuda has no host side")
    program = """
import asyncio
import numpy as np
from numba import cuda
from lockstep import emulated

@cuda.jit
def before(x):
    x[cuda.grid(1)] += 1

with emulated() as session:
    @cuda.jit("void(int64[:])")
    def inside(x):
        tile = cuda.shared.array(32, np.int64)
        tile[cuda.threadIdx.x] = x[cuda.grid(1)]
        cuda.syncwarp()
        x[cuda.grid(1)] = tile[31 - cuda.threadIdx.x]

    x = cuda.to_device(np.zeros(32, np.int64))
    before[1, 32](x)
    inside[1, 32](cuda.as_cuda_array(x))
    assert len(session.launches) == 2 and (x.copy_to_host() == 1).all()
    asyncio.run(asyncio.sleep(0))  # what is None in the simulator stays None everywhere else
assert not hasattr(cuda, "as_cuda_array") and cuda.compile_ptx is None
"""
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    simulated = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)}
    done = processes.run([sys.executable, tmp_path / "program.py"], env=simulated)
    assert done.returncode == 0, done.stderr
