"""Checks a stage on the emulator: odd shapes, padding of NaN, alpha and beta, races, bounds, barriers."""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gemm_course.device.buffers import leading_dimension, padded
from gemm_course.kernels import IllegalTiles, tiles_text
from gemm_course.kernels.parts.block_tile import tile_of
from gemm_course.kernels.parts.own import OwnKernelError, OwnStage, in_file
from lockstep import ArgumentError, EmulatorError, RefusedLine, Report, emulate, intrinsics

# Each scaling is (alpha, beta).
SCALINGS = ((1.0, 0.0), (1.25, -0.5))
ALLOWED = {("float32", "float32"): 1e-6, ("float16", "float32"): 5e-4, ("float16", "float16"): 3e-3}
# At most this many problems of one case are reported.
MOST = 5
STANDARD = ("m", "n", "k", "alpha", "A", "B", "beta", "C")
# A loop that runs this many iterations more than C has elements counts as endless.
ITERATIONS = 10_000
_MISSING = re.compile(r"name '?(\w+)'? is not defined")
_IMPORTS = {"np": "import numpy as np", "math": "import math"}
_NUMBAS = ("cuda", "float16", "float32", "float64", "int32", "int64", "uint32", "uint64")


@dataclass(frozen=True)
class Checked:
    """The result of a check.

    ``passed`` are cases, such as "129 x 131 x 17, alpha = 1, beta = 0". ``problems`` are sentences with the
    line.
    """

    name: str
    tiles: str
    passed: tuple[str, ...]
    problems: tuple[str, ...]
    advice: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True if nothing is wrong. There may still be advice."""
        return not self.problems

    def __str__(self) -> str:
        right = f"{self.name} with {self.tiles}: right in {len(self.passed)} cases"
        if self.ok:
            ending = ", up to " + self.passed[-1] if self.passed else ""
            lines = [f"{right}{ending}; no race, nothing out of bounds, padding untouched."]
        else:
            before = f" ({right} before)" if self.passed else ""
            lines = [f"{self.name} with {self.tiles} is wrong{before}:", *map("  {}".format, self.problems)]
        return "\n".join([*lines, *map("  advice: {}".format, self.advice)])

    __repr__ = __str__


def checked(
    stage: OwnStage,
    tiles: Mapping[str, int] | None = None,
    shapes: Sequence[tuple[int, int, int]] | None = None,
) -> Checked:
    """Check a stage as `Mine.check` describes. Stop at the first case in which something is wrong."""
    passed, advice = [], {}
    try:
        chosen = stage.complete(tiles)
        _require_order(stage, chosen)
        for shape in _shapes(shapes) or odd_shapes(stage, chosen):
            for alpha, beta in SCALINGS:
                problems, remarks = _case(stage, chosen, shape, alpha, beta)
                advice |= dict.fromkeys(remarks)
                case = f"{' x '.join(map(str, shape))}, alpha = {alpha:g}, beta = {beta:g}"
                if problems:
                    problems = [f"with m x n x k = {case}:", *problems[:MOST]]
                    return Checked(
                        stage.name, tiles_text(chosen), tuple(passed), tuple(problems), tuple(advice)
                    )
                passed.append(case)
    except (IllegalTiles, OwnKernelError, ValueError) as error:
        said = (_with_import(str(error)),)
        return Checked(stage.name, tiles_text(tiles or stage.tiles), tuple(passed), said, ())
    return Checked(stage.name, tiles_text(chosen), tuple(passed), (), tuple(advice))


def _shapes(given: Sequence | None) -> list[tuple[int, int, int]]:
    """Return the shapes that were given. Raise ValueError for anything that is not a shape."""
    try:
        return [(operator.index(m), operator.index(n), operator.index(k)) for m, n, k in given or ()]
    except (TypeError, ValueError):
        raise ValueError(f"shapes is a list of (m, n, k), such as [(70, 67, 65)], not {given!r}") from None


def _require_order(stage: OwnStage, tiles: Mapping[str, int]) -> None:
    """Raise OwnKernelError if the kernel takes the usual arguments in another order."""
    names = list(inspect.signature(stage.kernel(tiles).py_func).parameters)
    if sorted(names[: len(STANDARD)]) == sorted(STANDARD) and tuple(names[: len(STANDARD)]) != STANDARD:
        raise OwnKernelError(
            f"{stage.file.name}: the kernel takes ({', '.join(names)}), but it is called with "
            f"({', '.join((*STANDARD, *stage.extras))}), in this order"
        )
    after = tuple(names[len(STANDARD) :])
    if tuple(names[: len(STANDARD)]) == STANDARD and after != tuple(stage.extras):
        if len(after) == len(stage.extras):
            raise OwnKernelError(
                f"{stage.file.name}: after C the kernel takes {', '.join(after)}, but STAGE's extras name "
                f"{', '.join(stage.extras)}: give both the same names, in the same order"
            )


def odd_shapes(stage: OwnStage, tiles: Mapping[str, int]) -> list[tuple[int, int, int]]:
    """Return the usual shapes (m, n, k): one element, less and more than a tile, k = 0, and whole tiles."""
    BM, BN, BK = tile_of(stage, tiles)
    return [
        (1, 1, 1),
        (BM - 1, BN + 1, BK + 1) if BM > 1 else (1, BN + 1, BK + 1),
        (BM + 5, max(1, BN - 3), 2 * BK + 3),
        (3, 5, 0),
        (BM, BN, 3 * BK),
    ]


def _case(stage: OwnStage, tiles, shape, alpha: float, beta: float) -> tuple[list[str], list[str]]:
    """Emulate one case. Return what is wrong, and what the emulator advises."""
    m, n, k = shape
    random = np.random.default_rng([m, n, k])
    A, B, old = (random.standard_normal(size).astype(stage.dtype) for size in ((m, k), (k, n), (m, n)))
    extras = stage.example_extras(m, n)
    product = alpha * A.astype(np.float64) @ B.astype(np.float64) + beta * old.astype(np.float64)
    try:
        right = stage.finished(product, *(extra.astype(np.float64) for extra in extras))
    except Exception as error:  # whatever the learner's epilogue raises
        given = ", ".join(f"{name} {np.shape(extra)}" for name, extra in zip(stage.extras, extras))
        said = _with_import(in_file(stage.file, error))
        shapes = f", as STAGE's extras say, {dict(stage.extras)}" if stage.extras else ""
        return [f"the epilogue of {said}. It was given C {(m, n)}, {given}{shapes}"], []
    if np.shape(right) != (m, n):
        return [f"epilogue returns {np.shape(right)}, not C's shape, {(m, n)}"], []
    if beta == 0:
        old = np.full_like(old, np.nan)
    a, b, c = (padded(each, _row_length(each, stage)) for each in (A, B, old))
    standard = (m, n, k, np.float32(alpha), a, b, np.float32(beta), c, *extras)
    try:
        report = _emulated(stage, tiles, standard)
    except RefusedLine as error:
        said = _with_import(error.sentence)
        return [f"{error.filename.rpartition('/')[2]}, line {error.line}: {said}"], []
    except ArgumentError as error:
        return [f"{error}{_beside_c(stage, tiles)}"], []
    except EmulatorError as error:
        geometry = (
            " (STAGE's blocks and threads say so)"
            if "grid" in str(error) or "block has" in str(error)
            else ""
        )
        return [f"{error}{geometry}"], []
    except Exception as error:  # The learner's geometry or arguments may raise anything.
        return [_with_import(in_file(stage.file, error))], []
    problems = [str(one) for one in report.findings if one.severity == "error"]
    advice = [str(one) for one in report.findings if one.severity != "error"]
    if not np.isnan(c[:, n:]).all():
        problems.append(f"{_stores(report)}the padding of C's rows is written: columns from n on are not C's")
    problems += _wrong(c[:, :n], right, product, stage, report)
    if (
        problems
        and beta == 0
        and ((report.accesses["array"] == "C") & (report.accesses["op"] == "load")).any()
    ):
        problems.append("C is read, though beta is 0: there may be anything in it, and here it is NaN")
    if problems and stage.extras and stage.epilogue is None:
        problems.append("STAGE has extras and no epilogue, so C was compared with the product alone")
    return problems, advice


def _with_import(said: str) -> str:
    """Return a sentence, and if it is about a missing name that can be imported, the line that imports it."""
    found = _MISSING.search(said)
    if found is None:
        return said
    name = found[1]
    if name in _IMPORTS:
        line = _IMPORTS[name]
    elif hasattr(intrinsics, name):
        line = f"from lockstep.intrinsics import {name}"
    elif name in _NUMBAS:
        line = f"from numba import {name}"
    else:
        return said
    return f"{said.partition('; did you mean')[0]}: put `{line}` at the top of the file"


def _beside_c(stage: OwnStage, tiles) -> str:
    """Say what to do if the kernel and STAGE disagree about the arguments after C.

    Return "" if they agree.
    """
    names = list(inspect.signature(stage.kernel(tiles).py_func).parameters)
    after = names[names.index("C") + 1 :] if "C" in names else []
    if after == list(stage.extras):
        return ""
    if after:
        wanted = ", ".join(f'"{each}": "n"' for each in after)
        return f". What it takes after C, STAGE must name: extras={{{wanted}}}"
    return f". STAGE's extras say that it takes {', '.join(stage.extras)} after C"


def _emulated(stage: OwnStage, tiles, standard) -> Report:
    each = stage.alone(*standard, tiles=tiles)
    m, n, k = standard[:3]
    limits = {"shared_bytes": each.shared_bytes, "step_limit": ITERATIONS + m * n + k}
    return emulate(each.kernel, each.grid, each.block, *each.arguments, **limits)


def _row_length(matrix: np.ndarray, stage: OwnStage) -> int:
    """Return the length of a padded row. Every matrix gets some padding.

    Rows begin at odd multiples of what STAGE promises, so that an access which needs more is misaligned.
    """
    step = max(1, stage.alignment // matrix.itemsize)
    length = leading_dimension(matrix.shape[1] + 1, stage.alignment, matrix.itemsize)
    return length if length // step % 2 else length + step


def _stores(report: Report) -> str:
    """Return the lines where C is stored, such as "line 57: "."""
    frame = report.accesses
    lines = sorted(set(frame[(frame["array"] == "C") & (frame["op"] == "store")]["line"]))
    return f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}: " if lines else ""


def _wrong(found: np.ndarray, right: np.ndarray, product: np.ndarray, stage, report: Report) -> list[str]:
    """Return a sentence on the elements of C that are wrong, or nothing if all are right."""
    scale = max(np.linalg.norm(product), np.linalg.norm(right)) / max(right.size, 1) ** 0.5 or 1.0
    most = ALLOWED[stage.dtype, stage.accumulate] * scale
    difference = np.abs(found.astype(np.float64) - right)
    if np.linalg.norm(difference) <= most * max(right.size, 1) ** 0.5:
        return []
    bad = ~(difference <= 4 * most)
    if not bad.any():
        bad = difference == difference.max()
    rows, columns = np.nonzero(bad)
    r, c = rows[0], columns[0]
    if np.isnan(found).all() or np.isnan(found[bad]).all():
        what = "is not written, or computed from padding or from elements that nobody wrote (NaN)"
    else:
        what = f"is {found[r, c]:.6g} instead of {right[r, c]:.6g}"
    return [
        f"{_stores(report)}C[{r}, {c}] {what}; {len(rows)} of {right.size} elements are wrong, in rows "
        f"{rows.min()} to {rows.max()} and columns {columns.min()} to {columns.max()}"
    ]
