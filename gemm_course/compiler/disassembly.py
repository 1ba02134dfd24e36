"""Reads nvdisasm's text into instructions in order, each with its address and its line of the source."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gemm_course.compiler.kinds import kind_of

# An instruction has this many bytes since compute capability 7.0.
SIZE = 16
# An instruction that belongs to no line has this place.
NOWHERE = ("", 0)

_PLACE = re.compile(r'\s*//## File "(?P<file>[^"]*)", line (?P<line>\d+)')
_LABEL = re.compile(r"(?P<name>[.$\w]+):\s*$")
_SECTION = re.compile(r"\s*\.section\s+\.text\.(?P<name>[^\s,]+)")
_FUNCTION = re.compile(r"\s*\.type\s+(?P<name>\S+?),@function")
_INSTRUCTION = re.compile(r"\s*/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<text>.*?)\s*;?\s*$")
_REFERENCE = re.compile(r"`\((?P<name>[^()]*)\)")
# An instruction is read as the labels before it, its address, its text and its place.
_Code = tuple[list[str], int, str, tuple[str, int]]
_PARTS = re.compile(r"(?:(?P<predicate>@!?U?P\w+)\s+)?(?P<opcode>\S+)\s*(?P<operands>.*)")


@dataclass(frozen=True, slots=True)
class Instruction:
    """A machine instruction, such as "@!P0 BRA 0x230", which begins with its predicate if it has one.

    ``address`` is in bytes from the kernel's start. ``file`` and ``line`` are the source that it was compiled
    from. They are "" and 0 if that is neither the kernel nor one of its device functions, as in a division of
    integers, which is NVIDIA's.
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
    """Return a kernel's instructions in nvdisasm's output (-gi -c), with addresses in place of labels.

    ``kernel`` is its mangled name there, which is replaced by `name`. ``files`` maps file names of debug
    information, absolute and normalised, to the names to show. An instruction from any other file gets the
    line that called it. Functions with sections of their own that the kernel calls come after the kernel.
    """
    sections = _sections(text, kernel)
    codes, addresses, begin = [], {}, 0
    for lines in sections:
        section = _without_padding(list(_read(lines, files)))
        for labels, address, *_ in section:
            addresses |= dict.fromkeys(labels, begin + address)
        codes += [(begin + address, code, place) for _, address, code, place in section]
        begin += SIZE * len(section)

    def written(reference: re.Match) -> str:
        target = reference["name"]
        if target in addresses and target != kernel:
            return f"{addresses[target]:#x}"
        return name if target == kernel else reference[0]

    return [
        Instruction(address, _REFERENCE.sub(written, code).replace(kernel, name), *place)
        for address, code, place in codes
    ]


def _sections(text: str, kernel: str) -> list[list[str]]:
    """Return the lines of each section of code, the kernel's first."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        if begun := _SECTION.match(line):
            sections.append((begun["name"], []))
        elif line.strip():
            sections[-1][1].append(line)
    return [lines for _, lines in sorted(sections, key=lambda section: section[0] != kernel)]


def _read(lines: Iterable[str], files: Mapping[str, str]) -> Iterator[_Code]:
    """Yield the instructions of a section, one after the other.

    An instruction of an inlined function has several lines before it, first its own and then its callers'.
    """
    labels: list[str] = []
    # ``begun`` is true if a line for the next instruction was read.
    place, begun = NOWHERE, False
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
        elif _FUNCTION.match(line):  # A function of NVIDIA's own follows, which has no lines.
            place, begun = NOWHERE, False


def _without_padding(codes: list[_Code]) -> list[_Code]:
    """Remove the padding at the end, and the endless loop before it, which never runs. Return the rest."""
    while codes and codes[-1][2] == "NOP":
        codes.pop()
    if codes and codes[-1][2] in [f"BRA `({label})" for label in codes[-1][0]]:
        codes.pop()
    return codes
