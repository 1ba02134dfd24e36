"""Shows measured TFLOPS over two tile sizes of a stage, with the others fixed or at their best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemm_course.figures import heatmap as figure
from gemm_course.figures.heatmap import Axis, Cell
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER, Stage, tiles_text
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets import _measured as sweep
from gemm_course.widgets._explorer import Explorer, explorer
from gemm_course.widgets._gpus import shown
from gemm_course.widgets._tiles import sliders

# No more values of one size fit side by side with their numbers.
_MOST = 9
OTHERS = ("fixed", "best")


@explorer
def heatmap(
    stage: str, down: str, across: str, *, others: str = "fixed", on: str | None = None
) -> Explorer | Picture:
    """Show the measured TFLOPS of a stage over two of its tile sizes, such as "TM" and "TN".

    With ``others="fixed"`` there is a slider for every size. Two of them move the chosen cell, and the others
    fix the remaining sizes. With ``others="best"`` a cell shows the fastest of all choices with its two
    sizes, and the picture is returned. ``on`` is the GPU that was measured, such as "rtx_3060". Without it,
    it can be chosen where there are several. Raise ValueError for a size that the stage does not have or
    cannot vary, and for an unknown GPU.
    """
    chosen = LADDER[stage]
    _check(chosen, down, across, others)
    if others == "best":
        return shown(lambda on: best_of_others(chosen, down, across, on), on)
    # The first call is slow, and must not come when a slider moves.
    chosen.legal_choices()

    def draw(on: Place, **sizes: int) -> Picture:
        return with_fixed_sizes(chosen, down, across, sizes, on)

    return shown(draw, on, sliders(chosen))


def _check(stage: Stage, down: str, across: str, others: str) -> None:
    movable = sliders(stage)
    for size in (down, across):
        if size not in movable:
            raise ValueError(f"{stage.name} has no choice of {size}; it has {', '.join(movable)}")
    if down == across:
        raise ValueError(f"a map needs two different sizes; {down} was given twice")
    if others not in OTHERS:
        raise ValueError(f"others must be {' or '.join(map(repr, OTHERS))}, not {others!r}")


def with_fixed_sizes(
    stage: Stage, down: str, across: str, chosen: Mapping[str, int], on: Place = SHIPPED
) -> Picture:
    """Draw the map around a choice of tiles, with every other size as chosen."""
    chosen = stage.complete(chosen)

    def cell(d: int, a: int) -> Cell:
        tiles = {**chosen, down: d, across: a}
        return Cell(sweep.speed(stage, tiles, on), not stage.rules(tiles))

    rest = {size: value for size, value in chosen.items() if size not in (down, across)}
    broken = stage.rules(chosen)
    return figure.heatmap(
        _axis(stage, down, chosen[down]),
        _axis(stage, across, chosen[across]),
        cell,
        _answer(stage, down, across, chosen, rest, on),
        chosen=(chosen[down], chosen[across]),
        notes=[
            *(f"These tiles cannot run: {rule}." for rule in broken),
            f"Fixed: {tiles_text(rest)}." if rest else "",
            _of_the_best(stage, on),
            _source(stage, on),
        ],
    )


def best_of_others(stage: Stage, down: str, across: str, on: Place = SHIPPED) -> Picture:
    """Draw the map of the fastest measured choice for each pair of sizes, whatever the other sizes are."""
    fastest: dict[tuple[int, int], float] = {}
    for choice in sweep.measured(stage, on):
        pair = choice.tiles[down], choice.tiles[across]
        fastest[pair] = max(choice.tflops, fastest.get(pair, 0))
    legal = {(choice[down], choice[across]) for choice in stage.legal_choices()}
    best = max(fastest, key=fastest.get, default=None)
    title = (
        f"{stage.name} is fastest with {down}={best[0]} {across}={best[1]}: {fastest[best]:.3g} TFLOPS"
        if best
        else f"{stage.name} has not been measured yet{'' if on == SHIPPED else f' on {on.an}'}"
    )
    middle = best or (stage.tiles[down], stage.tiles[across])
    return figure.heatmap(
        _axis(stage, down, middle[0]),
        _axis(stage, across, middle[1]),
        lambda d, a: Cell(fastest.get((d, a)), (d, a) in legal),
        title,
        notes=[
            "Each cell is the fastest measured with its two sizes, whatever the others are.",
            _source(stage, on),
        ],
    )


def _axis(stage: Stage, size: str, around: int) -> Axis:
    """Return the values of a size, or only those around ``around`` if there are too many."""
    values: Sequence[int] = stage.options[size]
    place = values.index(around) if around in values else 0
    first = max(0, min(place - _MOST // 2, len(values) - _MOST))
    return Axis(size, values[first : first + _MOST])


def _answer(
    stage: Stage, down: str, across: str, chosen: Mapping[str, int], rest: Mapping[str, int], on: Place
) -> str:
    here = f"{down}={chosen[down]} {across}={chosen[across]}"
    own = sweep.speed(stage, chosen, on)
    if stage.rules(chosen):
        return f"{here} cannot run with the other sizes as they are"
    if own is None:
        return f"{here}: not measured with the other sizes as they are"
    others = [c.tflops for c in sweep.measured(stage, on) if rest.items() <= c.tiles.items()]
    if len(others) == 1:
        return f"{here}: {own:.3g} TFLOPS, the only choice measured here"
    if own == max(others):
        return f"{here}: {own:.3g} TFLOPS, the best of {len(others)} measured here"
    return f"{here}: {own:.3g} TFLOPS; the best of {len(others)} measured here has {max(others):.3g}"


def _of_the_best(stage: Stage, on: Place) -> str:
    best = sweep.best(stage, on)
    return (
        f"The best measured with any sizes: {best.tflops:.3g} with {tiles_text(best.tiles)}." if best else ""
    )


def _source(stage: Stage, on: Place) -> str:
    return f"TFLOPS. {sweep.source(stage, on)}" if sweep.source(stage, on) else sweep.missing(stage, on)
