"""Draws the ladder: how close each stage comes to cuBLAS on several GPUs, and how many loads it makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemm_course.figures import colours, plots
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import Drawing, text_width, wrap

# The scale of the shares runs from _LEFT to _RIGHT on the page, and from 0 to _MOST.
_LEFT, _RIGHT, _MOST = 222.0, 382.0, 1.1
# The scale of the loads begins at _LOADS on the page, and runs from _FEWEST to _MOST_LOADS.
_LOADS, _FEWEST, _MOST_LOADS = 404.0, 0.004, 4.0
# A rung is _ROW units high, and a heading is _BAND units high.
_ROW, _BAND = 42.0, 26.0
# The contents of the picture end here at the right.
_END = 552.0
_EDGE = {"markeredgecolor": colours.INK, "markeredgewidth": 1}
# A rung's first speed has its share of cuBLAS beside it, so the next speed is farther away than the others.
_APART = (94.0, 51.0)
_MOST_GPUS = 4
_MARKS = (("●", colours.NOW), ("▲", colours.QUIET), ("■", colours.QUIET), ("◆", colours.INK))
# Matplotlib has names of its own for these marks.
_SHAPES = {"●": "o", "▲": "^", "■": "s", "◆": "D"}
_GLOBAL, _SHARED = {"marker": "s", "color": colours.COUNTED}, {"marker": "o", "color": colours.PAPER}


@dataclass(frozen=True)
class Speed:
    """A stage's speed on one GPU: its TFLOPS, and its share of cuBLAS (0 to 1, or more) if known."""

    tflops: float
    share: float | None


@dataclass(frozen=True)
class Rung:
    """A stage of the ladder, with its speeds by GPU and its loads per multiply-add.

    ``group`` is the heading above the stage, such as "FP32". ``after`` names the stage that this stage
    changes. ``side`` is true for a side branch, on which no later stage is built.
    """

    name: str
    group: str
    speeds: Mapping[str, Speed]
    global_loads: float
    shared_loads: float
    after: str = ""
    side: bool = False


def ladder(
    rungs: Sequence[Rung],
    gpus: Mapping[str, str],
    cublas: Mapping[tuple[str, str], float],
    title: str,
    note: str,
) -> Picture:
    """Draw the rungs in order, for at most four GPUs. A side branch is indented, and the legend says so.

    ``gpus`` says for each GPU where its figures come from ("measured", "published"). ``cublas`` has the
    TFLOPS of cuBLAS by (group, GPU).
    """
    drawing = Drawing(title)
    marks = dict(zip(gpus, _MARKS, strict=False))
    y = _legend(drawing, gpus, marks, branches=any(rung.side for rung in rungs))
    top = _head(drawing, y)
    places, bottom = _places(rungs, top)
    _shares(drawing, rungs, marks, places, top, bottom)
    _loads(drawing, rungs, places, top, bottom)
    # ``trunk`` is the last stage above that is no side branch.
    group, trunk = None, ""
    for rung, middle in zip(rungs, places, strict=True):
        y = middle - _ROW / 2
        begins = rung.group != group
        if begins:
            group = rung.group
            _heading(drawing, group, [(gpu, cublas.get((group, gpu))) for gpu in gpus], marks, y - _BAND)
        _rung(drawing, rung, marks, y)
        if (begins and not rung.side) or rung.after != trunk:
            words = f"after {rung.after}" if rung.after else ""
            drawing.text(_LEFT - 8, y + 16, words, anchor="end", fill=colours.QUIET)
        trunk = trunk if rung.side else rung.name
    y = bottom
    for line in wrap(note, 14, 544):
        drawing.text(8, y + 16, line, fill=colours.QUIET)
        y += 18
    return drawing.picture(_in_words(rungs, gpus, cublas, note))


def _places(rungs: Sequence[Rung], y: float) -> tuple[list[float], float]:
    """Return the middle of each rung on the page and the lower edge of the last, with room for headings."""
    places, group = [], None
    for rung in rungs:
        y += _BAND if rung.group != group else 0
        group = rung.group
        places.append(y + _ROW / 2)
        y += _ROW
    return places, y


