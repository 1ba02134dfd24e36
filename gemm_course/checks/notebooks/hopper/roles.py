"""Tries a producer or consumer of the notebook ``hopper`` in a small kernel, and says what went wrong."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemm_course.checks.core import Call, Part, Refused, Written, line_at, nothing_yet
from gemm_course.checks.engines.trial import Trial, try_kernel
from lockstep import Finding
from lockstep.intrinsics import tensor_map

# A tile of A, of B or of C has 64 rows and columns.
SIDE = 64
BOX_BYTES = SIDE * SIDE * 2
ARGUMENTS = ("k", "A", "B", "C")
THREADS = 160
# Each case is SLOTS and (m, n, k).
CASES = ((2, (64, 128, 320)), (3, (128, 64, 448)), (4, (64, 64, 128)), (2, (64, 64, 100)))
# One addition in float32 is off by no more than this part of its result.
FROM_FLOAT32 = 6e-8


class Role:
    """A learner's device function, whose source is searched and which is launched in the kernel around it."""

    def __init__(self, function: Any, around: Callable[[int, Any], Any]):
        self.function, self.around, self.written = function, around, Written(function)

    def of(self, name: str) -> list[Call]:
        """Return the calls of this function, in the order of reading."""
        return self.written.calls(name)

    def conditions(self) -> str:
        """Return the conditions of the source's `if`s, as text."""
        asking = (*self.written.branches, *self.written.choices)
        return " ".join(branch.test.text for branch in asking)

    def moves(self, call: Call, place: int) -> bool:
        """Tell whether the loops of the source give this argument of a call more values than one."""
        given = call.argument(place, "")
        return given is not None and (bool(given.calls()) or any(map(self._varies, given.names)))

    def _varies(self, name: str) -> bool:
        numbers = {value.number for each, _, value in self._set_in_loops() if each == name}
        return len(numbers) > 1 or None in numbers

    def changes(self, name: str) -> list[int]:
        """Return the lines in loops that give a variable of this name a value."""
        return [line for each, line, _ in self._set_in_loops() if each == name]

    def in_a_loop(self, call: Call) -> bool:
        return any(call.line in loop.lines for loop in self.written.loops)

    def _set_in_loops(self) -> list[tuple[str, int, Part]]:
        """Yield (variable, line, value) of all that loops set.

        The value of a loop's counter is what it runs over.
        """
        found = []
        for loop in self.written.loops:
            found.append((loop.variable, loop.line, loop.over))
            for target, value in loop.assignments:
                found += [(each.text, each.line, value) for each in target.items or [target]]
            found += [(target.text, target.line, target.around[0]) for target in loop.updated]
        return found

    def check_begun(self, prefixes: tuple[str, ...]) -> None:
        """Raise NothingYet as long as no instruction of this notebook is called."""
        if not any(call.name.split(".")[-1].startswith(prefixes) for call in self.written.calls()):
            raise nothing_yet()

    def launch(self, slots: int, m: int, n: int, k: int) -> Trial:
        rng = np.random.default_rng((m, n, k))
        A, B = (rng.uniform(-2, 2, shape) for shape in ((m, -(-k // 8) * 8), (k, n)))
        A, B = A.astype(np.float16), B.astype(np.float16)
        maps = tensor_map(A, (m, k), (SIDE, SIDE)), tensor_map(B, (k, n), (SIDE, SIDE))
        return try_kernel(
            self.around(slots, self.function),
            ARGUMENTS,
            (n // SIDE, m // SIDE),
            THREADS,
            k,
            *maps,
            np.full((m, n), np.nan, np.float32),
            about=f"With {slots} slots, m = {m}, n = {n}, k = {k}",
            own=self.function,
            shared_bytes=slots * 2 * BOX_BYTES,
        )

    def line(self, finding: Finding) -> str:
        """Return the learner's line of a finding, or that it shows in the part that is given."""
        if finding.function == self.function.py_func.__name__:
            return line_at(self.function, finding.line)
        return "It shows in the part that is given"


@dataclass(frozen=True)
class Product:
    """The matrices A and B of a launch, and the C that came out."""

    A: np.ndarray
    B: np.ndarray
    got: np.ndarray

    @classmethod
    def of(cls, trial: Trial) -> "Product":
        A, B = (trial.before[name] for name in "AB")
        matrices = (each.array[: each.shape[0], : each.shape[1]].astype(np.float64) for each in (A, B))
        return cls(*matrices, trial.after["C"])

    @property
    def expected(self) -> np.ndarray:
        return self.A @ self.B

    @property
    def wrong(self) -> np.ndarray:
        """Return which elements differ by more than float32 accumulators explain."""
        most = (self.A.shape[1] + 4) * FROM_FLOAT32 * (abs(self.A) @ abs(self.B))
        return ~(abs(self.got - self.expected) <= most)

    def equals(self, prediction: np.ndarray) -> bool:
        return bool((abs(self.got - prediction) <= 1e-3 * (1 + abs(prediction))).all())


def box(matrix: np.ndarray, row: int, column: int) -> np.ndarray:
    """Return a tile from this corner on, with zeros outside the matrix."""
    padded = np.zeros((SIDE, SIDE))
    part = matrix[row : row + SIDE, column : column + SIDE]
    padded[: part.shape[0], : part.shape[1]] = part
    return padded


def tiles_of(product: Product, one: Callable[[int, int, int], np.ndarray]) -> np.ndarray:
    """Return C put together from its tiles, each the sum of ``one(row0, col0, step)`` over the steps."""
    C = np.zeros_like(product.expected)
    for row0 in range(0, C.shape[0], SIDE):
        for col0 in range(0, C.shape[1], SIDE):
            steps = range(-(-product.A.shape[1] // SIDE))
            C[row0 : row0 + SIDE, col0 : col0 + SIDE] = sum(one(row0, col0, step) for step in steps)
    return C


Explain = Callable[[Role, str, Finding | None], str]
Likely = Sequence[tuple[str, Callable[[Product], np.ndarray]]]


def hold(role: Role, explain: Explain, likely: Likely, otherwise: str) -> None:
    """Try all cases. Raises Refused with what `explain` makes of a finding, or with the likely mistake.

    explain: (role, the emulator's message, the finding or None where the kernel stood still) -> a sentence,
    or "". likely: messages with the C that the mistake gives. otherwise: for other wrong numbers.
    """
    for slots, sizes in CASES:
        try:
            trial = role.launch(slots, *sizes)
        except Refused as refused:
            if refused.message.startswith("The kernel does not come to an end"):
                refused = Refused(
                    f"{explain(role, refused.message, None)} {refused.message}".strip(), refused.where
                )
            raise refused from None
        if trial.report.errors:
            finding = trial.error("out_of_bounds") or trial.report.errors[0]
            said = explain(role, finding.message, finding)
            raise Refused(f"{said} {finding.message}".strip(), f"{role.line(finding)}. {trial.about}.")
        _check_numbers(trial, likely, otherwise)


def _check_numbers(trial: Trial, likely: Likely, otherwise: str) -> None:
    product = Product.of(trial)
    if not product.wrong.any():
        return
    where = trial.first_wrong("C", product.wrong, product.expected)
    for message, predicted in likely:
        if product.equals(predicted(product)):
            raise Refused(message, where)
    raise Refused(otherwise, where)
