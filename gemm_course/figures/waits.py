"""What a warp spends its time on, stage by stage, and how busy the hardware was meanwhile.

The likely mistake is to take a warp's waiting for the kernel's: while one warp waits, its scheduler issues
for others. So each bar of a warp's time has the scheduler's below it, and the time of the launch beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.rows import LEFT, LINE, RIGHT, heading, name_width, paragraph
from gemm_course.figures.svg import PAGE, SMALL, Drawing, text_width, wrap
from gemm_course.profiles import WAITS

SHOWN = 0.02  # the smallest part of a bar; what is smaller is in "other"
DETAILED = 6  # more bars than these are drawn in one line each
OTHER = "other"
GOOD = tuple(wait.name for wait in WAITS.values() if not wait.waits)
_HALF = (RIGHT - LEFT - 8) / 2
_FROM, _TO = 164.0, 396.0  # of a bar in a line, and the right edges of the figures behind it
_COLUMNS = {"issue": 444.0, "units": 500.0, "ms": RIGHT}


@dataclass(frozen=True)
class Bar:
    """One kernel's launch. Shares are from 0 to 1; a figure that was not measured is None.

    shares: of an average warp's time, by the names of `profiles.WAITS`, together 1. warps: on average per
    scheduler. issues: of all clocks, those in which a scheduler issued an instruction. units: how busy the
    units were that compute the products, called `computing`. busiest: the name of the busiest other part of
    the GPU, and how busy it was.
    """

    label: str
    tiles: str
    shares: Mapping[str, float]
    milliseconds: float | None = None
    warps: float | None = None
    issues: float | None = None
    computing: str = "multiply-add units"
    units: float | None = None
    busiest: tuple[str, float] | None = None

    @property
    def waiting(self) -> float:
        """The share of a warp's time in which it waits, 0 to 1."""
        return 1 - sum(self.shares.get(name, 0) for name in GOOD)

    @property
    def parts(self) -> dict[str, float]:
        """What is drawn, in the order of WAITS: what is small is added to "other"."""
        shown = {name: self.shares.get(name, 0) for name in WAITS if name != OTHER}
        shown = {name: share for name, share in shown.items() if share >= SHOWN}
        rest = sum(self.shares.values()) - sum(shown.values())
        return {**shown, OTHER: rest} if rest > 1e-9 else shown


def percent(share: float) -> str:
    """ "24 %", with a space that does not break; below 1, "0.3 %"."""
    value = 100 * share
    return f"{value:.1f}\u00a0%" if 0.05 <= value < 0.95 else f"{value:.0f}\u00a0%"


def waits(bars: Sequence[Bar], title: str, note: str) -> Picture:
    """Draw a bar per kernel, and below them what its parts mean.

    With more than `DETAILED` bars each takes one line. title: the answer; note: where the figures come from.
    """
    drawing = Drawing(title)
    keys = _keys(bars)
    detailed = len(bars) <= DETAILED
    y = paragraph(drawing, _WARP, drawing.top) + 4
    y = paragraph(drawing, _KERNEL.format(_BELOW if detailed else _BESIDE), y) + 10
    y = (_in_detail if detailed else _in_lines)(drawing, bars, keys, y)
    y = _meanings(drawing, bars, keys, y, detailed)
    paragraph(drawing, note, y)
    return drawing.picture(_in_words(bars, keys, note)).plain


def _keys(bars: Sequence[Bar]) -> dict[str, str]:
    """A letter for each wait that is drawn: first the good time, then the rest by size, "other" last."""
    sums = Counter[str]()
    for bar in bars:
        sums.update(bar.parts)
    good = [name for name in GOOD if name in sums]
    others = [name for name in WAITS if name in sums and name not in (*GOOD, OTHER)]
    rest = sorted(others, key=lambda name: -sums[name])
    order = [*good, *rest, *([OTHER] if OTHER in sums else [])]
    return dict(zip(order, "abcdefghijklmn", strict=False))


