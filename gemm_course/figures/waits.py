"""Draws what a warp spends its time on, stage by stage, and how busy the hardware was meanwhile.

Readers tend to take a warp's waiting for the kernel's, although its scheduler issues for other warps
meanwhile. They also take more grey for more speed. So the figures that do tell the speed stand beside each
bar: how many instructions the work takes, how often one is issued, how busy the units are, and the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.rows import LEFT, LINE, RIGHT, heading, name_width, paragraph
from gemm_course.figures.svg import PAGE, SMALL, Drawing, capital, text_width, unbroken, wrap
from gemm_course.profiles import WAITS
from gemm_course.profiles import words as written

# A part of a bar that is smaller than this share goes into "other".
SHOWN = 0.02
# With few bars, a wait is explained only if it takes at least this share in one of them.
EXPLAINED = 0.10
# In a bar of one line, a part that is smaller than this share has no room for its letter and goes into
# "other".
SHOWN_IN_LINES = 0.05
# If there are more bars than this, each takes one line.
DETAILED = 6
OTHER = "other"
GOOD = tuple(wait.name for wait in WAITS.values() if not wait.waits)
# A wait has the same letter in every picture. Letters that look alike, such as i and l, are left out.
LETTERS = dict(zip(WAITS, "abcdefghjkmnpr", strict=True))
TENSOR_CORES = "Tensor Cores"
_HALF = (RIGHT - LEFT - 8) / 2
# In a line, the bar runs from _FROM to _TO.
_FROM, _TO = 164.0, 362.0
_COLUMNS = {"instr.": 410.0, "issue": 455.0, "units": 500.0, "ms": RIGHT}


@dataclass(frozen=True)
class Bar:
    """One kernel's launch. Shares are from 0 to 1, and a figure that was not measured is None.

    ``shares`` divides an average warp's time by the names of `profiles.WAITS`, and adds up to 1. ``warps`` is
    the average per scheduler. ``instructions`` is executed instructions of all threads per multiply-add.
    ``issues`` is the share of the clocks in which a scheduler issued an instruction. ``computing`` names the
    units that compute the products. ``units`` is the share of the clocks in which they were busy, and
    ``computes`` the same in milliseconds. ``limit`` says what is busiest. ``precision`` is such as
    "FP32", or "" if it is not known.
    """

    label: str
    tiles: str
    shares: Mapping[str, float]
    milliseconds: float | None = None
    warps: float | None = None
    instructions: float | None = None
    issues: float | None = None
    computing: str = "multiply-add units"
    units: float | None = None
    computes: float | None = None
    limit: str = ""
    precision: str = ""

    @property
    def waiting(self) -> float:
        """The share of a warp's time in which it waits, 0 to 1."""
        return 1 - sum(self.shares.get(name, 0) for name in GOOD)

    @property
    def group(self) -> str:
        """The units that compute, with their precision.

        Kernels of one group can be compared by all figures.
        """
        return f"{self.precision} on {self.computing}" if self.precision else self.computing

    def parts(self, least: float = SHOWN) -> dict[str, float]:
        """Return the parts that are drawn, in the order of WAITS. Those below `least` go into "other"."""
        shown = {name: self.shares.get(name, 0) for name in WAITS if name != OTHER}
        shown = {name: share for name, share in shown.items() if share >= least}
        rest = sum(self.shares.values()) - sum(shown.values())
        return {**shown, OTHER: rest} if rest > 1e-9 else shown


def percent(share: float) -> str:
    """Return a share as `profiles.words` writes it, with a space that does not break."""
    return unbroken(written.percent(share))


def arrows(words: Iterable[str]) -> str:
    """Join words with arrows that do not break, "24 → 13 %".

    If all are percentages, the percent sign is written once, at the end.
    """
    found, unit = list(words), "\u00a0%"
    if all(word.endswith(unit) for word in found):
        found = [word.removesuffix(unit) for word in found[:-1]] + found[-1:]
    return "\u00a0→\u00a0".join(found)


