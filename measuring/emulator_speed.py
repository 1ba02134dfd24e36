"""Measures how fast the emulator is, beside Numba's own CUDA simulator, in one run on one machine.

    python -m measuring.emulator_speed --simulator all --output lockstep/recorded/emulator_benchmark.csv

There are four measurements: the same plain kernels at 128³ in both (the simulator takes up to 20 s for each,
so it runs only on request); the course's stages at 1024³, with the peak memory of their process; exact counts
without running at 16384³; and trial division by 2^20 threads, each as long in its loop as its number needs.
The emulator counts every access in all four, and checks every access where it runs them all.
"""

import argparse
import csv
import datetime
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

from lockstep_tests.simulator_twins import arguments, full_twins

ROOT = Path(__file__).parents[1]
COLUMNS = (
    "what",
    "kernel",
    "m",
    "n",
    "k",
    "seconds",
    "simulator_seconds",
    "times_faster",
    "peak_megabytes",
    "machine",
    "cores",
    "python",
    "numba",
    "numba_cuda",
    "numpy",
    "date",
    "command",
)
STAGES = ("naive_uncoalesced", "naive_coalesced", "block_tiled", "thread_tiled_1d", "thread_tiled_2d")
REPEATS = 3
MANY_THREADS = 1 << 20


def fastest(action, repeats=REPEATS):
    """Return the seconds of the fastest of several runs.

    The first run is usually slower, because the emulator then also reads and translates the kernel's source.
    """
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def emulated_twins(size):
    """Return {twin: seconds} of the emulator with everything on."""
    from lockstep import emulate

    return {
        twin.name: fastest(
            lambda twin=twin: emulate(twin.kernel, twin.grid(*size[:2]), twin.block, *arguments(*size))
        )
        for twin in full_twins()
    }


def simulated_twins(names, size):
    """Return {twin: seconds} of Numba's simulator, which runs in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "simulated.npz"
        subprocess.run(
            [sys.executable, "-m", "lockstep_tests.simulator_twins", str(output), *map(str, size), *names],
            cwd=ROOT,
            env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
            check=True,
        )
        found = np.load(output)
        return {name: float(found[f"seconds_{name}"]) for name in names}


def run_stage(name, edge, counts_only):
    """Return (seconds, peak megabytes of this process) of one stage of the ladder at edge³."""
    from gemm_course.kernels import LADDER
    from lockstep import emulate

    stage = LADDER[name]
    given = views(edge) if counts_only else arguments(edge, edge, edge)
    start = time.perf_counter()
    emulate(
        stage.kernel(),
        stage.grid(edge, edge),
        stage.block(),
        *given,
        shared_bytes=stage.shared_bytes(),
        counts_only=counts_only,
    )
    seconds = time.perf_counter() - start
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_trial_division(threads):
    """Return the seconds of the kernel in which every thread tests whether its own number is prime."""
    from lockstep import emulate
    from lockstep_tests.test_narrowing import trial_division

    return fastest(lambda: emulate(trial_division, threads // 256, 256, np.zeros(threads, np.int64)), 1)


def views(edge):
    """Return arguments that take no memory, for counting."""
    matrix = np.broadcast_to(np.float32(0), (edge, edge))
    return edge, edge, edge, np.float32(1.5), matrix, matrix, np.float32(0.5), matrix


def stage_alone(name, edge, counts_only):
    """Return what `run_stage` returns in a separate process, so that its peak memory is its own."""
    wanted = json.dumps([name, edge, counts_only])
    command = [sys.executable, "-m", "measuring.emulator_speed", "--stage", wanted]
    answer = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return json.loads(answer.splitlines()[-1])


def measure(simulator):
    """Yield rows without the columns for place and time."""
    small = (128, 128, 128)
    seconds = emulated_twins(small)
    simulated = simulated_twins(simulator, small) if simulator else {}
    for name, taken in seconds.items():
        slow = simulated.get(name)
        yield {
            "what": "plain kernel, run",
            "kernel": name,
            **cube(128),
            "seconds": round(taken, 4),
            "simulator_seconds": slow and round(slow, 2),
            "times_faster": slow and round(slow / taken),
        }
    for edge, counts_only, what in ((1024, False, "stage, run"), (16384, True, "stage, counts only")):
        for name in STAGES:
            taken, peak = stage_alone(name, edge, counts_only)
            yield {
                "what": what,
                "kernel": name,
                **cube(edge),
                "seconds": round(taken, 3),
                "peak_megabytes": round(peak),
            }
    yield {
        "what": "a number per thread",
        "kernel": "trial_division",
        "m": MANY_THREADS,
        "n": 1,
        "k": 1,
        "seconds": round(run_trial_division(MANY_THREADS), 2),
    }


def cube(edge):
    return dict.fromkeys("mnk", edge)


def processor():
    """Return the processor's name, or else the machine's type."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def origin(command):
    """Return where and when the figures were measured."""
    return {
        "machine": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numba": version("numba"),
        "numba_cuda": version("numba-cuda"),
        "numpy": version("numpy"),
        "date": datetime.date.today().isoformat(),
        "command": command,
    }


def show(row):
    faster = f"{row['times_faster']:6} times faster" if row.get("times_faster") else ""
    size = f"{row['m']}³" if row["k"] == row["m"] else f"{row['m']:,}"
    memory = f"{row['peak_megabytes']:6} MB at most" if row.get("peak_megabytes") else ""
    print(
        f"{row['what']:20}{row['kernel']:20}{size:>14} {row['seconds']:9.3f} s {faster}{memory}",
        flush=True,
    )


def write(rows, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main():
    """Measure, print a table and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [twin.name for twin in full_twins()]
    parser.add_argument("--simulator", nargs="*", choices=[*names, "all"], default=[], metavar="KERNEL")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        print(json.dumps(run_stage(*json.loads(options.stage))))
        return
    command = "python -m measuring.emulator_speed"
    if options.simulator:
        command += f" --simulator {' '.join(options.simulator)}"
    chosen = names if "all" in options.simulator else options.simulator
    rows = []
    for row in measure(chosen):
        rows.append({**row, **origin(command)})
        show(row)
    if options.output:
        write(rows, options.output)


if __name__ == "__main__":
    main()
