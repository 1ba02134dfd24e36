"""Shows a warp's requests to global memory, lane by lane, in one stage, in two, or in your own kernel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gemm_course.figures import warp_memory as figure
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER, Stage
from gemm_course.model.requests import Request, requests
from gemm_course.widgets._errors_in_words import or_words, parameters_of
from gemm_course.widgets._explorer import StepThrough, explorer
from gemm_course.widgets._fitting import shown
from lockstep import Watch, emulate

BLOCKS = ((32, 32), (1, 256), (2, 128), (4, 64), (8, 32), (16, 16), (32, 8), (64, 4))
WIDTHS = (("256", (256, 256)), ("333", (333, 333)), ("333, padded to 336", (333, 336)))
ACCESSES = (("load A", ("load", "A")), ("load B", ("load", "B")), ("store C", ("store", "C")))
K_STEPS = 8
# A learner's loop with more iterations is taken for endless.
_MOST_ITERATIONS = 1_000
# With these tiles a block is one warp.
_TILES = {"BM": 32, "BN": 32, "BK": K_STEPS, "TM": 4, "TN": 8}
_STEPS = 32 // figure.AT_ONCE
_TILED = ("thread_tiled_2d", "vectorized")

Subject = Stage | Callable


@dataclass(frozen=True)
class Seen:
    """The work of warp 0 of block (0, 0): its requests by access, and what each lane stored of C."""

    requests: dict[tuple[str, str], list[Request]]
    places: dict[int, set]


@explorer
def warp_and_memory(
    subject: str | Stage | Callable = "naive_uncoalesced",
    other: str | Stage | Callable | None = None,
    *,
    widths: bool = False,
    blocks: bool = True,
) -> StepThrough | None:
    """Step through a warp's requests: its lanes on C, and the sectors that they touch.

    ``subject`` is a stage, its name, or a kernel (m, n, k, alpha, A, B, beta, C) of your own. With ``other``,
    one of both is chosen. With ``widths``, the width of the matrices and the step along k can be chosen, in
    place of the block's shape. Without ``blocks``, blocks are 32 × 32. For a stage that has no such picture,
    show a sentence.
    """
    given = [each for each in (subject, other) if each is not None]
    chosen = [LADDER[each] if isinstance(each, str) else each for each in given]
    why = "its tiles decide the shape of its blocks"
    if not all(shown("warp_and_memory", each, _fits, why) for each in chosen):
        return None
    for each in chosen:
        # A learner's kernel that fails must do so before anything is shown.
        _seen(each, BLOCKS[0], WIDTHS[0][1])
    return StepThrough(
        or_words(lambda step, **controls: draw(chosen, step, **controls)),
        lambda **_: _STEPS,
        _controls(chosen, widths, blocks),
        counts=("lanes", figure.AT_ONCE),
        # With half of the lanes a reader sees a pattern, and that more is to come.
        first=_STEPS - 1 if widths else _STEPS // 2 - 1,
    )


def _controls(subjects: list[Subject], widths: bool, blocks: bool) -> dict:
    controls = {}
    if len(subjects) > 1:
        names = [(name_of(each), place) for place, each in enumerate(subjects)]
        controls["kernel"] = ("kernel", names, 0)
    # The width decides where the rows of B begin.
    first = ("load", "B") if widths else ("load", "A")
    controls["access"] = ("request", list(ACCESSES), first)
    if blocks and not widths and not any(_is_tiled(each) for each in subjects):
        controls["block"] = _blocks(subjects)
    if widths:
        controls["width"] = ("columns of A, B, C", list(WIDTHS), WIDTHS[0][1])
        controls["p"] = ("step along k", range(K_STEPS), 0)
    return controls


def _blocks(subjects: list[Subject]) -> tuple:
    """Return the block's control, in rows × columns of C, or in (x, y) for a kernel of the learner's."""
    if all(isinstance(each, Stage) for each in subjects):
        return (
            "block (rows × columns)",
            [(f"{one} × {other}", (one, other)) for one, other in BLOCKS],
            BLOCKS[0],
        )
    some = any(isinstance(each, Stage) for each in subjects)
    label = "block (rows, columns; yours: x, y)" if some else "block (x, y)"
    return label, [(str(block), block) for block in BLOCKS], BLOCKS[0]


def draw(
    subjects: list[Subject],
    step: int,
    access: tuple[str, str],
    kernel: int = 0,
    block: tuple[int, int] = BLOCKS[0],
    width: tuple[int, int] = WIDTHS[0][1],
    p: int = 0,
) -> Picture:
    """Draw a request of warp 0 of block (0, 0) after ``step`` (from 0).

    ``width`` is (columns, leading dimension). ``block`` is a stage's (rows, columns) of C, or (x, y) of a
    learner's kernel. For a kernel that makes no such request, the picture says so.
    """
    subject = subjects[kernel]
    seen = _seen(subject, block, width)
    found = seen.requests[access]
    if not found:
        return figure.nothing(name_of(subject), *access)
    facts = _of_tiles(seen, access) if _is_tiled(subject) else _of_a_step(seen, access, p)
    request = found[min(p, len(found) - 1)]
    heard = figure.AT_ONCE * (step + 1)
    rows = f"Rows of {access[1]} lie {4 * width[1]} bytes apart."
    return figure.draw(
        figure.View(name_of(subject), request, seen.places, heard, (f"{rows} {facts[0]}", facts[1]))
    )


def _of_a_step(seen: Seen, access: tuple[str, str], p: int) -> tuple[str, str]:
    """Say what a step along k costs, and what all steps cost."""
    loads = [seen.requests["load", array] for array in "AB"]
    a, b = (len(made[min(p, len(made) - 1)].sectors) if made else 0 for made in loads)
    return (
        f"A step along k: {a} + {b} = {a + b} sectors.",
        f"In {K_STEPS} steps along k: {_in_all(seen.requests[access])}.",
    )


def _of_tiles(seen: Seen, access: tuple[str, str]) -> tuple[str, str]:
    """Say what one pair of tiles costs, and what the results cost."""
    a, b, c = (len(seen.requests[each]) for _, each in ACCESSES)
    return (
        f"For two tiles: {a} + {b} loads; and {c} stores of C.",
        f"In all: {_in_all(seen.requests[access])}.",
    )


def _in_all(found: list[Request]) -> str:
    """Say what all requests like the drawn one ask for together."""
    asked = sum(len(request.sectors) for request in found)
    different = len(set().union(*(request.sectors for request in found)))
    requests_ = f"{len(found)} request{'s' * (len(found) != 1)} like this"
    return f"{requests_}, {asked} sectors asked of L1, {different} different"


def name_of(subject: Subject) -> str:
    """Return the name of a stage or of a learner's function."""
    return subject.name if isinstance(subject, Stage) else getattr(subject, "py_func", subject).__name__


