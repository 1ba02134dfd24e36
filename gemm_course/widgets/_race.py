"""Shows a tile kernel on document 002's example, with a barrier missing and a thread held back."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gemm_course.figures import race as figure
from gemm_course.figures.picture import Picture
from gemm_course.figures.race import Factor, Track
from gemm_course.kernels import LADDER
from gemm_course.widgets._errors_in_words import NotShown, learners_name, made_by, or_words
from gemm_course.widgets._explorer import Explorer, explorer
from gemm_course.widgets._fitting import shown
from gemm_course.widgets._replay import ADD, LOAD, Cell, NothingStored, Phase, Schedule, phases, replay
from gemm_course.widgets._without_barriers import barrier_lines, without_barriers
from lockstep import Finding, Watch, emulate

SIZE, TILE = 4, 2
A = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [1, 3, 5, 7], [2, 4, 6, 8]], np.float32)
B = np.array([[2, 3, 1, 4], [4, 5, 2, 3], [6, 7, 3, 2], [8, 9, 4, 1]], np.float32)
MISSING = {"none": None, "after loading": LOAD, "after computing": ADD}
BUTTONS = {"after loading": "first, after loading", "after computing": "second, after computing"}
THREADS = [(x, y) for y in range(TILE) for x in range(TILE)]
NOBODY = "nobody"
# The picture has room for two tiles: this many phases.
_PHASES = 4
# A thread is held back for this many phases.
_LATE = 2.2
# A thread is held back before its second load or, if others do not wait for its sum, its first sum.
_BEFORE = {False: 2, True: 1}
_FORM = (
    "`see.race` draws kernels in which each thread fetches one element of each tile into shared memory, "
    "waits, and adds up a product for each step"
)

Missing = frozenset[str]


@explorer
def race(kernel: str | Callable = "penny_xu_tile", missing: str = "after loading") -> Explorer | None:
    """Show four threads of a tile kernel over time: take a barrier away, and hold one thread back.

    ``kernel`` is "penny_xu_tile", or a factory such as ``tile_kernel`` asks for, which is called with T = 2.
    ``missing`` is the barrier that is away at first: "none", "after loading" or "after computing". A kernel
    of yours opens with all its own barriers.
    """
    if kernel in MISSING:  # An older notebook asks so.
        kernel, missing = "penny_xu_tile", kernel
    if isinstance(kernel, str):
        if kernel != "penny_xu_tile":
            raise ValueError(f'see.race draws "penny_xu_tile" or a kernel of yours, not {kernel!r}.')
        subject, of = COURSES, MISSING
    else:
        if not shown("race", kernel, lambda stage: stage.name == "penny_xu_tile", _FORM):
            return None
        subject, missing = kernel, "none"
        has = _read(subject).barriers
        of = {name: kind for name, kind in MISSING.items() if kind is None or kind in has}
    late = [NOBODY, *(f"({x}, {y})" for x, y in THREADS)]
    controls = {
        "missing": ("missing barrier", [(BUTTONS.get(each, each), each) for each in of], missing),
        "late": ("held back", late, late[1]),
    }
    return Explorer(or_words(lambda missing, late: draw(missing, late, subject)), controls)


def _courses(T: int) -> Callable:
    return LADDER["penny_xu_tile"].kernel(dict.fromkeys(("BM", "BN", "BK"), T))


COURSES = _courses


def draw(missing: str, late: str, subject: Callable = COURSES) -> Picture:
    """Draw block (0, 0) of the kernel of a factory without the barrier ``missing``, a key of MISSING.

    ``late`` is the thread that is held back, or NOBODY.
    """
    tracks, gates = run(missing, late, subject)
    away, races = _away(missing, subject), _race_of(missing, subject)
    wrong = [track for track in tracks if track.wrong]
    sentences = [_explained(wrong) if wrong else _all_right(bool(races), late)]
    if races:
        sentences.append(_found(races, subject))
    elif away:
        sentences.append("The emulator finds no race: what is stored early goes where nobody reads.")
    return figure.race(tracks, gates, _title(away, bool(races), late, wrong), sentences)


def run(missing: str, late: str, subject: Callable = COURSES):
    """Return the tracks of the four threads and the barriers between them."""
    read, away = _read(subject), _away(missing, subject)
    held = None if late == NOBODY else [f"({x}, {y})" for x, y in THREADS].index(late)
    schedule = Schedule(away, held, _BEFORE[ADD in away], _LATE)
    try:
        return replay(read.programs, schedule, read.matrices)
    except NothingStored as error:
        raise NotShown(
            f"With this barrier missing and thread {late} late, another thread reads {error}, where nobody "
            "has stored anything yet. Whatever lies there goes into its sum."
        ) from None


# ---- what a kernel does ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Read:
    """What the threads of block (0, 0) do, as the emulator recorded it.

    ``matrices`` tells whose numbers a cell of the tiles holds. ``barriers`` are the lines of the barriers
    after phases of a kind, and ``without`` the kinds that have none though another phase follows. ``stores``
    are the lines that store into the tiles.
    """

    kernel: Callable
    programs: Mapping[tuple[int, int], list[Phase]]
    matrices: Mapping[Cell, str]
    barriers: Mapping[str, set[int]]
    without: Missing
    stores: frozenset[int]


@lru_cache(8)
def _read(subject: Callable) -> _Read:
    """Read a factory's kernel. Raise NotShown for one that the picture cannot show."""
    kernel = _courses(TILE) if subject is COURSES else _made(subject)
    trace, name = _emulated(kernel).trace, learners_name(kernel)
    shared = trace[trace["space"] == "shared"]
    if shared["value"].isna().any():
        raise NotShown(
            f"`{name}` reads an element of a tile that nobody has stored. Let its checker pass it."
        )
    programs = {(x, y): phases(trace, y * TILE + x) for x, y in THREADS}
    first = programs[THREADS[0]]
    if not first:
        raise NotShown(f"`{name}` does not use shared memory yet. {_FORM}.")
    if not all(map(_is_drawn, programs.values())) or len(first) > _PHASES:
        raise NotShown(
            f"{_FORM}. `{name}` does something else, such as a barrier inside the loop over p, which is "
            "drawn if it stands behind the loop."
        )
    if len({tuple((phase.kind, phase.barrier) for phase in each) for each in programs.values()}) > 1:
        raise NotShown(f"{_FORM}. The threads of `{name}` do not all do the same.")
    stores = shared.loc[shared["op"] == "store", "line"]
    read = _Read(kernel, programs, _matrices(kernel, name), *_barriers(first), frozenset(stores))
    tracks, _ = replay(programs, Schedule(frozenset(), None, 0, 0), read.matrices)
    if [track.right for track in tracks] != [(A @ B)[y, x] for x, y in THREADS]:
        raise NotShown(
            f"The products that `{name}` adds up are not those of A and B. Let its checker pass it."
        )
    return read


