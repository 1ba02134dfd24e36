"""Draws the blocks of an SM over time. Each computes with a tile, asks for the next one, and waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from gemm_course.figures import colours
from gemm_course.figures.latency import schedule
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import PAGE, SMALL, Drawing, wrap
from gemm_course.model import Tank

_LEFT, _RIGHT = 84.0, PAGE - 12
_ROW, _HIGH = 34.0, 24.0
# This many rounds of computing and waiting are shown.
_PERIODS = 4
# This many lines are reserved for the notes.
_LINES = 5
# The register file and its words take this height.
_FILE = 52.0
_ISSUING, _TURN = colours.OF_WAIT["issuing"], colours.OF_WAIT["another warp's turn"]


@dataclass(frozen=True)
class Run:
    """The blocks that an SM holds, drawn in ``room`` strips, of which those beyond ``blocks`` stay empty.

    ``computes`` and ``waits`` are clocks of one of its schedulers: how long a block computes with a tile, and
    how long it waits for the next one. ``registers`` is the register file, with the share that a block takes.
    ``asked`` says this share as a product.
    """

    blocks: int
    room: int
    computes: int
    waits: int
    registers: Tank
    asked: str

    @property
    def busy(self) -> float:
        """The share of the time in which the scheduler issues, after the start."""
        return min(1.0, self.blocks * self.computes / (self.computes + self.waits))


def strips(run: Run, title: str, notes: Sequence[str]) -> Picture:
    """Draw a strip for each block, and below them the times when the scheduler has something to issue."""
    drawing = Drawing(title, title_lines=2)
    _file(drawing, run, drawing.top)
    top = drawing.top + _FILE
    # The scheduler is simulated in units of this many clocks.
    unit = 4
    steps = _PERIODS * (run.computes + run.waits) // unit
    story = schedule(run.blocks, run.computes // unit, run.waits // unit, steps)
    scale = (_RIGHT - _LEFT) / steps
    for block in range(run.room):
        y = top + block * _ROW
        drawing.text(8, y + 17, f"block {block + 1}")
        if block < run.blocks:
            _strip(drawing, story[block], y, scale)
        else:
            drawing.rect(_LEFT, y, _RIGHT - _LEFT, _HIGH, colours.IDLE)
            drawing.text(_LEFT + 8, y + 17, "does not fit", fill=colours.QUIET)
    below = top + run.room * _ROW + 4
    _issuing(drawing, story, below, scale)
    _legend(drawing, below + 36, with_turns=any("ready" in row for row in story))
    lines = wrap(" ".join(notes), SMALL, PAGE - 16)
    for place, line in enumerate(lines):
        drawing.text(8, below + 92 + 18 * place, line, fill=colours.QUIET)
    drawing.rect(0, below + 82 + 18 * _LINES, 1, 1, colours.PAPER)
    return drawing.picture(_in_words(run, notes))


def _file(drawing: Drawing, run: Run, y: float) -> None:
    """Draw how much of the register file the blocks take, and say how many registers are left."""
    tank = run.registers
    left = tank.left(run.blocks)
    more = f"{left:,} are free" if left else "none is left"
    drawing.text(8, y + 13, f"Registers: a block takes {run.asked} of {tank.size:,}; {more}.")
    scale = (_RIGHT - 8) / tank.size
    drawing.rect(8, y + 21, _RIGHT - 8, 16, colours.IDLE, stroke=colours.EDGE)
    for block in range(run.blocks):
        x, wide = 8 + block * tank.per_block * scale, tank.per_block * scale
        drawing.rect(x, y + 21, wide, 16, colours.NOW, stroke=colours.INK)
        drawing.text(x + wide / 2, y + 34, f"block {block + 1}", size=12, anchor="middle")


def _strip(drawing: Drawing, row: Sequence[str], y: float, scale: float) -> None:
    for state, begin, end in _runs(row):
        x, wide = _LEFT + begin * scale, (end - begin) * scale
        if state == "work":
            drawing.rect(x, y, wide, _HIGH, _ISSUING)
            drawing.rect(x + wide - 2, y - 3, 2, _HIGH + 6, colours.INK)
        elif state == "wait":
            drawing.rect(x, y + _HIGH / 2 - 1, wide, 2, colours.QUIET)
        else:
            drawing.rect(x, y, wide, _HIGH, _TURN)


def _issuing(drawing: Drawing, story: Sequence[Sequence[str]], y: float, scale: float) -> None:
    drawing.text(8, y + 17, "issues", bold=True)
    busy = ["work" if "work" in states else "" for states in zip(*story, strict=True)]
    for state, begin, end in _runs(busy):
        x, wide = _LEFT + begin * scale, (end - begin) * scale
        if state:
            drawing.rect(x, y, wide, _HIGH, _ISSUING)
        else:
            drawing.hatch(x, y, wide, _HIGH)


def _runs(row: Sequence[str]):
    """Yield each state with the places where it begins and ends."""
    place = 0
    for state, group in groupby(row):
        length = len(list(group))
        yield state, place, place + length
        place += length


def _legend(drawing: Drawing, y: float, *, with_turns: bool) -> None:
    drawing.rect(8, y, 22, 13, _ISSUING)
    drawing.rect(28, y - 2, 2, 17, colours.INK)
    drawing.text(36, y + 12, "computes, then asks for a tile", size=13)
    drawing.rect(252, y + 6, 22, 2, colours.QUIET)
    drawing.text(280, y + 12, "waits for it", size=13)
    if with_turns:
        drawing.rect(374, y, 22, 13, _TURN)
        drawing.text(402, y + 12, "another's turn", size=13)
    drawing.hatch(8, y + 20, 22, 13)
    drawing.text(36, y + 32, "nothing to issue: all blocks wait", size=13)
    drawing.line(_RIGHT - 90, y + 28, _RIGHT - 40, y + 28, stroke=colours.QUIET, arrow=True)
    drawing.text(_RIGHT - 34, y + 32, "time", size=13)


def _in_words(run: Run, notes: Sequence[str]) -> str:
    resident = "1 block is" if run.blocks == 1 else f"{run.blocks} blocks are"
    return (
        f"{resident} on the SM; each takes {run.registers.per_block:,} of {run.registers.size:,} registers. "
        f"Each computes for {run.computes} clocks of a scheduler, asks for the next tile and waits "
        f"{run.waits} clocks; meanwhile others compute. The scheduler could issue in "
        f"{100 * run.busy:.0f} % of the clocks. {' '.join(notes)}"
    )