def waits(
    bars: Sequence[Bar], title: str, remarks: Sequence[str], note: str, *, meanings: bool = True
) -> Picture:
    """Draw a bar per kernel, and say below them what its parts mean.

    If there are more than `DETAILED` bars, each takes one line. ``title`` is the picture's answer, and
    ``remarks`` are sentences that belong to it. ``note`` says where the figures come from. With ``meanings``,
    the picture says how a bar is read and what each wait means.
    """
    drawing = Drawing(title)
    y = drawing.top
    for words in remarks:
        y = paragraph(drawing, words, y, colours.INK) + 4
    for words in _explanations(bars) if meanings else ():
        y = paragraph(drawing, words, y) + 4
    y = (_in_detail if _detailed(bars) else _in_lines)(drawing, bars, y + 6)
    y = _meanings(drawing, bars, y, meanings)
    paragraph(drawing, note, y)
    if not meanings:
        return drawing.picture(" ".join([*remarks, *_told(bars), note])).plain
    return drawing.picture(_in_words(bars, [*remarks, *_explanations(bars)], note)).plain


def _detailed(bars: Sequence[Bar]) -> bool:
    return len(bars) <= DETAILED


def _least(bars: Sequence[Bar]) -> float:
    return SHOWN if _detailed(bars) else SHOWN_IN_LINES


def _drawn(bars: Sequence[Bar]) -> list[str]:
    """Return the waits that are drawn in any bar, in the order of WAITS."""
    found = {name for bar in bars for name in bar.parts(_least(bars))}
    return [name for name in WAITS if name in found]


def _explanations(bars: Sequence[Bar]) -> Iterator[str]:
    """Yield sentences on how to read a bar, how not to read it, and what stands beside it."""
    yield (
        "A bar is the time of one warp, on average. Grey: it issues, or is ready while its scheduler issues "
        "for another warp. Colour: it waits, and others may issue meanwhile."
    )
    if len(bars) > 1:
        products = any(bar.computing == TENSOR_CORES for bar in bars)
        few = ", and on Tensor Cores few instructions do much work" if products else ""
        yield (
            f"More grey is not more speed: with half as many warps, each has twice the part of the "
            f"issuing{few}."
        )
    if not _detailed(bars):
        yield (
            "instr.: executed instructions per multiply-add; issue, units: the part of the clocks in which "
            "schedulers issued and the units that multiply were busy; ms: the time of the launch."
        )
    elif any(_tracks(bar) for bar in bars):
        yield "Below a bar: how much of the clocks the hardware was busy."


# --- few bars: wide ones, with the hardware's below ---------------------------------------------------------


def _in_detail(drawing: Drawing, bars: Sequence[Bar], y: float) -> float:
    for bar in bars:
        y = heading(drawing, bar.label, bar.tiles, _time_in_words(bar), y)
        _time(drawing, bar, bar.parts(), (LEFT, y), (RIGHT - LEFT, 26))
        y += 30
        tracks = _tracks(bar)
        for place, (words, share) in enumerate(tracks):
            _track(drawing, words, share, LEFT + place * (_HALF + 8), y)
        y += 22 if tracks else 0
        for words in _facts(bar):
            y = paragraph(drawing, words, y, colours.INK)
        y += 14
    return y


def _time(
    drawing: Drawing,
    bar: Bar,
    parts: Mapping[str, float],
    corner: tuple[float, float],
    size: tuple[float, float],
) -> None:
    """Draw the parts of a bar with their letters, and with their percentages where there is room."""
    (x, y), (wide, high) = corner, size
    whole = sum(bar.shares.values())
    for name, share in parts.items():
        width = wide * share / whole
        fill = colours.OF_WAIT[name]
        drawing.rect(x, y, width, high, fill, stroke=colours.PAPER, line=1, title=f"{name} {percent(share)}")
        if name == OTHER:
            drawing.hatch(x, y, width, high)
        words = f"{LETTERS[name]} {percent(share)}"
        words = words if text_width(words) <= width - 4 else LETTERS[name]
        if name != OTHER and text_width(words) <= width - 1:
            ink = colours.text_on(fill)
            drawing.text(x + width / 2, y + high / 2 + 5, words, anchor="middle", fill=ink)
        x += width