def _made(subject: Callable) -> Callable:
    """Return the kernel that a learner's factory makes for tiles of 2 by 2, or the kernel itself."""
    return subject if hasattr(subject, "py_func") else made_by(subject, T=TILE)


def _is_drawn(program: list[Phase]) -> bool:
    return all(
        len(phase.stores) == 2 if phase.kind == LOAD else len(phase.reads) == 2 * TILE for phase in program
    )


def _matrices(kernel: Callable, name: str) -> dict[Cell, str]:
    """Tell whose numbers each cell holds, from a run in which A is full of ones and B of twos."""
    trace = _emulated(kernel, np.ones_like(A), np.full_like(B, 2)).trace
    stores = trace[(trace["space"] == "shared") & (trace["op"] == "store")]
    values = {(row.array, tuple(row.element)): row.value for row in stores.itertuples(index=False)}
    if not set(values.values()) <= {1, 2}:
        raise NotShown(f"{_FORM}. `{name}` stores other numbers than those of A and B.")
    return {cell: "A" if value == 1 else "B" for cell, value in values.items()}


def _barriers(program: list[Phase]) -> tuple[dict[str, set[int]], Missing]:
    found: dict[str, set[int]] = {}
    for phase in program:
        if phase.barrier is not None:
            found.setdefault(phase.kind, set()).add(phase.barrier)
    return found, frozenset(phase.kind for phase in program[:-1] if phase.barrier is None)


