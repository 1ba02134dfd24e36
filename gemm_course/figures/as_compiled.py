"""Makes a table of what kernels read from shared memory as they are written and as they are compiled.

It is a table in HTML, in the colours of the page, so that it can be read in a dark theme, and cell by cell
with a screen reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from gemm_course.compiler.shared_reads import Reads
from gemm_course.figures import colours

UNKNOWN = "not known"
_KERNEL = "The compiled kernel"
_FLOATS = {32: "one float", 64: "two floats", 128: "four floats"}


@dataclass(frozen=True)
class Column:
    """What is known of a kernel. ``own`` tells whether a learner wrote it. ``tiles`` are its sizes as text.

    ``written`` and ``compiled`` are reads per step along k. ``measured`` is the number of wavefronts per step
    that a GPU counted. ``registers`` and ``spilled`` (bytes) are per thread, ``blocks`` is per SM of an H200,
    and ``threads`` is per block. What is None is not known. ``notes`` are sentences on where the figures come
    from, or why they are missing.
    """

    name: str
    own: bool
    tiles: str
    written: Reads
    compiled: Reads | None
    measured: float | None
    registers: int | None
    spilled: int | None
    blocks: int | None
    threads: int
    notes: Sequence[str] = ()

    @property
    def whose(self) -> str:
        return "yours" if self.own else "the course's"


class Table:
    """A table that displays itself, as HTML or in sentences.

    ``parts`` maps the heading of some rows to these rows, which map what is told to a cell for each of
    ``head``.
    """

    def __init__(
        self,
        caption: str,
        head: Sequence[str],
        parts: Mapping[str, Mapping[str, Sequence[str]]],
        notes: Sequence[str],
    ):
        self.caption, self.head, self.parts, self.notes = caption, head, parts, notes

    @property
    def text(self) -> str:
        """The table in sentences, a line for each row."""
        lines = [self.caption]
        for heading, rows in self.parts.items():
            for what, cells in rows.items():
                told = "; ".join(f"{head}: {cell}" for head, cell in zip(self.head, cells, strict=True))
                lines.append(f"{heading}, {what}. {told}.")
        return "\n".join([*lines, *self.notes])

    def html(self) -> str:
        """Return the table for a page. Every cell has headings: its column's, its row's, its part's."""
        head = "".join(_cell("th", words, 'scope="col"') for words in self.head)
        body = "".join(self._part(heading, rows) for heading, rows in self.parts.items())
        notes = "".join(f'<p style="margin:6px 0 0">{escape(note)}</p>' for note in self.notes)
        return (
            '<div style="font-size:14px;max-width:56em"><table style="border-collapse:collapse">'
            f'<caption style="text-align:left;font-weight:700;color:inherit">{escape(self.caption)}</caption>'
            f"<thead><tr>{_cell('td', '')}{head}</tr></thead>{body}</table>{notes}</div>"
        )

    def _part(self, heading: str, rows: Mapping[str, Sequence[str]]) -> str:
        wide = f'scope="rowgroup" colspan="{1 + len(self.head)}"'
        lines = [_cell("th", heading, wide, "padding-top:12px")]
        for what, cells in rows.items():
            named = _cell("th", what, 'scope="row"', "font-weight:400")
            lines.append(named + "".join(_cell("td", words) for words in cells))
        return f"<tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody>"

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html(), "text/plain": self.text}


def _cell(tag: str, words: str, attributes: str = "", style: str = "") -> str:
    css = (
        f"text-align:left;vertical-align:top;padding:3px 12px;border-bottom:1px solid {colours.EDGE};{style}"
    )
    return f'<{tag} {attributes} style="{css}">{escape(words)}</{tag}>'


def table(columns: Sequence[Column], reads_only: bool = False) -> Table:
    """Return the table of kernels, a column for each. As written and as compiled stand below each other.

    With ``reads_only`` it leaves out what the compiled kernel takes.
    """
    parts = {
        "Reads of shared memory per step, of each thread": {
            "as written": [_reads(each.written) for each in columns],
            "as compiled": [_reads(each.compiled) for each in columns],
        },
        "Wavefronts per step, of one warp": {
            "as written": [_wavefronts(each.written) for each in columns],
            "as compiled": [_wavefronts(each.compiled) for each in columns],
            **_measured(columns),
        },
        _KERNEL: {
            "registers per thread": [_number(each.registers) for each in columns],
            "bytes spilled per thread": [_number(each.spilled) for each in columns],
            "blocks per SM of an H200": [_blocks(each) for each in columns],
        },
    }
    if reads_only:
        del parts[_KERNEL]
    head = [f"{each.name} ({each.whose})" for each in columns]
    return Table(_caption(columns), head, parts, _notes(columns))


def _caption(columns: Sequence[Column]) -> str:
    tiles = dict.fromkeys(each.tiles for each in columns)
    about = f" ({next(iter(tiles))})" if len(tiles) == 1 else ""
    return f"One step along k, as written and as compiled{about}"


def _measured(columns: Sequence[Column]) -> dict[str, list[str]]:
    if all(each.measured is None for each in columns):
        return {}
    return {
        "counted on an H200": [
            f"{each.measured:.3g}" if each.measured is not None else "not measured" for each in columns
        ]
    }


def _reads(reads: Reads | None) -> str:
    """Say how many reads there are, and how wide: "4, of four floats each"."""
    if reads is None:
        return UNKNOWN
    widths = {bits: number for bits, number in sorted(reads.widths.items(), reverse=True) if number}
    if len(widths) == 1:
        ((bits, number),) = widths.items()
        return f"{number:.3g}, of {_floats(bits)} each"
    parts = " and ".join(f"{number:.3g} of {_floats(bits)}" for bits, number in widths.items())
    return f"{reads.requests:.3g}: {parts}" if widths else "none"


def _floats(bits: int) -> str:
    return _FLOATS.get(bits, f"{bits} bits")


def _wavefronts(reads: Reads | None) -> str:
    """Say how many wavefronts there are, and for which array: "20: 4 for As, 16 for Bs"."""
    if reads is None:
        return UNKNOWN
    arrays = {array: number for array, number in sorted(reads.wavefronts.items()) if number}
    parts = ", ".join(f"{number:.3g} for {array}" for array, number in arrays.items())
    return f"{reads.total:.3g}: {parts}" if len(arrays) > 1 else f"{reads.total:.3g}"


def _number(count: int | None) -> str:
    return UNKNOWN if count is None else f"{count:,}"


def _blocks(column: Column) -> str:
    return UNKNOWN if column.blocks is None else f"{column.blocks}, of {column.threads} threads each"


def _notes(columns: Sequence[Column]) -> list[str]:
    tiles = dict.fromkeys(each.tiles for each in columns)
    sizes = [f"{each.name}: {each.tiles}." for each in columns] if len(tiles) > 1 else []
    told: Iterable[str] = (words for each in columns for words in each.notes)
    return [*sizes, "As written: counted by the emulator, of the first warp.", *dict.fromkeys(told)]
