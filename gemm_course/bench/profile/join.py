"""Joins what Nsight Compute measured of each instruction with the machine code that the compiler made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gemm_course.bench.profile.pages import Measured
from gemm_course.compiler.disassembly import Instruction
from gemm_course.profiles.store import COUNTED

# A function begins at a multiple of this many bytes.
ALIGNED = 128


class OtherCode(ValueError):
    """The error for measurements of other code than was compiled. Its message says where they differ."""


def joined(code: Sequence[Instruction], rows: Sequence[Measured]) -> dict[str, Any]:
    """Add up the measured rows for each instruction of ``code``.

    Return the lists of counts and samples that a profile's file stores. Rows of the padding at a function's
    end count for the last instruction before it, because warps that have ended are sampled there while their
    stores are under way. Raise OtherCode if the rows do not fit the code.
    """
    counts = {name: [0] * len(code) for name in COUNTED}
    samples: dict[str, list[int]] = {}
    for row, place in zip(rows, places(code, rows), strict=True):
        for name in COUNTED:
            counts[name][place] += row.counts[name]
        for reason, count in row.samples.items():
            samples.setdefault(reason, [0] * len(code))[place] += count
    return {**counts, "samples": samples}


def places(code: Sequence[Instruction], rows: Sequence[Measured]) -> list[int]:
    """Return, for each measured row, the index of the instruction that it counts for. Raise OtherCode."""
    ours, theirs = [one.opcode for one in code], [row.opcode for row in rows]
    last = len(ours) - 1
    if theirs[: len(ours)] == ours and all(row.is_padding for row in rows[len(ours) :]):
        return [min(place, last) for place in range(len(rows))]
    found = _by_function(ours, theirs, rows)
    if found is None:
        raise OtherCode(_difference(code, rows))
    return found


def _by_function(ours: list[str], theirs: list[str], rows: Sequence[Measured]) -> list[int] | None:
    """Return what `places` returns, also if functions that the kernel calls are in another order.

    Return None if the rows do not fit the code in any order.
    """
    left = list(_functions(rows))
    found, at = [0] * len(rows), 0
    while at < len(ours):
        fits = (one for one in left if one[0] < one[1] and theirs[one[0] : one[1]] == ours[at:][: _size(one)])
        best = max(fits, key=_size, default=None)
        if best is None:
            return None
        begin, end, padded = best
        for row in range(begin, padded):
            found[row] = at + min(row, end - 1) - begin
        left.remove(best)
        at += _size(best)
    return None if left else found


def _size(function: tuple[int, int, int]) -> int:
    return function[1] - function[0]


def _functions(rows: Sequence[Measured]) -> Iterator[tuple[int, int, int]]:
    """Yield three row numbers per function: where it, its padding, and the next function begin."""
    begin = 0
    for row in range(1, len(rows) + 1):
        if row == len(rows) or (rows[row - 1].is_padding and rows[row].address % ALIGNED == 0):
            end = row
            while end > begin and rows[end - 1].is_padding:
                end -= 1
            yield begin, end, row
            begin = row


def _difference(code: Sequence[Instruction], rows: Sequence[Measured]) -> str:
    for place, (ours, theirs) in enumerate(zip(code, rows)):
        if ours.opcode != theirs.opcode:
            what = f"instruction {place} of {len(code)} is {theirs.text!r}, not {ours.text!r}"
            break
    else:
        what = f"{len(rows)} instructions, {len(code)} of them expected"
    return f"Nsight Compute measured other code than the compiler makes here: {what}"
