"""The whole ladder: how close each stage comes to cuBLAS on several GPUs, and how many loads it makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import Drawing, text_width, wrap

_LEFT, _RIGHT, _MOST = 222.0, 402.0, 1.1  # where the scale begins and ends, and the share at its end
_GLOBAL, _SHARED = 478.0, 552.0  # right edges of the two columns of accesses
_ROW = 42.0
_APART = (94.0, 51.0)  # of a row's first two figures, and of the others
_MOST_GPUS = 4
_MARKS = (("●", colours.NOW), ("▲", colours.QUIET), ("■", colours.QUIET), ("◆", colours.INK))


@dataclass(frozen=True)
class Speed:
    """What a stage reached on one GPU: TFLOPS, and the share of cuBLAS (0 to 1, or more) if known."""

    tflops: float
    share: float | None


@dataclass(frozen=True)
class Rung:
    """One stage: its speeds by GPU, where there are any, its loads per multiply-add, and what it follows."""

    name: str
    group: str  # the heading it stands under, such as "FP32"
    speeds: Mapping[str, Speed]
    global_loads: float
    shared_loads: float
    after: str = ""  # the stage that this one changes
    side: bool = False  # no stage follows it


def ladder(
    rungs: Sequence[Rung],
    gpus: Mapping[str, str],
    cublas: Mapping[tuple[str, str], float],
    title: str,
    note: str,
) -> Picture:
    """Draw the rungs in order, at most four GPUs. A side branch is indented, and the legend says so.

    ``gpus`` says for each GPU where its figures come from ("measured", "published"); ``cublas`` has the
    TFLOPS of cuBLAS by (group, GPU).
    """
    drawing = Drawing(title)
    marks = dict(zip(gpus, _MARKS, strict=False))
    y = _legend(drawing, gpus, marks, branches=any(rung.side for rung in rungs))
    y = _head(drawing, y)
    group, trunk = None, ""  # trunk: the last stage above that is no side branch
    for rung in rungs:
        begins = rung.group != group
        if begins:
            group = rung.group
            y = _heading(drawing, group, [(gpu, cublas.get((group, gpu))) for gpu in gpus], marks, y)
        _rung(drawing, rung, marks, y)
        if (begins and not rung.side) or rung.after != trunk:
            words = f"after {rung.after}" if rung.after else ""
            drawing.text(_LEFT - 8, y + 16, words, anchor="end", fill=colours.QUIET)
        trunk = trunk if rung.side else rung.name
        y += _ROW
    for line in wrap(note, 14, 544):
        drawing.text(8, y + 16, line, fill=colours.QUIET)
        y += 18
    return drawing.picture(_in_words(rungs, gpus, cublas, note))


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
    for share in (0, 0.5, 1):
        drawing.text(_x(share), y + 32, f"{100 * share:.0f} %", anchor="middle", fill=colours.QUIET)
    drawing.text(_SHARED, y + 14, "loads per FMA", anchor="end", bold=True)
    drawing.text(_GLOBAL, y + 32, "global", anchor="end", fill=colours.QUIET)
    drawing.text(_SHARED, y + 32, "shared", anchor="end", fill=colours.QUIET)
    return y + 38


def _heading(drawing: Drawing, group: str, cublas: Sequence, marks: Mapping, y: float) -> float:
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
    return y + 26


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
        told = speed.share is not None and not place and len(known) < _MOST_GPUS  # four leave no room for it
        digits = 2 if speed.tflops < 1 and len(known) == _MOST_GPUS else 3
        words = f"{speed.tflops:.{digits}g}" + (f", {100 * speed.share:.0f} %" if told else "")
        drawing.text(x + 10, y + 34, words)
        x += _APART[1] if place or len(known) == _MOST_GPUS else _APART[0] + _beside(words)
    drawing.line(_LEFT, y + 20, _RIGHT, y + 20, stroke=colours.EDGE)
    for share in (0, 0.5, 1):
        drawing.line(
            _x(share), y + 4, _x(share), y + _ROW - 4, stroke=colours.EDGE, dash="2 3" if share else ""
        )
    for gpu, speed in reversed(known):
        if speed.share is not None:
            _mark(drawing, _x(speed.share), y + 26, *marks[gpu], size=17)
    drawing.text(_GLOBAL, y + 26, _ratio(rung.global_loads), anchor="end")
    drawing.text(_SHARED, y + 26, _ratio(rung.shared_loads), anchor="end")


def _beside(words: str) -> float:
    """What the next figure is moved aside by a first one with a share of three digits."""
    return 12.0 if words.endswith("%") and len(words.split(", ")[-1]) > len("99 %") else 0.0


def _elbow(drawing: Drawing, x: float, y: float) -> None:
    drawing.line(x, y + 2, x, y + 11, stroke=colours.QUIET)
    drawing.line(x, y + 11, x + 8, y + 11, stroke=colours.QUIET)


def _mark(drawing: Drawing, x: float, y: float, mark: str, hue: str, size: float = 14) -> None:
    """Write a GPU's mark with a thin dark edge, so that overlapping marks can be told apart."""
    drawing.text(x, y, mark, anchor="middle", size=size + 3, fill=colours.INK)
    drawing.text(x, y - 0.8, mark, anchor="middle", size=size, fill=hue)


def _x(share: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * min(share, _MOST) / _MOST


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
