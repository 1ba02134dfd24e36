"""Small programs whose outcome the hardware, the driver or the compiler decides, and what became of them.

    python -m lockstep_tests.gpu_facts --record FILE    # on a GPU: runs each in a process of its own
    python -m lockstep_tests.gpu_facts NAME             # runs one and prints its outcome

``lockstep/recorded/gpu_facts.csv`` has the outcomes on a GPU; ``test_gpu_facts.py`` compares the emulator's.
"""

import csv
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numba import cuda, float32, float64
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float64

HANGS = "no end within 25 s"
FACTS: dict[str, Callable] = {}


def fact(function):
    FACTS[function.__name__] = function
    return function


# ---- barriers of a grid ----


@cuda.jit
def after_exits(x, out, exits):
    i = cuda.grid(1)
    if exits == 1 and cuda.threadIdx.x > 0 and cuda.threadIdx.x % 2:
        return
    if exits == 2 and cuda.threadIdx.x == 0 and cuda.blockIdx.x == 1:
        return
    if exits == 3 and cuda.blockIdx.x == 1:
        return
    x[i] = 1
    cuda.cg.this_grid().sync()
    out[i] = x[i] + x[(i + cuda.blockDim.x) % x.size]


def _after_exits(exits):
    x, out = np.zeros((2, 4 * 64))
    after_exits[4, 64](x, out, exits)
    return float(out.sum())


@fact
def grid_barrier_after_odd_threads_have_returned():
    return _after_exits(1)


@fact
def grid_barrier_after_the_first_thread_of_a_block_has_returned():
    return _after_exits(2)


@fact
def grid_barrier_after_a_block_has_returned():
    return _after_exits(3)


@fact
def grid_barrier_with_more_blocks_than_there_is_room_for():
    after_exits[100_000, 64](np.zeros(4), np.zeros(4), 0)


# ---- random states ----


@cuda.jit
def draw(states, out):
    i = cuda.grid(1)
    out[i] = xoroshiro128p_uniform_float64(states, i)


@fact
def random_states_for_far_too_few_threads():
    out = np.zeros(1 << 20)
    draw[1 << 12, 1 << 8](create_xoroshiro128p_states(32, 1), out)
    return "runs"


# ---- numbers ----


@cuda.jit
def multiply_adds(x, k, out):
    out[0] = cuda.fma(x[0], x[0], x[1])
    out[1] = cuda.fma(k[0], k[0], k[1])


@fact
def fma_rounds_once_and_casts_integers():
    out, x = np.zeros(2), np.array([1 + 2.0**-30, -(1 + 2.0**-29)])
    multiply_adds[1, 1](x, np.array([4_000_000_000, 5]), out)
    return out.tolist()


@cuda.jit
def signs(u8, u32, u64, i64, out):
    out[0], out[1] = -u8[0], ~u8[0]
    out[2], out[3] = -u32[0], (-u32[0]) >> 4
    out[4], out[5] = u64[0] == i64[0], u64[0] >= i64[0]


@fact
def small_integers_are_negated_in_their_type_and_mixed_signs_compared_as_floats():
    out = np.zeros(6, np.int64)
    large = 1721142608025344941
    given = np.array([7], np.uint8), np.array([7], np.uint32), np.array([large], np.uint64)
    signs[1, 1](*given, np.array([large + 49]), out)
    return out.tolist()


@cuda.jit
def narrow_vectors(out):
    v = cuda.char2(200, -1)
    out[0], out[1] = v.x, v.y


@fact
def a_vector_of_bytes_wraps():
    out = np.zeros(2, np.int64)
    narrow_vectors[1, 1](out)
    return out.tolist()


@cuda.jit
def dates(when, lengths, out):
    lengths[0] = when[1] - when[0]
    out[0], out[1] = when[1] > when[0], when[2] == when[2]
    out[2], out[3] = np.isnat(when[2]), lengths[0] / lengths[1]


@fact
def dates_and_what_is_no_date():
    when = np.array(["2026-11-27", "2026-12-01", "NaT"], "M8[D]")
    lengths, out = np.array([0, 3], "m8[D]"), np.zeros(4)
    dates[1, 1](when, lengths, out)
    return lengths.astype(int).tolist(), out.tolist()


# ---- records ----

