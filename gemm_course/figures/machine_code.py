"""Shows a kernel's source beside its machine code: a list of lines, and the instructions of one line.

The result is HTML made of text, with its styles on the elements. JupyterLab removes much of an output that it
does not trust, but it leaves the list and the instructions of the line that is chosen first.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from gemm_course.figures import colours
from gemm_course.figures.code_lines import Function, Line, Whole, percent, short
from gemm_course.figures.kind_marks import bar, legend
from gemm_course.figures.line_panel import IN_LOOP, SOME_IN_LOOP, panel, spoken
from gemm_course.figures.svg import MONO, SANS, unbroken
from gemm_course.figures.syntax import coloured

# Both lists are this many pixels high, so that nothing jumps when a line is chosen.
HEIGHT = 440
CHOSEN, EDGE_OF_CHOSEN = colours.NOW_PALE, colours.INK
STILL = "Run this cell to choose another line."
_BOX = f"height:{HEIGHT}px;overflow:auto;border:1px solid {colours.EDGE};box-sizing:border-box"
# The longest bar is this many pixels long.
_LONGEST = 44
# Time in which warps do not wait has this colour.
_READY = colours.STRIPE


@dataclass(frozen=True)
class Caption:
    """The words around the picture.

    ``title`` is the picture's answer. ``loop`` says what the main loop consists of. ``source`` says what was
    compiled and measured where. ``missing`` says why nothing is measured, or is "". ``limit`` names the
    kernel's limit and speed, or is "".
    """

    title: str
    loop: str
    source: str
    missing: str = ""
    limit: str = ""

    @property
    def lines(self) -> list[str]:
        """The sentences above the list."""
        return [each for each in (self.limit, self.loop, self.missing) if each]


@dataclass(frozen=True)
class MachineCode:
    """The picture with one line chosen.

    ``markup`` is the whole as HTML. ``panels`` holds, in order, the HTML of the right side for each line that
    can be chosen, and ``names`` the names of these sides. ``text`` says the same in words.
    """

    markup: str
    panels: Sequence[str]
    names: Sequence[str]
    text: str

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.markup, "text/plain": self.text}


def machine_code(functions: Sequence[Function], chosen: Line, caption: Caption) -> MachineCode:
    """Draw functions, the kernel first, with one line chosen, which must have instructions."""
    lines = [line for function in functions for line in function.lines if line.instructions]
    whole, first = Whole.of(lines), lines.index(chosen)
    names = [f"Instructions of {line.name}" for line in lines]
    panels = [panel(line, whole) for line in lines]
    kinds = legend({kind for line in lines for kind in line.kinds})
    markup = (
        f'<div class="gemm-machine-code" style="background:{colours.PAPER};color:{colours.INK};'
        f"border:1px solid {colours.EDGE};padding:10px 12px;font-family:{SANS};font-size:13px;"
        f'line-height:1.45;box-sizing:border-box">{_heading(caption, whole, chosen.measured)}'
        f'<div style="display:flex;flex-wrap:wrap;gap:10px;margin:6px 0">'
        f"{_source(functions, chosen, whole)}{_instructions(names[first], panels[first])}</div>"
        f"{kinds}{_footer(caption)}</div>"
    )
    return MachineCode(markup, panels, names, _in_words(functions, whole, caption))


def _instructions(name: str, content: str) -> str:
    return (
        f'<div class="gemm-instructions" role="region" tabindex="0" aria-label="{name}"'
        f' data-lm-suppress-shortcuts="true"'
        f' style="{_BOX};flex:2 1 380px;min-width:0;padding:6px 8px">{content}</div>'
    )


def _heading(caption: Caption, whole: Whole, measured: bool) -> str:
    said = "".join(f"<div>{escape(unbroken(each))}</div>" for each in caption.lines)
    return (
        f'<div style="font-weight:bold;font-size:16px">{escape(unbroken(caption.title))}</div>{said}'
        f'<div style="font-size:12px;margin-top:3px">{_columns_explained(whole, measured)}</div>'
        f'<div class="gemm-how" style="font-size:12px;color:{colours.QUIET}">{STILL}</div>'
    )


def _columns_explained(whole: Whole, measured: bool) -> str:
    measures = (
        f"<b>waiting</b>: part of all warps' time; bar: {_swatch(colours.QUIET)} waiting, "
        f"{_swatch(_READY)} ready or issuing. <b>executed</b>: how often warps executed its instructions, "
        "all together. "
        if measured
        else ""
    )
    signs = f" {IN_LOOP} all, {SOME_IN_LOOP} some of them in the main loop." if whole.has_loop else ""
    return f"{measures}<b>in the code</b>: the instructions that a line became, by kind.{signs}"


def _swatch(fill: str) -> str:
    return f'<span style="background:{fill};font-size:9px">\u2003</span>'


def _footer(caption: Caption) -> str:
    return f'<div style="font-size:12px;color:{colours.QUIET}">{escape(caption.source)}</div>'


# --- the list of lines --------------------------------------------------------------------------------------


def _source(functions: Sequence[Function], chosen: Line, whole: Whole) -> str:
    rows = "".join(_function(function, chosen, whole) for function in functions)
    return (
        f'<div class="gemm-lines" role="listbox" tabindex="0" aria-label="Lines of the source"'
        f' data-lm-suppress-shortcuts="true" style="{_BOX};flex:3 1 540px;min-width:0;position:relative">'
        f"{_columns(chosen.measured)}{rows}</div>"
    )


def _columns(measured: bool) -> str:
    words = (("waiting", 48), ("", _LONGEST + 6), ("executed", 62)) if measured else ()
    cells = "".join(_cell(each, width) for each, width in (*words, ("in the code", 87)))
    return (
        f'<div class="gemm-columns" role="presentation" style="display:flex;flex-wrap:wrap;'
        f'color:{colours.QUIET};padding:2px 6px 2px 7px;font-size:12px">'
        f'<span style="flex:1 1 240px">line</span>{_cells(cells)}</div>'
    )


def _cells(cells: str) -> str:
    style = "display:flex;flex:0 0 auto;margin-left:auto;align-items:center;font-size:12px"
    return f'<span style="{style}">{cells}</span>'


def _cell(words: str, width: int) -> str:
    return f'<span style="width:{width}px;text-align:right;white-space:nowrap">{words}</span>'


def _function(function: Function, chosen: Line, whole: Whole) -> str:
    heading = (
        f'<div role="presentation" style="background:{colours.IDLE};color:{colours.QUIET};font-size:12px;'
        f'padding:2px 6px;overflow-wrap:anywhere">{escape(function.heading)}</div>'
    )
    code = _coloured([line.text for line in function.lines])
    rows = "".join(
        _row(line, text, line is chosen, whole) for line, text in zip(function.lines, code, strict=True)
    )
    return f'<div role="group" aria-label="{escape(function.heading)}">{heading}{rows}</div>'


def _coloured(lines: Sequence[str]) -> list[str]:
    """Return the lines without their common indentation, in Python's colours, as HTML."""
    text = textwrap.dedent("\n".join(lines))
    return coloured(text + "\n")