def _tracks(bar: Bar) -> list[tuple[str, float]]:
    """Return how busy the hardware was, in words and as a share, in the same order for every kernel."""
    tracks = (("issue slots", bar.issues), (bar.computing, bar.units))
    return [(f"{name}: {percent(share)}", share) for name, share in tracks if share is not None]


def _track(drawing: Drawing, words: str, share: float, x: float, y: float) -> None:
    drawing.rect(x, y, _HALF * min(share, 1), 18, colours.BUSY)
    drawing.rect(x, y, _HALF, 18, "none", stroke=colours.QUIET, line=0.8)
    drawing.text(x + 6, y + 14, words)


def _facts(bar: Bar) -> list[str]:
    """Return what is known of the instructions that the work takes, the warps, and the limit."""
    told = []
    if bar.instructions is not None:
        told.append(f"{rate(bar.instructions)} instructions per multiply-add")
    if bar.warps is not None:
        told.append(f"{bar.warps:.1f} warps per scheduler")
    counted = ["; ".join(told)] if told else []
    return [*counted, bar.limit] if bar.limit else counted


def rate(value: float) -> str:
    """Return instructions per multiply-add as the picture writes them, such as "4.13" or "0.031"."""
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


# --- many bars: one line each -------------------------------------------------------------------------------


def _in_lines(drawing: Drawing, bars: Sequence[Bar], y: float) -> float:
    """Draw the bars in groups. The heading of a group names the units that compute, and the columns.

    Return the lower edge.
    """
    for name, group in groupby(bars, key=lambda bar: bar.group):
        drawing.rect(0, y, PAGE, 22, colours.STRIPE)
        for words, x in _COLUMNS.items():
            drawing.text(x, y + 16, words, anchor="end", fill=colours.QUIET)
        drawing.text(LEFT, y + 16, f"{name[0].upper()}{name[1:]}", bold=True)
        y += 28
        for place, bar in enumerate(group):
            y = _row(drawing, bar, y, shaded=bool(place % 2))
    return y + 8


def _row(drawing: Drawing, bar: Bar, y: float, shaded: bool) -> float:
    above = name_width(bar.label) > _FROM - LEFT
    tiles = wrap(bar.tiles, SMALL, RIGHT - LEFT) if bar.tiles else []
    high = 26 + LINE * (above + len(tiles))
    if shaded:
        drawing.rect(0, y - 3, PAGE, high, colours.BAND)
    drawing.text(LEFT, y + 15, bar.label, bold=True)
    _line(drawing, bar, y + LINE * above)
    for line, words in enumerate(reversed(tiles)):
        drawing.text(LEFT, y + high - 11 - LINE * line, words, fill=colours.QUIET)
    return y + high


def _line(drawing: Drawing, bar: Bar, y: float) -> None:
    _time(drawing, bar, bar.parts(SHOWN_IN_LINES), (_FROM, y), (_TO - _FROM, 20))
    figures = (
        None if bar.instructions is None else rate(bar.instructions),
        *(None if share is None else percent(share) for share in (bar.issues, bar.units)),
        None if bar.milliseconds is None else milliseconds(bar.milliseconds),
    )
    for words, x in zip(figures, _COLUMNS.values(), strict=True):
        drawing.text(x, y + 15, words or "–", anchor="end")


