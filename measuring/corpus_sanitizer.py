"""Records what NVIDIA's compute-sanitizer reports for every kernel of the corpus.

    python -m measuring.corpus_sanitizer --output lockstep/recorded/sanitizer.csv

The emulator is compared with these verdicts. This needs a GPU and compute-sanitizer. Every kernel runs under
every tool in a separate process, because a bad access destroys the process's CUDA context, and a divergent
barrier may never end. Such a run is stopped and called a hang. A sound kernel must also return the right
results.
"""

import argparse
import csv
import datetime
import inspect
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lockstep_tests import corpus
from measuring.sanitizer.tool import RAN, TOOLS, NoSanitizer, find_sanitizer, run_under

COLUMNS = ("kernel", "kind", "tool", "verdict", "message", "gpu", "driver", "date", "command")
ROOT = Path(__file__).parents[1]
PLACE = re.compile(r"at lockstep_tests::\S.*?\+0x\w+ in \w+\.py:(\d+)")


def all_cases():
    """Return the whole corpus by name."""
    return corpus.cases("broken") | corpus.cases("sound")


def launch(case):
    """Compile the case with line information and run it on the GPU. Return its arguments after that."""
    from numba import cuda

    arguments = [cuda.to_device(a) if hasattr(a, "shape") and a.shape else a for a in case.make_args()]
    kernel = cuda.jit(lineinfo=True)(case.kernel.py_func)
    kernel[case.grid, case.block, 0, case.shared_bytes](*arguments)
    cuda.synchronize()
    return [a.copy_to_host() if hasattr(a, "copy_to_host") else a for a in arguments]


def lines_of_the_kernel(message, case):
    """Return the message with lines counted from the kernel's own first line."""
    first = inspect.getsourcelines(case.kernel.py_func)[1]
    return PLACE.sub(lambda found: f"at line {int(found[1]) - first + 1}", message)


def check(name, tool, seconds):
    """Return (verdict, message, command) of one kernel under one tool."""
    said, command = run_under(tool, ["-m", "measuring.corpus_sanitizer", "--run", name], seconds, ROOT)
    return said.verdict, lines_of_the_kernel(said.message, all_cases()[name]), command


def describe_gpu():
    """Return (name, driver version) of the first GPU."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    answer = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    return tuple(part.strip() for part in answer.splitlines()[0].split(","))


def check_all(names, tools, workers, seconds):
    """Return one row (a dict of COLUMNS) for every kernel and tool."""
    gpu, driver = describe_gpu()
    today = datetime.date.today().isoformat()
    known = all_cases()
    pairs = [(name, tool) for tool in tools for name in names]
    with ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(lambda pair: check(*pair, seconds), pairs))
    return [
        dict(
            zip(
                COLUMNS,
                (name, known[name].kind or "sound", tool, *said, gpu, driver, today, command),
                strict=True,
            )
        )
        for (name, tool), (*said, command) in zip(pairs, results, strict=True)
    ]


def write(rows, path):
    """Write the rows as CSV, by kernel and tool. Other kernels' rows in the file stay as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            new = {(row["kernel"], row["tool"]) for row in rows}
            rows = rows + [row for row in csv.DictReader(file) if (row["kernel"], row["tool"]) not in new]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: (row["kernel"], row["tool"])))


def main():
    """Run one kernel, as the sanitizer asks, or the whole corpus under every tool."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", metavar="KERNEL", help="only launch this kernel, without a sanitizer")
    parser.add_argument(
        "--only", nargs="*", metavar="KERNEL", help="check these kernels and keep the file's other rows"
    )
    parser.add_argument("--tools", nargs="*", choices=TOOLS, default=TOOLS)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=60, help="a run that takes longer is called a hang")
    parser.add_argument("--output", type=Path, default=ROOT / "lockstep" / "recorded" / "sanitizer.csv")
    options = parser.parse_args()
    if options.run:
        case = all_cases()[options.run]
        after = launch(case)
        if case.expected:
            corpus.compare(case, after)
        print(RAN)
        return
    try:
        find_sanitizer()
    except NoSanitizer as reason:
        parser.error(str(reason))
    rows = check_all(options.only or sorted(all_cases()), options.tools, options.workers, options.seconds)
    write(rows, options.output)
    for row in rows:
        print(f"{row['kind']:22}{row['kernel']:55}{row['tool']:11}{row['verdict']:8}{row['message'][:80]}")


if __name__ == "__main__":
    main()