def _legend(drawing: Drawing, gpus: Mapping[str, str], marks: Mapping, branches: bool) -> float:
    x, y = 8.0, drawing.top + 14
    for place, (gpu, how) in enumerate(gpus.items()):
        if place == 3:
            x, y = 8.0, y + 20
        words = f"{gpu}, {how}"
        _mark(drawing, x + 6, y, *marks[gpu])
        drawing.text(x + 18, y, words, fill=colours.QUIET)
        x += text_width(words) + 28
    if branches:
        y += 20
        _elbow(drawing, 8, y - 15)
        drawing.text(22, y, "side branch: no later stage is built on it", fill=colours.QUIET)
    return y + 12


def _head(drawing: Drawing, y: float) -> float:
    drawing.text(8, y + 32, "TFLOPS", fill=colours.QUIET)
    drawing.text((_LEFT + _RIGHT) / 2, y + 14, "share of cuBLAS", anchor="middle", bold=True)
    drawing.text((_LOADS + _END) / 2, y - 4, "loads per FMA", anchor="middle", bold=True)
    with plots.axes(drawing, _LOADS, y - 2, _END - _LOADS, 18) as axes:
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.set_axis_off()
        for x, look, words in ((0.04, _GLOBAL, "global"), (0.56, _SHARED, "shared")):
            axes.plot(x, 0.4, markersize=8, **_EDGE, **look)
            axes.annotate(words, (x, 0.4), (8, 0), textcoords="offset points", va="center_baseline")
    return y + 38


def _heading(drawing: Drawing, group: str, cublas: Sequence, marks: Mapping, y: float) -> None:
    drawing.rect(8, y + 2, 544, 22, colours.BAND)
    known = any(tflops is not None for _, tflops in cublas)
    words = f"{group}; cuBLAS:" if known else group
    drawing.text(14, y + 18, words, bold=True)
    x = 34 + text_width(words, bold=True)
    for gpu, tflops in cublas:
        if tflops is not None:
            mark, hue = marks[gpu]
            _mark(drawing, x, y + 18, mark, hue)
            drawing.text(x + 12, y + 18, f"{tflops:.3g}")
            x += 80


def _rung(drawing: Drawing, rung: Rung, marks: Mapping, y: float) -> None:
    if rung.side:
        _elbow(drawing, 12, y)
    drawing.text(24 if rung.side else 8, y + 16, rung.name, bold=True)
    known = [(gpu, rung.speeds[gpu]) for gpu in marks if gpu in rung.speeds]
    if not known:
        drawing.text(14, y + 34, "not measured yet", fill=colours.QUIET)
    x = 14.0
    for place, (gpu, speed) in enumerate(known):
        _mark(drawing, x, y + 34, *marks[gpu])
        # With four GPUs there is no room for the share of cuBLAS.
        told = speed.share is not None and not place and len(known) < _MOST_GPUS
        digits = 2 if speed.tflops < 1 and len(known) == _MOST_GPUS else 3
        words = f"{speed.tflops:.{digits}g}" + (f", {100 * speed.share:.0f} %" if told else "")
        drawing.text(x + 10, y + 34, words)
        x += _APART[1] if place or len(known) == _MOST_GPUS else _APART[0] + _beside(words)


def _shares(drawing: Drawing, rungs, marks: Mapping, places, top: float, bottom: float) -> None:
    """Plot each stage's share of cuBLAS by GPU. The first GPU lies on top."""
    with plots.axes(drawing, _LEFT, top, _RIGHT - _LEFT, bottom - top) as axes:
        axes.set(xlim=(0, _MOST), ylim=(bottom, top))
        axes.set_xticks((0, 0.5, 1), ("0 %", "50 %", "100 %"))
        _rows(axes, places)
        for gpu, (mark, hue) in reversed(marks.items()):
            speeds = [(rung.speeds.get(gpu), place) for rung, place in zip(rungs, places, strict=True)]
            known = [(min(each.share, _MOST), at) for each, at in speeds if each and each.share is not None]
            axes.plot(*_columns(known), _SHAPES[mark], color=hue, markersize=11, **_EDGE)