def _is_tiled(subject: Subject) -> bool:
    return isinstance(subject, Stage) and subject.name in _TILED


def _fits(stage: Stage) -> bool:
    return _is_tiled(stage) or all(_tiles_for(stage, block) for block in BLOCKS)


def _tiles_for(stage: Stage, block: tuple[int, int]) -> dict[str, int] | None:
    """Return the tiles with which a stage of one thread per element has blocks of this shape.

    Return None if the stage cannot have such blocks.
    """
    tiles = {"BM": block[0], "BN": block[1]}
    fits = not stage.rules(stage.complete(tiles)) and sorted(stage.block(tiles)) == sorted(block)
    return tiles if fits else None


@lru_cache(128)
def _seen(subject: Subject, block: tuple[int, int], width: tuple[int, int]) -> Seen:
    """Emulate block (0, 0), and return the work of its first warp."""
    kernel = subject
    if isinstance(subject, Stage):
        tiles = _tiles_of(subject) if _is_tiled(subject) else _tiles_for(subject, block)
        kernel, block = subject.kernel(tiles), subject.block(tiles)
    columns, leading = width
    A, B, C = (np.ones((columns, leading), np.float32) for _ in range(3))
    arguments = columns, columns, K_STEPS, np.float32(1), A, B, np.float32(0), C
    watch = Watch((0, 0, 0), 0, local=False)
    report = emulate(kernel, (1, 1), block, *arguments, watch=watch, step_limit=_MOST_ITERATIONS)
    trace = report.trace
    trace = trace[trace["space"] == "global"]
    named = dict(zip(parameters_of(kernel), ("m", "n", "k", "alpha", "A", "B", "beta", "C"), strict=False))
    trace = trace.assign(array=trace["array"].replace(named))  # A learner's kernel may have other names.
    made = {access: requests(trace, op=access[0], array=access[1]) for _, access in ACCESSES}
    places = defaultdict(set)
    for request in made["store", "C"]:
        for lane, (row, column), _ in request.lanes:
            places[lane] |= {(row, column + i) for i in range(request.bits // 32)}
    return Seen(made, places)


def _tiles_of(stage: Stage) -> dict[str, int]:
    return {**_TILES, **({"PAD": 0} if "PAD" in stage.tiles else {})}