def _away(missing: str, subject: Callable) -> Missing:
    """Return after which kinds of phases there is no barrier: taken away, or not there at all."""
    return _read(subject).without | ({MISSING[missing]} - {None})


@lru_cache(32)
def _race_of(missing: str, subject: Callable = COURSES) -> Finding | None:
    """Return the first race that the emulator finds without these barriers, or None."""
    read = _read(subject)
    kernel = read.kernel
    if MISSING[missing]:
        lines = barrier_lines(kernel)
        taken = {lines.index(line) for line in read.barriers[MISSING[missing]] if line in lines}
        kernel = without_barriers(kernel, taken)
    findings = _emulated(kernel).findings
    return next((finding for finding in findings if finding.kind == "shared_race"), None)


def _emulated(kernel, A: np.ndarray = A, B: np.ndarray = B):
    C = np.zeros((SIZE, SIZE), np.float32)
    grid = (SIZE // TILE, SIZE // TILE)
    numbers = (SIZE, SIZE, SIZE, np.float32(1), A, B, np.float32(0), C)
    return emulate(kernel, grid, (TILE, TILE), *numbers, watch=Watch((0, 0, 0)))


# ---- what is said ------------------------------------------------------------------------------------------


def _title(away: Missing, races: bool, late: str, wrong: list[Track]) -> str:
    where = (
        "With both barriers" if not away else "No barrier" if len(away) > 1 else f"No barrier {_after(away)}"
    )
    if late == NOBODY:
        return f"{where}: all sums are right" + (", by luck" if races else "")
    thread = f"thread\u00a0{late.replace(' ', chr(0xA0))}"
    if not wrong:
        waits = "the others wait, all" if not away else "and yet all"
        return f"{where}: {thread} is late, {waits} sums are right"
    sums = "one sum is" if len(wrong) == 1 else f"{('two', 'three', 'four')[len(wrong) - 2]} sums are"
    return f"{where}: {thread} is late, and {sums} wrong"


def _after(away: Missing) -> str:
    return next(name for name, kind in MISSING.items() if kind in away)


def _all_right(races: bool, late: str) -> str:
    if races:
        return (
            "All threads happen to run in step. Nothing makes them: hold one back."
            if late == NOBODY
            else "That is luck: with another thread held back, or for longer, it can be otherwise."
        )
    if late == NOBODY:
        return "Each thread stores two numbers per tile, and reads those of its neighbours after the barrier."
    return "Nobody reads a number before the late thread has stored it."


def _explained(wrong: list[Track]) -> str:
    """Say what threads read, what they should have read, and why they did not."""
    said = "; ".join(
        f"{track.name} reads "
        + " and ".join(f"{_name(one)} = {one.value} instead of {one.right}" for one in track.wrong)
        for track in wrong
    )
    whys = {_why(track, one) for track in wrong for one in track.wrong}
    return " ".join([f"{said[0].upper()}{said[1:]}.", *sorted(whys)])


def _why(track: Track, factor: Factor) -> str:
    """Say whether a wrong number is that of the tile before or that of the next."""
    read = next(
        part.end for part in track.parts if any(one is factor for pair in part.products for one in pair)
    )
    if factor.culprit[1] > read:
        return "These are left from the tile before: the new ones are stored too late."
    return "These are of the next tile: they are stored too early."


def _name(factor: Factor) -> str:
    return f"{factor.array}[{(',' + chr(0xA0)).join(map(str, factor.element))}]"


def _found(race: Finding, subject: Callable) -> str:
    """Say between which two lines of the kernel a barrier is missing, the earlier one first."""
    read = _read(subject)
    first, second = (_statement(read.kernel, line) for line in (race.other_line, race.line))
    begins = f"“{first.partition('=')[0]}= …”"
    if race.other_line in read.stores:
        between = f"{begins} and “{second}”"
    else:
        between = f"{begins} and the next tile's “{second.partition('=')[0]}= …”"
    return f"The emulator reports it whoever is late: no barrier stands between {between}."


def _statement(kernel: Callable, line: int) -> str:
    """Return the text of a kernel's line, which a reader can find, since its number is that of a file."""
    return linecache.getline(kernel.py_func.__code__.co_filename, line).strip()
