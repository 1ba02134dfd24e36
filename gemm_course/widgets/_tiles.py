"""Explores a choice of tiles: whether it is legal, what it costs, and what was measured around it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from gemm_course.device import gpu_available
from gemm_course.figures import roofline
from gemm_course.figures import tiles as figure
from gemm_course.figures.neighbours import Neighbour, neighbours
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER, Stage, tiles_text
from gemm_course.kernels.parts.block_tile import named
from gemm_course.kernels.parts.own import OwnStage
from gemm_course.launching import run
from gemm_course.model import occupancy
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets import _measured as sweep
from gemm_course.widgets._block_resources import SWEPT, Taken, now
from gemm_course.widgets._costs import cost
from gemm_course.widgets._explorer import Explorer, explorer
from gemm_course.widgets._gpus import hardware, shown
from gemm_course.widgets._measured import SIZE
from gemm_course.widgets._roofs import fp32_peak, memories, roofs_in_words, tensor_peak

MEASURE = "Measure here"
# Of the measured choices further away, only this many are shown.
_FURTHER = 3


@explorer
def tiles(
    name: str | Stage,
    *,
    tiles: Mapping[str, int] | None = None,
    tells_best: bool = True,
    on: str | None = None,
) -> Explorer:
    """Show sliders for a stage's tile sizes: their costs, what was measured around them, or a roofline.

    ``name`` is that of a stage of the ladder, or a stage of your own, `own("mine.py")`. ``tiles`` are the
    sizes with which it opens, in place of the stage's own.

    Where there is a GPU, a button measures the chosen tiles. Without ``tells_best`` the best choice that was
    measured is named only when the sliders are there. ``on`` is the GPU whose measurements are shown, such as
    "rtx_3060". Without it, it can be chosen where there are several. Raise UnknownGpu for an unknown one.
    """
    stage = LADDER[name] if isinstance(name, str) else name
    # The first call is slow, and must not come when a slider moves.
    stage.legal_choices()
    actions = (
        {MEASURE: lambda show, on=None, **chosen: measured_here(stage, chosen)} if gpu_available() else {}
    )
    controls = {"show": ("show", list(PICTURES), "costs"), **sliders(stage, tiles)}

    def draw(show: str, on: Place, **chosen: int) -> Picture:
        return PICTURES[show](stage, chosen, tells_best=tells_best, on=on)

    return shown(draw, on, controls, actions=actions)


def sliders(stage: Stage, first: Mapping[str, int] | None = None) -> dict:
    """Return a slider, as Explorer takes it, for each tile size of a stage that has more than one value.

    ``first`` are the sizes with which it opens. Without them they are the stage's own.
    """
    movable = {size: options for size, options in stage.options.items() if len(options) > 1}
    first = stage.complete(first or {})
    return {size: (size, options, first[size]) for size, options in movable.items()}


def measured_here(stage: Stage, chosen: Mapping[str, int]) -> str:
    """Run a choice of tiles on this machine's GPU, SIZE³. Say how fast it was, or why it cannot run."""
    if stage.rules(chosen):
        return f"{tiles_text(chosen)} cannot run."
    A, B = (
        np.random.default_rng(seed).random((SIZE, SIZE), np.float32).astype(stage.dtype) for seed in (1, 2)
    )
    extras = dict(zip(stage.extras, stage.example_extras(SIZE, SIZE), strict=True))
    result = run(stage, A, B, tiles=chosen, backend="gpu", extras=extras)
    return f"{tiles_text(chosen)}: {result.tflops:.3g} TFLOPS on this machine ({SIZE}³, {stage.dtype})."


def choice(
    stage: Stage, chosen: Mapping[str, int], *, tells_best: bool = True, on: Place = SHIPPED
) -> Picture:
    """Draw one choice of tiles to scale, beside what it costs and saves, or the rules it breaks."""
    chosen = stage.complete(chosen)
    broken = stage.rules(chosen)
    if broken:
        facts = [("nearest choice that can run", tiles_text(stage.nearest_legal(chosen)))]
        return figure.choice(named(stage, chosen), f"{tiles_text(chosen)} cannot run", facts, broken)
    return figure.choice(
        named(stage, chosen), f"{tiles_text(chosen)} can run", _facts(stage, chosen, tells_best, on), []
    )