_WARP = (
    "A bar is the time of one warp, on average. Grey is time well spent: the warp issues an instruction, or "
    "it is ready and its scheduler issues for another warp. Colour is waiting."
)
_KERNEL = "A warp's time is not the kernel's: while one warp waits, its scheduler issues for the others. {}"
_BELOW = (
    "Below each bar: the part of all clocks in which a scheduler issued, and the busiest other part of the "
    "GPU."
)
_BESIDE = (
    "issue: the part of all clocks in which a scheduler issued; units: how busy the Tensor Cores were, or in "
    "a kernel without them the multiply-add units; ms: the time of the launch."
)


# --- few bars: wide ones, with the hardware's below ---------------------------------------------------------


def _in_detail(drawing: Drawing, bars: Sequence[Bar], keys: Mapping[str, str], y: float) -> float:
    for bar in bars:
        y = heading(drawing, bar.label, bar.tiles, _time_in_words(bar), y)
        _time(drawing, bar, keys, LEFT, y, RIGHT - LEFT, 26)
        y += 30
        tracks = _tracks(bar)
        for place, (words, share) in enumerate(tracks):
            _track(drawing, words, share, LEFT + place * (_HALF + 8), y)
        y += 36 if tracks else 12
    return y


def _time(drawing: Drawing, bar: Bar, keys: Mapping[str, str], x: float, y: float, wide: float, high: float):
    """Draw the parts of a bar with their letters, and their percentages where there is room."""
    whole = sum(bar.shares.values())
    for name, share in bar.parts.items():
        width = wide * share / whole
        fill = colours.OF_WAIT[name]
        drawing.rect(x, y, width, high, fill, stroke=colours.PAPER, line=1, title=f"{name} {percent(share)}")
        if name == OTHER:
            drawing.hatch(x, y, width, high)
        words = f"{keys[name]} {percent(share)}"
        words = words if text_width(words) <= width - 4 else keys[name]
        if name != OTHER and text_width(words) <= width - 1:
            ink = colours.text_on(fill)
            drawing.text(x + width / 2, y + high / 2 + 5, words, anchor="middle", fill=ink)
        x += width


def _tracks(bar: Bar) -> list[tuple[str, float]]:
    """How busy the hardware was, in words and as a share, for at most two bars."""
    tracks = []
    if bar.issues is not None:
        with_warps = f" ({bar.warps:.1f} warps)" if bar.warps is not None else ""
        tracks.append((f"scheduler{with_warps}: {percent(bar.issues)}", bar.issues))
    if bar.busiest:
        tracks.append((f"{bar.busiest[0]}: {percent(bar.busiest[1])}", bar.busiest[1]))
    return tracks


def _track(drawing: Drawing, words: str, share: float, x: float, y: float) -> None:
    drawing.rect(x, y, _HALF * min(share, 1), 18, colours.BUSY)
    drawing.rect(x, y, _HALF, 18, "none", stroke=colours.QUIET, line=0.8)
    drawing.text(x + 6, y + 14, words)


# --- many bars: one line each -------------------------------------------------------------------------------


def _in_lines(drawing: Drawing, bars: Sequence[Bar], keys: Mapping[str, str], y: float) -> float:
    for words, x in _COLUMNS.items():
        drawing.text(x, y + 14, words, anchor="end", fill=colours.QUIET)
    y += 22
    for place, bar in enumerate(bars):
        above = name_width(bar.label) > _FROM - LEFT
        tiles = wrap(bar.tiles, SMALL, RIGHT - LEFT) if bar.tiles else []
        high = 26 + LINE * (above + len(tiles))
        if place % 2:
            drawing.rect(0, y - 3, PAGE, high, "#F6F8FA")
        drawing.text(LEFT, y + 15, bar.label, bold=True)
        _line(drawing, bar, keys, y + LINE * above)
        for line, words in enumerate(reversed(tiles)):
            drawing.text(LEFT, y + high - 11 - LINE * line, words, fill=colours.QUIET)
        y += high
    return y + 8


def _line(drawing: Drawing, bar: Bar, keys: Mapping[str, str], y: float) -> None:
    _time(drawing, bar, keys, _FROM, y, _TO - _FROM, 20)
    figures = {"issue": bar.issues, "units": bar.units}
    for name, share in figures.items():
        drawing.text(_COLUMNS[name], y + 15, "–" if share is None else percent(share), anchor="end")
    time = "–" if bar.milliseconds is None else milliseconds(bar.milliseconds)
    drawing.text(_COLUMNS["ms"], y + 15, time, anchor="end")


