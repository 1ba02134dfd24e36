"""Launches each case once and reports the outcome, in the process that Nsight Compute watches.

    python -m gemm_course.bench.profile.child SOURCE REPORT

SOURCE is `Source.as_text()`. REPORT gets one line of JSON per case: what was launched, or the error.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gemm_course.bench.profile.sources import Case, Source
from gemm_course.device import compile_for, launch, on_device


def launch_all(cases: Iterable[Case], report: Path) -> None:
    """Launch each case once, and write its line into the report as soon as the launch has ended or failed."""
    from numba import cuda

    with report.open("w", encoding="utf-8") as file:
        for case in cases:
            print(json.dumps(_launch_once(cuda, case)), file=file, flush=True)


def _launch_once(cuda, case: Case) -> dict:
    about = {
        "case": case.name,
        "kernel": getattr(case.kernel, "py_func", case.kernel).__name__,
        "grid": _three(case.grid),
        "block": _three(case.block),
        "dynamic_shared_bytes": case.shared_bytes,
        **case.setting,
    }
    try:
        args = on_device(case.make_args())
        found = compile_for(case.kernel, args)
        launch(case.kernel, case.grid, case.block, args, case.shared_bytes)
        cuda.synchronize()
    except Exception as error:  # The error is this case's result, and the others go on.
        return {**about, "error": f"{type(error).__name__}: {error}"}
    return {
        **about,
        "registers": found.registers,
        "local_bytes": found.local_bytes,
        "static_shared_bytes": found.static_shared_bytes,
    }


def _three(size) -> str:
    sizes = (size,) if np.isscalar(size) else tuple(size)
    return "x".join(str(int(part)) for part in (*sizes, 1, 1)[:3])


if __name__ == "__main__":
    launch_all(Source.from_text(sys.argv[1]).cases(), Path(sys.argv[2]))