def _facts(stage: Stage, chosen: Mapping[str, int], tells_best: bool, on: Place) -> list[tuple[str, str]]:
    threads, known, costs = (
        math.prod(stage.block(chosen)),
        sweep.recorded(stage, chosen, on),
        cost(stage, chosen),
    )
    registers = known.registers if known else _registers_of_ones_own(stage, chosen)
    gpu = hardware(on)
    held = gpu and occupancy(threads, registers or 0, costs.shared_bytes, gpu)
    facts = [
        ("threads per block", f"{threads} = {-(-threads // 32)} warps"),
        ("shared memory per block", f"{costs.shared_bytes} bytes"),
        ("registers", f"{registers} per thread" if registers else "not known without compiling"),
        (
            "an SM holds" if registers else "an SM holds at most",
            _held(held) if held else "not known of this GPU",
        ),
        ("global loads per multiply-add", f"{costs.loads:.4g} (naive: 2)"),
        ("sectors per load request", f"{costs.sectors:.3g}"),
        ("FLOP per byte loaded", f"{costs.intensity:.3g}"),
    ]
    if costs.wavefronts:
        facts.append(("shared loads per multiply-add", f"{costs.shared_loads:.3g}"))
        unit = "warp-wide FMA (source)" if stage.dtype == "float32" else "32 multiply-adds"
        facts.append((f"wavefronts per {unit}", f"{costs.wavefronts:.3g}"))
    return [*facts, (f"measured on {on.an}, {SIZE}³", _speed(stage, chosen, tells_best, on))]


def _registers_of_ones_own(stage: Stage, chosen: Mapping[str, int]) -> int | None:
    """Return the registers of a learner's stage, or None for tiles that are not its defaults.

    Other tiles are not compiled, because that takes seconds.
    """
    if not isinstance(stage, OwnStage) or chosen != stage.complete():
        return None
    code = now(stage, chosen, SWEPT)
    return code.registers if isinstance(code, Taken) else None


def _held(held) -> str:
    if not held.blocks:
        return f"no block: not enough {held.limited_by[0]}"
    blocks = "1 block" if held.blocks == 1 else f"{held.blocks} blocks"
    return f"{blocks} = {held.warps} of {held.most_warps} warps, limited by {' and '.join(held.limited_by)}"


def _speed(stage: Stage, chosen: Mapping[str, int], tells_best: bool, on: Place) -> str:
    known, best = sweep.recorded(stage, chosen, on), sweep.best(stage, on)
    if known is None:
        if best or stage.name not in LADDER:
            return "not measured" if best else "not measured yet"
        return sweep.missing(stage, on).rstrip(".")
    if known.tflops is None:
        return known.reason or "not measured"
    if known.tflops == best.tflops:
        return f"{known.tflops:.3g} TFLOPS, the best measured"
    if not tells_best:
        return f"{known.tflops:.3g} TFLOPS"
    return f"{known.tflops:.3g} TFLOPS; best: {best.tflops:.3g} with {tiles_text(best.tiles)}"


def around(
    stage: Stage, chosen: Mapping[str, int], *, tells_best: bool = True, on: Place = SHIPPED
) -> Picture:
    """Draw what was measured for a choice of tiles, for those one slider step away, and for the best."""
    chosen = stage.complete(chosen)
    near = list(one_step_away(stage, chosen))
    can = [(label, tiles) for label, tiles in near if not stage.rules(tiles)]
    cannot = [label for label, tiles in near if stage.rules(tiles)]
    groups = [
        ("these sliders", [_neighbour(stage, "these tiles", chosen, on, now=True)]),
        ("one step along one slider", [_neighbour(stage, label, tiles, on) for label, tiles in can]),
        ("the nearest others that were measured", _further(stage, chosen, [tiles for _, tiles in can], on)),
        ("the best that was measured", _best(stage, chosen, on) if tells_best else []),
    ]
    return neighbours(
        [(heading, bars) for heading, bars in groups if bars],
        _answer(stage, chosen, can, on),
        cublas=sweep.cublas(stage, on),
        cannot=f"One step that cannot run: {', '.join(cannot)}." if cannot else "",
        note=f"These tiles: {tiles_text(chosen)}. {_source(stage, on)}",
    )