def _row(line: Line, code: str, chosen: bool, whole: Whole) -> str:
    number = f"{line.number or '':>4}"
    sign = " " if not line.in_loop else IN_LOOP if line.in_loop == len(line.instructions) else SOME_IN_LOOP
    words = (
        f'<span title="{escape(line.text.strip())}" style="flex:1 1 240px;min-width:0;overflow:hidden;'
        f'text-overflow:ellipsis;white-space:pre;font-family:{MONO};font-size:12px;line-height:18px">'
        f'<span style="color:{colours.QUIET}">{sign}{number} </span>{code}</span>'
    )
    style = (
        f"display:flex;flex-wrap:wrap;padding:0 6px 0 4px;border-top:1px solid {colours.IDLE};"
        "border-left:3px solid"
    )
    if not line.instructions:
        return f'<div role="presentation" style="{style} {colours.PAPER}">{words}</div>'
    fill, edge = (CHOSEN, EDGE_OF_CHOSEN) if chosen else (colours.PAPER, colours.PAPER)
    code_in_words = f": {line.text.strip()}" if line.number else ""
    said = escape(f"{line.name}{code_in_words}; {spoken(line, whole)}")
    return (
        f'<div class="gemm-line" role="option" aria-selected="{str(chosen).lower()}" aria-label="{said}"'
        f' style="{style} {edge};background:{fill};cursor:pointer">'
        f"{words}{_measures(line, whole.longest)}</div>"
    )


def _measures(line: Line, longest: float) -> str:
    """Return what was counted and measured of a line, as columns."""
    cells = _cell(f"{len(line.instructions):,}", 42) + '<span style="width:5px"></span>' + bar(line.kinds)
    if line.measured:
        time = f"{_cell(percent(line.waited), 48)}{_bar(line, longest)}"
        cells = f"{time}{_cell(short(line.executed), 62)}{cells}"
    return _cells(cells)


def _bar(line: Line, longest: float) -> str:
    """Return the time of warps at a line as an HTML bar, first waiting and then the rest."""
    parts = "".join(
        f'<span style="flex:0 0 {100 * part / longest if longest else 0:.0f}%;background:{fill}"></span>'
        for part, fill in ((line.waited, colours.QUIET), (line.ready, _READY))
    )
    said = f"waiting {percent(line.waited) or '0 %'}, ready or issuing {percent(line.ready) or '0 %'}"
    style = f"display:flex;width:{_LONGEST}px;height:10px;margin-left:6px"
    return f'<span title="{said}" style="{style}">{parts}</span>'


def _in_words(functions: Sequence[Function], whole: Whole, caption: Caption) -> str:
    return "\n".join(filter(None, (caption.title, *caption.lines, *_told(functions, whole), caption.source)))


def _told(functions: Sequence[Function], whole: Whole) -> Iterator[str]:
    for function in functions:
        yield function.heading
        for line in function.lines:
            if line.instructions:
                code = f": {line.text.strip()}" if line.number else ""
                yield f"  {line.name}{code}\n    {spoken(line, whole)}"
