"""Draws a GPU: a multiprocessor with its parts, the cache that all multiprocessors share, and DRAM."""

from __future__ import annotations

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import PAGE, Drawing, wrap
from gemm_course.model.gpus import Gpu

_KB, _MB, _GB = 2**10, 2**20, 2**30
# The edges of this many further multiprocessors show behind the first.
_BEHIND = 2
_LEFT, _RIGHT = 8.0, PAGE - 8.0 - 5 * _BEHIND
# A part has two lines of text and is this high.
_PART = 42.0
_GAP = 8.0


def draw(gpu: Gpu, l2_tb_s: float | None, note: str) -> Picture:
    """Draw a GPU by its data sheet.

    ``l2_tb_s`` is the measured bandwidth of L2 in TB/s, which no data sheet has, or None if it was not
    measured.
    """
    sms, limits = gpu.multiprocessors, gpu.limits
    drawing = Drawing(f"{sms} multiprocessors, one L2 cache, one DRAM")
    top = drawing.top
    inside = 28 + 3 * (_PART + _GAP) + _PART + _GAP
    for behind in range(_BEHIND, -1, -1):
        shift = 5.0 * behind
        drawing.rect(
            _LEFT + shift, top + shift, _RIGHT - _LEFT, inside, colours.BAND, stroke=colours.QUIET, round_=6
        )
    drawing.text(_LEFT + 10, top + 20, f"Multiprocessor (SM), 1 of {sms}", bold=True)
    _partitions(drawing, top + 28, gpu)
    shared = f"up to {limits.shared_bytes // _KB} KB of it shared; 128 bytes per clock"
    y = top + 28 + 3 * (_PART + _GAP)
    _part(drawing, _LEFT + 10, y, _RIGHT - _LEFT - 20, "L1 cache and shared memory: one memory", shared)
    y = _way(drawing, top + inside + 5 * _BEHIND, "sectors of 32 bytes")
    l2 = f"{gpu.l2_bytes // _MB} MB for all SMs; {_speed(l2_tb_s)}"
    _part(drawing, _LEFT, y, PAGE - 16, "L2 cache", l2)
    y = _way(drawing, y + _PART, "sectors of 32 bytes")
    dram = f"{gpu.memory_bytes // _GB} GB: the arrays lie here; {gpu.dram_tb_s:g} TB/s"
    _part(drawing, _LEFT, y, PAGE - 16, "DRAM", dram)
    for place, line in enumerate(wrap(note, 14, PAGE - 16)):
        drawing.text(8, y + _PART + 20 + 18 * place, line, fill=colours.QUIET)
    return drawing.picture(_in_words(gpu, l2_tb_s, note))


def _partitions(drawing: Drawing, top: float, gpu: Gpu) -> None:
    """Draw the partitions side by side, each with its scheduler, its registers and its FP32 units."""
    limits = gpu.limits
    number = limits.partitions
    width = (_RIGHT - _LEFT - 20 - _GAP * (number - 1)) / number
    for place in range(number):
        x = _LEFT + 10 + place * (width + _GAP)
        parts = (
            ("scheduler", f"up to {_warps(gpu)} warps"),
            ("registers", f"{_registers(gpu)} KB"),
            ("FP32 units", f"{limits.fp32_lanes // number} per clock"),
        )
        for row, (name, size) in enumerate(parts):
            _part(drawing, x, top + row * (_PART + _GAP), width, name, size)


def _warps(gpu: Gpu) -> int:
    """Return the number of warps that a scheduler can hold."""
    return gpu.limits.threads // 32 // gpu.limits.partitions


def _registers(gpu: Gpu) -> int:
    """Return the size of a partition's registers in KB. A register has 4 bytes."""
    return 4 * gpu.limits.registers // gpu.limits.partitions // _KB


def _part(drawing: Drawing, x: float, y: float, width: float, name: str, size: str) -> None:
    drawing.rect(x, y, width, _PART, colours.PAPER, stroke=colours.QUIET, round_=4)
    drawing.text(x + 8, y + 17, name, bold=True)
    drawing.text(x + 8, y + 34, size)


def _way(drawing: Drawing, y: float, words: str) -> float:
    """Draw an arrow up from the memory below, and write what moves. Return where that memory begins."""
    drawing.line(PAGE / 4, y + 28, PAGE / 4, y + 4, width=2, arrow=True)
    drawing.text(PAGE / 4 + 12, y + 21, words, fill=colours.QUIET)
    return y + 32


def _speed(tb_s: float | None) -> str:
    return "speed not measured" if tb_s is None else f"{tb_s:.1f} TB/s, measured"


def _in_words(gpu: Gpu, l2_tb_s: float | None, note: str) -> str:
    limits, number = gpu.limits, gpu.limits.partitions
    return (
        f"Each of the {gpu.multiprocessors} multiprocessors (SMs) has {number} schedulers. A scheduler holds"
        f" up to {_warps(gpu)} warps, and has {_registers(gpu)} KB of registers and"
        f" {limits.fp32_lanes // number} FP32 units, each of which does one multiply-add per clock. Below"
        " them the SM has one memory that is both L1 cache and shared memory: up to"
        f" {limits.shared_bytes // _KB} KB of it are shared memory, and it delivers 128 bytes per clock."
        f" What L1 does not have comes from the L2 cache of all SMs, {gpu.l2_bytes // _MB} MB,"
        f" {_speed(l2_tb_s).replace(', ', ' as ')}; what L2 does not have comes from DRAM, where the arrays"
        f" lie: {gpu.memory_bytes // _GB} GB, {gpu.dram_tb_s:g} TB/s. {note}"
    )
