"""Runs a worker process of the sweep, which compiles kernels, and measures one when it is lent the GPU.

The process answers two kinds of request: ("compile", stage name, tiles) and ("measure",). Each answer is
(columns, reason): what is known by now, and why the task cannot be measured, or "" if it can.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

BUDGET_MS = 40


def serve(connection, gpu: str, shape: tuple[int, int, int], dtypes: Sequence[str], command: str) -> None:
    """Answer requests until the other end closes.

    ``gpu`` is the number or uuid of the one GPU that this process sees. ``dtypes`` are those of all stages
    that requests may name. Their matrices are created before the first request.
    """
    os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    bench = Workbench(shape, dtypes, command)
    connection.send("ready")
    while True:
        try:
            request, *rest = connection.recv()
        except EOFError:
            return
        answer = bench.compile(*rest) if request == "compile" else bench.measure()
        connection.send(answer)
        if answer[1].startswith(CRASH):
            connection.close()
            os._exit(1)  # The CUDA context is lost, so every later launch would fail.


CRASH = "crashed"


class Workbench:
    """A worker's problems, one per dtype, and the candidate that was compiled last."""

    def __init__(self, shape: tuple[int, int, int], dtypes: Sequence[str], command: str):
        from gemm_course.bench.problem import Problem
        from gemm_course.device import time_launch

        self.command, self.shape = command, shape
        self.problems = {dtype: Problem(*shape, dtype=dtype) for dtype in dtypes}
        for problem in self.problems.values():
            problem.product  # noqa: B018  computed now, while nobody is measuring
        time_launch(lambda: None, most=1)  # This compiles the kernel that every timing needs.
        self.candidate = None

    def compile(self, stage_name: str, tiles: Mapping[str, int]) -> tuple[dict[str, Any], str]:
        """Compile a stage with these tiles, in place of the previous candidate.

        Return its columns and a reason.
        """
        from gemm_course.bench.measure import Candidate, row_of
        from gemm_course.kernels import LADDER, IllegalTiles

        self.candidate = None
        gc.collect()
        stage = LADDER[stage_name]
        row = row_of(stage, tiles, self.shape, self.command)
        try:
            self.candidate = Candidate(stage, tiles, self.problems[stage.dtype])
        except IllegalTiles as error:
            return row, "illegal: " + "; ".join(error.broken)
        except Exception as error:  # The message of the compiler or the driver is the row's reason.
            return row, _reason(error)
        return row | self.candidate.resource_columns(), ""

    def measure(self) -> tuple[dict[str, Any], str]:
        """Check and time the candidate. Return its columns and a reason."""
        from gemm_course.bench.problem import WrongResult

        try:
            error = self.candidate.check(scalings=((1.0, 0.0),))
            return self.candidate.measure(error, BUDGET_MS, least=1), ""
        except WrongResult as found:
            return {}, f"wrong: {found}"
        except Exception as error:
            return {}, _reason(error)


def _reason(error: Exception) -> str:
    """Return one line that starts with the kind of failure."""
    text = " ".join(str(error).split())[:200]
    for kind, words in REASONS.items():
        if any(word in text for word in words):
            return f"{kind}: {text}"
    return f"failed: {type(error).__name__}: {text}"


REASONS = {
    "registers": ("LAUNCH_OUT_OF_RESOURCES", "too many resources", "OUT_OF_REGISTERS"),
    "shared memory": ("shared memory", "shared data", "smem"),
    CRASH: ("ILLEGAL_ADDRESS", "LAUNCH_FAILED", "MISALIGNED", "illegal memory access", "ILLEGAL_INSTRUCTION"),
}


if __name__ == "__main__":
    sys.exit("this module is started by gemm_course.bench.sweep")