def milliseconds(value: float) -> str:
    """Three significant digits, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _time_in_words(bar: Bar) -> str:
    return "" if bar.milliseconds is None else f"{milliseconds(bar.milliseconds)} ms"


# --- what the parts mean ------------------------------------------------------------------------------------


def _meanings(
    drawing: Drawing, bars: Sequence[Bar], keys: Mapping[str, str], y: float, detailed: bool
) -> float:
    good = None
    for name, key in keys.items():
        if (name in GOOD) is not good:
            good = name in GOOD
            drawing.rect(LEFT, y + 2, RIGHT - LEFT, 22, "#EEF1F4")
            drawing.text(LEFT + 6, y + 18, "time well spent" if good else "waiting", bold=True)
            y += 30
        y = _meaning(drawing, bars, name, key, y, detailed)
    return y + 4


def _meaning(drawing: Drawing, bars: Sequence[Bar], name: str, key: str, y: float, detailed: bool) -> float:
    fill = colours.OF_WAIT[name]
    drawing.rect(LEFT, y, 20, 20, fill, stroke=colours.EDGE)
    if name == OTHER:
        drawing.hatch(LEFT, y, 20, 20)
    else:
        drawing.text(LEFT + 10, y + 15, key, anchor="middle", fill=colours.text_on(fill))
    drawing.text(LEFT + 30, y + 15, name, bold=True)
    share = _how_much(bars, name)
    if name_width(name) + text_width(share) > RIGHT - LEFT - 40:
        y += LINE
    drawing.text(RIGHT, y + 15, share, anchor="end")
    y += 20
    for line in wrap(explained(name, detailed), SMALL, RIGHT - LEFT - 30):
        drawing.text(LEFT + 30, y + 13, line, fill=colours.QUIET)
        y += LINE
    return y + 5


def _how_much(bars: Sequence[Bar], name: str) -> str:
    """One bar's share, that of each of two, or with more where it is largest."""
    if len(bars) <= 2:
        return " → ".join(_part(bar, name) for bar in bars)
    most = max(bars, key=lambda bar: bar.parts.get(name, 0))
    return f"most: {_part(most, name)}, {most.label}"


def _part(bar: Bar, name: str) -> str:
    if name in bar.parts:
        return percent(bar.parts[name])
    return f"under {percent(SHOWN)}" if bar.shares.get(name) else "none"


def explained(name: str, with_help: bool = True) -> str:
    """What a wait means and, if asked for, what helps against it; a sentence or two."""
    wait = WAITS[name]
    meaning = wait.meaning if name != OTHER else f"{wait.meaning}; and all that is under {percent(SHOWN)}"
    helps = f" Helps: {wait.help}." if with_help and wait.help and name not in GOOD else ""
    return f"{meaning[0].upper()}{meaning[1:]}.{helps}"


# --- the same in words --------------------------------------------------------------------------------------


def _in_words(bars: Sequence[Bar], keys: Mapping[str, str], note: str) -> str:
    told = [_bar_in_words(bar) for bar in bars]
    meant = [f"{name}: {explained(name, len(bars) <= DETAILED)}" for name in keys]
    return " ".join([*told, "What it means:", *meant, note])


def _bar_in_words(bar: Bar) -> str:
    tiles = f" ({bar.tiles})" if bar.tiles else ""
    spent = ", ".join(f"{name} {percent(share)}" for name, share in bar.parts.items())
    busy = []
    if bar.issues is not None:
        with_warps = f" with {bar.warps:.1f} warps" if bar.warps is not None else ""
        busy.append(f"its scheduler{with_warps} issues in {percent(bar.issues)} of the clocks")
    if bar.units is not None:
        busy.append(f"{bar.computing} {percent(bar.units)} busy")
    if bar.busiest:
        busy.append(f"busiest part {bar.busiest[0]}, {percent(bar.busiest[1])}")
    hardware = f"; {', '.join(busy)}" if busy else ""
    called = ", ".join(filter(None, [f"{bar.label}{tiles}", _time_in_words(bar)]))
    return f"{called}: a warp's time: {spent}{hardware}."
