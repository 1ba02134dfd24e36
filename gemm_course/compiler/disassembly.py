"""Reads nvdisasm's text: the instructions in order, each with its address and the line of source it belongs
to."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gemm_course.compiler.kinds import kind_of

SIZE = 16  # bytes of an instruction, from compute capability 7.0 on
NOWHERE = ("", 0)  # the place of an instruction that belongs to no line

_PLACE = re.compile(r'\s*//## File "(?P<file>[^"]*)", line (?P<line>\d+)')
_LABEL = re.compile(r"(?P<name>[.$\w]+):\s*$")
_FUNCTION = re.compile(r"\s*\.type\s+(?P<name>\S+?),@function")
_INSTRUCTION = re.compile(r"\s*/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<text>.*?)\s*;?\s*$")
_REFERENCE = re.compile(r"`\((?P<name>[^()]*)\)")
_PARTS = re.compile(r"(?:(?P<predicate>@!?U?P\w+)\s+)?(?P<opcode>\S+)\s*(?P<operands>.*)")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction, with a predicate in front if it has one: "@!P0 BRA 0x230".

    address: bytes from the kernel's start. file, line: the source that it was made from, "" and 0 where
    that is none of the kernel's or of its device functions', such as in a division of integers.
    """

    address: int
    text: str
    file: str
    line: int

    @property
    def predicate(self) -> str:
        return self._parts()["predicate"] or ""

    @property
    def opcode(self) -> str:
        return self._parts()["opcode"]

    @property
    def operands(self) -> str:
        return self._parts()["operands"]

    @property
    def kind(self) -> str:
        parts = self._parts()
        return kind_of(parts["opcode"], parts["operands"])

    def _parts(self) -> re.Match:
        return _parsed(self.text)


@functools.lru_cache(maxsize=20_000)
def _parsed(text: str) -> re.Match:
    return _PARTS.match(text)


def instructions(text: str, kernel: str, name: str, files: Mapping[str, str]) -> list[Instruction]:
    """The instructions of a kernel in nvdisasm's output (-gi -c), with addresses in place of labels.

    kernel: its mangled name there, for which `name` is written. files: the file names of debug information,
    absolute and normalised, with the names to show; lines of any other file count for the one that called it.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    found = list(_read(lines, files))
    addresses = {label: address for labels, address, *_ in found for label in labels}

    def written(reference: re.Match) -> str:
        target = reference["name"]
        if target in addresses and target != kernel:
            return f"{addresses[target]:#x}"
        return name if target == kernel else reference[0]

    rows = [
        Instruction(address, _REFERENCE.sub(written, code).replace(kernel, name), *place)
        for _, address, code, place in found
    ]
    return _without_padding(rows)


def _read(
    lines: Iterable[str], files: Mapping[str, str]
) -> Iterator[tuple[list[str], int, str, tuple[str, int]]]:
    """-> labels before an instruction, its address, its text, its place, one after the other.

    A function that was inlined has several lines for its place: its own first, then those that called it.
    """
    labels: list[str] = []
    place, begun = NOWHERE, False  # begun: lines of the place of the next instruction have been read
    for line in lines:
        if at := _PLACE.match(line):
            if not begun:
                place, begun = NOWHERE, True
            if place == NOWHERE:
                file = files.get(os.path.normcase(os.path.normpath(at["file"])))
                place = (file, int(at["line"])) if file else NOWHERE
        elif code := _INSTRUCTION.match(line):
            yield labels, int(code["address"], 16), code["text"], place
            labels, begun = [], False
        elif label := _LABEL.match(line):
            labels.append(label["name"])
        elif _FUNCTION.match(line):  # one of NVIDIA's own follows, which has no lines
            place, begun = NOWHERE, False


def _without_padding(rows: list[Instruction]) -> list[Instruction]:
    """Without what fills the end, and with no line for the endless loop before it: no thread gets there."""
    while rows and rows[-1].text == "NOP":
        rows.pop()
    if rows and rows[-1].text == f"BRA {rows[-1].address:#x}":
        rows.pop()
    return rows
