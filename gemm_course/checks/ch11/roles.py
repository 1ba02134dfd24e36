"""What a producer or consumer of notebook 11 is held to, in a small kernel, and what went wrong."""

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemm_course.checks.core import Refused, line_at, nothing_yet, source_tree
from gemm_course.checks.engines.trial import Trial, try_kernel
from lockstep import Finding
from lockstep.intrinsics import tensor_map

SIDE = 64  # rows and columns of a tile of A, of B and of C
BOX_BYTES = SIDE * SIDE * 2
ARGUMENTS = ("k", "A", "B", "C")
THREADS = 160
CASES = ((2, (64, 128, 320)), (3, (128, 64, 448)), (4, (64, 64, 128)), (2, (64, 64, 100)))  # SLOTS; m, n, k
FROM_FLOAT32 = 6e-8  # relative error of one addition


@dataclass(frozen=True)
class Call:
    """A call in the learner's source: what stands in its places, and its line."""

    name: str
    given: tuple[str, ...]
    line: int

    def at(self, place: int) -> str:
        return self.given[place] if place < len(self.given) else ""


class Role:
    """The learner's device function: its calls, the launches of the kernel around it."""

    def __init__(self, function: Any, around: Callable[[int, Any], Any]):
        self.function, self.around = function, around
        nodes = (node for node in ast.walk(source_tree(function)) if isinstance(node, ast.Call))
        self.calls = [
            Call(ast.unparse(node.func).split(".")[-1], tuple(map(ast.unparse, node.args)), node.lineno)
            for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset))
        ]

    def of(self, name: str) -> list[Call]:
        return [call for call in self.calls if call.name == name]

    def conditions(self) -> str:
        """What the source asks in its `if`s, as text."""
        nodes = ast.walk(source_tree(self.function))
        return " ".join(ast.unparse(node.test) for node in nodes if isinstance(node, (ast.If, ast.IfExp)))

    def moves(self, expression: str) -> bool:
        """Whether the loops of the source give this expression more values than one."""
        nodes = list(ast.walk(ast.parse(expression)))
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        return any(isinstance(node, ast.Call) for node in nodes) or any(map(self._varies, names))

    def _varies(self, name: str) -> bool:
        given = [value for target, value in self._set_in_loops() if ast.unparse(target) == name]
        constants = {value.value for value in given if isinstance(value, ast.Constant)}
        return len(constants) > 1 or any(not isinstance(value, ast.Constant) for value in given)

    def changes(self, name: str) -> list[int]:
        """The lines in loops that give a variable of this name a value."""
        return [target.lineno for target, _ in self._set_in_loops() if ast.unparse(target) == name]

    def in_a_loop(self, call: Call) -> bool:
        return any(loop.lineno <= call.line <= loop.end_lineno for loop in self._loops())

    def _loops(self) -> list[ast.For | ast.While]:
        nodes = ast.walk(source_tree(self.function))
        return [node for node in nodes if isinstance(node, (ast.For, ast.While))]

    def _set_in_loops(self) -> list[tuple[ast.expr, ast.expr]]:
        """What is assigned to in the loops, a loop's own variable as well, and to what."""
        pairs = []
        for loop in self._loops():
            pairs += [(loop.target, loop.iter)] if isinstance(loop, ast.For) else []
            for node in ast.walk(loop):
                if isinstance(node, ast.Assign):
                    pairs += _pairs(node)
                elif isinstance(node, ast.AugAssign):
                    pairs.append((node.target, node))
        return pairs

    def check_begun(self, prefixes: tuple[str, ...]) -> None:
        """Nothing has begun as long as no instruction of this notebook is called."""
        if not any(call.name.startswith(prefixes) for call in self.calls):
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
        """The learner's line of a finding; that it is in the given part, if it is."""
        if finding.function == self.function.py_func.__name__:
            return line_at(self.function, finding.line)
        return "It shows in the part that is given"


def _pairs(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """Targets of an assignment with their values; `a, b = 0, 1` is two."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts))
    return [(one, value) for one in getattr(target, "elts", [target])]


@dataclass(frozen=True)
class Product:
    """The matrices of a launch, and what came out."""

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
        """Which elements differ by more than float32 accumulators explain."""
        most = (self.A.shape[1] + 4) * FROM_FLOAT32 * (abs(self.A) @ abs(self.B))
        return ~(abs(self.got - self.expected) <= most)

    def equals(self, prediction: np.ndarray) -> bool:
        return bool((abs(self.got - prediction) <= 1e-3 * (1 + abs(prediction))).all())


def box(matrix: np.ndarray, row: int, column: int) -> np.ndarray:
    """A tile from this corner on, with zeros outside the matrix."""
    padded = np.zeros((SIDE, SIDE))
    part = matrix[row : row + SIDE, column : column + SIDE]
    padded[: part.shape[0], : part.shape[1]] = part
    return padded


def tiles_of(product: Product, one: Callable[[int, int, int], np.ndarray]) -> np.ndarray:
    """C put together from its tiles: the sum of ``one(row0, col0, step)`` over the steps."""
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