def milliseconds(value: float) -> str:
    """Return a number with at most three significant digits, and without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _time_in_words(bar: Bar) -> str:
    return "" if bar.milliseconds is None else f"{milliseconds(bar.milliseconds)} ms"


# --- what the parts mean ------------------------------------------------------------------------------------


def _meanings(drawing: Drawing, bars: Sequence[Bar], y: float, with_words: bool) -> float:
    told = _explained(bars) if with_words else []
    for name in _drawn(bars):
        y = _meaning(drawing, bars, name, y, explained(name, _least(bars)) if name in told else "")
    return y + 4


def _explained(bars: Sequence[Bar]) -> list[str]:
    """Return the waits that are explained.

    With many bars these are all waits. With few, they are those that are long in at least one bar.
    """
    if not _detailed(bars):
        return _drawn(bars)
    waits = (name for name in _drawn(bars) if name not in (*GOOD, OTHER))
    return [name for name in waits if max(bar.shares.get(name, 0) for bar in bars) >= EXPLAINED]


def _meaning(drawing: Drawing, bars: Sequence[Bar], name: str, y: float, words: str) -> float:
    fill = colours.OF_WAIT[name]
    drawing.rect(LEFT, y, 20, 20, fill, stroke=colours.EDGE)
    if name == OTHER:
        drawing.hatch(LEFT, y, 20, 20)
    else:
        drawing.text(LEFT + 10, y + 15, LETTERS[name], anchor="middle", fill=colours.text_on(fill))
    drawing.text(LEFT + 30, y + 15, name, bold=True)
    if _detailed(bars):
        y = _shares(drawing, bars, name, y)
    y += 20
    for line in wrap(words, SMALL, RIGHT - LEFT - 30) if words else ():
        drawing.text(LEFT + 30, y + 13, line, fill=colours.QUIET)
        y += LINE
    return y + 5


def _shares(drawing: Drawing, bars: Sequence[Bar], name: str, y: float) -> float:
    """Write each bar's share at the right, a line lower if it would run into the name.

    Return the lower edge.
    """
    share = arrows(_part(bar, name) for bar in bars)
    if name_width(name) + text_width(share) > RIGHT - LEFT - 40:
        y += LINE
    drawing.text(RIGHT, y + 15, share, anchor="end")
    return y


def _part(bar: Bar, name: str) -> str:
    share = bar.parts().get(name, bar.shares.get(name))
    return percent(share) if share else "none"


def explained(name: str, least: float = SHOWN) -> str:
    """Say what a wait means and what helps against it. Parts below ``least`` are in "other"."""
    wait = WAITS[name]
    meaning = wait.meaning if name != OTHER else f"{wait.meaning}; and all that is under {percent(least)}"
    helps = f" Helps: {wait.help}." if wait.help and name not in GOOD else ""
    return f"{capital(meaning)}.{helps}"


# --- the same in words --------------------------------------------------------------------------------------


def _told(bars: Sequence[Bar]) -> list[str]:
    return [
        " ".join([*([f"{name}:"] if name else []), *(_bar_in_words(bar, _least(bars)) for bar in group)])
        for name, group in groupby(bars, key=lambda bar: "" if _detailed(bars) else bar.group)
    ]


def _in_words(bars: Sequence[Bar], sentences: Sequence[str], note: str) -> str:
    meant = [f"{name}: {explained(name, _least(bars))}" for name in _explained(bars)]
    return " ".join([*sentences, *_told(bars), *(["What it means:"] if meant else []), *meant, note])


def _bar_in_words(bar: Bar, least: float) -> str:
    tiles = f" ({bar.tiles})" if bar.tiles else ""
    spent = ", ".join(f"{name} {percent(share)}" for name, share in bar.parts(least).items())
    facts = [*(words for words, _ in _tracks(bar)), *_facts(bar)]
    hardware = f"; {'; '.join(facts)}" if facts else ""
    called = ", ".join(filter(None, [f"{bar.label}{tiles}", _time_in_words(bar)]))
    return f"{called}: a warp's time: {spent}{hardware}."