def one_step_away(stage: Stage, chosen: Mapping[str, int]) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield (what changes, tiles) for one step down and one up along each slider. Many cannot run."""
    for size, options in stage.options.items():
        place = options.index(chosen[size]) if chosen[size] in options else None
        for other in (place - 1, place + 1) if place is not None else ():
            if 0 <= other < len(options):
                yield f"{size} {options[other]}", {**chosen, size: options[other]}


def _neighbour(
    stage: Stage, label: str, chosen: Mapping[str, int], on: Place, *, now: bool = False
) -> Neighbour:
    best = sweep.best(stage, on)
    return Neighbour(
        label, sweep.speed(stage, chosen, on), now, bool(best) and dict(best.tiles) == dict(chosen)
    )


def _further(stage: Stage, chosen: Mapping[str, int], seen: list, on: Place) -> list[Neighbour]:
    """Return measured choices that differ in more than one step, the nearest first."""
    near = sweep.nearest(stage, chosen, _FURTHER + len(seen), on)
    near = [each.tiles for each in near if dict(each.tiles) not in seen][:_FURTHER]
    return [_neighbour(stage, difference(chosen, tiles), tiles, on) for tiles in near]


def _best(stage: Stage, chosen: Mapping[str, int], on: Place) -> list[Neighbour]:
    best = sweep.best(stage, on)
    if best is None or dict(best.tiles) == dict(chosen):
        return []
    return [_neighbour(stage, difference(chosen, best.tiles), best.tiles, on)]


def difference(here: Mapping[str, int], there: Mapping[str, int]) -> str:
    """Return the sizes in which ``there`` differs, such as "TM 8, TN 4"."""
    return ", ".join(f"{size} {value}" for size, value in there.items() if here[size] != value)


def _answer(stage: Stage, chosen: Mapping[str, int], can: list[tuple[str, dict]], on: Place = SHIPPED) -> str:
    own = sweep.speed(stage, chosen, on)
    if stage.rules(chosen):
        return "These tiles cannot run; neighbours that were measured"
    if own is None:
        return "These tiles were not measured" + (
            "; neighbours were" if sweep.measured(stage, on) else " yet, nor were others of this stage"
        )
    known = {label: value for label, tiles in can if (value := sweep.speed(stage, tiles, on)) is not None}
    faster = max(known, key=known.get, default=None)
    if faster is None:
        return f"{own:.3g} TFLOPS; no neighbour was measured"
    if known[faster] <= own:
        return f"{own:.3g} TFLOPS: no measured step along one slider is faster"
    return f"{own:.3g} TFLOPS; one step, {faster}, reaches {known[faster]:.3g}"


def on_roofline(
    stage: Stage, chosen: Mapping[str, int], *, tells_best: bool = True, on: Place = SHIPPED
) -> Picture:
    """Draw where a choice of tiles stands on a GPU's roofline, with measured TFLOPS if there are any."""
    chosen, best = stage.complete(chosen), sweep.best(stage, on)
    legal = not stage.rules(chosen)
    points = []
    if tells_best and best and dict(best.tiles) != chosen and not stage.rules(best.tiles):
        points.append(_point("best", stage, best.tiles, False, on))
    if legal:
        points.append(_point("these tiles", stage, chosen, True, on))
    reached = sweep.speed(stage, chosen, on)
    title = (
        f"{stage.name}: {reached:.3g} TFLOPS measured with these tiles"
        if legal and reached is not None
        else f"{stage.name}: not measured with these tiles"
        if legal
        else f"{stage.name}: these tiles cannot run"
    )
    return roofline.roofline(
        roofline.Lines(memories([stage], on), fp32_peak(on), tensor_peak([stage], on)),
        points,
        title,
        _with_roofs(_source(stage, on), on),
        axis="FLOP per byte loaded (C's stores left out)",
        under_title=tiles_text(chosen),
    )


def _point(label: str, stage: Stage, chosen: Mapping[str, int], now: bool, on: Place) -> roofline.Point:
    return roofline.Point(label, cost(stage, chosen).intensity, sweep.speed(stage, chosen, on), now)


def _with_roofs(source: str, on: Place) -> str:
    words = roofs_in_words(on)
    return f"{source.rstrip('.')}. {words}" if words else source


def _source(stage: Stage, on: Place) -> str:
    """Return in one line where the measured figures come from."""
    return sweep.source(stage, on) or sweep.missing(stage, on)


PICTURES = {"costs": choice, "measured around": around, "roofline": on_roofline}
