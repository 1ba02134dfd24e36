"""Shows the machine instructions of one line of a source, and what warps wait for at each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby

from gemm_course.figures import colours
from gemm_course.figures.code_lines import Line, Machine, Whole, all_waits, percent, short
from gemm_course.figures.kind_marks import all_counted, counted, mark, mark_in_words
from gemm_course.figures.svg import MONO, capital, unbroken
from gemm_course.profiles import WAITS

# At least this many like instructions in a row share one row of the list, which can be opened.
RUN = 4
# At most MOST reasons are named, each with at least the share LEAST of the time.
MOST, LEAST = 3, 0.0005
IN_LOOP, SOME_IN_LOOP = "┃", "┇"
_ROWS = f"font-family:{MONO};font-size:12px;line-height:18px;white-space:pre;margin-left:14px"
# A mark is this much wider than its two letters, so rows without a mark are shifted.
_SHIFTED = "padding-left:4px"


def panel(line: Line, whole: Whole) -> str:
    """Return the instructions of a line as HTML."""
    heading = f"<b>{capital(line.name)}</b>"
    code = (
        f'<div style="font-family:{MONO};font-size:12px;white-space:pre-wrap;overflow-wrap:anywhere;'
        f'background:{colours.IDLE};padding:2px 6px;margin:3px 0">{escape(line.text.strip())}</div>'
    )
    words = "".join(f'<div style="margin-bottom:3px">{unbroken(one)}</div>' for one in _words(line, whole))
    return f"{heading}{code if line.number else ''}{words}{_table(line)}"


def spoken(line: Line, whole: Whole) -> str:
    """Return in words what was counted and measured of a line."""
    parts = [f"{_number(line)}: {all_counted(line.kinds)}"]
    if line.in_loop:
        parts.append(f"{line.in_loop:,} in the main loop")
    if line.measured:
        parts.append(_executed(line, whole))
        parts.append(_time(line))
    return "; ".join(parts)


def _number(line: Line) -> str:
    count = len(line.instructions)
    return f"{count:,} instruction{'' if count == 1 else 's'}"


def _executed(line: Line, whole: Whole) -> str:
    if not line.executed:
        return "never executed"
    share = percent(line.executed / whole.executed)
    return f"warps executed {line.executed:,} instructions here, {share} of all"


def _words(line: Line, whole: Whole) -> Iterator[str]:
    within = {0: "none", len(line.instructions): "all"}.get(line.in_loop, f"{line.in_loop:,}")
    yield f"{_number(line)}{f', {within} in the main loop' if whole.has_loop else ''}:"
    marks = (f"{mark_in_words(kind)} {counted(count, kind)}" for kind, count in line.kinds.most_common())
    yield " ".join(f'<span style="white-space:nowrap;margin-right:10px">{one}</span>' for one in marks)
    if line.measured:
        yield f"{capital(_executed(line, whole))}. {capital(_time(line))}."
        if line.waits:
            yield _most(next(iter(line.waits)))


def _time(line: Line) -> str:
    """Say how long warps wait here and for what, and how long they do not."""
    if not line.waited + line.ready:
        return "no warp was seen here"
    reasons = [f"{WAITS[name].waits} {percent(part)}" for name, part in line.waits.items() if part >= LEAST][
        :MOST
    ]
    why = f" ({', '.join(reasons)})" if reasons else ""
    waited, ready = (percent(part) or "0 %" for part in (line.waited, line.ready))
    return f"warps wait here for {waited} of their time{why}, and are ready or issue for {ready}"


def _most(name: str) -> str:
    """Say what a wait means, and what helps against it."""
    wait = WAITS[name]
    helps = f" <b>To try:</b> {escape(wait.help)}." if wait.help else ""
    return f"<b>Mostly {escape(name)}:</b> {escape(wait.meaning)}.{helps}"


# --- the list of instructions -------------------------------------------------------------------------------


def _table(line: Line) -> str:
    columns = "executed waiting " if line.measured else ""
    reasons = ", and what warps mostly wait for there" if line.waited else ""
    heading = (
        f'<div style="{_ROWS};{_SHIFTED};color:{colours.QUIET}">      at {columns}instruction{reasons}</div>'
    )
    parts = []
    for alone, runs in groupby(_runs(line.instructions), key=lambda run: len(run) < RUN):
        if alone:
            rows = "\n".join(_row(one, mark(one.kind)) for run in runs for one in run)
            parts.append(f'<div style="{_ROWS}">{rows}</div>')
        else:
            parts += [_folded(run, is_open=len(run) == len(line.instructions)) for run in runs]
    return heading + "".join(parts)


def _runs(instructions: Sequence[Machine]) -> Iterator[list[Machine]]:
    """Divide instructions into runs of like ones."""
    for _, same in groupby(instructions, key=lambda one: (one.opcode, one.kind)):
        yield list(same)


def _folded(run: Sequence[Machine], is_open: bool) -> str:
    """Return a run as one row that can be opened, or that is open already."""
    rows = "\n".join(_row(one, "  ") for one in run)
    words = f"<b>{run[0].opcode} × {len(run):,}</b>"
    known = [one.executed for one in run if one.executed is not None]
    sign = _sign({one.in_loop for one in run}) + mark(run[0].kind)
    together = _columns(sign, run[0].address, sum(known) if known else None, all_waits(run), words)
    style = f"{_ROWS};display:list-item;list-style-position:outside;cursor:pointer"
    return (
        f'<details{" open" if is_open else ""}><summary data-lm-suppress-shortcuts="true" style="{style}">'
        f"{together}</summary>"
        f'<div style="{_ROWS};{_SHIFTED}">{rows}</div></details>'
    )


def _row(one: Machine, mark: str) -> str:
    return _columns(
        _sign({one.in_loop}) + mark, one.address, one.executed, all_waits([one]), escape(one.text)
    )


def _sign(in_loop: set[bool]) -> str:
    return SOME_IN_LOOP if len(in_loop) > 1 else IN_LOOP if True in in_loop else " "


def _columns(sign: str, address: int, executed: int | None, waits: Mapping[str, float], words: str) -> str:
    at = f"{sign}{address:>5x}"
    if executed is None:
        return f"{at} {words}"
    waited = sum(waits.values())
    reason = f'  <span style="color:{colours.QUIET}">{next(iter(waits))}</span>' if waited >= LEAST else ""
    return f"{at} {short(executed):>8} {percent(waited):>7} {words}{reason}"
