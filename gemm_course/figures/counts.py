"""Counted three ways: the learner's formula, the emulator, the hardware's counter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import Drawing, wrap

_FILLS = {"formula": colours.NOW, "after": colours.NOW, "before": colours.OTHER}


def side_by_side(rows: Sequence[tuple[str, Mapping[str, int | str]]], title: str, note: str = "") -> Picture:
    """Draw one bar per way of counting, for each thing counted.

    ``rows`` holds (what is counted, {"formula": 268435456, "emulator": 268435456, "hardware": "not
    recorded"}); a way that has no count gives words instead. Bars of one row share a scale, so that equal
    counts look equal.
    """
    drawing = Drawing(title)
    y = drawing.top
    for name, counts in rows:
        drawing.text(8, y + 16, name, bold=True)
        drawing.text(552, y + 16, _verdict(counts), anchor="end", fill=colours.QUIET)
        most = max(_known(counts), default=1) or 1
        for place, (way, count) in enumerate(counts.items()):
            top = y + 24 + 22 * place
            drawing.text(8, top + 13, way)
            if isinstance(count, str):
                drawing.text(96, top + 13, count, fill=colours.QUIET)
                continue
            drawing.rect(
                96,
                top,
                max(1.5, 290 * count / most),
                16,
                _FILLS.get(way, colours.COUNTED),
                stroke=colours.INK,
                line=0.8,
            )
            drawing.text(392, top + 13, f"{count:,}".replace(",", " "), mono=True)
        y += 36 + 22 * len(counts)
    for line in wrap(note, 14, 544):
        drawing.text(8, y + 10, line, fill=colours.QUIET)
        y += 18
    return drawing.picture(
        " ".join(_in_words(name, counts) for name, counts in rows) + (f" {note}" if note else "")
    )


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
