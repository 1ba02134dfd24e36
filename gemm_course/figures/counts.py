"""Draws counts found three ways: by the learner's formula, the emulator and the hardware's counter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemm_course.figures import colours, plots
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import SMALL, Drawing, wrap

_FILLS = {"formula": colours.NOW, "after": colours.NOW, "before": colours.OTHER}
# _LEFT and _WIDTH are the scale's left edge and width. _ROW is a bar's height with the space around it.
_LEFT, _WIDTH, _ROW = 96.0, 300.0, 23.0


def side_by_side(rows: Sequence[tuple[str, Mapping[str, int | str]]], title: str, note: str = "") -> Picture:
    """Draw one bar per way of counting, for each thing counted.

    ``rows`` holds (what is counted, {"formula": 268435456, "emulator": 268435456, "hardware": "not
    recorded"}). A way that has no count gives words instead. The bars of one row share a scale, so that equal
    counts look equal.
    """
    drawing = Drawing(title)
    y = drawing.top
    for name, counts in rows:
        drawing.text(8, y + 16, name, bold=True)
        drawing.text(552, y + 16, _verdict(counts), anchor="end", fill=colours.QUIET)
        _bars(drawing, counts, y + 24)
        y += 24 + _ROW * len(counts) + (36 if any(_known(counts)) else 12)
    for line in wrap(note, 14, 544):
        drawing.text(8, y + 10, line, fill=colours.QUIET)
        y += 18
    return drawing.picture(
        " ".join(_in_words(name, counts) for name, counts in rows) + (f" {note}" if note else "")
    )


def _bars(drawing: Drawing, counts: Mapping[str, int | str], top: float) -> None:
    """Draw the ways of counting one thing, with words where a way has no count."""
    most = max(_known(counts), default=0)
    with plots.axes(drawing, _LEFT, top, _WIDTH, _ROW * len(counts)) as axes:
        axes.set_xlim(0, most or 1)
        axes.set_ylim(len(counts) - 0.5, -0.5)
        for place, (way, count) in enumerate(counts.items()):
            said = isinstance(count, str)
            look = {"va": "center_baseline", "color": colours.QUIET if said else colours.INK}
            if not said:
                axes.barh(place, count, 0.72, color=_FILLS.get(way, colours.COUNTED), **plots.BAR)
            words = count if said else plots.in_thousands(count)
            axes.annotate(words, (0 if said else count, place), (6, 0), textcoords="offset points", **look)
        axes.set_yticks(range(len(counts)), counts)
        axes.tick_params(axis="y", length=0, labelsize=SMALL)
        axes.locator_params(axis="x", nbins=2, integer=True)
        axes.xaxis.set_major_formatter(plots.in_thousands)
        axes.xaxis.set_visible(most > 0)
        axes.spines["bottom"].set_visible(most > 0)


def _known(counts: Mapping[str, int | str]) -> list[int]:
    return [count for count in counts.values() if not isinstance(count, str)]


def _verdict(counts: Mapping[str, int | str]) -> str:
    known = _known(counts)
    return "" if len(known) < 2 else "equal" if len(set(known)) == 1 else "they differ"


def _in_words(name: str, counts: Mapping[str, int | str]) -> str:
    said = ", ".join(
        f"{way} {count if isinstance(count, str) else f'{count:,}'}" for way, count in counts.items()
    )
    return f"{name}: {said}."
