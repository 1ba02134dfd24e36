"""Kernels that are no matrix product on trial: one launch, what was stored where, what strayed outside."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gemm_course.emulator import Finding, Report

from .exercise import Refused
from .learner import launch, line_at, parameter_names


@dataclass
class ArrayTrial:
    """One launch of a kernel that takes only arrays; ``names`` are the course's names of its arguments."""

    kernel: Any
    names: tuple[str, ...]
    grid: tuple
    block: tuple
    before: dict[str, np.ndarray] = field(repr=False)
    after: dict[str, np.ndarray] = field(repr=False)
    report: Report

    def own_name(self, name: str) -> str:
        return parameter_names(self.kernel)[self.names.index(name)]

    def touched(self, name: str) -> np.ndarray:
        """Which elements have other bits than before the launch."""
        return self.before[name].view(np.uint32) != self.after[name].view(np.uint32)

    def lanes(self, op: str, name: str) -> int:
        """Elements loaded ("load") or stored ("store") by the whole launch, inside the array."""
        return self.report.total("lanes", space="global", op=op, array=self.own_name(name))

    def strays(self, name: str) -> int:
        """The most lanes that one line sends outside this array."""
        found = [
            f for f in self.report.errors if f.kind == "out_of_bounds" and f.array == self.own_name(name)
        ]
        return max((finding.count for finding in found), default=0)

    def error(self, kind: str) -> Finding | None:
        return next((f for f in self.report.errors if f.kind == kind), None)

    def line(self, finding: Finding) -> str:
        return line_at(self.kernel, finding.line)


def try_arrays(kernel: Any, names: tuple[str, ...], grid: tuple, block: tuple, *arrays) -> ArrayTrial:
    """Launch on copies of float32 arrays. Raises Refused where the kernel cannot be run."""
    before = dict(zip(names, arrays))
    after = {name: array.copy() for name, array in before.items()}
    report = launch(kernel, grid, block, *after.values())
    return ArrayTrial(kernel, names, grid, block, before, after, report)


def refuse_errors(trial: ArrayTrial, about: str) -> None:
    """Raise Refused with the emulator's first error, if there is one."""
    if trial.report.errors:
        finding = trial.report.errors[0]
        raise Refused(finding.message, f"{trial.line(finding)}. {about}")