BODY = np.dtype([("n", "i4"), ("v", "f4", (3,)), ("at", [("x", "f8"), ("y", "f8")])], align=True)


@cuda.jit
def change_records(many, one):
    cuda.atomic.add(many[0].v, 1, 1.5)
    cuda.atomic.add(many.n, 1, 2)
    if cuda.grid(1) == 0:
        one.n = 7
        one.at.y = many[1].at.x


@fact
def atomics_on_fields_and_a_record_that_is_written_back():
    many, one = np.zeros(2, BODY), np.zeros(1, BODY)[0]
    many["at"]["x"] = 4
    change_records[2, 8](many, one)
    return many[0]["v"].tolist(), many["n"].tolist(), int(one["n"]), float(one["at"]["y"])


# ---- memory ----


@cuda.jit
def two_types_of_dynamic_memory(out):
    doubles, tail = cuda.shared.array(0, float64), cuda.shared.array(0, np.uint8)
    out[0], out[1] = doubles.size, tail.size


@fact
def dynamic_memory_of_19_bytes():
    out = np.zeros(2, np.int64)
    two_types_of_dynamic_memory[1, 1, 0, 19](out)
    return out.tolist()


@cuda.jit
def much_local_memory(out):
    mine = cuda.local.array(200_000, float32)
    for i in range(out.size):
        mine[i * 1000 % 200_000] = i
    out[0] = mine[out.size]


@fact
def a_local_array_of_800_000_bytes():
    much_local_memory[1, 1](np.zeros(8, np.float32))
    return "runs"


LARGE = np.zeros(20_000)


@cuda.jit
def much_constant_memory(out):
    out[0] = LARGE[cuda.grid(1)]


@fact
def constant_memory_of_160_000_bytes():
    much_constant_memory[1, 1](np.zeros(1))
    return "runs"


@cuda.jit
def hinted(x, out):
    i = cuda.grid(1)
    cuda.stcs(out, i, cuda.ldcg(x, i) + cuda.ldcv(x, -1))


@fact
def loads_and_stores_with_hints_for_the_caches():
    x, out = np.arange(4.0), np.zeros(4)
    hinted[1, 4](x, out)
    return out.tolist()


# ---- the host side ----


@cuda.jit
def with_a_default(out, value=3):
    out[0] = value


@fact
def a_default_argument_left_out():
    out = np.zeros(1)
    with_a_default[1, 1](out)
    return out.tolist()


@cuda.jit
def adds_all(x, out):
    cuda.atomic.add(out, 0, cuda.all_sync(0xFFFFFFFF, x[cuda.grid(1)]))


@fact
def a_vote_of_floats():
    adds_all[1, 32](np.ones(32), np.zeros(1))
    return "runs"


@cuda.jit(debug=True, opt=False)
def checked(x):
    if x[cuda.grid(1)] < 0:
        raise ValueError("negative", 7)


@fact
def an_exception_of_a_kernel_with_debug():
    x = np.ones((4, 2)).reshape(-1)
    x[5] = -1
    checked[2, 4](x)
    return "runs"


# ---- running and recording ----


def outcome(name: str) -> str:
    """Run one program; return its result or its exception in words."""
    try:
        result = FACTS[name]()
        cuda.synchronize()
    except Exception as error:
        said = re.sub("\x1b" + r"\[\d*m", "", str(error)).replace(f"{Path(__file__).parent}/", "")
        return f"{type(error).__name__}: {' '.join(said.split())[:160]}"
    return repr(result)


def _record(file: str) -> None:
    import numba
    from cuda.core import Device

    driver = subprocess.check_output(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
    made = [
        Device().name,
        driver.decode().split()[0],
        f"numba-cuda {version('numba-cuda')}",
        numba.__version__,
    ]
    with open(file, "w", encoding="utf-8", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["fact", "outcome", "gpu", "driver", "numba_cuda", "numba"])
        for name in FACTS:
            command = [sys.executable, "-m", "lockstep_tests.gpu_facts", name]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=25)
                found = (done.stdout.strip() or f"process ended with {done.returncode}").splitlines()[-1]
            except subprocess.TimeoutExpired:
                found = HANGS
            table.writerow([name, found, *made])


if __name__ == "__main__":
    if sys.argv[1] == "--record":
        _record(sys.argv[2])
    else:
        print(outcome(sys.argv[1]))