def _loads(drawing: Drawing, rungs: Sequence[Rung], places, top: float, bottom: float) -> None:
    """Plot how many loads each stage makes per multiply-add, with the figures beside the marks."""
    with plots.axes(drawing, _LOADS, top, _END - _LOADS, bottom - top) as axes:
        axes.set(xscale="log", xlim=(_FEWEST, _MOST_LOADS), ylim=(bottom, top))
        axes.set_xticks((0.01, 0.1, 1), ("0.01", "0.1", "1"))
        axes.minorticks_off()
        _rows(axes, places)
        counted = [(rung.global_loads, place - 9) for rung, place in zip(rungs, places, strict=True)]
        shared = [(rung.shared_loads, place + 9) for rung, place in zip(rungs, places, strict=True)]
        for loads, look in ((counted, _GLOBAL), (shared, _SHARED)):
            known = [each for each in loads if each[0]]
            axes.plot(*_columns(known), linestyle="", markersize=8, **_EDGE, **look)
        at = [(each, plots.on_page(axes, each or _FEWEST, place)) for each, place in (*counted, *shared)]
    for loads, (x, y) in at:
        # A mark far to the right has its figure at its left, where there is more room.
        beyond = loads > 0.1
        words = _ratio(loads) if loads else "no shared loads"
        x += -8 if beyond else 8 if loads else 4
        drawing.text(x, y + 5, words, size=plots.TICK, anchor="end" if beyond else "start")


def _columns(places: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in places], [y for _, y in places]


def _rows(axes, places: Sequence[float]) -> None:
    """Draw a line for each rung, and put the scale on top."""
    axes.set_yticks(places, [""] * len(places))
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid()
    axes.spines[:].set_visible(False)


def _beside(words: str) -> float:
    """Return how far the words of a share with three digits push the next figure to the right."""
    return 12.0 if words.endswith("%") and len(words.split(", ")[-1]) > len("99 %") else 0.0


def _elbow(drawing: Drawing, x: float, y: float) -> None:
    drawing.line(x, y + 2, x, y + 11, stroke=colours.QUIET)
    drawing.line(x, y + 11, x + 8, y + 11, stroke=colours.QUIET)


def _mark(drawing: Drawing, x: float, y: float, mark: str, hue: str) -> None:
    """Write a GPU's mark with a thin dark edge, as it is in the plot."""
    drawing.text(x, y, mark, anchor="middle", size=17, fill=colours.INK)
    drawing.text(x, y - 0.8, mark, anchor="middle", size=14, fill=hue)


def _ratio(loads: float) -> str:
    return f"{loads:.3g}" if loads else "none"


def _in_words(rungs: Sequence[Rung], gpus: Mapping[str, str], cublas: Mapping, note: str) -> str:
    told = [f"{group} cuBLAS on {gpu}: {tflops:.3g} TFLOPS." for (group, gpu), tflops in cublas.items()]
    for rung in rungs:
        known = [f"{gpu} {_said(rung.speeds[gpu])}" for gpu in gpus if gpu in rung.speeds]
        follows = f"; {'a side branch ' if rung.side else ''}after {rung.after}" if rung.after else ""
        told.append(
            f"{rung.name} ({rung.group}): {', '.join(known) or 'not measured yet'}{follows}; loads per"
            f" multiply-add: global {_ratio(rung.global_loads)}, shared {_ratio(rung.shared_loads)}."
        )
    return " ".join([*told, note])


def _said(speed: Speed) -> str:
    share = "" if speed.share is None else f" ({100 * speed.share:.0f} % of cuBLAS)"
    return f"{speed.tflops:.3g} TFLOPS{share}"
