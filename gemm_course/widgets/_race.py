"""Shows document 002's example with a barrier missing and a thread held back, and whose sum goes wrong."""

from __future__ import annotations

import inspect
import linecache
from functools import lru_cache

import numpy as np

from gemm_course.figures import race as figure
from gemm_course.figures.picture import Picture
from gemm_course.figures.race import Factor, Track
from gemm_course.kernels import LADDER
from gemm_course.widgets._explorer import Explorer, explorer
from gemm_course.widgets._replay import ADD, LOAD, Schedule, phases, replay
from gemm_course.widgets._without_barriers import without_barriers
from lockstep import Watch, emulate

SIZE, TILE = 4, 2
A = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [1, 3, 5, 7], [2, 4, 6, 8]], np.float32)
B = np.array([[2, 3, 1, 4], [4, 5, 2, 3], [6, 7, 3, 2], [8, 9, 4, 1]], np.float32)
MISSING = {"none": None, "after loading": LOAD, "after computing": ADD}
BUTTONS = {"after loading": "first, after loading", "after computing": "second, after computing"}
# The barriers are counted in the order of the source.
_BARRIER = {LOAD: 0, ADD: 1}
THREADS = [(x, y) for y in range(TILE) for x in range(TILE)]
NOBODY = "nobody"
# A thread is held back for this many phases.
_LATE = 2.2
# A thread is held back before its second load or, if no thread waits for it there, its first sum.
_BEFORE = {None: 2, LOAD: 2, ADD: 1}


@explorer
def race(missing: str = "after loading") -> Explorer:
    """Show four threads of ``penny_xu_tile`` over time: take a barrier away, and hold one thread back.

    ``missing`` is the barrier that is away at first: "none", "after loading" or "after computing".
    """
    late = [NOBODY, *(f"({x}, {y})" for x, y in THREADS)]
    controls = {
        "missing": ("missing barrier", [(BUTTONS.get(each, each), each) for each in MISSING], missing),
        "late": ("held back", late, late[1]),
    }
    return Explorer(draw, controls)


def draw(missing: str, late: str) -> Picture:
    """Draw block (0, 0) without the barrier ``missing``, a key of MISSING.

    ``late`` is the thread that is held back, or NOBODY.
    """
    tracks, gates = run(missing, late)
    wrong = [track for track in tracks if track.wrong]
    sentences = [_explained(wrong, missing) if wrong else _all_right(MISSING[missing], late)]
    if MISSING[missing]:
        sentences.append(_found(MISSING[missing]))
    return figure.race(tracks, gates, _title(missing, late, wrong), sentences)


def run(missing: str, late: str):
    """Return the tracks of the four threads and the barriers between them."""
    kind = MISSING[missing]
    held = None if late == NOBODY else [f"({x}, {y})" for x, y in THREADS].index(late)
    schedule = Schedule(frozenset({kind} if kind else ()), held, _BEFORE[kind], _LATE)
    return replay(_programs(), schedule)


@lru_cache(1)
def _programs():
    trace = _emulated(_kernel()).trace
    return {(x, y): phases(trace, y * TILE + x) for x, y in THREADS}


@lru_cache(2)
def _race_of(kind: str):
    """Return the first race that the emulator finds without the barrier after phases of this kind."""
    findings = _emulated(without_barriers(_kernel(), {_BARRIER[kind]})).findings
    return next(finding for finding in findings if finding.kind == "shared_race")


def _kernel():
    return LADDER["penny_xu_tile"].kernel(dict.fromkeys(("BM", "BN", "BK"), TILE))


def _emulated(kernel):
    C = np.zeros((SIZE, SIZE), np.float32)
    grid = (SIZE // TILE, SIZE // TILE)
    numbers = (SIZE, SIZE, SIZE, np.float32(1), A, B, np.float32(0), C)
    return emulate(kernel, grid, (TILE, TILE), *numbers, watch=Watch((0, 0, 0)))


# ---- what is said ------------------------------------------------------------------------------------------


def _title(missing: str, late: str, wrong: list[Track]) -> str:
    where = "With both barriers" if missing == "none" else f"No barrier {missing}"
    if late == NOBODY:
        return f"{where}: all sums are right" + (", by luck" if missing != "none" else "")
    thread = f"thread\u00a0{late.replace(' ', chr(0xA0))}"
    if not wrong:
        return f"{where}: {thread} is late, the others wait, all sums are right"
    sums = "one sum is" if len(wrong) == 1 else f"{('two', 'three', 'four')[len(wrong) - 2]} sums are"
    return f"{where}: {thread} is late, and {sums} wrong"


def _all_right(kind: str | None, late: str) -> str:
    if kind:
        return "All threads happen to run in step. Nothing makes them: hold one back."
    if late == NOBODY:
        return "Each thread stores two numbers per tile, and reads those of its neighbours after the barrier."
    return "Nobody reads a number before the late thread has stored it."


def _explained(wrong: list[Track], missing: str) -> str:
    """Say what threads read, what they should have read, and why they did not."""
    said = "; ".join(
        f"{track.name} reads "
        + " and ".join(f"{_name(one)} = {one.value} instead of {one.right}" for one in track.wrong)
        for track in wrong
    )
    late = "These are left from the tile before: the new ones are stored too late."
    early = "These are of the next tile: they are stored too early."
    return f"{said[0].upper()}{said[1:]}. {late if MISSING[missing] == LOAD else early}"


def _name(factor: Factor) -> str:
    row, column = factor.element
    return f"{factor.array}[{row},\u00a0{column}]"


def _found(kind: str) -> str:
    race = _race_of(kind)
    stores, reads = (_statement(line) for line in sorted((race.line, race.other_line)))
    stores = f"“{stores.partition('=')[0]}= …”"
    summed = f"“{reads.partition('=')[0]}= …”"
    between = f"{stores} and “{reads}”" if kind == LOAD else f"{summed} and the next tile's {stores}"
    return f"The emulator reports it whoever is late: no barrier stands between {between}."


def _statement(line: int) -> str:
    """Return the text of a kernel's line, which a reader can find, since its number is that of a file."""
    return linecache.getline(inspect.getsourcefile(_kernel().py_func), line).strip()
